"""``kubesync render`` with bounds: how many nodes, of which namespaces, in which networks; and what it says of the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.rendering import KEY, Rendered, Watched
from harness.waiting import wait_until
from kubesync.domain.dns.records import Node

API = "prod/shop/api/80/TCP"
BILLING = "prod/billing/web/80/TCP"
DR = "dr/billing/web/80/TCP"
NAMED = "named/shop"
METADATA, LOOPBACK, METADATA_IPV6 = "169.254.169.254", "127.0.0.1", "fd00:ec2::254"


def _ips(out: str, key: str = KEY) -> list[str]:
    """The addresses of an upstream in the JSON form."""
    return [node["ip"] for node in json.loads(out)["upstreams"][key]["nodes"]]


def _draining(ip: str) -> Node:
    return Node(ip, 8080, ready=False, serving=True, terminating=True)


def _texts(path: Path) -> str:
    return "".join(each.read_text() for each in ([path] if path.is_file() else sorted(path.glob("*.json"))))


def test_max_nodes_takes_ready_nodes_first_and_says_what_is_left_out(rendered: Rendered) -> None:
    rendered.put(KEY, _draining("10.0.0.1"), Node("10.0.0.2", 8080, ready=False), "10.0.0.3", "10.0.0.4", "10.0.0.5")
    rendered.put(API, "10.0.1.1", "10.0.1.2", "10.0.1.3")
    rendered.put(BILLING, "10.0.2.1")

    everything = rendered.stack.call("render", "json")
    bounded = rendered.stack.call("render", "json", "--max-nodes", "2")

    assert everything.err == ""
    assert (len(_ips(everything.out)), len(_ips(everything.out, API))) == (4, 3)
    assert _ips(bounded.out) == ["10.0.0.3", "10.0.0.4"]
    assert _ips(bounded.out, API) == ["10.0.1.1", "10.0.1.2"]
    assert _ips(bounded.out, BILLING) == ["10.0.2.1"]
    assert (bounded.status, bounded.lines) == (
        0,
        [
            f"kubesync render: {KEY}: 2 of 5 nodes left out: 2 over --max-nodes 2",
            f"kubesync render: {API}: 1 of 3 nodes left out: 1 over --max-nodes 2",
            "kubesync render: in sum 3 of 9 nodes left out, of 2 of 3 upstreams",
        ],
    )


def test_max_nodes_prefers_the_own_zone_and_keeps_its_choice_while_later_nodes_come_and_go(
    rendered: Rendered, tmp_path: Path
) -> None:
    path = tmp_path / "up.conf"
    options = ("render", "nginx", "--max-nodes", "2", "--zone", "a", "--output-file", str(path))
    first = [Node("10.0.0.1", 80, ready=True, zone="b"), Node("10.0.0.2", 80, ready=True, zone="a")]
    rendered.put(KEY, *first)
    assert rendered.stack.call(*options).err == ""
    before = path.read_text()
    assert "    server 10.0.0.1:80 backup;\n    server 10.0.0.2:80;\n" in before

    rendered.put(KEY, *first, Node("10.0.0.3", 80, ready=True, zone="b"), _draining("10.0.0.4"))
    assert "2 of 4 nodes left out" in rendered.stack.call(*options).err
    assert path.read_text() == before

    rendered.put(KEY, *first, Node("10.0.0.3", 80, ready=True, zone="a"))
    assert rendered.stack.call(*options).status == 0
    assert "    server 10.0.0.2:80;\n    server 10.0.0.3:80;\n}" in path.read_text()
    assert "10.0.0.1" not in path.read_text()


def test_namespace_takes_only_upstreams_of_its_services(rendered: Rendered) -> None:
    for key in (API, BILLING, DR, NAMED):
        rendered.put(key, "10.0.0.9")
    call = rendered.stack.call

    def keys(*options: str) -> list[str]:
        return list(json.loads(call("render", "json", *options).out)["upstreams"])

    assert keys() == [DR, NAMED, BILLING, API, KEY]
    assert keys("--namespace", "billing") == [DR, BILLING]
    assert keys("--namespace", "billing,shop") == [DR, BILLING, API, KEY]
    assert keys("--namespaces", "billing", "--namespace", "shop", "--cluster", "dr") == [DR]
    assert keys("--namespace", "shop", "--cluster", "prod") == [API, KEY]


def test_namespace_that_is_not_in_the_table_leaves_the_file(rendered: Rendered, tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    assert rendered.stack.call("render", "nginx", "--namespace", "shop", "--output-file", str(path)).status == 0
    before = path.read_text()

    typo = rendered.stack.call(
        "render", "nginx", "--namespace", "shpo", "--cluster", "prod", "--output-file", str(path)
    )

    assert (typo.status, path.read_text()) == (1, before)
    assert typo.err == (
        f"kubesync: no TCP upstream of cluster prod in namespace shpo is in the table: {path} stays as it is; is the name "
        "right, and the deployment?\n"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--max-nodes 0", "'0' is not a whole number from 1"),
        ("--max-nodes -1", "--max-nodes"),
        ("--namespace Shop", "--namespace 'Shop' is not a namespace: use lower-case letters"),
        ("--namespace ,", "--namespace is empty"),
        (f"--upstream {KEY} --namespace shop", "leave out --cluster, --namespace and --protocol"),
        ("--allow-cidr 10.0.0.1/8", "--allow-cidr '10.0.0.1/8' is not a network"),
        ("--allow-cidr 10.0.0.0/8,pods", "--allow-cidr 'pods' is not a network"),
        ("--allow-cidr ,", "--allow-cidr is empty"),
    ],
)
def test_wrong_bounds_are_one_line_and_status_2(options: str, said: str, rendered: Rendered) -> None:
    ran = rendered.stack.call("render", "nginx", *options.split())

    assert (ran.status, len(ran.lines)) == (2, 1)
    assert said in ran.err


def test_allow_cidr_renders_only_nodes_of_its_networks(rendered: Rendered) -> None:
    rendered.put(KEY, "10.0.0.1", "10.1.0.1", "192.168.0.1", "fd12::1", "2001:db8::1")
    rendered.put(API, "10.0.9.9", "10.0.9.8")
    rendered.put(BILLING, "172.16.0.1")

    bounded = rendered.stack.call(
        "render", "json", "--allow-cidr", "10.0.0.0/16,192.168.0.1", "--allow-cidr", "fd00::/8"
    )

    assert _ips(bounded.out) == ["10.0.0.1", "192.168.0.1", "fd12::1"]
    assert (_ips(bounded.out, API), _ips(bounded.out, BILLING)) == (["10.0.9.8", "10.0.9.9"], [])
    assert bounded.lines == [
        f"kubesync render: {KEY}: 2 of 5 nodes left out: 2 in no network of --allow-cidr, such as 10.1.0.1",
        f"kubesync render: {BILLING}: 1 of 1 nodes left out: 1 in no network of --allow-cidr, such as 172.16.0.1",
        "kubesync render: in sum 3 of 8 nodes left out, of 2 of 3 upstreams",
    ]


@pytest.mark.parametrize("kept", ["keep", "unread"])
def test_allow_cidr_holds_also_for_what_the_file_had_before(kept: str, rendered: Rendered, tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    rendered.put(API, "10.0.1.1")
    options = ("render", "nginx", "--when-empty", "keep", "--output-file", str(path))
    assert rendered.stack.call(*options).status == 0
    if kept == "keep":
        rendered.put(KEY, "10.0.0.1", "10.0.0.2", ready=False)
    else:
        client = rendered.stack.boto().client("dynamodb", endpoint_url=rendered.stack.dynamodb_url)
        odd = {"upstream": {"S": KEY}, "slice": {"N": "0"}, "v": {"N": "2"}, "version": {"N": "7"}}
        client.put_item(TableName=f"{rendered.stack.prefix}-upstreams", Item=odd)
    rendered.stack.call(*options)
    assert "server 10.0.0.1:8080;" in path.read_text()

    bounded = rendered.stack.call(*options, "--allow-cidr", "10.0.0.1,10.0.1.0/24")

    assert "10.0.0.1" not in path.read_text()
    assert "server 10.0.1.1:8080;" in path.read_text()
    assert (
        f"kubesync render: {KEY}: its last servers do not stay: 10.0.0.2 is in no network of --allow-cidr"
        in bounded.lines
    )


@pytest.mark.parametrize(
    ("form", "option"),
    [("nginx", "--output-file"), ("haproxy", "--output-file"), ("json", "--output-file"), ("envoy", "--output-dir")],
)
def test_forbidden_address_is_not_newly_rendered_and_stays_where_the_file_has_it(
    form: str, option: str, rendered: Rendered, tmp_path: Path
) -> None:
    path = tmp_path / "up"
    options = ("render", form, option, str(path))
    rendered.put(KEY, METADATA, "10.0.0.1")
    # As the release before wrote it: this one writes it only if the network is named.
    assert rendered.stack.call(*options, "--allow-cidr", "10.0.0.0/8,169.254.0.0/16").err == ""
    before = _texts(path)
    assert METADATA in before

    again = rendered.stack.call(*options)
    assert (again.status, _texts(path)) == (0, before)
    assert again.lines == [
        f"kubesync render: {KEY}: 1 node stays only because the file had it: {METADATA} (link-local)"
    ]

    rendered.put(
        KEY, METADATA, Node(METADATA, 80, ready=True), LOOPBACK, METADATA_IPV6, "0.0.0.0", "224.0.0.1", "10.0.0.1"
    )
    more = rendered.stack.call(*options)
    assert (more.status, _texts(path)) == (0, before.replace('"version":2', '"version":3'))
    assert more.err == (
        f"kubesync render: {KEY}: 5 of 7 nodes left out: 5 with an address that is not for pods, such as 0.0.0.0 (unspecified); "
        f"1 node stays only because the file had it: {METADATA} (link-local)\n"
    )

    rendered.put(KEY, "10.0.0.1")
    assert rendered.stack.call(*options).err == ""
    rendered.put(KEY, METADATA, "10.0.0.1")
    returned = rendered.stack.call(*options)
    assert returned.lines == [
        f"kubesync render: {KEY}: 1 of 2 nodes left out: 1 with an address that is not for pods, such as {METADATA} (link-local)"
    ]
    assert METADATA not in _texts(path)


def test_forbidden_address_is_never_printed_and_a_wide_network_allows_none(rendered: Rendered) -> None:
    rendered.put(KEY, METADATA, METADATA_IPV6, LOOPBACK, "10.0.0.1")
    call = rendered.stack.call

    assert _ips(call("render", "json").out) == ["10.0.0.1"]
    assert _ips(call("render", "json", "--allow-cidr", "0.0.0.0/0,::/0").out) == ["10.0.0.1"]
    assert _ips(call("render", "json", "--allow-cidr", "127.0.0.0/8,10.0.0.0/8").out) == ["10.0.0.1", LOOPBACK]


def test_watch_keeps_a_forbidden_address_that_the_file_has_until_it_goes(rendered: Rendered, tmp_path: Path) -> None:
    path = tmp_path / "up.conf"
    rendered.put(KEY, LOOPBACK, "10.0.0.1")
    assert (
        rendered.stack.call("render", "nginx", "--allow-cidr", "127.0.0.0/8,10.0.0.0/8", "--output-file", str(path)).err
        == ""
    )
    watched = Watched(rendered, path, "--upstream", KEY)
    wait_until(lambda: watched.said)
    rendered.put(KEY, LOOPBACK, "10.0.0.2")
    wait_until(lambda: watched.servers == ["10.0.0.2:8080", "127.0.0.1:8080"])
    rendered.put(KEY, "10.0.0.3")
    wait_until(lambda: watched.servers == ["10.0.0.3:8080"])
    rendered.put(KEY, LOOPBACK, "10.0.0.4")
    wait_until(lambda: watched.servers == ["10.0.0.4:8080"])

    stays = f"{KEY}: 1 node stays only because the file had it: {LOOPBACK} (loopback)"
    assert watched.end() == [
        stays,
        f"{KEY}: no node stays only because the file had it",
        f"{KEY}: 1 of 2 nodes left out: 1 with an address that is not for pods, such as {LOOPBACK} (loopback)",
        "ended by SIGTERM; configuration left unchanged",
    ]


def test_many_upstreams_are_named_up_to_a_limit_and_all_are_counted(rendered: Rendered) -> None:
    for port in range(1, 31):
        rendered.put(f"prod/shop/many/{port}/TCP", "10.0.3.1", "10.0.3.2")

    said: Any = rendered.stack.call("render", "json", "--max-nodes", "1", "--namespace", "shop").lines

    assert len(said) == 22
    assert said[-2:] == [
        "kubesync render: and 11 more upstreams",
        "kubesync render: in sum 31 of 62 nodes left out, of 31 of 31 upstreams",
    ]
