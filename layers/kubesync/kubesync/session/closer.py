"""Closes keys after a batch: what landed becomes ``applied``; what was refused waits, with a reason (section "Commit", step 3).

landed      applied moves; no change left → the key closes; names that nothing needs are let go, their first waiter opens
postponed   attempts + 1, retry_at, reason
conflict    a foreign set stands there: the claim is let go, the name is read before it joins a batch again (I3)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from kubesync.aws.audit import AuditTable, Entry, describe
from kubesync.clock import Clock
from kubesync.domain.batches import Unit
from kubesync.domain.merge import without_tombstones
from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import changes_of
from kubesync.domain.state import KeyState, Name, OpenMark, names_of
from kubesync.session.claim_book import ClaimBook
from kubesync.session.key_writes import MAX_CLUSTERS, Chunk, Closing, KeyWrite, Piece, chunks_of
from kubesync.session.ledger import Ledger
from kubesync.session.planner import Tables, conflict_problems, unclaiming
from kubesync.session.transactor import StaleStateError, Transactor

_RETRY_INITIAL_SECONDS: Final = 5.0
_RETRY_CAP_SECONDS: Final = 900.0
_ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one unit.

    ``landed``: its changes stand in the zone. ``conflict``: a foreign set stands at its name. Neither: postponed with ``reason``.
    """

    unit: Unit
    landed: bool = False
    conflict: bool = False
    reason: str = ""


def retry_delay(attempts: int) -> float:
    """Seconds to the next try: doubling, with jitter so that many keys do not come back at once."""
    base = min(_RETRY_CAP_SECONDS, _RETRY_INITIAL_SECONDS * 2.0 ** min(attempts, 16))
    return base * (0.75 + random.random() / 2)  # noqa: S311 - jitter


