"""What client-go's leaderelection_test.go asks beyond ``test_lease_keeper*.py`` (tests/client-go-behaviours.md)."""

import threading

import pytest

from harness.fakes.memory_store import Call, MemoryStore
from harness.fakes.store_faults import StoreFaults, writes_to
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.tables.control.lease import LeaseTable, lease_key
from kubesync.session.lease_keeper import LeaseKeeper, LeaseTimes

LEASE = lease_key("0")
BOUND_SECONDS = 120


@pytest.mark.parametrize("answered", [False, True], ids=["before its effect", "before its answer"])
def test_release_on_cancellation_of_a_renewal_that_is_under_way_comes_after_it(*, answered: bool) -> None:
    clock = ThreadScheduler()
    faults = StoreFaults()
    table = LeaseTable(MemoryStore(clock=clock, faults=faults), "0")
    keeper = LeaseKeeper(table, "me", LeaseTimes(duration=15, renew_every=0.01), clock)
    keeper.acquire(lambda: True)
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(_call: Call) -> None:
        hangs.set()
        goes_on.wait(BOUND_SECONDS)

    keeper.start(clock.epoch_seconds() + 60)
    faults.do(writes_to(LEASE), hang, after=answered)
    assert hangs.wait(BOUND_SECONDS)
    released = threading.Thread(target=keeper.release, kwargs={"clean": True})
    released.start()
    goes_on.set()
    released.join(BOUND_SECONDS)
    assert not released.is_alive()
    lease = table.read()
    assert (lease.released, lease.clean) == (True, True)
    assert keeper.lost


def test_release_retries_on_conflict_is_not_needed_as_a_signal_does_not_stand_in_its_way() -> None:
    clock = ThreadScheduler()
    table = LeaseTable(MemoryStore(clock=clock), "0")
    keeper = LeaseKeeper(table, "me", LeaseTimes(), clock)
    keeper.acquire(lambda: True)
    table.signal()  # the item has changed since this master read it
    keeper.release(clean=True)
    lease = table.read()
    assert (lease.released, lease.clean, lease.signal) == (True, True, 1)
