"""One HTTP/1.1 connection: reads requests, sends whole or chunked answers, and breaks when a fault says so."""

import contextlib
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import parse_headers
from io import BufferedReader
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from kubesync_local.standins.apiserver.transport.faults import BrokenConnectionError

# Go's net/http sends a Content-Length for bodies that fit its buffer, and chunks longer ones.
_WHOLE_ANSWER_BYTES: Final = 2048
_MAX_REQUEST_LINE: Final = 65536
_MAX_BODY: Final = 16 * 1024 * 1024
# How often an idle connection checks whether it should go on, in seconds.
_POLL_SECONDS: Final = 0.05
_REASONS: Final = {
    200: "OK", 201: "Created", 301: "Moved Permanently", 302: "Found", 307: "Temporary Redirect", 308: "Permanent Redirect",
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    409: "Conflict", 410: "Gone", 415: "Unsupported Media Type", 422: "Unprocessable Entity", 429: "Too Many Requests",
    500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
}  # fmt: skip


class MalformedRequestError(Exception):
    """The bytes are not an HTTP request."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; ``headers`` have lower-case names, ``params`` the last value of each name."""

    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: bytes
    keep_alive: bool
    chunked_answers: bool


class Connection:
    """Owned by one thread; only ``drop`` may be called from others."""

    def __init__(self, sock: socket.socket, number: int, reader: BufferedReader) -> None:
        self.number = number
        self._socket = sock
        self._reader = reader
        self._dropped = threading.Event()
        self._bytes_at_once = 0
        self._seconds_between = 0.0
        self._cut: bool | None = None
        self._chunked = False

    # -- requests ------------------------------------------------------------------------------------------------

    def read_request(self) -> HttpRequest | None:
        """The next request; None when the client is done. Raises MalformedRequestError, OSError."""
        line = self._reader.readline(_MAX_REQUEST_LINE + 1)
        if not line.strip():
            return None
        try:
            method, target, version = line.decode("latin-1").split()
        except ValueError as error:
            raise MalformedRequestError("request line") from error
        if not version.startswith("HTTP/1."):
            raise MalformedRequestError("protocol version")
        headers = {name.lower(): value for name, value in parse_headers(self._reader).items()}
        parts = urlsplit(target)
        modern = version != "HTTP/1.0"
        wish = headers.get("connection", "").lower()
        return HttpRequest(
            method=method,
            path=parts.path,
            params=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers=headers,
            body=self._read_body(headers),
            keep_alive=modern and wish != "close",
            chunked_answers=modern,
        )

    def _read_body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = bytearray()
            while size := int(self._reader.readline(64).split(b";")[0] or b"0", 16):
                body += self._reader.read(size)
                self._reader.readline(8)
            while self._reader.readline(_MAX_REQUEST_LINE).strip():
                pass
            return bytes(body)
        try:
            length = int(headers.get("content-length", "0"))
        except ValueError as error:
            raise MalformedRequestError("Content-Length") from error
        if not 0 <= length <= _MAX_BODY:
            raise MalformedRequestError("Content-Length")
        return self._reader.read(length)

    # -- answers -------------------------------------------------------------------------------------------------

    def send_whole(self, code: int, headers: dict[str, str], body: bytes, request: HttpRequest) -> None:
        """Send an answer with a known body: with Content-Length, or chunked if Go would chunk it."""
        if len(body) > _WHOLE_ANSWER_BYTES and request.chunked_answers:
            self.begin_stream(code, headers, request)
            self.send_chunk(body)
            self.end_stream()
            return
        head = self._head(code, {**headers, "Content-Length": str(len(body))})
        if self._cut is not None:
            self._write(head + body[: len(body) // 2])
            raise BrokenConnectionError(reset=self._cut)
        self._write(head + body)

    def begin_stream(self, code: int, headers: dict[str, str], request: HttpRequest) -> None:
        """Send status and headers of a body of unknown length."""
        self._chunked = request.chunked_answers
        self._write(self._head(code, {**headers, **({"Transfer-Encoding": "chunked"} if self._chunked else {})}))

    def send_chunk(self, data: bytes) -> None:
        """Send one chunk. Raises BrokenConnectionError if it must break in the middle, OSError if the client has gone."""
        if self._cut is not None:
            self._write((b"%x\r\n" % len(data) if self._chunked else b"") + data[: len(data) // 2])
            raise BrokenConnectionError(reset=self._cut)
        self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end_stream(self) -> None:
        """End a chunked body cleanly."""
        if self._chunked:
            self._write(b"0\r\n\r\n")

    def cut_next_chunk(self, *, reset: bool) -> None:
        """Break the connection in the middle of what is sent next."""
        self._cut = reset

    def pace(self, bytes_at_once: int, seconds_between: float) -> None:
        """From now on send in pieces of so many bytes; 0: whole."""
        self._bytes_at_once, self._seconds_between = bytes_at_once, seconds_between

    def hang(self, seconds: float | None = None) -> None:
        """Send nothing for so long. Raises BrokenConnectionError when the client left or the connection was dropped."""
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            if self._dropped.wait(_POLL_SECONDS if until is None else min(_POLL_SECONDS, until - time.monotonic())):
                raise BrokenConnectionError
            if not self.alive():
                raise BrokenConnectionError

    def alive(self) -> bool:
        """Whether the client is still connected, as far as is known without waiting."""
        if self._dropped.is_set():
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | select.POLLHUP | select.POLLERR)
        if not poll.poll(0):
            return True
        # Readable during an answer: the client's end, or in TLS a message of the protocol.
        self._socket.settimeout(0.0)
        try:
            if isinstance(self._socket, ssl.SSLSocket):
                return bool(self._socket.recv(1))
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except (ssl.SSLWantReadError, BlockingIOError):
            return True
        except OSError:
            return False
        finally:
            with contextlib.suppress(OSError):
                self._socket.settimeout(None)

    def _head(self, code: int, headers: dict[str, str]) -> bytes:
        lines = [f"HTTP/1.1 {code} {_REASONS.get(code, 'Unknown')}"]
        late = ("Date", "Content-Length", "Transfer-Encoding")  # Go writes the others sorted, then these.
        names = sorted(name for name in headers if name not in late) + [name for name in late if name in headers]
        lines += [f"{name}: {headers[name]}" for name in names]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def _write(self, data: bytes) -> None:
        if self._dropped.is_set():  # Nothing may look like a clean end between the mark and the shutdown.
            raise BrokenConnectionError
        if not self._bytes_at_once:
            self._socket.sendall(data)
            return
        for start in range(0, len(data), self._bytes_at_once):
            self._socket.sendall(data[start : start + self._bytes_at_once])
            if self._seconds_between and self._dropped.wait(self._seconds_between):
                raise BrokenConnectionError

    # -- the end -------------------------------------------------------------------------------------------------

    def drop(self) -> None:
        """Break the connection from another thread; its own thread ends soon after."""
        self._dropped.set()
        with contextlib.suppress(OSError):
            # The plain method also on TLS: SSLSocket's own would switch off encryption while the other thread uses it.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self, *, reset: bool = False) -> None:
        """Close the connection; call it from its own thread."""
        with contextlib.suppress(OSError):
            if reset:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                # A reader may still hold the file descriptor; the client must not wait for it.
                socket.socket.shutdown(self._socket, socket.SHUT_WR)
        with contextlib.suppress(OSError):
            self._reader.close()
        with contextlib.suppress(OSError):
            self._socket.close()


def accept_connection(
    sock: socket.socket,
    number: int,
    tls: ssl.SSLContext | None,
    handshake_seconds: float,
    track: Callable[[Connection], None],
) -> Connection:
    """Make a connection of an accepted socket, with its TLS handshake. Raises OSError (also ssl.SSLError)."""
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            sock.settimeout(handshake_seconds)
            sock = tls.wrap_socket(sock, server_side=True)
            sock.settimeout(None)
        connection = Connection(sock, number, sock.makefile("rb"))
    except BaseException:
        sock.close()
        raise
    track(connection)
    return connection
