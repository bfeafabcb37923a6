"""Lists wait for room: all lists of a session that are read and not recorded yet share one budget of bytes.

A list takes room before it is read: first for a page, then for as much as the server says is left. It keeps its room until the
cluster has recorded it.

    a list of ...                   begins                                goes on
    the cluster that came first     at once                               also beyond the budget, one list at a time
    a cluster that came later       once it fits, in the order of         while it fits; if not, it drops what it has
                                    their coming                          read, and waits for as much as it needs

So the lists in memory never exceed the budget and one more list, however many clusters wait. The first cluster always gets done.
Watches need no room. A dry run and a recovery need both lists of a cluster together: their turn takes both beyond the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from kubesync.actors.scheduler import Scheduler
from kubesync.kubernetes.transport.connections import StoppedError

LONG_SECONDS: Final = 240.0
"""Whoever waits for so long is shown to people (I10)."""


class NoRoomError(Exception):
    """The list does not fit now. ``needed``: bytes for all of it, as far as they are known."""

    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


class ListRoom:
    """The budget of one session, in bytes of what is kept of lists (``objects.bytes_of``). The threads of all listeners use it."""

    def __init__(self, budget: float, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.lock = scheduler.lock()
        self._budget = budget
        self._turns: list[Turn] = []  # those that hold room or wait for it, in the order of their coming

    def turn(self, *, together: bool = False) -> Turn:
        """The place of one cluster, for one run of its listeners. ``together``: its lists are held until all of them are read."""
        return Turn(self, together)

    def fits(self, space: Space, size: int) -> bool:
        """Whether a list may take ``size`` bytes in all. Under the lock, as ``settle``."""
        turn = space.turn
        alone = turn is self._turns[0] and (turn.together or turn.taken == space.taken)
        return alone or sum(each.taken for each in self._turns) - space.taken + size <= self._budget

    def waited_for(self, turn: Turn) -> bool:
        """Whether others wait for room. Under the lock."""
        return any(each.waiting for each in self._turns if each is not turn)

    def settle(self, turn: Turn) -> None:
        """What a turn holds or wants has changed: give room to those that wait."""
        if turn not in self._turns:
            self._turns.append(turn)
        if not turn.taken and not turn.waiting:
            self._turns.remove(turn)
        for each in self._turns:
            for space in each.waiting:
                if not self.fits(space, space.wanted):
                    return  # those that came later do not pass it: it would wait for ever
                space.grant()


class Turn:
    """One cluster in the room. ``given_at`` (monotonic): when it was given room last."""

    def __init__(self, room: ListRoom, together: bool) -> None:
        self.room = room
        self.together = together
        self.given_at = -math.inf
        self.spaces: list[Space] = []
        self._unrecorded = 0

    @property
    def taken(self) -> int:
        return self._unrecorded + sum(space.taken for space in self.spaces)

    @property
    def waiting(self) -> list[Space]:
        """The lists that wait for room."""
        return [space for space in self.spaces if space.wanted]

    @property
    def in_the_way(self) -> bool:
        """Whether others wait, and lists of this cluster wait to be recorded."""
        with self.room.lock:
            return self._unrecorded > 0 and self.room.waited_for(self)

    def space(self) -> Space:
        """For the lists of one listener."""
        space = Space(self)
        with self.room.lock:
            self.spaces.append(space)
        return space

    def keep(self, size: int) -> None:
        """So much of what was read waits to be recorded. Under the lock."""
        self._unrecorded += size

    def recorded(self, size: int) -> None:
        """Lists of so many bytes are recorded."""
        with self.room.lock:
            self._unrecorded = max(0, self._unrecorded - size)
            self.room.settle(self)

    def end(self) -> None:
        """Nothing of the cluster is read or recorded any more."""
        for space in self.spaces:
            space.end()
        with self.room.lock:
            self._unrecorded = 0
            self.room.settle(self)


class Space:
    """The room of one list that is being read. Its listener's thread uses it; any thread may call ``end``."""

    def __init__(self, turn: Turn) -> None:
        self.taken = 0
        self.wanted = 0
        self.turn = turn
        self._room = turn.room
        self._given = turn.room.scheduler.event()
        self._ended = False

    def enter(self, size: int, deadline_monotonic: float, on_long_wait: Callable[[float], None] | None = None) -> bool:
        """Give back what is taken, and wait for ``size`` bytes. False: the deadline came first. Raises StoppedError.

        ``on_long_wait``: called every LONG_SECONDS with the seconds of waiting.
        """
        scheduler = self._room.scheduler
        with self._room.lock:
            self._check()
            self._given = given = scheduler.event()
            self.taken, self.wanted = 0, size
            self._room.settle(self.turn)
        began = scheduler.monotonic()
        while not given.wait(max(0.0, min(LONG_SECONDS, deadline_monotonic - scheduler.monotonic()))):
            if scheduler.monotonic() >= deadline_monotonic:
                break
            if on_long_wait is not None:
                on_long_wait(scheduler.monotonic() - began)
        with self._room.lock:
            self._check()
            if self.wanted:
                self.wanted = 0
                self._room.settle(self.turn)
                return False
            return True

    def grant(self) -> None:
        """Under the lock."""
        self.taken, self.wanted = self.wanted, 0
        self.turn.given_at = self._room.scheduler.monotonic()
        self._given.set()

    def grow(self, size: int) -> bool:
        """Take ``size`` bytes in all. False: they do not fit now. Raises StoppedError."""
        with self._room.lock:
            self._check()
            fits = self._room.fits(self, size)
            if fits:
                self.taken = max(size, self.taken)
            return fits

    def leave(self, read: int = 0) -> int:
        """Nothing is being read now. ``read``: bytes of the complete list. Returns how many of them take room until it is recorded."""
        with self._room.lock:
            self.taken = 0
            if self._ended:
                return 0
            self.turn.keep(read)
            self._room.settle(self.turn)
            return read

    def end(self) -> None:
        """No more lists. Whoever waits gets a StoppedError."""
        with self._room.lock:
            self._ended, self.taken, self.wanted = True, 0, 0
            self._given.set()
            self._room.settle(self.turn)

    def _check(self) -> None:
        if self._ended:
            raise StoppedError
