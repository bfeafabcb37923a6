"""``kubesync explain`` of a DNS name and of an address, and ``records --live``."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.fakes.route53 import wire_change

PAY = {"external-dns.alpha.kubernetes.io/hostname": "pay.prod.example.com"}
EVIL = {"external-dns.alpha.kubernetes.io/hostname": "www.example.com"}
PENDING = {"external-dns.alpha.kubernetes.io/hostname": "pending.prod.example.com"}
PARTLY = {"external-dns.alpha.kubernetes.io/hostname": "partly.prod.example.com,foo.example.com"}
META = {
    "external-dns.alpha.kubernetes.io/hostname": "meta.prod.example.com",
    "external-dns.alpha.kubernetes.io/target": "169.254.169.254",
}


def change_by_hand(stack: CliStack, name: str, value: str) -> None:
    change: Any = wire_change("UPSERT", name, "A", [value], ttl=5)
    stack.boto().client("route53", endpoint_url=stack.route53.url).change_resource_record_sets(
        HostedZoneId=stack.zone_id, ChangeBatch={"Changes": [change]}
    )


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """first and second want a name; evil wants one outside the cluster's domain; a foreign set; drifted, changed by hand; two without an address."""
    with a_cli_stack(in_memory=True) as made:
        cluster = made.api.cluster
        cluster.deploy("shop", "first", 1)
        spec = {"ports": [{"port": 80}], "clusterIP": "10.68.0.31", "selector": {"app": "first"}}
        cluster.expose("shop", "first", spec, annotations=PAY)
        cluster.expose("shop", "second", {"ports": [{"port": 80}]}, annotations=PAY)
        cluster.expose("shop", "evil", {"ports": [{"port": 80}]}, annotations=EVIL)
        cluster.expose("shop", "drifted", {"ports": [{"port": 80}]})
        cluster.expose("shop", "pending", {"type": "LoadBalancer", "ports": [{"port": 80}]}, annotations=PENDING)
        cluster.expose("shop", "partly", {"type": "LoadBalancer", "ports": [{"port": 80}]}, annotations=PARTLY)
        cluster.expose("shop", "meta", {"ports": [{"port": 80}]}, annotations=META)
        change_by_hand(made, "mail.example.com", "192.0.2.99")
        assert made.add_cluster("prod").status == 0
        made.session()
        change_by_hand(made, "drifted.shop.svc.prod.example.com", "192.0.2.98")
        yield made


def test_name_says_its_owner_who_waits_and_what_exists(stack: CliStack) -> None:
    ran = stack.call("explain", "Pay.prod.example.com.", "-o", "json")

    assert ran.status == 0
    assert ran.json == {
        "name": "pay.prod.example.com",
        "exists": True,
        "zones": [
            {
                "zone": stack.zone_id, "zone_name": "example.com", "private": False, "owners": ["prod/shop/first"],
                "waiting": ["prod/shop/second"], "problem": None,
                "current": [{"type": "A", "ttl": 30, "values": ["10.68.0.31"], "ours": True}],
            }
        ],
        "services": ran.json["services"],
        "why": ran.json["why"],
    }  # fmt: skip
    assert [(row["service"], row["state"]) for row in ran.json["services"]] == [
        ("prod/shop/first", "applied"), ("prod/shop/second", "waiting"),
    ]  # fmt: skip


def test_foreign_record_set_is_said_to_be_nobodys_here(stack: CliStack) -> None:
    ran = stack.call("explain", "mail.example.com")

    assert ran.status == 0
    whose = "belongs to no Service now: not created by kubesync, or kept when its cluster was removed; kubesync leaves it alone"
    assert f"exists A 192.0.2.99 ttl 5 ({whose})" in " ".join(ran.out.split())
    assert "owner     none" in ran.out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("www.example.com", "prod/shop/evil: OutsideDomains: "),
        ("www.example.com", "cluster prod would not give it to a Service: "),
        (
            "new.prod.example.com",
            "cluster prod would give it to a Service with the annotation external-dns.kubernetes.io/hostname: new.",
        ),
        ("frst.shop.svc.prod.example.com", "names that are like it: first.shop.svc.prod.example.com"),
        ("a.example.net", "no registered zone holds the name: the zones are example.com"),
        (
            "pending.prod.example.com",
            "prod/shop/pending wants the name: the load balancer is pending: it has no address to publish yet;",
        ),
        ("pending.shop.svc.prod.example.com", "prod/shop/pending wants the name: the load balancer is pending"),
        (
            "meta.prod.example.com",
            "prod/shop/meta wants the name: AddressNotAllowed 169.254.169.254: link-local: left out",
        ),
        ("partly.prod.example.com", "prod/shop/partly wants the name: the load balancer is pending: it has no address"),
        ("first", "a Service is asked for by its key: prod/shop/first"),
        ("nosuch", "a Service is asked for by its key: cluster/namespace/name"),
        ("new.prod.example.com", "cluster prod reads no Ingress: its sources are service"),
    ],
)
def test_missing_name_says_why_it_is_missing(stack: CliStack, name: str, said: str) -> None:
    ran = stack.call("explain", name)

    assert (ran.status, ran.err) == (1, "")
    assert said in ran.out
    assert ("no Service that kubesync knows asks for the name" in ran.out) == (name.split(".")[0] in ("new", "frst"))


