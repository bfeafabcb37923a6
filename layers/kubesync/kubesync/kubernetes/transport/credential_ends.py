"""When the credentials of one cluster's connections end: dates of certificates (DER, PEM) and tokens (JWT), as connections use them.

Makes no request, verifies nothing, and only dates leave. Python's ``ssl`` gives the dates of authorities and of a peer, but not of a
client's own certificate. So certificates are read here.
"""

import base64
import json
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from kubesync.actors.scheduler import Clock
from kubesync.domain.credential_ends import Credential, Validity, end_that_counts

# API servers behind one address may show different certificates: what was shown within this time counts.
_SHOWN_SECONDS: Final = 3600.0


class CredentialEnds:
    """Collects when the credentials of one cluster end. All its connections under one configuration share one collector.

    Any thread may call it. Secrets are not kept (I8).

    The end of the CA is the end of the certificate in the bundle that the server's chain ends with: TLS fails after it. Others
    in the bundle may end without harm, as they do when a CA is rotated. Before the first handshake it is one of the ends in the bundle.

    The end of the server's certificate includes the intermediates that the server sends. Without verification (``insecure``) neither
    end matters. Public authorities have no end here: no person renews them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # As ``known``, but only from configuration and tokens. What handshakes have shown counts before it.
        self._ends: dict[Credential, tuple[float, ...]] = {}
        # The authorities to trust, as PEM. None: the public ones, or TLS is not verified.
        self._bundle: str | None = None
        # Of certificates that handshakes have shown: by end (epoch seconds), when (monotonic) it was shown last.
        self._shown: dict[Credential, dict[float, float]] = {}

    def known(self) -> Mapping[Credential, tuple[float, ...]]:
        """The ends by credential, in epoch seconds, for the report of the cluster.

        missing        not seen yet
        no end         not used, has no end, or is renewed all the time
        one end        it ends then
        several ends   only of the CA: the bundle's certificates. No handshake has shown yet which of them the server's chain ends with
        """
        with self._lock:
            return {**self._ends, **{what: (min(ends),) for what, ends in self._shown.items() if ends}}

    def note_configuration(self, *, verified: bool, ca_pem: str | None = None, client_pem: str | None = None) -> None:
        """Note what a connection uses: this bundle of authorities (None: the public ones), and this client certificate, the first in its text.

        Called when a client makes its connection. The same bundle as before changes nothing of the CA: a handshake may have shown already which
        of its certificates counts. Another bundle begins with the ends of all of them. If the certificate that ends last is renewed all the
        time (``end_that_counts``), so is the bundle: the CA then has no end that a person must know.
        """
        bundle = ca_pem if verified else None
        with self._lock:
            self._ends[Credential.CLIENT_CERTIFICATE] = self._relevant_ends(validities_in_pem(client_pem or "")[:1])
            if not verified:
                self._ends[Credential.SERVER_CERTIFICATE] = ()
            if bundle != self._bundle or Credential.CA not in self._ends:
                self._bundle = bundle
                self._shown.pop(Credential.CA, None)
                found = sorted(validities_in_pem(bundle or ""), key=lambda each: each.ends_at)
                last_matters = self._relevant_ends(found[-1:])
                self._ends[Credential.CA] = self._relevant_ends(found) if last_matters else ()

    def note_chain(self, chain: Sequence[bytes]) -> None:
        """Note the chain (DER) of a handshake that succeeded: the server's certificate first, the trusted one last."""
        found = [each for each in map(validity_of_certificate, chain) if each is not None]
        if not found:
            return
        with self._lock:
            # The last one is the authority's, unless there is only one certificate. Of the others, the one that ends first counts.
            self._note_shown(Credential.SERVER_CERTIFICATE, min(found[:-1] or found, key=lambda each: each.ends_at))
            # Public authorities (no bundle) have no end here. If one of the chain could not be read, the last one found need not be the authority's.
            if self._bundle is not None and len(found) == len(chain):
                self._note_shown(Credential.CA, found[-1])

    def note_sent_token(self, token: str | None, *, fresh: bool) -> None:
        """Note the token of a request. None: no token, or one that its source renews in time by itself.

        ``fresh``: it was read again, because the server has refused the one before. Only then a short-lived token that has
        ended counts: before, it may be the old one of a source that is read every few minutes.
        """
        found = None if token is None else validity_of_token(token)
        with self._lock:
            if found is None:
                self._ends[Credential.TOKEN] = ()
                return
            # ``end_that_counts`` leaves out a token only if it is short-lived and valid. A second before its end every token is valid.
            short_lived = end_that_counts(found, found.ends_at - 1) is None
            if not short_lived or fresh or found.ends_at > self._clock.epoch_seconds():
                self._ends[Credential.TOKEN] = self._relevant_ends([found])

    def _note_shown(self, what: Credential, found: Validity) -> None:
        """Remember the end of a certificate that a handshake shows now. Forget ends that no handshake has shown within _SHOWN_SECONDS.

        API servers behind one address may show different certificates, so several ends are kept. The caller holds the lock.
        """
        now, shown = self._clock.monotonic(), self._shown.setdefault(what, {})  # shown: by end, when it was shown last
        ends = self._relevant_ends([found])  # one end; none if the certificate is renewed all the time
        shown.update(dict.fromkeys(ends, now))
        if not ends:
            self._ends[what] = ()
        for end in [end for end, at in shown.items() if at <= now - _SHOWN_SECONDS]:
            del shown[end]

    def _relevant_ends(self, found: Sequence[Validity]) -> tuple[float, ...]:
        """The ends of credentials, without those that no person has to know (``end_that_counts``)."""
        ends = (end_that_counts(each, self._clock.epoch_seconds()) for each in found)
        return tuple(end for end in ends if end is not None)


