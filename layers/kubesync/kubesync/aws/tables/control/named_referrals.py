"""What named upstreams of a shard are made of: asked while Services are planned, so that a change is noted with it (I1).

    reconciler, any cluster                       composer
    ---------------------                       --------
    plans a Service, asks for notes
    writes its upstream and the note ──────>    is woken: reads notes, composes, takes the notes away

A note is in the transaction that writes the Service's upstream: whoever dies in between, the next master finds it. No note is
written for an upstream that nobody refers to (I6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable, is_mark


class NamedReferrals:
    """Read by the threads of all clusters, changed by the composer: what is replaced is replaced whole."""

    def __init__(self, shard: str = "0") -> None:
        self._shard = shard
        self._index: Mapping[str, frozenset[str]] = {}
        self.on_note: Callable[[], None] = lambda: None

    @property
    def index(self) -> Mapping[str, frozenset[str]]:
        """Upstreams, of Services and named ones, and the names that have to be composed when one changes."""
        return self._index

    def follow(self, index: Mapping[str, frozenset[str]]) -> frozenset[str]:
        """Go by this index from now on. Returns upstreams that nobody referred to before."""
        before, self._index = self._index, index
        return frozenset(index.keys() - before.keys())

    def notes(self, upstream: str, version: int) -> tuple[Action, ...]:
        """What has to be written together with this version of a Service's upstream."""
        if upstream not in self._index:
            return ()
        return (NamedUpstreamTable.mark(self._shard, upstream, version),)

    def written(self, actions: Iterable[Action]) -> None:
        """A transaction was tried: what it holds may be in the table."""
        if any(map(is_mark, actions)):
            self.on_note()
