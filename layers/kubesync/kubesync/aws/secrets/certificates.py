"""Certificates by reference: the authorities of an API server, and the certificate and key that kubesync presents."""

from collections.abc import Callable, Iterable
from typing import Final

from kubesync.actors.scheduler import Clock
from kubesync.aws.secrets.references import ClientFor, Secret, SecretReference, UnreadableError
from kubesync.domain.errors import HandshakeError

_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"
_KEY_ENDING: Final = "PRIVATE KEY-----"


class SecretCertificates:
    """Implements ``kubernetes.transport.CertificateSource``. Threads may share one.

    Args:
        references: three: of the authorities, of the client's certificate, and of its key. None: there is no such secret. If there is only a
            certificate, its secret must also hold the key.
        client_for: see ``references.Secret``.
    """

    def __init__(self, references: Iterable[SecretReference | None], client_for: ClientFor, clock: Clock) -> None:
        def secret(reference: SecretReference | None, form: Callable[[str], str]) -> Secret[str] | None:
            return None if reference is None else Secret(reference, client_for, clock, form)

        ca, certificate, key = references
        self._ca = secret(ca, _as_authorities)
        self._certificate = secret(certificate, _as_certificate if key else _as_both)
        self._key = secret(key, _as_key)

    def ca_pem(self, *, fresh: bool = False) -> str | None:
        """The authorities; None if there is no reference to any. Raises HandshakeError."""
        return _read_or_none(self._ca, "CA certificate", fresh=fresh)

    def client_pem(self, *, fresh: bool = False) -> str | None:
        """Certificate and key in one text; None if there is no reference to any. Raises HandshakeError."""
        certificate = _read_or_none(self._certificate, "client certificate", fresh=fresh)
        key = _read_or_none(self._key, "client key", fresh=fresh)
        return certificate if certificate is None or key is None else f"{certificate}\n{key}\n"


def _read_or_none(secret: Secret[str] | None, what: str, *, fresh: bool) -> str | None:
    """Read a secret; None: there is none. Raises HandshakeError if it cannot be used, because then TLS cannot begin. ``what``: for the message."""
    if secret is None:
        return None
    try:
        return secret.value(fresh=fresh)
    except UnreadableError as error:
        raise HandshakeError(f"no {what} from {secret.reference}: {error}") from None


def _as_authorities(text: str) -> str:
    if _KEY_ENDING in text:
        raise UnreadableError("it holds a private key: give certificates only")
    return _as_certificate(text)


def _as_certificate(text: str) -> str:
    if _CERTIFICATE not in text:
        raise UnreadableError("it holds no certificate in PEM form")
    return _ascii(text)


def _as_key(text: str) -> str:
    if _KEY_ENDING not in text:
        raise UnreadableError("it holds no private key in PEM form")
    if "ENCRYPTED" in text:
        raise UnreadableError("its private key is encrypted: store it without a passphrase")
    return _ascii(text)


def _as_both(text: str) -> str:
    if _KEY_ENDING not in text:
        raise UnreadableError("it holds no private key: give the key's own reference with --client-key")
    return _as_key(_as_certificate(text))


def _ascii(text: str) -> str:
    if not text.isascii():
        raise UnreadableError("it is not PEM: PEM is ASCII only")
    return text
