"""Lists wait for room: all lists of a session that are read and not recorded yet share one budget of bytes.

A list takes room before it is read: first for a page, then for as much as the server says is left. It keeps its room until the
cluster has recorded it.

    a list of ...                   begins                                goes on
    the cluster that came first     at once                               also beyond the budget, one list at a time
    a cluster that came later       once it fits, first come first        while it fits; if not, it drops what it has
                                    served                                read, and waits for as much as it needs

So the lists in memory never exceed the budget and one more list, however many clusters wait. The first cluster always gets done.

    ListRoom ── ClusterReservation, one a cluster ── ListReservation, one a listener
                bytes of lists that are read           bytes of the list that is being read, or that it waits for

One lock, the room's, guards all of them.
Watches need no room. A dry run and a recovery need both lists of a cluster together: their cluster may take both beyond the budget.
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
    """Shares the list budget of one session among its clusters. Counts bytes of kept objects (``objects.bytes_of``).

    The threads of all listeners use it.
    """

    def __init__(self, budget: float, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.lock = scheduler.lock()
        self._budget = budget
        self._clusters: list[ClusterReservation] = []  # that hold room or wait for it, first come first

    def for_cluster(self, *, together: bool = False) -> ClusterReservation:
        """Make the reservation of one cluster for one run of its listeners. It takes no room yet.

        ``together``: the cluster keeps each list until all of them are read.
        """
        return ClusterReservation(self, together)

    def fits(self, reservation: ListReservation, size: int) -> bool:
        """Whether a list may take ``size`` bytes in all. The caller holds the lock.

        The cluster that came first may exceed the budget with one list, or with all of them if it needs them together.
        """
        cluster = reservation.cluster
        # If the cluster has taken no more than this list has, it holds no other list.
        may_exceed = cluster is self._clusters[0] and (cluster.together or cluster.taken == reservation.taken)
        return may_exceed or sum(each.taken for each in self._clusters) - reservation.taken + size <= self._budget

    def others_wait(self, cluster: ClusterReservation) -> bool:
        """Whether lists of other clusters wait for room. The caller holds the lock."""
        return any(each.waiting for each in self._clusters if each is not cluster)

    def rebalance(self, cluster: ClusterReservation) -> None:
        """Update the queue after this cluster's bytes have changed, and grant room to waiting lists that now fit.

        The caller holds the lock.
        """
        if cluster not in self._clusters:
            self._clusters.append(cluster)
        if not cluster.taken and not cluster.waiting:  # it needs nothing now: the next time it comes last
            self._clusters.remove(cluster)
        for each in self._clusters:
            for reservation in each.waiting:
                if not self.fits(reservation, reservation.wanted):
                    return  # later lists must not overtake it: it would wait for ever
                reservation.grant()


class ClusterReservation:
    """What one cluster holds of the budget: lists being read, and lists that are not recorded yet.

    ``given_at`` (monotonic): when a list of the cluster was last granted room. ``unrecorded``: bytes of lists that were read, until they are
    recorded. Change it under the room's lock only.
    """

    def __init__(self, room: ListRoom, together: bool) -> None:
        self.room = room
        self.together = together
        self.given_at = -math.inf
        self.lists: list[ListReservation] = []  # one for each listener that was made in this run
        self.unrecorded = 0

    @property
    def taken(self) -> int:
        """Bytes of all its lists, read or being read."""
        return self.unrecorded + sum(reservation.taken for reservation in self.lists)

    @property
    def waiting(self) -> list[ListReservation]:
        """Its lists that wait for room."""
        return [reservation for reservation in self.lists if reservation.wanted]

    @property
    def blocks_others(self) -> bool:
        """Whether other clusters wait for room while this one holds lists that are read but not recorded."""
        with self.room.lock:
            return self.unrecorded > 0 and self.room.others_wait(self)

    def for_list(self) -> ListReservation:
        """Make the reservation that one listener uses for its lists, one list at a time."""
        reservation = ListReservation(self)
        with self.room.lock:
            self.lists.append(reservation)
        return reservation

    def release_recorded(self, size: int) -> None:
        """Give back ``size`` bytes: lists that are recorded now."""
        with self.room.lock:
            self.unrecorded = max(0, self.unrecorded - size)
            self.room.rebalance(self)

    def end(self) -> None:
        """Give back everything. Lists of the cluster that wait for room get a StoppedError."""
        for reservation in self.lists:
            reservation.end()
        with self.room.lock:
            self.unrecorded = 0
            self.room.rebalance(self)


class ListReservation:
    """What one list that is being read holds of the budget. Its listener's thread uses it; any thread may call ``end``.

        take        wait for room, before the first page
        try_grow    ask for more, before the next page
        release     the list is read: its bytes go to the cluster, until they are recorded

    ``taken``: bytes that it holds. ``wanted``: bytes that it waits for; 0: it does not wait.
    """

    def __init__(self, cluster: ClusterReservation) -> None:
        self.taken = 0
        self.wanted = 0
        self.cluster = cluster
        self._room = cluster.room
        self._given = cluster.room.scheduler.event()  # set once ``wanted`` is granted, or the reservation ends
        self._ended = False

    def take(self, size: int, deadline_monotonic: float, on_long_wait: Callable[[float], None] | None = None) -> bool:
        """Give back what this list holds, then block until it is granted ``size`` bytes.

        Returns False if the deadline came first. Raises StoppedError if the reservation was ended.

        ``on_long_wait``: called every LONG_SECONDS with the seconds of waiting.
        """
        scheduler = self._room.scheduler
        with self._room.lock:
            self._raise_if_ended()
            self._given = given = scheduler.event()  # a new one: an earlier grant has set the last one
            self.taken, self.wanted = 0, size
            self._room.rebalance(self.cluster)
        began = scheduler.monotonic()
        while not given.wait(max(0.0, min(LONG_SECONDS, deadline_monotonic - scheduler.monotonic()))):
            if scheduler.monotonic() >= deadline_monotonic:
                break
            if on_long_wait is not None:
                on_long_wait(scheduler.monotonic() - began)
        with self._room.lock:
            self._raise_if_ended()
            if self.wanted:  # the deadline has come: ``grant`` would have set it to 0
                self.wanted = 0
                self._room.rebalance(self.cluster)
                return False
            return True

    def grant(self) -> None:
        """Give this list the bytes that it waits for, and wake its thread. The caller holds the lock."""
        self.taken, self.wanted = self.wanted, 0
        self.cluster.given_at = self._room.scheduler.monotonic()
        self._given.set()

    def try_grow(self, size: int) -> bool:
        """Take ``size`` bytes in all, those that it holds included. Returns False, and takes no more, if they do not fit now.

        Raises StoppedError.
        """
        with self._room.lock:
            self._raise_if_ended()
            fits = self._room.fits(self, size)
            if fits:
                self.taken = max(size, self.taken)
            return fits

    def release(self, read: int = 0) -> int:
        """Give back what this list holds. Charge ``read`` bytes to the cluster until it has recorded the list; 0: the list failed.

        Returns the bytes charged: 0 if the reservation has ended.
        """
        with self._room.lock:
            self.taken = 0
            if self._ended:
                return 0
            self.cluster.unrecorded += read
            self._room.rebalance(self.cluster)
            return read

    def end(self) -> None:
        """Give back the room and refuse more. A thread that waits for room gets a StoppedError."""
        with self._room.lock:
            self._ended, self.taken, self.wanted = True, 0, 0
            self._given.set()
            self._room.rebalance(self.cluster)

    def _raise_if_ended(self) -> None:
        if self._ended:
            raise StoppedError
