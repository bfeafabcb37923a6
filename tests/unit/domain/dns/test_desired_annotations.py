"""What annotations make of a Service's records."""

from __future__ import annotations

import pytest

from harness.seen.builders import a_key, a_service, an_endpoints, plain, rules
from kubesync.domain.dns.desired import Desired, DnsRules, desired
from kubesync.domain.objects import Service, ServicePort

NAME = "web.shop.svc.prod.example.com"
A, CNAME, SRV = f"{NAME} A", f"{NAME} CNAME", f"_http._tcp.{NAME} SRV"
SRV_VALUE = f"0 100 80 {NAME}."
NLB = "web-0123456789abcdef.elb.eu-west-1.amazonaws.com"


def plan(service: Service) -> Desired:
    return desired(a_key(), service, (), rules())


def codes(found: Desired) -> list[tuple[str, str]]:
    return [(problem.code, problem.subject) for problem in found.problems]


def test_hostname_gets_same_targets_without_srv_of_its_own() -> None:
    service = a_service(annotations={"hostname": "Shop.example.com., *.shop.example.com"})

    assert plain(plan(service).records) == {
        A: ["10.0.0.1"],
        SRV: [SRV_VALUE],
        "shop.example.com A": ["10.0.0.1"],
        "*.shop.example.com A": ["10.0.0.1"],
    }


def test_hostname_of_load_balancer_by_host_name_is_cname() -> None:
    service = a_service("LoadBalancer", ingress_hostnames=[NLB], annotations={"hostname": "shop.example.com"})

    assert plain(plan(service).records) == {CNAME: [f"{NLB}."], "shop.example.com CNAME": [f"{NLB}."]}


def test_hostname_of_external_name_is_cname() -> None:
    service = a_service("ExternalName", external_name="a.example.org", annotations={"hostname": "shop.example.com"})

    assert plain(plan(service).records) == {CNAME: ["a.example.org."], "shop.example.com CNAME": ["a.example.org."]}


def test_internal_hostname_gets_cluster_ips() -> None:
    service = a_service(
        "LoadBalancer", ingress_ips=["203.0.113.9"], annotations={"internal-hostname": "in.example.com"}
    )

    assert plain(plan(service).records) == {A: ["203.0.113.9"], SRV: [SRV_VALUE], "in.example.com A": ["10.0.0.1"]}


def test_internal_hostname_of_external_name_is_reported() -> None:
    found = plan(
        a_service("ExternalName", external_name="a.example.org", annotations={"internal-hostname": "in.example.com"})
    )

    assert plain(found.records) == {CNAME: ["a.example.org."]}
    assert codes(found) == [("NoClusterIp", "in.example.com")]


def test_name_wanted_by_both_is_the_union() -> None:
    both = {"hostname": "x.example.com", "internal-hostname": "x.example.com"}
    service = a_service("LoadBalancer", ingress_ips=["203.0.113.9", "2001:db8::9"], annotations=both)

    records = plain(plan(service).records)

    assert records["x.example.com A"] == ["10.0.0.1", "203.0.113.9"]
    assert records["x.example.com AAAA"] == ["2001:db8::9"]


def test_addresses_win_over_host_names_in_a_union() -> None:
    both = {"hostname": "x.example.com", "internal-hostname": "x.example.com"}
    service = a_service("LoadBalancer", ingress_hostnames=[NLB], annotations=both)

    assert plain(plan(service).records) == {CNAME: [f"{NLB}."], "x.example.com A": ["10.0.0.1"]}


def test_service_name_as_internal_hostname_brings_addresses_and_srv() -> None:
    service = a_service("LoadBalancer", ingress_hostnames=[NLB], annotations={"internal-hostname": NAME})

    assert plain(plan(service).records) == {A: ["10.0.0.1"], SRV: [SRV_VALUE]}


def test_target_replaces_targets_at_all_names_without_srv() -> None:
    service = a_service(
        annotations={
            "hostname": "x.example.com",
            "internal-hostname": "y.example.com",
            "target": "192.0.2.10,192.0.2.9,2001:DB8::1,192.0.2.9",
        }
    )

    assert plain(plan(service).records) == {
        f"{name} {kind}": values
        for name in (NAME, "x.example.com", "y.example.com")
        for kind, values in (("A", ["192.0.2.9", "192.0.2.10"]), ("AAAA", ["2001:db8::1"]))
    }


