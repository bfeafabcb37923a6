"""A TCP proxy that can stop forwarding without a word, as a load balancer that drops a connection silently."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

_BLOCK_BYTES = 65_536


class SilentProxy:
    """``with SilentProxy(host, port) as proxy:`` forwards to that address until told to swallow.

    ``url`` is where it listens. Connections that were swallowed stay open on the client's side (half-open): nothing is
    forwarded any more, in neither direction, and nobody is told. ``lost_bytes`` counts what was sent on them since.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._swallowed: set[int] = set()
        self._swallow_new = False
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.accepted = 0
        self.lost_bytes = 0

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()
        return f"http://{host}:{port}"

    def swallow(self, *, new_ones: bool = False) -> None:
        """Go silent on all connections that are open; ``new_ones``: also on those that will be, until ``forward``."""
        with self._lock:
            self._swallowed = set(range(self.accepted))
            self._swallow_new = new_ones

    def forward(self) -> None:
        """Forward new connections again; what was swallowed stays lost."""
        with self._lock:
            self._swallow_new = False

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            sockets = list(self._sockets)
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(120)
        for each in sockets:
            each.close()

    def _start(self, run: object, *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments, name="silent proxy", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                number = self.accepted
                self.accepted += 1
                self._sockets.append(client)
                if self._swallow_new:
                    self._swallowed.add(number)
                    continue
            try:
                server = socket.create_connection(self._target, 5)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets.append(server)
            self._start(self._pump, number, client, server)
            self._start(self._pump, number, server, client)

    def _pump(self, number: int, source: socket.socket, target: socket.socket) -> None:
        while True:
            try:
                block = source.recv(_BLOCK_BYTES)
            except OSError:
                return
            with self._lock:
                swallowed = number in self._swallowed
                self.lost_bytes += len(block) if swallowed else 0
            if swallowed and block:
                continue
            if swallowed:
                return
            if not block:
                with contextlib.suppress(OSError):
                    target.shutdown(socket.SHUT_WR)
                return
            try:
                target.sendall(block)
            except OSError:
                return
