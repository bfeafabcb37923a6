"""A scripted cluster: versioned objects with their history, listed and watched from any version that is still kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.credential_ends import Credential
from kubesync.domain.objects import Observation, RawEvent, Resource, Service, Snapshot
from kubesync.domain.sources.scope import Scope
from kubesync.kubernetes.list_room import ListReservation
from kubesync.kubernetes.ports import Lister, WatchSink
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.transport.connections import StoppedError
from simulation.gate import Gate
from simulation.process import Waiters
from simulation.scope_view import EVERYTHING, shown, visible

# There is room for the lists of two clusters at a time, and for one list of a third.
LIST_BYTES: Final = 4 * 1024 * 1024
# Longer than a window.
_DRIP_SECONDS: Final = 1.2


@dataclass(frozen=True, slots=True)
class Happened:
    """One change of one object; ``type`` is that of the watch event."""

    type: str
    seen: Observation


@dataclass(slots=True)
class ScriptedCluster:
    """Objects and history of one cluster.

    ``oldest`` is the first version that can still be watched from; ``connection`` moves when all watches are cut.
    """

    name: str
    version: int = 100
    oldest: int = 0
    connection: int = 0
    uids: int = 0
    live: dict[tuple[Resource, str, str], Observation] = field(default_factory=dict)
    history: list[Happened] = field(default_factory=list)
    watchers: list[Waiters] = field(default_factory=list, compare=False, repr=False)
    _at: dict[int, Observation] = field(default_factory=dict, compare=False, repr=False)

    def copy(self) -> ScriptedCluster:
        made = ScriptedCluster(
            self.name, self.version, self.oldest, self.connection, self.uids, dict(self.live), list(self.history)
        )
        made._at = dict(self._at)
        return made

    def apply(
        self,
        name: str,
        value: object,
        *,
        slice_name: str = "",
        namespace: str = "shop",
        resource: Resource | None = None,
    ) -> None:
        """Make or change an object. Endpoints go by their Service's name, or as a slice where ``slice_name`` is given.

        ``resource``: of an object that is neither a Service nor endpoints.
        """
        of_endpoints = Resource.ENDPOINTSLICES if slice_name else Resource.ENDPOINTS
        resource = resource or (Resource.SERVICES if isinstance(value, Service) else of_endpoints)
        place = (resource, namespace, slice_name or name)
        known = self.live.get(place)
        self.version += 1
        if known is None:
            self.uids += 1
        uid = known.uid if known is not None else f"uid-{self.name}-{self.uids}"
        seen = Observation(resource, namespace, slice_name or name, uid, self.version, value=value)
        self.live[place] = seen
        self._happened(Happened("ADDED" if known is None else "MODIFIED", seen))

    def delete(self, resource: Resource, name: str, namespace: str = "shop") -> None:
        """Delete an object; its last state goes with the event."""
        known = self.live.pop((resource, namespace, name))
        self.version += 1
        seen = Observation(resource, namespace, name, known.uid, self.version, deleted=True, value=known.value)
        self._happened(Happened("DELETED", seen))

    def cut(self) -> None:
        """Every watch ends now."""
        self.connection += 1
        self._wake()

    def compact(self) -> None:
        """Forget the history: a watch from an older version is too old (410)."""
        self.oldest = self.version

    def forget(self) -> None:
        """Forget the history that nobody needs any more: all listeners have seen it."""
        kept = {seen.resource_version: seen for seen in self.live.values()}
        self.history.clear()
        self._at = kept

    def _happened(self, change: Happened) -> None:
        self.history.append(change)
        self._at[change.seen.resource_version] = change.seen
        self._wake()

    def _wake(self) -> None:
        for news in self.watchers:
            news.wake_all()

    def listed(self, resource: Resource, scope: Scope = EVERYTHING) -> Snapshot:
        """A complete list, as it would be answered now."""
        live = (seen for _, seen in sorted(self.live.items()) if seen.resource is resource)
        items = tuple(seen for seen in live if visible(seen, scope))
        return Snapshot(resource, self.version, items)

    def since(self, resource: Resource, version: int, scope: Scope = EVERYTHING) -> list[RawEvent]:
        if scope != EVERYTHING:
            changes = shown(((happened.type, happened.seen) for happened in self.history), resource, scope)
            return [self._event(kind, seen) for kind, seen in changes if seen.resource_version > version]
        found: list[RawEvent] = []
        for happened in reversed(self.history):
            seen = happened.seen
            if seen.resource_version <= version:
                break
            if seen.resource is resource:
                found.append(self._event(happened.type, seen))
        found.reverse()
        return found

    def _event(self, kind: str, seen: Observation) -> RawEvent:
        line = f"{self.name} {seen.resource_version}".encode()
        return RawEvent(kind, seen.resource, seen.namespace, seen.name, seen.uid, seen.resource_version, line)

    def at(self, version: int) -> Observation:
        return self._at[version]


class ScriptedReflector:
    """Implements ``Reflector`` on a scripted cluster. ``run`` waits for news of the cluster until it is stopped.

    ``drip``: one event at a time, so that each has a window of its own. ``held``: it reads nothing for now.
    """

    def __init__(
        self, cluster: ScriptedCluster, resource: Resource, scope: Scope, reservation: ListReservation, gate: Gate
    ) -> None:
        self.drip = False
        self._reservation = reservation
        self._cluster = cluster
        self._resource = resource
        self._scope = scope
        self._gate = gate
        self._process = gate.process
        self._news = Waiters(self._process.machine)
        self._position: int | None = None
        self._connection: int | None = None
        self._stopped = False
        self._held = False

    @property
    def held(self) -> bool:
        return self._held

    @held.setter
    def held(self, held: bool) -> None:
        self._held = held
        self._news.wake_all()

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None:
        self._position = resume_from
        self._cluster.watchers.append(self._news)
        try:
            while not self._over(deadline_monotonic):
                if not self._pump(sink, deadline_monotonic):
                    self._news.wait(f"news of {self._cluster.name}", deadline_monotonic - self._process.monotonic())
        except StoppedError:
            pass
        finally:
            self._cluster.watchers.remove(self._news)

    def stop(self) -> None:
        self._stopped = True
        self._reservation.end()
        self._news.wake_all()

    def _over(self, deadline_monotonic: float) -> bool:
        return self._stopped or self._process.monotonic() >= deadline_monotonic

    def _pump(self, sink: WatchSink, deadline_monotonic: float) -> bool:
        """Do the next thing that a reflector does. False: there is nothing to do."""
        cluster = self._cluster
        if self._held:
            return False
        if self._position is None:
            self._list(sink, deadline_monotonic)
        elif self._connection != cluster.connection:
            self._connect(sink)
        elif cluster.version > self._position:
            self._read(sink)
        else:
            return False
        return True

    def _connect(self, sink: WatchSink) -> None:
        cluster = self._cluster
        call = self._gate.before("kubernetes", f"watch {cluster.name} {self._resource}", writes=False)
        connection, oldest = cluster.connection, cluster.oldest
        self._gate.after(call)
        if self._stopped:
            return
        assert self._position is not None
        if self._position < oldest:
            sink.on_stale()
            self._position = None
            return
        self._connection = connection
        sink.on_resumed()

    def _read(self, sink: WatchSink) -> None:
        cluster, machine = self._cluster, self._process.machine
        assert self._position is not None
        version = cluster.version
        for event in self.due(cluster, self._position):
            machine.point("event")
            if self._stopped:
                return
            sink.on_events([event])
            self._position = max(self._position, event.resource_version)
            if self.drip:
                self._process.sleep(_DRIP_SECONDS)
        if version > self._position and not self._stopped:
            sink.on_bookmark(version)
            self._position = version

    def due(self, cluster: ScriptedCluster, position: int) -> list[RawEvent]:
        """What is delivered next."""
        return cluster.since(self._resource, position, self._scope)

    def _list(self, sink: WatchSink, deadline_monotonic: float) -> None:
        if not self._reservation.take(LIST_BYTES, deadline_monotonic):
            return
        call = self._gate.before("kubernetes", f"list {self._cluster.name} {self._resource}", writes=False)
        snapshot = self._cluster.listed(self._resource, self._scope)
        self._gate.after(call)
        if self._stopped:
            return
        self._reservation.release(LIST_BYTES)
        self._position = snapshot.resource_version
        self._connection = None
        sink.on_snapshot(replace(snapshot, size=LIST_BYTES))


class ScriptedLister:
    """Implements ``Lister``."""

    def __init__(
        self, cluster: ScriptedCluster, resource: Resource, scope: Scope, reservation: ListReservation, gate: Gate
    ) -> None:
        self._reservation = reservation
        self._cluster = cluster
        self._resource = resource
        self._scope = scope
        self._gate = gate

    def run(self, deadline_monotonic: float) -> Snapshot:
        assert self._reservation.take(LIST_BYTES, deadline_monotonic)
        call = self._gate.before("kubernetes", f"list {self._cluster.name} {self._resource}", writes=False)
        found = self._cluster.listed(self._resource, self._scope)
        self._gate.after(call)
        self._reservation.release(LIST_BYTES)
        return found

    def stop(self) -> None:
        self._reservation.end()


class ScriptedConnector:
    """Implements ``Connector`` for one process."""

    reflector_type: ClassVar[type[ScriptedReflector]] = ScriptedReflector

    def __init__(self, clusters: Mapping[str, ScriptedCluster], gate: Gate) -> None:
        self._clusters = clusters
        self._gate = gate
        self.drip = False
        self.reflectors: list[ScriptedReflector] = []

    def reflector(self, config: ClusterConfig, resource: Resource, reservation: ListReservation) -> ScriptedReflector:
        made = self.reflector_type(self._clusters[config.name], resource, config.scope, reservation, self._gate)
        made.drip = self.drip
        self.reflectors.append(made)
        return made

    def lister(self, config: ClusterConfig, resource: Resource, reservation: ListReservation) -> Lister:
        return ScriptedLister(self._clusters[config.name], resource, config.scope, reservation, self._gate)

    def credentials(self, config: ClusterConfig) -> Mapping[Credential, tuple[float, ...]]:
        return {}

    def client(self, config: ClusterConfig) -> ApiClient:
        raise AssertionError("no cluster of these stories writes events")

    def identity(self, config: ClusterConfig) -> str | None:
        call = self._gate.before("kubernetes", f"get {config.name} default/kubernetes", writes=False)
        found = self._clusters[config.name].live.get((Resource.SERVICES, "default", "kubernetes"))
        self._gate.after(call)
        return None if found is None else found.uid

    def observe(self, config: ClusterConfig, event: RawEvent) -> Observation:
        name, _, version = event.line.decode().partition(" ")
        seen = self._clusters[name].at(int(version))
        # What stops to match a selector is deleted for that watch alone.
        return replace(seen, deleted=event.type == "DELETED")
