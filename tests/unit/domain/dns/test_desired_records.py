"""Record sets by kind of Service: each row of the table of docs/dns.md, zones, SRV, aliases."""

from __future__ import annotations

import pytest

from harness.seen.builders import a_key, a_service, an_endpoints, plain, rules
from kubesync.domain.dns.desired import Desired, DnsRules, desired
from kubesync.domain.dns.elb_zones import elb_zone_id
from kubesync.domain.dns.records import AliasTarget, RecordKey, RecordSet, Zone
from kubesync.domain.objects import EndpointsObject, Service, ServicePort

NAME = "web.shop.svc.prod.example.com"
A, AAAA, CNAME, SRV = f"{NAME} A", f"{NAME} AAAA", f"{NAME} CNAME", f"_http._tcp.{NAME} SRV"
SRV_VALUE = f"0 100 80 {NAME}."
NLB = "k8s-web-0123456789abcdef.elb.eu-west-1.amazonaws.com"


def plan(service: Service | None, *endpoints: EndpointsObject, using: DnsRules | None = None) -> Desired:
    return desired(a_key(), service, endpoints, using or rules())


def codes(found: Desired) -> list[tuple[str, str]]:
    return [(problem.code, problem.subject) for problem in found.problems]


def test_absent_service_wants_nothing_known() -> None:
    for endpoints in (None, (), [an_endpoints("10.1.0.1", truncated=True)]):
        assert desired(a_key(), None, endpoints, rules()) == Desired({}, {}, ())


@pytest.mark.parametrize("type_", ["ClusterIP", "NodePort"])
def test_cluster_ips_are_published_by_family(type_: str) -> None:
    found = plan(a_service(type_, cluster_ips=["FD00::0:5", "10.0.0.1"]))

    assert found.records == {
        RecordKey("Z1", f"_http._tcp.{NAME}", "SRV"): RecordSet(60, (SRV_VALUE,)),
        RecordKey("Z1", NAME, "A"): RecordSet(60, ("10.0.0.1",)),
        RecordKey("Z1", NAME, "AAAA"): RecordSet(60, ("fd00::5",)),
    }
    assert found.problems == ()


def test_srv_stands_for_named_ports_only_and_in_lower_case() -> None:
    ports = [ServicePort("DNS", "UDP", 53), ServicePort("dns-tcp", "TCP", 53), ServicePort("", "TCP", 80)]

    assert plain(plan(a_service(ports=ports)).records) == {
        f"_dns-tcp._tcp.{NAME} SRV": [f"0 100 53 {NAME}."],
        f"_dns._udp.{NAME} SRV": [f"0 100 53 {NAME}."],
        A: ["10.0.0.1"],
    }


def test_srv_can_be_switched_off() -> None:
    assert plain(plan(a_service(), using=rules(srv=False)).records) == {A: ["10.0.0.1"]}
    assert plain(plan(a_service(headless=True), an_endpoints("10.1.0.1"), using=rules(srv=False)).records) == {
        A: ["10.1.0.1"]
    }


def test_cluster_ip_without_address_has_neither_address_nor_srv() -> None:
    assert plain(plan(a_service(cluster_ips=[""])).records) == {}


def test_load_balancer_publishes_its_addresses() -> None:
    service = a_service("LoadBalancer", ingress_ips=["203.0.113.11", "203.0.113.9", "2001:db8::10"])

    assert plain(plan(service).records) == {
        A: ["203.0.113.9", "203.0.113.11"],
        AAAA: ["2001:db8::10"],
        SRV: [SRV_VALUE],
    }


def test_load_balancer_with_host_names_only_is_cname_of_first_without_srv() -> None:
    service = a_service("LoadBalancer", ingress_hostnames=["B.example.org", "a.example.org."])

    assert plain(plan(service).records) == {CNAME: ["a.example.org."]}


def test_load_balancer_addresses_win_over_host_names() -> None:
    service = a_service("LoadBalancer", ingress_ips=["203.0.113.9"], ingress_hostnames=["a.example.org"])

    assert plain(plan(service).records) == {A: ["203.0.113.9"], SRV: [SRV_VALUE]}


def test_pending_load_balancer_publishes_nothing() -> None:
    found = plan(a_service("LoadBalancer", annotations={"hostname": "shop.example.com"}))

    assert (found.records, found.problems) == ({}, ())


