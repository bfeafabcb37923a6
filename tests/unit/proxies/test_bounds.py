"""Which nodes become servers: networks, addresses that no pod has, and at most so many."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.hostile_nodes import node_lists
from kubesync.domain.dns.addresses import Address, Network, parse_address, parse_network, why_forbidden
from kubesync_local.proxies.bounds import Bounds, Why
from kubesync_local.proxies.files.writing import make_mark
from kubesync_local.proxies.formats.nginx import Nginx
from kubesync_local.proxies.left_out import LeftOut
from kubesync_local.proxies.renderer import Renderer, WhenEmpty
from kubesync_local.proxies.servers import Chosen, Snapshot, choose
from kubesync_local.proxies.table.items import UnreadUpstream

KEY = "prod/shop/web/80/TCP"


def _bounds(*networks: str, max_nodes: int | None = None) -> Bounds:
    return Bounds(tuple(_network(each) for each in networks), max_nodes)


def _network(text: str) -> Network:
    found = parse_network(text)
    assert found is not None
    return found


def _address(text: str) -> Address:
    found = parse_address(text)
    assert found is not None
    return found


def _node(ip: str, *, ready: bool = True, **more: Any) -> dict[str, Any]:
    return {"ip": ip, "port": 80, "ready": ready, **more}


def _draining(ip: str) -> dict[str, Any]:
    return _node(ip, ready=False, serving=True, terminating=True)


def _ips(chosen: Chosen) -> list[str]:
    return [server.address.text for server in chosen.servers]


@pytest.mark.parametrize(
    ("networks", "allowed"),
    [
        ((), ["10.0.0.1", "fd12::1"]),
        (("0.0.0.0/0", "::/0"), ["10.0.0.1", "fd12::1"]),
        (("0.0.0.0/1", "64.0.0.0/2"), ["10.0.0.1"]),
        (("127.0.0.0/8",), ["127.0.0.1"]),
        (("127.0.0.1", "10.0.0.1"), ["10.0.0.1", "127.0.0.1"]),
        (("169.254.0.0/16",), ["169.254.169.254"]),
        (("169.254.169.254/32", "fd00:ec2::/64"), ["169.254.169.254", "fd00:ec2::254"]),
        (("224.0.0.0/3",), []),
    ],
)
def test_network_allows_an_address_that_no_pod_has_only_if_it_holds_no_others(
    networks: tuple[str, ...], allowed: list[str]
) -> None:
    nodes = [_node(ip) for ip in ("10.0.0.1", "127.0.0.1", "169.254.169.254", "224.0.0.1", "fd00:ec2::254", "fd12::1")]

    assert _ips(choose(nodes, bounds=_bounds(*networks))) == allowed


def test_server_that_stands_is_taken_and_said_and_another_port_of_it_is_not() -> None:
    nodes = [_node("127.0.0.1"), _node("127.0.0.1", port=81), _node("10.0.0.1")]
    place = (_address("127.0.0.1"), 80)

    chosen = choose(nodes, standing=[place])

    assert [server.endpoint for server in chosen.servers] == ["10.0.0.1:80", "127.0.0.1:80"]
    assert (chosen.tally.left_out, chosen.tally.standing) == ({Why.FORBIDDEN: 1}, {place: "127.0.0.1 (loopback)"})
    assert _ips(choose(nodes, bounds=_bounds("10.0.0.0/8"), standing=[place])) == ["10.0.0.1"]


def test_nodes_outside_the_bounds_leave_the_last_resort_to_the_others() -> None:
    nodes = [_node("127.0.0.1"), _node("10.0.0.1", ready=False)]

    assert _ips(choose(nodes)) == ["10.0.0.1"]
    assert choose(nodes).usable


def test_most_nodes_are_ready_ones_of_the_first_tiers_then_draining_ones() -> None:
    nodes = [
        _draining("10.0.0.1"), _node("10.0.0.2", backup=True), _node("10.0.0.3", zone="b"), _node("10.0.0.4", zone="a"),
        _node("10.0.0.5", zone="a"), _node("10.0.0.6", ready=False),
    ]  # fmt: skip
    chosen = {number: _ips(choose(nodes, "a", bounds=_bounds(max_nodes=number))) for number in range(1, 7)}

    assert chosen == {
        1: ["10.0.0.4"],
        2: ["10.0.0.4", "10.0.0.5"],
        3: ["10.0.0.3", "10.0.0.4", "10.0.0.5"],
        4: ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"],
        5: ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"],
        6: ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"],
    }


@given(nodes=node_lists(), most=st.integers(1, 5), more=st.integers(0, 5), zone=st.sampled_from(["", "a"]))
def test_choice_of_fewer_is_part_of_the_choice_of_more(
    nodes: list[dict[str, Any]], most: int, more: int, zone: str
) -> None:
    few = choose(nodes, zone, bounds=_bounds(max_nodes=most))
    many = choose(nodes, zone, bounds=_bounds(max_nodes=most + more))
    everything = choose(nodes, zone)

    assert {(each.address, each.port) for each in few.servers} <= {(each.address, each.port) for each in many.servers}
    assert len(few.servers) == min(most, len(everything.servers))
    assert few.tally.left_out.get(Why.OVER_LIMIT, 0) == len(everything.servers) - len(few.servers)
    tiers = {server.tier for server in few.servers if not server.draining}
    assert tiers == set(range(len(tiers)))
    assert not any(why_forbidden(each.address) for each in everything.servers)


class _Rendered:
    def __init__(self, *networks: str, when_empty: WhenEmpty = WhenEmpty.BACKUP) -> None:
        self.said: list[str] = []
        left_out = LeftOut(None, self.said.append, lambda: 0.0)
        self.renderer = Renderer(Nginx(), "", when_empty, self.said.append, left_out, _bounds(*networks))

    def servers(self, *nodes: dict[str, Any]) -> list[str]:
        return self.of(Snapshot(KEY, 1, nodes))

    def of(self, *snapshots: Snapshot) -> list[str]:
        text = self.renderer.files({each.key: each for each in snapshots})[""]
        return [line.split()[1].rstrip(";") for line in text.splitlines() if line.startswith("    server ")]

    def text(self, *ips: str) -> dict[str, str]:
        """A file with these servers, as the release before wrote it."""
        networks = _bounds("127.0.0.0/8", "0.0.0.0/0")
        chosen = choose([_node(ip) for ip in ips], bounds=networks)
        return Nginx().files({KEY: Nginx().block(KEY, 1, chosen.servers)})


def test_server_stands_while_its_node_is_there_also_if_it_is_not_ready_for_a_while() -> None:
    rendered = _Rendered()
    rendered.renderer.remember(rendered.text("127.0.0.1", "10.0.0.1"))

    assert rendered.servers(_node("127.0.0.1"), _node("10.0.0.1")) == ["10.0.0.1:80", "127.0.0.1:80"]
    assert rendered.servers(_node("127.0.0.1", ready=False), _node("10.0.0.1")) == ["10.0.0.1:80"]
    assert rendered.servers(_node("127.0.0.1"), _node("10.0.0.1")) == ["10.0.0.1:80", "127.0.0.1:80"]
    assert rendered.servers(_node("10.0.0.1")) == ["10.0.0.1:80"]
    assert rendered.servers(_node("127.0.0.1"), _node("10.0.0.1")) == ["10.0.0.1:80"]


def test_server_of_an_upstream_that_was_gone_stands_no_longer() -> None:
    rendered = _Rendered()
    rendered.renderer.remember(rendered.text("127.0.0.1"))

    assert rendered.of() == []
    assert rendered.servers(_node("127.0.0.1")) == ["192.0.2.1:9"]


def test_server_stands_after_its_upstream_could_not_be_read() -> None:
    rendered = _Rendered()
    rendered.renderer.remember(rendered.text("127.0.0.1"))

    assert rendered.of(UnreadUpstream(KEY)) == ["127.0.0.1:80"]
    assert rendered.servers(_node("127.0.0.1"), _node("127.0.0.2")) == ["127.0.0.1:80"]


@pytest.mark.parametrize("snapshot", [Snapshot(KEY, 1, ()), UnreadUpstream(KEY)])
def test_last_servers_outside_the_networks_do_not_stay_and_are_said_once(snapshot: Snapshot) -> None:
    rendered = _Rendered("10.0.0.0/24", when_empty=WhenEmpty.KEEP)
    rendered.renderer.remember(rendered.text("10.0.0.1", "10.0.1.1"))
    for _ in range(2):
        assert rendered.of(snapshot) in ([], ["192.0.2.1:9"])

    assert rendered.said == [f"{KEY}: its last servers do not stay: 10.0.1.1 is in no network of --allow-cidr"]


@pytest.mark.parametrize("exists", [True, False])
def test_mark_is_not_made_behind_a_link(exists: bool, tmp_path: Path) -> None:
    victim, mark = tmp_path / "victim", tmp_path / "mark"
    if exists:
        victim.write_text("mine")
    mark.symlink_to(victim)

    make_mark(mark)

    assert victim.exists() is exists
    assert not exists or victim.read_text() == "mine"