def test_address_leads_to_its_service_its_names_and_its_upstreams(stack: CliStack) -> None:
    (pod,) = [node["ip"] for node in stack.call("upstreams", "--service", "shop/first", "-o", "json").json[0]["nodes"]]

    of_service = stack.call("explain", "10.68.0.31", "-o", "json").json
    of_pod = stack.call("explain", pod, "-o", "json").json
    unknown = stack.call("explain", "10.9.9.9")

    assert of_service["objects"] == [{"service": "prod/shop/first", "kind": "Service"}]
    assert sorted(row["name"] for row in of_service["services"]) == [
        "first.shop.svc.prod.example.com",
        "pay.prod.example.com",
    ]
    assert [node["upstream"] for node in of_pod["upstreams"]] == ["prod/shop/first/80/TCP"]
    assert of_pod["why"] == ["no record set has the address: `kubesync explain prod/shop/first` says more"]
    assert (unknown.status, "no Service, pod or record set that kubesync knows has the address" in unknown.out) == (
        1,
        True,
    )


@pytest.mark.parametrize("columns", ["80", "160", ""])
def test_explanation_of_a_name_fits_the_screen(stack: CliStack, columns: str) -> None:
    for asked in ("pay.prod.example.com", "www.example.com", "10.68.0.31"):
        ran = stack.call("explain", asked, COLUMNS=columns)
        assert not columns or max(map(len, ran.out.splitlines())) <= int(columns)


def test_address_of_a_static_node_leads_to_its_named_upstream(stack: CliStack) -> None:
    assert stack.call("upstream", "add", "edge", "--static", "192.0.2.44:80").status == 0
    stack.session()
    ran = stack.call("explain", "192.0.2.44", "-o", "json")

    assert ran.json["why"] == ["no record set has the address: `kubesync upstream show edge` says more"]
    assert stack.call("upstream", "show", "edge").status == 0


def test_live_says_what_the_zone_holds_now(stack: CliStack) -> None:
    ran = stack.call("records", "--live", "--type", "A", "-o", "json")

    found = {row["name"]: row["in_the_zone"] for row in ran.json}
    assert found["first.shop.svc.prod.example.com"] == "the same"
    assert found["drifted.shop.svc.prod.example.com"] == "192.0.2.98 ttl 5"
    assert "in_the_zone" not in stack.call("records", "-o", "json").json[0]


@pytest.mark.parametrize("form", ["table", "json"])
def test_zone_that_cannot_be_read_is_said_once_and_fails(stack: CliStack, form: str) -> None:
    ran = stack.call("records", "--live", "-o", form, AWS_ENDPOINT_URL_ROUTE_53="http://127.0.0.1:1")

    (line,) = ran.lines
    assert line.startswith(f"zone {stack.zone_id} cannot be read: Route 53 could not be reached")
    assert ran.status == 1
    if form == "json":
        assert all(row["in_the_zone"].startswith("not known: Route 53") for row in ran.json if row["type"])
    else:
        assert "drifted.shop.svc.prod.example.com" in ran.out
        assert "could not be reached" not in ran.out


def test_explanation_of_an_unknown_service_names_the_disabled_cluster(stack: CliStack) -> None:
    assert stack.call("cluster", "disable", "prod").status == 0
    try:
        ran = stack.call("explain", "prod/shop/later")
    finally:
        assert stack.call("cluster", "enable", "prod").status == 0

    assert ran.status == 1
    assert ran.err.endswith("; the cluster is disabled: `kubesync cluster enable prod`\n")


def test_wait_for_a_service_without_record_sets_leads_to_its_explanation(stack: CliStack) -> None:
    ran = stack.call("wait", "prod/shop/pending", "--timeout", "5")

    assert ran.status == 0
    assert (
        ran.err == "prod/shop/pending is known; it has no record set: `kubesync explain prod/shop/pending` says why\n"
    )


def test_wait_for_a_service_whose_name_is_refused_fails(stack: CliStack) -> None:
    ran = stack.call("wait", "prod/shop/evil", "--timeout", "0.1")

    assert ran.status == 1
    assert ran.err.startswith(
        "kubesync: prod/shop/evil is not published after 0.1 s: OutsideDomains www.example.com: "
    ), ran.err
