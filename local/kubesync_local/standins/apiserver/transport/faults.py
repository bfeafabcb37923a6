"""Faults on demand: what a server, a load balancer or a network does to a request, injected per request."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kubesync_local.standins.apiserver.objects.status import status_body
from kubesync_local.standins.apiserver.objects.wire import error_line, go_json
from kubesync_local.standins.apiserver.transport.request_log import RecordedRequest


class EndOfStreamError(Exception):
    """Ends a response cleanly, but early."""


class BrokenConnectionError(Exception):
    """Breaks the connection; ``reset`` sends RST rather than FIN."""

    def __init__(self, *, reset: bool = False) -> None:
        super().__init__("reset" if reset else "closed")
        self.reset = reset


class Answering(Protocol):
    """What a fault can do to the answer of one request."""

    def send_whole(self, code: int, headers: dict[str, str], body: bytes) -> None:
        """Send a whole answer."""

    def send(self, line: bytes) -> None:
        """Send one chunk of a stream."""

    def hang(self, seconds: float | None = None) -> None:
        """Send nothing for so long, or until the client leaves or the server drops the connection."""

    def cut_next_chunk(self, *, reset: bool) -> None:
        """Break the connection in the middle of the next chunk."""

    def pace(self, bytes_at_once: int, seconds_between: float) -> None:
        """Send the rest slowly."""


class Fault:
    """A fault. Each hook does nothing unless a subclass overrides it."""

    def answer(self, answering: Answering) -> bool:  # noqa: ARG002
        """Called before anything is sent; True: the request is answered."""
        return False

    def shape_body(self, body: bytes) -> bytes:
        """Changes the body of a list."""
        return body

    def after_events(self, sent: int, answering: Answering) -> None:
        """Called after the headers of a watch (``sent`` 0) and after each of its lines."""


@dataclass(frozen=True, slots=True)
class Answer(Fault):
    """Status ``code`` with a Status body (or ``body`` verbatim) and, in seconds, Retry-After."""

    code: int
    reason: str = "InternalError"
    message: str = "fault injected"
    retry_after: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"

    def answer(self, answering: Answering) -> bool:
        headers = {"Content-Type": self.content_type, **self.headers}
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        body = go_json(status_body(self.code, self.reason, self.message)) + b"\n" if self.body is None else self.body
        answering.send_whole(self.code, headers, body)
        return True


def redirect(location: str, code: int = 302) -> Answer:
    """A redirect to another server; a client must not follow it with its token."""
    return Answer(code, headers={"Location": location}, body=b"", content_type="text/plain")


def garbage(body: bytes = b"<html><body>Bad Gateway</body></html>", content_type: str = "text/html") -> Answer:
    """Status 200 with a body that no API server sends."""
    return Answer(200, body=body, content_type=content_type)


@dataclass(frozen=True, slots=True)
class Close(Fault):
    """The connection is closed, or reset, without an answer."""

    reset: bool = False

    def answer(self, answering: Answering) -> bool:  # noqa: ARG002
        raise BrokenConnectionError(reset=self.reset)


@dataclass(frozen=True, slots=True)
class Silent(Fault):
    """Nothing more is sent, from the request on, or (``events`` given) after the headers and so many lines."""

    events: int | None = None
    seconds: float | None = None

    def answer(self, answering: Answering) -> bool:
        if self.events is None:
            answering.hang(self.seconds)
            raise BrokenConnectionError
        return False

    def after_events(self, sent: int, answering: Answering) -> None:
        if sent == self.events:
            answering.hang(self.seconds)
            raise BrokenConnectionError


@dataclass(frozen=True, slots=True)
class Delay(Fault):
    """The answer comes ``seconds`` late."""

    seconds: float

    def answer(self, answering: Answering) -> bool:
        answering.hang(self.seconds)
        return False


@dataclass(frozen=True, slots=True)
class CutMidChunk(Fault):
    """The connection breaks in the middle of the line that follows ``events`` lines; of a list, in its body."""

    events: int = 0
    reset: bool = False

    def answer(self, answering: Answering) -> bool:
        if self.events == 0:
            answering.cut_next_chunk(reset=self.reset)
        return False

    def after_events(self, sent: int, answering: Answering) -> None:
        if sent == self.events:
            answering.cut_next_chunk(reset=self.reset)


@dataclass(frozen=True, slots=True)
class EndEarly(Fault):
    """The stream ends cleanly after ``events`` lines."""

    events: int = 0

    def after_events(self, sent: int, answering: Answering) -> None:  # noqa: ARG002
        if sent == self.events:
            raise EndOfStreamError


@dataclass(frozen=True, slots=True)
class SlowBytes(Fault):
    """The answer comes in small pieces."""

    bytes_at_once: int = 1
    seconds_between: float = 0.0

    def answer(self, answering: Answering) -> bool:
        answering.pace(self.bytes_at_once, self.seconds_between)
        return False


@dataclass(frozen=True, slots=True)
class ErrorEvent(Fault):
    """An ERROR event with a Status after ``events`` lines; then the stream ends."""

    code: int = 410
    reason: str = "Expired"
    message: str = "too old resource version: 1 (2)"
    events: int = 0

    def after_events(self, sent: int, answering: Answering) -> None:
        if sent == self.events:
            answering.send(error_line(status_body(self.code, self.reason, self.message)))
            raise EndOfStreamError


@dataclass(frozen=True, slots=True)
class RawLine(Fault):
    """A foreign line after ``events`` lines of a watch; then the stream goes on."""

    line: bytes
    events: int = 0

    def after_events(self, sent: int, answering: Answering) -> None:
        if sent == self.events:
            answering.send(self.line)


@dataclass(frozen=True, slots=True)
class TruncatedList(Fault):
    """The body ends early, though its framing says that it is whole."""

    keep: float = 0.5

    def shape_body(self, body: bytes) -> bytes:
        return body[: int(len(body) * self.keep)]


@dataclass(frozen=True, slots=True)
class EmptyList(Fault):
    """A well-formed list without items, at the version of the real one."""

    def shape_body(self, body: bytes) -> bytes:
        value = json.loads(body)
        value["items"] = []
        for absent in ("continue", "remainingItemCount"):
            value["metadata"].pop(absent, None)
        return go_json(value) + b"\n"


@dataclass(slots=True, eq=False)
class FaultRule:
    """When a fault strikes: from the ``nth`` matching request on, ``times`` times (None: always)."""

    fault: Fault
    resource: str | None = None
    verb: str | None = None
    nth: int = 1
    times: int | None = 1
    where: Callable[[RecordedRequest], bool] | None = None
    seen: int = 0
    hits: int = 0

    def matches(self, request: RecordedRequest) -> bool:
        """Whether it matches this request, without the counts."""
        if self.resource is not None and request.resource != self.resource:
            return False
        if self.verb is not None and request.verb != self.verb:
            return False
        return self.where is None or self.where(request)


class FaultPlan:
    """The rules of a server. Thread-safe. The first rule that strikes wins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[FaultRule] = []

    def add(
        self,
        fault: Fault,
        *,
        resource: str | None = None,
        verb: str | None = None,
        nth: int = 1,
        times: int | None = 1,
        where: Callable[[RecordedRequest], bool] | None = None,
    ) -> FaultRule:
        """Let ``fault`` strike ``times`` requests, from the ``nth`` on that match.

        Args:
            fault: what happens.
            resource: plural name; None: any.
            verb: ``list``, ``watch``, ``get``, ``create``, ``update``, ``patch`` or ``delete``; None: any.
            nth: the first matching request that is struck, counted from 1 and from now.
            times: how many are struck; None: all that follow.
            where: a further condition.
        """
        rule = FaultRule(fault, resource, verb, nth, times, where)
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """No more faults for requests that have not begun."""
        with self._lock:
            self._rules.clear()

    def take(self, request: RecordedRequest) -> Fault:
        """The fault for this request, counted; without a matching rule one that does nothing."""
        with self._lock:
            for rule in self._rules:
                if not rule.matches(request):
                    continue
                rule.seen += 1
                if rule.seen >= rule.nth and (rule.times is None or rule.hits < rule.times):
                    rule.hits += 1
                    return rule.fault
        return Fault()
