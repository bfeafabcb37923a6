"""Runs the resyncs that people request from a running master: one at a time, in a separate thread.

    main loop                         this runner
    ---------                         -----------
    reads the requests ────take─────> runs each one and writes the answer to the request table
    continues with its work           stops once the session must end, and says so in the answer

The main loop never waits for it, so configurations, removals, other clusters and the deadline are not delayed.
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
    """Takes requests and answers them. The session's own thread calls ``take``, and at the end ``close`` and ``join``."""

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
        """Queue the requests that are new. Returns at once."""
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
        """Start no more. The next master answers the remaining requests."""
        with self._lock:
            self._closed = True

    def join(self, seconds: float) -> bool:
        """Wait for the resync under way. False: it still runs."""
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
                    self._known.discard(request.id)  # read again if its caller still waits

    def _next(self) -> ResyncRequest | None:
        with self._lock:
            if self._closed or not self._queue:
                self._busy = False
                return None
            return self._queue.popleft()

    def _do(self, request: ResyncRequest) -> None:
        if not self._requests.waiting(request):
            return
        self._master.progress("resync", {"text": f"{_in_words(request)} was requested"})
        try:
            report = Resync(self._master, request, own_session=False).run()
        except (NotMasterError, StoreError):
            raise
        except Exception as error:  # a bug of ours: the caller must get an answer
            logger.exception("a resync failed", request=request.id)
            failed = {"cluster": request.cluster, "error": f"{type(error).__name__}: {error}"}
            report = {"dry_run": request.dry_run, "forced": request.force, "clusters": [failed]}
        self._answer(request, report)
        self._master.progress("resync", {"text": f"{_in_words(request)} was answered"})

    def _answer(self, request: ResyncRequest, report: dict[str, Any]) -> None:
        """Write the report in a fenced transaction: only the master may answer (I2)."""
        fenced_writer = self._master.fenced_writer
        token = fenced_writer.token()
        try:
            # No cluster: checks the shard's fence.
            fenced_writer.run((), self._requests.answer(request, report, token), token)
        except StaleStateError:
            logger.info("the resync was withdrawn before its answer", request=request.id)


def _in_words(request: ResyncRequest) -> str:
    kind = "a dry run of a resync" if request.dry_run else "a forced resync" if request.force else "a resync"
    return f"{kind} of {request.cluster or 'all clusters'}"
