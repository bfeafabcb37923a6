"""Named upstreams: what is put together, what wins, what cannot be registered."""

from collections.abc import Mapping, Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings, strategies as st

from kubesync.domain.dns.records import Node
from kubesync.domain.upstreams.named import (
    Member,
    MemberSource,
    NamedOf,
    NamedUpstream,
    below,
    compose,
    dependents_of,
    is_named,
    parse_service,
    parse_static,
)
from kubesync.domain.upstreams.nodes import node_document, node_of
from kubesync_local.registration.named_upstreams import why_not

WEB = "prod/shop/web/80/TCP"
EDGE = "edge/shop/web/80/TCP"


def service(text: str, weight: int = 1, *, backup: bool = False) -> Member:
    return Member(parse_service(text), weight, backup)


def static(text: str, weight: int = 1, *, backup: bool = False) -> Member:
    return Member(parse_static(text), weight, backup)


def included(name: str, weight: int = 1, *, backup: bool = False) -> Member:
    return Member(NamedOf(name), weight, backup)


def named(**members: Sequence[Member]) -> dict[str, NamedUpstream]:
    return {name: NamedUpstream(name, tuple(given_members)) for name, given_members in members.items()}


def documents(name: str, registered: Mapping[str, NamedUpstream], **nodes: Sequence[Node]) -> list[dict[str, object]]:
    """What proxies would read; ``nodes`` by the cluster of the upstream ``<cluster>/shop/web/80/TCP``."""
    found = {f"{cluster}/shop/web/80/TCP": list(of_cluster) for cluster, of_cluster in nodes.items()}
    return [dict(node_document(node)) for node in compose(name, registered, found).nodes]


def test_two_clusters_one_of_them_backup_and_a_static_node() -> None:
    shop = named(shop=[service(WEB, 3), service(EDGE, backup=True), static("192.0.2.9:8000", 2)])
    prod = [Node("10.1.0.2", 8080, ready=True, zone="a", pod="web-2"), Node("10.1.0.1", 8080, ready=False)]
    assert documents("shop", shop, prod=prod, edge=[Node("10.9.0.1", 8080, ready=True)]) == [
        {"ip": "10.1.0.1", "port": 8080, "ready": False, "weight": 3},
        {"ip": "10.1.0.2", "port": 8080, "ready": True, "zone": "a", "pod": "web-2", "weight": 3},
        {"ip": "10.9.0.1", "port": 8080, "ready": True, "backup": True},
        {"ip": "192.0.2.9", "port": 8000, "ready": True, "weight": 2},
    ]


def test_nodes_are_sorted_by_family_address_and_port() -> None:
    several = [static("[2001:db8::1]:1"), static("10.0.0.10:2"), static("10.0.0.9:2"), static("10.0.0.9:1")]
    assert [(d["ip"], d["port"]) for d in documents("u", named(u=several))] == [
        ("10.0.0.9", 1),
        ("10.0.0.9", 2),
        ("10.0.0.10", 2),
        ("2001:db8::1", 1),
    ]


@pytest.mark.parametrize(
    ("members", "prod", "edge", "wanted"),
    [
        pytest.param(
            [service(WEB), service(EDGE)], {"ready": False}, {"ready": True}, {"ready": True},
            id="ready wins",
        ),
        pytest.param(
            [service(WEB), service(EDGE, backup=True)], {"ready": False}, {"ready": True}, {"ready": True, "backup": True},
            id="ready wins, though it is a backup",
        ),
        pytest.param(
            [service(WEB, backup=True), service(EDGE)], {"ready": True}, {"ready": True}, {"ready": True},
            id="primary wins over backup",
        ),
        pytest.param(
            [service(WEB, 2), service(EDGE, 5)], {"ready": True}, {"ready": True}, {"ready": True, "weight": 5},
            id="the higher weight wins",
        ),
        pytest.param(
            [service(WEB), service(EDGE)],
            {"ready": True, "serving": True, "terminating": True}, {"ready": True, "serving": True, "terminating": False},
            {"ready": True, "serving": True, "terminating": False},
            id="terminating loses",
        ),
    ],
)  # fmt: skip
def test_address_that_occurs_twice_is_one_node(
    members: list[Member], prod: dict[str, bool], edge: dict[str, bool], wanted: dict[str, object]
) -> None:
    at = {"ip": "10.1.0.1", "port": 80}
    for order in permutations(members):
        found = documents("u", named(u=order), prod=[node_of(at | prod)], edge=[node_of(at | edge)])
        assert found == [{"ip": "10.1.0.1", "port": 80, **wanted}]


