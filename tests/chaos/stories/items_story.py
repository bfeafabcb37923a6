"""The story of every kind of item: after a few sessions of it, the tables hold one of each kind that a deployment writes.

Two clusters, one with rules for names; names that several want; conflicts with other people's record sets; weighted sets; named upstreams; a
zone that is denied for a while; resyncs that people ask for; a cluster that is removed. A session is killed once, so that notes stand that
are otherwise gone when a session ends.
"""

import random
from collections.abc import Callable
from typing import Final

from chaos.stories.requests_story import ask
from chaos.stories.steps import Step, Story
from chaos.stories.story import FOREIGN, PRIVATE, a_world
from harness.seen.builders import a_service, an_endpoint, an_endpoints
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.domain.objects import Resource, Service
from kubesync_local.workplace.registry import ZoneRoles
from simulation.cluster import ScriptedCluster
from simulation.world import World

_LARGE_PODS: Final = 2_500
LEAVING: Final = "old"
"""The cluster that is removed in the end."""
_LATE: Final = "2026-09-01T00:00:00Z"
_INNER: Final = (ZoneReference(id=PRIVATE, name="inner.example.com"),)


def _weighted(weight: int, address: str) -> Service:
    asks = {"hostname": "canary.example.com", "set-identifier": "prod", "aws-weight": str(weight)}
    return a_service(cluster_ips=(address,), annotations=asks)


def _a_world() -> World:
    world = a_world()
    world.configure("edge", domain_filter=("inner.example.com", "shop.example.com"))
    old = ScriptedCluster(LEAVING)
    old.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")
    world.clusters[LEAVING] = old
    world.configure(
        LEAVING, server="https://old.invalid", domain="old.inner.example.com", zones=_INNER, ttl=60,
        endpoints_source=Resource.ENDPOINTS,
    )  # fmt: skip
    return world


def _begin(world: World) -> None:
    prod, edge = world.clusters["prod"], world.clusters["edge"]
    for number, name in enumerate(("web", "api", "spare"), 1):
        prod.apply(name, a_service(cluster_ips=(f"10.0.1.{number}",)))
        prod.apply(name, an_endpoints(f"10.1.1.{number}", service=name), slice_name=f"{name}-a")
    prod.apply("db", a_service(headless=True))
    pods = [an_endpoint(f"10.1.2.{number}", hostname=f"db-{number}", pod=f"db-{number}") for number in (1, 2)]
    prod.apply("db", an_endpoints(*pods, service="db"), slice_name="db-a")
    prod.apply("canary", _weighted(10, "10.0.1.7"))
    for name, created in (("first", "2026-01-01T00:00:00Z"), ("second", "2026-02-01T00:00:00Z")):
        asks = {"hostname": "shop.example.com"}
        prod.apply(name, a_service(cluster_ips=(f"10.0.2.{len(name)}",), annotations=asks, created_at=created))
    prod.apply("taker", a_service(cluster_ips=("10.0.2.9",), annotations={"hostname": "taken.example.com"}))
    edge.apply("web", a_service(cluster_ips=("10.9.1.1",), annotations={"hostname": "e.inner.example.com"}))
    edge.apply("web", an_endpoints("10.8.1.1"))


def _more(world: World) -> None:
    """Everything that is there changes once."""
    prod, edge = world.clusters["prod"], world.clusters["edge"]
    prod.apply("web", a_service(cluster_ips=("10.0.1.11",), annotations={"ttl": "90"}))
    prod.apply("web", an_endpoints("10.1.1.1", "10.1.1.11", service="web"), slice_name="web-a")
    prod.apply("canary", _weighted(20, "10.0.1.17"))
    prod.apply("db", an_endpoints(an_endpoint("10.1.2.3", hostname="db-3"), service="db"), slice_name="db-b")
    asks = {"hostname": "e.inner.example.com, f.inner.example.com, shop.example.com"}
    edge.apply("web", a_service(cluster_ips=("10.9.1.2",), annotations=asks))
    edge.apply("web", an_endpoints("10.8.1.1", "10.8.1.2"))
    if "prod" in {config.name for config in world.configured()}:
        world.configure("prod", ttl=75)


def _zone_is_denied(world: World) -> None:
    world.route53.denied = frozenset({PRIVATE})
    world.clusters["edge"].apply("denied", a_service(cluster_ips=("10.9.1.9",)))


def _zone_is_allowed(world: World) -> None:
    world.route53.denied = frozenset()
    world.clock.advance(60.0)
    ZoneRoles(world.store).put(PRIVATE, ZoneAccess("arn:aws:iam::123456789012:role/zone"))
    ZoneRoles(world.store).put(PRIVATE, None)


def _passes_on(world: World) -> None:
    """The name that three want is handed on; a Service goes, a slice moves."""
    prod = world.clusters["prod"]
    prod.apply("first", a_service(cluster_ips=("10.0.2.5",)))
    prod.delete(Resource.SERVICES, "spare")
    prod.apply("spare", an_endpoints("10.1.1.3", service="api"), slice_name="spare-a")


