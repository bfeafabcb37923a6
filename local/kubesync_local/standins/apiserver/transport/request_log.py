"""All requests that a server saw, so that tests can count them."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_CREDENTIAL_HEADERS = frozenset({"authorization", "cookie"})


@dataclass(slots=True, eq=False)
class RecordedRequest:
    """One request, in the order of arrival. Credentials are not kept, only that they were sent.

    ``verb`` is Kubernetes' (list, watch, get, ...), empty if the path names no resource. ``headers`` have
    lower-case names. ``status`` is 0 until a status line was sent. ``received_monotonic`` is the server's clock.
    """

    number: int
    connection: int
    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    had_authorization: bool
    resource: str
    verb: str
    received_monotonic: float
    user: str = ""
    status: int = 0
    ended: bool = False


@dataclass(slots=True)
class RequestLog:
    """Thread-safe."""

    _changed: threading.Condition = field(default_factory=threading.Condition)
    _requests: list[RecordedRequest] = field(default_factory=list)
    _number: int = 0

    def next_number(self) -> int:
        """The number of the next request, from 1."""
        with self._changed:
            self._number += 1
            return self._number

    def add(self, request: RecordedRequest) -> None:
        """Record a request."""
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()

    def update(self, request: RecordedRequest, *, status: int | None = None, ended: bool = False) -> None:
        """Note how a request was answered."""
        with self._changed:
            request.status = request.status if status is None else status
            request.ended = request.ended or ended
            self._changed.notify_all()

    def all(self, *, resource: str | None = None, verb: str | None = None) -> list[RecordedRequest]:
        """The requests so far, all or those of one resource or verb."""
        with self._changed:
            return [
                request
                for request in self._requests
                if (resource is None or request.resource == resource) and (verb is None or request.verb == verb)
            ]

    def __len__(self) -> int:
        with self._changed:
            return len(self._requests)

    def clear(self) -> None:
        """Forget them; numbers continue."""
        with self._changed:
            self._requests.clear()

    def wait_for(self, condition: Callable[[list[RecordedRequest]], bool], timeout_seconds: float = 120.0) -> None:
        """Block until ``condition`` holds for the requests so far. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(list(self._requests)), timeout_seconds):
                seen = [(r.method, r.path, r.status) for r in self._requests]
                raise TimeoutError(f"requests did not become as expected within {timeout_seconds} s: {seen}")

    def wait_for_count(
        self, count: int, *, resource: str | None = None, verb: str | None = None, timeout_seconds: float = 120.0
    ) -> list[RecordedRequest]:
        """Block until so many such requests have arrived, answered or not; returns them. Raises TimeoutError."""
        self.wait_for(lambda _: len(self.all(resource=resource, verb=verb)) >= count, timeout_seconds)
        return self.all(resource=resource, verb=verb)


def without_credentials(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers with lower-case names, less those that carry credentials."""
    return {name.lower(): value for name, value in headers.items() if name.lower() not in _CREDENTIAL_HEADERS}
