"""Actors: private state that one thread owns, and a mailbox. Others only send immutable messages.

    send ── mailbox ── receive, message by message ── step ── step ... until the actor has nothing to do ── sleep
                                                        └── figures ── one slot, which any thread reads

A message wakes the actor. It is received between two steps, so a step never meets a change that it did not make itself. Nobody else
touches the actor: what others may know of it is published as one immutable value.
"""

import logging
import math
from collections import deque
from collections.abc import Generator
from typing import Any, Final, Protocol

from kubesync.actors.scheduler import Scheduler

logger = logging.getLogger("kubesync.actors")

AT_ONCE: Final = 0.0
"""The actor has more to do."""
ON_MESSAGE: Final = math.inf
"""The actor has nothing to do until a message comes."""
PUBLISH_SECONDS: Final = 1.0
"""How often an actor publishes, at most; also, for how long it may have something to do without publishing."""
_LONGEST_SLEEP_SECONDS: Final = 3600.0

type Steps[T] = Generator[float, None, T]
"""Work in small steps. Each yields for how many seconds the work pauses; meanwhile its actor serves its mailbox."""


class Actor[F](Protocol):
    """What a host runs. All methods are called in the host's thread; ``figures`` also before it starts."""

    def receive(self, message: object) -> None:
        """Take a message in. What it leads to is done in later steps."""

    def step(self) -> float | None:
        """Do one small thing. Returns the seconds until the next step (AT_ONCE, ON_MESSAGE). None: the actor has ended."""

    def handle_error(self, error: Exception) -> float | None:
        """Handle an error that ``step`` or ``receive`` raised: decide what becomes of the actor. Returns as ``step`` does."""

    def figures(self) -> F:
        """What others may know of the actor. Nothing in it changes any more."""


