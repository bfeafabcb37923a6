"""Named upstreams: one name for Services of several clusters, other named upstreams and static nodes.

the same address and port twice   which one counts
---------------------------       -----------
one ready, the other not          the ready one
one primary, the other backup     the primary one
different weights                 the higher one
else                              as in a Service's upstream (``upstreams.nodes.preference``)

As in nginx, a weight applies to each node, not to a member as a whole. Where one named upstream is a member of another, its nodes
get the product of both weights. They are backups if either upstream says so.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kubesync.domain.dns.addresses import Address, parse_address
from kubesync.domain.dns.records import Node, Problem
from kubesync.domain.objects import ObjectKey
from kubesync.domain.upstreams.nodes import fitting, preference, upstream_key

MAX_WEIGHT: Final = 1000
# Upper limit of a product of weights: nginx and Envoy add up weights in 32 bits, over all nodes of an upstream.
MAX_NODE_WEIGHT: Final = 100_000
# Nesting of named upstreams: more is a mistake.
MAX_DEPTH: Final = 8
PREFIX: Final = "named/"
"""Prefix of named upstreams' keys in the upstreams table. Keys of Services have five segments, so the two never collide."""

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")


@dataclass(frozen=True, slots=True, order=True)
class ServicePortOf:
    """A member: the upstream of a Service's port."""

    key: ObjectKey
    port: int
    protocol: str = "TCP"

    @property
    def upstream(self) -> str:
        """Its key in the upstreams table."""
        return upstream_key(self.key, self.port, self.protocol)

    def __str__(self) -> str:
        return self.upstream


@dataclass(frozen=True, slots=True, order=True)
class NamedOf:
    """A member: another named upstream."""

    name: str

    def __str__(self) -> str:
        return named_key(self.name)


@dataclass(frozen=True, slots=True, order=True)
class StaticNode:
    """A member: a node outside of any cluster. It is always ready."""

    address: Address
    port: int

    def __str__(self) -> str:
        host = self.address.text if self.address.family == 4 else f"[{self.address.text}]"
        return f"{host}:{self.port}"


type MemberSource = ServicePortOf | NamedOf | StaticNode


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a named upstream. ``weight`` (1 to ``MAX_WEIGHT``) applies to each node; ``backup`` nodes serve when no primary works."""

    source: MemberSource
    weight: int = 1
    backup: bool = False


@dataclass(frozen=True, slots=True)
class NamedUpstream:
    """A named upstream as it is registered. ``shard``: whose master composes it. ``held_by``: its registered users.

    ``members`` are in the order given, which does not matter to the nodes.
    """

    name: str
    members: tuple[Member, ...]
    shard: str = "0"
    held_by: tuple[str, ...] = ()

    @property
    def services(self) -> tuple[ServicePortOf, ...]:
        """The Services' upstreams among its own members."""
        return tuple(member.source for member in self.members if isinstance(member.source, ServicePortOf))

    @property
    def includes(self) -> tuple[str, ...]:
        """The named upstreams among its own members."""
        return tuple(member.source.name for member in self.members if isinstance(member.source, NamedOf))


@dataclass(frozen=True, slots=True)
class Composed:
    """The nodes of a named upstream, sorted and unique like a Service's, and the problems of its members."""

    nodes: tuple[Node, ...]
    problems: tuple[Problem, ...] = ()


type Named = Mapping[str, NamedUpstream]
"""The registered named upstreams, by name."""
type NodesOf = Mapping[str, Sequence[Node] | None]
"""The nodes of Services' upstreams by key. None, or a missing key: there is no such upstream."""


def named_key(name: str) -> str:
    """``named/<name>``: its key in the upstreams table."""
    return f"{PREFIX}{name}"


def is_named(upstream: str) -> bool:
    """Whether a key of the upstreams table belongs to a named upstream. Keys of a cluster called ``named`` have more segments."""
    return upstream.startswith(PREFIX) and upstream.count("/") == 1


def valid_name(name: str) -> bool:
    """Whether a name is a DNS label."""
    return _NAME.fullmatch(name) is not None


def parse_service(text: str) -> ServicePortOf:
    """``cluster/namespace/service/port[/PROTOCOL]``. Raises ValueError with one line."""
    parts = text.split("/")
    if len(parts) not in (4, 5) or not all(parts):
        raise ValueError(f"{text!r} is not a Service's upstream: write cluster/namespace/service/port[/PROTOCOL]")
    cluster, namespace, name, port = parts[:4]
    for part in (cluster, namespace, name):
        if not valid_name(part):
            raise ValueError(f"{text!r}: {part!r} is not made of lower-case letters, digits and hyphens, at most 63")
    protocol = parts[4].upper() if len(parts) == 5 else "TCP"
    if protocol not in _PROTOCOLS:
        raise ValueError(f"{text!r}: {parts[4]!r} is not one of {', '.join(_PROTOCOLS)}")
    return ServicePortOf(ObjectKey(cluster, namespace, name), _port(port, text), protocol)