def test_weights_of_nested_upstreams_are_multiplied_and_backup_is_inherited() -> None:
    registered = named(
        inner=[service(WEB, 4), static("192.0.2.1:1", backup=True)],
        middle=[included("inner", 10)],
        outer=[included("middle", 5, backup=True), static("192.0.2.2:2", 7)],
        heavy=[included("outer", 1000)],
    )
    node = Node("10.1.0.1", 80, ready=True)
    assert documents("middle", registered, prod=[node]) == [
        {"ip": "10.1.0.1", "port": 80, "ready": True, "weight": 40},
        {"ip": "192.0.2.1", "port": 1, "ready": True, "weight": 10, "backup": True},
    ]
    assert documents("outer", registered, prod=[node]) == [
        {"ip": "10.1.0.1", "port": 80, "ready": True, "weight": 200, "backup": True},
        {"ip": "192.0.2.1", "port": 1, "ready": True, "weight": 50, "backup": True},
        {"ip": "192.0.2.2", "port": 2, "ready": True, "weight": 7},
    ]
    # 200,000 would be too much.
    assert documents("heavy", registered, prod=[node])[0]["weight"] == 100_000


def test_what_is_not_there_contributes_nothing_and_is_reported() -> None:
    registered = named(u=[service(WEB), service(EDGE), included("gone"), static("192.0.2.1:1")])
    composed = compose("u", registered, {WEB: (), EDGE: None})
    assert [node.ip for node in composed.nodes] == ["192.0.2.1"]
    assert [(problem.code, problem.subject) for problem in composed.problems] == [
        ("MissingUpstream", EDGE),
        ("MissingUpstream", "named/gone"),
    ]


def test_circle_that_stands_in_the_table_is_cut_and_reported() -> None:
    registered = named(a=[included("b"), static("192.0.2.1:1")], b=[included("a"), static("192.0.2.2:1")])
    composed = compose("a", registered, {})
    assert [node.ip for node in composed.nodes] == ["192.0.2.1", "192.0.2.2"]
    assert [(problem.code, problem.message) for problem in composed.problems] == [
        ("UpstreamCycle", "it includes itself, or is nested too deep: a > b > a")
    ]


def test_upstream_that_is_full_is_cut_and_reported() -> None:
    long = "p" * 250
    more = {"port": 80, "ready": True, "pod": long, "node": long, "zone": long, "hostname": long}
    nodes = [node_of({"ip": f"10.0.{n >> 8}.{n & 255}", **more}) for n in range(2500)]
    composed = compose("u", named(u=[service(WEB)]), {WEB: nodes})
    assert 1000 < len(composed.nodes) < 2500
    assert [problem.code for problem in composed.problems] == ["TooManyNodes"]


def test_index_leads_from_every_part_to_all_that_is_made_of_it() -> None:
    registered = named(
        inner=[service(WEB)], outer=[included("inner"), service(EDGE)], other=[static("192.0.2.1:1"), service(EDGE)]
    )
    assert dependents_of(registered) == {
        WEB: {"inner", "outer"},
        EDGE: {"outer", "other"},
        "named/inner": {"inner", "outer"},
        "named/outer": {"outer"},
        "named/other": {"other"},
    }
    assert below("outer", registered) == {"outer", "inner"}


@pytest.mark.parametrize(
    ("upstream", "yes"),
    [("named/shop", True), ("named/shop/web/80/TCP", False), ("prod/shop/web/80/TCP", False), ("named/", True)],
)
def test_keys_of_a_cluster_called_named_are_none_of_named_upstreams(upstream: str, *, yes: bool) -> None:
    assert is_named(upstream) is yes


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("prod/shop/web/80", "prod/shop/web/80/TCP"),
        ("prod/shop/dns/53/udp", "prod/shop/dns/53/UDP"),
        (
            "prod/shop/web",
            "'prod/shop/web' is not a Service's upstream: write cluster/namespace/service/port[/PROTOCOL]",
        ),
        ("prod//web/80", "'prod//web/80' is not a Service's upstream: write cluster/namespace/service/port[/PROTOCOL]"),
        ("prod/shop/web/0", "'prod/shop/web/0': a port is a number from 1 to 65535"),
        ("prod/shop/web/http", "'prod/shop/web/http': a port is a number from 1 to 65535"),
        ("prod/shop/web/80/HTTP", "'prod/shop/web/80/HTTP': 'HTTP' is not one of TCP, UDP, SCTP"),
        (
            "Prod/shop/web/80",
            "'Prod/shop/web/80': 'Prod' is not made of lower-case letters, digits and hyphens, at most 63",
        ),
    ],
)
def test_service_is_read_from_text(text: str, wanted: str) -> None:
    assert _read(parse_service, text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("10.0.0.1:80", "10.0.0.1:80"),
        ("[2001:DB8::1]:80", "[2001:db8::1]:80"),
        ("2001:db8::1:80", "'2001:db8::1:80' is not a node, for example 10.0.0.1:80 or [2001:db8::1]:80"),
        ("example.com:80", "'example.com:80' is not a node, for example 10.0.0.1:80 or [2001:db8::1]:80"),
        ("10.0.0.1", "'10.0.0.1' is not a node, for example 10.0.0.1:80 or [2001:db8::1]:80"),
        ("10.0.0.1:65536", "'10.0.0.1:65536': a port is a number from 1 to 65535"),
    ],
)
def test_static_node_is_read_from_text(text: str, wanted: str) -> None:
    assert _read(parse_static, text) == wanted


