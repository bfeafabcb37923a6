"""One cluster of a session: its two listeners, its merge window, and the worker that records windows one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.backoff import Backoff
from kubesync.actors.scheduler import Scheduler
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.cluster.keys.key_states import Ledger, SupersededError
from kubesync.cluster.keys.reconciler import IDLE_CHECKPOINT_SECONDS, Mode, Reconciler, Recorded
from kubesync.cluster.listener import Listener, ListenerEvents, ListRound, SharedWindow, round_of
from kubesync.cluster.ports import Connector, EventWriter, RunnerEvents
from kubesync.domain.errors import ErrorCode, ListenerError, NotMasterError, StoreError
from kubesync.domain.objects import Resource, ServiceKey
from kubesync.domain.report import ClusterReport
from kubesync.domain.state import KeyState
from kubesync.domain.window import WindowContent

logger = Logger(service="kubesync", child=True)

_CUT_SECONDS: Final = 10.0
_REST_SECONDS: Final = 60.0
_SWEEP_MARGIN_SECONDS: Final = 5.0
_BACKOFF: Final = Backoff(initial=0.5, cap=10.0)


class ClusterRunner:
    """Runs one cluster. Call ``start``, then ``stop``, then ``join``."""

    def __init__(
        self,
        ledger: Ledger,
        reconciler: Reconciler,
        connector: Connector,
        events: RunnerEvents,
        scheduler: Scheduler,
        window_seconds: float,
        event_writer: EventWriter | None = None,
    ) -> None:
        self.ledger = ledger
        self.reconciler = reconciler
        self.report = ClusterReport(ledger.config.name)
        self.window = SharedWindow(window_seconds, scheduler)
        self._connector = connector
        self._events = events
        self._scheduler = scheduler
        self._listeners: list[Listener] = []
        self._promoted: set[ServiceKey] = set()
        # Promoted before the first list. They cannot be planned yet, and their durable notes stay until then.
        self._early_promoted: set[ServiceKey] = set()
        self._round: ListRound | None = None
        self._unseen: set[Resource] = set()  # their lists are not recorded yet
        # Each listener's thread adds and removes only its own resource.
        self._in_trouble: set[Resource] = set()
        # Guards `_unseen`. Not the ledger's lock: the session's own thread starts runners and must not wait for a writer.
        self._seeing = scheduler.lock()
        self._past: list[Listener] = []  # a relist has cut them off
        self._unreachable: dict[str, ListenerError] = {}
        self._life = scheduler.lock()  # guards `_listeners` and `_ended`: a stopped runner starts no listener
        self._ended = False
        self._stopping = False
        self._recording = False
        self._swept_at = 0.0
        self._deadline = 0.0
        self._drain_until = 0.0
        self._failed = False
        self._thread = scheduler.thread(f"{ledger.config.name}/worker", self._work)
        ledger.reasons = self.report.reasons
        self._event_writer = event_writer
        if event_writer is not None:
            self.report.events_on_services = event_writer.report
            ledger.on_problems = event_writer.send

    # --- life ---

    def start(self, deadline_monotonic: float, relist: Mode | None = None) -> None:
        """Start the worker and the listeners. A listener resumes from its checkpoint, or lists if no checkpoint is valid.

        Args:
            relist: list in any case, and record the lists in this mode (a full resync).
        """
        self._deadline = deadline_monotonic
        self._thread.start()
        self._begin(relist)

    def _begin(self, relist: Mode | None) -> None:
        made_for = None if relist is None else ListRound(relist, set(self.ledger.sources), self._scheduler.event())
        self._round = made_for or self._round
        # Decide all resume points before any listener starts: a window that the first one fills may withdraw the checkpoint
        # of the next, whose view is not complete yet (I5).
        made = [self._listener(resource, made_for) for resource in self.ledger.sources]
        with self._life:
            if self._ended:
                return
            self._past += self._listeners
            self._listeners = [listener for listener, _ in filter(None, made)]
            for listener, resume in filter(None, made):
                listener.start(resume, self._deadline)

    def relist(self, mode: Mode) -> None:
        """Cut the watches and list again. Events read before are applied first, in order.

        Any thread may call it. A stopped runner does not list again.
        """
        for listener in self._listeners:
            listener.cut()
        for listener in self._listeners:
            listener.join(_CUT_SECONDS)
        # A list that is pending or being recorded does not belong to this request: wait until it is recorded.
        with self.window.changed:
            self.window.changed.wait_for(self._at_rest, timeout=_REST_SECONDS)
        self._begin(mode)

    def _at_rest(self) -> bool:
        at_rest = self.window.closes_at() is None and not self._recording
        return self._failed or self._stopping or self._ended or at_rest

    def withdraw_relist(self) -> None:
        """Record lists that are still to come in the normal mode: their caller no longer waits."""
        if self._round is not None:
            self._round.withdrawn = True

    def wait_relisted(self, seconds: float) -> bool:
        """Whether the requested lists are recorded within this time."""
        return self._round is not None and self._round.done.wait(seconds)

    def _listener(self, resource: Resource, made_for: ListRound | None) -> tuple[Listener, int | None] | None:
        """A listener and the version that it resumes from (None: it lists first). None: the cluster is unreachable."""
        try:
            reflector = self._connector.reflector(self.ledger.config, resource)
        except ListenerError as error:
            self._events.error(self.ledger.config.name, resource, error)
            self.report.problem = error.message
            self._unreachable[resource.value] = error
            return None
        self._unreachable.pop(resource.value, None)
        events = ListenerEvents(self._resumed, self._stale, self._error)
        listener = Listener(
            self.ledger.config.name, resource, reflector, self.window, events, self._scheduler, made_for
        )
        view = self.ledger.listeners[resource]
        valid = view.checkpoint is not None and view.checkpoint.basis == self.ledger.basis
        resumes = view.checkpoint is not None and valid and made_for is None
        resume = view.checkpoint.resource_version if view.checkpoint is not None and resumes else None
        if resume is None:
            # Its view is incomplete until its watch is accepted: a refused list or watch leaves it unknown (I5).
            with self._seeing:
                self._unseen.add(resource)
        return listener, resume

    def stop(self, code: ErrorCode) -> None:
        """Cut the listeners at once. Events that they have read are still applied."""
        with self._life:
            self._ended = True
            for listener in self._listeners:
                listener.stop(code)
        with self.window.changed:
            self.window.changed.notify_all()

    def join(self, deadline_monotonic: float, *, abandon: bool = False) -> bool:
        """Wait for listeners, record the last window and checkpoints. True: everything ended in time.

        Args:
            abandon: write nothing more, because another session holds the lease.
        """
        if not self._stopping:
            self.wind_up(deadline_monotonic, deadline_monotonic, abandon=abandon)
        self._thread.join(max(0.0, deadline_monotonic - self._scheduler.monotonic()) if not abandon else 5.0)
        if self._event_writer is not None:
            self.ledger.on_problems = None
            self._event_writer.stop()
        return not self._thread.is_alive()

    def gone(self, deadline_monotonic: float) -> bool:
        """Whether the worker of a stopped runner ends by the deadline."""
        if self._thread.is_alive():
            self._thread.join(max(0.0, deadline_monotonic - self._scheduler.monotonic()))
        return not self._thread.is_alive()

    def wind_up(self, listen_until: float, drain_until: float, *, abandon: bool) -> None:
        """Wait for listeners until ``listen_until`` at most. Then make the worker record the rest and end.

        A listener that hangs longer does no harm: its events land in a window that is never recorded.
        """
        if self._event_writer is not None:
            self._event_writer.close()
        for listener in self._listeners:
            listener.join(max(0.0, listen_until - self._scheduler.monotonic()))
        with self.window.changed:
            self._stopping = True
            self._drain_until = drain_until
            self._failed = self._failed or abandon
            self.window.changed.notify_all()

    @property
    def listeners(self) -> list[Listener]:
        """The running listeners, or the last ones."""
        return list(self._listeners)

    @property
    def all_listeners(self) -> list[Listener]:
        """All listeners, including those that a resync cut."""
        return [*self._past, *self._listeners]

    @property
    def last_errors(self) -> dict[str, ListenerError]:
        """The newest error of each listener, for the caller that waits for its list."""
        seen = {listener.resource.value: listener.last_error for listener in self._listeners if listener.last_error}
        return self._unreachable | seen

    @property
    def refused(self) -> dict[str, ListenerError]:
        """Errors of listeners whose list will never come: a person must act first."""
        seen = {listener.resource.value: listener.refused for listener in self._listeners if listener.refused}
        return self._unreachable | seen

    @property
    def failing(self) -> dict[str, ListenerError]:
        """Errors of listeners that have not listed yet and have failed several times in a row."""
        return {
            listener.resource.value: listener.failing
            for listener in self._listeners
            if listener.failing and not listener.report.lists
        }

    def replan(self, keys: Iterable[ServiceKey]) -> None:
        """Plan promoted keys again soon."""
        with self.window.changed:
            self._promoted |= set(keys)
            self.window.changed.notify_all()

    # --- callbacks, on the listeners' threads ---

    def _resumed(self, resource: Resource) -> None:
        if resource in self._in_trouble:
            self._in_trouble.discard(resource)
            self._events.progress("listening", {"cluster": self.ledger.config.name, "resource": resource.value})
        # A watch that follows a list proves nothing until that list is recorded: unknown is not empty (I5).
        with self.ledger.lock:
            view = self.ledger.listeners[resource]
            view.works_since = view.works_since or self._scheduler.epoch()
            with self._seeing:
                if resource in self._unseen:
                    return
            view.whole = True
            unplanned = set(view.unsure)
        if unplanned:
            self.replan(unplanned)

    def _stale(self, resource: Resource) -> None:
        with self.ledger.lock:
            with self._seeing:
                self._unseen.add(resource)
            view = self.ledger.listeners[resource]
            view.whole, view.broken = False, True

    def _error(self, resource: Resource, error: ListenerError) -> None:
        self.ledger.listeners[resource].works_since = 0.0
        self._in_trouble.add(resource)
        self._events.error(self.ledger.config.name, resource, error)

    # --- the worker ---

    def _work(self) -> None:
        try:
            while self._turn():
                pass
        except NotMasterError as error:
            self._failed = True
            self._events.not_master(error)
        except SupersededError as error:
            # Nothing is lost: no checkpoint has moved past these events, and the new configuration lists everything.
            logger.info("events are left to the new configuration", reason=str(error))
        except Exception as error:  # a bug of ours must not look like a quiet cluster
            self._failed = True
            self.report.problem = f"{type(error).__name__}: {error}"
            logger.exception("worker failed", cluster=self.ledger.config.name)
            self.stop(ErrorCode.WORKER_EXITING)

    @property
    def failed(self) -> bool:
        """Whether some event could not be made durable. Then the session must not end as clean."""
        return self._failed

    def _turn(self) -> bool:
        """Wait for work and do it. False: the worker ends."""
        with self.window.changed:
            while not self._stopping and not self._promoted:
                closes_at = self.window.closes_at()
                wait = IDLE_CHECKPOINT_SECONDS if closes_at is None else closes_at - self._scheduler.monotonic()
                if wait <= 0 or (not self.window.changed.wait(wait) and closes_at is None):
                    break
            stopping, promoted = self._stopping, self._promoted
            self._promoted = set()
            self._recording = True
        try:
            if self._failed:
                return False
            if promoted:
                if not self.ledger.listeners[Resource.SERVICES].whole:
                    self._early_promoted |= promoted
                self._publish(self._persist(lambda: self.reconciler.replan(promoted, "a name was let go")), None)
            # A window that only holds a bookmark stays open.
            if stopping or not promoted or self.window.closes_at() is not None:
                self._record(*self.window.close(), flush=stopping)
            return not stopping
        finally:
            with self.window.changed:
                self._recording = False
                self.window.changed.notify_all()

    def _record(self, content: WindowContent, rounds: Mapping[Resource, ListRound | None], *, flush: bool) -> None:
        began = self._scheduler.monotonic()
        # Decided once for all tries: meanwhile another round may be requested, or this one withdrawn.
        requested = round_of(rounds.values())
        mode = requested.mode if requested else Mode()
        recorded = self._persist(lambda: self.reconciler.record(content, mode, flush=flush))
        if recorded is None:
            return
        if not content.empty:
            self._count(content, recorded, self._scheduler.monotonic() - began)
        if content.snapshots:
            with self.ledger.lock:
                # A listener that went stale while its list was recorded lists again: it stays unseen.
                seen = {r for r in content.snapshots if not self.ledger.listeners[r].broken}
                with self._seeing:
                    self._unseen -= seen
            early, self._early_promoted = self._early_promoted, set()
            self.replan(early)
            self.report.held = {resource.value: reason for resource, reason in (recorded.held or {}).items()}
            self.report.holding |= {r.value: r.value in self.report.held for r in content.snapshots}
            if requested is not None:
                requested.recorded(content.snapshots)
        self._publish(recorded, content.opened_at)
        self._sweep_some(flush=flush, quiet=content.empty)

    def _count(self, content: WindowContent, recorded: Recorded, seconds: float) -> None:
        """Count a window that is durable."""
        self.report.windows += 1
        self.report.events += content.received
        self.report.merged += content.merged
        self.report.changed_keys += recorded.changed
        self.report.recording_seconds += seconds
        window: dict[str, object] = {"cluster": self.ledger.config.name, "changed": recorded.changed}
        window |= {"events": content.received, "merged": content.merged, "listed": content.listed}
        self._events.progress("window", window)
        if recorded.changed or content.snapshots:
            logger.info("window recorded", extra={**window, "seconds": round(seconds, 3)})

    def _sweep_some(self, *, flush: bool, quiet: bool) -> None:
        """Delete tombstones in quiet moments, at the end, and at intervals, because a busy cluster is never quiet."""
        now = self._scheduler.monotonic()
        if not (flush or quiet or now - self._swept_at >= IDLE_CHECKPOINT_SECONDS):
            return
        self._swept_at = now
        while self.ledger.tombstoned:
            left = len(self.ledger.tombstoned)
            self._persist(self.reconciler.sweep)
            at_the_end = flush and self._scheduler.monotonic() + _SWEEP_MARGIN_SECONDS < self._drain_until
            if not at_the_end or len(self.ledger.tombstoned) >= left:
                return

    def _publish(self, recorded: Recorded | None, since: float | None) -> None:
        if recorded is None:
            return
        if recorded.opened:
            # If this fails, the keys stay durably open for the next session.
            states = self._persist(lambda: self._states(recorded.opened))
            self._events.opened(states or [], since)
        if recorded.promoted:
            self._events.promoted(recorded.promoted)

    def _states(self, keys: Iterable[ServiceKey]) -> list[KeyState]:
        with self.ledger.lock:
            return list(self.ledger.states(keys).values())

    def _persist[T](self, write: Callable[[], T]) -> T | None:
        """Repeat a write until it is durable: nothing later may be recorded before it (I1). None: the session ended first."""
        failures = 0
        while not self._failed:
            try:
                return write()
            except (StoreError, StaleStateError) as error:
                self.report.problem = str(error)
                logger.warning("recording failed, trying again", cluster=self.ledger.config.name, error=str(error))
                failures += 1
                delay = _BACKOFF.delay(failures)
                if self._stopping and self._scheduler.monotonic() + delay > self._drain_until:
                    break
                self._scheduler.sleep(delay)
        self._failed = True
        return None
