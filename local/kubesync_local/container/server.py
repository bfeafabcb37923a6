"""Answers probes and Prometheus: ``/healthz`` and ``/metrics``."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from kubesync.domain.errors import UsageError

# A client that says nothing for so long is let go.
_SILENT_SECONDS: Final = 10.0
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

type Page = Callable[[], tuple[HTTPStatus, str, bytes]]
"""Status, content type and body."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _SILENT_SECONDS

    def __init__(self, pages: Mapping[str, Page], *rest: Any) -> None:
        self._pages = pages
        super().__init__(*rest)

    def do_GET(self) -> None:
        """Called by the server."""
        page = self._pages.get(self.path.partition("?")[0])
        status, kind, body = (HTTPStatus.NOT_FOUND, "text/plain", b"not found\n") if page is None else page()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Nothing: a probe comes every few seconds."""

    def version_string(self) -> str:
        return "kubesync"


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_arguments: object) -> None:
        """Nothing: a connection that broke is no news."""


@contextmanager
def answering(address: tuple[str, int], pages: Mapping[str, Page]) -> Iterator[int]:
    """Answer until the block ends. Yields the port.

    Raises:
        UsageError: the address cannot be used.
    """
    try:
        server = _Server(address, partial(_Handler, pages))
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot listen on {address[0]}:{address[1]}: {why}: choose another --listen") from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="listen", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
