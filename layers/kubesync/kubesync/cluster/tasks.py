"""How a cluster's work is divided: tasks own what is to be done, lanes do it step by step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Steps
from kubesync.actors.backoff import Backoff
from kubesync.actors.scheduler import Clock


class Task(Protocol):
    """A part of a cluster's work. It alone holds what is still to be done of it."""

    def due_at(self) -> float:
        """From when (monotonic seconds) there is something to do. AT_ONCE: now; ON_MESSAGE: there is nothing."""

    def steps(self) -> Steps[object]:
        """Do what is due, in steps. After an error it is called again: what is written stays, the rest is done."""


@dataclass(slots=True, eq=False)
class Command:
    """A command of the session: a task that is done once. After a fault of ours it is obeyed again, once."""

    steps: Callable[[], Steps[object]]
    not_before: float = AT_ONCE

    def due_at(self) -> float:
        return self.not_before


class Lane:
    """Does one task at a time, however often it fails, and only then the next one.

    Args:
        backoff: between tries of a task that fails.
        tasks: returns what it chooses from when no task is under way. They take turns.

    ``under_way``: the task that has begun, or is to begin. None: the next step chooses one. Set it with ``put`` only.
    """

    def __init__(self, clock: Clock, backoff: Backoff, tasks: Callable[[], Sequence[Task]] = tuple) -> None:
        self._clock = clock
        self._backoff = backoff
        self._tasks = tasks
        self.under_way: Task | None = None
        self._chosen: Task | None = None  # the last time, of several: the next turn is that of the task after it
        # Of the task under way; None: it begins, or begins again, with the next step.
        self._steps: Steps[object] | None = None
        self._not_before = AT_ONCE
        self._failures = 0

    def due_at(self) -> float:
        """When (monotonic seconds) the next step can be done. AT_ONCE: now; ON_MESSAGE: nothing is to be done."""
        if self.under_way is not None:
            # A task that has begun says with each step how long to pause. One that has not begun says when it is due.
            return max(self._not_before, AT_ONCE if self._steps is not None else self.under_way.due_at())
        return min((task.due_at() for task in self._tasks()), default=ON_MESSAGE)

    def advance(self) -> Task | None:
        """Do one step of the task under way, or of the next one. Returns the task if this step has completed it. Raises what the step raises.

        After an error the caller calls ``back_off``, ``restart_after`` or ``put``.
        """
        self.under_way = self.under_way or self._next()
        if self.under_way is not None:
            try:
                self._steps = self._steps or self.under_way.steps()
                pause = next(self._steps)
                self._not_before = self._clock.monotonic() + pause if pause else AT_ONCE
            except StopIteration:
                return self.put(None)
        return None

    def put(self, task: Task | None) -> Task | None:
        """Make this the task under way, and cancel the former one between two steps. None: choose the next task. Returns the former one."""
        before, steps = self.under_way, self._steps
        self.under_way, self._steps, self._not_before, self._failures = task, None, AT_ONCE, 0
        if steps is not None:
            steps.close()
        return before

    def back_off(self) -> int:
        """Restart the task under way after a delay, because it has failed. Returns how many times in a row."""
        self._failures += 1
        self.restart_after(self._backoff.delay(self._failures))
        return self._failures

    def restart_after(self, seconds: float) -> None:
        """Begin the task under way again, with its first step, in so many seconds."""
        self._steps, self._not_before = None, self._clock.monotonic() + seconds

    def _next(self) -> Task | None:
        """The first task in turn that is due. The one that was chosen last comes last."""
        tasks = self._tasks()
        first = tasks.index(self._chosen) + 1 if self._chosen in tasks else 0
        for task in (*tasks[first:], *tasks[:first]):
            if task.due_at() <= self._clock.monotonic():
                # Only a command is alone. It is not remembered: it may carry the lists of a whole cluster.
                self._chosen = task if len(tasks) > 1 else self._chosen
                return task
        return None
