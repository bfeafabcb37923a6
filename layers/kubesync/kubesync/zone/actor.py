"""The actor of one hosted zone: nobody else writes its record sets, its inflight item and its problem.

What it does next, the first that applies:

    a question to clusters is open          it waits for the answers, and takes messages in
    the last master ended uncleanly         it settles: what has landed is closed, then the journal is swapped
    a batch is under way                    it sends it again
    a batch was refused                     it reads what stands at the culprits' names; the clusters judge
    somebody waits for a quiet zone         it answers, or lets a cluster compare
    keys are due                            it asks what they want, checks conflicts, or starts a batch
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kubesync import messages
from kubesync.actors.actor import AT_ONCE, ON_MESSAGE
from kubesync.actors.backoff import Backoff
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.inflight import LandedUnits
from kubesync.domain.batches import Unit, at_fault, together
from kubesync.domain.dns.drift import with_replacements
from kubesync.domain.dns.records import Zone
from kubesync.domain.errors import (
    KubesyncError,
    NotMasterError,
    ZoneError,
    ZoneGoneError,
    ZoneOutcomeUnknownError,
    ZoneThrottledError,
    ZoneUnavailableError,
)
from kubesync.domain.plan import Intent
from kubesync.log import logger
from kubesync.zone.conversations import Conversations
from kubesync.zone.journal import ZoneBlockedError, ZoneJournal
from kubesync.zone.ports import ZonePorts
from kubesync.zone.progress import Progress, ZoneFigures, ZoneReport, ZoneState
from kubesync.zone.queue import ZoneQueue
from kubesync.zone.reader import ZoneReader
from kubesync.zone.writer import BatchWriter

_BACKOFF: Final = Backoff(initial=0.5, cap=30.0, least=0.5, most=1.5)
_BLOCKED_SECONDS: Final = 60.0
_AFTER_A_FAULT_SECONDS: Final = 5.0


class ZoneActor:
    """Writes one hosted zone. Implements ``Actor``.

    Args:
        settled: False after an unclean end of the last master: then the zone settles first.
        zone: its name and id. None: read when first needed.
    """

    def __init__(self, zone_id: str, ports: ZonePorts, *, settled: bool, zone: Zone | None = None) -> None:
        self.zone_id = zone_id
        self.report = ZoneReport(zone_id)
        self._progress = Progress()
        self._ports = ports
        self._journal = ZoneJournal(zone_id, ports, zone)
        self._writer = BatchWriter(ports, self._journal, self.report, settled=settled)
        self._queue = ZoneQueue(zone_id, ports, self._journal.batch_limits)
        self._conversations = Conversations(ports, self._journal, self._queue, self.report.reasons)
        self._forgetting: list[messages.Forget] = []  # not answered yet
        self._not_before = 0.0  # monotonic: nothing is done before
        self._blocked_by: KubesyncError | None = None  # why nothing may be written; None: it may
        self._failures = 0  # in a row
        self._drain_until: float | None = None  # monotonic; None: the session does not drain

    def figures(self) -> ZoneFigures:
        """Return copies of the zone's counts and state, for other threads. ``Host`` calls it."""
        report = replace(self.report, blocked=self._blocked_by is not None, reasons=dict(self.report.reasons))
        nothing_open = self._writer.idle and not self._conversations.closing
        # A torn zone is not clean: so the next session looks at it, even if no key of it changes.
        clean = nothing_open and not (self._journal.holds_landed or self._journal.torn)
        return ZoneFigures(report, self._progress, clean, tuple(self._queue.keys.lags), self._queue.keys.lags_counted)

    def receive(self, message: object) -> None:
        """Take in a message. ``step`` does the rest, except that a blocked zone answers requests of operations at once, with the reason.

        The zone serves a cluster from its first ``Publish`` until its ``Forget``. What comes of other clusters is not queued.
        """
        match message:
            case messages.Publish():
                self._journal.served.add(message.cluster)
                self._queue.publish(message)
            case messages.Closed():
                if message.cluster in self._journal.served:  # else the zone writes nothing for it any more, or not yet
                    self._queue.learn(message.intents, asked=True)
                self._conversations.record_closed(message)
            case messages.CheckConflicts():
                self._queue.request_checks(key for key in message.keys if key.cluster in self._journal.served)
            case messages.Reach() | messages.CompareZone() if self._blocked_by is not None:
                message.reply.set_exception(self._blocked_by)
            case messages.Reach() | messages.CompareZone():
                self._conversations.requests.append(message)
            case messages.Forget():
                self._journal.served.discard(message.cluster)
                self._queue.forget_cluster(message.cluster)
                self._forgetting.append(message)
            case messages.Drain():
                self._drain_until = message.until
            case _:
                raise TypeError(f"a zone does not take {type(message).__name__}")

    def step(self) -> float | None:
        """Do the next thing of the table above. Returns in how many seconds to do the next; None: the actor has ended.

        Raises NotMasterError if another master writes. Errors of the zone are handled here: backoff, settling, or a blocked zone.
        """
        if self._drain_until is not None and self._now() >= self._drain_until:
            self._end()
            return None
        try:
            seconds = self._run_next()
        except ZoneOutcomeUnknownError as error:
            self.report.unknown += 1
            seconds = self._back_off(error)
        except ZoneThrottledError as error:
            self.report.throttled += 1
            seconds = self._back_off(error)
        except StaleStateError as error:
            # Another master's write, or one of ours whose answer was lost: what is in flight is settled, never overwritten.
            self._writer.unsettle()
            seconds = self._back_off(error)
        except (ZoneUnavailableError, ZoneBlockedError) as error:
            self._blocked_by = error
            self._conversations.fail_requests(error)
            self._journal.store_problem(str(error))
            seconds = self._wait(_BLOCKED_SECONDS, error)
        return self._end_if_drained(seconds)

    def handle_error(self, error: Exception) -> float | None:
        """Handle an error that ``step`` raised. After a bug of ours, drop what is under way and settle before anything is sent."""
        if isinstance(error, NotMasterError):
            self._conversations.fail_requests(error)
            self._ports.not_master(error)
            return None
        self._progress = self._progress.busy(self._now())
        if isinstance(error, KubesyncError):
            logger.warning("a zone failed, trying again", zone=self.zone_id, error=str(error))
        else:
            logger.error("a zone failed, settling it again", zone=self.zone_id, exc_info=error)
            self._conversations.fail_requests(ZoneError(f"zone {self.zone_id} failed: {error}"))
            self._conversations.begin_again()
            self._writer.culprits = ()
            self._writer.unsettle()
        return self._end_if_drained(self._wait(_AFTER_A_FAULT_SECONDS, error))

    def _now(self) -> float:
        return self._ports.scheduler.monotonic()

    def _back_off(self, error: KubesyncError) -> float:
        """Count a failure, and return how many seconds to wait. Reports a problem once the zone is stuck."""
        self._progress = self._progress.busy(self._now())
        if self._progress.state(self._now()) is ZoneState.STUCK:
            self._journal.store_problem(f"nothing gets through: {error}")
        self._failures += 1
        return self._wait(_BACKOFF.delay(self._failures, self._ports.scheduler.random()), error)

    def _wait(self, seconds: float, error: Exception) -> float:
        """Do nothing for so long, because of this error, which the report shows. Returns ``seconds``."""
        self.report.problem = str(error)
        self._not_before = self._now() + seconds
        return seconds

    def _run_next(self) -> float:
        """Do one thing, unless the zone backs off or waits for answers. Updates progress, problem and remark. Returns as ``step``.

        Removed clusters are answered first, also while the zone waits.
        """
        self._answer_forgets()
        if (wait := self._not_before - self._now()) > 0:
            return wait
        if self._conversations.open is not None:
            if self._conversations.problem:
                self._journal.store_problem(self._conversations.problem)
            return self._conversations.finish_if_answered(self._conversations.open)
        seconds = self._do_first_applicable()
        if seconds == AT_ONCE:  # it did something; else nothing is due
            self._progress = self._progress.busy(self._now())
        else:
            self._progress = self._progress.quiet()
        # A torn zone gets stuck as a full one does, although batches land: a person has to mend it.
        self._progress = self._progress.full(self._now(), is_full=bool(self._queue.problem) or self._journal.torn)
        self._blocked_by = None  # else an error would have been raised
        self.report.remark = self._journal.remark or self._queue.passing.remark
        problem = self._conversations.problem or self._queue.problem
        # To know the stored problem costs a read: a zone that had nothing to do does not ask for it (I6).
        if seconds == AT_ONCE or self._journal.stored_problem or problem:
            self._journal.store_problem(problem)
        return seconds

    def _do_first_applicable(self) -> float:
        """Do the first thing of the table above that applies, from settling on. Returns as ``step``."""
        if not self._writer.settled:
            self._settle()
        elif self._writer.sent is not None:
            self._send()
        elif self._writer.culprits:
            self._judge_culprits(self._writer.culprits)
        elif request := self._conversations.next_request():
            self._answer_request(request)
        elif not self._do_what_is_due():
            if (checked_at := self._queue.checks.take_check_time()) is not None:
                self._journal.store_check_time(checked_at)
            retry = self._queue.next_retry()
            return ON_MESSAGE if retry is None else retry
        return AT_ONCE

    def _do_what_is_due(self) -> bool:
        """Ask clusters what keys want, check conflicts, refuse what is too large, or start a batch: as the queue says. False: nothing was due."""
        if (due := self._queue.due()) is None:
            return False
        if due.unknown:
            self._conversations.ask_for_intents(due.unknown)
        elif due.checks:
            self._check_conflicts(due.checks)
        elif due.oversized:
            message = "more than fits one change batch"
            self._refuse([messages.Refusal(unit, message, code="TooLargeForBatch") for unit in due.oversized])
        else:
            self._writer.begin(due.units, is_inherited=lambda unit: self._queue.keys.since(unit) is None)
        return True

    def _send(self) -> None:
        """Send the batch under way.

        its units                      what happens with them
        ---------                      ----------------------
        have landed                    the clusters are asked to close them
        would add sets to a full zone  the queue holds them back
        are at fault (``culprits``)    the next step judges them
        are to be sent again           the queue sends them first
        have names that IAM denies     the clusters are asked to judge them, and their namespaces are sent separately
        """
        sent = self._writer.sent
        assert sent is not None
        refused = self._writer.send(sent)
        self._failures = 0
        if refused is None:
            self._progress = self._progress.landed(self._now())
            self._queue.record_landed(sent.units)
            self._conversations.close(LandedUnits(sent.batch, sent.units))
            return
        if refused.zone_is_full:
            self._queue.record_full_zone(sent.units, refused.zone_is_full)
            self.report.problem = self._queue.problem
        self._writer.culprits = refused.culprits
        self._queue.send_first(refused.again)
        if refused.not_allowed:
            self._queue.separate_denied(unit.key for unit, _ in refused.not_allowed)
            self._refuse([messages.Refusal(unit, why, code="NameNotAllowed") for unit, why in refused.not_allowed])

    def _refuse(self, refusals: Sequence[messages.Refusal]) -> None:
        """Ask the clusters to judge these units."""
        self._progress = self._progress.landed(self._now())
        self._conversations.ask_to_judge(refusals)

    def _judge_culprits(self, culprits: Sequence[tuple[Unit, str]]) -> None:
        """Read what exists at the names of these units, and ask the clusters to judge those that are at fault.

        Leaves out units that wait once more for other keys (``Passing.grant_second_wait``). ``culprits``: as in ``Isolation``.
        """
        found = self._new_reader().read_all({unit.name for unit, _ in culprits})  # nothing from before the refusal
        self._writer.culprits = ()
        texts, keys, passing = dict(culprits), self._queue.keys, self._queue.passing
        # The messages are about these units. The others must go together with them.
        named = {unit for unit, text in texts.items() if text}
        first_text = next(filter(None, texts.values()))  # for units without a message of their own
        refusals: list[messages.Refusal] = []
        for group in together(texts):
            # All units of a group are at one name.
            for unit, actual in at_fault(group, named, found[group[0].name]).items():
                if not passing.grant_second_wait(unit, actual, of_event=keys.since(unit) is not None):
                    refusals.append(messages.Refusal(unit, texts[unit] or first_text, actual))
        self._refuse(refusals)

    def _settle(self) -> None:
        """Do a step of settling: ask clusters to close what has landed. If nothing is left to ask, lock out late batches by a journal swap."""
        if not self._conversations.close(self._journal.find_landed()):
            self._writer.settled = self._journal.lock_out_late_batches()
            self._progress = self._progress.landed(self._now())
            self._failures = 0

    def _check_conflicts(self, intents: Sequence[Intent]) -> None:
        """Read the names in conflict of these intents, and ask the clusters to judge them. If reads are throttled, put all checks off.

        A check counts as progress: nothing that the zone could do is held up.
        """
        names = sorted({name for intent in intents for name in intent.conflicts})
        try:
            found = self._queue.checks.read(names)
        except ZoneThrottledError as error:
            logger.warning("conflict checks are put off", zone=self.zone_id, reason=str(error))
            self.report.throttled += 1
            self._queue.checks.put_off()
        else:
            self._progress = self._progress.landed(self._now())
            self._conversations.judge_conflicts(intents, found)

    def _new_reader(self) -> ZoneReader:
        return ZoneReader(self._ports.client, self.zone_id, self._ports.scheduler)

    def _answer_request(self, request: messages.Reach | messages.CompareZone) -> None:
        """Answer a resync that has waited until the zone is quiet (``Reach``), or let a cluster compare its keys with the zone (``CompareZone``).

        A comparison that mends changes what is applied without a batch. So it needs a cleared inflight item.
        """
        if isinstance(request, messages.Reach):
            self._journal.torn = False  # a resync looks at the zone
            self._conversations.requests.remove(request)
            request.reply.set_result(None)
            return
        if request.mend and self._journal.holds_landed:
            self._journal.clear()  # what is applied may change now without a batch
        actual = request.actual  # what stands in the zone: the asker has walked it
        if request.keys:  # it has not: it asks for these keys only
            try:
                found = self._new_reader().read_all(request.names).values()
                actual = with_replacements({key: stands for of_name in found for key, stands in of_name.items()})
            except KubesyncError as error:
                self._conversations.requests.remove(request)
                request.reply.set_exception(error)
                return
        self._conversations.compare(request, actual)

    def _answer_forgets(self) -> None:
        """Answer clusters that are removed, once the zone has no work of theirs."""
        for forget in list(self._forgetting):
            if not self._end_work_of(forget.cluster):
                self._forgetting.remove(forget)
                forget.reply.set_result(None)

    def _end_work_of(self, cluster: str) -> bool:
        """Take a cluster that is removed out of the inflight item, if nothing else of it is open here. Returns whether work of it is left: an
        open question, or a batch in the item, as the table says. Then call it again later.

        the zone                                             work of a cluster that the item names is left
        --------                                             ---------------------------------------------
        has a batch under way                                yes
        is not settled, and gone                             no: its units are dropped from the item
        is not settled                                       yes
        waits for clusters to close a batch, or the cluster  yes
          has not closed its units
        else: the batch is closed                            no: the item is cleared
        """
        if self._conversations.open is not None and self._conversations.open.involves(cluster):
            return True
        if self._writer.idle and not self._journal.holds_landed:
            return False
        inflight = self._journal.known_inflight()
        if inflight is None or cluster not in inflight.clusters:
            return False
        if self._writer.sent is not None:
            return True
        if not self._writer.settled and isinstance(self._blocked_by, ZoneGoneError):
            self._journal.drop_units_of(cluster)  # a removal need not know the outcome in a zone that is gone
            return False
        if not self._writer.settled or self._conversations.closing or cluster in self._journal.unclosed:
            return True
        self._journal.clear()
        return False

    def _end_if_drained(self, seconds: float) -> float | None:
        """End the actor if the session drains, and nothing more can be done now or the time for it is over. Returns None then.

        Else returns in how many seconds to step again. Nothing more can be done if no cluster has to answer, and the zone is blocked, or it is
        settled and has no batch under way.
        """
        if self._drain_until is None or seconds == AT_ONCE:
            return seconds
        left = self._drain_until - self._now()
        answers_to_come = self._conversations.open is not None or bool(self._queue.late_clusters)
        if left <= 0 or (not answers_to_come and (self._blocked_by is not None or self._writer.idle)):
            self._end()
            return None
        return min(seconds, left)

    def _end(self) -> None:
        """Answer what waits with an error, and clear the inflight item if everything is closed: the next session need not settle."""
        self._conversations.fail_requests(ZoneError("the session ends"))
        if self._writer.idle and not self._conversations.closing and self._journal.holds_landed:
            try:
                self._journal.clear()
            except NotMasterError as error:
                self._ports.not_master(error)
            except KubesyncError as error:
                logger.warning("the next session settles a zone", zone=self.zone_id, reason=str(error))
