"""A hostile Service before a shared proxy: 100 ports and 60 EndpointSlices of 1,000 endpoints, each upstream as full as one can be.

Without bounds each proxy gets a file of 40 MB and more than a million servers. ``--max-nodes`` makes it small, ``--namespace`` leaves it out,
and nobody else's servers change. ``make test`` plays a small one. The whole one prints figures: ``pytest -m thorough -s``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.rendering import KEY
from kubesync.domain.dns.records import Node
from kubesync.domain.upstreams.nodes import fitting, node_document
from kubesync_local.proxies.bounds import NO_BOUNDS, Bounds
from kubesync_local.proxies.files.output import Output
from kubesync_local.proxies.formats.nginx import Nginx
from kubesync_local.proxies.left_out import LeftOut
from kubesync_local.proxies.renderer import Renderer, WhenEmpty
from kubesync_local.proxies.servers import Snapshot
from kubesync_local.proxies.table.reading import selection

MOST = 500


@dataclass(frozen=True)
class _Attack:
    ports: int
    endpoints: int

    def table(self) -> dict[str, Snapshot]:
        """What the table holds: the hostile Service's upstreams, all with the same nodes, and a friendly one."""
        addresses = [f"10.{64 + n // 65536}.{n // 256 % 256}.{n % 256}" for n in range(self.endpoints)]
        hostile = _documents(*addresses)
        keys = [f"prod/hostile/large/{port}/TCP" for port in range(1, self.ports + 1)]
        return {key: Snapshot(key, 1, hostile) for key in keys} | {
            KEY: Snapshot(KEY, 1, _documents("10.0.0.1", "10.0.0.2"))
        }


def _documents(*ips: str) -> tuple[Mapping[str, object], ...]:
    """As many nodes as one upstream can hold, with names as EKS gives them."""
    nodes = [
        Node(
            ip, 8080, ready=True, serving=True, terminating=False, zone="eu-central-1a",
            node=f"ip-10-0-{n % 256}-{n // 256}.eu-central-1.compute.internal", pod=f"large-6d4cf56db6-{n:05d}",
        )
        for n, ip in enumerate(ips)
    ]  # fmt: skip
    return tuple(node_document(node) for node in fitting(nodes))


@dataclass(frozen=True)
class _Result:
    bytes: int
    servers: int
    friendly: list[str]
    said: list[str]


def _rendered(table: Mapping[str, Snapshot], path: Path, bounds: Bounds, namespaces: tuple[str, ...] = ()) -> _Result:
    said = list[str]()
    left_out = LeftOut(bounds.max_nodes, said.append, lambda: 0.0)
    renderer = Renderer(Nginx(), "", WhenEmpty.BACKUP, said.append, left_out, bounds)
    output = Output(renderer, path, directory=False, check=None, reload=None, said=said.append, now=lambda: 0.0)
    output.open()
    wanted = selection((), ("TCP",), namespaces)
    assert output.offer({key: each for key, each in table.items() if wanted(key)})
    text = path.read_text()
    friendly = text.partition(f"# upstream {KEY}\n")[2]
    servers = [line.strip() for line in friendly.splitlines() if line.startswith("    server ")]
    return _Result(path.stat().st_size, text.count("    server "), servers, said)


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(_Attack(ports=25, endpoints=1_200), id="small"),
        pytest.param(_Attack(ports=100, endpoints=60_000), id="whole", marks=(pytest.mark.thorough, pytest.mark.soak)),
    ],
)
def test_large_service_fills_a_shared_proxy_only_up_to_max_nodes(attack: _Attack, tmp_path: Path) -> None:
    table, path = attack.table(), tmp_path / "up.conf"

    unbounded = _rendered(table, path, NO_BOUNDS)
    bounded = _rendered(table, path, Bounds(max_nodes=MOST))
    selected = _rendered(table, path, NO_BOUNDS, ("shop",))

    for name, each in (("no bounds", unbounded), (f"--max-nodes {MOST}", bounded), ("--namespace shop", selected)):
        print(f"{name}: {each.bytes} bytes, {each.servers} servers")
        assert each.friendly == ["server 10.0.0.1:8080;", "server 10.0.0.2:8080;"], name
    assert unbounded.servers >= attack.ports * min(attack.endpoints, 12_000)
    assert unbounded.said == []
    assert bounded.servers == attack.ports * MOST + 2
    assert bounded.bytes < attack.ports * (MOST * 40 + 200)
    # 20 upstreams by name, how many more, and the sum.
    assert len(bounded.said) == 22
    assert bounded.said[-2:] == [
        f"and {attack.ports - 20} more upstreams",
        f"in sum {unbounded.servers - bounded.servers} of {unbounded.servers} nodes left out, of {attack.ports} of {attack.ports + 1} upstreams",
    ]
    assert (selected.servers, selected.said, selected.bytes < 300) == (2, [], True)
