"""Actors: private state that one thread owns, and a mailbox. Others only send immutable messages.

    send ── mailbox ── receive, message by message ── step ── step ... until the actor has nothing to do ── sleep

A message wakes the actor. It is received between two steps, so a step never meets a change that it did not make itself.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator
from typing import Final, Protocol

from kubesync.actors.scheduler import Scheduler

AT_ONCE: Final = 0.0
"""The actor has more to do."""
WHEN_TOLD: Final = math.inf
"""The actor has nothing to do until a message comes."""
_LONGEST_SLEEP_SECONDS: Final = 3600.0

type Steps[T] = Generator[float, None, T]
"""Work in small steps. Each yields for how many seconds the work pauses; meanwhile its actor serves its mailbox."""


class Actor(Protocol):
    """What a host runs. All methods are called in the host's thread."""

    def receive(self, message: object) -> None:
        """Take a message in. What it leads to is done in later steps."""

    def step(self) -> float | None:
        """Do one small thing. Returns the seconds until the next step (AT_ONCE, WHEN_TOLD). None: the actor has ended."""

    def failed(self, error: Exception) -> float | None:
        """A step, or a message, raised this error. Returns as ``step`` does."""


class Activity:
    """How many actors of a session have something to do right now. ``since``: when (monotonic) each began the step that it is in."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.lock = scheduler.lock()
        self.busy = 0
        self.since: dict[str, float] = {}
        self.now = scheduler.monotonic

    @property
    def none(self) -> bool:
        """Every actor waits, and no message is under way."""
        with self.lock:
            return self.busy == 0

    def stuck(self, seconds: float) -> dict[str, float]:
        """Actors that have been in one step for at least so long, and for how many seconds."""
        lasted = {name: round(self.now() - since, 1) for name, since in sorted(self.since.copy().items())}
        return {name: so_long for name, so_long in lasted.items() if so_long >= seconds}


class Host:
    """Runs one actor in a thread of its own. Any thread may call ``send`` and ``wake``."""

    def __init__(self, name: str, actor: Actor, scheduler: Scheduler, activity: Activity) -> None:
        self.since = activity.since
        self._name = name
        self._actor = actor
        self._activity = activity
        self._mailbox: deque[object] = deque()
        self._wakeup = scheduler.wakeup()
        self._woken = False
        self._busy = False
        self._ended = False
        self._thread = scheduler.thread(name, self._run)
        self._started = False

    def start(self) -> None:
        """Start the thread. Only the first call has an effect."""
        with self._activity.lock:
            if self._started:
                return
            self._started = True
            self._activity.busy += not self._busy
            self._busy = True
        self._thread.start()

    def send(self, message: object) -> None:
        """Put a message into the mailbox. Returns at once."""
        self._rouse(message)

    def wake(self) -> None:
        """Let the actor step soon."""
        self._woken = True
        self._rouse()

    def join(self, seconds: float) -> bool:
        """Wait for the actor's end. False: it still runs."""
        if self._started:
            self._thread.join(max(0.0, seconds))
        return not self.alive

    @property
    def alive(self) -> bool:
        return self._started and self._thread.is_alive()

    def _rouse(self, *messages: object) -> None:
        with self._activity.lock:
            if self._ended:
                return
            self._mailbox.extend(messages)
            if self._busy:
                return
            self._busy = True
            self._activity.busy += 1
        if self._started:
            self._wakeup.set()

    def _run(self) -> None:
        seconds: float | None = AT_ONCE
        try:
            while seconds is not None:
                self._sleep(seconds)
                self.since[self._name] = self._activity.now()
                seconds = self._work()
                del self.since[self._name]
        finally:
            with self._activity.lock:
                self.since.pop(self._name, None)
                self._ended = True
                self._activity.busy -= 1

    def _work(self) -> float | None:
        try:
            while self._mailbox:
                self._actor.receive(self._mailbox.popleft())
            return self._actor.step()
        except Exception as error:  # noqa: BLE001 - the actor says what becomes of it
            return self._actor.failed(error)

    def _sleep(self, seconds: float) -> None:
        """Sleep until a message comes, at most this long."""
        with self._activity.lock:
            if seconds <= 0 or self._woken or self._mailbox:
                self._woken = False
                return
            self._busy = False
            self._activity.busy -= 1
        self._wakeup.wait(min(seconds, _LONGEST_SLEEP_SECONDS))
        with self._activity.lock:
            self._woken = False
            if not self._busy:  # the time is over
                self._busy = True
                self._activity.busy += 1