class Closer:
    """Writes outcomes of units, across clusters.

    Args:
        ledgers: the session's clusters by name.
        on_heirs: told about keys that were given a name.
    """

    def __init__(
        self,
        ledgers: Mapping[str, Ledger],
        tables: Tables,
        transactor: Transactor,
        audit: AuditTable,
        clock: Clock,
        fenced_here: AbstractSet[str],
        on_heirs: Callable[[Sequence[ServiceKey]], None],
    ) -> None:
        self._ledgers = ledgers
        self._tables = tables
        self._transactor = transactor
        self._audit = audit
        self._clock = clock
        self._fenced_here = fenced_here
        self._on_heirs = on_heirs

    def close(self, outcomes: Sequence[Outcome], why: str, closing: Callable[[str], Closing]) -> list[KeyState]:
        """Write outcomes; ``closing`` (the inflight item) goes into the last transaction. Returns the keys' new states."""
        known = [o for o in outcomes if o.unit.key.cluster in self._ledgers]
        clusters = sorted({o.unit.key.cluster for o in known})
        for left in reversed(range(_ATTEMPTS)):
            with self.locked(clusters):
                try:
                    states, heirs = self._close(known, why, closing)
                    break
                except StaleStateError:
                    for cluster in clusters:
                        self._ledgers[cluster].forget()
                    if not left:
                        raise
        if heirs:
            self._on_heirs(heirs)
        return states

    def locked(self, clusters: Iterable[str]) -> ExitStack:
        """Hold the ledgers of these clusters, always in the same order."""
        stack = ExitStack()
        for cluster in sorted(set(clusters) & self._ledgers.keys()):
            stack.enter_context(self._ledgers[cluster].lock)
        return stack

    def _close(
        self, outcomes: Sequence[Outcome], why: str, closing: Callable[[str], Closing]
    ) -> tuple[list[KeyState], list[ServiceKey]]:
        by_key: dict[ServiceKey, list[Outcome]] = {}
        for outcome in outcomes:
            by_key.setdefault(outcome.unit.key, []).append(outcome)
        clusters = sorted({key.cluster for key in by_key})
        writes: list[KeyWrite] = []
        book = ClaimBook(self._tables.claims, self._tables.state, self._fenced_here)
        for cluster in clusters:
            ledger = self._ledgers[cluster]
            states = ledger.states(key for key in by_key if key.cluster == cluster)
            afters = {key: self._after(ledger, state, by_key[key]) for key, state in states.items()}
            book.read({name for key, state in states.items() for name in state.claims - afters[key].claims})
            for key, before in states.items():
                after = afters[key]
                pieces: list[Piece] = []
                for name in sorted(before.claims - after.claims):
                    actions, others = book.let_go(name, key)
                    pieces.append(Piece(tuple(actions), unclaiming(name), others))
                entries = _entries(by_key[key], why)
                if after != before or pieces:
                    writes.append(KeyWrite(before, after, tuple(pieces), tuple(entries)))
        # A fence check and an audit item for each cluster of a transaction.
        room = self._transactor.room(2 * MAX_CLUSTERS)
        stored: list[KeyState] = []
        for chunk in chunks_of(writes, self._tables.state, self._transactor.token, room, closing):
            self._run(chunk, clusters[:MAX_CLUSTERS])
            stored += chunk.states
        return stored, book.heirs

    def _after(self, ledger: Ledger, state: KeyState, outcomes: Sequence[Outcome]) -> KeyState:
        applied = dict(state.applied)
        conflicts = dict(state.conflicts)
        postponed = [o for o in outcomes if not o.landed]
        for outcome in outcomes:
            for change in outcome.unit.changes:
                if outcome.landed and change.after is None:
                    applied.pop(change.key, None)
                elif outcome.landed and change.after is not None:
                    applied[change.key] = change.after
            if outcome.conflict:
                place = outcome.unit.changes[0].key
                conflicts[Name(place.zone_id, place.name)] = outcome.reason
        kept = (names_of(state.intended) - conflicts.keys()) | names_of(applied)
        reported = {p for p in state.problems if p.code != "Conflict"} | set(conflict_problems(conflicts))
        after = replace(
            state,
            applied=applied,
            conflicts=conflicts,
            claims=state.claims & kept,
            problems=tuple(sorted(reported)),
        )
        if not changes_of(after, ledger.config.policy):
            after = replace(after, opened=None)
        elif postponed:
            attempts = (state.opened.attempts if state.opened is not None else 0) + 1
            retry_at = self._clock.epoch() + retry_delay(attempts - 1)
            reason = "; ".join(dict.fromkeys(o.reason for o in postponed))[:1000]
            after = replace(after, opened=OpenMark(attempts, retry_at, reason))
        return without_tombstones(after, ledger.floors())

    def _run(self, chunk: Chunk, clusters: Sequence[str]) -> None:
        actions = list(chunk.actions)
        now, epoch = self._clock.epoch(), self._transactor.epoch
        for cluster in sorted({name for name, _ in chunk.entries}):
            entries = [entry for name, entry in chunk.entries if name == cluster]
            actions.append(self._audit.changes(cluster, entries, epoch, now, chunk.token))
        self._transactor.run(chunk.clusters or clusters, actions, chunk.token)
        for state in chunk.states:
            self._ledgers[state.key.cluster].remember(state)
        for committed in chunk.committed:
            committed()


def _entries(outcomes: Iterable[Outcome], why: str) -> list[Entry]:
    entries: list[Entry] = []
    for outcome in outcomes:
        for change in outcome.unit.changes:
            key, service = change.key, str(outcome.unit.key)
            if outcome.landed:
                what = f"record {key.name} {key.type} in {key.zone_id}"
                entries.append(Entry(what, describe(change.before), describe(change.after), why, service))
            else:
                what = f"refused {key.name} {key.type} in {key.zone_id}"
                reason = outcome.reason[:1000]
                entries.append(Entry(what, describe(change.before), describe(change.after), reason, service))
    return entries
