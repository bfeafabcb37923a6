"""An HTTP server that does exactly what a test says, down to the bytes and the moment a connection is cut.

A script is a list of answers, one per request in the order they come; a request past its end finds the server closed.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

GENEROUS_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came."""

    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]


class Connection:
    """The server's side of one exchange, for an answer to play on."""

    def __init__(self, sock: socket.socket, server: ScriptedServer) -> None:
        self._sock = sock
        self.server = server

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def head(self, status: int = 200, reason: str = "OK", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} {reason}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode())

    def stream_head(self) -> None:
        self.head(Content_Type="application/json", Transfer_Encoding="chunked")

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        self.send(b"0\r\n\r\n")

    def reset(self) -> None:
        """Cut the connection so that the client sees a reset."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.cut()

    def cut(self) -> None:
        raise _CutError

    def wait_for_client_to_close(self) -> None:
        """Hold the connection open, silent, until the client lets go of it."""
        self._sock.settimeout(GENEROUS_SECONDS)
        with contextlib.suppress(OSError):
            while self._sock.recv(65536):
                pass
        raise _CutError


class _CutError(Exception):
    pass


Answer = Callable[[Connection], None]


def answer(
    body: bytes | str | Mapping[str, object], status: int = 200, *, compress: bool = False, **headers: str
) -> Answer:
    """A complete answer with a Content-Length."""
    if isinstance(body, Mapping):
        body = json.dumps(body)
    data = body.encode() if isinstance(body, str) else body
    if compress:
        data, headers = gzip.compress(data), {"Content_Encoding": "gzip", **headers}

    def play(connection: Connection) -> None:
        connection.head(status, "Scripted", Content_Type="application/json", Content_Length=str(len(data)), **headers)
        connection.send(data)

    return play


def status_answer(code: int, message: str, reason: str = "", **headers: str) -> Answer:
    """A refusal with a Status, as API servers send it."""
    body = {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code}
    return answer(body, code, compress=False, **headers)


def watch_answer(*lines: bytes | str, then: Answer | None = None) -> Answer:
    """A watch: one chunk per line, then a clean end, or what ``then`` plays."""

    def play(connection: Connection) -> None:
        connection.stream_head()
        for line in lines:
            connection.chunk((line.encode() if isinstance(line, str) else line).rstrip(b"\n") + b"\n")
        if then is None:
            connection.end()
        else:
            then(connection)

    return play


def silence(connection: Connection) -> None:
    """Say nothing until the client goes away."""
    connection.wait_for_client_to_close()


def reset(connection: Connection) -> None:
    connection.reset()


def cut(connection: Connection) -> None:
    connection.cut()


@dataclass
class ScriptedServer:
    """Listens on 127.0.0.1; ``with`` ends it and all its threads.

    Args:
        script: the answers.
        tls: a server context for https.
        on_accept: plays on the bare socket of each connection instead of speaking HTTP.
    """

    script: Sequence[Answer] = ()
    tls: ssl.SSLContext | None = None
    on_accept: Callable[[socket.socket], None] | None = None
    requests: list[Received] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._closing = False
        self._acceptor = threading.Thread(target=self._accept, name="scripted-server")
        self._acceptor.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._closing = True
            still_open = list(self._open)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in still_open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in [self._acceptor, *self._threads]:
            thread.join(GENEROUS_SECONDS)
            assert not thread.is_alive(), "a thread of the scripted server does not end"

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def wait_for_requests(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= count, GENEROUS_SECONDS), self.requests

    def wait_for_connections(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.connections >= count, GENEROUS_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._changed:
                if self._closing:
                    sock.close()
                    return
                self._open.add(sock)
                self.connections += 1
                self._changed.notify_all()
            thread = threading.Thread(target=self._serve, args=(sock,), name="scripted-connection")
            self._threads.append(thread)
            thread.start()

    def _serve(self, bare: socket.socket) -> None:
        sock = bare
        try:
            sock.settimeout(GENEROUS_SECONDS)
            if self.on_accept is not None:
                self.on_accept(sock)
                return
            if self.tls is not None:
                sock = self.tls.wrap_socket(bare, server_side=True)
                with self._changed:
                    self._open.discard(bare)
                    self._open.add(sock)
            with sock.makefile("rb") as reader:
                for received in _requests(reader):
                    with self._changed:
                        index = len(self.requests)
                        self.requests.append(received)
                        self._changed.notify_all()
                    if index >= len(self.script):
                        return
                    self.script[index](Connection(sock, self))
        except (OSError, _CutError):
            pass
        finally:
            with self._changed:
                self._open.discard(bare)
                self._open.discard(sock)
            sock.close()


def _requests(reader: Iterator[bytes]) -> Iterator[Received]:
    for request_line in reader:
        target = urlsplit(request_line.decode().split(" ")[1])
        headers: dict[str, str] = {}
        for line in reader:
            if line in (b"\r\n", b"\n"):
                break
            name, _, value = line.decode().partition(":")
            headers[name.strip().lower()] = value.strip()
        yield Received(target.path, dict(parse_qsl(target.query, keep_blank_values=True)), headers)
