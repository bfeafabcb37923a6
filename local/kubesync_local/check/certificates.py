"""Certificates in words: the server's, and our client certificate."""

import socket
import ssl
from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from kubesync.domain.credential_ends import SHOWN_DAYS, Validity, days_left, end_in_words, end_that_counts
from kubesync.kubernetes.transport.urls import Server

_LOOK_SECONDS: Final = 3.0
_SHOWN_NAMES: Final = 6


def shown_by(server: Server, name: str | None) -> x509.Certificate | None:
    """The certificate that a server shows to a client that asks for ``name`` (None: for its host), trusted or not.

    None if it shows none. Sends it nothing.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((server.host, server.port), _LOOK_SECONDS) as bare,
            context.wrap_socket(bare, server_hostname=name or server.host) as tls,
        ):
            shown = tls.getpeercert(binary_form=True)
        return None if shown is None else x509.load_der_x509_certificate(shown)
    except (OSError, ValueError):
        return None


def in_words(certificate: x509.Certificate) -> str:
    """Subject, names, issuer and expiry of a certificate, on one line."""
    names = _names(certificate)
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    listed = ", ".join(names[:_SHOWN_NAMES]) + more
    return (
        f"certificate of {_common_name(certificate.subject)} for {listed or 'no name'}, issued by "
        f"{_common_name(certificate.issuer)}, valid until {certificate.not_valid_after_utc:%Y-%m-%d}"
    )


def near_end(validity: Validity | None, now: float) -> str:
    """Such as ``ends in 12 days (2026-12-05)``; empty: it does not end soon, or something renews it all the time."""
    end = None if validity is None else end_that_counts(validity, now)
    return end_in_words(end, now) if end is not None and days_left(end, now) < SHOWN_DAYS else ""


def client_in_words(pem: str) -> str:
    """The first certificate of a PEM text, in words. Raises ValueError for other text."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    return f"client certificate of {_common_name(certificate.subject)}, valid until {until(pem):%Y-%m-%d %H:%M} UTC"


def until(pem: str) -> datetime:
    """When the first certificate of a PEM text expires. Raises ValueError for other text."""
    return x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc.astimezone(UTC)


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return [
        *found.get_values_for_type(x509.DNSName),
        *(str(address) for address in found.get_values_for_type(x509.IPAddress)),
    ]


def _common_name(name: x509.Name) -> str:
    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else name.rfc4514_string() or "nobody"
