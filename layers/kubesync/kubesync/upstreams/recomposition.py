"""Compares named upstreams with the table and composes the writes that are missing. Reads only.

registered        in the table           writes
----------        ------------           ------
yes               with the same nodes    none (I6)
yes               different or missing   all its slices, as a new version
no                yes                    a mark of its removal
no                marked or missing      none
by another shard  any                    none: that shard's master writes it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from kubesync.actors.parallel import Map
from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.control.named_upstreams import Registry
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.dns.records import Node
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.state import UpstreamState
from kubesync.domain.upstreams.named import NamedUpstream, below, compose, named_key
from kubesync.domain.upstreams.nodes import node_of

_TORN_READS: Final = 5
_UNREADABLE: Final[tuple[Node, ...]] = (Node("", 0, ready=False),)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The write that corrects a named upstream. ``drift``: ``missing``, ``changed``, or ``stray`` (not registered)."""

    name: str
    actions: tuple[Action, ...]
    entry: Entry
    drift: str


@dataclass(frozen=True, slots=True)
class Recomposed:
    """``stuck``: names that cannot be composed now, each with an upstream of theirs that cannot be read."""

    rewrites: tuple[Rewrite, ...]
    stuck: Mapping[str, str]


def recompose(
    table: UpstreamTable, registry: Registry, shard: str, whys: Mapping[str, str], now_epoch: float, reads: Map
) -> Recomposed:
    """Compare named upstreams with the registry and the Services' upstreams. ``whys``: their names, each with its cause."""
    named = registry.named
    made_of = {name: _constituents(name, named) for name in whys}
    upstreams = sorted(set[str]().union(*made_of.values()))
    read = dict(zip(upstreams, reads(partial(_nodes_of, table), upstreams), strict=True))
    unreadable = {upstream for upstream, nodes in read.items() if nodes is _UNREADABLE}
    # An unreadable upstream stops only the named upstreams that are made of it (I4).
    stuck = {name: min(of_one & unreadable) for name, of_one in made_of.items() if of_one & unreadable}
    rewrites: list[Rewrite] = []
    for name in sorted(whys.keys() - stuck.keys()):
        entry = registry.entries.get(name)
        if entry is not None and entry.shard != shard:
            continue
        nodes = None if entry is None else compose(name, named, read).nodes
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


def _nodes_of(table: UpstreamTable, upstream: str) -> Sequence[Node] | None:
    """The nodes of one version, read several times if needed: a query is no snapshot. None: the upstream does not exist."""
    for _ in range(_TORN_READS):
        try:
            stored = table.read(upstream)
            if stored is None or (stored.complete and stored.deleted):
                return None
            if stored.complete:
                return tuple(map(node_of, stored.nodes))
        except (NewerSchemaError, KeyError, TypeError):  # a newer release or somebody else wrote it
            break
    return _UNREADABLE


def _rewrite(
    table: UpstreamTable, name: str, nodes: Sequence[Node] | None, why: str, now_epoch: float
) -> Rewrite | None:
    """The write that gives a named upstream these nodes (None: removes it). Returns None if nothing is to be written."""
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
    entry = Entry(f"upstream {upstream}", before, f"version {state.version}, {len(nodes)} nodes", why)
    return Rewrite(name, tuple(written), entry, "changed" if there else "missing")
