"""Upstreams: matching of ports, order and uniqueness of nodes, public shape, digest, slices."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.seen.builders import a_key, a_service, an_endpoint, an_endpoints, rules
from kubesync.domain.dns.records import Node
from kubesync.domain.objects import Endpoint, EndpointsObject, Port, Service
from kubesync.domain.sources.services import desired
from kubesync.domain.upstreams.nodes import digest, fitting, node_document, slice_nodes

UNNAMED = Port("", "TCP", 8080)


def upstreams_for(service: Service, *endpoints: EndpointsObject) -> dict[str, Sequence[Node]]:
    found = desired(a_key(), service, endpoints, rules()).upstreams
    assert found is not None
    return dict(found)


def pairs(nodes: Sequence[Node]) -> list[tuple[str, int, bool]]:
    return [(node.ip, node.port, node.ready) for node in nodes]


def test_nodes_carry_what_is_known() -> None:
    endpoint = Endpoint(
        "10.1.0.1",
        ready=True,
        serving=True,
        terminating=False,
        node="n1",
        zone="eu-west-1a",
        hostname="web-0",
        pod="web-0",
    )

    upstreams = upstreams_for(a_service(), an_endpoints(endpoint))

    assert upstreams == {
        "prod/shop/web/80/TCP": (Node("10.1.0.1", 8080, True, True, False, "n1", "eu-west-1a", "web-0", "web-0"),)
    }


def test_nodes_are_sorted_by_family_then_number_then_port() -> None:
    upstreams = upstreams_for(
        a_service(),
        an_endpoints("fd00::1", "10.1.0.10", "10.1.0.9"),
        an_endpoints("10.1.0.9", "9.255.0.1", ports=[Port("http", "TCP", 80)]),
    )

    assert pairs(upstreams["prod/shop/web/80/TCP"]) == [
        ("9.255.0.1", 80, True),
        ("10.1.0.9", 80, True),
        ("10.1.0.9", 8080, True),
        ("10.1.0.10", 8080, True),
        ("fd00::1", 8080, True),
    ]


def test_nodes_are_unique_by_address_and_port_and_ready_wins() -> None:
    ready = an_endpoint("fd00:0::1", pod="b")
    unready = an_endpoint("fd00::1", ready=False, pod="a")

    for objects in ([an_endpoints(ready), an_endpoints(unready)], [an_endpoints(unready, ready)]):
        assert upstreams_for(a_service(), *objects) == {"prod/shop/web/80/TCP": (Node("fd00::1", 8080, True, pod="b"),)}


def test_nodes_not_ready_are_listed_as_such() -> None:
    endpoint = an_endpoint(ready=False, serving=True, terminating=True)

    assert upstreams_for(a_service(), an_endpoints(endpoint)) == {
        "prod/shop/web/80/TCP": (Node("10.1.0.1", 8080, False, serving=True, terminating=True),)
    }


def test_ports_match_by_name_and_protocol() -> None:
    service = a_service(ports=[Port("dns", "UDP", 53), Port("dns-tcp", "TCP", 53), Port("admin", "TCP", 9000)])
    ports = [Port("dns", "UDP", 5353), Port("dns-tcp", "TCP", 5354), Port("admin", "UDP", 1)]

    upstreams = upstreams_for(service, an_endpoints("10.1.0.1", ports=ports))

    assert {name: pairs(nodes) for name, nodes in upstreams.items()} == {
        "prod/shop/web/53/UDP": [("10.1.0.1", 5353, True)],
        "prod/shop/web/53/TCP": [("10.1.0.1", 5354, True)],
        "prod/shop/web/9000/TCP": [],
    }


def test_single_unnamed_port_matches_unnamed_endpoints_port() -> None:
    service = a_service(ports=[Port("", "TCP", 80)])

    upstreams = upstreams_for(service, an_endpoints("10.1.0.1", ports=[UNNAMED]), an_endpoints("10.1.0.2"))

    assert pairs(upstreams["prod/shop/web/80/TCP"]) == [("10.1.0.1", 8080, True)]


def test_subsets_with_other_port_numbers_are_kept_apart() -> None:
    upstreams = upstreams_for(
        a_service(),
        an_endpoints("10.1.0.1", ports=[Port("http", "TCP", 8080)]),
        an_endpoints("10.1.0.2", ports=[Port("http", "TCP", 8081)]),
    )

    assert pairs(upstreams["prod/shop/web/80/TCP"]) == [("10.1.0.1", 8080, True), ("10.1.0.2", 8081, True)]


def test_no_endpoints_is_an_empty_upstream_not_a_missing_one() -> None:
    assert upstreams_for(a_service()) == {"prod/shop/web/80/TCP": ()}
    assert upstreams_for(a_service(), an_endpoints()) == {"prod/shop/web/80/TCP": ()}


@pytest.mark.parametrize("type_", ["ClusterIP", "NodePort", "LoadBalancer"])
def test_every_type_with_ports_has_upstreams(type_: str) -> None:
    assert list(upstreams_for(a_service(type_), an_endpoints("10.1.0.1"))) == ["prod/shop/web/80/TCP"]


def test_headless_has_upstreams() -> None:
    assert list(upstreams_for(a_service(headless=True), an_endpoints("10.1.0.1"))) == ["prod/shop/web/80/TCP"]


def test_external_name_has_none() -> None:
    assert upstreams_for(a_service("ExternalName", external_name="a.example.org"), an_endpoints("10.1.0.1")) == {}


def test_excluded_service_has_none() -> None:
    assert upstreams_for(a_service(annotations={"kubesync.io/exclude": "true"}), an_endpoints("10.1.0.1")) == {}


def test_bad_address_is_reported_and_others_stay() -> None:
    plan = desired(a_key(), a_service(), [an_endpoints("10.1.0.1", "nonsense")], rules())

    assert plan.upstreams == {"prod/shop/web/80/TCP": (Node("10.1.0.1", 8080, True),)}
    assert [(problem.code, problem.subject) for problem in plan.problems] == [("InvalidAddress", "nonsense")]


def test_node_document_omits_what_is_not_known() -> None:
    assert node_document(Node("10.1.0.1", 80, False)) == {"ip": "10.1.0.1", "port": 80, "ready": False}
    assert node_document(Node("10.1.0.1", 80, True, False, True, "n", "z", "h", "p")) == {
        "ip": "10.1.0.1",
        "port": 80,
        "ready": True,
        "serving": False,
        "terminating": True,
        "node": "n",
        "zone": "z",
        "hostname": "h",
        "pod": "p",
    }


def test_digest_is_of_canonical_json() -> None:
    # By sha256sum, of the two characters [] and of
    # the nodes as [{"ip":"10.1.0.1","port":80,"ready":true,"zone":"a"},{"ip":"10.1.0.2","port":80,"ready":false}]
    assert digest(()) == "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
    nodes = (Node("10.1.0.1", 80, True, zone="a"), Node("10.1.0.2", 80, False))
    assert digest(nodes) == "b3c0d85001d21abc2b587bafe853cae36aae70fe63961f798f1b3343a4311e36"
    assert digest(nodes[::-1]) != digest(nodes)


def test_slices_hold_all_nodes_in_order_and_keep_to_the_size() -> None:
    nodes = [
        Node(f"10.1.{i // 256}.{i % 256}", 8080, True, node=f"ip-{i}.eu-west-1.compute.internal") for i in range(500)
    ]

    slices = slice_nodes(nodes, max_bytes=4_000)

    sizes = [len(json.dumps([node_document(node) for node in part], separators=(",", ":"))) for part in slices]
    assert [node for part in slices for node in part] == nodes
    assert max(sizes) <= 4_000
    assert min(sizes[:-1]) > 3_800
    assert len(slices) == 12


def test_slices_of_few_nodes_is_one() -> None:
    node = Node("10.1.0.1", 80, True)

    assert slice_nodes(()) == [[]]
    assert slice_nodes((node,)) == [[node]]
    assert slice_nodes((node, node), max_bytes=10) == [[node], [node]]


def many(count: int, second: int, **fields: Any) -> list[Node]:
    """Nodes of some 2,000 bytes each: 24 slices hold 1,200 of them."""
    long = "n" * 950
    return [Node(f"10.{second}.{n // 256}.{n % 256}", 80, True, node=long, zone=long, **fields) for n in range(count)]


def test_of_more_nodes_than_fit_ready_ones_and_primaries_stay() -> None:
    backups, primaries = many(700, 1, backup=True), many(600, 2)
    unready = [replace(node, ready=False) for node in many(100, 3)]

    kept = fitting([*backups, *primaries, *unready])

    assert len(slice_nodes(kept)) == 24
    assert [node for node in kept if not node.backup] == primaries
    assert kept == (*backups[: len(kept) - 600], *primaries)
    assert len(kept) == 1200


def test_of_more_nodes_than_fit_a_change_moves_the_last_only() -> None:
    nodes = many(1400, 1)
    before = fitting(nodes)
    assert before == tuple(nodes[:1200])

    assert fitting([*nodes[:5], *nodes[6:]]) == (*nodes[:5], *nodes[6:1201])
    assert fitting([*nodes[:1300], *nodes[1301:]]) == before
    unready = replace(nodes[5], ready=False)
    assert fitting([*nodes[:5], unready, *nodes[6:]]) == (*nodes[:5], *nodes[6:1201])
