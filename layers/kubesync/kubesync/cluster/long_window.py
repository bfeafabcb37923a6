"""Keeps a cluster responsive while a long window is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubesync.actors.actor import Steps
from kubesync.clock import Clock
from kubesync.cluster.keys.key_writes import Recorded
from kubesync.cluster.keys.observations import Following
from kubesync.cluster.tasks import Task
from kubesync.domain.window import Turns, WindowContent

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
