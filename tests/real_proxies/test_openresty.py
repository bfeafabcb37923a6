"""The Lua module in nginx with its Lua module: it follows the file without a reload, retries, and keeps what it has."""

import http.client
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.pods import Pods
from harness.real_proxies import NGINX, free_port, lua_modules, lua_paths, needs_proxies, nginx_main, running
from harness.waiting import wait_until
from kubesync_local.proxies.files.writing import replace_file

pytestmark = needs_proxies

KEY = "prod/shop/web/80/TCP"
A, B, C = "127.0.5.1", "127.0.5.2", "127.0.5.3"


def _node(ip: str, tier: int = 0, weight: int = 1, **more: Any) -> dict[str, Any]:
    return {"ip": ip, "port": 18081, "tier": tier, "weight": weight, **more}


def _text(*nodes: dict[str, Any]) -> str:
    return json.dumps({"v": 1, "upstreams": {KEY: {"version": 1, "nodes": list(nodes)}}})


@dataclass(slots=True)
class _Served:
    file: Path
    log: Path
    port: int

    def write(self, *nodes: dict[str, Any]) -> None:
        replace_file(self.file, _text(*nodes))

    def ask(self) -> str:
        """The address of the pod that answered, or the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/")
            answer = connection.getresponse()
            return answer.read().decode() if answer.status == 200 else str(answer.status)
        finally:
            connection.close()

    def counted(self, requests: int = 60) -> Counter[str]:
        return Counter(self.ask() for _ in range(requests))

    def until(self, expected: set[str]) -> None:
        """Wait until exactly these answer."""
        wait_until(lambda: set(self.counted(20)) == expected, said=f"answers from {expected}")


@contextmanager
def _served(directory: Path, text: str, before: str = "") -> Iterator[_Served]:
    """``before``: Lua that runs before the module starts; ``FILE`` stands for the file's path."""
    port, file = free_port(), directory / "upstreams.json"
    file.write_text(text)
    http_part = (
        f"{lua_paths()}"
        f"  init_worker_by_lua_block {{ {before.replace('FILE', str(file))}"
        f' require("kubesync").start("{file}", {{ interval_seconds = 0.1, fail_seconds = 1 }}) }}\n'
        f'  upstream kubesync {{ server 192.0.2.1:9; balancer_by_lua_block {{ require("kubesync").balance("{KEY}") }} keepalive 8; }}\n'
        f"  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://kubesync; proxy_http_version 1.1;\n"
        '    proxy_set_header Connection ""; proxy_connect_timeout 1s; proxy_next_upstream error timeout http_502; } }\n'
    )
    main = nginx_main(directory, http_part, before=lua_modules())
    with running("nginx", [NGINX, "-c", str(main)], port, directory / "stderr.log"):
        yield _Served(file, directory / "error.log", port)


@pytest.fixture
def pods() -> Iterator[Pods]:
    with Pods(18081) as made:
        for ip in (A, B, C):
            made.start(ip)
        yield made


def test_requests_go_round_and_follow_the_file_without_a_reload(pods: Pods, tmp_path: Path) -> None:
    with _served(tmp_path, _text(_node(A), _node(B))) as served:
        assert served.counted() == {A: 30, B: 30}

        served.write(_node(B), _node(C))
        served.until({B, C})
        assert "signal" not in served.log.read_text()


def test_weights_count(pods: Pods, tmp_path: Path) -> None:
    with _served(tmp_path, _text(_node(A, weight=9), _node(B))) as served:
        counted = served.counted(400)

    assert 320 <= counted[A] <= 390  # nine of ten: 360, and six standard deviations


def test_later_tiers_and_draining_nodes_get_nothing_while_the_first_works(pods: Pods, tmp_path: Path) -> None:
    with _served(tmp_path, _text(_node(A), _node(B, tier=1), {"ip": C, "port": 18081, "draining": True})) as served:
        assert served.counted() == {A: 60}

        pods.stop(A)
        assert served.counted() == {B: 60}


def test_node_that_refuses_costs_no_request(pods: Pods, tmp_path: Path) -> None:
    with _served(tmp_path, _text(_node(A), _node(B), _node(C))) as served:
        pods.stop(A)
        pods.stop(B)

        assert served.counted() == {C: 60}
        pods.start(A)
        served.until({A, C})


@pytest.mark.parametrize(
    "broken", ["", "{", "[]", '{"v":2,"upstreams":{}}', '{"v":1,"upstreams":{"named/x":{"nodes":[{"ip":1}]}}}']
)
def test_file_that_is_not_valid_leaves_the_nodes_and_is_logged_once(broken: str, pods: Pods, tmp_path: Path) -> None:
    with _served(tmp_path, _text(_node(A))) as served:
        served.until({A})  # the worker has read it
        replace_file(served.file, broken)
        wait_until(lambda: "the last nodes stay" in served.log.read_text(), said="a line in the log")
        assert served.counted(10) == {A: 10}

        served.file.unlink()
        wait_until(lambda: "No such file" in served.log.read_text(), said="a line in the log")
        assert served.counted(10) == {A: 10}
        assert served.log.read_text().count("is not what") + served.log.read_text().count("is not valid") == 1

        served.write(_node(B))
        served.until({B})


# What a worker meets whose user may not read the file yet; tests may run as root, who may read everything.
_REFUSED_TWICE = """
    local open, left = io.open, 2
    io.open = function(path, mode)
        if path == "FILE" and left > 0 then
            left = left - 1
            return nil, path .. ": Permission denied"
        end
        return open(path, mode)
    end
"""


def test_file_that_could_not_be_read_is_read_later_although_it_was_not_replaced(pods: Pods, tmp_path: Path) -> None:
    with _served(tmp_path, _text(_node(A)), _REFUSED_TWICE) as served:
        served.until({A})
        assert served.log.read_text().count("Permission denied; the last nodes stay") == 1


def test_upstream_without_nodes_answers_502(tmp_path: Path) -> None:
    with _served(tmp_path, _text()) as served:
        assert served.ask() == "502"


def test_ipv6_nodes_are_reached(tmp_path: Path) -> None:
    with Pods(18082) as pods6:
        pods6.start("::1")
        with _served(tmp_path, _text({"ip": "::1", "port": 18082, "tier": 0, "weight": 1})) as served:
            assert served.counted(5) == {"::1": 5}
