"""The upstream contract: nodes behind each port of a Service, their public shape, digest and slices (DESIGN section 8)."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from kubesync.domain.dns.addresses import Address
from kubesync.domain.dns.endpoints import AddressedGroup
from kubesync.domain.dns.records import Node
from kubesync.domain.objects import Endpoint, Service, ServiceKey

# Well below DynamoDB's 400 KB an item, and the size from which DESIGN section 10 slices.
MAX_SLICE_BYTES: Final = 100_000
# All slices of a version are written in one transaction, together with the key's own state: well below 4 MB.
# That is 12,000 nodes or more; what one upstream has beyond them is reported and left out.
MAX_SLICES: Final = 24
# So many nodes fit in any case, however long their names.
_ALWAYS_FIT: Final = 1000
_BRACKETS: Final = 2

_ALWAYS: Final = ("ip", "port", "ready")
_SOMETIMES: Final = ("serving", "terminating", "node", "zone", "hostname", "pod", "weight", "backup")

_CANONICAL_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
# Of two observed of one address and port, as while a pod moves from one slice to another, the better one counts.
_SERVING_ORDER: Final = {True: 0, None: 1, False: 2}
_TERMINATING_ORDER: Final = {False: 0, None: 1, True: 2}


def upstream_key(key: ServiceKey, port: int, protocol: str) -> str:
    """``<cluster>/<namespace>/<service>/<port>/<PROTOCOL>`` with the Service's port number."""
    return f"{key}/{port}/{protocol.upper()}"


def upstreams_of(key: ServiceKey, service: Service, groups: Sequence[AddressedGroup]) -> dict[str, tuple[Node, ...]]:
    """The nodes behind every port of a Service that is not an ExternalName; a port without endpoints has none.

    A Service's port and an endpoints' port belong together where name (empty for an unnamed one) and protocol are
    equal. Their numbers differ as a rule: the one is the Service's, the other the container's.
    """
    upstreams: dict[str, tuple[Node, ...]] = {}
    found: dict[str, dict[tuple[Address, int], Endpoint]] = {}
    for service_port in service.ports:
        nodes = found.setdefault(upstream_key(key, service_port.port, service_port.protocol), {})
        for group in groups:
            for port in group.ports:
                if (port.name, port.protocol) == (service_port.name, service_port.protocol):
                    _collect(nodes, group, port.port)
    for name in sorted(found):
        upstreams[name] = tuple(
            Node(
                ip=address.text,
                port=port,
                ready=endpoint.ready,
                serving=endpoint.serving,
                terminating=endpoint.terminating,
                node=endpoint.node,
                zone=endpoint.zone,
                hostname=endpoint.hostname,
                pod=endpoint.pod,
            )
            for (address, port), endpoint in sorted(found[name].items(), key=lambda item: item[0])
        )
    return upstreams


def _collect(nodes: dict[tuple[Address, int], Endpoint], group: AddressedGroup, port: int) -> None:
    for endpoint, address in group.members:
        other = nodes.setdefault((address, port), endpoint)
        if other is not endpoint and preference(endpoint) < preference(other):
            nodes[address, port] = endpoint


def preference(endpoint: Endpoint | Node) -> tuple[bool, int, int, str, str, str, str]:
    """Ready wins; the rest only makes the choice independent of the order of slices. The least is the best."""
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
    """The public shape of a node: ``ip``, ``port`` and ``ready`` always, the other fields where they are known."""
    document: dict[str, str | int | bool] = {"ip": node.ip, "port": node.port, "ready": node.ready}
    if node.serving is not None:
        document["serving"] = node.serving
    if node.terminating is not None:
        document["terminating"] = node.terminating
    if node.node:
        document["node"] = node.node
    if node.zone:
        document["zone"] = node.zone
    if node.hostname:
        document["hostname"] = node.hostname
    if node.pod:
        document["pod"] = node.pod
    if node.weight != 1:
        document["weight"] = node.weight
    if node.backup:
        document["backup"] = True
    return document


def node_of(document: Mapping[str, Any]) -> Node:
    """The inverse of ``node_document``; fields of a later version of the contract are left out.

    Raises:
        KeyError: one of the fields that are always there is missing.
    """
    return Node(**{name: document[name] for name in _ALWAYS}, **{n: document[n] for n in _SOMETIMES if n in document})


def digest(nodes: Sequence[Node]) -> str:
    r"""SHA-256 in hexadecimal of the nodes, in their order, as canonical JSON.

    Canonical: an array of ``node_document``, keys sorted, no spaces, other than ASCII characters escaped as ``\uXXXX``.
    """
    return sha256(_CANONICAL_JSON.encode([node_document(node) for node in nodes]).encode("ascii")).hexdigest()


def slice_nodes(nodes: Sequence[Node], max_bytes: int = MAX_SLICE_BYTES) -> list[list[Node]]:
    """Cut the nodes, in their order, into slices of at most ``max_bytes`` of canonical JSON each.

    There is always at least one slice, and a slice holds at least one node where there is one. DynamoDB counts about as
    much as the JSON has: names and values, without quotes and commas but with a byte or three for each element.
    """
    slices: list[list[Node]] = [[]]
    size = _BRACKETS
    for node in nodes:
        node_bytes = _size(node)
        if slices[-1] and size + node_bytes > max_bytes:
            slices.append([])
            size = _BRACKETS
        slices[-1].append(node)
        size += node_bytes
    return slices


def fitting(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """As many nodes as one upstream can have, in their order: ready ones first, of these primaries before backups.

    Which ones these are follows from the nodes alone: while they stay as they are, so does the choice, and a node that comes
    or goes changes it at its end only.
    """
    if len(nodes) <= _ALWAYS_FIT:
        return tuple(nodes)
    sizes = [_size(node) for node in nodes]
    if _slices_of(sizes) <= MAX_SLICES:
        return tuple(nodes)
    best_first = sorted(range(len(nodes)), key=lambda at: (not nodes[at].ready, nodes[at].backup))

    def kept(count: int) -> list[int]:
        return sorted(best_first[:count])

    # One more node never takes fewer slices.
    most = bisect_right(range(len(nodes)), MAX_SLICES, key=lambda count: _slices_of(sizes[at] for at in kept(count)))
    return tuple(nodes[at] for at in kept(most - 1))


def _size(node: Node) -> int:
    return len(_CANONICAL_JSON.encode(node_document(node))) + 1  # and the comma


def _slices_of(sizes: Iterable[int]) -> int:
    """How many slices nodes of these sizes take, cut as ``slice_nodes`` does it."""
    slices, filled = 1, _BRACKETS
    for size in sizes:
        if filled > _BRACKETS and filled + size > MAX_SLICE_BYTES:
            slices, filled = slices + 1, _BRACKETS
        filled += size
    return slices
