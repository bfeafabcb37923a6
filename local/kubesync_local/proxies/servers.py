"""From the nodes of an upstream to the servers of a proxy. Pure.

The table is trusted for what it says about pods, and for nothing else: whoever may write EndpointSlices chooses addresses and names. So
addresses and ports are parsed, and only their canonical text is ever rendered. Names are rendered as JSON only.

node                                     server
----                                     ------
ready                                    takes traffic: tier 0, 1 or 2
not ready, serving and terminating       draining: no new connections
not ready, else                          left out

Before that, ``bounds`` leaves out nodes by their addresses. After it, at most ``max_nodes`` servers stay: those of the first tiers, then
draining ones, and of these the first in order.

The tier of a ready node: 0 in the chosen zone (or without one), 1 in another zone, 2 for a backup of a named upstream. Empty tiers are
closed up, so that tier 0 always has a server. Proxies use a tier only while no server of the tiers before it works.

No node is ready: with ``last_resort`` the others take traffic instead, those that still serve before the rest.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kubesync.domain.dns.addresses import Address, parse_address
from kubesync.domain.upstreams.named import MAX_NODE_WEIGHT
from kubesync_local.proxies.bounds import NO_BOUNDS, Bounds, Place, Tally, Why

MAX_PORT: Final = 65_535
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
    """The servers of an upstream, sorted by family, address and port; and what was left out."""

    servers: tuple[Server, ...]
    tally: Tally

    @property
    def usable(self) -> bool:
        """Whether a server takes traffic."""
        return any(not server.draining for server in self.servers)


def choose(
    nodes: Sequence[Mapping[str, Any]],
    zone: str = "",
    *,
    last_resort: bool = True,
    bounds: Bounds = NO_BOUNDS,
    standing: Collection[Place] = (),
) -> Chosen:
    """The servers for these nodes (``docs/upstreams.md``).

    Args:
        zone: nodes of this availability zone come first; empty: all are equal.
        last_resort: if no node is ready, nodes that are not ready take traffic.
        standing: what stays although its address is not for pods.
    """
    tally = Tally(nodes=len(nodes))
    in_order = _within(bounds, _valid(nodes, tally), standing, tally)
    ready = [replace(server, tier=_tier(node, server, zone)) for node, server in in_order if node["ready"] is True]
    rest = [(node, server) for node, server in in_order if node["ready"] is not True]
    if ready or not last_resort:
        draining = [replace(server, draining=True) for node, server in rest if _is_draining(node)]
    else:
        ready = [replace(server, tier=0 if node.get("serving") is True else 1) for node, server in rest]
        draining = []
    servers = [*_closed_up(ready), *draining]
    servers.sort(key=lambda server: (server.address, server.port))
    if bounds.max_nodes is not None and len(servers) > bounds.max_nodes:
        tally.leave_out(Why.OVER_LIMIT, len(servers) - bounds.max_nodes)
        best_first = sorted(servers, key=lambda server: (server.draining, server.tier))
        servers = sorted(best_first[: bounds.max_nodes], key=lambda server: (server.address, server.port))
    return Chosen(tuple(servers), tally)


type _Candidate = tuple[Mapping[str, Any], Server]


def _valid(nodes: Sequence[Mapping[str, Any]], tally: Tally) -> list[_Candidate]:
    """Those that a proxy can read, each address and port once, in order."""
    parsed = [_parsed(node) for node in nodes]
    valid = [(node, server) for node, server in zip(nodes, parsed, strict=True) if server is not None]
    tally.leave_out(Why.INVALID, len(nodes) - len(valid))
    found: dict[Place, _Candidate] = {}
    for node, server in sorted(valid, key=lambda each: each[0]["ready"] is not True):
        found.setdefault((server.address, server.port), (node, server))  # a proxy refuses the same server twice
    return [found[place] for place in sorted(found)]


def _within(
    bounds: Bounds, candidates: list[_Candidate], standing: Collection[Place], tally: Tally
) -> list[_Candidate]:
    """Those whose addresses are within the bounds, or stand."""
    taken: list[_Candidate] = []
    for node, server in candidates:
        address = server.address
        if not bounds.allow(address):
            tally.leave_out(Why.NOT_ALLOWED, example=address.text)
            continue
        if why := bounds.why_forbidden(address):
            if (place := (address, server.port)) not in standing:
                tally.leave_out(Why.FORBIDDEN, example=f"{address.text} ({why})")
                continue
            tally.standing[place] = f"{address.text} ({why})"
        taken.append((node, server))
    return taken


def _parsed(node: Mapping[str, Any]) -> Server | None:
    ip, port, weight = node.get("ip"), node.get("port"), node.get("weight", 1)
    address = parse_address(ip) if isinstance(ip, str) else None
    if address is None or type(node.get("ready")) is not bool:
        return None
    if type(port) is not int or not 1 <= port <= MAX_PORT or type(weight) is not int:
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
