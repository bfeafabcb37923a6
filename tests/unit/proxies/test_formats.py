"""What each format writes. A small parser of each proxy's language finds exactly the expected servers, whatever the table holds."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, strategies as st

from harness.hostile_nodes import node_lists
from kubesync_local.proxies.formats.envoy import EnvoyDirectory, EnvoyFile
from kubesync_local.proxies.formats.form import Form
from kubesync_local.proxies.formats.haproxy import Haproxy
from kubesync_local.proxies.formats.json_form import JsonForm
from kubesync_local.proxies.formats.nginx import Nginx
from kubesync_local.proxies.names import dotted, is_key
from kubesync_local.proxies.servers import choose

KEY: Final = "prod/shop/web/80/TCP"
NAMED: Final = "named/shop"
NODES: Final[list[dict[str, Any]]] = [
    {"ip": "10.0.0.1", "port": 80, "ready": True, "zone": "a", "pod": "web-1"},
    {"ip": "10.0.0.2", "port": 80, "ready": True, "zone": "b", "weight": 1000},
    {"ip": "fd00::1", "port": 8080, "ready": True, "backup": True, "weight": 2},
    {"ip": "fd00::2", "port": 8080, "ready": False, "serving": True, "terminating": True},
]
FORMS: Final[list[Form]] = [
    Nginx(("least_conn;",), ("max_fails=0",)),
    Haproxy(("balance leastconn",), ("check",)),
    EnvoyFile(),
    EnvoyDirectory(Path("/etc/envoy/kubesync")),
    JsonForm(),
]


def _text(form: Form, nodes: list[dict[str, Any]], key: str = KEY, name: str = "") -> str:
    return form.files({key: form.block(key, 7, choose(nodes, last_resort=False).servers)})[name]


def test_nginx_block() -> None:
    assert _text(FORMS[0], NODES) == (
        "# Written by `kubesync render`. It replaces the whole file at each change: do not edit it.\n"
        "# upstream prod/shop/web/80/TCP\n"
        "upstream prod.shop.web.80.TCP {\n"
        "    least_conn;\n"
        "    server 10.0.0.1:80 max_fails=0;\n"
        "    server 10.0.0.2:80 weight=1000 max_fails=0;\n"
        "    server [fd00::1]:8080 weight=2 max_fails=0 backup;\n"
        "    server [fd00::2]:8080 max_fails=0 down;\n"
        "}\n"
    )


def test_nginx_upstream_without_servers_has_one_that_is_down() -> None:
    assert "    server 192.0.2.1:9 down;\n}" in _text(Nginx(), [])


def test_haproxy_section() -> None:
    assert _text(FORMS[1], NODES).splitlines()[2:] == [
        "backend prod.shop.web.80.TCP",
        "    balance leastconn",
        "    server 10.0.0.1_80 10.0.0.1:80 check",
        "    server 10.0.0.2_80 10.0.0.2:80 weight 256 check",
        "    server fd00::1_8080 [fd00::1]:8080 backup check",
        "    server fd00::2_8080 [fd00::2]:8080 weight 0 check",
    ]


def test_haproxy_uses_all_backups() -> None:
    backups = [{"ip": f"10.0.0.{n}", "port": 80, "ready": True, "backup": n > 1} for n in (1, 2, 3)]

    assert "    option allbackups\n" in _text(Haproxy(), backups)


def test_envoy_endpoints() -> None:
    (assignment,) = json.loads(_text(EnvoyFile(), NODES))["resources"]
    entries = assignment["endpoints"]

    assert assignment["cluster_name"] == "prod/shop/web/80/TCP"
    assert [(each.get("priority", 0), each.get("locality")) for each in entries] == [
        (0, None), (0, {"zone": "a"}), (0, {"zone": "b"}), (1, None),
    ]  # fmt: skip
    assert [each["lb_endpoints"] for each in entries] == [
        [
            {
                "endpoint": {"address": {"socket_address": {"address": "fd00::2", "port_value": 8080}}},
                "health_status": "DRAINING",
            }
        ],
        [{"endpoint": {"address": {"socket_address": {"address": "10.0.0.1", "port_value": 80}}}}],
        [
            {
                "endpoint": {"address": {"socket_address": {"address": "10.0.0.2", "port_value": 80}}},
                "load_balancing_weight": 1000,
            }
        ],
        [
            {
                "endpoint": {"address": {"socket_address": {"address": "fd00::1", "port_value": 8080}}},
                "load_balancing_weight": 2,
            }
        ],
    ]
    assert assignment["policy"] == {"overprovisioning_factor": 1_000_000}


def test_envoy_directory_has_a_file_for_each_upstream_and_clusters_last() -> None:
    form = EnvoyDirectory(Path("/etc/envoy/kubesync"))
    files = form.files({key: form.block(key, 1, ()) for key in (KEY, NAMED)})
    clusters = json.loads(files["clusters.json"])["resources"]

    assert list(files) == ["named.shop.json", "prod.shop.web.80.TCP.json", "clusters.json"]
    assert [each["name"] for each in clusters] == ["named/shop", "prod/shop/web/80/TCP"]
    assert clusters[1]["eds_cluster_config"] == {
        "service_name": "prod/shop/web/80/TCP",
        "eds_config": {
            "resource_api_version": "V3",
            "path_config_source": {"path": "/etc/envoy/kubesync/prod.shop.web.80.TCP.json"},
        },
    }
    assert clusters[1]["circuit_breakers"] == {"thresholds": [{"max_retries": 1024}]}
    assert clusters[1]["common_lb_config"] == {"healthy_panic_threshold": {"value": 0}}


def test_json_form() -> None:
    assert json.loads(_text(JsonForm(), NODES)) == {
        "v": 1,
        "upstreams": {
            "prod/shop/web/80/TCP": {
                "version": 7,
                "nodes": [
                    {"ip": "10.0.0.1", "port": 80, "tier": 0, "weight": 1, "zone": "a", "pod": "web-1"},
                    {"ip": "10.0.0.2", "port": 80, "tier": 0, "weight": 1000, "zone": "b"},
                    {"ip": "fd00::1", "port": 8080, "tier": 1, "weight": 2},
                    {"ip": "fd00::2", "port": 8080, "draining": True},
                ],
            }
        },
    }


@pytest.mark.parametrize("form", FORMS, ids=lambda form: type(form).__name__)
def test_blocks_are_read_back_from_files(form: Form) -> None:
    blocks = {
        KEY: form.block(KEY, 7, choose(NODES).servers),
        NAMED: form.block(NAMED, 1, ()),
    }

    assert form.blocks(form.files(blocks)) == blocks
    assert form.blocks({"": "not ours", "other.json": "[]"}) == {}
    assert form.blocks(form.files({})) == {}


def test_text_does_not_depend_on_the_order_of_upstreams() -> None:
    for form in FORMS:
        one, two = form.block(KEY, 7, choose(NODES).servers), form.block(NAMED, 1, ())
        assert form.files({KEY: one, NAMED: two}) == form.files({NAMED: two, KEY: one})


@given(node_lists())
def test_nginx_has_exactly_the_servers_whatever_the_table_holds(nodes: list[dict[str, Any]]) -> None:
    servers = choose(nodes, last_resort=False).servers
    words = re.sub(r"#[^\n]*\n", "", _text(Nginx(), nodes)).replace(";", " ; ").split()
    statements = " ".join(words).removeprefix("upstream prod.shop.web.80.TCP { ").removesuffix(" ; }").split(" ; ")

    expected = [
        " ".join(
            ["server", server.endpoint, *([f"weight={server.weight}"] if server.weight > 1 else [])]
            + (["down"] if server.draining else ["backup"] if server.tier else [])
        )
        for server in servers
    ]
    assert statements == (expected or ["server 192.0.2.1:9 down"])
    assert all(re.fullmatch(r"server [0-9a-f.:\[\]]+( weight=\d+)?( down| backup)?", each) for each in statements)


@given(node_lists())
def test_haproxy_has_exactly_the_servers_whatever_the_table_holds(nodes: list[dict[str, Any]]) -> None:
    servers = choose(nodes, last_resort=False).servers
    lines = [line.split() for line in _text(Haproxy(), nodes).splitlines()[2:]]

    assert lines[0] == ["backend", "prod.shop.web.80.TCP"]
    assert [words[2] for words in lines[1:] if words[0] == "server"] == [server.endpoint for server in servers]
    assert {" ".join(words) for words in lines[1:] if words[0] != "server"} <= {"option allbackups"}
    rest = [" ".join(words[3:]) for words in lines[1:] if words[0] == "server"]
    assert all(re.fullmatch(r"(weight (\d|\d\d|1\d\d|2[0-4]\d|25[0-6]))?( ?backup)?", each) for each in rest)


_labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
_keys = st.one_of(
    _labels.map(lambda name: f"named/{name}"),
    st.tuples(_labels, _labels, _labels, st.integers(1, 65_535), st.sampled_from(["TCP", "UDP", "SCTP"])).map(
        lambda parts: "/".join(map(str, parts))
    ),
)


@given(_keys, _keys)
def test_two_keys_never_get_one_name(one: str, two: str) -> None:
    assert (dotted(one) == dotted(two)) is (one == two)
    assert dotted(one).replace(".", "/") == one


@pytest.mark.parametrize(
    "key",
    ["", "named", "named/", "named/a.b", "a/b/c/80/tcp", "a/b/c/080/TCP", "a/b/c/80/TCP\n", "a/b/c;/80/TCP", "a/b/../80/TCP", "a/b/c/٣/TCP"],
)  # fmt: skip
def test_invalid_keys_never_become_names(key: str) -> None:
    assert not is_key(key)
    with pytest.raises(ValueError, match="not the key"):
        dotted(key)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: type(form).__name__)
@given(nodes=node_lists())
def test_servers_of_a_file_are_read_back(form: Form, nodes: list[dict[str, Any]]) -> None:
    servers = choose(nodes, last_resort=False).servers
    block = form.block(KEY, 7, servers)

    assert form.places(form.blocks(form.files({KEY: block}))[KEY]) == {(each.address, each.port) for each in servers}


@pytest.mark.parametrize(
    ("form", "block"),
    [
        (Nginx(), "    server web:80;\n    server [::1;\n    server 10.0.0.1;\n    server \n"),
        (Haproxy(), "    server\n    server a\n    server a web:80\n    server a 10.0.0.1:\u0663\n"),
        (JsonForm(), "[]"),
        (JsonForm(), '{"nodes":[{"ip":"10.0.0.1"}]}'),
        (JsonForm(), '{"nodes":[{"ip":7,"port":"x"}]}'),
        (EnvoyFile(), '{"resources":[{"endpoints":[{"lb_endpoints":[{}]}]}]}'),
        (EnvoyFile(), '{"resources":[7]}'),
    ],
)
def test_servers_that_another_hand_wrote_are_no_reason_to_stop(form: Form, block: str) -> None:
    assert form.places(block) == frozenset()
