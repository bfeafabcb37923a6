"""The queue of one hosted zone: one batch under way, what arrives meanwhile joins the next, across clusters.

    queue ── units ── fill ── inflight item ── batch ──┬── landed ── close
                                                       ├── refused ── read the journal ── culprits or halves ── close / again
                                                       └── unknown or throttled ── the same batch, unchanged, before anything else

What a refusal means is read from the journal:

    journal                              meaning
    -------                              -------
    none                                 somebody deleted it: it is made anew by the next batch, reported
    of another owner, or unreadable      nothing is written to this zone; reported
    ours, newer epoch                    not master any more; or, with the lease truly ours, tables were lost: reported
    ours, this batch                     an earlier try had landed
    ours, not the one we knew            somebody moved it: the same units again, with the journal as it is
    ours, the one we knew                something else in the zone is not as known: find the culprits
"""

from __future__ import annotations

import random
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kubesync.aws.inflight import Inflight, InflightTable
from kubesync.aws.journal import Journal, journal_record_key, journal_swap, make_journal, read_journal
from kubesync.aws.zones import BatchChange, ZoneClient
from kubesync.clock import Clock
from kubesync.domain.batches import (
    BatchLimits,
    Unit,
    culprits,
    fill,
    halves,
    in_stable_order,
    says_zone_is_full,
    units_of,
)
from kubesync.domain.errors import (
    BatchRefusedError,
    ZoneError,
    ZoneOutcomeUnknownError,
    ZoneThrottledError,
    ZoneUnavailableError,
)
from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import changes_of
from kubesync.domain.records import RecordKey, RecordSet, Zone
from kubesync.domain.state import KeyState
from kubesync.session.closer import Closer, Outcome
from kubesync.session.key_writes import Closing
from kubesync.session.ledger import Ledger
from kubesync.session.transactor import Transactor

_BACKOFF_INITIAL_SECONDS: Final = 0.5
_BACKOFF_CAP_SECONDS: Final = 30.0
_BLOCKED_SECONDS: Final = 60.0


class ZoneBlockedError(ZoneError):
    """Nothing may be written to this zone; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A batch that is under way. It is repeated unchanged until it has landed or been refused."""

    batch: str
    units: tuple[Unit, ...]
    changes: tuple[BatchChange, ...]
    known: Journal | None
    following: Journal


@dataclass(frozen=True, slots=True)
class ZoneMeans:
    """What every zone's writer shares.

    Args:
        reclaim: looks again at names (of a zone, of a key) where a foreign set stood; returns the key's new state.
        truly_master: asks the lease itself; raises NotMasterError.
    """

    client: ZoneClient
    inflight: InflightTable
    transactor: Transactor
    closer: Closer
    reclaim: Callable[[str, KeyState], KeyState]
    ledgers: Mapping[str, Ledger]
    clock: Clock
    deployment: str
    shard: str
    limits: BatchLimits
    truly_master: Callable[[], None]


@dataclass(slots=True)
class ZoneReport:
    """Counters of one zone in this session, and what is wrong with it."""

    batches: int = 0
    refused: int = 0
    throttled: int = 0
    unknown: int = 0
    changes: int = 0
    problem: str = ""
    lags: deque[float] = field(default_factory=lambda: deque(maxlen=10_000))


