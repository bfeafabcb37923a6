"""Mailboxes that are late: an actor sees a message some time after it was sent, as if its thread had not looked before.

    sender ── Host.send ── held for a while ── mailbox ── actor

The order of one thread's messages to one actor stays. Those of different threads may overtake each other. A message that is held is under way:
the session is not idle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

from kubesync.actors.actor import Host

if TYPE_CHECKING:
    from simulation.process import Process

type Delay = Callable[[str, object], float]
"""For how many seconds a message is held, by its receiver (``prod/cluster``, ``zone Z1``, ``composer``, ``resync``)."""

_LONGEST_SLEEP_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True, order=True)
class _Held:
    due: float
    number: int
    sender: int = field(compare=False)
    message: object = field(compare=False)


def deliver_late(host: Host[Any], name: str, process: Process, delay: Delay) -> None:
    """From now on, hold what is sent to an actor."""
    setattr(host, "send", _Post(host, name, process, delay).send)  # noqa: B010 - whoever sends asks the host for it


class _Post:
    """Of one actor. Its thread ends with the process."""

    def __init__(self, host: Host[Any], name: str, process: Process, delay: Delay) -> None:
        self._deliver = host.send
        self._activity = host._activity
        self._name = name
        self._process = process
        self._delay = delay
        self._held: list[_Held] = []
        self._number = 0
        self._due: dict[int, float] = {}
        self._under_way: Counter[int] = Counter()
        self._news = process.wakeup()
        self._started = False

    def send(self, message: object) -> None:
        now, sender = self._process.monotonic(), self._process.thread_id()
        due = now + self._delay(self._name, message)
        if due <= now and not self._under_way[sender]:
            self._deliver(message)
            return
        self._due[sender] = due = max(due, self._due.get(sender, due))
        self._number += 1
        self._under_way[sender] += 1
        heappush(self._held, _Held(due, self._number, sender, message))
        with self._activity.lock:
            self._activity.busy += 1
        if not self._started:
            self._started = True
            self._process.thread(f"post of {self._name}", self._run).start()
        self._news.set()

    def _run(self) -> None:
        while True:
            while self._held and self._held[0].due <= self._process.monotonic():
                held = heappop(self._held)
                self._deliver(held.message)
                self._under_way[held.sender] -= 1
                with self._activity.lock:
                    self._activity.busy -= 1
            left = self._held[0].due - self._process.monotonic() if self._held else _LONGEST_SLEEP_SECONDS
            self._news.wait(left)
