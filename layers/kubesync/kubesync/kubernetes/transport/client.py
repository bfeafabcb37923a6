"""A client for one API server. Requests carry a bearer token, have limits of time and size, and can be ended at once."""

import io
import json
import math
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol

import requests
import urllib3

from kubesync.actors.scheduler import Clock
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.errors import (
    TOO_LONG,
    DeniedError,
    HandshakeError,
    KubesyncError,
    ListenerError,
    StatusError,
    TooOldError,
)
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.connections import (
    SHORTEST_TIMEOUT_SECONDS,
    ApiServerAdapter,
    Interrupter,
    Phase,
    build_tls_context,
)
from kubesync.kubernetes.transport.credential_ends import CredentialEnds
from kubesync.kubernetes.transport.failures import FOREIGN_ERRORS, BodyTooLongError, classify
from kubesync.kubernetes.transport.streams import LineStream
from kubesync.kubernetes.transport.urls import ApiRequest, Server, parse_server
from kubesync.kubernetes.wire.lines import one_line
from kubesync.log import logger

VERSION: Final = "0.1.0"
_HEADERS: Final = {"User-Agent": f"kubesync/{VERSION}", "Accept": "application/json"}
_BLOCK_BYTES: Final = 256 * 1024  # one read of a body
_STATUS_BYTES: Final = 64 * 1024  # how much of a refusal's body is read, and shown of one that is too long
_REVEALING_CHARACTERS: Final = 12  # this many characters of a secret's beginning reveal it; fewer do not
_NEVER: Final = math.inf


class TokenSource(Protocol):
    """Provides a cluster's bearer token."""

    def token(self, *, fresh: bool = False) -> str | None:
        """The token to send now. None: send none; a certificate authenticates.

        ``fresh``: the server refused the last token, so do not answer from a cache.

        Raises:
            DeniedError: there is no token. The message says what to do, and holds no secret.
        """


class CertificateSource(Protocol):
    """Provides certificates that a cluster's configuration refers to but does not contain.

    Both methods raise HandshakeError if a certificate cannot be read. The message says what to do, and holds no secret.
    ``fresh``: the last certificate was not accepted, so do not answer from a cache.
    """

    def ca_pem(self, *, fresh: bool = False) -> str | None:
        """Authorities to trust; None: the configuration refers to none."""

    def client_pem(self, *, fresh: bool = False) -> str | None:
        """Certificate and key of the client in one text; None: the configuration refers to none."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How to reach one API server, and how long to wait for it.

    Args:
        server: its address, ``https://host[:port][/prefix]``; plain ``http://`` on loopback only.
        ca_pem: certificates of the authorities to trust, instead of the public ones.
        insecure_skip_tls_verify: trust anyone who answers; logged as a warning.
        tls_server_name: a kubeconfig's name for the server's certificate, in place of the one in ``server``.
        token_source: the bearer token; None: anonymous, or a client certificate.
        client_pem: certificate and key of a kubeconfig's user.
        certificates: authorities and client certificate by reference; they take precedence over the others.
        renews_token: the token source replaces its token in time by itself, so its end concerns nobody. If it also is the
            source of certificates, this holds for them too.
        policy: timeouts in seconds and sizes in bytes.
    """

    server: str
    ca_pem: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    token_source: TokenSource | None = field(default=None, repr=False)
    client_pem: str | None = field(default=None, repr=False)
    certificates: CertificateSource | None = field(default=None, repr=False)
    policy: ReflectorPolicy = field(default_factory=ReflectorPolicy)
    renews_token: bool = False


