"""One run of a cluster's listeners: they fill the merge window, and the cluster's actor records window by window."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Host, Steps
from kubesync.clock import Clock
from kubesync.cluster.keys.key_writes import Recorded
from kubesync.cluster.keys.observations import Following
from kubesync.cluster.keys.reconciler import CHECKPOINT_SECONDS
from kubesync.cluster.listener import Listener, Listeners, ListRound, round_of
from kubesync.cluster.listener_reports import CredentialDates, ListenerErrors
from kubesync.cluster.ports import EventWriter
from kubesync.cluster.served_keys import ServedKeys
from kubesync.cluster.tasks import Task
from kubesync.domain.dns.records import Problem
from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import Resource
from kubesync.domain.report import ClusterReport
from kubesync.domain.state import KeyState
from kubesync.domain.window import Mode, Turns, WindowContent
from kubesync.log import logger
from kubesync.messages import ListingFailedError, Relisted, StopListening

# Not after each section, and not where nobody else waits: what is published together shares batches.
_PUBLISHED_EVERY_SECONDS: Final = 2.0


class LongWindow(Following):
    """A window that is being recorded. Publishes what is recorded from time to time, lets the next windows join, and runs other tasks.

    Args:
        content: grows by what joins, so that another try records all of it.
        close_events: closes the next window, if it is due and holds no list.
        tasks: that must not wait.
        most_bytes: with more than that no other window joins.
        follow_up: publishes what is recorded, and since when (monotonic) the first event of it was read.
    """

    def __init__(
        self,
        content: WindowContent,
        close_events: Callable[[], WindowContent | None],
        tasks: Sequence[Task],
        follow_up: Callable[..., None],
        clock: Clock,
        most_bytes: int,
    ) -> None:
        super().__init__()
        self.content = content
        self._close_events = close_events
        self._tasks = tasks
        self._follow_up = follow_up
        self._clock = clock
        self._most_bytes = most_bytes
        self._unpublished = Recorded()
        self._published_at = 0.0
        self._commands_wait = False

    def begin(self) -> None:
        """Begin a try: forget the order of the last one."""
        self.turns, self._published_at = Turns(), self._clock.monotonic()

    def commands_wait(self) -> None:
        """Let no other window join, because commands wait for the end of this one."""
        self._commands_wait = True

    @property
    def oldest_event(self) -> tuple[float, str] | None:
        """Since when (monotonic) the oldest event waits, and of which namespace it is; empty: of any. None: no event is in the window."""
        opened_at = self.content.opened_at
        return self.turns.oldest() or (None if opened_at is None else (opened_at, ""))

    def window(self) -> WindowContent | None:
        full = self.content.size > self._most_bytes
        later = None if self._commands_wait or full else self._close_events()
        if later is not None:
            self.content = self.content.followed_by(later)
        return later

    def others(self) -> Steps[None]:
        for task in self._tasks:
            if task.due_at() <= self._clock.monotonic():
                yield from task.steps()

    def written(self, part: Recorded) -> None:
        self._unpublished.add(part)
        if self._clock.monotonic() >= self._published_at + _PUBLISHED_EVERY_SECONDS and self.turns.shared:
            self.publish()

    def publish(self) -> None:
        """Hand on what is recorded and not published yet."""
        recorded, self._unpublished, self._published_at = self._unpublished, Recorded(), self._clock.monotonic()
        since = self.turns.since({*recorded.changed, *recorded.opened})
        self._follow_up(recorded, since, of_list=bool(self.content.snapshots))


GIVE_UP_SECONDS: Final = 15.0
"""A requested list that fails for so long is given up. The listeners retry all that time."""
LIST_SECONDS: Final = 300.0
"""A requested list that takes longer is given up. The session may end earlier."""
_POLL_SECONDS: Final = 0.05
_SWEEP_MARGIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class RunFigures:
    """A run of listeners.

    ``report``: a copy, which nobody changes. ``listeners``: those that run, or the last ones; ``past``: those that a relist has cut off.
    Any thread may stop a listener, and read its report. ``unrecorded_since`` (monotonic seconds): since when events are read that are not
    recorded; None: there are none. ``turn``: since when (monotonic) the oldest event waits to be recorded, and its namespace; None: none does.
    """

    report: ClusterReport
    listeners: tuple[Listener, ...]
    past: tuple[Listener, ...]
    unrecorded_since: float | None = None
    turn: tuple[float, str] | None = None


class ListeningRun:
    """The windows of one run: a task of the cluster's actor, which calls every method.

    ``listeners`` and ``report``: of the run. ``failed``: nothing of it is recorded any more.

    Args:
        host: of the actor. Listeners send to it.
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
        self._recording: LongWindow | None = None  # closed, and not recorded yet
        self._requested: ListRound | None = None  # of the lists in it
        self._idle_at = 0.0
        self._swept_at = 0.0
        self._left_since: float | None = None  # unrecorded at the session's end: the next one reads it again
        self._stopping: StopListening | None = None
        self._event_writer: EventWriter | None = served.ports.event_writer(served.states.config)
        served.states.on_problems = self._report_problems
        self.report.credential_days = credentials.days_left()
        if self._event_writer is not None:
            self.report.events_on_services = self._event_writer.report

    def start(self, deadline_monotonic: float, made_for: ListRound | None = None) -> None:
        """Start listeners until this time. ``made_for``: see ``Listeners.start``."""
        self._idle_at = self._clock.monotonic() + CHECKPOINT_SECONDS
        if problem := self.listeners.start(deadline_monotonic, self._reservation, made_for):
            self.report.problem = problem

    def _report_problems(self, state: KeyState, fresh: Collection[Problem]) -> None:
        reasons = self.report.reasons
        for problem in fresh:
            reasons[problem.code] = reasons.get(problem.code, 0) + 1
        if self._event_writer is not None:
            self._event_writer.send(state, fresh)

    def figures(self) -> RunFigures:
        turn = None if self._recording is None else self._recording.oldest_event
        return RunFigures(deepcopy(self.report), *self.listeners.all, self._unrecorded_since, turn)

    @property
    def works(self) -> bool:
        """Whether it still listens: it has not failed and is not being stopped."""
        return self._stopping is None and not self.failed

    @property
    def blocks_others(self) -> bool:
        """Whether its unrecorded lists hold room that other clusters wait for."""
        return self._stopping is None and self._reservation.blocks_others

    @property
    def quiet(self) -> bool:
        """Whether everything that was read is recorded."""
        return self._recording is None and self.listeners.window.closes_at() is None

    @property
    def _unrecorded_since(self) -> float | None:
        """Since when (monotonic) events are read and not recorded; None: there are none. During a long list: at least since its last write."""
        if self._recording is None:
            return self.listeners.window.opened_at() if self._left_since is None else self._left_since
        if (oldest := self._recording.oldest_event) is None:
            return None
        return max(oldest[0], self._served.committer.written_at if self._recording.content.snapshots else 0.0)

    def commands_wait(self) -> None:
        """Let no other window join the one that is being recorded, because commands wait."""
        if self._recording is not None:
            self._recording.commands_wait()

    # --- recording ---

    def due_at(self) -> float:
        if self.failed:
            return ON_MESSAGE
        if self._recording is not None:
            return AT_ONCE
        closes_at = self.listeners.window.closes_at()
        return self._idle_at if closes_at is None else closes_at

    def steps(self) -> Steps[None]:
        return self._record()

    def _record(self, *, flush: bool = False) -> Steps[None]:
        """Record the window. If a try fails, the next one records the same content: nothing later goes before it (I1)."""
        if self._recording is None:
            content, rounds = self.listeners.window.close()
            served, tasks = self._served, (self._served.promoted, self._served.readers)
            # Decided once for all tries: meanwhile another round may be requested, or this one withdrawn.
            self._requested = round_of(rounds.values())
            self._recording = LongWindow(
                content,
                self.listeners.window.close_events,
                tasks,
                served.follow_up,
                self._clock,
                served.ports.window_bytes,
            )
        yield 0.0  # what the listeners have sent before is received first
        window, began = self._recording, self._clock.monotonic()
        window.begin()
        requested, mode = self._requested, self._requested.mode if self._requested else Mode()
        recorded = yield from self._served.reconciler.record(window.content, mode, flush=flush, following=window)
        content, self._recording = window.content, None
        window.publish()
        self._reservation.release_recorded(sum(snapshot.size for snapshot in content.snapshots.values()))
        self._idle_at = self._clock.monotonic() + CHECKPOINT_SECONDS
        if not content.empty:
            self._count_window(content, recorded, self._clock.monotonic() - began)
        if content.snapshots:
            self._note_lists(content.snapshots, recorded, requested)
        self._credentials.update(self._served.states.config)
        self.report.credential_days = self._credentials.days_left()
        yield from self._sweep_some(flush=flush, quiet=content.empty)

    def _note_lists(self, resources: Iterable[Resource], recorded: Recorded, requested: ListRound | None) -> None:
        self.listeners.recorded(resources)
        self.report.held = {resource.value: reason for resource, reason in recorded.held.items()}
        self.report.holding |= {resource.value: resource.value in self.report.held for resource in resources}
        if requested is not None:
            requested.recorded(resources, recorded.missed)
            self.answer(requested)

    def answer(self, requested: ListRound) -> None:
        """Answer the round if all resources that the cluster serves are listed."""
        if requested.unlisted <= self._served.states.absent:
            changed = self.report.changed_keys - requested.changed_before
            requested.answer(Relisted(changed, dict(self.report.held), len(requested.missed)))

    def _count_window(self, content: WindowContent, recorded: Recorded, seconds: float) -> None:
        self.report.windows += 1
        self.report.events += content.received
        self.report.merged += content.merged
        self.report.changed_keys += len(recorded.changed)
        self.report.recording_seconds += seconds
        window: dict[str, object] = {"cluster": self.report.cluster, "changed": len(recorded.changed)}
        window |= {"events": content.received, "merged": content.merged, "listed": content.listed}
        self._served.ports.progress("window", window)
        if recorded.changed or content.snapshots:
            logger.debug("window recorded", extra={**window, "seconds": round(seconds, 3)})

    def _sweep_some(self, *, flush: bool, quiet: bool) -> Steps[None]:
        """Delete tombstones in quiet moments, at the end, and at intervals, because a busy cluster is never quiet."""
        now, states = self._clock.monotonic(), self._served.states
        if not (flush or quiet or now - self._swept_at >= CHECKPOINT_SECONDS):
            return
        self._swept_at = now
        while left := len(states.tombstoned):
            yield from self._served.reconciler.sweep()
            until = self._stopping.drain_until - _SWEEP_MARGIN_SECONDS if flush and self._stopping is not None else 0.0
            if self._clock.monotonic() >= until or len(states.tombstoned) >= left:
                return

    def why_unlisted(self, since: float) -> ListingFailedError | None:
        """Why lists that were requested then (monotonic) do not come: a person must act, it takes too long, or the run has failed. None:
        they may still come.
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
        self.fail(failed=stopping.abandon)
        if self._event_writer is not None:
            self._event_writer.close()
        self.listeners.stop(stopping.code)

    def fail(self, *, failed: bool = True) -> None:
        """Mark the run as failed: what it has seen is not recorded, and no checkpoint may say otherwise."""
        self.failed = self.failed or failed

    def cut(self, code: ErrorCode, *, lost: bool) -> None:
        """End the listeners after a fault of ours, and drop what is not recorded. Gives back room for lists.

        ``lost``: no other run takes its place; the cluster must not look like a quiet one.
        """
        self.fail(failed=lost)
        self.listeners.forsake(code)
        self._recording = None
        self._reservation.end()

    def finish(self) -> Steps[None]:
        """Wait for the listeners, and record what they have read.

        A listener that hangs longer does no harm: its events land in a window that is never recorded.
        """
        assert self._stopping is not None
        while self._clock.monotonic() < self._stopping.listen_until and self.listeners.alive:
            yield _POLL_SECONDS
        if self._recording is not None and not self.failed:
            yield from self._record()
        if not self.failed:
            yield from self._record(flush=True)
            yield from self._served.committer.write_counts()

    def end(self) -> None:
        """Persist how the listeners ended, give back room for lists, and write no more Events."""
        assert self._stopping is not None
        self._left_since = self._unrecorded_since
        self._recording = None
        self._reservation.end()
        self.listeners.ended(self._stopping.code)
        if self._event_writer is not None:
            self._event_writer.stop()
            self._event_writer = None