def test_target_addresses_win_over_host_names() -> None:
    assert plain(plan(a_service(annotations={"target": "b.example.org,192.0.2.1"})).records) == {A: ["192.0.2.1"]}


def test_target_host_names_are_cname_of_first() -> None:
    found = plan(a_service(annotations={"target": "B.example.org,a.example.org."}))

    assert plain(found.records) == {CNAME: ["a.example.org."]}


def test_target_that_is_aws_load_balancer_is_alias_where_asked() -> None:
    service = a_service(annotations={"target": NLB})
    alias = [f"ALIAS Z2IFOLAFXWLO4F {NLB}"]

    found = desired(a_key(), service, (), rules(load_balancer_alias=True))

    assert plain(found.records) == {A: alias, f"{NAME} AAAA": alias}


def test_target_publishes_pending_load_balancer_and_address_as_external_name() -> None:
    target = {"target": "192.0.2.1"}

    for service in (a_service("LoadBalancer", annotations=target), a_service("ExternalName", annotations=target)):
        found = plan(service)
        assert plain(found.records) == {A: ["192.0.2.1"]}
        assert found.problems == ()


def test_bad_target_is_reported_and_never_falls_back_to_the_replaced_ones() -> None:
    some = plan(a_service(annotations={"target": "192.0.2.1,no name"}))
    none = plan(a_service(annotations={"target": "no name"}))

    assert plain(some.records) == {A: ["192.0.2.1"]}
    assert plain(none.records) == {}
    assert codes(some) == codes(none) == [("InvalidTarget", "no name")]


def test_target_that_is_the_name_itself_is_reported() -> None:
    found = plan(a_service(annotations={"hostname": "x.example.com", "target": "x.example.com"}))

    assert plain(found.records) == {CNAME: ["x.example.com."]}
    assert codes(found) == [("CnameLoop", "x.example.com")]


@pytest.mark.parametrize(("text", "ttl"), [("1m30s", 90), ("120", 120), ("0", 60), ("soon", 60)])
def test_ttl_holds_for_all_record_sets(text: str, ttl: int) -> None:
    found = plan(a_service(annotations={"ttl": text, "hostname": "x.example.com"}))

    assert {at.type: record_set.ttl for at, record_set in (found.records or {}).items()} == {"A": ttl, "SRV": ttl}
    assert codes(found) == ([] if ttl != 60 else [("InvalidTtl", "external-dns.alpha.kubernetes.io/ttl")])


def test_default_ttl_is_30() -> None:
    assert DnsRules("prod", "prod.example.com", ()).default_ttl == 30


def test_excluded_service_wants_nothing_and_reports_nothing() -> None:
    service = a_service(annotations={"kubesync.io/exclude": "true", "ttl": "bad", "hostname": "bad name"})

    for endpoints in (None, [an_endpoints("10.1.0.1", truncated=True)]):
        assert desired(a_key(), service, endpoints, rules()) == Desired({}, {}, ())


def test_illegal_hostnames_are_reported_and_others_published() -> None:
    service = a_service(ports=(), annotations={"hostname": "ok.example.com,no name.example.com,a..example.com"})
    found = plan(service)

    assert plain(found.records) == {A: ["10.0.0.1"], "ok.example.com A": ["10.0.0.1"]}
    assert codes(found) == [("InvalidName", "a..example.com"), ("InvalidName", "no name.example.com")]


def test_cname_beside_srv_is_left_out_and_reported() -> None:
    owner = f"_http._tcp.{NAME}"
    service = a_service(
        "LoadBalancer",
        ingress_hostnames=[NLB],
        ports=[ServicePort("http", "TCP", 80)],
        annotations={"internal-hostname": NAME, "hostname": owner},
    )
    found = plan(service)

    assert plain(found.records) == {A: ["10.0.0.1"], SRV: [SRV_VALUE]}
    assert codes(found) == [("CnameConflict", owner)]
