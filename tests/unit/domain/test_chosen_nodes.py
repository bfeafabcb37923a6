"""Nodes are chosen before they are built: the choice is that of building all of them and cutting, as long as a Service keeps to its cap."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest
from hypothesis import given, strategies as st

from harness.seen.builders import a_key, a_service, an_endpoint, an_endpoints, rules
from kubesync.domain.dns.addresses import Address
from kubesync.domain.dns.endpoints import AddressedGroup, addressed_groups
from kubesync.domain.dns.records import Held, Node
from kubesync.domain.objects import Endpoint, EndpointsObject, Port, Service
from kubesync.domain.sources.services import desired
from kubesync.domain.upstreams import nodes as limits
from kubesync.domain.upstreams.nodes import ChosenNodes, digest, node_document, preference, upstreams_of

SLICE_BYTES: Final = 200
SLICES: Final = 3
ALWAYS: Final = 4
# Numbers of two, four and five digits; two of four.
NUMBERS: Final = (80, 8080, 8081, 30000)


@pytest.fixture(scope="module", autouse=True)
def _small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MAX_SLICE_BYTES", SLICE_BYTES)
        patch.setattr(limits, "MAX_SLICES", SLICES)
        patch.setattr(limits, "_ALWAYS_FIT", ALWAYS)
        patch.setattr(limits, "MAX_SERVICE_BYTES", 10**9)
        yield


# --- the reference: build all, then cut ---


def every_node(key_of: str, service: Service, groups: Sequence[AddressedGroup]) -> dict[str, list[Node]]:
    """All nodes of each port, built."""
    found: dict[str, dict[tuple[Address, int], Endpoint]] = {}
    for of_service in service.ports:
        nodes = found.setdefault(f"{key_of}/{of_service.port}/{of_service.protocol}", {})
        for group in groups:
            for port in group.ports:
                if (port.name, port.protocol) != (of_service.name, of_service.protocol):
                    continue
                for endpoint, address in group.members:
                    other = nodes.setdefault((address, port.port), endpoint)
                    if preference(endpoint) < preference(other):
                        nodes[address, port.port] = endpoint
    return {
        name: [
            Node(a.text, port, e.ready, e.serving, e.terminating, e.node, e.zone, e.hostname, e.pod)
            for (a, port), e in sorted(of_one.items(), key=lambda item: item[0])
        ]
        for name, of_one in found.items()
    }


def size(node: Node) -> int:
    return len(json.dumps(node_document(node), separators=(",", ":"))) + 1


def slices(nodes: Sequence[Node]) -> int:
    count, filled = 1, 2
    for node in nodes:
        if filled > 2 and filled + size(node) > SLICE_BYTES:
            count, filled = count + 1, 2
        filled += size(node)
    return count


def best(nodes: list[Node], count: int) -> list[Node]:
    """The best nodes, in their order."""
    order = sorted(range(len(nodes)), key=lambda at: not nodes[at].ready)
    return [nodes[at] for at in sorted(order[:count])]


def cut(nodes: list[Node]) -> list[Node]:
    """As many as three slices hold; four always fit."""
    if len(nodes) <= ALWAYS:
        return nodes
    return next(kept for count in range(len(nodes), -1, -1) if slices(kept := best(nodes, count)) <= SLICES)


endpoints = st.builds(
    an_endpoint,
    st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.1.250", "fd00::1", "fd00:0::1", "::ffff:10.0.0.1"]),
    ready=st.booleans(),
    serving=st.sampled_from([None, True, False]),
    zone=st.sampled_from(["", "eu-west-1a", "ü"]),
    pod=st.sampled_from(["", "web-0", "w" * 60, "w" * 150]),
)
names = st.sampled_from(["http", "admin", ""])
targets = st.builds(Port, names, st.sampled_from(["TCP", "UDP"]), st.sampled_from(NUMBERS))
objects = st.builds(
    lambda of_it, ports: an_endpoints(*of_it, ports=ports),
    st.lists(endpoints, max_size=8),
    st.lists(targets, max_size=4),
)
ports = st.lists(st.builds(Port, names, st.sampled_from(["TCP", "UDP"]), st.sampled_from([80, 81])), max_size=5)


@given(st.lists(objects, max_size=4), ports)
def test_choice_is_that_of_building_all_nodes_and_cutting(
    of_service: list[EndpointsObject], listed: list[Port]
) -> None:
    service, groups = a_service(ports=listed), addressed_groups(of_service, set())
    every = every_node("prod/shop/web", service, groups)

    chosen = upstreams_of(a_key(), service, groups)

    assert list(chosen) == sorted(every)
    assert {name: list(nodes) for name, nodes in chosen.items()} == {name: cut(nodes) for name, nodes in every.items()}
    assert {name: nodes.left_out for name, nodes in chosen.items()} == {
        name: len(nodes) - len(cut(nodes)) for name, nodes in every.items()
    }
    assert all(digest(nodes) == digest(tuple(nodes)) for nodes in chosen.values())


@given(st.lists(objects, max_size=4), ports, st.integers(0, 2500))
def test_i9_upstreams_of_a_service_share_its_cap(
    of_service: list[EndpointsObject], listed: list[Port], cap: int
) -> None:
    service, groups = a_service(ports=listed), addressed_groups(of_service, set())
    every = every_node("prod/shop/web", service, groups)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MAX_SERVICE_BYTES", cap)
        chosen = upstreams_of(a_key(), service, groups)

    pairs = [
        (port, of_it.name, of_it.protocol, len(group.members))
        for group in groups
        for of_it in group.ports
        for port in listed
    ]
    if sum(count for port, name, protocol, count in pairs if (port.name, port.protocol) == (name, protocol)) <= ALWAYS:
        return  # so few always fit
    sizes = {name: sum(map(size, nodes)) for name, nodes in chosen.items()}
    if any(len(chosen[name]) <= ALWAYS and sizes[name] > SLICES * SLICE_BYTES for name in chosen):
        return  # only with the small limits of this file can so few nodes need more than all slices
    assert sum(sizes.values()) <= cap
    for name, nodes in chosen.items():
        kept = list(nodes)
        assert kept == best(every[name], len(kept))
        if kept != cut(every[name]):
            # Nobody is cut below an equal share: the next node is just too large.
            (following,) = (node for node in best(every[name], len(kept) + 1) if node not in kept)
            assert sizes[name] + size(following) > cap // len(chosen)


def test_i9_small_upstreams_leave_their_share_to_large_ones() -> None:
    many = an_endpoints(*(f"10.0.0.{n}" for n in range(10, 20)), ports=[Port("http", "TCP", 80)])
    few = an_endpoints("10.0.1.1", ports=[Port("admin", "TCP", 81)])
    service = a_service(ports=[Port("http", "TCP", 80), Port("admin", "TCP", 81)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MAX_SERVICE_BYTES", 240)
        plan = desired(a_key(), service, [many, few], rules())

    # {"ip":"10.0.0.10","port":80,"ready":true}, is 42 bytes: 199 are left beside the 41 of the other port.
    assert plan.upstreams is not None
    assert [node.ip for node in plan.upstreams["prod/shop/web/80/TCP"]] == [f"10.0.0.{n}" for n in range(10, 14)]
    assert [node.ip for node in plan.upstreams["prod/shop/web/81/TCP"]] == ["10.0.1.1"]
    assert [(problem.code, problem.subject, problem.message) for problem in plan.problems] == [
        ("TooManyNodes", "prod/shop/web/80/TCP", "6 of 10 nodes are left out: an upstream is full")
    ]


def test_ports_with_the_same_target_have_the_same_nodes_once_in_memory() -> None:
    service = a_service(ports=[Port("http", "TCP", 80), Port("http", "TCP", 81), Port("tls", "TCP", 443)])
    of_service = an_endpoints("10.0.0.1", ports=[Port("http", "TCP", 8080), Port("tls", "TCP", 8443)])

    found = upstreams_of(a_key(), service, addressed_groups([of_service], set()))

    assert found["prod/shop/web/80/TCP"] is found["prod/shop/web/81/TCP"]
    assert found["prod/shop/web/443/TCP"] == [Node("10.0.0.1", 8443, True)]


def many_numbers(ports: int, pods: int) -> tuple[Service, Sequence[AddressedGroup]]:
    """Two slices whose ports have different numbers: no port's choice is that of another. Every second pod is ready."""
    service = a_service(ports=[Port(f"p{n}", "TCP", 1000 + n) for n in range(ports)])
    slices = [
        an_endpoints(
            *(an_endpoint(f"10.{at}.{n >> 8}.{n & 255}", ready=n % 2 == 1) for n in range(pods)),
            ports=[Port(f"p{n}", "TCP", 2000 + 1000 * at + n) for n in range(ports)],
        )
        for at in range(2)
    ]
    return service, addressed_groups(slices, set())


