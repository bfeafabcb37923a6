"""Runs the resyncs that people request from a running master: one at a time, in a separate thread.

    the session's thread              the actor of resyncs (``ResyncActor``)
    --------------------              --------------------------------------
    reads the requests ─────────────> runs each one and writes the answer to the request table
    continues with its work           stops once the session must end

A resync never delays configurations, removals, other clusters or the deadline.

If the session ends before a resync is done, a normal resync stays requested, and the next session goes on with it. The answer of a forced
resync, or of a dry run, says that it was not done. A resync that is not done an hour after its request ends with an error.
A *normal* resync is neither forced nor a dry run (``ResyncRequest.is_normal``).

    the request is ...     what becomes of it in the table of requests
    ------------------     -------------------------------------------
    stored by its caller   it waits (``ResyncTable.waiting``)
    answered               it holds the report, until its caller collects it
    withdrawn              its caller has removed it. Every write for it is refused from then on (StaleStateError, ResyncWithdrawnError)
    too old                removed; of a normal one the result is an error
"""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Final

from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Activity, Host
from kubesync.aws.dynamodb.store import Action
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.domain.errors import NotMasterError, StoreError
from kubesync.domain.report import ResyncEnded
from kubesync.log import logger
from kubesync.operations.ports import Master, SessionEndsError
from kubesync.operations.resync import Resync
from kubesync.operations.resync_progress import (
    NotKeptError,
    ResyncProgress,
    ResyncWithdrawnError,
    done_clusters,
    figures_of,
    in_short,
    proven,
    report_of,
)

NOT_DONE: Final = "no session finished the resync within an hour: run it again"


