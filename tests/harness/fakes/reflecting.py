"""A reflector at work against a scripted server, and everything its sink was told."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.fakes.manual_clock import ManualClock
from harness.fakes.wide_room import unlimited_reservation
from harness.wire.scripted_server import GENEROUS_SECONDS, Answer, ScriptedServer, answer
from kubesync.actors.scheduler import Event, Scheduler
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.errors import ListenerError
from kubesync.domain.objects import RawEvent, Resource, Snapshot
from kubesync.domain.sources.scope import Scope
from kubesync.kubernetes.list_room import ListReservation
from kubesync.kubernetes.lister import KubernetesLister
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.reflector import KubernetesReflector
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess

POLICY = ReflectorPolicy(connect_timeout=GENEROUS_SECONDS, read_timeout=GENEROUS_SECONDS)


def a_service(name: str, version: int, note: str = "") -> dict[str, object]:
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": metadata | ({"annotations": {"note": note}} if note else {}),
        "spec": {"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80}]},
    }


def event(kind: str, name: str, version: int) -> str:
    return json.dumps({"type": kind, "object": a_service(name, version)}, separators=(",", ":"))


def bookmark(version: int) -> str:
    metadata = {"resourceVersion": str(version)}
    return json.dumps({"type": "BOOKMARK", "object": {"kind": "Service", "apiVersion": "v1", "metadata": metadata}})


def error_event(code: int, reason: str = "", **details: object) -> str:
    status = {"kind": "Status", "status": "Failure", "message": "said so", "reason": reason, "code": code}
    return json.dumps({"type": "ERROR", "object": {**status, "details": details}})


def list_answer(
    version: int, *names: str, token: str = "", remaining: object = None, note: str = "", compress: bool = False
) -> Answer:
    """``remaining``: how many items the server says are left. ``note``: an annotation of each item."""
    items = [a_service(name, version, note) for name in names]
    metadata: dict[str, object] = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    return answer({"kind": "ServiceList", "metadata": metadata, "items": items}, compress=compress)


@dataclass
class RecordingSink:
    """Implements WatchSink; ``told`` holds one short tuple per call, less those about pages."""

    told: list[tuple[object, ...]] = field(default_factory=list)
    errors: list[ListenerError] = field(default_factory=list)
    pages: list[tuple[int, int | None]] = field(default_factory=list)
    on_told: Callable[[], object] = lambda: None
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def on_events(self, events: Sequence[RawEvent]) -> None:
        for event in events:
            self._tell("event", event.type, event.name, event.resource_version)

    def on_bookmark(self, resource_version: int) -> None:
        self._tell("bookmark", resource_version)

    def on_page(self, items: int, left: int | None) -> None:
        self.pages.append((items, left))

    def on_snapshot(self, snapshot: Snapshot) -> None:
        names = [item.name for item in snapshot.items]
        self._tell("snapshot", snapshot.resource_version, names, *(["went back"] if snapshot.store_went_back else []))

    def on_resumed(self) -> None:
        self._tell("resumed")

    def on_stale(self) -> None:
        self._tell("stale")

    def on_error(self, error: ListenerError, *, consecutive: int) -> None:
        self.errors.append(error)
        self._tell("error", int(error.code), consecutive)

    def wait_until_told(self, call: tuple[object, ...], times: int = 1) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.told.count(call) >= times, GENEROUS_SECONDS), self.told

    def _tell(self, *call: object) -> None:
        with self._changed:
            self.told.append(call)
            self._changed.notify_all()
        self.on_told()


@dataclass
class Reflecting:
    server: ScriptedServer
    sink: RecordingSink
    reflector: KubernetesReflector
    thread: threading.Thread
    waited: list[float]

    @property
    def asked(self) -> list[str]:
        """What was asked of the server: ``list``, ``list limit=1``, ``list from TOKEN`` or ``watch VERSION``."""
        return [_describe(request.params) for request in self.server.requests]

    def stop(self) -> None:
        """Stop it. The server gives up later than this does: what ends is ended by the reflector itself."""
        self.reflector.stop()
        self.thread.join(GENEROUS_SECONDS / 2)
        assert not self.thread.is_alive()


class RecordedPauses(ThreadScheduler):
    """A scheduler whose pauses are recorded, and take no time: they move the clock if it is a ManualClock."""

    def __init__(self, clock: Scheduler, jitter: float = 0.0) -> None:
        self.waited: list[float] = []
        self._clock = clock
        self._jitter = jitter

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def random(self) -> float:
        return self._jitter

    def event(self) -> Event:
        return _Pauses(self)

    def pause(self, seconds: float) -> None:
        self.waited.append(seconds)
        if isinstance(self._clock, ManualClock):
            self._clock.advance(seconds)


class _Pauses(threading.Event):
    def __init__(self, scheduler: RecordedPauses) -> None:
        super().__init__()
        self._scheduler = scheduler

    def wait(self, timeout: float | None = None) -> bool:
        self._scheduler.pause(timeout or 0.0)
        return self.is_set()


def a_reflector(api: ApiClient, clock: Scheduler, reservation: ListReservation | None = None) -> KubernetesReflector:
    """A reflector of services. Its lists need not wait for room, without a ``reservation``."""
    room = reservation or unlimited_reservation(clock)
    return KubernetesReflector(KubernetesLister(api, Resource.SERVICES, Scope(), room, clock), clock)


@contextmanager
def reflecting(
    script: Sequence[Answer],
    *,
    resume_from: int | None = None,
    policy: ReflectorPolicy = POLICY,
    clock: Scheduler | None = None,
    deadline_seconds: float = 800.0,
    jitter: float = 0.0,
    reservation: ListReservation | None = None,
    sink: RecordingSink | None = None,
) -> Iterator[Reflecting]:
    """Run a reflector of services; its waits are recorded and take no time, but move a ManualClock."""
    clock = clock or ManualClock()
    pauses = RecordedPauses(clock, jitter)
    with ScriptedServer(script) as server:
        api = ApiClient(ClusterAccess(server.url, policy=policy), clock)
        sink = sink or RecordingSink()
        reflector = a_reflector(api, pauses, reservation or unlimited_reservation(clock))
        deadline = clock.monotonic() + deadline_seconds
        thread = threading.Thread(target=reflector.run, args=(sink, resume_from, deadline), name="reflector")
        thread.start()
        running = Reflecting(server, sink, reflector, thread, pauses.waited)
        try:
            yield running
        finally:
            running.stop()


def _describe(params: object) -> str:
    assert isinstance(params, dict)
    if "watch" in params:
        return f"watch {params['resourceVersion']}"
    if "continue" in params:
        return f"list from {params['continue']}"
    if params.get("limit") == "500":
        return "list"
    return f"list limit={params['limit']}" if "limit" in params else "list in one piece"
