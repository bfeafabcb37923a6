"""A server on a real socket that answers DynamoDB requests by a script: also not at all, too late or broken off."""

import json
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON body with DynamoDB's headers; ``headers`` adds to or replaces them."""

    body: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Raw:
    """These bytes and the end of the connection; empty: closed without a word."""

    data: bytes = b""


class Silence:
    """The request is read and never answered; the connection stays open."""


type Step = Answer | Raw | Silence


def refusal(code: str, message: str = "", status: int = 400, **members: object) -> Answer:
    """An error as DynamoDB sends it."""
    kind = "com.amazon.coral.validate" if code == "ValidationException" else "com.amazonaws.dynamodb.v20120810"
    return Answer({"__type": f"{kind}#{code}", "message": message, **members}, status)


@dataclass(frozen=True, slots=True)
class Received:
    """One request: the operation such as ``GetItem``, and its parameters."""

    operation: str
    body: dict[str, Any]


class ScriptedDynamoDB:
    """``with ScriptedDynamoDB(step, ...) as server``: each request gets the next step; too many get a 400.

    Args:
        listening: False: connections are refused until ``listen`` is called.
    """

    def __init__(self, *steps: Step, listening: bool = True) -> None:
        self.received: list[Received] = []
        self._steps = list(steps)
        self._over = threading.Event()
        self._server = _Server(self)
        self._server.server_bind()
        self._thread: threading.Thread | None = None
        if listening:
            self.listen()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def steps_left(self) -> int:
        return len(self._steps)

    def listen(self) -> None:
        if self._thread is None:
            self._server.server_activate()
            self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def next_step(self, request: Received) -> Step:
        self.received.append(request)
        if not self._steps:
            return refusal("ValidationException", "the script is at its end")
        return self._steps.pop(0)

    def wait_until_over(self) -> None:
        self._over.wait(timeout=30)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # server_close waits for them

    def __init__(self, script: ScriptedDynamoDB) -> None:
        self.script = script
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        step = self.server.script.next_step(Received(self.headers["X-Amz-Target"].split(".")[1], body))
        match step:
            case Answer():
                data = json.dumps(step.body).encode()
                headers = {
                    "Content-Type": "application/x-amz-json-1.0",
                    "Content-Length": str(len(data)),
                    "x-amz-crc32": str(zlib.crc32(data)),
                    **step.headers,
                }
                self.send_response(step.status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
            case Raw(data):
                self.wfile.write(data)
            case Silence():
                self.server.script.wait_until_over()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name that http.server gave it
        """No log."""


def operations(received: Sequence[Received]) -> list[str]:
    return [request.operation for request in received]
