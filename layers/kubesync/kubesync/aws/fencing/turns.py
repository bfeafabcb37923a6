"""Who may run: work that needs the same place takes turns. It takes all its places together, or none, first come first served.

Each place has a queue. Work enters all its queues in one step, and runs when it is the first in all of them. The work that asked first
of all is the first everywhere, so nobody waits in a circle, and no stream of small work keeps out what needs many places. Whoever
ends wakes only those who were waiting for nobody else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from kubesync.actors.scheduler import Event, Scheduler

_CHECK_SECONDS: Final = 1.0


class _Turn:
    """A turn of one piece of work. ``behind``: in how many queues others are before it. ``ready``: set once there are none; None: no wait."""

    __slots__ = ("behind", "ready")

    def __init__(self) -> None:
        self.behind = 0
        self.ready: Event | None = None


class Turns:
    """Lets work at the same place go one after another, first come first served: one queue for each place."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._lock = scheduler.lock()
        self._queues: dict[object, deque[_Turn]] = {}

    @contextmanager
    def at(self, places: Iterable[object], give_up: Callable[[], None]) -> Iterator[None]:
        """Wait for a turn at all of these places, and keep others out for the length of the context.

        Args:
            give_up: called every second while waiting. What it raises ends the wait: those before may hang.
        """
        places = tuple(dict.fromkeys(places))
        turn = self._join_queues(places)
        try:
            while turn.ready is not None and not turn.ready.wait(_CHECK_SECONDS):
                give_up()
            yield
        finally:
            self._end_turn(turn, places)

    def _join_queues(self, places: tuple[object, ...]) -> _Turn:
        """Join the queues of all these places at once, so that two turns never wait for each other."""
        turn = _Turn()
        with self._lock:
            for place in places:
                queue = self._queues.setdefault(place, deque())
                turn.behind += bool(queue)
                queue.append(turn)
            if turn.behind:
                turn.ready = self._scheduler.event()
        return turn

    def _end_turn(self, turn: _Turn, places: tuple[object, ...]) -> None:
        """Leave the queues, and wake those who are first everywhere now. Also for a turn that gave up before it was first."""
        with self._lock:
            for place in places:
                queue = self._queues[place]
                if queue[0] is not turn:  # it gave up
                    queue.remove(turn)
                    continue
                queue.popleft()
                if not queue:
                    del self._queues[place]
                    continue
                queue[0].behind -= 1
                if not queue[0].behind and queue[0].ready is not None:
                    queue[0].ready.set()
