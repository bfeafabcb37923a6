"""Takes the lease for a session, which stands by for it if its holder ends soon."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubesync.actors.scheduler import Clock, Scheduler
from kubesync.aws.tables.control.lease import Lease, LeaseTable
from kubesync.domain.errors import NotMasterError, StoreBusyError, StoreError, StoreOutcomeUnknownError

POLL_SECONDS: Final = 0.25
# While a process stands by for as long as it takes: a read each 2 s costs 0.16 dollars a month (docs/cost.md).
PATIENT_POLL_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The times of a lease, in seconds. A master stops writing ``write_seconds`` after the *start* of its last successful renewal.

    A session stands by for at most ``stand_by`` seconds. Infinite: until the lease is free, whoever holds it.
    """

    duration: float = 15.0
    renew_every: float = 5.0
    write_seconds: float = 10.0
    stand_by: float = 60.0

    @property
    def duration_ms(self) -> int:
        return int(self.duration * 1000)


@dataclass(frozen=True, slots=True)
class Taken:
    """The lease as it was taken, and as it was read before. ``write_until`` (monotonic): how long it lasts without a renewal."""

    lease: Lease
    seen: Lease
    write_until: float


class LeaseTaker:
    """Takes the lease for one session. Remembers its tries, because one whose answer was lost may have taken the lease."""

    def __init__(self, table: LeaseTable, holder: str, times: LeaseTimes, scheduler: Scheduler) -> None:
        self._table = table
        self._holder = holder
        self._times = times
        self._scheduler = scheduler
        # By epoch: the lease as it was read before, and when the try began.
        self._tries: dict[int, tuple[Lease, float]] = {}

    def stand_by(self, may_wait: Callable[[], bool], deployment: str) -> Taken:
        """Wait until the lease can be taken, and take it. See ``LeaseKeeper.acquire`` for the cases and what it raises."""
        began = self._scheduler.monotonic()
        first_seen: dict[int, float] = {}
        pause = POLL_SECONDS
        while True:
            refused: NotMasterError | StoreError
            waits = True
            try:
                if deployment:
                    self._table.bind(deployment)
                    deployment = ""
                seen = self._table.read()
                now = self._scheduler.monotonic()
                unmoved = now - first_seen.setdefault(seen.renewal, now)
                if seen.holder == self._holder and seen.epoch in self._tries and not seen.released:
                    return self._taken(seen)
                if seen.free(now_ms(self._scheduler)) or unmoved > self._times.duration + self._times.renew_every:
                    return self.take(seen)
                refused = NotMasterError(f"session {seen.holder} is the master (epoch {seen.epoch})")
                waits = self._ends_soon(seen, renewed=len(first_seen) > 1)
                pause = self._until_next_poll(seen)
            except (NotMasterError, StoreBusyError, StoreOutcomeUnknownError) as error:
                refused = error  # a try without an answer may have landed: the next read shows it
            if not waits or self._scheduler.monotonic() - began >= self._times.stand_by or not may_wait():
                raise refused
            self._scheduler.sleep(pause)

    def _until_next_poll(self, seen: Lease) -> float:
        """Return the seconds to the next poll. A process that waits for ever polls often only near the time when the lease may become free."""
        if self._times.stand_by < math.inf:
            return POLL_SECONDS
        ends_at_ms = seen.ends_at_ms - 1000 if seen.ends_at_ms else math.inf
        until = (min(seen.expires_at_ms, ends_at_ms) - now_ms(self._scheduler)) / 1000
        return min(until if until > 0 else POLL_SECONDS, PATIENT_POLL_SECONDS)

    def _ends_soon(self, seen: Lease, *, renewed: bool) -> bool:
        """Whether to stand by for a lease that is held. ``renewed``: it was renewed while this process waited. See ``LeaseKeeper.acquire``."""
        until_end = (seen.ends_at_ms - now_ms(self._scheduler)) / 1000
        expires_in = (seen.expires_at_ms - now_ms(self._scheduler)) / 1000
        ends_soon = bool(seen.ends_at_ms) and until_end <= self._times.stand_by
        return self._times.stand_by == math.inf or ends_soon or (expires_in > self._times.duration and not renewed)

    def take(self, seen: Lease) -> Taken:
        """Take the lease, if it is unchanged since it was read.

        Raises:
            NotMasterError: another session took it first.
            StoreBusyError, StoreOutcomeUnknownError: the try failed, or got no answer. It may have landed.
        """
        started = self._scheduler.monotonic()
        epoch = self._table.draw_epoch()
        self._tries[epoch] = seen, started
        expires_at_ms = now_ms(self._scheduler) + self._times.duration_ms
        return self._taken(self._table.take(seen, self._holder, epoch, expires_at_ms))

    def _taken(self, lease: Lease) -> Taken:
        """Return a lease that one of this session's tries took. Its time counts from the start of that try."""
        seen, started = self._tries[lease.epoch]
        return Taken(lease, seen, started + self._times.write_seconds)


def now_ms(clock: Clock) -> int:
    """Return the time in epoch milliseconds, as the lease has it."""
    return int(clock.epoch() * 1000)
