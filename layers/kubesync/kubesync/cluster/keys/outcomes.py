"""Closes keys after a batch: what landed becomes ``applied``; what was refused waits, with a reason (section "Commit", step 3).

landed      applied moves; no change left → the key closes; names that nothing needs are let go, their first waiter opens
postponed   attempts + 1, retry_at, reason
conflict    a foreign set stands there: the claim is let go, the name is read before it joins a batch again (I3)

A look at a name that finds what the last one has found is no change and is not audited (I6). It moves attempts and ``retry_at``
until a key has been refused ``domain.state.SETTLED_ATTEMPTS`` times, and writes nothing from then on: see ``zone_queue``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import batched, chain, groupby
from typing import Final

from kubesync.actors.scheduler import Scheduler
from kubesync.aws.fencing.writer import StaleStateError, Transactor
from kubesync.aws.tables.audit import AuditTable, Entry, describe
from kubesync.cluster.keys.claim_book import ClaimBook
from kubesync.cluster.keys.committer import KEYS_AT_A_TIME
from kubesync.cluster.keys.key_states import Ledger
from kubesync.cluster.keys.key_writes import MAX_CLUSTERS, Chunk, Closing, KeyWrite, Piece, chunks_of, write_full
from kubesync.cluster.keys.planner import Tables, conflict_problems, unclaiming
from kubesync.domain.batches import Unit
from kubesync.domain.merge import without_tombstones
from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import changes_of
from kubesync.domain.state import CONFLICT_CHECK_SECONDS, KeyState, Name, OpenMark, names_of

_RETRY_INITIAL_SECONDS: Final = 5.0
_RETRY_CAP_SECONDS: Final = 900.0
_ATTEMPTS: Final = 8

type _Outcomes = Mapping[ServiceKey, Sequence[Outcome]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one unit.

    ``landed``: its changes stand in the zone. ``conflict``: a foreign set stands at its name. Neither: postponed with ``reason``
    and ``code`` (of ``domain.reasons``).
    """

    unit: Unit
    landed: bool = False
    conflict: bool = False
    reason: str = ""
    code: str = ""

    @property
    def reason_code(self) -> str:
        """Of ``domain.reasons``; empty where it landed."""
        return "Conflict" if self.conflict else self.code


def retry_delay(attempts: int, fraction: float) -> float:
    """Seconds to the next try: doubling, with jitter so that many keys do not come back at once.

    Args:
        fraction: a random number in [0, 1).
    """
    base = min(_RETRY_CAP_SECONDS, _RETRY_INITIAL_SECONDS * 2.0 ** min(attempts, 16))
    return base * (0.75 + fraction / 2)