class ResyncWorker:
    """Runs one resync at a time and stores its result, for a running master and for a session that was started for a resync."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self._table = master.parts.resyncs

    def run(self, request: ResyncRequest, *, own_session: bool) -> dict[str, Any]:
        """Run a resync, store its result, and answer the request if it is stored. Returns the report.

            own_session   the request is                  the report
            -----------   --------------                  ----------
            no            stored: the caller waits        is stored as the answer, for the caller to collect
            yes           stored, as every normal one     is returned to the caller, and the request is removed
            yes           not stored, or withdrawn        is returned to the caller; a normal one that was withdrawn raises

        ``own_session``: the session was started for this request, in the process that asked for it.
        The result, which people see later, is stored in each case but a dry run (``_store_result``). If a forced resync is withdrawn, its result
        says what was done until then; a normal one that is withdrawn has no result here.

        Raises:
            SessionEndsError: the session ends first. The request stays.
            NotKeptError, StoreError: DynamoDB cannot be used now. The request stays.
            NotMasterError: another session holds the lease.
            StaleStateError, ResyncWithdrawnError: the request was withdrawn. Of a forced one or a dry run this is no error.
        """
        stored = not own_session or self._table.waiting(request)
        progress = ResyncProgress(self._master, request, stored=stored, own_session=own_session)
        try:
            report = Resync(self._master, progress).run()
        except ResyncWithdrawnError as error:
            if request.is_normal:
                raise
            report = progress.cut_off(str(error))
            self._store_result(request, report, withdrawn=True)
            return report
        except (NotMasterError, StoreError, NotKeptError, SessionEndsError):
            raise
        except Exception as error:  # an internal error: the caller must still get an answer
            if own_session:
                raise
            logger.exception("a resync failed", request=request.id)
            report = report_of(request, [{"cluster": request.cluster, "error": f"{type(error).__name__}: {error}"}])
        token = self._master.fenced_writer.token()
        actions: list[Action] = []
        if stored:
            # ``asked``: if the request was withdrawn meanwhile, the whole transaction fails, with StaleStateError.
            removed = [self._table.delete_request(request, asked=True)]
            actions += removed if own_session else self._table.answer(request, report, token)
        if progress.goes_on:
            actions += [self._table.delete_progress(request)]
        try:
            self._store_result(request, report, actions, token, own_session=own_session)
        except StaleStateError:  # the request was withdrawn meanwhile; the caller logs that of a normal one
            if request.is_normal:
                raise
            self._store_result(request, report, withdrawn=True)
        return report

    def expire(self, request: ResyncRequest) -> None:
        """Store an error as the result of a normal request that no session finished in time. Raises as ``run``.

        If only its progress is left, without a request, there is no result: nobody knows whether an earlier release has finished it.
        """
        if not self._table.waiting(request):
            logger.warning("a resync has no request: an earlier release may have finished it", request=request.id)
            writer = self._master.fenced_writer
            writer.run((), [self._table.delete_progress(request)], writer.token())
            return
        logger.error("a resync was not finished in time", request=request.id, cluster=request.cluster)
        done = done_clusters(request, self._table)
        report = report_of(request, [*done, {"cluster": request.cluster, "error": NOT_DONE}])
        self._store_result(request, report, [self._table.delete_request(request), self._table.delete_progress(request)])

    def _store_result(
        self,
        request: ResyncRequest,
        report: dict[str, Any],
        answer: Sequence[Action] = (),
        token: str = "",
        *,
        withdrawn: bool = False,
        own_session: bool = False,
    ) -> None:
        """Store the result in one transaction with the fence (I2), together with ``answer``: writes that answer or remove the request. Then log it.

        Dry runs have no stored result, only an answer.

        if DynamoDB fails                           what happens
        -----------------                           ------------
        with an answer, the master was asked        raises StoreError: the request stays, and is run again
        with none, or in a session of its own       only the result is missing: the caller gets the report all the same

        Args:
            token: the name of the transaction, which its writes contain. Give the one with which ``answer`` was made; empty: a new one.
            withdrawn: the caller withdrew the resync. It gets no answer, and this is no failure.
        """
        writer, parts = self._master.fenced_writer, self._master.parts
        token, actions = token or writer.token(), [*answer]
        if not request.dry_run:
            figures = figures_of(report)
            kept = {**figures, "session": parts.session}
            actions += self._table.put_result(request, kept, in_short(report), parts.scheduler.epoch_seconds(), token)
        try:
            if actions:
                writer.run((), actions, token)  # no cluster: checks the shard's fence
        except StoreError as error:
            if answer and not own_session:
                raise
            logger.warning("the result of a resync could not be kept", error=str(error))
        if withdrawn:
            logger.warning("a resync was withdrawn by its caller", request=request.id, cluster=request.cluster)
        if not request.dry_run:
            self._log(request, report, figures)
            if not request.cluster and not withdrawn:
                self._master.term.resynced.append(ResyncEnded(figures["errors"], proven(report), request.scheduled))

    def _log(self, request: ResyncRequest, report: dict[str, Any], figures: dict[str, int]) -> None:
        """Log the end of a resync, and an error for each cluster that failed."""
        for each in report["clusters"]:
            if "error" in each:
                logger.error("a cluster could not be resynchronised", cluster=each["cluster"], error=each["error"])
        seconds = max(0, round(self._master.parts.scheduler.epoch_seconds() - request.at_ms / 1000))
        said = {"request": request.id, "scheduled": request.scheduled, "seconds": seconds, **figures}
        logger.info("resync ended", extra=said)


class ResyncActor:
    """Runs requested resyncs, one after another, as an actor. The session's thread calls ``take``, and at the end ``close`` and ``join``.

    Its messages are tuples of requests: all that are due. An empty one only wakes it, so that it sees that the session is over.
    """

    def __init__(self, master: Master, activity: Activity) -> None:
        self._master = master
        self._worker = ResyncWorker(master)
        self._due: deque[ResyncRequest] = deque()
        self._tries: Counter[str] = Counter()  # by request id: how often this session has begun it
        self._host: Host[None] = Host("resync", self, master.parts.scheduler, activity)
        # A resync is one long step, which ``Activity.stuck`` would report. The host still counts as busy.
        activity.hosts.remove(self._host)

    # --- for the session's thread ---

    def take(self, requests: Sequence[ResyncRequest]) -> None:
        """Run these requests, which are all that are due now: they replace those of an earlier call. Returns at once."""
        if requests:
            self._host.start()
            self._host.send(tuple(requests))

    def close(self) -> None:
        """Start no other resync: the session is over. The next master answers the remaining requests."""
        if self._host.alive:
            self._host.send(())

    def join(self, seconds: float) -> bool:
        """Wait for the resync under way. Returns False if it still runs."""
        return self._host.join(seconds)

    # --- the actor ---

    def receive(self, message: object) -> None:
        """Take in the requests that are due, those first that were tried least: one that fails does not keep the others waiting (I4).

        The session may have read a request before this actor ran it to its end. ``_run_request`` sees that it is answered, and leaves it out.
        """
        assert isinstance(message, tuple)
        self._due = deque(sorted(message, key=lambda request: self._tries[request.id]))

    def step(self) -> float | None:
        """Run the next request, which takes long. None: the session is over. Errors are logged.

        A request that fails still waits. The session reads it again, with others, and passes it to ``take``.
        """
        if self._master.term.over:
            return None
        if not self._due:
            return ON_MESSAGE
        request = self._due.popleft()
        self._tries[request.id] += 1
        try:
            self._run_request(request)
        except NotMasterError as error:
            self._master.term.not_master(error)
        except StaleStateError:
            logger.info("the resync was withdrawn before its answer", request=request.id)
        except SessionEndsError:
            logger.info("a resync goes on in the next session", request=request.id)
        except (StoreError, NotKeptError) as error:
            logger.warning("a resync could not be answered", request=request.id, error=str(error))
        return AT_ONCE

    def handle_error(self, error: Exception) -> float | None:
        """Log what ``step`` raised, and go on with the next request."""
        logger.error("a resync could not be answered", exc_info=error)
        return AT_ONCE

    def figures(self) -> None:
        """Publish nothing: all results are in the tables."""

    def _run_request(self, request: ResyncRequest) -> None:
        """Run a request, unless its caller has withdrawn it. A normal one that is too old only gets an error as its result.

        Others that are too old do not come here: ``ResyncTable.clean_up_and_list`` deletes them.
        """
        if request.expires_at <= self._master.parts.scheduler.epoch_seconds() and request.is_normal:
            self._worker.expire(request)
            return
        if not self._master.parts.resyncs.waiting(request):
            return
        self._master.term.progress("resync", {"text": f"{_in_words(request)} was requested"})
        self._worker.run(request, own_session=False)
        self._master.term.progress("resync", {"text": f"{_in_words(request)} was answered"})


def _in_words(request: ResyncRequest) -> str:
    """Return what was requested, for people."""
    kind = "a dry run of a resync" if request.dry_run else "a forced resync" if request.force else "a resync"
    return f"{kind} of {request.cluster or 'all clusters'}"
