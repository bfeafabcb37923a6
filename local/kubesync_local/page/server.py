"""The HTTP server of the page: werkzeug's, on a socket of loopback that is bound here, so that errors are ours to say.

Every program of this machine can connect, also without the token. So connections are few and their time is short:

    a connection                                      what becomes of it
    ------------                                      ------------------
    its head is not complete after 10 s               it is closed
    comes while 32 are open, and one has no head yet  the oldest of those is closed, and it takes that place
    comes while 32 are being answered                 it is closed
    sends more than a head                            the rest is not read
    cannot be accepted (no file is left)              the oldest without a head is closed; the server pauses, and tries again
"""

from __future__ import annotations

import errno
import io
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from kubesync.actors.scheduler import Clock
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.errors import KubesyncError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

HOST: Final = "127.0.0.1"
MOST_CONNECTIONS: Final = 32
"""Each has a thread. A browser opens at most six to one server."""
HEAD_SECONDS: Final = 10.0
ACCEPT_PAUSE_SECONDS: Final = 0.2
_SILENT_SECONDS: Final = 30


class PortError(KubesyncError):
    """The port cannot be used. The message says which, and what to do."""


class _Handler(WSGIRequestHandler):
    """One request a connection, so that nothing can be smuggled behind one. No log: addresses hold names, and once the token."""

    protocol_version = "HTTP/1.0"
    timeout = _SILENT_SECONDS

    def parse_request(self) -> bool:
        complete = super().parse_request()
        self.rfile.close()
        self.rfile = io.BytesIO()  # werkzeug would read the rest for as long as somebody sends it
        assert isinstance(self.server, PageServer)
        return self.server.answers(self.connection) and complete  # to the parser, a head that was cut looks complete

    def log(self, _type: str, _message: str, *_arguments: Any) -> None:
        pass

    def version_string(self) -> str:
        return "kubesync"


class PageServer(ThreadedWSGIServer):
    """Answers requests, a few at a time, each in a thread of its own. Close it when ``serve_forever`` has ended."""

    def __init__(self, application: WSGIApplication, sock: socket.socket, clock: Clock) -> None:
        super().__init__(HOST, sock.getsockname()[1], application, _Handler, fd=sock.fileno())
        self._clock = clock
        self._lock = threading.Lock()
        # Open connections, the oldest first: when the head must be there, or None from when it is. Guarded by the lock.
        self._open: dict[socket.socket, float | None] = {}

    def get_request(self) -> tuple[Any, Any]:
        try:
            return super().get_request()
        except OSError:
            with self._lock:
                self._cut_oldest()
            self._clock.sleep(ACCEPT_PAUSE_SECONDS)  # the connection still waits, so the next try follows at once
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._takes(request):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def answers(self, request: socket.socket) -> bool:
        """The head of this connection's request is complete. False: the connection was closed before."""
        with self._lock:
            if request not in self._open:
                return False
            self._open[request] = None
            return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(
            sys.exception(), OSError
        ):  # a connection that broke is no news, and whoever breaks it could fill the terminal
            super().handle_error(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Close what is late. ``serve_forever`` calls it after each connection, and each 0.1 s."""
        now = self._clock.monotonic()
        with self._lock:
            late = [each for each, until in self._open.items() if until is not None and until <= now]
            for each in late:
                self._cut(each)

    def _takes(self, request: socket.socket) -> bool:
        with self._lock:
            if len(self._open) >= MOST_CONNECTIONS and not self._cut_oldest():
                return False
            self._open[request] = self._clock.monotonic() + HEAD_SECONDS
            return True

    def _cut_oldest(self) -> bool:
        """End the oldest connection without a head. False: there is none."""
        oldest = next((each for each, until in self._open.items() if until is not None), None)
        if oldest is not None:
            self._cut(oldest)
        return oldest is not None

    def _cut(self, request: socket.socket) -> None:
        """End a connection that another thread reads from. That thread closes it."""
        self._open.pop(request, None)
        with suppress(OSError):  # it has ended in this moment
            request.shutdown(socket.SHUT_RDWR)


@contextmanager
def listening(port: int) -> Iterator[socket.socket]:
    """A socket that listens on loopback; port 0: any free one.

    Raises:
        PortError: it cannot be used.
    """
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, port))
            made.listen(64)
        except OSError as error:
            why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
            raise PortError(f"port {port} on {HOST} {why}: choose another with --port (0: any free port)") from None
        yield made


@contextmanager
def serving(application: WSGIApplication, sock: socket.socket, clock: Clock | None = None) -> Iterator[None]:
    """Answer requests in threads of their own until the block ends."""
    server = PageServer(application, sock, clock or ThreadScheduler())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="page", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