# 9999-12-31 23:59:59 UTC, the last date that a certificate can name (RFC 5280 section 4.1.2.5).
_LAST: Final = 253_402_300_799
_BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----")
_INTEGER, _UTC_TIME, _GENERALIZED_TIME, _SEQUENCE, _VERSION = 0x02, 0x17, 0x18, 0x30, 0xA0


def validities_in_pem(pem: str) -> list[Validity]:
    """Read the validities of all certificates in a PEM text, in order. Leaves out unreadable ones."""
    found: list[Validity] = []
    for block in _BLOCK.findall(pem):
        with suppress(ValueError):
            validity = validity_of_certificate(base64.b64decode(block))
            found += [] if validity is None else [validity]
    return found


def validity_of_certificate(der: bytes) -> Validity | None:
    """Read the validity of a DER certificate (RFC 5280 section 4.1). None: the bytes are no certificate.

    Certificate > tbsCertificate > [version], serialNumber, signature, issuer, validity > notBefore, notAfter. An element is entered where its
    content begins, and passed over where it ends.
    """
    try:
        _, at, _ = _read_element(der, 0, _SEQUENCE)  # enter the certificate
        _, at, _ = _read_element(der, at, _SEQUENCE)  # enter tbsCertificate
        tag, _, end = _read_element(der, at)
        at = end if tag == _VERSION else at  # the version may be missing
        for wanted in (_INTEGER, _SEQUENCE, _SEQUENCE):  # pass over serialNumber, signature, issuer
            _, _, at = _read_element(der, at, wanted)
        _, at, _ = _read_element(der, at, _SEQUENCE)  # enter validity
        starts_at, at = _read_time(der, at)
        ends_at, _ = _read_time(der, at)
    except (IndexError, ValueError):
        return None
    return Validity(ends_at, starts_at)


def _read_element(der: bytes, at: int, wanted: int | None = None) -> tuple[int, int, int]:
    """Read the DER element at an offset. Returns its tag, and where its content begins and ends. Raises IndexError, ValueError.

    ``wanted``: the tag that it must have.
    """
    tag, length = der[at], der[at + 1]
    at += 2
    if length & 0x80:  # the long form: the other bits say how many bytes the length has
        size = length & 0x7F
        length = int.from_bytes(der[at : at + size])
        at += size
    if (wanted is not None and tag != wanted) or at + length > len(der):
        raise ValueError
    return tag, at, at + length


def _read_time(der: bytes, at: int) -> tuple[float, int]:
    """Read a time in epoch seconds. Returns also where it ends. Raises ValueError."""
    tag, begins, ends = _read_element(der, at)
    text = der[begins:ends].decode("ascii")
    if tag == _UTC_TIME:  # two digits of the year: 50 to 99 are 1950 to 1999
        text = ("19" if text[:2] >= "50" else "20") + text
    if tag not in (_UTC_TIME, _GENERALIZED_TIME) or not re.fullmatch(r"[0-9]{14}Z", text):
        raise ValueError
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp(), ends


def validity_of_token(token: str) -> Validity | None:
    """Read the validity of a JWT (RFC 7519: ``exp``, and ``iat`` or ``nbf``). None: it is no JWT, or names no end."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    if not isinstance(claims, dict) or (ends_at := _date(claims.get("exp"))) is None:
        return None
    starts_at = _date(claims.get("iat"))
    return Validity(ends_at, _date(claims.get("nbf")) if starts_at is None else starts_at)


def _date(value: object) -> float | None:
    """A NumericDate, in whole seconds. None: anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LAST:
        return None
    return float(int(value))
