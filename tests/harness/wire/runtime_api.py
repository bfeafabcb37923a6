"""Lambda's side of an execution environment: the Runtime API and the Extensions API, for one process of a function.

https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html
"""

import json
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

_NEXT: Final = "/2018-06-01/runtime/invocation/next"
_INVOCATION: Final = "/2018-06-01/runtime/invocation/"
_INIT_ERROR: Final = "/2018-06-01/runtime/init/error"
_REGISTER: Final = "/2020-01-01/extension/register"
_EXTENSION_NEXT: Final = "/2020-01-01/extension/event/next"
_ARN: Final = "arn:aws:lambda:eu-west-1:123456789012:function:"


@dataclass(slots=True)
class Invocation:
    """One invocation; ``answer`` or ``error`` is there once ``done`` is set."""

    id: str
    event: bytes
    deadline_ms: int
    answer: Any = None
    error: dict[str, Any] | None = None
    done: threading.Event = field(default_factory=threading.Event)


class RuntimeApi:
    """``with RuntimeApi("kubesync-test-watch") as api``: serves one process at ``api.address``.

    ``ready`` is set when the init phase is over: the runtime and every registered extension have asked for the next event.
    ``extensions`` maps the name of each registered extension to the events that it wants.
    """

    def __init__(self, function: str) -> None:
        self.function = function
        self.extensions: dict[str, list[str]] = {}
        self.ready = threading.Event()
        self.init_error: dict[str, Any] | None = None
        self._changed = threading.Condition()
        self._queue: deque[Invocation] = deque()
        self._known: dict[str, Invocation] = {}
        self._runtime_asked = False
        self._extensions_asked: set[str] = set()
        self._ending = False
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name="runtime api", daemon=True
        )

    @property
    def address(self) -> str:
        """For AWS_LAMBDA_RUNTIME_API."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def invoke(self, event: object, seconds: float) -> Invocation:
        """Queue an invocation that has so many seconds from now."""
        with self._changed:
            identifier = f"00000000-0000-0000-0000-{len(self._known):012}"
            deadline_ms = int((time.time() + seconds) * 1000)
            made = Invocation(identifier, json.dumps(event).encode(), deadline_ms)
            self._known[identifier] = made
            self._queue.append(made)
            self._changed.notify_all()
        return made

    # --- the function's requests ---

    def next(self) -> Invocation | None:
        with self._changed:
            self._runtime_asked = True
            self._look_whether_ready()
            self._changed.wait_for(lambda: self._queue or self._ending)
            return None if self._ending else self._queue.popleft()

    def finish(self, identifier: str, verb: str, body: bytes) -> None:
        invocation = self._known[identifier]
        if verb == "response":
            invocation.answer = json.loads(body)
        else:
            invocation.error = json.loads(body)
        invocation.done.set()

    def fail_init(self, body: bytes) -> None:
        self.init_error = json.loads(body)
        self.ready.set()

    def register(self, name: str, events: list[str]) -> str | None:
        """The extension's identifier; None: too late, the function has begun."""
        with self._changed:
            if self._runtime_asked:
                return None
            self.extensions[name] = events
            return f"id-of-{name}"

    def extension_next(self, identifier: str) -> None:
        """Blocks for ever: an extension for no events gets none."""
        with self._changed:
            self._extensions_asked.add(identifier)
            self._look_whether_ready()
            self._changed.wait_for(lambda: self._ending)

    def _look_whether_ready(self) -> None:
        if self._runtime_asked and self._extensions_asked == {f"id-of-{name}" for name in self.extensions}:
            self.ready.set()

    # --- life ---

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def headers_of(self, invocation: Invocation) -> dict[str, str]:
        return {
            "Lambda-Runtime-Aws-Request-Id": invocation.id,
            "Lambda-Runtime-Deadline-Ms": str(invocation.deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": _ARN + self.function,
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self, address: tuple[str, int], api: RuntimeApi) -> None:
        self.api = api
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    # HTTP/1.0: each request has a connection of its own, so that no thread is left waiting for another one.
    server: _Server

    def do_GET(self) -> None:
        api = self.server.api
        if self.path == _NEXT:
            invocation = api.next()
            if invocation is not None:
                self._answer(200, invocation.event, api.headers_of(invocation))
        elif self.path == _EXTENSION_NEXT:
            api.extension_next(self.headers["Lambda-Extension-Identifier"])
        else:
            self._answer(404, b"{}")

    def do_POST(self) -> None:
        api = self.server.api
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == _REGISTER:
            identifier = api.register(self.headers["Lambda-Extension-Name"], json.loads(body)["events"])
            if identifier is None:
                self._answer(403, b'{"errorType": "Extension.RegistrationClosed"}')
            else:
                self._answer(200, b"{}", {"Lambda-Extension-Identifier": identifier})
        elif self.path == _INIT_ERROR:
            api.fail_init(body)
            self._answer(202, b"{}")
        elif self.path.startswith(_INVOCATION):
            identifier, _, verb = self.path.removeprefix(_INVOCATION).partition("/")
            api.finish(identifier, verb, body)
            self._answer(202, b"{}")
        else:
            self._answer(404, b"{}")

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """No access log."""
