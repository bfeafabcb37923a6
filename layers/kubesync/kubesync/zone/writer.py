"""The queue of one hosted zone: one batch under way, what arrives meanwhile joins the next, across clusters.

    queue ── units ── fill ── inflight item ── batch ──┬── landed ── close
                                                       ├── refused ── read the journal ── culprits or halves ── close / again
                                                       └── unknown or throttled ── the same batch, unchanged, before anything else

What a refusal means is read from the journal:

    journal                              meaning
    -------                              -------
    holds this batch                     an earlier try had landed
    not the one we knew                  somebody moved it: the same units again, with the journal as it is
    the one we knew                      something else in the zone is not as known: find the culprits
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from kubesync.actors.backoff import Backoff
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.route53.journal import Journal, journal_swap
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.control.inflight import Inflight
from kubesync.cluster.keys.outcomes import Outcome
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone
from kubesync.domain.errors import (
    BatchRefusedError,
    ZoneGoneError,
    ZoneOutcomeUnknownError,
    ZoneThrottledError,
    ZoneUnavailableError,
)
from kubesync.domain.objects import ServiceKey
from kubesync.zone.journal import ZoneBlockedError, ZoneJournal, ZoneMeans
from kubesync.zone.queue import NO_WAITS, ZoneQueue
from kubesync.zone.reader import ZoneReader
from kubesync.zone.refusals import isolate, judge

_BACKOFF: Final = Backoff(initial=0.5, cap=30.0, least=0.5, most=1.5)
_BLOCKED_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Sent:
    """A batch that is under way. It is repeated unchanged until it has landed or been refused."""

    batch: str
    units: tuple[Unit, ...]
    changes: tuple[BatchChange, ...]
    known: Journal | None
    following: Journal


@dataclass(slots=True)
class ZoneReport:
    """Counters of one zone in this session, what is wrong with it (``problem``), and what was and is mended (``remark``).
    ``fresh_lags`` are those that the metrics have not told yet. ``reasons``: how often each code of ``domain.reasons`` was
    in the way.
    """

    batches: int = 0
    refused: int = 0
    throttled: int = 0
    unknown: int = 0
    changes: int = 0
    problem: str = ""
    remark: str = ""
    reasons: dict[str, int] = field(default_factory=dict)
    lags: deque[float] = field(default_factory=lambda: deque(maxlen=10_000))
    fresh_lags: deque[float] = field(default_factory=lambda: deque(maxlen=10_000))


class ZoneWriter:
    """Writes one zone. ``step`` does one thing and returns; only one thread calls it.

    Args:
        settled: False after an unclean end of the last master: the journal is swapped and what was in flight settled first.
    """

    def __init__(self, zone_id: str, means: ZoneMeans, *, settled: bool, zone: Zone | None = None) -> None:
        self.zone_id = zone_id
        self.report = ZoneReport()
        self._means = means
        self._journal = ZoneJournal(zone_id, means, zone)
        self._settled = settled
        self._sent: Sent | None = None
        self._in_doubt = False
        self._queue = ZoneQueue(zone_id, means)
        self._jobs: deque[Callable[[], None]] = deque()
        self._partings: deque[tuple[str, Callable[[], None]]] = deque()
        self._not_before = 0.0
        self._blocked = False
        self._noted_problem: str | None = None
        self._failures = 0

    # --- what others see ---

    def add(
        self, keys: Iterable[ServiceKey], since: float | None = None, waits: Mapping[ServiceKey, float] = NO_WAITS
    ) -> None:
        """Queue open keys, from any thread; repeated ones collapse.

        Args:
            since: monotonic time of the first event that led here, for the lag that is reported.
            waits: until when an earlier session wanted them to wait (epoch seconds); 0: there is news of them.
        """
        self._queue.add(keys, since, waits)

    def look_again(self, keys: Collection[ServiceKey]) -> None:
        """Look at names of these keys that are in conflict here as soon as may be, from any thread."""
        self._queue.look_again(keys)

    def between_batches(self, job: Callable[[], None]) -> None:
        """Run a job in the writer's thread while no batch is under way: what is applied then stands still. Any thread."""
        self._jobs.append(job)

    def without(self, cluster: str, job: Callable[[], None]) -> None:
        """Run a job in the writer's thread once nothing that is under way here is of this cluster. Any thread.

        Unlike ``between_batches`` it does not wait for what others have under way, nor for a zone that cannot be written.
        """
        self._partings.append((cluster, job))

    @property
    def clean(self) -> bool:
        """No outcome is unknown, nothing is left to settle."""
        return self._settled and self._sent is None

    @property
    def blocked(self) -> bool:
        """Nothing may be written to the zone for now: it is denied, gone, or its journal is not ours."""
        return self._blocked

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
        self._part()
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
        except StaleStateError as error:
            # Another master's write, or one of ours whose answer was lost: what is in flight is settled, never overwritten.
            self._journal.doubt()
            self._settled = False
            return self._back_off(str(error))
        except (ZoneUnavailableError, ZoneBlockedError) as error:
            self.report.problem = str(error)
            self._note_problem(str(error))
            self._not_before = self._means.clock.monotonic() + _BLOCKED_SECONDS
            self._blocked = True
            return _BLOCKED_SECONDS
        self._failures = 0
        self._blocked = False
        self.report.remark = self._journal.remark
        if following == 0.0 or self._noted_problem:
            self._note_problem(self._queue.problem)
        return following

    def _note_problem(self, problem: str) -> None:
        if self._noted_problem is None:
            self._noted_problem = self._means.problems.read(self.zone_id)  # of an earlier session
        if problem != self._noted_problem:
            self._journal.note_problem(problem)
            self._noted_problem = problem

    def _part(self) -> None:
        if not self._partings:
            return
        held: frozenset[str] = frozenset()
        if self._sent is not None:
            held = frozenset(unit.key.cluster for unit in self._sent.units)
        elif not self._settled:
            inflight = self._journal.known_inflight()
            held = frozenset(inflight.clusters if inflight is not None else ())
        for _ in range(len(self._partings)):
            cluster, job = self._partings.popleft()
            if cluster in held:
                self._partings.append((cluster, job))
            else:
                job()

    def _back_off(self, problem: str) -> float:
        self._failures += 1
        delay = _BACKOFF.delay(self._failures, self._means.scheduler.random())
        self.report.problem = problem
        self._not_before = self._means.clock.monotonic() + delay
        return delay

    def _next(self) -> float | None:
        if not self._settled:
            self._settled = self._journal.settle(self._landed_before)
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
        if self._queue.backlog:
            return 0.0
        looked_at = self._queue.looked_at
        if looked_at is not None:
            self._journal.note_look(looked_at)
        return self._queue.next_retry()

    def _due(self) -> list[Unit]:
        counted = self._queue.throttled
        try:
            taken, oversized = self._queue.due(self._journal.room)
        finally:
            self.report.throttled += self._queue.throttled - counted
        if oversized:
            reason = "more than fits one change batch"
            self._close([Outcome(unit, code="TooLargeForBatch", reason=reason) for unit in oversized])
        return taken

    # --- one batch ---

    def _start(self, units: Sequence[Unit]) -> None:
        units = self._journal.of_few_clusters(units)
        batch = self._means.scheduler.token_hex(16)
        known, following = self._journal.known_journal(), self._journal.following(batch)
        swap = journal_swap(self._journal.journal_key(), known, following)
        self._journal.announce(batch, units)
        self._sent = Sent(batch, units, (*swap, *_batch_changes(units)), known, following)
        self._in_doubt = False

    def _send(self) -> None:
        sent = self._sent
        assert sent is not None
        self._means.fenced_writer.check()
        try:
            self._means.client.change(self.zone_id, sent.changes, f"kubesync {sent.batch}")
        except ZoneOutcomeUnknownError:
            self._in_doubt = True
            raise
        except ZoneGoneError:
            if not self._in_doubt:
                # Zones do not come back: whoever waits for its outcome would wait for ever.
                self._journal.nothing_under_way()
                self._sent = None
                self._queue.again([sent.units])
            raise
        except BatchRefusedError as refused:
            self.report.refused += 1
            self._refused(sent, refused.messages)
        else:
            self._landed(sent)

    def _landed(self, sent: Sent) -> None:
        self._journal.left_behind(sent.following)
        self.report.batches += 1
        changes = sum(len(unit.changes) for unit in sent.units)
        self.report.changes += changes
        self._means.progress("batch", {"zone": self.zone_id, "changes": changes})
        self._close([Outcome(unit, landed=True) for unit in sent.units], batch=sent.batch, clear=True)
        self._sent = None
        now = self._means.clock.monotonic()
        lags = [now - since for since in self._queue.landed(sent.units)]
        self.report.lags.extend(lags)
        self.report.fresh_lags.extend(lags)

    def _landed_before(self, inflight: Inflight) -> None:
        """A batch of the last master turned out to have landed."""
        self._close([Outcome(unit, landed=True) for unit in inflight.units], batch=inflight.batch, clear=True)

    def _refused(self, sent: Sent, messages: Sequence[str]) -> None:
        journal = self._journal.read_journal()
        if journal is not None and journal.batch == sent.batch:
            self._landed(sent)
            return
        self._sent = None
        if _standing(journal) != _standing(sent.known):
            self._queue.again([sent.units])
            return
        if self._in_doubt:
            # An earlier try of it has no answer and may yet land: shut it out before anything is decided by this refusal.
            self._settled = False
            self._queue.again([sent.units])
            return
        self._isolate(sent, messages)

    def _isolate(self, sent: Sent, messages: Sequence[str]) -> None:
        reading = ZoneReader(self._means.client, self.zone_id, self._means.clock)

        def decide(unit: Unit, message: str) -> Outcome:
            return judge(reading, unit, message, lambda key: self._is_ours(unit.key, key))

        isolation = isolate(sent.units, messages, decide)
        if isolation.zone_is_full:
            self._queue.refused_as_full(sent.units, messages[0])
            self.report.problem = self._queue.problem
        # Cluster by cluster: what one has recorded waits its time, even if another cannot record now.
        for _, of_one in groupby(sorted(isolation.outcomes, key=_cluster), key=_cluster):
            self._close([*of_one])
        self._queue.again(isolation.again)

    def _is_ours(self, owner: ServiceKey, key: RecordKey) -> bool:
        ledger = self._means.ledgers.get(owner.cluster)
        if ledger is None:
            return False
        with ledger.lock:
            return key in ledger.states([owner])[owner].applied

    def _close(self, outcomes: Sequence[Outcome], *, batch: str = "", clear: bool = False) -> None:
        why = "settled" if batch else "refused"
        clearing = self._journal.clearing if clear else None
        marks = self._means.outcomes.close(outcomes, why, batch=batch, clearing=clearing)
        if clear:  # of clusters of which nobody may close anything here
            self._journal.nothing_under_way()
        for outcome in outcomes:
            if code := outcome.reason_code:
                self.report.reasons[code] = self.report.reasons.get(code, 0) + 1
            mark = None if outcome.landed else marks.get(outcome.unit.key)
            self._queue.decided(outcome.unit, None if mark is None else mark.retry_at, conflict=outcome.conflict)


def _cluster(outcome: Outcome) -> str:
    return outcome.unit.key.cluster


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
