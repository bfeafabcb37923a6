"""The story of what people ask for: resyncs after changes by hand, clusters removed, tables lost and recovered."""

from collections.abc import Callable
from typing import Final

from chaos.stories.steps import Step, Story
from chaos.stories.story import FOREIGN, PRIVATE, ZONE, a_world
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_service, an_endpoints
from harness.seen.resync_requests import leave
from kubesync.aws.tables.control.clusters import OnDelete, ZoneReference
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import Resource
from kubesync_local.recovery.recovery import RecoveryRequest
from simulation.cluster import ScriptedCluster
from simulation.world import World, copy_tables

_INNER: Final = (ZoneReference(id=PRIVATE, name="inner.example.com"),)
_WEB: Final = RecordKey(ZONE, "web.shop.svc.prod.example.com", "A")
_API: Final = RecordKey(ZONE, "api.shop.svc.prod.example.com", "A")
_OLD: Final = {
    RecordKey(PRIVATE, "kubernetes.default.svc.old.inner.example.com", "A"): RecordSet(60, ("10.0.0.1",)),
    RecordKey(PRIVATE, "_http._tcp.kubernetes.default.svc.old.inner.example.com", "SRV"): RecordSet(
        60, ("0 100 80 kubernetes.default.svc.old.inner.example.com.",)
    ),
}


def _a_world() -> World:
    """The two clusters, and a third one whose outputs shall stay when it is removed."""
    world = a_world()
    old = ScriptedCluster("old")
    old.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")
    world.clusters["old"] = old
    world.configure(
        "old",
        server="https://old.invalid",
        domain="old.inner.example.com",
        zones=_INNER,
        ttl=60,
        endpoints_source=Resource.ENDPOINTS,
        on_delete=OnDelete.RETAIN,
    )
    return world


def _begin(world: World) -> None:
    prod, edge = world.clusters["prod"], world.clusters["edge"]
    for number, name in enumerate(("web", "api", "spare"), 1):
        prod.apply(name, a_service(cluster_ips=(f"10.0.1.{number}",)))
        prod.apply(name, an_endpoints(f"10.1.1.{number}", service=name), slice_name=f"{name}-a")
    edge.apply("web", a_service(cluster_ips=("10.9.1.1",), annotations={"hostname": "edge.example.com"}))
    edge.apply("web", an_endpoints("10.8.1.1"))


def ask(world: World, cluster: str = "", *, dry_run: bool = False, force: bool = False) -> None:
    """Somebody asks for a resync, and tells the master."""
    leave(world, cluster, dry_run=dry_run, force=force, name=f"{len(world.store.calls):08x}")


def _zone_is_denied(world: World) -> None:
    """While something has to be published there: that is noted, and nothing else waits for it."""
    world.route53.denied = frozenset({PRIVATE})
    world.clusters["edge"].apply("denied", a_service(cluster_ips=("10.9.1.9",)))
    world.clusters["prod"].apply("meanwhile", a_service(cluster_ips=("10.0.1.9",)))


def _zone_is_allowed(world: World) -> None:
    world.route53.denied = frozenset()
    world.clock.advance(60.0)


def _changed_by_hand(world: World) -> None:
    """One set of ours is deleted, another one changed, if they stand by now; then somebody only wants to know."""
    for key, wanted in ((_WEB, None), (_API, RecordSet(60, ("192.0.2.66",)))):
        standing = world.route53.records(key.zone_id).get(key)
        if standing is not None:
            world.route53.by_hand("DELETE", key, standing)
            if wanted is not None:
                world.route53.by_hand("CREATE", key, wanted)
    ask(world, dry_run=True)


def _api_changes(world: World) -> None:
    """A change of what was changed by hand: not blindly overwritten; then a resync, which mends."""
    world.clusters["prod"].apply("api", a_service(cluster_ips=("10.0.1.20",)))
    ask(world, "prod")


def _remove(name: str) -> Callable[[World], None]:
    def mark(world: World) -> None:
        if name in {config.name for config in world.configured()}:
            world.configure(name, deleting=True)

    return mark


def _tables_are_lost(world: World) -> None:
    """All four are empty; a person registers the clusters again that there are."""
    there = [config for config in world.configured() if not config.deleting]
    copy_tables(MemoryStore(clock=world.clock), world.store)
    for config in there:
        world.register(config)


def _goes_on(world: World) -> None:
    prod = world.clusters["prod"]
    prod.apply("web", a_service(cluster_ips=("10.0.1.30",)))
    prod.delete(Resource.SERVICES, "spare")
    prod.delete(Resource.ENDPOINTSLICES, "spare-a")


_STEPS: Final = (
    Step("nothing yet"),
    Step("services come", _begin),
    Step("a zone is denied", _zone_is_denied),
    Step("and allowed again", _zone_is_allowed),
    Step("hand-over", hand_over=True),
    Step("changed by hand, and a dry run", _changed_by_hand),
    Step("a change, and a resync of one cluster", _api_changes),
    Step("the session is killed", killed=True),
    Step("a cluster is removed, its outputs stay", _remove("old")),
    Step("a cluster is removed, its outputs go", _remove("edge")),
    Step("a resync of all", ask),
    Step("hand-over", hand_over=True),
    Step("the tables are lost", _tables_are_lost, between=True),
    Step("what would recover do", recovery=RecoveryRequest()),
    Step("recover", recovery=RecoveryRequest(dry_run=False)),
    Step("and it goes on", _goes_on),
)
STORY: Final = Story("requests", _a_world, _STEPS, FOREIGN, _OLD, ("old/default/kubernetes/80/TCP",))