def parse_static(text: str) -> StaticNode:
    """``10.0.0.1:80`` or ``[2001:db8::1]:80``. Raises ValueError with one line."""
    host, _, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    address = parse_address(host[1:-1] if bracketed else host)
    if address is None or (":" in host and not bracketed):
        raise ValueError(f"{text!r} is not a node, for example 10.0.0.1:80 or [2001:db8::1]:80")
    return StaticNode(address, _port(port, text))


def _port(text: str, source: str) -> int:
    """Read a port. ``source``: the whole text, for the message. Raises ValueError."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 0
    if not 1 <= number <= 65535:
        raise ValueError(f"{source!r}: a port is a number from 1 to 65535")
    return number


def compose(name: str, named: Named, nodes_of: NodesOf) -> Composed:
    """Compose the nodes of a named upstream from the Services' upstreams below it.

    A missing member contributes no nodes and is reported as a problem. The other members still count.
    """
    problems: set[Problem] = set()
    nodes = _Composition(named, nodes_of, problems).nodes(name, ())
    ordered = tuple(node for _, node in sorted(nodes.items(), key=lambda item: item[0]))
    kept = fitting(ordered)
    if len(kept) < len(ordered):
        left_out = f"{len(ordered) - len(kept)} of {len(ordered)} nodes are left out: an upstream is full"
        problems.add(Problem("TooManyNodes", named_key(name), left_out))
    return Composed(kept, tuple(sorted(problems)))


type _Nodes = dict[tuple[Address, int], Node]
"""By address and port, so each is there once."""


@dataclass(slots=True)
class _Composition:
    """Composes one named upstream. Composes an upstream that is included in several ways only once.

    ``problems`` takes what is reported. ``done``: the composed upstreams, by name.
    """

    named: Named
    nodes_of: NodesOf
    problems: set[Problem]
    done: dict[str, _Nodes] = field(default_factory=dict)

    def nodes(self, name: str, path: tuple[str, ...]) -> _Nodes:
        """Compose the nodes of a registered named upstream. Of two with one address and port, the table at the top decides.

        ``path``: the named upstreams that led here, the outermost first. One that comes again includes itself.
        """
        if name not in self.done:
            composed: _Nodes = {}
            for member in self.named[name].members:
                for node in self._nodes_of_member(member.source, (*path, name)):
                    if (address := parse_address(node.ip)) is not None:
                        weight = min(node.weight * member.weight, MAX_NODE_WEIGHT)
                        of_member = replace(node, weight=weight, backup=node.backup or member.backup)
                        other = composed.setdefault((address, node.port), of_member)
                        composed[address, node.port] = min(other, of_member, key=_preference)
            self.done[name] = composed
        return self.done[name]

    def _nodes_of_member(self, source: MemberSource, path: tuple[str, ...]) -> Iterable[Node]:
        """The nodes of a member, before the member's weight. ``path``: as in ``nodes``, with the upstream that has the member.

        Reports a member that is missing or would go round in a circle. It has no nodes.
        """
        match source:
            case StaticNode(address, port):
                return (Node(address.text, port, ready=True),)
            case NamedOf(name) if name in path or len(path) > MAX_DEPTH:
                # Registration refuses this. Two registrations at the same moment, or an older table, can still lead to it.
                said = f"it includes itself, or is nested too deep: {' > '.join((*path, name))}"
                self.problems.add(Problem("UpstreamCycle", str(source), said))
            case NamedOf(name) if name in self.named:
                return self.nodes(name, path).values()
            case NamedOf():
                self.problems.add(Problem("MissingUpstream", str(source), "no such named upstream is registered"))
            case ServicePortOf(key, port):
                nodes = self.nodes_of.get(source.upstream)
                if nodes is None:
                    said = f"Service {key} is not there, or has no port {port}"
                    self.problems.add(Problem("MissingUpstream", str(source), said))
                return nodes or ()
        return ()


def _preference(node: Node) -> tuple[bool, bool, int, tuple[bool, int, int, str, str, str, str]]:
    """Sort key by the table at the top: of two nodes with one address and port, the one with the smaller key counts."""
    return not node.ready, node.backup, -node.weight, preference(node)


def below(name: str, named: Named) -> frozenset[str]:
    """A named upstream and everything that it includes, directly or not, as far as it is registered."""
    found: set[str] = set()
    to_visit = [name]
    while to_visit:
        visited = to_visit.pop()
        if visited in named and visited not in found:  # there may be circles
            found.add(visited)
            to_visit += named[visited].includes
    return frozenset(found)


def dependents_of(named: Named) -> dict[str, frozenset[str]]:
    """For the key of each upstream, Services' and named ones: the named upstreams that have to be composed again when it changes.

    A named upstream depends on itself, too: on its registration.
    """
    dependents: dict[str, set[str]] = {}
    for name in named:
        for included in below(name, named):
            dependents.setdefault(named_key(included), set()).add(name)
            for source in named[included].services:
                dependents.setdefault(source.upstream, set()).add(name)
    return {upstream: frozenset(names) for upstream, names in dependents.items()}
