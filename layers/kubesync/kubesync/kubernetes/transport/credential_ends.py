"""Remembers when the credentials of one cluster's connections end, as the connections use them. Makes no request."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from kubesync.clock import Clock
from kubesync.domain.credential_ends import Credential, Validity, end_that_counts
from kubesync.kubernetes.transport import validity
from kubesync.kubernetes.transport.connections import ClientCertificate

# API servers behind one address may show different certificates: what was shown within this time counts.
_SHOWN_SECONDS: Final = 3600.0


class CredentialEnds:
    """All connections to one cluster, under one configuration, share one. Any thread may call it. Secrets are not kept (I8).

    The end of the CA is the end of the certificate in the bundle that the server's chain ends with: TLS fails after it. Others
    in the bundle may end without harm, as they do when a CA is rotated. Before the first handshake it is one of the ends in the bundle.

    The end of the server's certificate includes the intermediates that the server sends. Without verification (``insecure``) neither
    matters. Public authorities have no end here: no person renews them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ends: dict[Credential, tuple[float, ...]] = {}
        self._bundle: str | None = None
        self._shown: dict[Credential, dict[float, float]] = {}  # when each end was shown last

    def known(self) -> Mapping[Credential, tuple[float, ...]]:
        """The end of each credential (epoch seconds). A credential that is missing was not seen yet.

        Empty: the credential is not used, has no end, or is renewed all the time. Several: one of these, the latest if nothing
        better is known.
        """
        with self._lock:
            return {**self._ends, **{what: (min(ends),) for what, ends in self._shown.items() if ends}}

    def configured(
        self, *, verified: bool, ca_pem: str | None = None, client_certificate: ClientCertificate | str | None = None
    ) -> None:
        """A connection uses this bundle (None: public authorities) and this client certificate."""
        client = _first(client_certificate)
        bundle = ca_pem if verified else None
        with self._lock:
            self._ends[Credential.CLIENT_CERTIFICATE] = () if client is None else self._counting(client)
            if not verified:
                self._ends[Credential.SERVER_CERTIFICATE] = ()
            if bundle != self._bundle or Credential.CA not in self._ends:
                self._bundle = bundle
                self._shown.pop(Credential.CA, None)
                found = sorted(validity.of_pem(bundle or ""), key=lambda each: each.ends_at)
                useful = bool(found and self._counting(found[-1]))
                self._ends[Credential.CA] = tuple(end for each in found for end in self._counting(each) if useful)

    def shown(self, chain: Sequence[bytes]) -> None:
        """The chain (DER) of a handshake that succeeded: the server's certificate first, the trusted one last."""
        found = [each for each in map(validity.of_der, chain) if each is not None]
        if not found:
            return
        with self._lock:
            self._see(Credential.SERVER_CERTIFICATE, min(found[:-1] or found, key=lambda each: each.ends_at))
            if self._bundle is not None and len(found) == len(chain):
                self._see(Credential.CA, found[-1])

    def sent(self, token: str | None, *, fresh: bool) -> None:
        """A request carries this token. None: no token, or one that its source renews in time by itself.

        ``fresh``: it was read again, because the server has refused the one before. Only then a short-lived token that has
        ended counts: before, it may be the old one of a source that is read every few minutes.
        """
        found = None if token is None else validity.of_token(token)
        with self._lock:
            if found is None:
                self._ends[Credential.TOKEN] = ()
                return
            short_lived = end_that_counts(found, found.ends_at - 1) is None
            if not short_lived or fresh or found.ends_at > self._clock.epoch():
                self._ends[Credential.TOKEN] = self._counting(found)

    def _see(self, what: Credential, found: Validity) -> None:
        now, seen, counting = self._clock.monotonic(), self._shown.setdefault(what, {}), self._counting(found)
        seen.update(dict.fromkeys(counting, now))
        if not counting:
            self._ends[what] = ()
        for end in [end for end, at in seen.items() if at <= now - _SHOWN_SECONDS]:
            del seen[end]

    def _counting(self, found: Validity) -> tuple[float, ...]:
        end = end_that_counts(found, self._clock.epoch())
        return () if end is None else (end,)


def _first(certificate: ClientCertificate | str | None) -> Validity | None:
    """The validity of a client's own certificate, which is the first one."""
    pem = certificate if isinstance(certificate, str) else ""
    if isinstance(certificate, ClientCertificate):
        with suppress(OSError, UnicodeDecodeError):
            pem = Path(certificate.cert_file).read_text("ascii")
    return next(iter(validity.of_pem(pem)), None)