def test_load_balancer_publishes_cluster_ips_where_asked() -> None:
    service = a_service("LoadBalancer", ingress_hostnames=["a.example.org"])

    assert plain(plan(service, using=rules(load_balancer_cluster_ips=True)).records) == {
        A: ["10.0.0.1"],
        SRV: [SRV_VALUE],
    }


def test_load_balancer_with_bad_status_is_reported_and_rest_published() -> None:
    found = plan(a_service("LoadBalancer", ingress_ips=["203.0.113.9", "203.0.113.999x!"]))

    assert plain(found.records) == {A: ["203.0.113.9"], SRV: [SRV_VALUE]}
    assert codes(found) == [("InvalidStatus", "203.0.113.999x!")]


def test_external_name_is_cname() -> None:
    service = a_service("ExternalName", external_name="Docs.Partner.example.org")

    assert plain(plan(service).records) == {CNAME: ["docs.partner.example.org."]}


@pytest.mark.parametrize("address", ["192.0.2.1", "192.0.2.1.", "2001:db8::1"])
def test_external_name_that_is_an_address_is_reported_and_not_published(address: str) -> None:
    found = plan(a_service("ExternalName", external_name=address))

    assert found.records == {}
    assert codes(found) == [("ExternalNameIsAddress", address)]


def test_external_name_that_is_no_name_is_reported() -> None:
    found = plan(a_service("ExternalName", external_name="not a name"))

    assert found.records == {}
    assert codes(found) == [("InvalidExternalName", "not a name")]


def test_external_name_of_itself_is_reported() -> None:
    found = plan(a_service("ExternalName", external_name=NAME))

    assert found.records == {}
    assert codes(found) == [("CnameLoop", NAME)]


def test_i5_endpoints_unknown_leaves_headless_records_and_all_upstreams_unknown() -> None:
    known = desired(a_key(), a_service(), None, rules())
    headless = desired(a_key(), a_service(headless=True), None, rules())

    assert plain(known.records) == {A: ["10.0.0.1"], SRV: [SRV_VALUE]}
    assert known.upstreams is None
    assert headless == Desired(None, None, ())


def test_name_is_published_in_every_zone_with_longest_suffix() -> None:
    zones = (
        Zone("Zpublic", "prod.example.com"),
        Zone("Zprivate", "prod.example.com", private=True),
        Zone("Zshort", "example.com"),
    )
    service = a_service(ports=(), annotations={"hostname": "shop.example.com"})

    assert plain(plan(service, using=rules(zones=zones)).records, zones=True) == {
        f"Zpublic {A}": ["10.0.0.1"],
        f"Zprivate {A}": ["10.0.0.1"],
        "Zshort shop.example.com A": ["10.0.0.1"],
    }


def test_name_that_fits_no_zone_is_reported_once_and_others_published() -> None:
    service = a_service(annotations={"hostname": "shop.example.org,shop.example.com"})
    found = plan(service)
    nowhere = plan(a_service(), using=rules(zones=()))

    assert plain(found.records) == {A: ["10.0.0.1"], SRV: [SRV_VALUE], "shop.example.com A": ["10.0.0.1"]}
    assert codes(found) == [("NoZone", "shop.example.org")]
    assert nowhere.records == {}
    assert codes(nowhere) == [("NoZone", NAME)]


def test_address_may_stand_at_apex_and_cname_may_not() -> None:
    apex = {"hostname": "example.com"}
    addresses = plan(a_service(ports=(), annotations=apex))
    host = plan(a_service("LoadBalancer", ingress_hostnames=["a.example.org"], annotations=apex))

    assert plain(addresses.records) == {A: ["10.0.0.1"], "example.com A": ["10.0.0.1"]}
    assert plain(host.records) == {CNAME: ["a.example.org."]}
    assert codes(host) == [("CnameAtApex", "example.com")]


def test_template_names_the_service() -> None:
    found = plan(a_service(ports=()), using=rules(template="{service}-{namespace}.{domain}"))

    assert plain(found.records) == {"web-shop.prod.example.com A": ["10.0.0.1"]}


def test_illegal_service_name_is_reported_and_not_published() -> None:
    found = plan(a_service(annotations={"hostname": "shop.example.com"}), using=rules(template="{nonsense}.{domain}"))

    assert plain(found.records) == {"shop.example.com A": ["10.0.0.1"]}
    assert codes(found) == [("InvalidName", "{nonsense}.prod.example.com")]