class ZoneWriter:
    """Writes one zone. ``step`` does one thing and returns; only one thread calls it.

    Args:
        settled: False after an unclean end of the last master: the journal is swapped and what was in flight settled first.
    """

    def __init__(self, zone_id: str, means: ZoneMeans, *, settled: bool, zone: Zone | None = None) -> None:
        self.zone_id = zone_id
        self.report = ZoneReport()
        self._means = means
        self._settled = settled
        self._zone = zone
        self._journal: Journal | None = None
        self._journal_read = False
        self._inflight: Inflight | None = None
        self._inflight_read = False
        self._sent: Sent | None = None
        self._inbox: deque[tuple[ServiceKey, float | None]] = deque()
        self._jobs: deque[Callable[[], None]] = deque()
        self._queue: dict[ServiceKey, None] = {}
        self._since: dict[ServiceKey, float] = {}
        self._groups: deque[list[Unit]] = deque()
        self._postponed: dict[Unit, float] = {}
        self._not_before = 0.0
        self._failures = 0

    # --- what others see ---

    def add(self, keys: Iterable[ServiceKey], since: float | None = None) -> None:
        """Queue open keys, from any thread; repeated ones collapse.

        Args:
            since: monotonic time of the first event that led here, for the lag that is reported.
        """
        self._inbox.extend((key, since) for key in keys)

    def between_batches(self, job: Callable[[], None]) -> None:
        """Run a job in the writer's thread while no batch is under way: what is applied then stands still. Any thread."""
        self._jobs.append(job)

    @property
    def clean(self) -> bool:
        """No outcome is unknown, nothing is left to settle."""
        return self._settled and self._sent is None

    @property
    def settled(self) -> bool:
        return self._settled

    def step(self) -> float | None:
        """Do the next thing.

        Returns:
            Seconds after which there is something to do again (0: at once), None: only once keys are added.

        Raises:
            NotMasterError: stop; another master writes.
        """
        wait = self._not_before - self._means.clock.monotonic()
        if wait > 0:
            return wait
        try:
            following = self._next()
        except ZoneOutcomeUnknownError as error:
            self.report.unknown += 1
            return self._back_off(str(error))
        except ZoneThrottledError as error:
            self.report.throttled += 1
            return self._back_off(str(error))
        except (ZoneUnavailableError, ZoneBlockedError) as error:
            self.report.problem = str(error)
            self._not_before = self._means.clock.monotonic() + _BLOCKED_SECONDS
            return _BLOCKED_SECONDS
        self._failures = 0
        self.report.problem = ""
        return following

    def _back_off(self, problem: str) -> float:
        delay = min(_BACKOFF_CAP_SECONDS, _BACKOFF_INITIAL_SECONDS * 2.0 ** min(self._failures, 10))
        delay *= 0.5 + random.random()  # noqa: S311 - jitter
        self._failures += 1
        self.report.problem = problem
        self._not_before = self._means.clock.monotonic() + delay
        return delay

    def _next(self) -> float | None:
        if not self._settled:
            self._settle()
            return 0.0
        if self._sent is not None:
            self._send()
            return 0.0
        if self._jobs:
            self._jobs.popleft()()
            return 0.0
        units = self._due()
        if units:
            self._start(units)
            self._send()
            return 0.0
        return self._next_retry()

    # --- what is due ---

    def _due(self) -> list[Unit]:
        while self._groups:
            current = frozenset(self._units(unit.key for unit in self._groups[0]))
            group = [unit for unit in self._groups.popleft() if unit in current]
            if group:
                return group
        self._take_in()
        now = self._means.clock.epoch()
        units = [unit for unit in self._units(self._queue) if self._postponed.get(unit, 0.0) <= now]
        taken, _, oversized = fill(in_stable_order(units), self._room())
        if oversized:
            reason = "more than fits one change batch"
            self._close([Outcome(unit, reason=reason) for unit in oversized])
        return taken

    def _take_in(self) -> None:
        while self._inbox:
            key, since = self._inbox.popleft()
            self._queue.setdefault(key)
            if since is not None:
                self._since.setdefault(key, since)

    def _units(self, keys: Iterable[ServiceKey]) -> list[Unit]:
        """Units of these keys in this zone as they stand now; keys without any leave the queue."""
        units: list[Unit] = []
        now = self._means.clock.epoch()
        by_cluster: dict[str, list[ServiceKey]] = {}
        for key in list(dict.fromkeys(keys)):
            by_cluster.setdefault(key.cluster, []).append(key)
        for cluster, wanted in by_cluster.items():
            ledger = self._means.ledgers.get(cluster)
            if ledger is None:
                for key in wanted:
                    self._queue.pop(key, None)
                continue
            with ledger.lock:
                states = ledger.states(wanted)
            for key, state in states.items():
                here = [c for c in changes_of(state, ledger.config.policy) if c.key.zone_id == self.zone_id]
                if not here:
                    self._queue.pop(key, None)
                    continue
                self._queue.setdefault(key)
                if state.opened is not None and state.opened.retry_at > now:
                    if state.opened.attempts and not self._news(state, units_of(key, here)):
                        continue
                elif state.conflicts:
                    state = self._means.reclaim(self.zone_id, state)
                    here = [c for c in changes_of(state, ledger.config.policy) if c.key.zone_id == self.zone_id]
                blocked = {name.name for name in state.conflicts if name.zone_id == self.zone_id}
                units += [unit for unit in units_of(key, here) if unit.name not in blocked]
        return units

    def _news(self, state: KeyState, units: Sequence[Unit]) -> bool:
        """Whether some unit of a waiting key is not among those that were refused: it need not wait with them."""
        blocked = {name.name for name in state.conflicts if name.zone_id == self.zone_id}
        return any(unit not in self._postponed and unit.name not in blocked for unit in units) and bool(self._postponed)

    def _next_retry(self) -> float | None:
        now = self._means.clock.epoch()
        times: list[float] = []
        for key in list(self._queue):
            ledger = self._means.ledgers.get(key.cluster)
            if ledger is None:
                continue
            with ledger.lock:
                state = ledger.states([key])[key]
            if state.opened is not None:
                times.append(state.opened.retry_at)
        return max(0.05, min(times) - now) if times else None

    def _room(self) -> BatchLimits:
        limits = self._means.limits
        characters = sum(
            len(value)
            for journal in (self._known_journal(), self._following("0" * 32))
            if journal is not None
            for value in journal.record_set.values
        )
        return BatchLimits(limits.elements - 2, limits.characters - characters)

    # --- one batch ---

    def _start(self, units: Sequence[Unit]) -> None:
        batch = secrets.token_hex(16)
        known, following = self._known_journal(), self._following(batch)
        swap = journal_swap(self._journal_key(), known, following)
        self._write_inflight(Inflight(batch, self._means.transactor.epoch, tuple(units)))
        self._sent = Sent(batch, tuple(units), (*swap, *_batch_changes(units)), known, following)

    def _send(self) -> None:
        sent = self._sent
        assert sent is not None
        self._means.transactor.check()
        try:
            self._means.client.change(self.zone_id, sent.changes, f"kubesync {sent.batch}")
        except BatchRefusedError as refused:
            self.report.refused += 1
            self._refused(sent, refused.messages)
        else:
            self._landed(sent)

    def _landed(self, sent: Sent) -> None:
        self._journal = sent.following
        self.report.batches += 1
        self.report.changes += sum(len(unit.changes) for unit in sent.units)
        self._close([Outcome(unit, landed=True) for unit in sent.units], batch=sent.batch, clear=True)
        self._sent = None
        now = self._means.clock.monotonic()
        for key in {unit.key for unit in sent.units}:
            since = self._since.pop(key, None)
            if since is not None:
                self.report.lags.append(now - since)

    def _refused(self, sent: Sent, messages: Sequence[str]) -> None:
        journal = self._read_journal()
        if journal is not None and journal.batch == sent.batch:
            self._landed(sent)
            return
        self._sent = None
        if _standing(journal) != _standing(sent.known):
            self._groups.appendleft(list(sent.units))
            return
        self._isolate(list(sent.units), messages)

    def _isolate(self, units: list[Unit], messages: Sequence[str]) -> None:
        """Keep back what is at fault, and only that; the rest goes at once (I4)."""
        if says_zone_is_full(messages):
            creations = [unit for unit in units if unit.creates_only]
            rest = [unit for unit in units if not unit.creates_only]
            if creations:
                self.report.problem = "the zone is full"
                self._close([Outcome(unit, reason=f"the zone is full: {messages[0]}") for unit in creations])
                if rest:
                    self._groups.appendleft(rest)
                return
        found = culprits(units, messages)
        if not found and len(units) > 1:
            self._groups.extendleft(reversed(halves(units)))
            return
        if not found:
            found = {0: messages[0] if messages else "refused without a message"}
        self._close([self._judge(units[index], message) for index, message in found.items()])
        rest = [unit for index, unit in enumerate(units) if index not in found]
        if rest:
            self._groups.appendleft(rest)

    def _judge(self, unit: Unit, message: str) -> Outcome:
        """Read what stands at a culprit's name, and decide.

        known before   stands now          decision
        ------------   ----------          --------
        nothing        something           conflict: foreign, equal or not (I3)
        a set          nothing, delete     landed: somebody deleted it, nothing is left to do
        a set          another, or none    changed by hand: a full resync mends it
        as known       a foreign set of a type that excludes ours (CNAME)      conflict
        as known       nothing like that   rejected: the value itself
        """
        actual = self._means.client.read(self.zone_id, unit.name)
        ours = {change.key for change in unit.changes}
        for change in unit.changes:
            if change.before is None and change.key in actual:
                return Outcome(unit, conflict=True, reason=_foreign(change.key, actual[change.key]))
        if all(change.after is None and change.key not in actual for change in unit.changes):
            return Outcome(unit, landed=True)
        for change in unit.changes:
            if actual.get(change.key) != change.before:
                stands = "is gone" if change.key not in actual else "was changed"
                return Outcome(
                    unit,
                    reason=f"{change.key.name} {change.key.type} {stands} by somebody else; `kubesync resync` mends it",
                )
        for key, record_set in actual.items():
            if key in ours or self._is_ours(unit.key, key):
                continue
            if "CNAME" in (key.type, *(change.key.type for change in unit.changes if change.after is not None)):
                return Outcome(unit, conflict=True, reason=_foreign(key, record_set))
        return Outcome(unit, reason=f"Route 53 rejects it: {message}")

    def _is_ours(self, owner: ServiceKey, key: RecordKey) -> bool:
        ledger = self._means.ledgers[owner.cluster]
        with ledger.lock:
            return key in ledger.states([owner])[owner].applied

    def _close(self, outcomes: Sequence[Outcome], *, batch: str = "", clear: bool = False) -> None:
        why = f"batch {batch}" if batch else "refused"

        def closing(token: str) -> Closing:
            if not clear:
                return Closing()
            before = self._inflight
            empty = Inflight("", self._means.transactor.epoch, ())
            after, actions = self._means.inflight.put(self.zone_id, before, empty, token)

            def committed() -> None:
                self._inflight = after

            return Closing(tuple(actions), committed)

        states = {state.key: state for state in self._means.closer.close(outcomes, why, closing)}
        for outcome in outcomes:
            self._postponed.pop(outcome.unit, None)
            state = states.get(outcome.unit.key)
            if not outcome.landed and state is not None and state.opened is not None:
                self._postponed[outcome.unit] = state.opened.retry_at

    # --- journal and inflight item ---

    def _journal_key(self) -> RecordKey:
        if self._zone is None:
            self._zone = self._means.client.zone(self.zone_id)
        return journal_record_key(self._zone, self._means.deployment, self._means.shard)

    def _following(self, batch: str) -> Journal:
        return make_journal(self._means.deployment, self._means.transactor.epoch, batch)

    def _known_journal(self) -> Journal | None:
        if not self._journal_read:
            self._read_journal()
        return self._journal

    def _read_journal(self) -> Journal | None:
        """The journal as it stands, if this master may go on from it (see the table above)."""
        journal = read_journal(self._means.client, self._journal_key())
        if journal is not None:
            if journal.owner != self._means.deployment:
                raise ZoneBlockedError(
                    f"the journal {self._journal_key().name} of zone {self.zone_id} belongs to "
                    f"{journal.owner or 'nobody we know'}: give this deployment another KUBESYNC_DEPLOYMENT"
                )
            if journal.epoch > self._means.transactor.epoch:
                self._means.truly_master()
                raise ZoneBlockedError(
                    f"the journal of zone {self.zone_id} has epoch {journal.epoch}, above ours "
                    f"({self._means.transactor.epoch}): were tables lost or restored? see `kubesync recover`"
                )
        elif self._journal is not None or self._wrote_before():
            self.report.problem = f"the journal of zone {self.zone_id} was missing and is made anew"
        self._journal, self._journal_read = journal, True
        return journal

    def _wrote_before(self) -> bool:
        return self._known_inflight() is not None

    def _known_inflight(self) -> Inflight | None:
        if not self._inflight_read:
            self._inflight = self._means.inflight.read(self.zone_id)
            self._inflight_read = True
        return self._inflight

    def _write_inflight(self, inflight: Inflight) -> None:
        """Say durably what is about to be sent, before it is (section "Commit", step 2)."""
        before = self._known_inflight()
        transactor = self._means.transactor
        token = transactor.token()
        after, actions = self._means.inflight.put(self.zone_id, before, inflight, token)
        clusters = [name for name in inflight.clusters if name in self._means.ledgers] or list(self._means.ledgers)
        with self._means.closer.locked(clusters):
            transactor.run(clusters, actions, token)
        self._inflight = after

    # --- settling after an unclean end ---

    def _settle(self) -> None:
        """Shut late batches out, and find out what became of the one that was under way.

        What the journal proves to have landed is closed *before* the swap: afterwards the proof is gone.
        """
        inflight = self._known_inflight()
        if inflight is None:
            self._settled = True  # nothing was ever sent: the inflight item is written first
            return
        journal = self._read_journal()
        if inflight.batch and journal is not None and journal.batch == inflight.batch:
            outcomes = [Outcome(unit, landed=True) for unit in inflight.units]
            self._close(outcomes, batch=inflight.batch, clear=True)
        fresh = self._following(secrets.token_hex(16))
        self._means.transactor.check()
        try:
            self._means.client.change(
                self.zone_id, journal_swap(self._journal_key(), self._journal, fresh), "kubesync takes over"
            )
        except BatchRefusedError:
            seen = self._read_journal()
            if seen is None or seen.batch != fresh.batch:
                return  # somebody's late batch came first: settle again from what stands now
        self._journal = fresh
        if self._inflight is not None and self._inflight.batch:
            self._write_inflight(replace(self._inflight, batch="", units=()))
        self._settled = True


def _batch_changes(units: Iterable[Unit]) -> list[BatchChange]:
    """DELETE of the known value, CREATE of the new one; deletions first, so that types can change places."""
    deletes: list[BatchChange] = []
    creates: list[BatchChange] = []
    for unit in units:
        for change in unit.changes:
            if change.before is not None:
                deletes.append(BatchChange("DELETE", change.key, change.before))
            if change.after is not None:
                creates.append(BatchChange("CREATE", change.key, change.after))
    return [*deletes, *creates]


def _standing(journal: Journal | None) -> RecordSet | None:
    return None if journal is None else journal.record_set


def _foreign(key: RecordKey, record_set: RecordSet) -> str:
    shown = (
        record_set.foreign_form
        or ", ".join(record_set.values[:3])
        or (record_set.alias.name if record_set.alias else "")
    )
    return f"{key.name} {key.type} stands there and is not ours ({shown}): remove it, or choose another name"
