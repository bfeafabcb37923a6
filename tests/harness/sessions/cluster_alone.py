"""One cluster's actor without a session: the test steps it, sends it messages, and sees what it says, writes and asks of the cluster."""

import threading
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from harness.cluster_tables import cluster_tables
from harness.fakes.fencing import raise_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.fakes.store_faults import StoreFaults
from harness.seen.builders import a_config
from kubesync.actors.scheduler import Thread
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.cluster.actor import ClusterActor
from kubesync.cluster.ports import ClusterPorts, Configured
from kubesync.domain.objects import Resource
from kubesync.kubernetes.list_room import ListRoom
from kubesync.kubernetes.ports import WatchSink
from kubesync.messages import Configure, Listen

_EPOCH: Final = 1


class _AtOnce:
    """A thread whose work is done when it starts."""

    def __init__(self, run: Callable[[], object]) -> None:
        self._run = run

    def start(self) -> None:
        self._run()

    def is_alive(self) -> bool:
        return False

    def join(self, timeout: float | None = None) -> None: ...


class _Clock(ManualClock):
    def thread(self, name: str, run: Callable[[], object]) -> Thread:
        return _AtOnce(run)


class _Reflector:
    """Implements ``Reflector``: the test has its sink, and says what arrives."""

    def __init__(self, made: Callable[[WatchSink], object]) -> None:
        self._made = made

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None:
        self._made(sink)

    def stop(self) -> None: ...


class ClusterAlone:
    """Cluster ``prod``. Everything happens in the test's thread.

    Attributes:
        faults: of the tables.
        to_zones: messages to zones, in their order, with the zone.
        to_clusters: messages to clusters, likewise.
        sinks: what each listener that was started tells; the last one of each resource.
        listeners: how many were started.
        windows: how many windows with news were recorded.
    """

    def __init__(self) -> None:
        self.clock = _Clock()
        self.faults = StoreFaults()
        self.store = MemoryStore(clock=self.clock, faults=self.faults)
        self.to_zones: list[tuple[str, object]] = []
        self.to_clusters: list[tuple[str, object]] = []
        self.sinks: dict[Resource, WatchSink] = {}
        self.listeners = 0
        self.windows = 0
        raise_fence(self.store, "prod", _EPOCH)
        self.actor = ClusterActor(a_config(), self._ports())
        self.actor.hosted(SimpleNamespace(send=self.actor.receive, wake=lambda: None, publish=lambda: None))  # type: ignore[arg-type]

    def listen(self) -> None:
        """Configure it, and start its listeners."""
        self.actor.receive(Configure(Configured(a_config(), None)))
        self.actor.receive(Listen(self.clock.monotonic() + 900.0))
        self.step(5)

    def step(self, times: int) -> None:
        for _ in range(times):
            self.actor.step()

    def _ports(self) -> ClusterPorts:
        store, clock = self.store, self.clock
        return ClusterPorts(
            session="session",
            tables=cluster_tables(store),
            fenced_writer=FencedWriter(store, _EPOCH, lambda: None, clock),
            connector=SimpleNamespace(reflector=self._reflector, credentials=lambda _config: {}),
            room=ListRoom(1e9, clock),
            cached_keys=lambda: 4000,
            scheduler=clock,
            window_seconds=1.0,
            window_bytes=64_000_000,
            pause_seconds=0.0,
            to_cluster=self._to_cluster,
            to_zone=lambda zone, message: self.to_zones.append((zone, message)),
            to_named=lambda _message: None,
            zones=lambda: ("Z1",),
            large=threading.Lock(),
            not_master=_unexpected,
            removed=_unexpected,
            unreadable=_unexpected,
            progress=self._progress,
        )

    def _to_cluster(self, name: str, message: object) -> bool:
        self.to_clusters.append((name, message))
        return True

    def _reflector(self, _config: object, resource: Resource, _space: object) -> Any:
        self.listeners += 1
        return _Reflector(lambda sink: self.sinks.update({resource: sink}))

    def _progress(self, word: str, _details: Mapping[str, object]) -> None:
        self.windows += word == "window"


def _unexpected(what: object) -> None:
    raise AssertionError(what)