class ApiClient:
    """Requests to one API server. Each listener has its own; only ``shutdown`` may be called from another thread.

    It sends without a session of requests. So it reads nothing from the environment (proxies, ``.netrc``, CA bundles), keeps no cookie,
    follows no redirect and reads none to its end: the token goes only to the configured server (I8).

    ``date``: the Date header of the last answer; empty if there was none.

    Args:
        ends: is notified of the credentials that are used.
    """

    def __init__(self, access: ClusterAccess, clock: Clock | None = None, ends: CredentialEnds | None = None) -> None:
        self._access = access
        self._clock = clock or ThreadScheduler()
        self._ends = ends or CredentialEnds(self._clock)
        self._interrupter = Interrupter(self._clock)
        self._adapter: ApiServerAdapter | None = None
        self._token = ""  # the last one that was sent, to hide it in errors
        self._renew_certificates = False  # bypass caches when certificates are read next
        self.date = ""

    @cached_property
    def _server(self) -> Server:
        """Its address. Raises DomainNameError, at the first request."""
        return parse_server(self._access.server)

    @property
    def policy(self) -> ReflectorPolicy:
        return self._access.policy

    def fetch(self, request: ApiRequest, *, deadline_monotonic: float = _NEVER, max_bytes: int | None = None) -> bytes:
        """Send a request. Returns the whole body of a 200 answer (to a POST also 201), decompressed.

        Raises:
            BodyTooLongError: it is longer than ``max_bytes`` (None: than a page of a list may be). The rest is not read.
            TooOldError: 410.
            ListenerError: any other status, or no complete body within the timeouts and the deadline.
            StoppedError: ``shutdown`` was called.
        """
        longest = max_bytes or self.policy.max_list_page_bytes
        # Only a list without pages may be longer than a page: no limit of time but the deadline.
        seconds = self.policy.answer_seconds if longest <= self.policy.max_list_page_bytes else _NEVER
        deadline = min(deadline_monotonic, self._clock.monotonic() + seconds)
        with self._exchange(request, "gzip", deadline) as response:
            return self._read_all(response, deadline, longest)

    @contextmanager
    def stream(self, request: ApiRequest, *, deadline_monotonic: float = _NEVER) -> Iterator[LineStream]:
        """Send a request and yield the body of a 200 answer as lines, while they arrive. Raises like ``fetch``."""
        with self._exchange(request, "identity", deadline_monotonic) as response:
            yield LineStream(response, self._interrupter, self._server.authority, self.policy.max_line_bytes)

    def shutdown(self) -> None:
        """End a blocked call within a millisecond, and refuse later requests. Any thread may call it, any number of times."""
        self._interrupter.interrupt()

    def close(self) -> None:
        """Close the sockets. Only the thread that uses the client calls it."""
        if self._adapter is not None:
            self._adapter.close()
        self._interrupter.release()

    @contextmanager
    def _exchange(self, request: ApiRequest, encoding: str, deadline: float) -> Iterator[requests.Response]:
        """Connect, send, and yield an answer that was accepted. After a 401, send once more with fresh credentials.

        Hides the token in every ListenerError, also in those of the caller's block. Closes the response at the end.
        """
        # ``finally`` closes the last response.
        response = self._send(request, encoding, deadline, fresh=False)
        try:
            if response.status_code == 401 and (self._access.token_source or self._access.certificates) is not None:
                response.close()
                if self._access.certificates is not None:
                    self._forget_certificates()
                response = self._send(request, encoding, deadline, fresh=True)
            if response.status_code != 200 and (response.status_code != 201 or request.body is None):
                raise self._error_of_status(response)
            yield response
        except ListenerError as error:
            # A server's text may repeat what was sent to it, in a refusal as well as in a stream (I8).
            error.message = without_secret(error.message, self._token)
            error.args = (error.message,)
            raise
        finally:
            response.close()
            # Such a connection has closed without ``release``, so that its body could still be cut. Others call it when they close.
            if _ends_with_its_connection(response):
                self._interrupter.release()

    def _forget_certificates(self) -> None:
        """Close the connection. The next request reads the certificates again: they may have been rotated."""
        self._renew_certificates = True
        if self._adapter is not None:
            self._adapter.close()
            self._adapter = None

    def _connect(self) -> ApiServerAdapter:
        """The connections to the server. Makes them and their TLS rules at the first call; sends nothing.

        Raises HandshakeError if a certificate cannot be read, StoppedError after ``shutdown``.
        """
        self._interrupter.raise_if_stopped()
        if self._adapter is None:
            context = None
            if self._server.scheme == "http":
                self._ends.note_configuration(verified=False)
            else:  # reading the public authorities takes 20 ms
                context = self._tls_context()
            server_name, noted = self._access.tls_server_name, self._ends.note_chain
            self._adapter = ApiServerAdapter(self._interrupter, context, server_name, noted)
        return self._adapter

    def _tls_context(self) -> ssl.SSLContext:
        """The TLS rules of the configuration. Reads the certificates that it refers to, and bypasses caches after ``_forget_certificates``."""
        access, authority = self._access, self._server.authority
        ca_pem, client_pem, insecure = access.ca_pem, access.client_pem, access.insecure_skip_tls_verify
        renewed = False
        if access.certificates is not None:
            fresh = self._renew_certificates
            ca, client = access.certificates.ca_pem(fresh=fresh), access.certificates.client_pem(fresh=fresh)
            self._renew_certificates = False
            ca_pem, client_pem = ca or ca_pem, client or client_pem
            # The plugin of a kubeconfig renews its client certificate itself: its end concerns nobody.
            renewed = bool(client) and access.renews_token
        try:
            context = build_tls_context(ca_pem=ca_pem, insecure_skip_tls_verify=insecure, client_pem=client_pem)
        except (OSError, ValueError):
            said = f"{authority}: the CA certificate or the client certificate cannot be read as PEM"
            raise HandshakeError(said) from None
        self._ends.note_configuration(verified=not insecure, ca_pem=ca_pem, client_pem=None if renewed else client_pem)
        if insecure:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # our own warning appears once
            logger.warning("TLS verification is switched off for a cluster", extra={"server": authority})
        return context

    def _send(self, request: ApiRequest, encoding: str, deadline: float, *, fresh: bool) -> requests.Response:
        """Send one request and wait for the header of its answer. ``fresh``: read the token again. Raises ListenerError, StoppedError.

        ``deadline`` (monotonic): of all of the exchange. After a failed handshake the next request reads the certificates again.
        """
        adapter = self._connect()
        headers = {**_HEADERS, "Accept-Encoding": encoding, **self._authorization(fresh=fresh)}
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        self._interrupter.raise_if_stopped()
        self._interrupter.phase = Phase.CONNECT
        left = max(deadline - self._clock.monotonic(), SHORTEST_TIMEOUT_SECONDS)
        timeout = (min(self.policy.connect_timeout, left), min(self.policy.read_timeout, left))
        self._interrupter.limit(self.policy.read_timeout, min(self.policy.header_seconds, left))
        method, url = "GET" if request.body is None else "POST", self._server.url(request.path)
        try:
            prepared = requests.Request(method, url, headers, data=request.body, params=request.params).prepare()
            verify = not self._access.insecure_skip_tls_verify
            response = adapter.send(prepared, stream=True, timeout=timeout, verify=verify)
        except FOREIGN_ERRORS as error:
            self._interrupter.raise_if_stopped()
            failure = classify(error, self._interrupter.phase, self._server.authority)
            if isinstance(failure, HandshakeError) and self._access.certificates is not None:
                self._forget_certificates()
            raise failure from None
        self.date = response.headers.get("Date", "")
        return response

    def _authorization(self, *, fresh: bool) -> dict[str, str]:
        """The Authorization header. Remembers the token, so that errors can hide it, and notes when it ends."""
        token = self._read_token(fresh=fresh)
        # A token that its source renews by itself ends and is replaced all the time: its end concerns nobody.
        self._ends.note_sent_token(None if self._access.renews_token else token, fresh=fresh)
        if token is None:
            return {}
        self._token = token
        return {"Authorization": f"Bearer {token}"}

    def _read_token(self, *, fresh: bool) -> str | None:
        """Read and check the token. Raises DeniedError without the token in its message (I8)."""
        try:
            source = self._access.token_source
            token = None if source is None else source.token(fresh=fresh)
        except ListenerError:
            raise
        except KubesyncError as error:
            raise DeniedError(one_line(f"no token: {error}")) from None
        except Exception as error:  # noqa: BLE001 - the message of a foreign store may hold the secret; its class does not
            raise DeniedError(f"no token: {type(error).__name__}") from None
        if token is None:
            return None
        token = token.strip()
        if not token.isascii() or not token.isprintable() or " " in token or not token:
            # requests would refuse it too, but show it in the message.
            raise DeniedError("the token is empty or holds characters that are not allowed in an HTTP header")
        return token

    def _read_all(self, response: requests.Response, deadline: float, max_bytes: int) -> bytes:
        """Read a body to its end. Raises BodyTooLongError beyond ``max_bytes``."""
        body = io.BytesIO()
        self._interrupter.limit(self.policy.read_timeout, deadline - self._clock.monotonic())
        while True:
            try:
                block = response.raw.read1(_BLOCK_BYTES, decode_content=True)
            except FOREIGN_ERRORS as error:
                self._interrupter.raise_if_stopped()
                raise classify(error, Phase.BODY, self._server.authority) from None
            self._interrupter.raise_if_stopped()
            if not block:
                return body.getvalue()  # without a copy
            body.write(block)
            if body.tell() > max_bytes:
                said = f"{self._server.authority}: a body {TOO_LONG} {max_bytes} bytes"
                raise BodyTooLongError(said, body.getvalue()[:_STATUS_BYTES])

    def _error_of_status(self, response: requests.Response) -> ListenerError:
        """Make the error for a status other than 200. Reads the body for its message.

        401, 403: DeniedError. 410: TooOldError (list again). Others: StatusError, with the seconds of Retry-After where it is given.
        """
        status = response.status_code
        message, retry_after = self._read_status(response)
        # Hide the secret before the text is cut: a part of a token is secret too.
        said = without_secret(message, self._token)
        text = one_line(f"{self._server.authority}: HTTP {status}{': ' if said else ''}{said}")
        if status == 410:
            return TooOldError(text)
        if status in (401, 403):
            return DeniedError(text, status=status)
        return StatusError(text, status=status, retry_after_seconds=retry_after)

    def _read_status(self, response: requests.Response) -> tuple[str, float | None]:
        """The message of the Status in a body, and the seconds to wait if the server asks for it."""
        body = b""
        with suppress(*FOREIGN_ERRORS):  # a refusal without a readable body is still a refusal
            self._interrupter.limit(5.0, 5.0)
            body = response.raw.read(_STATUS_BYTES, decode_content=True)
        retry_after = _parse_retry_after(response.headers.get("Retry-After"))
        try:
            status = json.loads(body)
            message = status["message"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return response.reason or "", retry_after
        details = status.get("details")
        if retry_after is None and isinstance(details, dict):
            retry_after = _parse_retry_after(details.get("retryAfterSeconds"))
        return str(message), retry_after


def without_secret(text: str, secret: str) -> str:
    """Replace every occurrence of a secret with ``***``, also where the text was cut and only the secret's beginning is left.

    Wherever the text has the secret's first characters (_REVEALING_CHARACTERS), these and all that follow as in the secret are replaced.
    """
    start, searched = secret[:_REVEALING_CHARACTERS], 0
    while secret and (at := text.find(start, searched)) >= 0:
        end = at + len(start)
        while end < len(text) and end - at < len(secret) and text[end] == secret[end - at]:
            end += 1
        text = f"{text[:at]}***{text[end:]}"
        searched = at + len("***")  # a secret may be of asterisks itself
    return text


def _parse_retry_after(value: object) -> float | None:
    """Parse a Retry-After in seconds; None: it is not a number.

    Its form as a date is ignored: Kubernetes does not use it, and it would depend on clocks.
    """
    try:
        seconds = float(str(value))
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _ends_with_its_connection(response: requests.Response) -> bool:
    """Whether the connection cannot be used again after this answer."""
    original = getattr(response.raw, "_original_response", None)
    return original is None or bool(original.will_close)
