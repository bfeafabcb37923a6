"""From the nodes of an upstream to the servers of a proxy. Pure.

The table is trusted for what it says about pods, and for nothing else: whoever may write EndpointSlices chooses addresses and names. So
addresses and ports are parsed, and only their canonical text is ever rendered. Names are rendered as JSON only.

node                                     server
----                                     ------
ready                                    takes traffic: tier 0, 1 or 2
not ready, serving and terminating       draining: no new connections
not ready, else                          left out

The tier of a ready node: 0 in the chosen zone (or without one), 1 in another zone, 2 for a backup of a named upstream. Empty tiers are
closed up, so that tier 0 always has a server. Proxies use a tier only while no server of the tiers before it works.

No node is ready: with ``last_resort`` the others take traffic instead, those that still serve before the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kubesync.domain.dns.addresses import Address, parse_address
from kubesync.domain.upstreams.named import MAX_NODE_WEIGHT

_MAX_PORT: Final = 65_535
_NAMES: Final = ("node", "zone", "hostname", "pod")
_BACKUP_TIER: Final = 2
# Kubernetes' names of nodes, zones, hosts and pods. Any other text is left out: no proxy has to be careful with it.
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An upstream as it was read. ``nodes`` is empty for one that is deleted or has no item (``version`` 0)."""

    key: str
    version: int
    nodes: tuple[Mapping[str, Any], ...] = ()
    present: bool = True
    digest: str = ""

    @property
    def has_item(self) -> bool:
        """Whether the table says something about it, perhaps that it is deleted."""
        return self.version > 0


@dataclass(frozen=True, slots=True)
class Server:
    """A server of a proxy. ``names``: node, zone, hostname and pod, where they are valid names."""

    address: Address
    port: int
    tier: int = 0
    weight: int = 1
    draining: bool = False
    names: tuple[tuple[str, str], ...] = ()

    @property
    def endpoint(self) -> str:
        """``192.0.2.1:80`` or ``[2001:db8::1]:80``."""
        host = self.address.text if self.address.family == 4 else f"[{self.address.text}]"
        return f"{host}:{self.port}"

    @property
    def zone(self) -> str:
        """Its availability zone; empty: not known."""
        return dict(self.names).get("zone", "")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The servers of an upstream, sorted by family, address and port; and how many nodes are not valid and were left out."""

    servers: tuple[Server, ...]
    refused: int = 0

    @property
    def usable(self) -> bool:
        """Whether a server takes traffic."""
        return any(not server.draining for server in self.servers)


def choose(nodes: Sequence[Mapping[str, Any]], zone: str = "", *, last_resort: bool = True) -> Chosen:
    """The servers for these nodes (``docs/upstreams.md``).

    Args:
        zone: nodes of this availability zone come first; empty: all are equal.
        last_resort: if no node is ready, nodes that are not ready take traffic.
    """
    parsed = [_parsed(node) for node in nodes]
    valid = [(node, server) for node, server in zip(nodes, parsed, strict=True) if server is not None]
    found: dict[tuple[Address, int], tuple[Mapping[str, Any], Server]] = {}
    for node, server in sorted(valid, key=lambda each: each[0]["ready"] is not True):
        found.setdefault((server.address, server.port), (node, server))  # a proxy refuses the same server twice
    in_order = [found[place] for place in sorted(found)]
    ready = [
        replace(server, tier=_tier(node, server, zone)) for node, server in in_order if node["ready"] is True
    ]  # fmt: skip
    rest = [(node, server) for node, server in in_order if node["ready"] is not True]
    if ready or not last_resort:
        draining = [replace(server, draining=True) for node, server in rest if _is_draining(node)]
    else:
        ready = [replace(server, tier=0 if node.get("serving") is True else 1) for node, server in rest]
        draining = []
    servers = [*_closed_up(ready), *draining]
    servers.sort(key=lambda server: (server.address, server.port))
    return Chosen(tuple(servers), len(nodes) - len(valid))


def _parsed(node: Mapping[str, Any]) -> Server | None:
    ip, port, weight = node.get("ip"), node.get("port"), node.get("weight", 1)
    address = parse_address(ip) if isinstance(ip, str) else None
    if address is None or type(node.get("ready")) is not bool:
        return None
    if type(port) is not int or not 1 <= port <= _MAX_PORT or type(weight) is not int:
        return None
    names = tuple(
        (name, value) for name in _NAMES if isinstance(value := node.get(name), str) and _NAME.fullmatch(value)
    )
    return Server(address, port, weight=min(max(weight, 1), MAX_NODE_WEIGHT), names=names)


def _is_draining(node: Mapping[str, Any]) -> bool:
    return node.get("serving") is True and node.get("terminating") is True


def _tier(node: Mapping[str, Any], server: Server, zone: str) -> int:
    if node.get("backup") is True:
        return _BACKUP_TIER
    return 1 if zone and server.zone != zone else 0


def _closed_up(servers: Iterable[Server]) -> list[Server]:
    """The same with tiers from 0 without gaps: nginx refuses backups alone, Envoy refuses gaps."""
    listed = list(servers)
    number = {tier: at for at, tier in enumerate(sorted({server.tier for server in listed}))}
    return [replace(server, tier=number[server.tier]) for server in listed]
