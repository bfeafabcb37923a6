"""Maps every foreign error once, to one of our errors with its code.

requests wraps errors of urllib3, which wraps those of http.client, ssl and socket. The outer errors say little: the innermost
error says what happened, and the phase of the exchange decides the code.
"""

import http.client
import socket
import ssl
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import requests.exceptions
import urllib3.exceptions

from kubesync.domain.errors import (
    BodyError,
    ConnectError,
    DomainNameError,
    HandshakeError,
    ListenerError,
    RequestError,
)
from kubesync.kubernetes.transport.connections import Phase, TooSlowError
from kubesync.kubernetes.wire.lines import MalformedBodyError, one_line

FOREIGN_ERRORS: Final = (
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,  # socket and ssl
    UnicodeError,  # invalid host names
    zlib.error,
)
"""Errors that an exchange may raise because of the network or the server, not because of a bug in kubesync."""


class BodyTooLongError(BodyError):
    """The body is longer than the caller accepts. A caller that lists asks for smaller pages. ``head``: how it begins."""

    def __init__(self, message: str, head: bytes) -> None:
        super().__init__(message)
        self.head = head


@dataclass(frozen=True, slots=True)
class _Rule:
    """In these phases, a foreign error of this cause, or one that wraps such an error, becomes an error of this class, with this text."""

    phases: frozenset[Phase]
    cause: type[BaseException] | tuple[type[BaseException], ...]
    becomes: type[ListenerError]
    says: str


_CONNECT: Final = frozenset({Phase.CONNECT})
_HANDSHAKE: Final = frozenset({Phase.HANDSHAKE})
_REQUEST: Final = frozenset({Phase.REQUEST})
_BODY: Final = frozenset({Phase.BODY})
_BEFORE_BODY: Final = _CONNECT | _HANDSHAKE | _REQUEST

# Not urllib3's TimeoutError: it includes refused connections (NewConnectionError).
_TIMEOUTS: Final = (TimeoutError, requests.exceptions.Timeout, urllib3.exceptions.ReadTimeoutError)
_NOT_AN_ADDRESS: Final = (
    UnicodeError,
    requests.exceptions.InvalidSchema,
    requests.exceptions.InvalidURL,
    requests.exceptions.MissingSchema,
    requests.exceptions.URLRequired,
    urllib3.exceptions.LocationValueError,
    http.client.InvalidURL,
)
_TLS: Final = (ssl.SSLError, requests.exceptions.SSLError, urllib3.exceptions.SSLError)
_END_OF_TLS: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError)

# Checked from top to bottom, each against every error of the chain (``_wrapped_errors``); the first rule that fits decides.
RULES: Final = (
    _Rule(_BEFORE_BODY, (socket.gaierror, socket.herror, urllib3.exceptions.NameResolutionError),
          DomainNameError, "the name does not resolve"),
    _Rule(_BEFORE_BODY, _NOT_AN_ADDRESS, DomainNameError, "the address is not valid"),
    _Rule(_BEFORE_BODY, ssl.SSLCertVerificationError, HandshakeError, "the certificate is not accepted"),
    _Rule(_CONNECT | _HANDSHAKE, _TIMEOUTS, ConnectError, "no connection in time"),
    _Rule(_CONNECT, ConnectionRefusedError, ConnectError, "connection refused"),
    _Rule(_CONNECT, _TLS, HandshakeError, "TLS cannot be set up"),
    _Rule(_CONNECT, FOREIGN_ERRORS, ConnectError, "the server cannot be reached"),
    _Rule(_HANDSHAKE, _END_OF_TLS, HandshakeError, "the server closed the connection during the TLS handshake"),
    _Rule(_HANDSHAKE, _TLS, HandshakeError, "the TLS handshake failed"),
    _Rule(_HANDSHAKE, FOREIGN_ERRORS, HandshakeError, "the connection was lost during the TLS handshake"),
    _Rule(_REQUEST, _TIMEOUTS, RequestError, "no complete header in time"),
    _Rule(_REQUEST, _END_OF_TLS, RequestError, "the connection was closed before a status line came"),
    # With TLS 1.3 a server refuses a client's certificate after the client has finished its handshake.
    _Rule(_REQUEST, ssl.SSLError, HandshakeError, "the server ended TLS"),
    _Rule(_REQUEST, http.client.RemoteDisconnected, RequestError, "the connection was closed before a status line came"),
    _Rule(_REQUEST, http.client.BadStatusLine, RequestError, "the answer does not begin with an HTTP status line"),
    _Rule(_REQUEST, FOREIGN_ERRORS, RequestError, "the connection was lost before a status line came"),
    _Rule(_BODY, TooSlowError, BodyError, "the body did not end before the deadline"),
    _Rule(_BODY, _TIMEOUTS, BodyError, "the body went silent"),
    _Rule(_BODY, MalformedBodyError, BodyError, "the body could not be decoded"),
    _Rule(_BODY, (urllib3.exceptions.DecodeError, requests.exceptions.ContentDecodingError, zlib.error),
          BodyError, "the body could not be decoded"),
    _Rule(_BODY, FOREIGN_ERRORS, BodyError, "the body broke off"),
)  # fmt: skip


def classify(error: BaseException, phase: Phase, authority: str) -> ListenerError:
    """Make our error for a foreign error, by the first rule that fits. Its message names the server and holds no secret."""
    chain = tuple(_wrapped_errors(error))
    for rule in RULES:
        if phase in rule.phases:
            for cause in chain:
                if isinstance(cause, rule.cause):
                    detail = _detail_of_library(chain)
                    more = f": {detail}" if detail and detail not in rule.says else ""
                    return rule.becomes(one_line(f"{authority}: {rule.says}{more}"))
    # Only errors outside FOREIGN_ERRORS reach this line, and no caller passes one.
    return BodyError(f"{authority}: {type(error).__name__}")


def _wrapped_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that it wraps, outermost first: in ``__cause__``, ``__context__``, ``reason`` or ``args``."""
    seen: set[int] = set()
    queue: list[object] = [error]
    while queue:
        current = queue.pop(0)
        if not isinstance(current, BaseException) or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        queue += [current.__cause__, current.__context__, getattr(current, "reason", None), *current.args]


def _detail_of_library(chain: tuple[BaseException, ...]) -> str:
    """What the library says about the cause; empty: nothing. Never text of ours or of the peer (I8)."""
    for cause in chain:
        if isinstance(cause, MalformedBodyError):
            return str(cause)
        if isinstance(cause, ssl.SSLError):  # these attributes exist only if OpenSSL raised it
            said = getattr(cause, "verify_message", None) or getattr(cause, "reason", None)
            if isinstance(said, str):
                return said.lower().replace("_", " ") if said.isupper() else said
    for cause in chain:
        if isinstance(cause, OSError) and isinstance(cause.errno, int) and cause.strerror:
            return cause.strerror.lower()
    return ""
