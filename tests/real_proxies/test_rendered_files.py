"""Real proxies accept what is rendered, whatever the table holds."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings

from harness.hostile_nodes import node_lists
from harness.real_proxies import ENVOY, HAPROXY, NGINX, needs_proxies, nginx_main, ran
from kubesync_local.proxies.formats.envoy import EnvoyDirectory
from kubesync_local.proxies.formats.haproxy import Haproxy
from kubesync_local.proxies.formats.nginx import Nginx
from kubesync_local.proxies.servers import choose

pytestmark = needs_proxies

KEY: Final = "prod/shop/web/80/TCP"
OTHER: Final = "named/shop"
MIXED: Final[list[dict[str, Any]]] = [
    {"ip": "10.0.0.1", "port": 80, "ready": True, "zone": "a", "weight": 100_000},
    {"ip": "10.0.0.2", "port": 80, "ready": True, "zone": "b", "weight": 3},
    {"ip": "10.0.0.3", "port": 80, "ready": True, "backup": True},
    {"ip": "fd00::1", "port": 8080, "ready": True, "zone": "a"},
    {"ip": "fd00::2", "port": 8080, "ready": False, "serving": True, "terminating": True},
]
DRAINING: Final = [{"ip": "10.0.0.4", "port": 80, "ready": False, "serving": True, "terminating": True}]
# One example takes a process of tens of milliseconds.
_FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _nginx(directory: Path, nodes: list[dict[str, Any]]) -> None:
    form = Nginx(("least_conn;",), ("max_fails=0",))
    blocks = {key: form.block(key, 1, choose(each, "a", last_resort=False).servers) for key, each in _both(nodes)}
    rendered = directory / "upstreams.conf"
    rendered.write_text(form.files(blocks)[""])
    served = "server { listen 127.0.0.1:1; location / { proxy_pass http://prod.shop.web.80.TCP; } }"
    ran([NGINX, "-t", "-c", str(nginx_main(directory, f"include {rendered};\n{served}"))])


def _haproxy(directory: Path, nodes: list[dict[str, Any]]) -> None:
    form = Haproxy(("balance leastconn",), ("check",))
    blocks = {key: form.block(key, 1, choose(each, "a", last_resort=False).servers) for key, each in _both(nodes)}
    rendered = directory / "upstreams.cfg"
    rendered.write_text(form.files(blocks)[""])
    main = directory / "haproxy.cfg"
    main.write_text(
        "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n"
        "frontend front\n  bind 127.0.0.1:1\n  default_backend prod.shop.web.80.TCP\n"
    )
    ran([HAPROXY, "-c", "-f", str(main), "-f", str(rendered)])


def _envoy(directory: Path, nodes: list[dict[str, Any]]) -> None:
    form = EnvoyDirectory(directory)
    blocks = {key: form.block(key, 1, choose(each, "a", last_resort=False).servers) for key, each in _both(nodes)}
    for name, text in form.files(blocks).items():
        (directory / name).write_text(text)
    main = directory / "envoy.yaml"
    clusters = json.loads((directory / "clusters.json").read_text())["resources"]
    static = [{name: value for name, value in each.items() if name != "@type"} for each in clusters]
    for each, assignment in zip(static, _assignments(directory, clusters), strict=True):
        # Endpoints of a static cluster are checked by `--mode validate`; those of a subscription only when it runs.
        del each["eds_cluster_config"]
        each |= {"type": "STATIC", "load_assignment": assignment}
    main.write_text(json.dumps({"static_resources": {"clusters": static}}))
    ran([ENVOY, "--mode", "validate", "-c", str(main), "--use-dynamic-base-id", "-l", "error"])


def _assignments(directory: Path, clusters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for cluster in clusters:
        path = Path(cluster["eds_cluster_config"]["eds_config"]["path_config_source"]["path"])
        (assignment,) = json.loads(path.read_text())["resources"]
        found.append({name: value for name, value in assignment.items() if name != "@type"})
    return found


def _both(nodes: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(KEY, nodes), (OTHER, [])]


@pytest.mark.parametrize("nodes", [MIXED, DRAINING, []], ids=["mixed", "draining", "empty"])
@pytest.mark.parametrize("check", [_nginx, _haproxy, _envoy])
def test_proxy_accepts_each_kind_of_upstream(check: Any, nodes: list[dict[str, Any]], tmp_path: Path) -> None:
    check(tmp_path, nodes)


@given(node_lists())
@_FEW
def test_nginx_accepts_whatever_the_table_holds(tmp_path: Path, nodes: list[dict[str, Any]]) -> None:
    _nginx(tmp_path, nodes)


@given(node_lists())
@_FEW
def test_haproxy_accepts_whatever_the_table_holds(tmp_path: Path, nodes: list[dict[str, Any]]) -> None:
    _haproxy(tmp_path, nodes)
