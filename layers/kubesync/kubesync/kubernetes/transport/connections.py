"""Connections that another thread can cut at any moment, and the TLS rules for Kubernetes hosts.

phase       what blocks                        how its errors are coded
CONNECT     name resolution, TCP connect       codes 6 and 7
HANDSHAKE   TLS                                code 8 (timeout: 7)
REQUEST     sending, reading the header        code 9
BODY        reading the body                   code 12

A timeout of a socket counts from the last byte. A server that sends a byte from time to time never runs into it, and http.client reads
lines of a header, and answers with status 100, for as long as they come. So each read of the socket also has a time by which all must end.
"""

import contextlib
import http.client
import io
import math
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache, partial
from typing import Any, Final

import certifi
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NameResolutionError, NewConnectionError
from urllib3.util.ssl_ import create_urllib3_context

from kubesync.actors.scheduler import Clock

_INTERIM: Final = range(102, 200)  # such as 103, which a proxy may send before the answer
SHORTEST_TIMEOUT_SECONDS: Final = 0.05  # a timeout of zero means non-blocking


class Phase(StrEnum):
    """What a request is doing, as in the table above."""

    CONNECT = "connect"
    HANDSHAKE = "handshake"
    REQUEST = "request"
    BODY = "body"


class TooSlowError(TimeoutError):
    """No time is left for the next read: the server sends something from time to time, but not all of it in time."""


class StoppedError(Exception):
    """The client was shut down. Whoever called ``shutdown`` expects this error and no other."""


class Interrupter:
    """Remembers the socket that a client uses, so that another thread can end any call that blocks on it.

    ``shutdown`` of a socket ends connecting, handshake, waiting and reading, both plain and TLS. Until an answer begins the Interrupter has a
    duplicate of the descriptor, because TLS takes the socket over; then it has the socket itself, which is one descriptor less for each
    watch. A connection releases its socket before it closes it, so that no descriptor is hit that was closed and used again. Name
    resolution cannot be ended; the interruption takes effect after it. One connection is in use at a time.
    """

    def __init__(self, clock: Clock) -> None:
        self.phase = Phase.CONNECT
        self._clock = clock
        self._lock = threading.Lock()
        self._stopped = False
        # What ``interrupt`` cuts: the socket, or its duplicate (``_duplicated``).
        self._handle: socket.socket | None = None
        self._duplicated = False
        # How long the server may send nothing, and when (monotonic) all calls must have ended. Set by ``limit``.
        self._silence_seconds = self._until = math.inf

    def raise_if_stopped(self) -> None:
        """Raise StoppedError if ``interrupt`` was called."""
        if self._stopped:
            raise StoppedError

    def interrupt(self) -> None:
        """End a blocked call now and refuse later ones. Any thread may call it, any number of times."""
        with self._lock:
            self._stopped = True
            if self._handle is not None:
                # Not connected, or the peer has cut it: nothing blocks on it.
                with contextlib.suppress(OSError):
                    # Not that of SSLSocket, which drops the TLS layer first: a reader would take encrypted bytes for plain ones.
                    socket.socket.shutdown(self._handle, socket.SHUT_RDWR)

    def watch_socket(self, sock: socket.socket) -> socket.socket:
        """Remember a duplicate of a socket that is about to connect. Returns it: the connection calls ``release`` with it.

        Raises StoppedError if ``interrupt`` was called.
        """
        self.release()  # that of the last connection
        handle = sock.dup()
        with self._lock:
            self._handle, self._duplicated = handle, True
        self.raise_if_stopped()
        return handle

    def replace_duplicate(self, handle: socket.socket, sock: socket.socket) -> socket.socket:
        """Remember the socket itself, and close its duplicate. Called once an answer begins: TLS has taken the socket over by then.

        Whoever closes the socket calls ``release`` before.

        Returns the handle for ``release``: unchanged if the duplicate is no longer remembered.
        """
        with self._lock:
            if self._handle is not handle or not self._duplicated:
                return handle
            self._handle, self._duplicated = sock, False
        handle.close()
        return sock

    def release(self, handle: socket.socket | None = None) -> None:
        """Forget a socket, so that ``interrupt`` does not touch it. Without an argument: the current one. Closes a duplicate.

        Does nothing if another socket is remembered by now.
        """
        with self._lock:
            current, duplicated = self._handle, self._duplicated
            if current is None or (handle is not None and handle is not current):
                return
            self._handle = None
        if duplicated:
            current.close()

    def limit(self, silence_seconds: float, seconds: float) -> None:
        """Set the limits from now on: how long the server may send nothing, and in how many seconds all calls must have ended."""
        self._silence_seconds, self._until = silence_seconds, self._clock.monotonic() + seconds

    def limit_next(self, sock: socket.socket, most: float = math.inf) -> None:
        """Set the timeout of the next call on a socket: within the limits, and at most ``most`` seconds. Raises TooSlowError if no time is left."""
        left = self._until - self._clock.monotonic()
        if left <= 0:
            raise TooSlowError
        sock.settimeout(max(min(self._silence_seconds, most, left), SHORTEST_TIMEOUT_SECONDS))


