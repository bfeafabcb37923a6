"""One run of a cluster's listeners: they fill the merge window, and the cluster's actor records window by window."""

from collections.abc import Collection, Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Host, Steps
from kubesync.cluster.keys.key_writes import Recorded
from kubesync.cluster.keys.observations import Following
from kubesync.cluster.keys.reconciler import CHECKPOINT_SECONDS
from kubesync.cluster.listener import Listener, Listeners, ListRound, SharedWindow
from kubesync.cluster.listener_reports import CredentialDates, ListenerErrors
from kubesync.cluster.served_keys import ServedKeys
from kubesync.cluster.service_events import ServiceEvents
from kubesync.domain.dns.records import Problem
from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.report import ClusterReport
from kubesync.domain.state import KeyState
from kubesync.domain.window import Mode, Turns, WindowContent
from kubesync.log import logger
from kubesync.messages import ListingFailedError, Relisted, StopListening

# A long window publishes what it has recorded this often, and only if several namespaces wait: keys that are published together share batches.
_PUBLISHED_EVERY_SECONDS: Final = 2.0


class LongWindow(Following):
    """A window that is being recorded, which may take minutes. The reconciler calls its methods between two sections of keys.

    Meanwhile it publishes what is recorded, lets the next windows join, and runs other tasks.

    Args:
        shared: the merge window: closed here, and later windows are taken from it.
        served: the keys whose window it is.

    ``content``: the window, with the windows that join. If a try fails, the next try records all of it. ``requested``: the round that
    requested its lists, decided once for all tries: before the next try another may be requested, or this one withdrawn. ``changed``: keys
    that were written.
    """

    def __init__(self, shared: SharedWindow, served: ServedKeys) -> None:
        super().__init__()
        self.content, self.requested = shared.close()
        self._shared = shared
        self._served = served
        self._clock = served.ports.scheduler
        self.changed: set[ObjectKey] = set()
        self._unpublished = Recorded()  # what is recorded, and not yet queued for publishing
        self._published_at = 0.0

    def begin(self) -> None:
        """Begin a try. Forget the order in which the try before recorded keys."""
        self.turns, self._published_at = Turns(), self._clock.monotonic()

    @property
    def oldest_event(self) -> tuple[float, str] | None:
        """Since when (monotonic) the oldest event waits, and its namespace (empty: not known). None: the window has no events."""
        opened_at = self.content.opened_at
        return self.turns.oldest() or (None if opened_at is None else (opened_at, ""))

    def take_next_window(self) -> WindowContent | None:
        """Close the next window, if it is due and holds no list, and let it join this one. Returns only what joined; None: nothing did.

        Nothing joins while a command waits: it begins after this window, and could otherwise wait for ever. Nor does anything join a window whose
        events take more than ``window_bytes`` of memory.
        """
        full = self.content.size > self._served.ports.window_bytes
        later = None if self._served.commands or full else self._shared.close_events()
        if later is not None:
            self.content = self.content.followed_by(later)
        return later

    def run_other_tasks(self) -> Steps[None]:
        """Run the tasks that otherwise take turns with windows (``Serving.tasks``), if they are due: this window may take minutes."""
        for task in (self._served.promoted, self._served.readers):
            if task.due_at() <= self._clock.monotonic():
                yield from task.steps()

    def written(self, part: Recorded) -> None:
        """Note what was recorded. Publish it now only if keys of several namespaces or windows wait for each other (``Turns.mixed``), and not
        too often: otherwise it is published at the end of the window, because keys that are published together share batches.
        """
        self.changed |= part.written
        self._unpublished.add(part)
        if self._clock.monotonic() >= self._published_at + _PUBLISHED_EVERY_SECONDS and self.turns.mixed:
            self.publish()

    def publish(self) -> None:
        """Queue for publishing what is recorded and not published yet. Called during the window (``written``), and at its end."""
        recorded, self._unpublished, self._published_at = self._unpublished, Recorded(), self._clock.monotonic()
        since = self.turns.since({*recorded.written, *recorded.opened})  # when the first event of these keys was read
        self._served.follow_up(recorded, since, of_list=bool(self.content.snapshots))


