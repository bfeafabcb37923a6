"""The HTTP server of the page: werkzeug's, on a socket of loopback that is bound here, so that errors are ours to say."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

from werkzeug.serving import WSGIRequestHandler, make_server

from kubesync.domain.errors import KubesyncError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

HOST: Final = "127.0.0.1"
_SILENT_SECONDS: Final = 30


class PortError(KubesyncError):
    """The port cannot be used. The message says which, and what to do."""


class _Handler(WSGIRequestHandler):
    """One request a connection, so that nothing can be smuggled behind one. No log: addresses hold names, and once the token."""

    protocol_version = "HTTP/1.0"
    timeout = _SILENT_SECONDS

    def log(self, _type: str, _message: str, *_arguments: Any) -> None:
        pass

    def version_string(self) -> str:
        return "kubesync"


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
def serving(application: WSGIApplication, sock: socket.socket) -> Iterator[None]:
    """Answer requests in threads of their own until the block ends."""
    port = sock.getsockname()[1]
    server = make_server(HOST, port, application, threaded=True, request_handler=_Handler, fd=sock.fileno())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="page", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
