"""Runs the resyncs that people request from a running master: one at a time, in a separate thread.

    the session's thread              this runner
    --------------------              -----------
    reads the requests ─────────────> runs each one and writes the answer to the request table
    continues with its work           stops once the session must end, and says so in the answer

A resync never delays configurations, removals, other clusters or the deadline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from aws_lambda_powertools import Logger

from kubesync.actors.actor import AT_ONCE, WHEN_TOLD, Activity, Host
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.resync_requests import RequestTable, ResyncRequest
from kubesync.domain.errors import NotMasterError, StoreError
from kubesync.operations.ports import Master
from kubesync.operations.resync import Resync

logger = Logger(service="kubesync", child=True)


class ResyncRunner:
    """An actor. The session's own thread calls ``take``, and at the end ``close`` and ``join``."""

    def __init__(self, master: Master, requests: RequestTable, activity: Activity) -> None:
        self._master = master
        self._requests = requests
        self._queue: deque[ResyncRequest] = deque()
        self._known: set[str] = set()
        self._closed = False
        self._host = Host("resync", self, master.parts.scheduler, activity)
        self._host.since = {}  # a resync is one long step

    # --- for the session's thread ---

    def take(self, requests: Iterable[ResyncRequest]) -> None:
        """Queue the requests that are new. Returns at once."""
        if found := tuple(requests):
            self._host.start()
            self._host.send(found)

    def close(self) -> None:
        """Start no more. The next master answers the remaining requests."""
        self._closed = True
        if self._host.alive:
            self._host.wake()

    def join(self, seconds: float) -> bool:
        """Wait for the resync under way. False: it still runs."""
        return self._host.join(seconds)

    # --- the actor ---

    def receive(self, message: object) -> None:
        assert isinstance(message, tuple)
        fresh: list[ResyncRequest] = [request for request in message if request.id not in self._known]
        self._queue.extend(fresh)
        self._known |= {request.id for request in fresh}

    def step(self) -> float | None:
        """Do the next request. This takes long."""
        if self._closed:
            return None
        if not self._queue:
            return WHEN_TOLD
        request = self._queue.popleft()
        try:
            self._do(request)
        except NotMasterError as error:
            self._master.not_master(error)
        except (StoreError, StaleStateError) as error:
            logger.warning("a resync could not be answered", request=request.id, error=str(error))
            self._known.discard(request.id)  # read again if its caller still waits
        return AT_ONCE

    def failed(self, error: Exception) -> float | None:
        logger.error("a resync could not be answered", exc_info=error)
        return AT_ONCE

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