class _LimitedReader(io.RawIOBase):
    """Reads from a socket. Each read keeps within the limits of the Interrupter. ``raw``: the reader of http.client below it."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, interrupter: Interrupter) -> None:
        self._raw, self._sock, self._interrupter = raw, sock, interrupter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._interrupter.limit_next(self._sock)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """An answer whose header and body are read within the limits of the Interrupter: it puts ``_LimitedReader`` below the buffer of http.client."""

    def __init__(self, sock: socket.socket, *args: Any, interrupter: Interrupter, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_LimitedReader(self.fp.detach(), sock, interrupter))

    def _read_status(self) -> tuple[str, int, str]:
        """The first status line that is final, or 100, which http.client passes over itself. 101 is final (RFC 9110 15.2)."""
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]  # private: typeshed does not know it
            if status not in _INTERIM:
                return version, status, reason
            http.client.parse_headers(self.fp)


class _Interruptible(HTTPConnection):
    """An HTTP connection that tells the Interrupter its phase and its socket.

    It overrides steps of urllib3's connection, which calls them in this order: ``connect`` (with ``_new_conn``) for a new socket, ``request``,
    ``getresponse``, ``close``.
    """

    def __init__(self, *args: Any, interrupter: Interrupter, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.response_class = partial(_Response, interrupter=interrupter)  # type: ignore[assignment]
        self._interrupter = interrupter
        self._handle: socket.socket | None = None  # what the Interrupter remembers of this connection
        self._in_getresponse = False

    def connect(self) -> None:
        self._interrupter.phase = Phase.CONNECT
        super().connect()
        self._interrupter.phase = Phase.REQUEST

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:  # else this call connects first
            self._interrupter.phase = Phase.REQUEST
        super().request(*args, **kwargs)

    def getresponse(self) -> Any:
        """Read the header of the answer. From then on the Interrupter needs no duplicate of the socket."""
        self._in_getresponse = True
        try:
            response = super().getresponse()
        finally:
            self._in_getresponse = False
        if self._handle is not None and self.sock is not None:
            self._handle = self._interrupter.replace_duplicate(self._handle, self.sock)
        self._interrupter.phase = Phase.BODY
        return response

    def close(self) -> None:
        # At an answer with "Connection: close", http.client calls this inside ``getresponse``, before the body is read. The Interrupter keeps
        # the duplicate, so that it can still cut the body. After the body ``ApiClient`` calls ``release``.
        if not self._in_getresponse and self._handle is not None:
            self._interrupter.release(self._handle)
            self._handle = None
        super().close()

    def _new_conn(self) -> socket.socket:
        """Connect to the first address that answers, as urllib3 does, and register each socket with the Interrupter."""
        error: OSError | None = None
        try:
            found = socket.getaddrinfo(self._dns_host.strip("[]"), self.port, 0, socket.SOCK_STREAM)
        except socket.gaierror as unresolved:
            raise NameResolutionError(self.host, self, unresolved) from unresolved
        for family, kind, protocol, _, address in found:
            sock = socket.socket(family, kind, protocol)
            try:
                for option in self.socket_options or ():
                    sock.setsockopt(*option)
                self._interrupter.limit_next(sock, self.timeout if isinstance(self.timeout, float | int) else math.inf)
                self._handle = self._interrupter.watch_socket(sock)
                sock.connect(address)
                self._interrupter.raise_if_stopped()
            except OSError as failed:
                sock.close()
                error = failed
            except StoppedError:
                sock.close()
                raise
            else:
                return sock
        self._interrupter.raise_if_stopped()
        raise NewConnectionError(self, "no connection") from error


class _InterruptibleTls(_Interruptible, HTTPSConnection):
    """The same with TLS. ``on_verified``: see ``ApiServerAdapter``."""

    def __init__(self, *args: Any, on_verified: Callable[[Sequence[bytes]], None], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._on_verified = on_verified

    def connect(self) -> None:
        super().connect()
        if self.is_verified and isinstance(self.sock, ssl.SSLSocket):
            self._on_verified(verified_chain(self.sock))

    def _new_conn(self) -> socket.socket:
        sock = super()._new_conn()
        self._interrupter.phase = Phase.HANDSHAKE
        return sock


def verified_chain(sock: ssl.SSLSocket) -> Sequence[bytes]:
    """The certificates (DER) that were verified: the server's first, the trusted one last. Before Python 3.13: empty."""
    if sys.version_info >= (3, 13):
        return sock.get_verified_chain()
    return ()


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Interruptible


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _InterruptibleTls


class ApiServerAdapter(HTTPAdapter):
    """Sends through interruptible connections, with our own TLS context (None: plain HTTP only).

    Args:
        server_name: sent as SNI and looked for in the server's certificate, in place of the name in the URL.
        on_verified: called after each handshake that verified the server, with its chain (DER, the trusted certificate last).
    """

    def __init__(
        self,
        interrupter: Interrupter,
        context: ssl.SSLContext | None,
        server_name: str | None = None,
        on_verified: Callable[[Sequence[bytes]], None] = lambda _chain: None,
    ) -> None:
        self._interrupter = interrupter
        self._context = context
        # A pool of plain HTTP does not know the name of a certificate.
        self._named = {} if context is None or server_name is None else {"server_hostname": server_name}
        self._on_verified = on_verified
        super().__init__(max_retries=0, pool_connections=1, pool_maxsize=1)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make urllib3's pools with our context and our connections. The base class calls it when it is made."""
        kwargs |= self._named
        super().init_poolmanager(*args, ssl_context=self._context, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {
            "http": partial(_Pool, interrupter=self._interrupter),
            "https": partial(_TlsPool, interrupter=self._interrupter, on_verified=self._on_verified),
        }

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Leave trust to the context: requests would add every public authority to the cluster's own."""


def build_tls_context(*, ca_pem: str | None, insecure_skip_tls_verify: bool, client_pem: str | None) -> ssl.SSLContext:
    """Make the TLS rules for one API server: they trust its own authority if it has one, else the public ones.

    ``client_pem``: certificate and key in one text. Without them, all clients with the same authorities share a context: the public ones
    take 678 KB and 13 ms each.

    Raises:
        ssl.SSLError, OSError: a certificate or key cannot be read.
    """
    if client_pem is None:
        return _shared_context(ca_pem, insecure_skip_tls_verify)
    context = _new_context(ca_pem, insecure_skip_tls_verify)
    # Python's TLS reads only files: this one is private to the user and deleted at once (I8).
    with tempfile.NamedTemporaryFile("w", prefix="kubesync-", suffix=".pem", encoding="ascii") as file:
        file.write(client_pem)
        file.flush()
        context.load_cert_chain(file.name, password=_no_password)
    return context


def _new_context(ca_pem: str | None, insecure_skip_tls_verify: bool) -> ssl.SSLContext:
    """TLS rules without a client certificate. Callers must not change a shared one."""
    context: ssl.SSLContext = create_urllib3_context()
    # Python 3.13 refuses certificates without an Authority Key Identifier, such as those of EKS clusters
    # (kubernetes-client/python #2394). Only this flag is removed: chain, name and expiry are still verified.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca_pem is not None:
        context.load_verify_locations(cadata=ca_pem)
    else:
        context.load_verify_locations(cafile=certifi.where())
    return context


_shared_context: Final = lru_cache(maxsize=1024)(_new_context)


def _no_password() -> str:
    """Refuse encrypted keys: OpenSSL would ask for the password on the terminal."""
    return ""
