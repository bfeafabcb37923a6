"""The story that every kind of fault is played over: all record types, churn, fights for a name, relists, hand-overs."""

from chaos.stories.steps import Step, Story
from harness.seen.builders import HTTP, a_service, an_endpoint, an_endpoints
from harness.seen.named import member, register
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import Endpoint, Port, Resource
from simulation.cluster import ScriptedCluster
from simulation.world import World
from simulation.zones import MemoryRoute53

ZONE, PRIVATE = "ZSHARED", "ZINNER"
CONTESTED = frozenset({"shop.example.com"})
"""Names that several Services want: who is late finds the name taken, so an answer that is lost decides how often it changes hands."""
_ZONES = (ZoneReference(id=ZONE, name="example.com"), ZoneReference(id=PRIVATE, name="inner.example.com"))
_OLD, _NEWER, _NEWEST = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"
FOREIGN = {
    RecordKey(ZONE, "mail.example.com", "MX"): RecordSet(300, ("10 mx.example.net.",)),
    RecordKey(ZONE, "taken.example.com", "A"): RecordSet(300, ("192.0.2.200",)),
    RecordKey(ZONE, "web.shop.svc.prod.example.com", "TXT"): RecordSet(300, ('"written by a person"',)),
}
_DNS = Port("dns", "UDP", 53)


def a_world() -> World:
    """Two clusters that share a zone; another zone below it; records of other people."""
    route53 = MemoryRoute53()
    route53.create(ZONE, "example.com")
    route53.create(PRIVATE, "inner.example.com")
    for key, record_set in FOREIGN.items():
        route53.by_hand("CREATE", key, record_set)
    clusters = {name: ScriptedCluster(name) for name in ("prod", "edge")}
    world = World(clusters, route53)
    for cluster in clusters.values():
        cluster.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",), created_at=_OLD), namespace="default")
    world.configure("prod", server="https://prod.invalid", domain="prod.example.com", zones=_ZONES, ttl=60)
    world.configure(
        "edge",
        server="https://edge.invalid",
        domain="edge.inner.example.com",
        zones=_ZONES,
        endpoints_source=Resource.ENDPOINTS,
    )
    everywhere = [member("prod/shop/web/80", 3), member("prod/shop/db/80"), member("edge/shop/web/80", backup=True)]
    register(world.store, "everywhere", *everywhere, member("192.0.2.80:80", backup=True))
    register(world.store, "more", member("everywhere", 2), member("prod/shop/api/80"))
    return world


def _pods(*names: str, ready: bool = True) -> list[Endpoint]:
    return [
        an_endpoint(f"10.1.0.{int(name.rpartition('-')[2]) + 1}", hostname=name, pod=name, ready=ready)
        for name in names
    ]


def _begin(world: World) -> None:
    prod, edge = world.clusters["prod"], world.clusters["edge"]
    prod.apply("web", a_service(cluster_ips=("10.0.1.1", "fd00::1"), created_at=_OLD))
    prod.apply("web", an_endpoints("10.1.1.1", "10.1.1.2", service="web"), slice_name="web-a")
    prod.apply("api", a_service("NodePort", cluster_ips=("10.0.1.2",), ports=(HTTP, _DNS), created_at=_OLD))
    prod.apply("api", an_endpoints("10.1.2.1", service="api"), slice_name="api-a")
    prod.apply("lb", a_service("LoadBalancer", cluster_ips=("10.0.1.3",), created_at=_OLD))
    prod.apply("db", a_service(headless=True, created_at=_OLD))
    prod.apply("db", an_endpoints(*_pods("db-0", "db-1"), service="db"), slice_name="db-a")
    edge.apply("web", a_service(cluster_ips=("10.9.1.1",), created_at=_OLD))
    edge.apply("web", an_endpoints("10.8.1.1", service="web"))


