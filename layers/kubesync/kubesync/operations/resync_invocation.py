"""A full resync that a person or the schedule requests. The running master does it. If there is none, a separate session does it.

the lease is               what happens
------------               ------------
free                       a separate session takes it and does the resync
held                       a request is stored and the lease signalled; the master answers with the report
free, and stays free       a separate session does the resync, of a normal one what is left of it
taken by another first     the request goes to that session

A *normal* resync is neither forced nor a dry run (``ResyncRequest.is_normal``). It is stored before anybody begins it, and stays until it is
done: the next session goes on with what its session left.

who waits                  a normal resync                          a forced one, or a dry run
---------                  ---------------                          --------------------------
has no time left           it goes on: the report so far            it is withdrawn
is interrupted by hand     it is withdrawn: the report so far       it is withdrawn
is a function that ends    it goes on                               it is withdrawn

The report so far names the clusters that are done. What a separate session could not finish, another one does, while there is time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, StrictBool, StrictStr, ValidationError

from kubesync.actors.scheduler import Scheduler
from kubesync.aws.tables.control.clusters import explain, valid_cluster_name
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.resync_requests import ResyncRequest, ResyncTable, new_request
from kubesync.cluster.ports import Progress
from kubesync.domain.errors import ErrorCode, UsageError
from kubesync.domain.report import SessionReport
from kubesync.operations.ports import ResyncError
from kubesync.operations.resync_progress import RUNNING, WITHDRAWN_REPORT, done_clusters, report_of

POLL_SECONDS: Final = 0.5
# A session on stand-by polls every 250 ms. If the lease stays free for longer than this, no session is waiting for it.
TAKE_OVER_SECONDS: Final = 2.0
# A further session of its own does something useful in this time: it takes over, and lists a cluster.
_SESSION_SECONDS: Final = 30.0


class ResyncEvent(BaseModel):
    """A request: the event of the resync function, or the options of ``kubesync resync``. ``scheduled``: the schedule sent it.

    ``shard``: whose clusters. Empty: the shard of the named cluster, else the one that the environment says.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    cluster: StrictStr = ""
    dry_run: StrictBool = False
    force: StrictBool = False
    scheduled: StrictBool = False
    shard: StrictStr = ""

    @classmethod
    def parse(cls, event: object) -> Self:
        """Validate an event. Raises UsageError, which says in one line what is wrong."""
        if not isinstance(event, dict):
            raise UsageError('the event is not an object such as {"cluster": "prod", "dry_run": true}')
        try:
            found = cls.model_validate(event)
        except ValidationError as invalid:
            raise UsageError(f"the event is not valid: {explain(invalid)}; known are cluster, dry_run, force") from None
        if found.cluster and not valid_cluster_name(found.cluster):
            raise UsageError("the event is not valid: cluster is not the name of a cluster")
        return found


