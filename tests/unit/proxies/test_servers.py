"""From nodes to servers: tiers, draining, no ready node, hostile nodes."""

from typing import Any

from hypothesis import given, strategies as st

from harness.hostile_nodes import node_lists
from kubesync_local.proxies.bounds import Why
from kubesync_local.proxies.servers import choose


def _node(ip: str, *, ready: bool = True, **more: Any) -> dict[str, Any]:
    return {"ip": ip, "port": 80, "ready": ready, **more}


def _draining(ip: str, **more: Any) -> dict[str, Any]:
    return _node(ip, ready=False, serving=True, terminating=True, **more)


def _seen(nodes: list[dict[str, Any]], zone: str = "", *, last_resort: bool = True) -> dict[str, object]:
    """Address to tier, or ``draining``."""
    servers = choose(nodes, zone, last_resort=last_resort).servers
    return {server.address.text: "draining" if server.draining else server.tier for server in servers}


def test_only_ready_nodes_take_traffic() -> None:
    nodes = [_node("10.0.0.1"), _draining("10.0.0.2"), _node("10.0.0.3", ready=False)]

    assert _seen(nodes) == {"10.0.0.1": 0, "10.0.0.2": "draining"}


def test_nodes_of_another_zone_and_backups_have_later_tiers() -> None:
    nodes = [_node("10.0.0.1", zone="a"), _node("10.0.0.2", zone="b"), _node("10.0.0.3", zone="a", backup=True)]

    assert _seen(nodes, "a") == {"10.0.0.1": 0, "10.0.0.2": 1, "10.0.0.3": 2}
    assert _seen(nodes) == {"10.0.0.1": 0, "10.0.0.2": 0, "10.0.0.3": 1}


def test_first_tier_is_never_empty() -> None:
    assert _seen([_node("10.0.0.2", zone="b"), _node("10.0.0.3", backup=True)], "a") == {"10.0.0.2": 0, "10.0.0.3": 1}
    assert _seen([_node("10.0.0.3", backup=True)]) == {"10.0.0.3": 0}


def test_without_ready_nodes_those_that_serve_are_the_last_resort() -> None:
    nodes = [_draining("10.0.0.1"), _node("10.0.0.2", ready=False), _node("10.0.0.3", ready=False, serving=True)]

    assert _seen(nodes) == {"10.0.0.1": 0, "10.0.0.2": 1, "10.0.0.3": 0}
    assert _seen(nodes, last_resort=False) == {"10.0.0.1": "draining"}
    assert not choose(nodes, last_resort=False).usable


def test_one_server_is_listed_once_and_ready_wins() -> None:
    nodes = [_node("::ffff:10.0.0.1", ready=False, serving=True), _node("10.0.0.1")]

    assert _seen(nodes) == {"10.0.0.1": 0}


def test_invalid_nodes_are_left_out_and_counted() -> None:
    bad: list[dict[str, Any]] = [
        _node("10.0.0.1;"), _node("fe80::1%;x"), _node("evil.example.com"), {"ip": "10.0.0.1", "ready": True},
        {"ip": "10.0.0.1", "port": True, "ready": True}, {"ip": "10.0.0.1", "port": 0, "ready": True},
        {"ip": "10.0.0.1", "port": 80, "ready": "yes"}, _node("10.0.0.1", weight="3; evil"), {},
    ]  # fmt: skip

    chosen = choose([*bad, _node("10.0.0.9")])

    assert [server.endpoint for server in chosen.servers] == ["10.0.0.9:80"]
    assert chosen.tally.left_out == {Why.INVALID: 9}


def test_names_that_kubernetes_would_not_give_are_left_out() -> None:
    (server,) = choose([_node("10.0.0.1", pod="x;\n}", zone="eu-west-1a", node='"', hostname="web-0")]).servers

    assert server.names == (("zone", "eu-west-1a"), ("hostname", "web-0"))


@given(node_lists(), st.sampled_from(["", "a"]), st.booleans())
def test_whatever_the_table_holds_servers_are_valid_and_tiers_have_no_gaps(
    nodes: list[dict[str, Any]], zone: str, last_resort: bool
) -> None:
    servers = choose(nodes, zone, last_resort=last_resort).servers
    tiers = {server.tier for server in servers if not server.draining}

    assert tiers == set(range(len(tiers)))
    assert len({(server.address, server.port) for server in servers}) == len(servers)
    assert all(1 <= server.port <= 65535 and 1 <= server.weight <= 100_000 for server in servers)