def _addresses_come(world: World) -> None:
    prod = world.clusters["prod"]
    prod.apply(
        "lb",
        a_service(
            "LoadBalancer", cluster_ips=("10.0.1.3",), ingress_hostnames=("b.lb.example.net", "a.lb.example.net")
        ),
    )
    prod.apply("ext", a_service("ExternalName", external_name="Elsewhere.example.org", created_at=_OLD))
    prod.apply("db", an_endpoints(*_pods("db-0", "db-1", "db-2"), service="db"), slice_name="db-a")
    prod.apply("all", a_service(headless=True, publish_not_ready=True, created_at=_OLD))
    prod.apply("all", an_endpoints(*_pods("all-3", "all-4", ready=False), service="all"), slice_name="all-a")


def _fight(world: World) -> None:
    """Another cluster is first, though its Service is the newest; in the same window of one cluster the older goes before the newer."""
    prod, edge = world.clusters["prod"], world.clusters["edge"]
    edge.apply(
        "third", a_service(cluster_ips=("10.9.2.3",), annotations={"hostname": "shop.example.com"}, created_at=_NEWEST)
    )
    shop = {"hostname": "shop.example.com, www.example.com"}
    # Two events of one window that needs two transactions: the first one, where it comes again alone, must not be believed.
    prod.apply("first", a_service(cluster_ips=("10.0.2.9",), annotations=shop, created_at=_OLD))
    prod.apply("first", a_service(cluster_ips=("10.0.2.1",), annotations=shop, created_at=_OLD))
    prod.apply(
        "second", a_service(cluster_ips=("10.0.2.2",), annotations={"hostname": "shop.example.com"}, created_at=_NEWER)
    )
    prod.apply("taker", a_service(cluster_ips=("10.0.2.4",), annotations={"hostname": "taken.example.com"}))


def _types_change(world: World) -> None:
    prod = world.clusters["prod"]
    prod.apply("lb", a_service("LoadBalancer", cluster_ips=("10.0.1.3",), ingress_ips=("203.0.113.7", "2001:db8::7")))
    prod.apply("ext", a_service("ClusterIP", cluster_ips=("10.0.1.9",), created_at=_OLD))
    prod.apply("api", a_service("ExternalName", external_name="api.example.org", created_at=_OLD))
    prod.apply(
        "web",
        a_service(cluster_ips=("10.0.1.1",), annotations={"ttl": "2m", "internal-hostname": "in.inner.example.com"}),
    )
    prod.apply("db", an_endpoints(*_pods("db-0"), service="db"), slice_name="db-a")
    prod.apply("db", an_endpoints(*_pods("db-3"), service="db"), slice_name="db-b")


def _winner_lets_go(world: World) -> None:
    prod = world.clusters["prod"]
    prod.apply(
        "first", a_service(cluster_ips=("10.0.2.1",), annotations={"hostname": "www.example.com"}, created_at=_OLD)
    )
    prod.delete(Resource.SERVICES, "ext")
    prod.apply("targeted", a_service(annotations={"hostname": "t.example.com", "target": "t.example.org"}))


def _back_again(world: World) -> None:
    prod = world.clusters["prod"]
    prod.apply("ext", a_service("ClusterIP", cluster_ips=("10.0.1.10",), created_at=_NEWEST))
    prod.apply("lb", a_service("ClusterIP", cluster_ips=("10.0.1.3",), created_at=_OLD))
    prod.apply("targeted", a_service(annotations={"hostname": "t.example.com", "target": "192.0.2.1, 2001:db8::1"}))
    prod.delete(Resource.ENDPOINTSLICES, "db-b")
    prod.apply("db", an_endpoints(*_pods("db-0", "db-2"), service="db"), slice_name="db-a")


def _second_lets_go(world: World) -> None:
    world.clusters["prod"].delete(Resource.SERVICES, "second")


def _slice_moves(world: World) -> None:
    """A slice is given to another Service by its label; a Service goes, its slice stays for a while."""
    prod = world.clusters["prod"]
    prod.apply("api", an_endpoints("10.1.2.1", "10.1.2.2", service="web"), slice_name="api-a")
    prod.delete(Resource.SERVICES, "all")


