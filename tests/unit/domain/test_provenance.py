"""By which rule or annotation each name is wanted, and where its values come from."""

from collections.abc import Sequence
from typing import Any

import pytest

from harness.seen.builders import KEY, a_service, an_endpoint, an_endpoints, rules
from kubesync.domain.objects import EndpointsObject, Port, Service
from kubesync.domain.sources.services import desired

OLD, NEW = "annotation external-dns.alpha.kubernetes.io/", "annotation external-dns.kubernetes.io/"
TEMPLATE = "template {service}.{namespace}.svc.{domain}"
WEB, SRV = "web.shop.svc.prod.example.com", "_http._tcp.web.shop.svc.prod.example.com"


def origins(
    service: Service, endpoints: Sequence[EndpointsObject] | None = (), **settings: Any
) -> dict[str, list[tuple[str, str]]]:
    found = desired(KEY, service, endpoints, rules(**settings)).origins
    return {name: [(origin.rule, origin.source) for origin in all_of_name] for name, all_of_name in found.items()}


CASES: list[tuple[str, Service, dict[str, Any], tuple[str, str]]] = [
    ("cluster IP", a_service(), {}, (TEMPLATE, "spec.clusterIPs")),
    ("node port", a_service("NodePort"), {}, (TEMPLATE, "spec.clusterIPs")),
    ("load balancer", a_service("LoadBalancer", ingress_ips=("192.0.2.1",)), {}, (TEMPLATE, "status.loadBalancer")),
    (
        "load balancer, cluster IPs wanted",
        a_service("LoadBalancer"),
        {"load_balancer_cluster_ips": True},
        (TEMPLATE, "spec.clusterIPs, by --load-balancer-cluster-ips"),
    ),
    ("external name", a_service("ExternalName", external_name="a.b"), {}, (TEMPLATE, "spec.externalName")),
    ("headless", a_service(headless=True), {}, (TEMPLATE, "ready endpoints")),
    (
        "headless, not ready too",
        a_service(headless=True, publish_not_ready=True),
        {},
        (TEMPLATE, "endpoints, ready or not"),
    ),
    ("target", a_service(annotations={"target": "192.0.2.7"}), {}, (TEMPLATE, f"{OLD}target")),
    (
        "own template",
        a_service(),
        {"template": "{service}-{namespace}.{domain}"},
        ("template {service}-{namespace}.{domain}", "spec.clusterIPs"),
    ),
]


@pytest.mark.parametrize(("service", "settings", "origin"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_own_name_says_where_its_values_come_from(
    service: Service, settings: dict[str, Any], origin: tuple[str, str]
) -> None:
    found = origins(service, **settings)

    own = "web-shop.prod.example.com" if "template" in settings else WEB
    assert found[own] == [origin]


def test_srv_is_wanted_for_named_ports() -> None:
    assert origins(a_service())[SRV] == [("named ports", "spec.ports")]
    assert origins(a_service(), srv=False).keys() == {WEB}


def test_name_of_an_annotation_says_under_which_prefix_it_was_found() -> None:
    assert origins(a_service(annotations={"hostname": "a.example.com"}))["a.example.com"] == [
        (f"{OLD}hostname", "spec.clusterIPs")
    ]
    both = {"external-dns.kubernetes.io/hostname": "b.example.com", "hostname": "a.example.com"}
    found = origins(a_service(annotations=both))
    assert found["b.example.com"] == [(f"{NEW}hostname", "spec.clusterIPs")]
    assert "a.example.com" not in found


def test_name_that_is_wanted_twice_has_both_origins() -> None:
    annotations = {"hostname": "a.example.com", "internal-hostname": "a.example.com"}
    service = a_service("LoadBalancer", ingress_ips=("192.0.2.1",), annotations=annotations)

    assert origins(service)["a.example.com"] == [
        (f"{OLD}hostname", "status.loadBalancer"),
        (f"{OLD}internal-hostname", "spec.clusterIPs"),
    ]


def test_internal_hostname_with_targets_leads_to_the_targets() -> None:
    annotations = {"internal-hostname": "i.example.com", "target": "192.0.2.7"}

    assert origins(a_service(annotations=annotations))["i.example.com"] == [(f"{OLD}internal-hostname", f"{OLD}target")]


def test_host_names_of_endpoints_and_their_srv_are_told_apart() -> None:
    pods = an_endpoints(an_endpoint("10.1.0.1", hostname="web-0"))
    found = origins(a_service(headless=True, ports=(Port("http", "TCP", 80),)), [pods])

    assert found == {
        WEB: [(TEMPLATE, "ready endpoints")],
        f"web-0.{WEB}": [("host names of endpoints", "ready endpoints")],
        SRV: [("named ports", "ready endpoints")],
    }


def test_what_is_left_out_has_no_origin() -> None:
    assert origins(a_service(annotations={"kubesync.io/exclude": "true"})) == {}
    assert origins(a_service(headless=True), None) == {}


def test_every_record_set_has_an_origin() -> None:
    annotations = {"hostname": "a.example.com,b.example.com", "internal-hostname": "c.example.com"}
    service = a_service("LoadBalancer", ingress_hostnames=("lb.example.org",), annotations=annotations)
    found = desired(KEY, service, (), rules())

    assert found.records is not None
    assert {key.name for key in found.records} == {"a.example.com", "b.example.com", "c.example.com", WEB}
    assert {key.name for key in found.records} <= found.origins.keys()
