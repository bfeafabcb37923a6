"""One session: it takes the lease, runs the master until its deadline, and hands over.

lease ── fences ── checkpoints, open keys ── zones, clusters ── until the deadline ── drain ── release
                                                  │
                                                  └── control: changed configurations, removals, requested resyncs
"""

import math
from collections.abc import Callable
from itertools import count
from typing import Final

from kubesync.actors.scheduler import Clock
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.control.lease import Lease
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.cluster.ports import Progress
from kubesync.domain.errors import ErrorCode, FencedOutError, NotMasterError, StoreError
from kubesync.domain.report import DONE, ResyncEnded, SessionReport
from kubesync.log import logger
from kubesync.operations.ports import MasterParts, Recovering, Recovery, SessionEndsError, Term
from kubesync.operations.requests import ResyncWorker
from kubesync.operations.resync_progress import NotKeptError
from kubesync.session.control import Control
from kubesync.session.health import Minute, harmless, session_in_short
from kubesync.session.lease_keeper import LeaseKeeper
from kubesync.session.master import Master

BEAT_SECONDS: Final = 60.0
_TICK_SECONDS: Final = 1.0
_MINUTES_NOTED: Final = 15  # the item of the lease stays below 1 KB: a renewal is one write unit
# If fences are above the session's epoch, it takes the lease again at most so often. Its new epoch is above each fence that refused it.
_EPOCH_TRIES: Final = 5
# Time after draining, for the last listener errors and the release of the lease.
_RELEASE_SECONDS: Final = 4.0
# After the release, for the report: its thread is left behind if DynamoDB does not answer.
_REPORT_SECONDS: Final = 1.0


