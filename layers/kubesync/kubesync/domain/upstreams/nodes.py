"""The upstream contract: the nodes behind each port of a Service, their public form, digest and slices (docs/upstreams.md)."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields
from functools import cache, partial
from hashlib import sha256
from itertools import accumulate, pairwise
from json.encoder import encode_basestring_ascii as quoted
from operator import attrgetter, eq
from typing import Any, Final

from kubesync.domain.dns.addresses import Address
from kubesync.domain.dns.endpoints import AddressedGroup, address_not_allowed
from kubesync.domain.dns.records import Held, Node, Problem
from kubesync.domain.objects import Endpoint, ObjectKey, Service, equal_share

# Well below DynamoDB's 400 KB an item. Larger items are cut into slices of this size.
MAX_SLICE_BYTES: Final = 100_000
# One transaction writes all slices of a version and the key's own state: well below 4 MB.
# That is 12,000 nodes or more. Nodes beyond the limit are left out and reported.
MAX_SLICES: Final = 24
# All upstreams of a Service together: as much as ten full ones hold.
MAX_SERVICE_BYTES: Final = 10 * MAX_SLICES * MAX_SLICE_BYTES
# All choices of a Service together look at so many endpoints: 40 bytes is the least that a node needs, so within ``MAX_SERVICE_BYTES``
# there are 600,000, and each may stand in two slices while it moves.
MAX_LOOKED_AT: Final = 2_000_000
# This many nodes always fit, however long their names.
_ALWAYS_FIT: Final = 1000
_HASHED_AT_A_TIME: Final = 1000
# Bytes that an empty slice has: its JSON array begins with ``[`` and ends with ``]``.
_BRACKETS: Final = 2

# The fields that a node takes over from its endpoint, in the order of ``Node``.
_OF_ENDPOINT: Final = attrgetter("ready", "serving", "terminating", "node", "zone", "hostname", "pod")
# The fields that each node's document has, and those that it has where they are known, each with its default (``node_document``).
_ALWAYS: Final = ("ip", "port", "ready")
_SOMETIMES: Final = {field.name: field.default for field in fields(Node) if field.name not in _ALWAYS}

# How many ports an address can have, 0 included: see ``_Places``.
_PORTS: Final = 1 << 16
_CANONICAL_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
# The better of two observations of one address and port counts. There are two while a pod moves from one slice to another.
_SERVING_ORDER: Final = {True: 0, None: 1, False: 2}
_TERMINATING_ORDER: Final = {False: 0, None: 1, True: 2}


def upstream_key(key: ObjectKey, port: int, protocol: str) -> str:
    """``<cluster>/<namespace>/<service>/<port>/<PROTOCOL>`` with the Service's port number."""
    return f"{key}/{port}/{protocol.upper()}"


type _Target = tuple[tuple[int, int], ...]
"""Where a Service's port leads to, as pairs: a group, by its index (``at`` below), and the number of the port in this group."""
type _Places = array[int]
"""The places of a group's members, in their order. A place is the rank of an address among all of the Service, times ``_PORTS``.

So a place plus a port is one number for both. These numbers sort by address, then by port, and take little memory: a Service may have
100,000. ``number // _PORTS`` is the rank, ``number % _PORTS`` the port.
"""