@dataclass(slots=True)
class ResyncInvocation:
    """One requested resync. ``run`` blocks until there is a report.

    Args:
        run_session: runs a separate session for a request. It stands by for the lease if the holder ends soon.
        remaining_seconds: the time left to wait for a master.
        progress: called with ``resync`` and a line for a person, and with ``waiting`` and the session whose answer is waited for; empty: there
            is no master any more.
        deployment: the deployment that the tables must belong to. Empty: not checked.
        by_person: somebody waits at a terminal: whatever ends the wait, but time, withdraws the request.
    """

    wanted: ResyncEvent
    lease: LeaseTable
    table: ResyncTable
    run_session: Callable[[ResyncRequest], SessionReport]
    scheduler: Scheduler
    remaining_seconds: Callable[[], float]
    progress: Progress = lambda _what, _details: None
    deployment: str = ""
    by_person: bool = True
    # Somebody interrupted the last session of this process, which did a normal resync (WORKER_EXITING). ``_run_own_session`` sets it.
    _interrupted: bool = False

    def run(self) -> dict[str, Any]:
        """Have the resync done by the running master, or by a session of its own.

        Returns:
            ``{"dry_run", "forced", "clusters": [...]}`` and ``by``: the session that did it. If a normal resync is not done in time:
            the clusters that are done, ``"status": "running"`` and ``id``. If a person interrupts it in the session of its own:
            the same with ``"withdrawn"``.

        At the end the request is withdrawn, or stays, so that sessions go on with it:

            the request       how this ends                                       it is withdrawn
            -----------       -------------                                       ---------------
            forced, dry run   without a report                                    yes, if it was stored: ``_ask_master`` does both
            normal            with a report, or ``"running"``                     no: it is done, or the next session goes on
            normal            with ``"withdrawn"``                                yes
            normal            UsageError                                          yes
            normal            any other error, an interrupt included, by_person   yes: nobody waits for it any more
            normal            any other error, in a function                      no: the next session goes on, and its result is kept

        Raises:
            ResyncError: no report came in time, or the separate session ended without one.
            UsageError: the tables belong to another deployment.
        """
        if self.deployment:
            self.lease.bind(self.deployment)
        wanted, scheduler = self.wanted, self.scheduler
        kind = {"dry_run": wanted.dry_run, "force": wanted.force, "scheduled": wanted.scheduled}
        request = new_request(scheduler.token_hex(4), wanted.cluster, scheduler.epoch_seconds(), **kind)
        if not request.is_normal:
            report = self._have_it_done(request)
            if report is None:
                raise ResyncError("no session could do the resync in time: try again")
            return report
        withdraws = self.by_person  # what holds if anything below raises
        try:
            self.table.store(request)
            report = self._have_it_done(request) or self._report_so_far(request, RUNNING)
            withdraws = report.get("status") == WITHDRAWN_REPORT
            return report
        except UsageError:
            withdraws = True
            raise
        finally:
            if withdraws:
                self.table.withdraw(request)

    def _have_it_done(self, request: ResyncRequest) -> dict[str, Any] | None:
        """Return the report from whichever session does it: a running master, or one of this process. None: no time is left.

        this process runs a session of its own   if
        --------------------------------------   --
        first                                    the lease is free
        again, for a normal resync               the master is gone (``_ask_master``: None), nobody interrupted the last session, and there is
                                                 time for one (``_may_begin_another``)
        again, for any other                     the master is gone. No session of this process was cut off: that would have raised ResyncError
        """
        report = self._run_own_session(request) if self.lease.read().is_free(self._now_ms()) else None
        while report is None and self.remaining_seconds() > POLL_SECONDS:
            report = self._ask_master(request)
            if report is None and (not request.is_normal or self._may_begin_another()):
                report = self._run_own_session(request)
        return report

    def _may_begin_another(self) -> bool:
        """Whether this process may run another session for what is left: nobody interrupted it, and there is time."""
        return not self._interrupted and self.remaining_seconds() >= _SESSION_SECONDS

    def _report_so_far(self, request: ResyncRequest, status: str) -> dict[str, Any]:
        """Return what is done of a normal resync, as a report. ``by``: the session that holds the lease, which goes on with it."""
        done = report_of(request, done_clusters(request, self.table), status=status, id=request.id)
        return {**done, "by": self.lease.read().holder}

    def _say(self, text: str) -> None:
        self.progress("resync", {"text": text})

    def _run_own_session(self, request: ResyncRequest) -> dict[str, Any] | None:
        """Run a session for the request, and return its report.

        the session                                  a normal resync                         any other
        -----------                                  ---------------                         ---------
        has done it                                  its report                              its report
        got no lease: another was quicker            None: send the request to that one      the same
        was interrupted, and a person waits          the report so far, ``"withdrawn"``      ResyncError
        ended before it was done, for other reasons  None: the next session goes on          ResyncError
        """
        does = "takes the lease, and only compares" if self.wanted.dry_run else "does the resync"
        self._say(f"no master is running: this process {does}")
        session = self.run_session(request)
        if session.resyncs:
            return {**session.resyncs[0], "by": session.session}
        if session.code == ErrorCode.NOT_MASTER and not session.epoch:
            return None
        if request.is_normal:
            self._interrupted = session.code == ErrorCode.WORKER_EXITING
            if self._interrupted and self.by_person:
                return {**self._report_so_far(request, WITHDRAWN_REPORT), "by": session.session}
            return None
        raise ResyncError(f"the session ended without a report: {session.ended} {session.message}".rstrip())

    def _ask_master(self, request: ResyncRequest) -> dict[str, Any] | None:
        """Ask the running master, and wait for its report. None: see ``_wait_for_answer``.

        A normal request is stored already. Any other one is stored only as long as this process waits (I5).
        """
        withdraws = not request.is_normal  # unless there is a report
        try:
            if withdraws:  # inside `try`: an interrupt may come after the request is stored
                self.table.store(request)
            lease = self.lease.read()
            if not lease.is_free(self._now_ms()):
                self.lease.signal()
                self._say(f"session {lease.holder} is the master: the request was sent to it")
            report = self._wait_for_answer(request)
            withdraws = withdraws and report is None
            return report
        finally:
            if withdraws:
                self.table.withdraw(request)

    def _wait_for_answer(self, request: ResyncRequest) -> dict[str, Any] | None:
        """Wait for the master's answer to a stored request.

        if the wait ends without a report                                   returns
        ---------------------------------                                   -------
        there is no master any more, and this process may run a session     None
        no time is left for a normal resync                                 None: it goes on in the next session
        no time is left for any other                                       nothing: raises ResyncError
        """
        scheduler = self.scheduler
        free_since = math.inf  # since when (monotonic) nobody holds the lease; infinite: somebody does
        awaited = ""
        while True:
            lease = self.lease.read()
            holder = "" if lease.is_free(self._now_ms()) else lease.holder
            if holder != awaited:
                awaited = holder
                self.progress("waiting", {"session": holder})
            report = self.table.collect(request)
            if report is not None:
                return {**report, "by": lease.holder}
            now = scheduler.monotonic()
            free_since = math.inf if holder else min(free_since, now)
            if now - free_since >= TAKE_OVER_SECONDS and (not request.is_normal or self._may_begin_another()):
                self._say(f"session {lease.holder} is gone")
                return None
            if self.remaining_seconds() <= POLL_SECONDS:
                if request.is_normal:
                    return None
                raise ResyncError(
                    f"session {lease.holder} did not answer in time; the request was withdrawn: try again"
                )
            scheduler.sleep(POLL_SECONDS)

    def _now_ms(self) -> int:
        return int(self.scheduler.epoch_seconds() * 1000)