def _read(parse: object, text: str) -> str:
    assert callable(parse)
    try:
        return str(parse(text))
    except ValueError as error:
        return str(error)


REGISTERED = named(a=[static("192.0.2.1:1")], b=[included("a")], c=[included("b")])


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (NamedUpstream("d", (included("c"),)), None),
        (NamedUpstream("b", (included("a"), static("192.0.2.2:1"))), None),
        (NamedUpstream("d", ()), "named upstream d has no members: give --service, --static or --upstream"),
        (NamedUpstream("D", (static("192.0.2.1:1"),)), "'D' is not a name: use lower-case letters, digits and hyphens, at most 63"),
        (NamedUpstream("d", (included("x"),)), "there is no named upstream 'x' to include; registered: a, b, c"),
        (NamedUpstream("a", (included("a"),)), "named upstream a would include itself: a > a"),
        (NamedUpstream("a", (included("c"),)), "named upstream a would include itself: a > c > b > a"),
        (NamedUpstream("d", (service(WEB), service(WEB, 2))), f"{WEB} is given more than once"),
        (
            NamedUpstream("d", tuple(static(f"10.0.{n}.1:80") for n in range(201))),
            "named upstream d has 201 members: at most 200 are possible",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_registered_is_refused_with_one_line(wanted: NamedUpstream, reason: str | None) -> None:
    assert why_not(wanted, REGISTERED) == reason


def test_nesting_ends_somewhere() -> None:
    chain = {"n0": NamedUpstream("n0", (static("192.0.2.1:1"),))}
    for number in range(1, 8):
        wanted = NamedUpstream(f"n{number}", (included(f"n{number - 1}"),))
        assert why_not(wanted, chain) is None
        chain[wanted.name] = wanted
    assert documents("n7", chain) == [{"ip": "192.0.2.1", "port": 1, "ready": True}]
    reason = "named upstream n8 would be nested more than 8 deep: give its Services directly"
    assert why_not(NamedUpstream("n8", (included("n7"),)), chain) == reason


nodes = st.builds(
    Node,
    st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.10", "2001:db8::1"]),
    st.integers(1, 2),
    ready=st.booleans(),
    serving=st.sampled_from([None, True, False]),
    zone=st.sampled_from(["", "a", "b"]),
)
sources: st.SearchStrategy[MemberSource] = st.sampled_from(
    [parse_service(WEB), parse_service(EDGE), parse_static("10.0.0.1:1"), NamedOf("x"), NamedOf("y"), NamedOf("z")]
)
members = st.lists(st.builds(Member, sources, st.integers(1, 1000), st.booleans()), max_size=5)


@given(members, members, members, st.lists(nodes, max_size=4), st.lists(nodes, max_size=4))
@settings(max_examples=40)
def test_whatever_is_registered_comes_to_sorted_and_unique_nodes_in_any_order(
    x: list[Member], y: list[Member], z: list[Member], web: list[Node], edge: list[Node]
) -> None:
    registered = named(x=x, y=y, z=z)
    found = compose("x", registered, {WEB: web, EDGE: edge}).nodes
    places = [(node.ip, node.port) for node in found]
    order = ["10.0.0.1", "10.0.0.2", "10.0.0.10", "2001:db8::1"]
    assert places == sorted(set(places), key=lambda place: (order.index(place[0]), place[1]))
    assert all(1 <= node.weight <= 100_000 for node in found)
    assert [node_of(node_document(node)) for node in found] == list(found)
    # A circle is refused when it is registered. Where one stands all the same, its cut depends on where it is entered.
    if not any(why_not(upstream, registered) for upstream in registered.values()):
        assert compose("x", named(x=x[::-1], y=y[::-1], z=z), {WEB: web[::-1], EDGE: edge[::-1]}).nodes == found
