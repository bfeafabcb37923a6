"""What named upstreams should be, against what stands in the table: reads both, writes nothing.

registered   stands               what it takes
----------   ------               -------------
yes          with these nodes     nothing (I6)
yes          otherwise, or not    all its slices, as a new version
no           yes                  a mark of its removal
no           marked or not        nothing
by another shard                  nothing: that one's master looks after it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kubesync.actors.parallel import Map
from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.control.named_upstreams import Registry
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.named_upstreams import NamedUpstream, below, compose, named_key
from kubesync.domain.state import UpstreamState
from kubesync.domain.upstreams import node_of

_TORN_READS: Final = 5
_UNREADABLE: Final[tuple[Node, ...]] = (Node("", 0, ready=False),)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A named upstream that does not stand as it should. ``drift``: ``missing``, ``changed``, or ``stray`` (nobody's)."""

    name: str
    actions: tuple[Action, ...]
    entry: Entry
    drift: str


@dataclass(frozen=True, slots=True)
class Recomposed:
    """``stuck``: names that cannot be composed now, each with an upstream that it is made of and that cannot be read."""

    rewrites: tuple[Rewrite, ...]
    stuck: Mapping[str, str]


@dataclass(slots=True)
class _Read:
    """Services' upstreams, each read once however many named upstreams share it. ``unreadable``: not to be read whole."""

    nodes: dict[str, Sequence[Node] | None] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)


def recompose(
    table: UpstreamTable, registry: Registry, shard: str, whys: Mapping[str, str], now_epoch: float, reads: Map
) -> Recomposed:
    """Compare these named upstreams with what they should be.

    Args:
        whys: their names, each with what led to it, for the audit.
        reads: reads them.
    """
    named = registry.named
    made_of = {name: _constituents(name, named) for name in whys}
    read = _read_all(table, sorted(set().union(*made_of.values())), reads)
    # One that cannot be read stops no named upstream that is not made of it (I4).
    stuck = {
        name: min(upstreams & read.unreadable) for name, upstreams in made_of.items() if upstreams & read.unreadable
    }
    rewrites: list[Rewrite] = []
    for name in sorted(whys.keys() - stuck.keys()):
        entry = registry.entries.get(name)
        if entry is not None and entry.shard != shard:
            continue
        nodes = None if entry is None else compose(name, named, read.nodes).nodes
        try:
            rewrite = _rewrite(table, name, nodes, whys[name], now_epoch)
        except NewerSchemaError:
            stuck[name] = named_key(name)
            continue
        if rewrite is not None:
            rewrites.append(rewrite)
    return Recomposed(tuple(rewrites), stuck)


def _constituents(name: str, named: Mapping[str, NamedUpstream]) -> set[str]:
    return {source.upstream for each in below(name, named) for source in named[each].services}


def _read_all(table: UpstreamTable, upstreams: Sequence[str], reads: Map) -> _Read:
    read = _Read()
    for upstream, nodes in zip(upstreams, reads(partial(_nodes_of, table), upstreams), strict=True):
        if nodes is _UNREADABLE:
            read.unreadable.add(upstream)
        else:
            read.nodes[upstream] = nodes
    return read


def _nodes_of(table: UpstreamTable, upstream: str) -> Sequence[Node] | None:
    """Of one version if that can be had: a query is no snapshot. None: it is not there."""
    for _ in range(_TORN_READS):
        try:
            stored = table.read(upstream)
            if stored is None or (stored.complete and stored.deleted):
                return None
            if stored.complete:
                return tuple(map(node_of, stored.nodes))
        except (NewerSchemaError, KeyError, TypeError):  # of a newer release, or written by somebody else
            break
    return _UNREADABLE


def _rewrite(
    table: UpstreamTable, name: str, nodes: Sequence[Node] | None, why: str, now_epoch: float
) -> Rewrite | None:
    """What it takes for a named upstream to have these nodes (None: not to be there); None: nothing."""
    upstream = named_key(name)
    stored = table.read(upstream)
    there = stored is not None and not stored.deleted
    if (stored is not None and nodes is not None and stored.holds(nodes)) or (nodes is None and not there):
        return None
    stands = None if stored is None else UpstreamState(stored.version, "", max(stored.slices, stored.items))
    before = f"version {stored.version}" if stored is not None and there else None
    if nodes is None:
        removed = table.remove(upstream, stands, now_epoch)
        return Rewrite(name, tuple(removed), Entry(f"upstream {upstream}", before, None, why), "stray")
    state, written = table.put(upstream, stands, nodes, now_epoch)
    after = f"version {state.version}, {len(nodes)} nodes"
    entry = Entry(f"upstream {upstream}", before, after, why)
    return Rewrite(name, tuple(written), entry, "changed" if there else "missing")