@pytest.mark.parametrize(("most", "nodes", "left_out"), [(40, 20, 0), (39, 18, 2), (8, 4, 16), (3, 2, 18)])
def test_i4_choices_of_a_service_look_at_a_bounded_number_of_endpoints(most: int, nodes: int, left_out: int) -> None:
    service, groups = many_numbers(2, 10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MAX_LOOKED_AT", most)
        patch.setattr(limits, "_ALWAYS_FIT", 1000)
        found = upstreams_of(a_key(), service, groups)

    assert [(len(each), each.left_out) for each in found.values()] == [(nodes, left_out)] * 2
    ready = [node.ip for node in found["prod/shop/web/1000/TCP"] if node.ready]
    assert ready == [f"10.{at}.0.{n}" for at in range(2) for n in (1, 3, 5, 7, 9)[: nodes // 2]]


def test_i9_ready_nodes_stay_where_not_all_fit() -> None:
    of_service = an_endpoints(*(an_endpoint(f"10.0.0.{n}", ready=n >= 25) for n in range(30)))
    service = a_service(ports=[Port("http", "TCP", 80)])
    nodes = upstreams_of(a_key(), service, addressed_groups([of_service], set()))["prod/shop/web/80/TCP"]

    assert [node.ip for node in nodes if node.ready] == [f"10.0.0.{n}" for n in range(25, 30)]
    assert 5 < len(nodes) < 30


def test_digests_of_all_ports_of_the_same_addresses_are_computed_at_once() -> None:
    ips = [f"10.0.0.{n}" for n in range(50)]
    of_service = an_endpoints(*ips, ports=[Port(f"p{n}", "TCP", 8000 + n) for n in range(9)])
    service = a_service(ports=[Port(f"p{n}", "TCP", 1000 + n) for n in range(9)])
    found = upstreams_of(a_key(), service, addressed_groups([of_service], set()))
    made: list[str] = []
    real = limits._canonical

    def noted(ip: str, *given: Any) -> str:
        made.append(ip)
        return real(ip, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "_canonical", noted)
        digests = [nodes.digest for nodes in found.values()]

    assert len(made) == len(next(iter(found.values())))
    assert digests == [digest(tuple(nodes)) for nodes in found.values()]
    assert len(set(digests)) == 9


def test_forbidden_address_that_stands_is_the_only_reason_to_choose_twice() -> None:
    service, groups = many_numbers(3, 2)
    groups = [*groups, *addressed_groups([an_endpoints("127.0.0.1", ports=[Port("p0", "TCP", 1)])], set())]
    standing = upstreams_of(a_key(), service, groups)["prod/shop/web/1000/TCP"]
    held = Held(digests={"prod/shop/web/1000/TCP": digest(standing), "prod/shop/web/1001/TCP": "of other nodes"})
    chosen: list[int] = []
    real = limits._choose

    def noted(*given: Any) -> ChosenNodes:
        chosen.append(given[-1][0][1])
        return real(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "_choose", noted)
        found = limits.allowed_upstreams(a_key(), service, groups, held, set())

    assert chosen == [2000, 2001, 2001, 2002]
    assert [max(node.ip for node in nodes) for nodes in found.values()] == [
        "127.0.0.1",
        "10.1.0.1",
        "10.1.0.1",
    ]
