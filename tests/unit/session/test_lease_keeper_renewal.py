"""Keeping the lease and giving it back: when writing has to stop (I2), what a renewal brings, what a release says."""

import threading

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import Call, MemoryStore
from harness.fakes.store_faults import StoreFaults, writes_to
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import Update
from kubesync.aws.tables.control.lease import LeaseTable, lease_key
from kubesync.domain.errors import NotMasterError, StoreBusyError, StoreError, StoreOutcomeUnknownError
from kubesync.session.lease_keeper import LeaseKeeper, LeaseTimes

LEASE = lease_key("0")


class Bench:
    """A keeper that holds the lease, and what it told others."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.faults = StoreFaults()
        self.store = MemoryStore(clock=self.clock, faults=self.faults)
        self.table = LeaseTable(self.store, "0")
        self.signals = 0
        self.reasons: list[str] = []
        self.keeper = LeaseKeeper(self.table, "me", LeaseTimes(), self.clock)
        self.keeper.acquire(lambda: True)
        self.keeper.on_signal = self._signal
        self.keeper.on_lost = self._lost

    def _signal(self) -> None:
        self.signals += 1

    def _lost(self, reason: str) -> None:
        self.reasons.append(reason)

    @property
    def lost(self) -> int:
        return len(self.reasons)

    def may_write(self) -> bool:
        try:
            self.keeper.check_may_write()
        except NotMasterError:
            return False
        return True

    def steal(self) -> None:
        """Another process takes the lease, as one does that believes this one dead."""
        self.table.take(self.table.read(), "thief", self.table.draw_epoch(), 0)


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- client-go: TestRenew, TestTryAcquireOrRenew ---


def test_renew_moves_the_expiry_and_tells_when_the_session_ends(bench: Bench) -> None:
    bench.clock.advance(5)
    now_ms = int(bench.clock.epoch_seconds() * 1000)
    bench.keeper.start(bench.clock.epoch_seconds() + 800)
    bench.keeper.release(clean=True)
    lease = bench.table.read()
    assert (lease.expires_at_ms, lease.ends_at_ms) == (now_ms + 15_000, now_ms + 800_000)


def test_writing_goes_on_for_as_long_as_renewals_succeed(bench: Bench) -> None:
    for _ in range(100):
        bench.clock.advance(5)
        bench.keeper.renew()
        assert bench.may_write()


@pytest.mark.parametrize("error", [StoreBusyError("throttled"), StoreOutcomeUnknownError("no answer")])
@pytest.mark.parametrize("landed", [True, False])
def test_i2_writing_stops_10_s_after_the_start_of_the_last_successful_renewal(
    bench: Bench, error: StoreError, *, landed: bool
) -> None:
    bench.faults.do(writes_to(LEASE), lambda _call: bench.clock.advance(2), after=True)  # a slow answer
    bench.keeper.renew()
    bench.faults.fail(writes_to(LEASE), error, after=landed, times=None)
    bench.clock.advance(7.9)
    bench.keeper.renew()
    assert bench.may_write()
    bench.clock.advance(0.2)
    assert not bench.may_write()
    assert bench.lost == 0  # nobody has told; the next renewal may still bring it back
    bench.keeper.renew()
    assert (bench.lost, bench.keeper.lost) == (1, True)
    assert bench.reasons == [f"the lease could not be renewed for 10 s: {error}"]
    with pytest.raises(NotMasterError, match=r"^the lease could not be renewed for 10 s: "):
        bench.keeper.check_may_write()


def test_writing_is_allowed_again_where_a_renewal_succeeds_just_in_time(bench: Bench) -> None:
    bench.faults.fail(writes_to(LEASE), StoreBusyError("throttled"), times=2)
    for _ in range(3):
        bench.clock.advance(3)
        bench.keeper.renew()
    bench.clock.advance(9)
    assert bench.may_write()
    assert bench.lost == 0


def test_i2_a_renewal_that_comes_after_a_long_pause_counts_from_its_own_start(bench: Bench) -> None:
    def pause(_call: Call) -> None:
        bench.clock.advance(3600)

    bench.faults.do(writes_to(LEASE), pause, after=True)
    bench.keeper.renew()  # landed an hour ago, by the time that its answer is read
    assert not bench.may_write()


def test_i2_a_stolen_lease_stops_writing_at_the_next_renewal_and_is_not_taken_back(bench: Bench) -> None:
    bench.steal()
    assert bench.may_write()  # not known yet: fences keep its writes out meanwhile
    bench.keeper.renew()
    assert (bench.may_write(), bench.lost, bench.keeper.lost) == (False, 1, True)
    stolen = bench.table.read()
    bench.keeper.renew()
    bench.keeper.release(clean=True)
    assert bench.table.read() == stolen
    assert bench.reasons == ["the lease was lost to another session"]


def test_check_holds_lease_asks_the_table(bench: Bench) -> None:
    bench.keeper.check_holds_lease()
    bench.steal()
    with pytest.raises(NotMasterError):
        bench.keeper.check_holds_lease()
    assert (bench.may_write(), bench.lost) == (False, 1)


def test_check_holds_lease_raises_for_a_lease_that_was_given_back(bench: Bench) -> None:
    bench.store.write(Update(LEASE, set={"released": True}))
    with pytest.raises(NotMasterError):
        bench.keeper.check_holds_lease()


# --- the signal counter ---


def test_a_signal_is_delivered_by_the_next_renewal_once(bench: Bench) -> None:
    bench.keeper.renew()
    assert bench.signals == 0
    bench.table.signal()
    bench.table.signal()
    bench.keeper.renew()
    bench.keeper.renew()
    assert bench.signals == 1
    bench.table.signal()
    bench.keeper.renew()
    assert bench.signals == 2


def test_a_signal_is_delivered_where_the_answer_to_a_renewal_was_lost(bench: Bench) -> None:
    bench.table.signal()
    bench.faults.fail(writes_to(LEASE), StoreOutcomeUnknownError("no answer"), after=True)
    bench.keeper.renew()
    assert bench.signals == 0
    bench.keeper.renew()
    assert bench.signals == 1


def test_the_signal_counter_outlives_holders(bench: Bench) -> None:
    bench.table.signal()
    bench.keeper.release(clean=True)
    bench.table.signal()
    successor = LeaseKeeper(bench.table, "next", LeaseTimes(), bench.clock)
    _, lease = successor.acquire(lambda: True)
    assert lease.signal == 2


# --- client-go: TestReleaseLease, TestReleaseOnCancellation, TestReleaseMethodCallsGet ---


@pytest.mark.parametrize("clean", [True, False])
def test_release_gives_the_lease_back_and_says_how(bench: Bench, *, clean: bool) -> None:
    bench.keeper.start(bench.clock.epoch_seconds() + 800)
    bench.keeper.release(clean=clean)
    lease = bench.table.read()
    assert (lease.holder, lease.released, lease.clean) == ("me", True, clean)
    assert not bench.may_write()


def test_release_leaves_an_unreachable_lease_to_expire_which_is_not_clean(bench: Bench) -> None:
    bench.faults.fail(writes_to(LEASE), StoreBusyError("throttled"))
    bench.keeper.release(clean=True)
    lease = bench.table.read()
    assert (lease.released, lease.clean) == (False, False)
    assert not bench.may_write()


def test_release_does_not_give_back_a_lease_that_could_not_be_renewed_in_time(bench: Bench) -> None:
    bench.faults.fail(writes_to(LEASE), StoreBusyError("throttled"))
    bench.clock.advance(11)
    bench.keeper.renew()
    bench.keeper.release(clean=True)
    assert bench.table.read().released is False


def test_nothing_is_written_after_giving_up_writing_though_the_lease_is_held(bench: Bench) -> None:
    bench.keeper.give_up_writing()
    assert not bench.may_write()
    assert bench.lost == 0


def test_renewing_goes_on_by_itself_and_a_lost_lease_is_told_once() -> None:
    clock = ThreadScheduler()
    faults = StoreFaults()
    table = LeaseTable(MemoryStore(clock=clock, faults=faults), "0")
    renewed, told = threading.Semaphore(0), threading.Semaphore(0)
    keeper = LeaseKeeper(table, "me", LeaseTimes(duration=5, renew_every=0.01), clock)
    keeper.acquire(lambda: True)
    faults.do(writes_to(LEASE), lambda _call: renewed.release(), after=True, times=None)
    keeper.on_lost = lambda reason: told.release()
    keeper.start(clock.epoch_seconds() + 10)
    for _ in range(4):
        assert renewed.acquire(timeout=120)
    table.release(table.read(), clean=False)  # by a person, say
    assert told.acquire(timeout=120)
    keeper.release(clean=True)
    assert not told.acquire(blocking=False)
    assert (table.read().released, table.read().clean) == (True, False)