def _gone_unseen(world: World) -> None:
    """The watches are cut; meanwhile objects vanish and the history is compacted: 410, and a list without them."""
    prod = world.clusters["prod"]
    prod.cut()
    prod.delete(Resource.SERVICES, "targeted")
    prod.delete(Resource.ENDPOINTSLICES, "all-a")
    prod.apply("late", a_service(cluster_ips=("10.0.3.1",), created_at=_NEWEST))
    prod.compact()


def _alone(world: World) -> None:
    """Slices without a Service, and a Service that is left out: keys that never lead to anything."""
    prod = world.clusters["prod"]
    prod.apply("nobody", an_endpoints("10.1.9.1", service="nobody"), slice_name="nobody-a")
    prod.apply("nobody", an_endpoints("10.1.9.2", service="nobody"), slice_name="nobody-b")
    prod.apply("hidden", a_service(annotations={"kubesync.io/exclude": "true"}))
    prod.apply("hidden", an_endpoints("10.1.9.3", service="hidden"), slice_name="hidden-a")
    world.clusters["edge"].apply("nobody", an_endpoints("10.8.9.1", service="nobody"))


def _alone_no_more(world: World) -> None:
    prod = world.clusters["prod"]
    prod.delete(Resource.ENDPOINTSLICES, "nobody-a")
    prod.delete(Resource.ENDPOINTSLICES, "hidden-a")
    prod.delete(Resource.SERVICES, "hidden")
    world.clusters["edge"].delete(Resource.ENDPOINTS, "nobody")


def _other_ttl(world: World) -> None:
    world.configure("prod", ttl=90)


def _third_lets_go(world: World) -> None:
    edge = world.clusters["edge"]
    edge.apply("third", a_service(cluster_ips=("10.9.2.3",), created_at=_NEWEST))
    edge.apply("web", an_endpoints("10.8.1.1", "10.8.1.2", ports=(Port("http", "TCP", 8081),), service="web"))
    world.clusters["prod"].apply(
        "web", a_service(cluster_ips=("10.0.1.1",), annotations={"hostname": "shop.example.com"}, created_at=_OLD)
    )


def _all_at_once(world: World) -> None:
    """Deleted and made again within one window, changed and changed back, deleted for good."""
    prod = world.clusters["prod"]
    prod.delete(Resource.SERVICES, "ext")
    prod.apply("ext", a_service("ExternalName", external_name="again.example.org", created_at=_NEWEST))
    prod.apply("late", a_service(cluster_ips=("10.0.3.9",), created_at=_NEWEST))
    prod.apply("late", a_service(cluster_ips=("10.0.3.1",), created_at=_NEWEST))
    prod.delete(Resource.SERVICES, "first")
    prod.delete(Resource.SERVICES, "db")
    prod.delete(Resource.ENDPOINTSLICES, "db-a")


_STEPS: tuple[Step, ...] = (
    Step("nothing yet"),
    Step("services come", _begin),
    Step("addresses come", _addresses_come),
    Step("hand-over", hand_over=True),
    Step("three want one name", _fight),
    Step("types change", _types_change),
    Step("hand-over", hand_over=True),
    Step("the winner lets go", _winner_lets_go),
    Step("back again under the same name", _back_again),
    Step("the second lets go", _second_lets_go),
    Step("hand-over", hand_over=True),
    Step("a slice moves", _slice_moves),
    Step("objects vanish unseen", _gone_unseen),
    Step("hand-over", hand_over=True),
    Step("another TTL", _other_ttl),
    Step("the third lets go", _third_lets_go),
    Step("hand-over", hand_over=True),
    Step("much at once", _all_at_once),
    Step("some lead to nothing", _alone),
    Step("hand-over", hand_over=True),
    Step("and are gone again", _alone_no_more),
)
STORY = Story("changes", a_world, _STEPS, FOREIGN)
