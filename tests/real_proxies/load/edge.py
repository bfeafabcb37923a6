"""Four real proxies, each with the `kubesync render --watch` that feeds it, as docs/proxies.md describes them."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.real_proxies import (
    ENVOY,
    HAPROXY,
    NGINX,
    environment,
    free_port,
    lua_modules,
    lua_paths,
    nginx_main,
    running,
)
from harness.waiting import wait_until

KEY: Final = "demo/shop/web/80/TCP"
DOTTED: Final = "demo.shop.web.80.TCP"
PROXIES: Final = ("nginx", "haproxy", "envoy", "openresty")
_ATTEMPTS: Final = 8


@dataclass(slots=True)
class Edge:
    """A proxy with its renderer. ``reloads``: a file that gets a line for each reload."""

    name: str
    directory: Path
    port: int
    rendered: Path
    reloads: Path

    @property
    def text(self) -> str:
        """What it reads."""
        return self.rendered.read_text() if self.rendered.exists() else ""

    @property
    def reloaded(self) -> int:
        """How often it was reloaded."""
        return len(self.reloads.read_text().splitlines()) if self.reloads.exists() else 0


@contextmanager
def edge(name: str, directory: Path, key: str = KEY) -> Iterator[Edge]:
    """A renderer and, as soon as it has written its first file, the proxy."""
    directory.mkdir()
    place = Edge(name, directory, free_port(), directory / "upstreams", directory / "reloads")
    made = {"nginx": _nginx, "haproxy": _haproxy, "envoy": _envoy, "openresty": _openresty}[name](place)
    with ExitStack() as stack:
        stack.enter_context(_rendering(place, made.render))
        try:
            wait_until(lambda: key in place.text, 60)
        except AssertionError:
            raise AssertionError(f"{name}: no configuration: {(directory / 'render.log').read_text()}") from None
        stack.enter_context(running(name, made.command, place.port, directory / "log"))
        yield place


@dataclass(slots=True)
class _Made:
    """How a proxy and its renderer are started."""

    command: list[str]
    render: list[str]


def _nginx(place: Edge) -> _Made:
    main = nginx_main(
        place.directory,
        f"  include {place.rendered};\n  server {{ listen 127.0.0.1:{place.port} backlog=4096; location / {{\n"
        f"    proxy_pass http://{DOTTED}; proxy_connect_timeout 1s; proxy_next_upstream error timeout http_502; }} }}",
    )
    # The whole configuration, with the new file in place of the old one.
    check = f"sed 's#{place.rendered};#'{{}}';#' {main} >{place.directory}/check.conf && {NGINX} -t -c {place.directory}/check.conf"
    return _Made(
        [NGINX, "-c", str(main)],
        ["nginx", "--upstream", KEY, "--server-option", "max_fails=0", "--check", check,
         "--reload", _counted(place, f"kill -HUP $(cat {place.directory}/nginx.pid 2>/dev/null) 2>/dev/null || true")],
    )  # fmt: skip


def _haproxy(place: Edge) -> _Made:
    main = place.directory / "haproxy.cfg"
    main.write_text(
        f"global\n  stats socket {place.directory}/socket mode 600 level admin expose-fd listeners\n  maxconn 4000\n"
        "defaults\n  mode http\n  timeout connect 1s\n  timeout client 20s\n  timeout server 20s\n"
        f"  retries {_ATTEMPTS}\n  option redispatch 1\n  retry-on all-retryable-errors\n"
        f"frontend edge\n  bind 127.0.0.1:{place.port} backlog 4096\n  default_backend {DOTTED}\n"
    )
    return _Made(
        [HAPROXY, "-W", "-p", f"{place.directory}/haproxy.pid", "-f", str(main), "-f", str(place.rendered)],
        ["haproxy", "--cluster", "demo", "--server-option", "check inter 1s fall 2", "--check", f"{HAPROXY} -c -f {main} -f {{}}",
         "--reload", _counted(place, f"kill -USR2 $(cat {place.directory}/haproxy.pid 2>/dev/null) 2>/dev/null || true")],
    )  # fmt: skip


def _envoy(place: Edge) -> _Made:
    main = place.directory / "envoy.json"
    route: dict[str, Any] = {
        "cluster": KEY,
        "retry_policy": {
            "retry_on": "connect-failure,refused-stream,reset",
            "num_retries": _ATTEMPTS,
            "retry_host_predicate": [
                {
                    "name": "envoy.retry_host_predicates.previous_hosts",
                    "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
                    },
                }
            ],
            "host_selection_retry_max_attempts": 20,
            "retry_back_off": {"base_interval": "0.001s", "max_interval": "0.01s"},
        },
    }
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "edge",
        "route_config": {
            "validate_clusters": False,
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": route}]}],
        },
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
            }
        ],
    }  # fmt: skip
    listener = {
        "name": "edge",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": place.port}},
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        ],
    }
    directory = place.directory / "endpoints"
    place.rendered = directory / f"{DOTTED}.json"
    main.write_text(
        json.dumps(
            {
                "node": {"id": "edge", "cluster": "edge"},
                "dynamic_resources": {"cds_config": {"path_config_source": {"path": f"{directory}/clusters.json"}}},
                "static_resources": {"listeners": [listener]},
            }
        )
    )
    return _Made(
        [ENVOY, "-c", str(main), "--use-dynamic-base-id", "--concurrency", "1", "-l", "warning"],
        ["envoy", "--cluster", "demo", "--output-dir", str(directory)],
    )


def _openresty(place: Edge) -> _Made:
    main = nginx_main(
        place.directory,
        f"{lua_paths()}"
        f'  init_worker_by_lua_block {{ require("kubesync").start("{place.rendered}", {{ more_tries = {_ATTEMPTS} }}) }}\n'
        f'  upstream kubesync {{ server 192.0.2.1:9; balancer_by_lua_block {{ require("kubesync").balance("{KEY}") }} keepalive 32; }}\n'
        f"  server {{ listen 127.0.0.1:{place.port} backlog=4096; location / {{ proxy_pass http://kubesync; proxy_http_version 1.1;\n"
        '    proxy_set_header Connection ""; proxy_connect_timeout 1s; proxy_next_upstream error timeout http_502; } }',
        before=lua_modules(),
    )
    return _Made([NGINX, "-c", str(main)], ["json", "--upstream", KEY])


def _counted(place: Edge, reload: str) -> str:
    return f"{reload}; date +%s.%N >>{place.reloads}"


@contextmanager
def _rendering(place: Edge, arguments: list[str]) -> Iterator[None]:
    where = [] if "--output-dir" in arguments else ["--output-file", str(place.rendered)]
    where += ["--allow-cidr", "127.0.0.0/8"]  # the pods' addresses; without it loopback is left out
    with (place.directory / "render.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "kubesync_local", "render", *arguments, "--watch", *where],
            env=environment(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def settled(place: Edge, ready: list[str]) -> bool:
    """Whether a proxy's file has exactly these pods taking traffic."""
    return taking_traffic(place.name, place.text) == set(ready)


def taking_traffic(name: str, text: str) -> set[str]:
    """Addresses of the pods that take traffic, as this configuration says."""
    try:
        if name == "envoy":
            (assignment,) = json.loads(text)["resources"]
            found = [each for entry in assignment["endpoints"] for each in entry["lb_endpoints"]]
            return {_socket(each)["address"] for each in found if "health_status" not in each}
        if name == "openresty":
            return {node["ip"] for node in json.loads(text)["upstreams"][KEY]["nodes"] if "tier" in node}
    except ValueError:
        return set()
    block = text.partition(f"# upstream {KEY}\n")[2].partition("# upstream")[0]
    lines = [line.strip(" ;").split() for line in block.splitlines() if line.strip().startswith("server ")]
    address = 2 if name == "haproxy" else 1
    return {
        words[address].rpartition(":")[0]
        for words in lines
        if "down" not in words and not {"weight", "0"} <= set(words)
    }


def _socket(endpoint: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = endpoint["endpoint"]["address"]["socket_address"]
    return found