class Session:
    """Runs once. ``run`` blocks; ``stop`` may be called from a signal handler or another thread.

    Args:
        parts: the tables, the zone client and the connector.
        keeper: the lease.
        progress: called at each notable step, for a person who watches.

    ``on_beat`` gets a snapshot of the report: once the session is master, then once a minute, and at the end. ``on_resync`` is called when a
    resync of all clusters has ended. Both are called in the session's own thread. The functions set both, to write metrics.
    """

    def __init__(self, parts: MasterParts, keeper: LeaseKeeper, progress: Progress) -> None:
        self._parts = parts
        self._clock: Clock = parts.scheduler
        self._keeper = keeper
        self._term = Term(parts.scheduler, progress)
        self._started = 0.0
        # For how many seconds the invocation leaves time to work, before it must drain.
        self._work_left: Callable[[], float] = lambda: math.inf
        # Somebody changed a configuration, or requested a resync: do not wait for ``Control.due_at``.
        self._control_due = False
        self._standing_by = False  # the person who watches was told that the session stands by
        self.on_beat: Callable[[SessionReport], None] = lambda _snapshot: None
        self.on_resync: Callable[[ResyncEnded], None] = lambda _ended: None
        self._minutes: list[Minute] = []  # the lags of each beat in which changes landed, for the stored report
        self._steady_from = math.inf  # from when on (monotonic) ``SessionReport.steady`` is true
        # Not a copy: these counts grow while the session runs.
        self.report = SessionReport(parts.session, dynamodb=parts.counted.counts)

    def stop(self, code: ErrorCode, message: str = "") -> None:
        """End the session soon. The first reason counts, but a lost lease replaces any other."""
        self._term.stop(code, message)

    def run(
        self,
        remaining_seconds: Callable[[], float] = lambda: math.inf,
        resync: ResyncRequest | None = None,
        recovery: Recovery | None = None,
    ) -> SessionReport:
        """Be master until the deadline.

        Args:
            remaining_seconds: how long the invocation has left.
            resync: do this full resync and end, instead of watching.
            recovery: recover lost or restored tables and end, instead of watching.

        Returns:
            The report. ERR_NOT_MASTER (4) and ERR_MAX_RUNTIME (5) are normal ends.

        Raises:
            StoreError: the tables cannot be used. Nothing was done.
            UsageError: the tables belong to another deployment. Nothing was done.
        """
        # 1. Take the lease.
        self._started = self._clock.monotonic()
        reserved = self._parts.settings.drain_margin_seconds + _RELEASE_SECONDS
        self._work_left = lambda: remaining_seconds() - reserved
        # Before the lease is taken: its epoch must be above the epoch of each journal.
        recovering = None if recovery is None else recovery.begin(self._parts, self._keeper.table)
        try:
            before, lease = self._keeper.acquire(self._may_stand_by, self._parts.settings.deployment)
        except NotMasterError as error:
            return self._end_without_lease(error)
        # 2. Take over: raise the fences, and read what is stored. A fence that is above the epoch costs another try.
        leads_since = self._clock.monotonic()
        self._begin_as_master(before, lease, leads_since)
        # A recovery and a resync write in this thread, which must also end the session in time. So a write that is repeated ends at the deadline.
        # In a session that watches, actors write until the drain ends: ``Master.finish`` sets that time.
        writes_until = math.inf if recovery is None and resync is None else self._term.deadline
        master = self._new_master(writes_until)
        try:
            left = self._keeper.to_settle(before)  # None: all zones
            # A recovery releases the zones once it knows them. A dry run never does: what is open stays open.
            hold_zones = recovery is not None or (resync is not None and resync.dry_run)
            for tries in count(1):
                try:
                    master.take_over(clean=left is not None, unsettled=left or (), hold_zones=hold_zones)
                    break
                except FencedOutError as error:
                    if tries > _EPOCH_TRIES:
                        raise
                    logger.warning("refused by a fence", fence=error.epoch, epoch=self.report.epoch)
                    self._keeper.take_again(error.epoch)
                    # It is not known how the master ended that had raised this fence. So all zones are settled (``left``: None).
                    master, left = self._new_master(writes_until), None
            self._say_that_it_leads(master, leads_since)
            # 3. Do the one task that the session was started for, or watch until the deadline.
            if recovering is not None:
                self._recover(master, recovering)
            elif resync is not None:
                self._resync(master, resync)
            else:
                master.start()
                self.report.hand_over_seconds = self._keeper.seconds_since(before)
                self._watch(master)
        except NotMasterError as error:
            self._term.not_master(error)
        except BaseException:
            self._keeper.release(clean=False)
            raise
        # 4. Hand over.
        self._finish(master)
        return self.report

    def _begin_as_master(self, before: Lease, lease: Lease, now: float) -> None:
        """Fix the deadline, and start to renew the lease until then. Call it once, when the lease is taken at ``now`` (monotonic)."""
        settings = self._parts.settings
        self._term.deadline = now + min(settings.max_runtime_seconds, self._work_left())
        self._term.pause_seconds = self._keeper.seconds_since(before) or 0.0
        self.report.took_over = _how_it_ended(before, paused=self._keeper.paused(before))
        self._keeper.on_lost = lambda reason: self.stop(ErrorCode.NOT_MASTER, reason)
        self._keeper.on_signal = self._request_control
        self._keeper.start(self._clock.epoch_seconds() + (self._term.deadline - now))
        details = {"session": self.report.session, "epoch": lease.epoch, "after": self.report.took_over}
        self._term.progress("master", details)

    def _say_that_it_leads(self, master: Master, since: float) -> None:
        """Log that the session is master, and send the first figures. Note on the lease when the last full resync was, and how alarms are set.

        Called once, after the take-over. ``since``: when it got the lease (monotonic).
        """
        # No resync is known in a new deployment: its hours without one count from now (``HoursSinceResync``).
        self._keeper.note(resynced_at_ms=self._keeper.lease.resynced_at_ms or int(self._clock.epoch_seconds() * 1000))
        settings = self._parts.settings
        if settings.alarms_notify is not None:
            self._keeper.note(silent=not settings.alarms_notify, no_master_minutes=settings.no_master_minutes)
        logger.info(
            "took over",
            epoch=self.report.epoch,
            after=self.report.took_over,
            stood_by_seconds=round(since - self._started, 3),
            seconds=round(self._clock.monotonic() - since, 3),
        )
        self._steady_from = min(self._clock.monotonic() + BEAT_SECONDS, self._term.deadline)
        self._beat(master)

    def _new_master(self, writes_until: float) -> Master:
        """Make a master for the epoch of the lease. It writes nothing after ``writes_until`` (monotonic)."""
        self.report.epoch = self._keeper.lease.epoch
        master = Master(self._parts, self._keeper, self.report, self._term)
        master.fenced_writer.until_monotonic = writes_until
        return master

    def _recover(self, master: Master, recovering: Recovering) -> None:
        """Run the recovery that this session was started for. Then publish what it has changed, unless it is a dry run."""
        self.report.recoveries.append(recovering.run(master))
        if not recovering.dry_run:
            master.release_zones()
            master.wait_until_idle()

    def _resync(self, master: Master, request: ResyncRequest) -> None:
        """Run the resync that this session was started for. Then publish what it has changed, unless it is a dry run.

        If the resync cannot be finished, the session ends and the request stays.
        """
        if not request.dry_run:
            master.named.start()
        try:
            self.report.resyncs.append(ResyncWorker(master).run(request, own_session=True))
        except (SessionEndsError, NotKeptError, StaleStateError, StoreError) as error:
            logger.info("the resync was cut off", request=request.id, reason=str(error))
            self.stop(ErrorCode.MAX_RUNTIME)
        if not request.dry_run:
            master.wait_until_idle()

    def _may_stand_by(self) -> bool:
        """Whether to go on waiting for the lease. ``LeaseKeeper.acquire`` asks before each wait; the first time, tells the person who watches."""
        if not self._standing_by:
            self._standing_by = True
            self._term.progress("stand-by", {"session": self.report.session})
        return not self._term.over and self._work_left() > _TICK_SECONDS

    def _request_control(self) -> None:
        """Let the session's thread read configurations and requests at once. The lease keeper's thread calls this."""
        self._control_due = True
        self._term.wake()

    def _watch(self, master: Master) -> None:
        """Run the session's loop until it has to end: control, reports of resyncs, figures each minute, lag on the lease.

        The actors do the work, in threads of their own. The loop waits for at most a second at a time, so it notices each end in time:

            the loop ends because                                code
            ---------------------                                ----
            somebody called ``stop``, or the lease was lost      theirs (``Term.over``)
            the session's deadline has come                      MAX_RUNTIME
            the invocation ends sooner than it had said          WORKER_EXITING
        """
        control = Control(master)
        next_beat = self._clock.monotonic() + BEAT_SECONDS
        next_note = self._clock.monotonic()
        # The session read all configurations when it took over. So only requests are new, and the first ``Control.run`` is due later.
        try:
            control.take_resyncs()
        except StoreError as error:
            logger.warning("requests could not be read", error=str(error))
        while not self._term.over:
            now = self._clock.monotonic()
            if now >= self._term.deadline:
                self.stop(ErrorCode.MAX_RUNTIME)
                break
            if self._work_left() < 0:
                self.stop(ErrorCode.WORKER_EXITING, "the invocation's time ran down")
                break
            if self._control_due or now >= control.due_at:
                self._control_due = False
                try:
                    control.run()
                except StoreError as error:
                    logger.warning("configurations could not be read", error=str(error))
            control.forget_ended()
            self._report_resyncs()
            if now >= next_beat:
                next_beat += BEAT_SECONDS
                self._beat(master)
            if now >= next_note:
                next_note = now + self._parts.settings.lease_renew_seconds
                self._note_lag(master)
            self._term.wait(min(_TICK_SECONDS, self._term.deadline - now))

    def _finish(self, master: Master) -> None:
        """Drain, end all actors, release the lease, and complete and store the report.

        The report is stored last, so that the next session need not wait for it. It is not stored if the lease was lost: another master writes
        now (I2).
        """
        # 1. Drain. If the lease is lost (``abandon``), clusters record nothing more of what was read. They only store that the lease was lost.
        code = self._term.code or ErrorCode.MAX_RUNTIME
        began = self._clock.monotonic()
        margin = self._parts.settings.drain_margin_seconds
        drain_until = began + min(margin, max(0.0, self._work_left() + margin))
        self._term.progress("ending", {})
        clean, unsettled = master.finish(code, drain_until, abandon=code is ErrorCode.NOT_MASTER or self._keeper.lost)
        # 2. Release the lease, with the last facts for later sessions.
        lost = self._term.code is ErrorCode.NOT_MASTER or self._keeper.lost
        self._report_resyncs()
        self._note_lag(master)
        if not self._keeper.release(clean=clean and not lost, unsettled=unsettled) and not lost:
            # Every write happened under our lease, but the next session will not see a clean hand-over.
            lost = True
            self._term.stop(ErrorCode.NOT_MASTER, "the lease was lost before it could be released")
        # 3. Report.
        self._beat(master, lost=lost)
        code = self._term.code or code
        self.report.clean = clean and not lost and not unsettled
        self.report.code, self.report.ended = int(code), code.key
        if (self.report.resyncs or self.report.recoveries) and not self._term.over:
            # Nothing stopped the session: it finished the one task that it was started for.
            self.report.code, self.report.ended = 0, DONE
        self.report.message = self._term.message
        ended = self._clock.monotonic()
        self.report.seconds = round(ended - self._started, 3)
        logger.info(
            "session ended",
            code=self.report.ended,
            epoch=self.report.epoch,
            clean=self.report.clean,
            seconds=self.report.seconds,
            ending_seconds=round(ended - began, 3),
        )
        if not lost:
            self._store_report()

    def _beat(self, master: Master, *, lost: bool = False) -> None:
        """Give ``on_beat`` a snapshot, and remember its lag for the report. ``lost``: another session is the master.

        Figures must not end a session: an error is logged and dropped.
        """
        steady = self.report.steady = self._clock.monotonic() >= self._steady_from
        with harmless("the figures of this minute could not be reported"):
            snapshot = master.snapshot(lost=lost)
            snapshot.steady = steady
            if snapshot.lag:
                lag = (snapshot.lag["count"], snapshot.lag["p50"], snapshot.lag["p99"])
                self._minutes.append((round(self._clock.monotonic() - self._started), *lag))
            self.on_beat(snapshot)

    def _note_lag(self, master: Master) -> None:
        """Note the lag of the last minutes, with the current one, on the lease, so that people see it at the next renewal.

        Four numbers for each minute: when (epoch seconds), how many changes, and their median and 99th percentile (milliseconds).
        """
        with harmless("the lag of this session could not be noted"):
            now, lag = self._clock.monotonic(), master.fresh_lag()
            rows = (
                [*self._minutes, (now - self._started, lag["count"], lag["p50"], lag["p99"])] if lag else self._minutes
            )
            began = self._clock.epoch_seconds() - (now - self._started)
            shown = [(began + at, count, 1000 * p50, 1000 * p99) for at, count, p50, p99 in rows[-_MINUTES_NOTED:]]
            self._keeper.note(lag=[round(number) for row in shown for number in row])

    def _store_report(self) -> None:
        """Store the report in the audit table, in a thread that is left behind if DynamoDB does not answer.

        Call it after the release, so that the next session does not wait; and only if the lease was not lost (I2).
        """

        def keep() -> None:
            with harmless("the session's report could not be kept"):
                audit = AuditTable(self.report.session, self._parts.settings.audit_retention_seconds)
                short = session_in_short(self.report, self._minutes)
                self._parts.store.write(audit.report("session", short, self._clock.epoch_seconds()))

        thread = self._parts.scheduler.thread("report", keep)
        thread.start()
        thread.join(_REPORT_SECONDS)

    def _report_resyncs(self) -> None:
        """Call ``on_resync`` for resyncs of all clusters that have ended. Note the time of one without errors on the lease.

        ``operations.requests`` puts them into ``Term.resynced``, in another thread.
        """
        while self._term.resynced:
            ended = self._term.resynced.popleft()
            if not ended.errors:
                self._keeper.note(resynced_at_ms=int(self._clock.epoch_seconds() * 1000))
            with harmless("the errors of a resync could not be reported"):
                self.on_resync(ended)

    def _end_without_lease(self, error: NotMasterError) -> SessionReport:
        """Complete the report of a session that never held the lease, and write its audit item."""
        code = self._term.code or ErrorCode.NOT_MASTER
        message = str(error)
        if self._term.over:
            message = f"{self._term.message or code.key}: it never held the lease ({error})"
        self.report.code, self.report.ended, self.report.message = int(code), code.key, message
        self.report.seconds = round(self._clock.monotonic() - self._started, 3)
        audit = AuditTable(self.report.session, self._parts.settings.audit_retention_seconds)
        fields = {"code": int(code), "key": code.key, "message": message}
        try:
            self._parts.store.write(audit.session_ended(fields, self._clock.epoch_seconds()))
        except StoreError as failed:
            logger.warning("the session's end could not be recorded", error=str(failed))
        return self.report


def _how_it_ended(before: Lease, *, paused: bool) -> str:
    """Return in words how the last master ended.

    the lease before                            paused    words
    ----------------                            ------    -----
    nobody ever held it                         -         first session
    not released                                -         expired lease
    released, it says which zones to settle     yes       clean end long ago, zones looked at again
    released: it was a clean end                no        clean hand-over
    released, it says which zones to settle     no        hand-over, zones to settle: ...
    released, without saying that               -         unclean end

    After a long time, all zones are settled whatever the last master said (``LeaseKeeper.to_settle``). The report and the log show the words.

    Args:
        paused: there was no master for a long time since (``LeaseKeeper.paused``).
    """
    if not before.holder:
        return "first session"
    if before.released:
        if paused and before.to_settle is not None:
            return "clean end long ago, zones looked at again"
        if before.clean:
            return "clean hand-over"
        left = before.to_settle
        return "unclean end" if left is None else f"hand-over, zones to settle: {', '.join(left)}"
    return "expired lease"
