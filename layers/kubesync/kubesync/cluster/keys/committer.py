"""Plans keys of one cluster and writes them, so many at a time; whoever else needs the cluster gets its turn in between.

    lock ── states ── as seen now ── claims, upstreams ── plan ── transactions ── unlock
    lock ── the next keys ...
    lock ── the last keys ... ── checkpoints in the last transaction (I1) ── unlock

A section reads what it plans on after it has the lock, and lets go with nothing planned in hand (keys that did not fill a
transaction are planned again): a zone's writer may close a key or let go of a claim meanwhile. What others may
change at any time (claims and upstreams that keys of other clusters share, by their own writers) is written conditional on its
version; where that fails the section is planned anew, and only that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from itertools import batched
from typing import Final

from kubesync.aws.dynamodb.store import UPSTREAMS
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.cluster.keys.key_states import Ledger
from kubesync.cluster.keys.key_writes import (
    MAX_CLUSTERS,
    NO_NOTES,
    Chunk,
    Closing,
    KeyWrite,
    Notes,
    chunks_of,
    write_full,
)
from kubesync.cluster.keys.means import Means
from kubesync.cluster.keys.planner import Planner
from kubesync.domain.objects import Resource, ServiceKey
from kubesync.domain.state import KeyState

# About four transactions: what a zone's writer waits for, at most, when it needs a cluster that records a long list.
KEYS_AT_A_TIME: Final = 50
_ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True)
class Work:
    """Keys to be planned.

    Args:
        keys: in the order in which they are planned: where several want one name, the oldest first.
        see: a key as stored, as it is to be seen now; None: leave it alone. Called under the ledger's lock.
        planner: a fresh one, that doubts these upstreams; none outlives its section.
        notes: actions besides the keys' own, asked for before the claims are read.
        listed: resources whose complete lists these keys are merged with.
    """

    keys: Sequence[ServiceKey]
    see: Callable[[KeyState], KeyState | None]
    why: str
    planner: Callable[[AbstractSet[str]], Planner]
    notes: Callable[[Iterable[ServiceKey]], Notes] = lambda _keys: NO_NOTES
    listed: AbstractSet[Resource] = frozenset()


@dataclass(frozen=True, slots=True)
class Ending:
    """What ends a commit: ``closing`` (checkpoints) in the last transaction, where something changed or it is ``due``;
    ``done`` once that is written, still under the lock.
    """

    closing: Callable[[str], Closing]
    due: Callable[[], bool]
    done: Callable[[], None]


@dataclass(slots=True)
class Tally:
    """What has been written: keys that are open by now, heirs that have to be planned, keys that changed."""

    opened: dict[ServiceKey, None] = field(default_factory=dict)
    heirs: dict[ServiceKey, None] = field(default_factory=dict)
    changed: set[ServiceKey] = field(default_factory=set)

    def add(self, other: Tally) -> None:
        self.opened |= other.opened
        self.heirs |= other.heirs
        self.changed |= other.changed


class Committer:
    """Commits of one cluster, from any thread: those of several threads take turns section by section.

    For the configuration that the ledger has now: once that is another, its methods raise SupersededError.
    """

    def __init__(self, ledger: Ledger, means: Means) -> None:
        self._ledger = ledger
        self._means = means
        self._configured = ledger.configured

    def run(self, work: Work, tally: Tally, ending: Ending | None = None) -> None:
        """Plan and write all keys; ``tally`` holds what has been written, also where this raises.

        Raises:
            NotMasterError: another master writes by now.
            StaleStateError: the table kept changing under us: try again later.
        """
        *sections, last = [*batched(work.keys, KEYS_AT_A_TIME)] or [()]
        rest: Sequence[ServiceKey] = ()
        for keys in sections:
            rest = self._until_fresh(partial(self._section, work, (*rest, *keys), tally))
        self._until_fresh(partial(self._last_section, work, (*rest, *last), tally, ending))

    def write(self, writes: Callable[[], Sequence[KeyWrite]]) -> None:
        """Write what needs no planning; asked for again where it turns out stale."""
        self._until_fresh(lambda _doubted: self._write(writes(), Tally(), _nothing))

    def _until_fresh[R](self, attempt: Callable[[AbstractSet[str]], R]) -> R:
        doubted: set[str] = set()
        for left in reversed(range(_ATTEMPTS)):
            with self._ledger.lock:
                self._ledger.check(self._configured)
                try:
                    return attempt(doubted)
                except StaleStateError as stale:
                    # The answer to an earlier transaction was lost, or somebody wrote by hand: read anew, plan anew.
                    self._ledger.forget()
                    doubted |= {place.partition for place in stale.places if place.table == UPSTREAMS}
                    self._reload_checkpoints()
                    if not left:
                        raise
        raise AssertionError

    def _section(
        self, work: Work, keys: Sequence[ServiceKey], tally: Tally, doubted: AbstractSet[str]
    ) -> Sequence[ServiceKey]:
        """Returns keys that did not fill a transaction: planned again with the next."""
        return write_full(self._chunks(self._plan(work, keys, tally, doubted), _nothing), partial(self._run, tally))

    def _last_section(
        self, work: Work, keys: Sequence[ServiceKey], tally: Tally, ending: Ending | None, doubted: AbstractSet[str]
    ) -> None:
        writes = self._plan(work, [*keys, *self._overlooked(work, keys)], tally, doubted)
        ends = ending is not None and bool(writes or tally.changed or ending.due())
        self._write(writes, tally, ending.closing if ending is not None and ends else _nothing)
        if ending is not None:
            ending.done()

    def _overlooked(self, work: Work, keys: Sequence[ServiceKey]) -> list[ServiceKey]:
        """Keys that others planned while the lists were not whole yet: until they are planned again, no checkpoint (I5)."""
        views = self._ledger.listeners
        unsure = {key for resource in work.listed for key in views[resource].unsure}
        return sorted(unsure.difference(keys))

    def _plan(
        self, work: Work, keys: Sequence[ServiceKey], tally: Tally, doubted: AbstractSet[str]
    ) -> Sequence[KeyWrite]:
        states = self._ledger.states(keys)
        pairs: list[tuple[KeyState, KeyState]] = []
        for key in keys:
            seen = work.see(states[key])
            if seen is not None:
                pairs.append((states[key], seen))
        notes = work.notes(keys)
        plan = work.planner(doubted).plan(pairs, work.why, notes)
        # Open already, by a transaction whose answer was lost perhaps: the zones have to hear of it.
        written = {write.before.key for write in plan.writes}
        still = (before for before, _ in pairs if before.opened is not None and before.key not in written)
        tally.opened |= {before.key: None for before in still}
        tally.heirs |= dict.fromkeys(plan.heirs)
        return plan.writes

    def _write(self, writes: Sequence[KeyWrite], tally: Tally, closing: Callable[[str], Closing]) -> None:
        for chunk in self._chunks(writes, closing):
            self._run(tally, chunk)

    def _chunks(self, writes: Sequence[KeyWrite], closing: Callable[[str], Closing]) -> Iterator[Chunk]:
        fenced_writer = self._means.fenced_writer
        return chunks_of(
            writes, self._means.tables.state, fenced_writer.token, fenced_writer.room(MAX_CLUSTERS), closing
        )

    def _run(self, tally: Tally, chunk: Chunk) -> None:
        fenced_writer = self._means.fenced_writer
        actions = list(chunk.actions)
        if chunk.entries:
            entries = [entry for _, entry in chunk.entries]
            now = self._means.clock.epoch()
            name = self._ledger.config.name
            actions.append(self._means.audit.changes(name, entries, fenced_writer.epoch, now, chunk.token))
        try:
            fenced_writer.run({self._ledger.config.name, *chunk.clusters}, actions, chunk.token)
        finally:  # also where nobody knows whether it has landed
            self._means.tables.named.written(actions)
        for state in chunk.states:
            self._ledger.remember(state)
        for committed in chunk.committed:
            committed()
        tally.changed |= {state.key for state in chunk.states}
        tally.opened |= {state.key: None for state in chunk.states if state.opened is not None}

    def _reload_checkpoints(self) -> None:
        stored = self._means.listeners.checkpoints(self._ledger.config.name)
        for resource, view in self._ledger.listeners.items():
            view.checkpoint = stored.get(resource)


def _nothing(_token: str) -> Closing:
    return Closing()
