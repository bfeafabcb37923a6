"""Listeners of a session that hand on what a test feeds them."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.credential_ends import Credential
from kubesync.domain.errors import ListenerError
from kubesync.domain.objects import Observation, RawEvent, Resource, Snapshot
from kubesync.kubernetes.list_room import ListReservation
from kubesync.kubernetes.ports import Lister, WatchSink
from kubesync.kubernetes.transport.client import ApiClient
from simulation.cluster import ScriptedCluster, ScriptedConnector
from simulation.gate import Gate
from simulation.process import Waiters


class FedListener:
    """Implements ``Reflector``: hands on what it is fed.

    ``resumed_from``: the version that the session wants to go on from. ``stopped``: it was cut. ``hangs``: it does not end then.
    """

    def __init__(self, gate: Gate, name: str) -> None:
        self._process = gate.process
        self._news = Waiters(gate.process.machine)
        self._fed: list[Callable[[WatchSink], object]] = []
        self.stopped = False
        self._name = name
        self.resumed_from: int | None = None
        self.hangs = False

    def feed(self, what: Callable[[WatchSink], object]) -> None:
        self._fed.append(what)
        self._news.wake_all()

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None:
        self.resumed_from = resume_from
        if resume_from is not None:
            sink.on_resumed()
        while (self.hangs or not self.stopped) and self._process.monotonic() < deadline_monotonic:
            if self._fed:
                self._fed.pop(0)(sink)
            else:
                self._news.wait(f"something to be fed to {self._name}", deadline_monotonic - self._process.monotonic())

    def stop(self) -> None:
        self.stopped = True
        self._news.wake_all()


class _Lister:
    """Implements ``Lister``: the list that a test gave."""

    def __init__(self, listed: Snapshot) -> None:
        self._listed = listed

    def run(self, deadline_monotonic: float) -> Snapshot:
        return self._listed

    def stop(self) -> None: ...


class FedConnector(ScriptedConnector):
    """Implements ``Connector``: listeners that are fed.

    ``probed``: who the cluster says that it is. ``listed``: what a list of a dry run finds. ``spaces``: where listeners wait for room.
    """

    observations: ClassVar[list[Observation]] = []

    def __init__(self, clusters: Mapping[str, ScriptedCluster], gate: Gate) -> None:
        super().__init__(clusters, gate)
        self.listeners: dict[tuple[str, Resource], FedListener] = {}
        self.spaces: dict[tuple[str, Resource], ListReservation] = {}
        self.probed: str | ListenerError | None = None
        self.listed: dict[Resource, Snapshot] = {}
        self.ends: dict[Credential, tuple[float, ...]] = {}
        self._the_gate = gate

    def reflector(self, config: ClusterConfig, resource: Resource, reservation: ListReservation) -> Any:
        made = FedListener(self._the_gate, f"{config.name} {resource}")
        self.listeners[config.name, resource] = made
        self.spaces[config.name, resource] = reservation
        return made

    def lister(self, config: ClusterConfig, resource: Resource, reservation: ListReservation) -> Lister:
        return _Lister(self.listed[resource])

    def credentials(self, config: ClusterConfig) -> Mapping[Credential, tuple[float, ...]]:
        return self.ends

    def client(self, config: ClusterConfig) -> ApiClient:
        raise AssertionError("no cluster of these stories writes events")

    def identity(self, config: ClusterConfig) -> str | None:
        if isinstance(self.probed, ListenerError):
            raise self.probed
        return self.probed

    def observe(self, config: ClusterConfig, event: RawEvent) -> Observation:
        return self.observations[int(event.line)]