class Activity:
    """Counts the actors of a session that have something to do right now.

    ``busy``: how many. Only hosts change it: each counts once from the moment it gets a message until it sleeps or ends. ``lock``: for ``busy``,
    ``hosts``, and the state of all hosts. ``hosts``: those that ``stuck`` looks at.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.lock = scheduler.lock()
        self.busy = 0
        self.hosts: list[Host[Any]] = []
        self.now = scheduler.monotonic  # the clock of all hosts

    @property
    def idle(self) -> bool:
        """Whether every actor waits and no message is under way."""
        with self.lock:
            return self.busy == 0

    def stuck(self, seconds: float) -> dict[str, float]:
        """Return the names of hosts whose ``age`` is at least so many seconds, each with its age."""
        with self.lock:
            ages = {host.name: round(host.age, 1) for host in self.hosts}
        return {name: age for name, age in sorted(ages.items()) if age >= seconds}


class Host[F]:
    """Runs one actor in a thread of its own. Any thread may call ``send`` and ``wake``, and read ``figures``, ``age`` and ``figures_are_final``.

    ``figures``: what the actor has published last.
    """

    def __init__(self, name: str, actor: Actor[F], scheduler: Scheduler, activity: Activity) -> None:
        self.name = name
        self.figures = actor.figures()
        self._actor = actor
        self._activity = activity
        self._mailbox: deque[tuple[float, object]] = deque()  # each message, with when (monotonic) it was sent
        self._step_began = math.inf  # of the step that runs now; infinite: none does
        self._published_at = -math.inf
        self._changed_at = math.inf  # when the first step began whose changes are not published; infinite: all are
        self._wakeup = scheduler.wakeup()
        self._woken = False  # ``wake`` was called: step although there is no message
        self._busy = False  # whether this host counts in ``Activity.busy``
        self._ended = False
        self._thread = scheduler.thread(name, self._run)
        self._started = False
        with activity.lock:
            activity.hosts.append(self)

    def start(self) -> None:
        """Start the thread. Only the first call has an effect."""
        with self._activity.lock:
            if self._started:
                return
            self._started = True
            self._activity.busy += not self._busy  # a message that was sent before has counted it already
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

    @property
    def figures_are_final(self) -> bool:
        """Whether its figures are the last ones: the actor has ended and published them, or never began."""
        return not self._started or (self._ended and self._changed_at == math.inf)

    @property
    def age(self) -> float:
        """For how many seconds the running step has lasted, or the oldest message has not been taken. 0: neither."""
        since = min([self._step_began, *(sent_at for sent_at, _ in self._mailbox.copy())])
        return max(0.0, self._activity.now() - since)

    def publish(self) -> None:
        """Publish the actor's figures. Only the host calls it, or the actor itself where they cannot wait for the end of the step."""
        self._published_at = self._activity.now()
        try:
            # If a step runs, it may change more, from now on: that counts as changed since its begin. Between steps this is infinite.
            self.figures, self._changed_at = self._actor.figures(), self._step_began
        except Exception:  # figures must not end an actor
            logger.exception("figures could not be published", extra={"actor": self.name})

    def _rouse(self, *messages: object) -> None:
        """Put messages into the mailbox (none: ``wake``), and wake the thread if it sleeps. From now on the host is busy, so that no message is
        overlooked.
        """
        with self._activity.lock:
            if self._ended:
                return
            self._mailbox.extend((self._activity.now(), message) for message in messages)
            if self._busy:  # it looks into the mailbox before it sleeps
                return
            self._busy = True
            self._activity.busy += 1
        if self._started:
            self._wakeup.set()

    def _run(self) -> None:
        """Work until the actor ends: this is the host's thread. Publishes the figures at the end.

        As a rule, ``_sleep`` publishes them, because then the actor has done what it had to do. If the actor goes on without sleep, they are
        published here, between two steps, ``PUBLISH_SECONDS`` after the last time and after the first change that is not published.
        """
        seconds: float | None = AT_ONCE
        try:
            while seconds is not None:
                self._sleep(seconds)
                self._step_began = self._activity.now()
                self._changed_at = min(self._changed_at, self._step_began)
                seconds = self._work()
                self._step_began = math.inf
                if self._activity.now() >= max(self._changed_at, self._published_at) + PUBLISH_SECONDS:
                    self.publish()
            self.publish()
        finally:
            with self._activity.lock:
                self._step_began = math.inf
                self._mailbox.clear()
                self._ended = True
                self._activity.busy -= 1

    def _work(self) -> float | None:
        """Let the actor receive all messages, and do one step. Returns as ``Actor.step`` does."""
        try:
            while self._mailbox:
                self._actor.receive(self._mailbox.popleft()[1])
            return self._actor.step()
        except Exception as error:  # noqa: BLE001 - the actor says what becomes of it
            return self._actor.handle_error(error)

    def _sleep(self, seconds: float) -> None:
        """Sleep until a message comes, at most this long. If figures have changed, publishes them meanwhile, ``PUBLISH_SECONDS`` after the last
        time at the earliest.

        Returns at once, and publishes nothing, if a message or ``wake`` has come, or if ``seconds`` is 0: then the next step follows, and in the
        middle of its work the actor's figures may be half right. While the host sleeps it is not ``_busy``; ``_rouse`` sets that when a message
        comes.
        """
        with self._activity.lock:
            if seconds <= 0 or self._woken or self._mailbox:
                self._woken = False
                return
            self._busy = False
            self._activity.busy -= 1
        until = self._activity.now() + min(seconds, _LONGEST_SLEEP_SECONDS)
        publish_at = self._published_at + PUBLISH_SECONDS
        if self._changed_at < math.inf and publish_at < until:
            if (left := publish_at - self._activity.now()) > 0:
                self._wakeup.wait(left)
            if not self._busy:
                self.publish()
        if not self._busy:
            self._wakeup.wait(until - self._activity.now())
        with self._activity.lock:
            self._woken = False
            if not self._busy:  # the time is over
                self._busy = True
                self._activity.busy += 1