def test_port_name_too_long_for_a_label_is_reported_and_left_out() -> None:
    found = plan(a_service(ports=[ServicePort("p" * 63, "TCP", 80), ServicePort("http", "TCP", 81)]))

    assert plain(found.records) == {A: ["10.0.0.1"], SRV: [f"0 100 81 {NAME}."]}
    assert codes(found) == [("InvalidName", f"_{'p' * 63}._tcp.{NAME}")]


def test_alias_stands_for_cname_of_aws_load_balancer_also_at_apex() -> None:
    service = a_service("LoadBalancer", ingress_hostnames=[NLB.upper()], annotations={"hostname": "example.com"})
    alias = RecordSet(None, (), alias=AliasTarget("Z2IFOLAFXWLO4F", NLB, evaluate_health=True))

    found = plan(service, using=rules(load_balancer_alias=True))

    assert found.records == {
        RecordKey("Z1", f"_http._tcp.{NAME}", "SRV"): RecordSet(60, (SRV_VALUE,)),
        RecordKey("Z1", "example.com", "A"): alias,
        RecordKey("Z1", "example.com", "AAAA"): alias,
        RecordKey("Z1", NAME, "A"): alias,
        RecordKey("Z1", NAME, "AAAA"): alias,
    }
    assert found.problems == ()


def test_alias_falls_back_to_cname() -> None:
    unknown = "name.elb.xx-nowhere-1.amazonaws.com"
    found = plan(a_service("LoadBalancer", ingress_hostnames=[unknown]), using=rules(load_balancer_alias=True))
    not_asked = plan(a_service("LoadBalancer", ingress_hostnames=[NLB]))
    external = plan(a_service("ExternalName", external_name=NLB), using=rules(load_balancer_alias=True))

    assert plain(found.records) == {CNAME: [f"{unknown}."]}
    assert plain(not_asked.records) == {CNAME: [f"{NLB}."]}
    assert plain(external.records) == {CNAME: [f"{NLB}."]}


@pytest.mark.parametrize(
    ("host", "zone_id"),
    [
        ("a1b2c3-123456789.eu-west-1.elb.amazonaws.com", "Z32O12XQLNTSW2"),
        ("internal-a1b2c3-123456789.eu-west-1.elb.amazonaws.com", "Z32O12XQLNTSW2"),
        ("dualstack.a1b2c3-123456789.eu-west-1.elb.amazonaws.com", "Z32O12XQLNTSW2"),
        ("a1b2c3-123456789.ap-east-2.elb.amazonaws.com", "Z02789141MW7T1WBU19PO"),
        ("a1b2c3.elb.ap-southeast-6.amazonaws.com", "Z01392953RKV2Q3RBP0KU"),
        ("dualstack.a1b2c3-123456789.us-east-1.elb.amazonaws.com", "Z35SXDOTRQ7X7K"),
        ("name-0123456789abcdef.elb.us-east-1.amazonaws.com", "Z26RNL4JYFTOTI"),
        ("name-123.cn-north-1.elb.amazonaws.com.cn", "Z1GDH35T77C1KE"),
        ("name-123.elb.cn-north-1.amazonaws.com.cn", "Z3QFB96KMJ7ED6"),
        ("name-123.cn-north-1.elb.amazonaws.com", None),
        ("name-123.eu-west-1.elb.amazonaws.com.cn", None),
        ("eu-west-1.elb.amazonaws.com", None),
        ("name-123.mars-1.elb.amazonaws.com", None),
        ("name-123.eu-west-1.elb.amazonaws.com.evil.example", None),
        ("ec2-203-0-113-1.eu-west-1.compute.amazonaws.com", None),
    ],
)
def test_elb_zone_id_of_host_name(host: str, zone_id: str | None) -> None:
    assert elb_zone_id(host) == zone_id


def test_values_are_first_that_fit_in_order_and_reported() -> None:
    found = plan(a_service(cluster_ips=[f"10.0.{i // 256}.{i % 256}" for i in range(401, 0, -1)], ports=()))

    values = plain(found.records)[A]
    assert (len(values), values[0], values[-1]) == (400, "10.0.0.1", "10.0.1.144")
    assert [(p.code, p.subject, p.message) for p in found.problems] == [
        (
            "TooManyValues",
            f"{NAME} A",
            "only the first 400 of 401 values are published: at most 400 values and 15500 characters fit",
        )
    ]
