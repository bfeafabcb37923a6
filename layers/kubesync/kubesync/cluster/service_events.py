"""Shows new reasons of one cluster's Services as Kubernetes Events, for ``kubectl describe service``. Opt-in.

It needs the right to create events. A thread of its own writes them, so nothing waits.

what happens                            then
------------                            ----
a reason is new on a key                it is queued; if the queue is full, it is dropped and counted
the same one again in this session      dropped: the Event exists
more reasons than the rate allows       they wait
forbidden (401, 403)                    logged once; this session writes no more Events
any other error                         that Event is dropped and counted; the next one is tried
the session ends                        the queue is dropped: status and audit show the reasons
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final

from kubesync.actors.scheduler import Scheduler, Thread
from kubesync.aws.route53.rate import TokenBucket
from kubesync.domain.dns.records import Problem
from kubesync.domain.errors import DeniedError, ListenerError
from kubesync.domain.report import EventsReport
from kubesync.domain.sources.registry import main_part
from kubesync.domain.state import KeyState
from kubesync.kubernetes.service_events import ServiceEvent, post_event
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.transport.connections import StoppedError
from kubesync.log import logger

# Like client-go's event recorder, but over all Services: 25 at once, then one in this many seconds.
BURST: Final = 25
PER_SECOND: Final = 1.0
QUEUED: Final = 200  # Events that wait, at most
REMEMBERED: Final = 5_000  # Events that are not written again, at most
_END_SECONDS: Final = 2.0
_LONGEST_SLEEP_SECONDS: Final = 3600.0


class ServiceEvents:
    """Writes the Events of one cluster in its own thread. Any thread may call ``send``; ``stop`` ends the thread.

    ``connect``: makes the connection, in that thread, when the first Event is due.
    """

    def __init__(self, cluster: str, connect: Callable[[], ApiClient], scheduler: Scheduler) -> None:
        self.report = EventsReport()
        self._cluster = cluster
        self._connect = connect
        self._scheduler = scheduler
        self._bucket = TokenBucket(PER_SECOND, BURST, scheduler)
        self._queue: deque[ServiceEvent] = deque()
        # Queued before, the oldest first; the last REMEMBERED.
        self._seen: OrderedDict[ServiceEvent, None] = OrderedDict()
        self._lock = scheduler.lock()
        self._wakeup = scheduler.wakeup()
        self._stopping = scheduler.event()  # set by ``close``
        self._api: ApiClient | None = None
        self._thread: Thread | None = None
        self._end_by = 0.0  # until when (monotonic) ``stop`` waits; set by ``close``

    def send(self, state: KeyState, fresh: Iterable[Problem]) -> None:
        """Queue an Event for each of these reasons that this session has not shown yet. Returns at once.

        Does nothing if the key's object is gone, or the cluster does not allow Events.
        """
        part = main_part(state)
        if part is None or part.deleted:
            return
        with self._lock:
            if self._stopping.is_set() or self.report.refused:
                return
            for problem in sorted(fresh):
                event = ServiceEvent(state.key, part.uid, part.resource_version, problem)
                if event in self._seen:
                    continue
                self._seen[event] = None
                if len(self._seen) > REMEMBERED:
                    self._seen.popitem(last=False)
                if len(self._queue) >= QUEUED:
                    self.report.dropped += 1
                    continue
                self._queue.append(event)
                self._wakeup.set()
            if self._queue and self._thread is None:
                self._thread = self._scheduler.thread(f"{self._cluster}/events", self._work)
                self._thread.start()

    def close(self) -> None:
        """Write no more, and cut off the current write. Returns at once."""
        with self._lock:
            if self._stopping.is_set():
                return
            self._stopping.set()
            self._end_by = self._scheduler.monotonic() + _END_SECONDS
            self.report.dropped += len(self._queue)
            self._queue.clear()
            api = self._api
        self._wakeup.set()
        if api is not None:
            api.shutdown()

    def stop(self) -> None:
        """End within two seconds of ``close``, whatever blocks. If several are closed first, they share the two seconds."""
        self.close()
        if self._thread is not None:
            self._thread.join(max(0.0, self._end_by - self._scheduler.monotonic()))

    def _work(self) -> None:
        """Write queued Events until ``close``. Runs in its own thread."""
        try:
            while (event := self._next()) is not None:
                self._write(event)
        except Exception as error:  # Events must never disturb the session
            if not self._stopping.is_set():
                logger.exception("events are no longer written", cluster=self._cluster)
                self._give_up(f"{type(error).__name__}: {error}")
        finally:
            if self._api is not None:
                self._api.close()

    def _next(self) -> ServiceEvent | None:
        """Wait for the next Event, and until the rate allows it. None: ``close`` was called."""
        while not self._stopping.is_set():
            if not self._queue:
                self._wakeup.wait(_LONGEST_SLEEP_SECONDS)
            # ``take`` says for how many seconds the rate makes it wait.
            elif not self._stopping.wait(self._bucket.take()):
                with self._lock:
                    if self._queue:  # else ``close`` has dropped it
                        return self._queue.popleft()
        return None

    def _write(self, event: ServiceEvent) -> None:
        """Write one Event, and count what became of it. If the cluster denies it, give up all further Events."""
        written = False
        try:
            if self._api is None:
                api = self._connect()
                with self._lock:
                    self._api = api
            post_event(self._api, event, self._scheduler.epoch_seconds())
            written = True
        except StoppedError:
            pass
        except DeniedError as error:
            logger.warning("the cluster does not allow writing events", cluster=self._cluster, reason=error.message)
            self._give_up(error.message)
        except ListenerError as error:
            logger.info("an event could not be written", cluster=self._cluster, reason=error.message)
        finally:
            with self._lock:
                self.report.written += written
                self.report.dropped += not written

    def _give_up(self, reason: str) -> None:
        """Drop the queue, and let ``send`` accept nothing more in this session."""
        with self._lock:
            self.report.refused = reason
            self.report.dropped += len(self._queue)
            self._queue.clear()
