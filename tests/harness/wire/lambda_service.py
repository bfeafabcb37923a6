"""Lambda's Invoke: each function is a handler of ``functions/``, called in this process in the environment at hand."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from harness.wire.lambda_functions import FakeContext

type Handler = Callable[[Any, FakeContext], Any]
_PREFIX: Final = "/2015-03-31/functions/"


@contextmanager
def a_lambda_service(functions: Mapping[str, Handler]) -> Iterator[str]:
    """Serve these functions, by name. Yields the address. An unknown one is answered as Lambda does."""

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            handler = functions.get(self.path.removeprefix(_PREFIX).removesuffix("/invocations"))
            if handler is None:
                self._answer(
                    404, {"Message": "Function not found"}, **{"x-amzn-ErrorType": "ResourceNotFoundException"}
                )
                return
            try:
                self._answer(200, handler(event, FakeContext()))
            except Exception as error:  # noqa: BLE001  # as Lambda does
                failure = {"errorMessage": str(error), "errorType": type(error).__name__}
                self._answer(200, failure, **{"X-Amz-Function-Error": "Unhandled"})

        def _answer(self, status: int, document: object, **headers: str) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
