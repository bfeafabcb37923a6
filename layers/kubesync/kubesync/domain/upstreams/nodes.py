"""The upstream contract: the nodes behind each port of a Service, their public form, digest and slices (docs/upstreams.md)."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from typing import Any, Final

from kubesync.domain.dns.addresses import Address
from kubesync.domain.dns.endpoints import AddressedGroup
from kubesync.domain.dns.records import Node
from kubesync.domain.objects import Endpoint, Service, ServiceKey

# Well below DynamoDB's 400 KB an item. Larger items are cut into slices of this size.
MAX_SLICE_BYTES: Final = 100_000
# One transaction writes all slices of a version and the key's own state: well below 4 MB.
# That is 12,000 nodes or more. Nodes beyond the limit are left out and reported.
MAX_SLICES: Final = 24
# This many nodes always fit, however long their names.
_ALWAYS_FIT: Final = 1000
_BRACKETS: Final = 2

_ALWAYS: Final = ("ip", "port", "ready")
_SOMETIMES: Final = {field.name: field.default for field in fields(Node) if field.name not in _ALWAYS}

_CANONICAL_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
# The better of two observations of one address and port counts. There are two while a pod moves from one slice to another.
_SERVING_ORDER: Final = {True: 0, None: 1, False: 2}
_TERMINATING_ORDER: Final = {False: 0, None: 1, True: 2}


def upstream_key(key: ServiceKey, port: int, protocol: str) -> str:
    """``<cluster>/<namespace>/<service>/<port>/<PROTOCOL>`` with the Service's port number."""
    return f"{key}/{port}/{protocol.upper()}"


def upstreams_of(key: ServiceKey, service: Service, groups: Sequence[AddressedGroup]) -> dict[str, tuple[Node, ...]]:
    """The nodes behind every port of a Service that is not an ExternalName. A port without endpoints has none.

    A Service's port and an endpoints' port belong together if their names (empty for an unnamed port) and protocols are
    equal. Their numbers usually differ: one is the Service's, the other the container's.
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
    """The public form of a node: always ``ip``, ``port`` and ``ready``, and the other fields if they are known."""
    document: dict[str, str | int | bool] = {"ip": node.ip, "port": node.port, "ready": node.ready}
    for name, default in _SOMETIMES.items():
        if (value := getattr(node, name)) != default:
            document[name] = value
    return document


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
    return sha256(_CANONICAL_JSON.encode([node_document(node) for node in nodes]).encode("ascii")).hexdigest()


def slice_nodes(nodes: Sequence[Node], max_bytes: int = MAX_SLICE_BYTES) -> list[list[Node]]:
    """Cut the nodes, in their order, into slices of at most ``max_bytes`` of canonical JSON each.

    There is always at least one slice. A slice holds at least one node if there is one. DynamoDB counts about as many bytes as the
    JSON has: names and values, without quotes and commas, but with one to three bytes for each element.
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
    """As many nodes as one upstream can hold, in their order. Ready nodes come first, and of these primaries before backups.

    The choice depends on the nodes alone. It stays the same while they do, and a node that comes or goes changes only the end
    of the choice.
    """
    if len(nodes) <= _ALWAYS_FIT:
        return tuple(nodes)
    sizes = [_size(node) for node in nodes]
    if _slices_of(sizes) <= MAX_SLICES:
        return tuple(nodes)
    best_first = sorted(range(len(nodes)), key=lambda at: (not nodes[at].ready, nodes[at].backup))

    def kept(count: int) -> list[int]:
        return sorted(best_first[:count])

    # Adding a node never reduces the number of slices.
    most = bisect_right(range(len(nodes)), MAX_SLICES, key=lambda count: _slices_of(sizes[at] for at in kept(count)))
    return tuple(nodes[at] for at in kept(most - 1))


def _size(node: Node) -> int:
    return len(_CANONICAL_JSON.encode(node_document(node))) + 1  # and the comma


def _slices_of(sizes: Iterable[int]) -> int:
    """How many slices nodes of these sizes need, cut as in ``slice_nodes``."""
    slices, filled = 1, _BRACKETS
    for size in sizes:
        if filled > _BRACKETS and filled + size > MAX_SLICE_BYTES:
            slices, filled = slices + 1, _BRACKETS
        filled += size
    return slices