def _late(world: World) -> None:
    prod = world.clusters["prod"]
    prod.apply("late", a_service(cluster_ips=("10.0.3.1",)))
    prod.apply("api", a_service("ExternalName", external_name="api.example.org"))


def _fails(world: World) -> None:
    """Watches are cut, and what was read last is too old."""
    for cluster in world.clusters.values():
        cluster.cut()
    world.clusters["prod"].compact()
    _late(world)


def _remove_old(world: World) -> None:
    if LEAVING in {config.name for config in world.configured()}:
        world.configure(LEAVING, deleting=True)


def _churn(world: World) -> None:
    """After whatever has happened: changes of old objects and new ones."""
    prod, edge = world.clusters["prod"], world.clusters["edge"]
    prod.apply("web", a_service(cluster_ips=("10.0.1.21",)))
    prod.apply("web", an_endpoints("10.1.1.21", service="web"), slice_name="web-a")
    prod.apply("second", a_service(cluster_ips=("10.0.2.26",), created_at="2026-02-01T00:00:00Z"))
    prod.apply("newest", a_service(cluster_ips=("10.0.4.1",), annotations={"hostname": "www.example.com"}))
    edge.apply("web", an_endpoints("10.8.1.9"))


def _new_intents(world: World) -> None:
    """Others want the names that somebody has, and those that somebody had."""
    prod, edge = world.clusters["prod"], world.clusters["edge"]
    names = "shop.example.com, www.example.com, e.inner.example.com, canary.example.com"
    prod.apply("heir", a_service(cluster_ips=("10.0.5.1",), annotations={"hostname": names}, created_at=_LATE))
    shop = {"hostname": "shop.example.com"}
    edge.apply("heir", a_service(cluster_ips=("10.9.5.1",), annotations=shop, created_at=_LATE))


def _hand_over(world: World) -> None:
    """Whoever has these names goes. So do some Services that nobody else waits for."""
    prod, edge = world.clusters["prod"], world.clusters["edge"]
    for cluster, names in ((prod, ("canary", "newest", "second", "api", "first", "large")), (edge, ("web",))):
        for name in names:
            if (Resource.SERVICES, "shop", name) in cluster.live:
                cluster.delete(Resource.SERVICES, name)


def _all_new(world: World) -> None:
    """What was deleted comes back, with other values; what stayed changes."""
    prod, edge = world.clusters["prod"], world.clusters["edge"]
    for number, name in enumerate(("canary", "newest", "second", "api", "first", "late", "web", "spare")):
        prod.apply(name, a_service(cluster_ips=(f"10.0.6.{number}",), created_at=_LATE))
    prod.apply("web", an_endpoints("10.1.6.1", "10.1.6.2", service="web"), slice_name="web-a")
    prod.apply("spare", an_endpoints("10.1.6.3", service="spare"), slice_name="spare-a")
    prod.apply("db", an_endpoints(an_endpoint("10.1.6.4", hostname="db-6"), service="db"), slice_name="db-a")
    edge.apply("web", a_service(cluster_ips=("10.9.6.1",), created_at=_LATE))
    edge.apply("web", an_endpoints("10.8.6.1"))


def _large(number: int) -> Callable[[World], None]:
    def happen(world: World) -> None:
        """A Service with so many pods, and names that no compression shortens, that its key and its upstream take several items."""
        chance = random.Random(number)
        prod = world.clusters["prod"]
        pods = [
            an_endpoint(f"10.{2 + number}.{n >> 8}.{n & 255}", pod=f"large-{chance.getrandbits(320):080x}")
            for n in range(_LARGE_PODS + number)
        ]
        prod.apply("large", a_service(cluster_ips=(f"10.0.7.{number}",)))
        prod.apply("large", an_endpoints(*pods, service="large"), slice_name="large-a")
        prod.apply("small", a_service(cluster_ips=(f"10.0.8.{number}",)))

    return happen


LARGE: Final = Story(
    "large items",
    _a_world,
    (
        Step("a large Service comes", _large(1)),
        Step("hand-over", hand_over=True),
        Step("it changes", _large(2)),
        Step("hand-over", hand_over=True),
        Step("it changes again", _large(3)),
        Step("hand-over", hand_over=True),
        Step("nothing"),
    ),
    FOREIGN,
)
LATER: Final = (_new_intents, _hand_over, _all_new)
STORY: Final = Story(
    "items",
    _a_world,
    (
        Step("services come", _begin),
        Step("hand-over", hand_over=True),
        Step("everything changes", _more),
        Step("a zone is denied", _zone_is_denied),
        Step("hand-over", hand_over=True),
        Step("and allowed again", _zone_is_allowed),
        Step("names are handed on", _passes_on),
        Step("the session is killed", killed=True),
        Step("all is listed", _fails),
        Step("a resync of all", ask),
        Step("a cluster is removed", _remove_old),
        Step("hand-over", hand_over=True),
        Step("more changes", _churn),
        Step("hand-over", hand_over=True),
        Step("nothing"),
    ),
    FOREIGN,
)