GIVE_UP_SECONDS: Final = 15.0
"""A requested list is given up if its listeners have failed for so long. They retry all that time."""
LIST_SECONDS: Final = 300.0
"""A requested list is given up if it takes longer. The session may end earlier."""
_POLL_SECONDS: Final = 0.05
_SWEEP_MARGIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of a run of listeners.

    ``report``: a copy, which nobody changes. ``listeners``: the present listeners, or the last ones. ``past``: listeners that a relist has cut
    off. Any thread may stop a listener and read its report. ``unrecorded_since`` (monotonic seconds): when the oldest unrecorded event was
    read; None: all events are recorded. ``turn``: see ``LongWindow.oldest_event``, of the window that is being recorded; None: there is none.
    """

    report: ClusterReport
    listeners: tuple[Listener, ...]
    past: tuple[Listener, ...]
    unrecorded_since: float | None = None
    turn: tuple[float, str] | None = None


class ListeningRun:
    """Records the windows of one run of listeners. This is a task of the cluster's actor, which calls every method.

        start     the run begins, or a relist begins: new listeners read
        stop      the session ends, or the configuration changes: the listeners are cut at once
        finish    after ``stop``: what they have read is recorded
        end       after ``finish``, or instead of it: how they ended is persisted
        cut       after a fault of ours, or to give back room for lists: what is not recorded is dropped. ``start`` of a new run may follow

    ``failed``: nothing of the run is recorded any more, so no checkpoint may move past what it has read.

    Args:
        number: of the run; its listeners name it in their messages.
        served: the keys of the cluster.
        errors: writes the errors of listeners.
        host: the host of the actor, to which listeners send messages.
    """

    def __init__(
        self, number: int, served: ServedKeys, errors: ListenerErrors, credentials: CredentialDates, host: Host[Any]
    ) -> None:
        self.listeners = Listeners(number, served.states, served.ports, errors, host)
        self.failed = False
        self.report = ClusterReport(served.states.config.name)
        self._served = served
        self._credentials = credentials
        self._clock = served.ports.scheduler
        self._reservation = served.ports.room.for_cluster()
        self._recording: LongWindow | None = None  # the window that is closed, and not recorded yet
        self._idle_at = 0.0  # when (monotonic) a window is recorded although nothing was read, to write checkpoints
        self._swept_at = 0.0
        # What ``end`` found as ``_unrecorded_since``: the next session must read these events again.
        self._left_since: float | None = None
        self._stopping: StopListening | None = None  # once ``stop`` was called
        self._events: ServiceEvents | None = None  # None: no Events on Services
        served.states.on_problems = self._report_problems
        if (config := served.states.config).write_events:
            self._events = ServiceEvents(config.name, partial(served.ports.connector.client, config), self._clock)
            self.report.events_on_services = self._events.report

    def start(self, deadline_monotonic: float, made_for: ListRound | None = None) -> None:
        """Start listeners until this time. ``made_for``: see ``Listeners.start``."""
        self._idle_at = self._clock.monotonic() + CHECKPOINT_SECONDS
        if problem := self.listeners.start(deadline_monotonic, self._reservation, made_for):
            self.report.problem = problem

    def _report_problems(self, state: KeyState, fresh: Collection[Problem]) -> None:
        """Count new problems of a key, and show them as Events on its object."""
        reasons = self.report.reasons
        for problem in fresh:
            reasons[problem.code] = reasons.get(problem.code, 0) + 1
        if self._events is not None:
            self._events.send(state, fresh)

    def figures(self) -> RunFigures:
        turn = None if self._recording is None else self._recording.oldest_event
        self.report.credential_days = self._credentials.days_left()
        return RunFigures(deepcopy(self.report), *self.listeners.all, self._unrecorded_since, turn)

    @property
    def works(self) -> bool:
        """Whether the run still listens: it has not failed and is not being stopped."""
        return self._stopping is None and not self.failed

    @property
    def blocks_others(self) -> bool:
        """Whether the unrecorded lists of this run hold room (memory) that other clusters wait for."""
        return self._stopping is None and self._reservation.blocks_others

    @property
    def quiet(self) -> bool:
        """Whether everything that was read before now is recorded."""
        return self._recording is None and self.listeners.window.closes_at() is None

    @property
    def _unrecorded_since(self) -> float | None:
        """Since when (monotonic) the oldest event waits to be recorded. None: none waits. For ``OldestOpenSeconds`` and its alarm.

        being recorded          since
        --------------          -----
        nothing                 the first event of the merge window; after ``end``: what ``end`` found
        a window of events      its oldest event
        a window with a list    the same, or the cluster's last write if that is later: a long list that advances must raise no alarm
        """
        if self._recording is None:
            return self.listeners.window.opened_at() if self._left_since is None else self._left_since
        if (oldest := self._recording.oldest_event) is None:
            return None
        # ``oldest[0]``: since when it waits.
        return max(oldest[0], self._served.committer.written_at if self._recording.content.snapshots else 0.0)

    # --- recording ---

    def due_at(self) -> float:
        """When the merge window closes. If nothing was read: when checkpoints are due (``_idle_at``)."""
        if self.failed:
            return ON_MESSAGE
        if self._recording is not None:
            return AT_ONCE
        closes_at = self.listeners.window.closes_at()
        return self._idle_at if closes_at is None else closes_at

    def steps(self, *, flush: bool = False) -> Steps[None]:
        """Close the merge window and record it. If a try fails, the next one records the same content: nothing later goes before it (I1).

        ``flush``: the run ends: write all checkpoints, and sweep all tombstones that time allows.
        """
        if self._recording is None:
            self._recording = LongWindow(self.listeners.window, self._served)
        yield 0.0  # receive the messages first that listeners have sent before: they say which views are complete
        window, began = self._recording, self._clock.monotonic()
        window.begin()
        mode = Mode() if window.requested is None else window.requested.mode
        recorded = yield from self._served.reconciler.record(window.content, mode, flush=flush, following=window)
        # It is durable. What follows is not done again if it fails.
        content, self._recording = window.content, None
        window.publish()
        self._reservation.release_recorded(sum(snapshot.size for snapshot in content.snapshots.values()))
        self._idle_at = self._clock.monotonic() + CHECKPOINT_SECONDS
        if not content.empty:
            self._count_window(content, len(window.changed), self._clock.monotonic() - began)
        if content.snapshots:
            self._note_lists(content.snapshots, recorded, window.requested)
        self._credentials.update(self._served.states.config)
        yield from self._sweep_some(flush=flush, quiet=content.empty)

    def _note_lists(self, resources: Iterable[Resource], recorded: Recorded, requested: ListRound | None) -> None:
        """Note that lists are recorded, and which deletions they hold back. Answers the round that requested the lists."""
        self.listeners.recorded(resources)
        self.report.held = {resource.value: reason for resource, reason in recorded.held.items()}
        self.report.holding |= {resource.value: resource.value in self.report.held for resource in resources}
        if requested is not None:
            requested.recorded(resources, recorded.missed)
            self.answer(requested)

    def answer(self, requested: ListRound) -> None:
        """Answer the round if the lists of all resources that the cluster serves are recorded. Otherwise do nothing. No list comes of a resource that
        is absent in the cluster.
        """
        if requested.unlisted <= self._served.states.absent:
            changed = self.report.changed_keys - requested.changed_before
            requested.answer(Relisted(changed, dict(self.report.held), len(requested.missed)))

    def _count_window(self, content: WindowContent, changed: int, seconds: float) -> None:
        """Count a recorded window in the report, and show it as progress."""
        self.report.windows += 1
        self.report.events += content.received
        self.report.merged += content.merged
        self.report.changed_keys += changed
        self.report.recording_seconds += seconds
        window: dict[str, object] = {"cluster": self.report.cluster, "changed": changed}
        window |= {"events": content.received, "merged": content.merged, "listed": content.listed}
        self._served.ports.progress("window", window)
        if changed or content.snapshots:
            logger.debug("window recorded", extra={**window, "seconds": round(seconds, 3)})

    def _sweep_some(self, *, flush: bool, quiet: bool) -> Steps[None]:
        """Delete tombstones in quiet moments, at the end (``flush``), and every CHECKPOINT_SECONDS, because a busy cluster is never quiet.

        A tombstone is what is left of a deleted object, until no late event can bring the object back. One round of it, except at the end:
        then as many as fit before ``drain_until``, less a margin.
        """
        now, states = self._clock.monotonic(), self._served.states
        if not (flush or quiet or now - self._swept_at >= CHECKPOINT_SECONDS):
            return
        self._swept_at = now
        while left := len(states.tombstoned):
            yield from self._served.reconciler.sweep()
            # 0.0 has passed already: then there is one round.
            until = self._stopping.drain_until - _SWEEP_MARGIN_SECONDS if flush and self._stopping is not None else 0.0
            if self._clock.monotonic() >= until or len(states.tombstoned) >= left:
                return

    def why_unlisted(self, since: float) -> ListingFailedError | None:
        """Return why requested lists do not come. None: they may still come.

            what holds                                                       the answer
            ----------                                                       ----------
            a listener gets errors that a retry does not mend                these errors
            GIVE_UP_SECONDS have passed, a listener only gets errors         these errors
            the run has failed                                               its problem, or the last errors of listeners
            the lists take LIST_SECONDS, time of waiting for room aside      its problem, or the last errors of listeners
            otherwise                                                        None

        Args:
            since: when (monotonic) the lists were requested. Seconds count from the moment when they got room, if that is later.
        """
        lasted = self._clock.monotonic() - max(since, self._reservation.given_at)
        errors, known = self.listeners.refused(failing=lasted >= GIVE_UP_SECONDS), self.listeners.last_errors
        if not errors and not self.failed and (self._reservation.waiting or lasted < LIST_SECONDS):
            return None
        said = (f"{of}: {error.code.key}: {error.message}" for of, error in sorted(known.items()))
        problem = "" if errors else self.report.problem or "; ".join(said) or "no answer"
        return ListingFailedError(errors or known, lasted, problem)

    # --- the end ---

    def stop(self, stopping: StopListening) -> None:
        """Cut the listeners at once. ``finish`` records what they have read."""
        self._stopping = stopping
        self.failed |= stopping.abandon
        if self._events is not None:
            self._events.close()
        self.listeners.stop(stopping.code)

    def cut(self, code: ErrorCode, *, restart: bool) -> None:
        """End the listeners after a fault of ours, or because lists that are not recorded hold room. Drops what is not recorded.

        ``restart``: another run follows. Otherwise this run counts as failed: without that the cluster would look quiet.
        """
        self.failed |= not restart
        self.listeners.forsake(code)
        self._recording = None
        self._reservation.end()

    def finish(self) -> Steps[None]:
        """Wait for the listeners, and record what they have read.

        A listener that takes longer does no harm: its later events are never recorded, and the next session reads them again.
        """
        assert self._stopping is not None
        while self._clock.monotonic() < self._stopping.listen_until and self.listeners.alive:
            yield _POLL_SECONDS
        if self._recording is not None and not self.failed:  # the window that was being recorded
            yield from self.steps()
        if not self.failed:  # what was read since then
            yield from self.steps(flush=True)
            yield from self._served.committer.write_counts(self._served.states.counts.rest)

    def end(self) -> None:
        """Persist how the listeners ended, give back room for lists, and write no more Events. What is not recorded now is dropped: the next run
        reads it again."""
        assert self._stopping is not None
        self._left_since = self._unrecorded_since
        self._recording = None
        self._reservation.end()
        self.listeners.ended(self._stopping.code)
        if self._events is not None:
            self._events.stop()
