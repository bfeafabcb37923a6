"""A lease table, a clock, and keepers of several processes on it."""

from typing import Final

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.fakes.store_faults import StoreFaults
from kubesync.aws.tables.control.lease import Lease, LeaseTable
from kubesync.session.lease_keeper import LeaseKeeper, LeaseTimes

TIMES: Final = LeaseTimes()


class LeaseBench:
    """A lease table, a clock, and keepers of several processes on it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.faults = StoreFaults()
        self.store = MemoryStore(clock=self.clock, faults=self.faults)
        self.table = LeaseTable(self.store, "0")
        self.waits = 0

    def keeper(self, holder: str = "me", times: LeaseTimes = TIMES) -> LeaseKeeper:
        return LeaseKeeper(self.table, holder, times, self.clock)

    def take(self, holder: str = "me", times: LeaseTimes = TIMES) -> tuple[LeaseKeeper, Lease, Lease]:
        keeper = self.keeper(holder, times)
        before, lease = keeper.acquire(self.may_wait)
        return keeper, before, lease

    def may_wait(self) -> bool:
        self.waits += 1
        return True

    def other(self, *, ends_in: float, expires_in: float = 15.0) -> Lease:
        """Another session holds the lease."""
        now_ms = int(self.clock.epoch_seconds() * 1000)
        taken = self.table.take(self.table.read(), "other", self.table.draw_epoch(), now_ms)
        return self.table.renew(taken, now_ms + int(expires_in * 1000), now_ms + int(ends_in * 1000))