class ChosenNodes(Sequence[Node]):
    """The nodes of one upstream, chosen and not built: each ``Node`` is built when it is read, which saves memory.

    ``ips``, ``ports`` and ``endpoints`` belong together: each has an entry for each node, in one order. ``left_out``: how many nodes the
    upstream has no room for. ``sizes``: the bytes that each node takes in its slice; empty where a Service has few nodes.
    ``with_port`` makes copies with another port, which share all else.
    """

    def __init__(
        self, ips: Sequence[str], ports: Iterable[int], endpoints: Sequence[Endpoint], left_out: int, sizes: array[int]
    ) -> None:
        self.left_out = left_out
        self.sizes = sizes
        self.ips = ips
        self._ports = array("H", ports)
        self._endpoints = endpoints
        self._port: int | None = None  # the port of all nodes of a copy; None: each node has its own
        # Shared with all copies: their digests by port. ``digest`` computes them together; an empty text: not computed yet.
        self._digests: dict[int | None, str] = {}

    def __len__(self) -> int:
        return len(self.ips)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return tuple(map(_node, self.ips[at], self._ports[at], self._endpoints[at]))
        return _node(self.ips[at], self._ports[at], self._endpoints[at])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def with_port(self, port: int) -> ChosenNodes:
        """A copy with the same endpoints and this one port for all. The ports of a Service often lead to the same pods.

        Also notes the port in ``_digests``, which all copies share: so ``digest`` computes the digests of all copies at once.
        """
        other = copy(self)
        vars(other).update(_ports=array("H", [port]) * len(self), _port=port)
        self._digests.setdefault(port, "")
        return other

    @property
    def digest(self) -> str:
        """The function ``digest`` of these nodes. Only some are encoded at a time, since the JSON of all would take much memory.

        The first of the copies (``with_port``) that is asked computes the digests of all. Their JSON differs only in the port. So each node is
        encoded once, with the port of this copy, and for each digest its port is put into the text instead.
        """
        if not self._digests.get(self._port):
            # Where each node has its own port, none can be replaced by that of a copy.
            ports = [self._port] if self._port is None else list(self._digests)
            hashes = {port: sha256(b"[") for port in ports}
            for start in range(0, len(self), _HASHED_AT_A_TIME):
                part = slice(start, start + _HASHED_AT_A_TIME)
                nodes = map(_canonical, self.ips[part], self._ports[part], self._endpoints[part])
                text = ("," * (start > 0) + ",".join(nodes)).encode("ascii")
                for port, hashed in hashes.items():
                    hashed.update(text.replace(_port_text(self._port), _port_text(port)))
            for port, hashed in hashes.items():
                hashed.update(b"]")
                self._digests[port] = hashed.hexdigest()
        return self._digests[self._port]


def _port_text(port: int | None) -> bytes:
    """How a node's JSON gives its port. It can be replaced as text: no other part of a node reads so, as quotes within texts are escaped."""
    return f'"port":{port},'.encode("ascii")


def allowed_upstreams(
    key: ObjectKey, service: Service, groups: Sequence[AddressedGroup], held: Held, problems: set[Problem]
) -> dict[str, ChosenNodes]:
    """The upstreams (see ``upstreams_of``) without addresses that nobody may newly be pointed at (``addresses.why_forbidden``: loopback, say).

        the upstream's nodes, forbidden ones included, are    it gets
        --------------------------------------------------    -------
        those that were written last (the same digest)        the same nodes: a release that forbids more takes nothing away
        others                                                its allowed nodes only

    Reports each forbidden address, and whether it stays in an upstream.

    Args:
        held: what the key has. ``held.digests``: of its upstreams as they were written last, by key.
        problems: takes what is reported.
    """
    why = {address.text: address.forbidden for group in groups for _, address in group.members if address.forbidden}
    if not why:
        return upstreams_of(key, service, groups)
    with_forbidden = upstreams_of(key, service, groups, held.digests.__contains__).items()
    unchanged = {name: nodes for name, nodes in with_forbidden if held.digests[name] == nodes.digest}
    del with_forbidden  # both at once would take twice the memory
    staying = {ip for nodes in unchanged.values() for ip in nodes.ips}
    problems.update(address_not_allowed(address, kind, stands=address in staying) for address, kind in why.items())
    allowed = [group._replace(members=tuple(m for m in group.members if not m[1].forbidden)) for group in groups]
    others = upstreams_of(key, service, allowed, lambda name: name not in unchanged)
    return dict(sorted((others | unchanged).items()))


