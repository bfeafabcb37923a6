"""Which addresses get into records and upstreams: whole sessions on the strict zone, and what an update finds there (I9)."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service, an_endpoint, an_endpoints
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.key_states import RULES_VERSION
from kubesync.domain.dns.records import Node, RecordKey, RecordSet
from kubesync.domain.objects import Port, Service

METADATA: Final = "169.254.169.254"
AWS: Final = "fd00:ec2::254"
WEB: Final = "web.shop.svc.prod.example.com"
UPSTREAM: Final = "prod/shop/web/80/TCP"


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment()
    yield made
    made.close()


def nodes(deployment: Deployment, upstream: str = UPSTREAM) -> list[tuple[str, int]]:
    found = UpstreamTable(deployment.store).read(upstream)
    return [] if found is None or found.deleted else [(str(node["ip"]), int(node["port"])) for node in found.nodes]


def reported(deployment: Deployment, name: str = "web") -> dict[str, str]:
    """Messages by subject; of one subject the last."""
    found = [problem for problem in deployment.state(name).problems if problem.code == "AddressNotAllowed"]
    return {problem.subject: problem.message for problem in found}


def as_the_release_before_left_it(deployment: Deployment, address: str, node: Node, *, service: Service) -> None:
    """The name leads to an address, and the upstream has a node beside ``10.1.0.1``, that today nobody newly gets."""
    deployment.apply("web", a_service(annotations={"target": "192.0.2.1"}))
    deployment.apply("web", an_endpoints("10.1.0.1"), slice_name="web-1")
    deployment.run_session()
    state = deployment.state("web")
    key, stands = RecordKey(ZONE_ID, WEB, "A"), RecordSet(60, (address,))
    table = UpstreamTable(deployment.store)
    had = (Node("10.1.0.1", 8080, True), node)
    upstream, actions = table.put(UPSTREAM, state.upstreams[UPSTREAM], had, 0.0)
    deployment.store.transact(actions, "an older upstream")
    deployment.rewrite("web", intended={key: stands}, applied={key: stands}, upstreams={UPSTREAM: upstream})
    deployment.by_hand("UPSERT", "web", "A", address)
    listeners = ListenerTable(deployment.store)
    for resource, checkpoint in listeners.checkpoints("prod").items():
        basis = replace(checkpoint.basis, rules=RULES_VERSION - 1)
        older = replace(checkpoint, basis=basis, version=checkpoint.version + 1)
        deployment.store.transact([listeners.put_checkpoint("prod", resource, older, "tx")], f"older {resource}")
    deployment.apply("web", service)
    deployment.apply("web", an_endpoints("10.1.0.1", an_endpoint(node.ip)), slice_name="web-1")


NEW: Final[dict[str, tuple[Service, dict[str, str]]]] = {
    "target": (a_service(annotations={"target": METADATA}), {METADATA: "link-local: left out"}),
    "target in IPv6": (
        a_service(annotations={"target": f"::ffff:{METADATA},{AWS}"}),
        {METADATA: "link-local: left out", AWS: "reserved for services of AWS: left out"},
    ),
    "status": (
        a_service("LoadBalancer", ingress_ips=("127.0.0.1", "ff02::1")),
        {"127.0.0.1": "loopback: left out", "ff02::1": "multicast: left out"},
    ),
    "cluster IPs": (a_service(cluster_ips=("0.0.0.0", "::1")), {"0.0.0.0": "unspecified: left out", "::1": "loopback: left out"}),
    "endpoints": (a_service(headless=True), {}),
}  # fmt: skip


@pytest.mark.parametrize("source", NEW)
def test_i9_nobody_is_newly_pointed_at_such_an_address(deployment: Deployment, source: str) -> None:
    service, expected = NEW[source]
    deployment.start()
    deployment.apply("web", service)
    deployment.apply("web", an_endpoints(METADATA, "fe80::1", AWS), slice_name="web-1")
    deployment.pass_time()
    assert deployment.sets() == {}
    assert nodes(deployment) == []
    of_endpoints = {
        METADATA: "link-local: left out",
        "fe80::1": "link-local: left out",
        AWS: "reserved for services of AWS: left out",
    }
    assert reported(deployment) == of_endpoints | expected
    # One that is let in beside them gets through.
    deployment.apply("web", an_endpoints("10.1.0.1", METADATA), slice_name="web-1")
    deployment.pass_time()
    assert nodes(deployment) == [("10.1.0.1", 8080)]
    assert deployment.sets() == ({"web A": ("10.1.0.1",)} if source == "endpoints" else {})


def test_i6_i9_update_leaves_what_stands_and_reports_it(deployment: Deployment) -> None:
    service = a_service(annotations={"target": METADATA})
    as_the_release_before_left_it(deployment, METADATA, Node(AWS, 8080, True), service=service)
    sent, version = len(deployment.sent), deployment.state("web").version
    stood = [("10.1.0.1", 8080), (AWS, 8080)]
    assert nodes(deployment) == stood
    for _ in range(2):
        assert deployment.run_session().clean
        assert (len(deployment.sent), deployment.sets(), nodes(deployment)) == (sent, {"web A": (METADATA,)}, stood)
        assert reported(deployment) == {
            METADATA: "link-local: it stays where it stands, and is published nowhere else",
            AWS: "reserved for services of AWS: it stays where it stands, and is published nowhere else",
        }
        assert deployment.state("web").version == version + 1  # reported, once
    deployment.start()
    deployment.resync()
    assert (len(deployment.sent), deployment.sets(), nodes(deployment)) == (sent, {"web A": (METADATA,)}, stood)
    assert deployment.end().clean


def test_i9_what_stands_is_no_way_in_for_more(deployment: Deployment) -> None:
    service = a_service(annotations={"target": METADATA})
    as_the_release_before_left_it(deployment, METADATA, Node(AWS, 8080, True), service=service)
    deployment.start()
    ports = (Port("http", "TCP", 80), Port("http", "TCP", 81))
    wide = a_service(ports=ports, annotations={"target": f"{METADATA},127.0.0.1", "hostname": "www.example.com"})
    deployment.apply("web", wide)
    deployment.pass_time()
    # Neither another address at the name, nor another name, nor another upstream; what stands goes on.
    assert deployment.sets() == {"web A": (METADATA,)}
    assert nodes(deployment) == [("10.1.0.1", 8080), (AWS, 8080)]
    assert nodes(deployment, "prod/shop/web/81/TCP") == [("10.1.0.1", 8080)]
    # An upstream that changes is planned by the rule.
    deployment.apply("web", an_endpoints("10.1.0.1", AWS, "fd00:ec2::23"), slice_name="web-1")
    deployment.pass_time()
    assert nodes(deployment) == [("10.1.0.1", 8080)]
    # What is asked for no more is let go, and does not come back.
    deployment.apply("web", a_service(annotations={"target": "192.0.2.1"}))
    deployment.pass_time()
    assert deployment.sets() == {"web A": ("192.0.2.1",)}
    deployment.apply("web", wide)
    deployment.pass_time()
    assert deployment.sets() == {}
    assert deployment.end().clean


def test_i9_what_stands_in_one_zone_is_new_in_another_of_the_same_name(deployment: Deployment) -> None:
    """A zone for the inside, and one for everybody that is added later."""
    service = a_service(annotations={"target": f"{METADATA},192.0.2.1"})
    deployment.world.configure("prod", zones=(ZoneReference(id=ZONE_ID, name="example.com", private=True),))
    as_the_release_before_left_it(deployment, METADATA, Node(AWS, 8080, True), service=service)
    deployment.run_session()
    assert deployment.sets() == {"web A": (METADATA, "192.0.2.1")}
    deployment.route53.create("Z2", "example.com")
    inside = ZoneReference(id=ZONE_ID, name="example.com", private=True)
    deployment.world.configure("prod", zones=(inside, ZoneReference(id="Z2", name="example.com")))
    deployment.run_session()
    assert deployment.sets() == {"web A": (METADATA, "192.0.2.1")}
    assert deployment.route53.records("Z2")[RecordKey("Z2", WEB, "A")].values == ("192.0.2.1",)


def test_i9_name_that_is_waited_for_is_new_when_it_comes(deployment: Deployment) -> None:
    """A key that stood in line for a name at the update has nothing there."""
    deployment.apply("first", a_service(annotations={"hostname": "www.example.com"}))
    deployment.run_session()
    deployment.apply("web", a_service(annotations={"hostname": "www.example.com", "target": "127.0.0.1"}))
    deployment.run_session()
    deployment.delete("first")
    deployment.run_session()
    assert deployment.sets() == {}
    assert not deployment.state("web").claims


def test_networks_of_a_cluster_hold_for_all_sources_and_a_change_of_them_counts_at_once() -> None:
    deployment = Deployment(srv=True)
    port = Port("http", "TCP", 80)
    deployment.apply("lb", a_service("LoadBalancer", ports=(), ingress_ips=("192.0.2.1", "198.51.100.1")))
    deployment.apply("to", a_service(ports=(), annotations={"target": "198.51.100.2,lb.example.net"}))
    deployment.apply("web", a_service(headless=True, ports=(port,)))
    pods = an_endpoints(an_endpoint("10.1.0.1", hostname="a"), an_endpoint("10.2.0.1", hostname="b"))
    deployment.apply("web", pods, slice_name="web-1")
    deployment.run_session()
    assert deployment.sets()["lb A"] == ("192.0.2.1", "198.51.100.1")
    assert deployment.sets()["to A"] == ("198.51.100.2",)
    assert len(deployment.sets()["_http._tcp.web SRV"]) == 2
    assert nodes(deployment) == [("10.1.0.1", 8080), ("10.2.0.1", 8080)]
    networks = {"endpoint_cidrs": ("10.1.0.0/16",), "target_net_filter": ("192.0.2.0/24", "10.0.0.0/8")}
    deployment.world.configure("prod", **networks)
    deployment.run_session()
    assert deployment.sets() == {
        "lb A": ("192.0.2.1",),
        "to CNAME": ("lb.example.net.",),
        "web A": ("10.1.0.1",),
        "a.web A": ("10.1.0.1",),
        "_http._tcp.web SRV": (f"0 100 8080 a.{WEB}.",),
    }
    assert nodes(deployment) == [("10.1.0.1", 8080)]
    assert {name: reported(deployment, name) for name in ("lb", "to", "web")} == {
        "lb": {"198.51.100.1": "outside --target-net-filter: left out"},
        "to": {"198.51.100.2": "outside --target-net-filter: left out"},
        "web": {"10.2.0.1": "outside --endpoint-cidrs: left out"},
    }
    deployment.world.configure("prod", **dict.fromkeys(networks, ()))
    deployment.run_session()
    assert deployment.sets()["lb A"] == ("192.0.2.1", "198.51.100.1")
    assert nodes(deployment) == [("10.1.0.1", 8080), ("10.2.0.1", 8080)]


_POOL: Final = (
    "127.0.0.1", METADATA, AWS, "::1", "fe80::9", "224.0.0.1", "0.0.0.0", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "255.255.255.255",
    "::127.0.0.1", "10.1.0.1", "192.0.2.1", "2001:db8::1", "fd00:ec3::1",
)  # fmt: skip
_LET_IN: Final = {"10.1.0.1", "192.0.2.1", "2001:db8::1", "fd00:ec3::1"}


@pytest.mark.parametrize("seed", range(3))
def test_i9_whatever_a_tenant_draws_only_what_is_let_in_stands(seed: int) -> None:
    chance = random.Random(seed)

    def some() -> tuple[str, ...]:
        return tuple(chance.sample(_POOL, chance.randint(1, 4)))

    deployment = Deployment(srv=True, domain_filter=("example.com",))
    deployment.start()
    for number in range(120):
        name = f"s{number % 6}"
        asks: dict[str, Any] = {"hostname": f"h{chance.randrange(4)}.example.com"} if chance.random() < 0.5 else {}
        asks |= {"internal-hostname": f"i{chance.randrange(4)}.example.com"} if chance.random() < 0.3 else {}
        asks |= {"target": ",".join(some())} if chance.random() < 0.5 else {}
        kind = chance.choice(("ClusterIP", "LoadBalancer"))
        wanted = a_service(
            kind, cluster_ips=some(), headless=chance.random() < 0.3 and kind == "ClusterIP", ingress_ips=some(), annotations=asks
        )  # fmt: skip
        deployment.apply(name, wanted)
        pods = an_endpoints(*(an_endpoint(ip, hostname=chance.choice(("", "a", "b"))) for ip in some()), service=name)
        deployment.apply(name, pods, slice_name=f"{name}-1")
        if number % 4 == 3:
            deployment.pass_time()
            published = {v for key, found in deployment.sets().items() if key.endswith((" A", " AAAA")) for v in found}
            assert published <= _LET_IN
            held = {ip for each in range(6) for ip, _ in nodes(deployment, f"prod/shop/s{each}/80/TCP")}
            assert held <= _LET_IN
            for key, found in deployment.sets().items():
                if key.endswith(" SRV"):
                    for value in found:
                        host = value.split()[-1].removesuffix(".").removesuffix(".shop.svc.prod.example.com")
                        assert {f"{host} A", f"{host} AAAA"} & deployment.sets().keys(), value
    assert deployment.sets(), "something is published"
    assert deployment.end().clean
    deployment.close()
