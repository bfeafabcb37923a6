"""A scripted cluster: versioned objects with their history, listed and watched from any version that is still kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from chaos.gate import Gate
from chaos.scope_view import EVERYTHING, shown, visible
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.objects import EndpointsObject, Observation, RawEvent, Resource, Service, Snapshot
from kubesync.domain.scope import Scope
from kubesync.kubernetes.ports import WatchSink
from kubesync.kubernetes.service_events import EventPoster


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

    def copy(self) -> ScriptedCluster:
        return ScriptedCluster(
            self.name, self.version, self.oldest, self.connection, self.uids, dict(self.live), list(self.history)
        )

    def apply(
        self, name: str, value: Service | EndpointsObject, *, slice_name: str = "", namespace: str = "shop"
    ) -> None:
        """Make or change an object. Endpoints go by their Service's name, or as a slice where ``slice_name`` is given."""
        of_endpoints = Resource.ENDPOINTSLICES if slice_name else Resource.ENDPOINTS
        resource = Resource.SERVICES if isinstance(value, Service) else of_endpoints
        place = (resource, namespace, slice_name or name)
        known = self.live.get(place)
        self.version += 1
        if known is None:
            self.uids += 1
        uid = known.uid if known is not None else f"uid-{self.name}-{self.uids}"
        seen = Observation(resource, namespace, slice_name or name, uid, self.version, value=value)
        self.live[place] = seen
        self.history.append(Happened("ADDED" if known is None else "MODIFIED", seen))

    def delete(self, resource: Resource, name: str, namespace: str = "shop") -> None:
        """Delete an object; its last state goes with the event."""
        known = self.live.pop((resource, namespace, name))
        self.version += 1
        seen = Observation(resource, namespace, name, known.uid, self.version, deleted=True, value=known.value)
        self.history.append(Happened("DELETED", seen))

    def cut(self) -> None:
        """Every watch ends now."""
        self.connection += 1

    def compact(self) -> None:
        """Forget the history: a watch from an older version is too old (410)."""
        self.oldest = self.version

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
        return next(happened.seen for happened in reversed(self.history) if happened.seen.resource_version == version)


class ScriptedReflector:
    """Implements ``Reflector``. ``run`` only remembers the sink; ``pump`` reads what there is, without blocking.

    ``drip``: one event at a time, so that each has a window of its own.
    """

    def __init__(self, cluster: Callable[[], ScriptedCluster], resource: Resource, gate: Gate) -> None:
        self._cluster = cluster
        self._resource = resource
        self._gate = gate
        self.drip = False
        self.scope = EVERYTHING
        self._sink: WatchSink | None = None
        self._position: int | None = None
        self._connection: int | None = None
        self._stopped = False

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None:
        self._sink, self._position = sink, resume_from

    def stop(self) -> None:
        self._stopped = True

    def pump(self) -> None:
        """List and watch as a reflector would, up to what the cluster shows now."""
        cluster, sink = self._cluster(), self._sink
        if self._stopped or sink is None:
            return
        while self._connection != cluster.connection:
            if self._position is None:
                self._list(cluster, sink)
            assert self._position is not None
            call = self._gate.before("kubernetes", f"watch {cluster.name} {self._resource}", writes=False)
            self._gate.after(call)
            if self._position < cluster.oldest:
                sink.on_stale()
                self._position = None
                continue
            self._connection = cluster.connection
            sink.on_resumed()
        self._read(cluster, sink)

    def _read(self, cluster: ScriptedCluster, sink: WatchSink) -> None:
        assert self._position is not None
        for event in cluster.since(self._resource, self._position, self.scope):
            sink.on_events([event])
            self._position = event.resource_version
            if self.drip:
                return
        if cluster.version > self._position:
            sink.on_bookmark(cluster.version)
            self._position = cluster.version

    def _list(self, cluster: ScriptedCluster, sink: WatchSink) -> None:
        call = self._gate.before("kubernetes", f"list {cluster.name} {self._resource}", writes=False)
        snapshot = cluster.listed(self._resource, self.scope)
        self._gate.after(call)
        self._position = snapshot.resource_version
        sink.on_snapshot(snapshot)


class ScriptedLister:
    """Implements ``Lister``."""

    def __init__(self, cluster: ScriptedCluster, resource: Resource, scope: Scope, gate: Gate) -> None:
        self._cluster = cluster
        self._resource = resource
        self._scope = scope
        self._gate = gate

    def run(self, deadline_monotonic: float) -> Snapshot:
        call = self._gate.before("kubernetes", f"list {self._cluster.name} {self._resource}", writes=False)
        found = self._cluster.listed(self._resource, self._scope)
        self._gate.after(call)
        return found

    def stop(self) -> None:
        """It never blocks."""


class ScriptedConnector:
    """Implements ``Connector`` for one process."""

    reflector_type: ClassVar[type[ScriptedReflector]] = ScriptedReflector

    def __init__(self, clusters: Mapping[str, ScriptedCluster], gate: Gate) -> None:
        self._clusters = clusters
        self._gate = gate
        self.drip = False
        self.reflectors: list[ScriptedReflector] = []

    def reflector(self, config: ClusterConfig, resource: Resource) -> ScriptedReflector:
        made = self.reflector_type(lambda: self._clusters[config.name], resource, self._gate)
        made.drip, made.scope = self.drip, config.scope
        self.reflectors.append(made)
        return made

    def pump(self) -> None:
        for reflector in self.reflectors:
            reflector.pump()

    def lister(self, config: ClusterConfig, resource: Resource) -> ScriptedLister:
        return ScriptedLister(self._clusters[config.name], resource, config.scope, self._gate)

    def event_poster(self, config: ClusterConfig) -> EventPoster:
        raise AssertionError("no cluster of these stories writes events")

    def identity(self, config: ClusterConfig) -> str | None:
        call = self._gate.before("kubernetes", f"get {config.name} default/kubernetes", writes=False)
        found = self._clusters[config.name].live.get((Resource.SERVICES, "default", "kubernetes"))
        self._gate.after(call)
        return None if found is None else found.uid

    def observe(self, event: RawEvent) -> Observation:
        name, _, version = event.line.decode().partition(" ")
        seen = self._clusters[name].at(int(version))
        # What stops to match a selector is deleted for that watch alone.
        return replace(seen, deleted=event.type == "DELETED")