def upstreams_of(
    key: ObjectKey, service: Service, groups: Sequence[AddressedGroup], wanted: Callable[[str], bool] = lambda _: True
) -> dict[str, ChosenNodes]:
    """The nodes behind every port of a Service that is not an ExternalName, by upstream key. A port without endpoints has an empty upstream.

    A Service's port and an endpoints' port belong together if their names (empty for an unnamed port) and protocols are
    equal. Their numbers usually differ: one is the Service's, the other the container's.

    Two limits hold for all upstreams of a Service together:
        bytes               If all need more than ``MAX_SERVICE_BYTES``, none holds more than an equal share, which is larger where others
                            need less. Here, an endpoint in two groups counts twice.
        endpoints looked at If all choices have more than ``MAX_LOOKED_AT`` to choose from, each group offers only some of its own, ready
                            ones first.

    Args:
        wanted: makes only the upstreams whose keys it takes. The limits are those of all.
    """
    # 1. Match the ports.
    offered: dict[tuple[str, str], list[tuple[int, int]]] = {}  # by name and protocol: pairs as in ``_Target``
    for at, group in enumerate(groups):
        for port in group.ports:
            offered.setdefault((port.name, port.protocol), []).append((at, port.port))
    targets: dict[str, _Target] = {}  # by upstream key
    for service_port in service.ports:
        name = upstream_key(key, service_port.port, service_port.protocol)
        pairs = offered.get((service_port.name, service_port.protocol), ())
        targets[name] = (*targets.get(name, ()), *pairs)
    # 2. Share out what the limits allow: ``share`` bytes to an upstream, ``most`` endpoints to a choice.
    share, sizes = _share(groups, targets.values())
    shapes = {target: _shape(target) for target in targets.values()}
    counts = [sum(len(groups[at].members) for at, _ in shape) for shape in set(shapes.values())]
    most = equal_share(counts, MAX_LOOKED_AT)
    if most < max(counts, default=0):  # a choice leaves some of its endpoints out: those at the end
        groups = [g._replace(members=tuple(sorted(g.members, key=lambda m: not m[0].ready))) for g in groups]
    # 3. Rank the addresses.
    addresses = sorted({address for group in groups for _, address in group.members})
    place_of = {address: rank * _PORTS for rank, address in enumerate(addresses)}
    places = [array("L", (place_of[address] for _, address in group.members)) for group in groups]
    del place_of  # it takes much memory, and the choices take more
    # 4. Choose: once for targets of one shape, and make a copy for each other port.
    choose = cache(partial(_choose, addresses, groups, places, sizes, share, most))

    @cache
    def nodes_behind(target: _Target) -> ChosenNodes:
        nodes = choose(shapes[target])
        return nodes if len({number for _, number in target}) != 1 else nodes.with_port(target[0][1])

    return {name: nodes_behind(targets[name]) for name in sorted(targets) if wanted(name)}


