"""Which upstreams the named upstreams of a shard are made of. Planning a Service asks it, so that changes get a mark (I1).

    reconciler, any cluster                     composer
    -----------------------                     --------
    plans a Service, asks for marks
    writes its upstream and the mark ──────>    wakes up, reads marks, composes, removes the marks

The transaction that writes a Service's upstream also writes the mark. If a master ends in between, the next one finds it. An
upstream that no named upstream refers to gets no mark (I6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable, is_mark


class NamedReferrals:
    """The threads of all clusters read it; the composer replaces the index as a whole."""

    def __init__(self, shard: str = "0") -> None:
        self._shard = shard
        self._index: Mapping[str, frozenset[str]] = {}
        self.on_note: Callable[[], None] = lambda: None

    @property
    def index(self) -> Mapping[str, frozenset[str]]:
        """Maps each upstream, of a Service or named, to the names that have to be composed when it changes."""
        return self._index

    def follow(self, index: Mapping[str, frozenset[str]]) -> frozenset[str]:
        """Use this index from now on. Returns the upstreams that are referred to for the first time."""
        before, self._index = self._index, index
        return frozenset(index.keys() - before.keys())

    def marks(self, upstream: str, version: int) -> tuple[Action, ...]:
        """The marks to write together with this version of a Service's upstream."""
        if upstream not in self._index:
            return ()
        return (NamedUpstreamTable.mark(self._shard, upstream, version),)

    def written(self, actions: Iterable[Action]) -> None:
        """Note that a transaction was tried: the table may hold its marks."""
        if any(map(is_mark, actions)):
            self.on_note()
