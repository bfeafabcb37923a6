"""Does the resyncs that people ask a running master for: one at a time, in a thread of its own.

    main loop                         this desk
    ---------                         ---------
    reads what is asked for ──take──> does it, leaves the answer in the mailbox
    goes on with control, time        breaks off once the session has to end, and says so in the answer

The main loop never waits for it: configurations, removals, other clusters and the end of time go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from aws_lambda_powertools import Logger

from kubesync.actors.scheduler import Thread
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.resync_requests import RequestTable, ResyncRequest
from kubesync.domain.errors import NotMasterError, StoreError
from kubesync.operations.ports import Master
from kubesync.operations.resync import Resync

logger = Logger(service="kubesync", child=True)


class ResyncRunner:
    """Takes requests and answers them. ``take`` from the session's own thread; ``close``, then ``join``, end it."""

    def __init__(self, master: Master, requests: RequestTable) -> None:
        self._master = master
        self._requests = requests
        self._lock = master.parts.scheduler.lock()
        self._queue: deque[ResyncRequest] = deque()
        self._known: set[str] = set()
        self._thread: Thread | None = None
        self._busy = False
        self._closed = False

    def take(self, asked: Iterable[ResyncRequest]) -> None:
        """Queue what is asked for and not known yet. Returns at once."""
        found = list(asked)
        with self._lock:
            fresh = [request for request in found if request.id not in self._known]
            self._queue.extend(fresh)
            self._known |= {request.id for request in fresh}
            start = bool(self._queue) and not self._busy and not self._closed
            self._busy = self._busy or start
        if start:
            self._thread = self._master.start_thread("resync", self._work)

    def close(self) -> None:
        """Begin with nothing more; what is left in the mailbox is for the next master."""
        with self._lock:
            self._closed = True

    def join(self, seconds: float) -> bool:
        """Wait for what is under way; False: it still is."""
        if self._thread is not None:
            self._thread.join(max(0.0, seconds))
        return not self._busy

    def _work(self) -> None:
        while (request := self._next()) is not None:
            try:
                self._do(request)
            except NotMasterError as error:
                self._master.not_master(error)
            except (StoreError, StaleStateError) as error:
                logger.warning("a resync could not be answered", request=request.id, error=str(error))
                with self._lock:
                    self._known.discard(request.id)  # found in the mailbox again, if anybody still waits

    def _next(self) -> ResyncRequest | None:
        with self._lock:
            if self._closed or not self._queue:
                self._busy = False
                return None
            return self._queue.popleft()

    def _do(self, request: ResyncRequest) -> None:
        if not self._requests.waiting(request):
            return
        self._master.progress("resync", {"text": f"{_in_words(request)} was asked for"})
        try:
            report = Resync(self._master, request, own_session=False).run()
        except (NotMasterError, StoreError):
            raise
        except Exception as error:  # a fault of ours: whoever asked must not wait for an answer that never comes
            logger.exception("a resync failed", request=request.id)
            failed = {"cluster": request.cluster, "error": f"{type(error).__name__}: {error}"}
            report = {"dry_run": request.dry_run, "forced": request.force, "clusters": [failed]}
        self._answer(request, report)
        self._master.progress("resync", {"text": f"{_in_words(request)} was answered"})

    def _answer(self, request: ResyncRequest, report: dict[str, Any]) -> None:
        """Only the master answers: the report is left in a fenced transaction like everything else (I2)."""
        fenced_writer = self._master.fenced_writer
        token = fenced_writer.token()
        try:
            fenced_writer.run(
                (), self._requests.answer(request, report, token), token
            )  # for no cluster: the shard's fence
        except StaleStateError:
            logger.info("nobody waits for the resync any more", request=request.id)


def _in_words(request: ResyncRequest) -> str:
    kind = "a dry run of a resync" if request.dry_run else "a forced resync" if request.force else "a resync"
    return f"{kind} of {request.cluster or 'all clusters'}"