def look_delay(attempts: int) -> float:
    """Seconds to the next look at names in conflict: doubling. Without jitter: what came together is read together, by one walk."""
    return min(CONFLICT_CHECK_SECONDS, _RETRY_INITIAL_SECONDS * 2.0 ** min(attempts, 16))


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
        scheduler: Scheduler,
        fenced_here: AbstractSet[str],
        on_heirs: Callable[[Sequence[ServiceKey]], None],
    ) -> None:
        self._ledgers = ledgers
        self._tables = tables
        self._transactor = transactor
        self._audit = audit
        self._scheduler = scheduler
        self._fenced_here = fenced_here
        self._on_heirs = on_heirs

    def close(
        self, outcomes: Sequence[Outcome], why: str, closing: Callable[[str], Closing], *, batch: str = ""
    ) -> list[KeyState]:
        """Write outcomes; ``closing`` (the inflight item) goes into the last transaction. Returns the keys' new states.

        Args:
            why: for the audit, where the key does not say what opened it.
            batch: the id of the batch that brought them about, as in the journal.
        """
        by_key: dict[ServiceKey, list[Outcome]] = {}
        for outcome in sorted(outcomes, key=lambda o: o.unit.key):
            if outcome.unit.key.cluster in self._ledgers:
                by_key.setdefault(outcome.unit.key, []).append(outcome)
        label = _Label(why, batch)
        stored: dict[ServiceKey, KeyState] = {}
        heirs: dict[ServiceKey, None] = {}
        *sections, last = _sections(by_key) or [()]
        rest: Sequence[ServiceKey] = ()
        try:
            for keys in sections:
                some = {key: by_key[key] for key in (*rest, *keys)}
                rest = self._until_fresh(some, partial(self._close_some, some, label, stored, heirs))
            some = {key: by_key[key] for key in (*rest, *last)}
            self._until_fresh(some, partial(self._close_last, some, label, stored, heirs, closing))
        finally:
            if heirs:
                self._on_heirs(list(heirs))
        return list(stored.values())

    def _until_fresh[R](self, keys: Iterable[ServiceKey], attempt: Callable[[], R]) -> R:
        """Try with the ledgers of these keys' clusters held: who waits for one has its turn afterwards."""
        clusters = sorted({key.cluster for key in keys})
        for left in reversed(range(_ATTEMPTS)):
            with self.locked(clusters):
                try:
                    return attempt()
                except StaleStateError:
                    for cluster in clusters:
                        self._ledgers[cluster].forget()
                    if not left:
                        raise
        raise AssertionError

    def locked(self, clusters: Iterable[str]) -> ExitStack:
        """Hold the ledgers of these clusters, always in the same order."""
        stack = ExitStack()
        for cluster in sorted(set(clusters) & self._ledgers.keys()):
            stack.enter_context(self._ledgers[cluster].lock)
        return stack

    def _close_some(
        self,
        by_key: _Outcomes,
        label: _Label,
        stored: dict[ServiceKey, KeyState],
        heirs: dict[ServiceKey, None],
    ) -> Sequence[ServiceKey]:
        """Returns keys that did not fill a transaction: closed with the next."""
        writes = self._writes(by_key, label, heirs)
        return write_full(self._chunks(writes, _nothing), partial(self._run, stored))

    def _close_last(
        self,
        by_key: _Outcomes,
        label: _Label,
        stored: dict[ServiceKey, KeyState],
        heirs: dict[ServiceKey, None],
        closing: Callable[[str], Closing],
    ) -> None:
        for chunk in self._chunks(self._writes(by_key, label, heirs), closing):
            self._run(stored, chunk)

    def _writes(self, by_key: _Outcomes, label: _Label, heirs: dict[ServiceKey, None]) -> list[KeyWrite]:
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
                entries = _entries(by_key[key], label, before)
                if after != before or pieces:
                    writes.append(KeyWrite(before, after, tuple(pieces), tuple(entries)))
        heirs |= dict.fromkeys(book.heirs)
        return writes

    def _chunks(self, writes: Iterable[KeyWrite], closing: Callable[[str], Closing]) -> Iterator[Chunk]:
        # A fence check and an audit item for each cluster of a transaction.
        room = self._transactor.room(2 * MAX_CLUSTERS)
        return chunks_of(writes, self._tables.state, self._transactor.token, room, closing)

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
            # Not where it was planned anew meanwhile and is not wanted any more, or the cluster is gone: nothing would ever end it.
            if outcome.conflict and (wanted := Name.of(outcome.unit.wanted)) in names_of(state.intended):
                conflicts[wanted] = outcome.reason
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
        elif postponed and not _found_again(state, outcomes):
            attempts = (state.opened.attempts if state.opened is not None else 0) + 1
            looked = all(o.conflict for o in postponed)
            delay = look_delay(attempts - 1) if looked else retry_delay(attempts - 1, self._scheduler.random())
            retry_at = self._scheduler.epoch() + delay
            reason = "; ".join(dict.fromkeys(o.reason for o in postponed))[:1000]
            cause = state.opened.cause if state.opened is not None else ""
            after = replace(after, opened=OpenMark(attempts, retry_at, reason, postponed[0].reason_code, cause))
        elif after.opened is None:
            # It was planned anew while the batch was under way, and did not need what that brought: a successor has to know.
            after = replace(after, opened=OpenMark())
        return without_tombstones(after, ledger.floors())

    def _run(self, stored: dict[ServiceKey, KeyState], chunk: Chunk) -> None:
        actions = list(chunk.actions)
        now, epoch = self._scheduler.epoch(), self._transactor.epoch
        for cluster in sorted({name for name, _ in chunk.entries}):
            entries = [entry for name, entry in chunk.entries if name == cluster]
            actions.append(self._audit.changes(cluster, entries, epoch, now, chunk.token))
        self._transactor.run(chunk.clusters, actions, chunk.token)
        for state in chunk.states:
            self._ledgers[state.key.cluster].remember(state)
            stored[state.key] = state
        for committed in chunk.committed:
            committed()


@dataclass(frozen=True, slots=True)
class _Label:
    """What the audit says of a closing."""

    why: str
    batch: str


def _sections(keys: Iterable[ServiceKey]) -> list[tuple[ServiceKey, ...]]:
    """So many keys at a time, of as many clusters as go into one transaction: a busy one must not hold up all the others."""
    of_clusters = (list(of_one) for _, of_one in groupby(keys, key=lambda key: key.cluster))
    return [
        section
        for some in batched(of_clusters, MAX_CLUSTERS)
        for section in batched(chain.from_iterable(some), KEYS_AT_A_TIME)
    ]


def _nothing(_token: str) -> Closing:
    return Closing()


def _known(state: KeyState, outcome: Outcome) -> bool:
    """Whether it is a conflict that is reported already, for the very same reason."""
    return outcome.conflict and state.conflicts.get(Name.of(outcome.unit.wanted)) == outcome.reason


def _found_again(state: KeyState, outcomes: Iterable[Outcome]) -> bool:
    """Whether all is as it has been so often that nobody has to be told, not even a successor (I6)."""
    return state.settled and all(_known(state, outcome) for outcome in outcomes)


def _entries(outcomes: Iterable[Outcome], label: _Label, before: KeyState) -> list[Entry]:
    why = (before.opened.cause if before.opened is not None else "") or label.why
    entries: list[Entry] = []
    for outcome in outcomes:
        if _known(before, outcome):
            continue
        for change in outcome.unit.changes:
            key, service = change.key, str(outcome.unit.key)
            if outcome.landed:
                what = f"record {key.label} in {key.zone_id}"
                entries.append(Entry(what, describe(change.before), describe(change.after), why, service, label.batch))
            else:
                what = f"refused {key.label} in {key.zone_id}"
                old, new, message = describe(change.before), describe(change.after), outcome.reason[:1000]
                entries.append(Entry(what, old, new, why, service, label.batch, outcome.reason_code, message))
    return entries