def _shape(target: _Target) -> _Target:
    """The target itself, or one that stands for all targets for which ``_choose`` would choose the same endpoints: so it chooses once for them.

    If a target has one port number in all its groups, the number matters only by how many digits it has: they take room in a slice. The
    smallest number with as many digits stands for it: 1000 for 8080. The caller then puts the real port in (``with_port``).
    """
    numbers = {number for _, number in target}
    return target if len(numbers) != 1 else tuple((at, 10 ** len(str(number)) // 10) for at, number in target)


def _share(groups: Sequence[AddressedGroup], targets: Collection[_Target]) -> tuple[int, dict[int, int]]:
    """How many bytes each upstream of a Service may hold, and how many each endpoint needs, without the digits of the port.

    The second is by the ``id()`` of the endpoint, because hashing an endpoint takes long; ids stay valid, since the groups keep all endpoints
    alive. It is empty if the Service has so few nodes that all fit.
    """
    if sum(len(groups[at].members) for target in targets for at, _ in target) <= _ALWAYS_FIT:
        return MAX_SERVICE_BYTES, {}
    sizes: dict[int, int] = {}
    of_groups = []  # of each group, the sum of its endpoints
    for group in groups:
        # Measured with port 0, whose one digit counts for the comma that follows a node. The digits of its real port come on top.
        of_group = [len(_canonical(address.text, 0, endpoint)) for endpoint, address in group.members]
        sizes.update(zip((id(endpoint) for endpoint, _ in group.members), of_group, strict=True))
        of_groups.append(sum(of_group))
    full = MAX_SLICES * MAX_SLICE_BYTES
    needs = [
        min(full, sum(of_groups[at] + len(groups[at].members) * len(str(port)) for at, port in target))
        for target in targets
    ]
    return equal_share(needs, MAX_SERVICE_BYTES), sizes


def _choose(
    addresses: Sequence[Address],
    groups: Sequence[AddressedGroup],
    places: Sequence[_Places],
    sizes: Mapping[int, int],
    share: int,
    most: int,
    target: _Target,
) -> ChosenNodes:
    """Choose the nodes of one target.

    1. Of each group, look at all members; if the groups have more than ``most`` together, at an equal number from the front of each.
    2. Of two endpoints with one address and port, take the one that ``preference`` puts first.
    3. Keep as many as fit, ready ones first.

    The nodes are in the order of addresses, then ports.

    Args:
        addresses: all of the Service, sorted.
        places: of each group, the places of its members (``_Places``).
        sizes: of each endpoint, by its ``id()`` and without the digits of the port (``_share``). Empty: the nodes are few, and all fit.
        share: how many bytes the nodes may have.
        most: how many endpoints are looked at.
    """
    # 1.
    offering = sum(len(groups[at].members) for at, _ in target)
    of_each = offering if offering <= most else max(1, most // len(target))
    left_out = sum(max(0, len(groups[at].members) - of_each) for at, _ in target)
    # 2. By address and port, as one number: place + port (``_Places``).
    best: dict[int, Endpoint] = {}
    for at, port in target:
        for place, (endpoint, _) in zip(places[at][:of_each], groups[at].members[:of_each], strict=True):
            other = best.setdefault(place + port, endpoint)
            if other is not endpoint and preference(endpoint) < preference(other):
                best[place + port] = endpoint
    numbers = sorted(best)
    endpoints = [best[number] for number in numbers]
    # 3.
    digits = {port: len(str(port)) for _, port in target}
    node_sizes = [sizes[id(e)] + digits[n % _PORTS] for n, e in zip(numbers, endpoints, strict=True)] if sizes else []
    fitting_ones = _indexes_that_fit(node_sizes, lambda at: not endpoints[at].ready, share)
    if fitting_ones is not None:
        left_out += len(numbers) - len(fitting_ones)
        numbers, endpoints = [numbers[at] for at in fitting_ones], [endpoints[at] for at in fitting_ones]
        node_sizes = [node_sizes[at] for at in fitting_ones]
    ips = tuple(addresses[number // _PORTS].text for number in numbers)
    return ChosenNodes(ips, (number % _PORTS for number in numbers), tuple(endpoints), left_out, array("L", node_sizes))


def _node(ip: str, port: int, endpoint: Endpoint) -> Node:
    return Node(ip, port, *_OF_ENDPOINT(endpoint))


def preference(endpoint: Endpoint | Node) -> tuple[bool, int, int, str, str, str, str]:
    """Sort key of an endpoint. Of two with the same address and port, the one with the smaller key stays.

    Ready comes first, then serving, then not terminating. The other fields only make the choice independent of slice order.
    """
    return (
        not endpoint.ready,
        _SERVING_ORDER[endpoint.serving],
        _TERMINATING_ORDER[endpoint.terminating],
        endpoint.pod,
        endpoint.node,
        endpoint.zone,
        endpoint.hostname,
    )


def node_document(node: Node) -> dict[str, str | int | bool]:
    """The public form of a node: always ``ip``, ``port`` and ``ready``, and the other fields where they differ from their default."""
    document: dict[str, str | int | bool] = {"ip": node.ip, "port": node.port, "ready": node.ready}
    for name, default in _SOMETIMES.items():
        if (value := getattr(node, name)) != default:
            document[name] = value
    return document


def _canonical(ip: str, port: int, endpoint: Endpoint) -> str:
    """The canonical JSON (``digest``) of an endpoint's node. Made by hand: encoding documents would take most of the time of a large plan."""
    host = f'"hostname":{quoted(endpoint.hostname)},' if endpoint.hostname else ""
    node = f'"node":{quoted(endpoint.node)},' if endpoint.node else ""
    pod = f'"pod":{quoted(endpoint.pod)},' if endpoint.pod else ""
    zone = f',"zone":{quoted(endpoint.zone)}' if endpoint.zone else ""
    state = _state(endpoint.ready, endpoint.serving, endpoint.terminating)
    return f'{{{host}"ip":"{ip}",{node}{pod}"port":{port},{state}{zone}}}'


@cache
def _state(*states: bool | None) -> str:
    """The fields ``ready``, ``serving`` and ``terminating`` in canonical JSON, without braces and those that are None."""
    document = dict(zip(("ready", "serving", "terminating"), states, strict=True))
    return _CANONICAL_JSON.encode({name: value for name, value in document.items() if value is not None})[1:-1]


def node_of(document: Mapping[str, Any]) -> Node:
    """The inverse of ``node_document``. Ignores fields of a later version of the contract.

    Raises:
        KeyError: one of the mandatory fields is missing.
    """
    return Node(**{name: document[name] for name in _ALWAYS}, **{n: document[n] for n in _SOMETIMES if n in document})


def digest(nodes: Sequence[Node]) -> str:
    r"""SHA-256 in hexadecimal of the nodes, in their order, as canonical JSON.

    Canonical: an array of ``node_document`` with sorted keys and no spaces; non-ASCII characters are escaped as ``\uXXXX``.
    """
    if isinstance(nodes, ChosenNodes):
        return nodes.digest
    return sha256(_CANONICAL_JSON.encode([node_document(node) for node in nodes]).encode("ascii")).hexdigest()


def slice_nodes(nodes: Sequence[Node], max_bytes: int = MAX_SLICE_BYTES) -> list[list[Node]]:
    """Cut the nodes, in their order, into slices of at most ``max_bytes`` of canonical JSON each.

    There is always at least one slice. A node that is larger has a slice to itself. DynamoDB counts about as many bytes as the
    JSON has: names and values, without quotes and commas, but with one to three bytes for each element.
    """
    edges = (0, *_cuts(sizes_of(nodes), max_bytes), len(nodes))
    return [list(nodes[start:end]) for start, end in pairwise(edges)]


def sizes_of(nodes: Sequence[Node]) -> Iterable[int]:
    """How many bytes each node takes in its slice, the comma after it included."""
    return nodes.sizes if isinstance(nodes, ChosenNodes) and nodes.sizes else map(_size, nodes)


def fitting(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """As many nodes as one upstream can hold, in their order. Ready nodes come first, and of these primaries before backups.

    The choice depends on the nodes alone. It stays the same while they do, and a node that comes or goes changes only the end
    of the choice.
    """
    if len(nodes) <= _ALWAYS_FIT:
        return tuple(nodes)
    indexes = _indexes_that_fit([*map(_size, nodes)], lambda at: (not nodes[at].ready, nodes[at].backup))
    return tuple(nodes) if indexes is None else tuple(nodes[at] for at in indexes)


def _indexes_that_fit(
    sizes: Sequence[int], rank: Callable[[int], Any], share: int = MAX_SERVICE_BYTES
) -> Sequence[int] | None:
    """The indexes of the nodes of these sizes that fit one upstream, in their order; None: all fit.

    They have at most ``share`` bytes, and at most ``MAX_SLICES`` slices. ``_ALWAYS_FIT`` nodes need no more slices, so few are not counted.

    Args:
        rank: of the node at an index. If not all fit, those of the lowest rank stay; of one rank the first.
    """
    in_share = sum(sizes) <= share
    if in_share and (len(sizes) <= _ALWAYS_FIT or slices_of(sizes) <= MAX_SLICES):
        return None
    best_first = sorted(range(len(sizes)), key=rank)

    def best(count: int) -> list[int]:
        """So many of the best, in the order of the nodes, as slices hold them."""
        return sorted(best_first[:count])

    def slices(count: int) -> int:
        return slices_of(sizes[at] for at in best(count))

    most = len(sizes) if in_share else bisect_right([*accumulate(sizes[at] for at in best_first)], share)
    if most > _ALWAYS_FIT and slices(most) > MAX_SLICES:
        # Adding a node never reduces the number of slices, so the largest count that fits can be found by bisection.
        most = bisect_right(range(most), MAX_SLICES, key=slices) - 1
    return best(most)


def _size(node: Node) -> int:
    """See ``sizes_of``."""
    return len(_CANONICAL_JSON.encode(node_document(node))) + 1  # and the comma


def slices_of(sizes: Iterable[int]) -> int:
    """How many slices nodes of these sizes need, cut as in ``slice_nodes``."""
    return 1 + sum(1 for _ in _cuts(sizes, MAX_SLICE_BYTES))


def _cuts(sizes: Iterable[int], max_bytes: int) -> Iterator[int]:
    """Where the nodes of these sizes are cut: the index of the first node of each slice but the first."""
    filled = _BRACKETS  # bytes of the slice so far
    for at, size in enumerate(sizes):
        if filled > _BRACKETS and filled + size > max_bytes:
            yield at
            filled = _BRACKETS
        filled += size
