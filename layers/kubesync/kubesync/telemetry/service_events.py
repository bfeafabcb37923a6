"""Shows new reasons of one cluster's Services as Kubernetes Events, from a thread of its own: opt-in, and never in the way.

what happens                            then
------------                            ----
a reason is new on a key                it is queued; where the queue is full, it is dropped and counted
the same one again in this session      dropped: the Event is there
more than the rate allows               it waits its turn
not allowed (401, 403)                  said once; nothing more is written in this session
any other error                         that one is dropped and counted; the next one is tried
the session ends                        what is queued is dropped: status and audit have it
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.scheduler import Scheduler, Thread
from kubesync.aws.route53.rate import TokenBucket
from kubesync.domain.dns.records import Problem
from kubesync.domain.errors import DeniedError, ListenerError
from kubesync.domain.objects import Resource
from kubesync.domain.report import NotesReport
from kubesync.domain.state import KeyState, PartId
from kubesync.kubernetes.service_events import EventPoster, ServiceNote
from kubesync.kubernetes.transport.connections import StoppedError

logger = Logger(service="kubesync", child=True)

# As client-go's event reconciler has it, of all Services together: 25 at once, then one in so many seconds.
BURST: Final = 25
PER_SECOND: Final = 1.0
QUEUED: Final = 200
REMEMBERED: Final = 5_000
_END_SECONDS: Final = 2.0


class ServiceNotes:
    """Takes states from any thread; ``stop`` ends it.

    Args:
        poster: made in the thread, when there is something to write for the first time; raises ListenerError.
    """

    def __init__(self, cluster: str, poster: Callable[[], EventPoster], scheduler: Scheduler) -> None:
        self.report = NotesReport()
        self._cluster = cluster
        self._make = poster
        self._scheduler = scheduler
        self._bucket = TokenBucket(PER_SECOND, BURST, scheduler)
        self._queue: deque[ServiceNote] = deque()
        self._seen: OrderedDict[ServiceNote, None] = OrderedDict()
        self._changed = scheduler.condition()
        self._stopping = False
        self._poster: EventPoster | None = None
        self._thread: Thread | None = None
        self._end_by = 0.0

    def send(self, state: KeyState, fresh: Iterable[Problem]) -> None:
        """Reasons that are new on a key. Returns at once."""
        part = state.parts.get(PartId(Resource.SERVICES, state.key.name))
        if part is None or part.deleted:
            return
        with self._changed:
            if self._stopping or self.report.refused:
                return
            for problem in sorted(fresh):
                # Of the same reason on the same object, whichever version it was seen with.
                told = ServiceNote(state.key, part.uid, 0, problem)
                if told in self._seen:
                    continue
                self._seen[told] = None
                if len(self._seen) > REMEMBERED:
                    self._seen.popitem(last=False)
                if len(self._queue) >= QUEUED:
                    self.report.dropped += 1
                    continue
                self._queue.append(ServiceNote(state.key, part.uid, part.resource_version, problem))
            if self._queue and self._thread is None:
                self._thread = self._scheduler.thread(f"{self._cluster}/events", self._work)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """Write nothing more, and cut off what is being written. Returns at once."""
        with self._changed:
            if self._stopping:
                return
            self._stopping = True
            self._end_by = self._scheduler.monotonic() + _END_SECONDS
            self.report.dropped += len(self._queue)
            self._queue.clear()
            poster = self._poster
            self._changed.notify_all()
        if poster is not None:
            poster.shutdown()

    def stop(self) -> None:
        """End within two seconds of ``close``, whatever hangs: those of several clusters share them where all are closed first."""
        self.close()
        if self._thread is not None:
            self._thread.join(max(0.0, self._end_by - self._scheduler.monotonic()))

    def _work(self) -> None:
        try:
            while (note := self._next()) is not None:
                self._write(note)
        except Exception as error:  # nothing of this may disturb the session
            if not self._stopping:
                logger.exception("events are not written any more", cluster=self._cluster)
                self._give_up(f"{type(error).__name__}: {error}")
        finally:
            if self._poster is not None:
                self._poster.close()

    def _next(self) -> ServiceNote | None:
        """The next note, when it is its turn; None: the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or bool(self._queue))
            if self._stopping or not self._queue:
                return None
            note = self._queue.popleft()
            if self._changed.wait_for(lambda: self._stopping, self._bucket.take()):
                self.report.dropped += 1
                return None
            return note

    def _write(self, note: ServiceNote) -> None:
        try:
            if self._poster is None:
                poster = self._make()
                with self._changed:
                    self._poster = poster
            self._poster.post(note, self._scheduler.epoch())
        except StoppedError:
            with self._changed:
                self.report.dropped += 1
        except DeniedError as error:
            logger.warning("events may not be written", cluster=self._cluster, reason=error.message)
            self._give_up(error.message)
        except ListenerError as error:
            with self._changed:
                self.report.dropped += 1
            logger.info("an event could not be written", cluster=self._cluster, reason=error.message)
        else:
            with self._changed:
                self.report.written += 1

    def _give_up(self, reason: str) -> None:
        with self._changed:
            self.report.refused = reason
            self.report.dropped += 1 + len(self._queue)
            self._queue.clear()
