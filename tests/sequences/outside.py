"""The world of the scripts: two clusters, three zones, sessions that can be stepped in part, and watches that come as they like."""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from harness.seen.builders import a_service
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import Resource
from kubesync.domain.sources.ingresses import INGRESSES
from kubesync.kubernetes.list_room import ListReservation
from kubesync.kubernetes.ports import WatchSink
from simulation.cluster import ScriptedCluster, ScriptedConnector, ScriptedReflector
from simulation.world import World
from simulation.zones import MemoryRoute53

PUBLIC: Final = ZoneReference(id="ZPUBLIC", name="example.com")
PRIVATE: Final = ZoneReference(id="ZPRIVATE", name="example.com", private=True)
INNER: Final = ZoneReference(id="ZINNER", name="inner.example.com")
WINDOW_CLOSES_SECONDS: Final = 1.2
ZONES: Final = (PUBLIC, PRIVATE, INNER)
CLUSTERS: Final[Mapping[str, str]] = {"prod": "prod.example.com", "edge": "edge.inner.example.com"}
FOREIGN: Final = {
    RecordKey(PUBLIC.id, "mail.example.com", "MX"): RecordSet(300, ("10 mx.example.net.",)),
    RecordKey(PUBLIC.id, "taken.example.com", "A"): RecordSet(300, ("192.0.2.200",)),
}


def listener(cluster: str, resource: Resource) -> str:
    """What a Moment calls a listener: both sources of endpoints are the cluster's ``endpoints``."""
    return f"{cluster} {resource.value if resource in (Resource.SERVICES, INGRESSES) else 'endpoints'}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """How watches deliver the next time.

    ``floors``: the version of each listener up to which everything is durable; nothing at or below it can come again.
    """

    order: int = 0
    late: int = 0
    bookmark: bool = True
    most: int = 0
    floors: Mapping[tuple[str, Resource], int] | None = None


class UnrulyReflector(ScriptedReflector):
    """Delivers what came at once in any order of different objects, and some of what came before again."""

    delivery: Delivery
    cluster_name: str
    _listed: int = 0

    @property
    def label(self) -> str:
        return listener(self.cluster_name, self._resource)

    def _list(self, sink: WatchSink, deadline_monotonic: float) -> None:
        super()._list(sink, deadline_monotonic)
        self._listed = self._position or 0

    def _read(self, sink: WatchSink) -> None:
        assert self._position is not None
        cluster, version = self._cluster, self._cluster.version
        delivery, self.delivery = self.delivery, Delivery()
        chance = random.Random(delivery.order)
        due = cluster.since(self._resource, self._position, self._scope)
        fresh = due[: delivery.most or None]
        floor = None if delivery.floors is None else delivery.floors.get((self.cluster_name, self._resource))
        again = []
        if delivery.late and floor is not None:
            earlier = cluster.since(self._resource, max(floor, self._listed), self._scope)
            again = [event for event in earlier if event.resource_version <= self._position][-delivery.late :]
        events = [*fresh, *again]
        if delivery.order:
            chance.shuffle(events)
        # All at once: no window closes in between, and no session ends.
        if events:
            sink.on_events(events)
            self._position = max(self._position, *(event.resource_version for event in events))
        if len(fresh) < len(due):
            self._process.sleep(WINDOW_CLOSES_SECONDS)
        elif version > self._position:
            if delivery.bookmark:
                sink.on_bookmark(version)
            self._position = version


class UnrulyConnector(ScriptedConnector):
    """``deliver`` says how the watches deliver next; only ``reading`` ones read anything (None: all)."""

    reflector_type: ClassVar[type[ScriptedReflector]] = UnrulyReflector
    reading: Collection[str] | None = None

    def reflector(self, config: ClusterConfig, resource: Resource, reservation: ListReservation) -> ScriptedReflector:
        made = super().reflector(config, resource, reservation)
        assert isinstance(made, UnrulyReflector)
        made.delivery, made.cluster_name = Delivery(), config.name
        made.held = self.reading is not None and made.label not in self.reading
        return made

    def deliver(self, delivery: Delivery) -> None:
        for made in self._unruly():
            made.delivery = delivery

    def read_only(self, labels: Collection[str] | None) -> None:
        """Let these listeners read; None: all."""
        self.reading = labels
        for made in self._unruly():
            made.held = labels is not None and made.label not in labels

    def _unruly(self) -> list[UnrulyReflector]:
        return [made for made in self.reflectors if isinstance(made, UnrulyReflector)]


class UnrulyWorld(World):
    """The outside of the sessions that are played."""

    connector_type: ClassVar[type[ScriptedConnector]] = UnrulyConnector


def an_outside(clusters: Mapping[str, ScriptedCluster] | None = None, *, seed: object = None) -> UnrulyWorld:
    """Zones with nothing but record sets of other people in them, and clusters (new ones, where none are given). Nothing is registered."""
    route53 = MemoryRoute53()
    for zone in ZONES:
        route53.create(zone.id, zone.name, private=zone.private)
    for key, record_set in FOREIGN.items():
        route53.by_hand("CREATE", key, record_set)
    if clusters is None:
        clusters = {name: ScriptedCluster(name) for name in CLUSTERS}
        for cluster in clusters.values():
            cluster.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")
    return UnrulyWorld(dict(clusters), route53, seed=seed)


def register(world: World, name: str) -> None:
    """Register a cluster as every script begins with it."""
    source = Resource.ENDPOINTSLICES if name == "prod" else Resource.ENDPOINTS
    world.configure(
        name,
        server=f"https://{name}.invalid",
        domain=CLUSTERS[name],
        zones=(PUBLIC, INNER),
        ttl=60,
        endpoints_source=source,
        sources=("service", "ingress"),
    )
