"""An HTTP proxy in front of DynamoDB that can hold a chosen request for ever: before it is passed on, or after."""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

PATIENCE_SECONDS = 60.0

type Wanted = Callable[[dict[str, Any]], bool]


class HoldingProxy:
    """``with HoldingProxy(url) as proxy``: serves at ``proxy.url``. Held requests end with their connection."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream).netloc
        self._wanted: Wanted | None = None
        self._after = False
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self.held = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="proxy", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def hold(self, wanted: Wanted, *, after: bool) -> None:
        """Hold the next transaction that fits; ``after``: pass it on, and keep the answer back."""
        with self._lock:
            self._wanted, self._after = wanted, after

    def handle(self, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes] | None:
        """One request; None: it is held until the end."""
        held = self._is_wanted(headers, body)
        if held and not self._after:
            self._hold()
            return None
        connection = http.client.HTTPConnection(self._upstream, timeout=PATIENCE_SECONDS)
        try:
            connection.request("POST", "/", body, headers)
            response = connection.getresponse()
            answer = response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()
        if not held:
            return answer
        self._hold()
        return None

    def _is_wanted(self, headers: dict[str, str], body: bytes) -> bool:
        if not headers.get("X-Amz-Target", "").endswith(".TransactWriteItems"):
            return False
        with self._lock:
            if self._wanted is None or not self._wanted(json.loads(body)):
                return False
            self._wanted = None
            return True

    def _hold(self) -> None:
        self.held.set()
        self._ending.wait(PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._server.shutdown()
        self._thread.join()
        self._server.close_connections()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # joined by server_close

    def __init__(self, address: tuple[str, int], owner: HoldingProxy) -> None:
        super().__init__(address, _Handler)
        self.owner = owner
        self.open: set[socket.socket] = set()

    def close_connections(self) -> None:
        for each in list(self.open):
            with contextlib.suppress(OSError):  # its client was faster
                each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """The client was killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.open.add(self.connection)

    def finish(self) -> None:
        self.server.open.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.server.owner.handle(dict(self.headers.items()), body)
        if answer is None:
            self.close_connection = True
            return
        status, headers, content = answer
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("connection", "content-length", "date", "server", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """No access log."""
