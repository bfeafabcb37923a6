"""What a taken lease says of the time before, and taking it again above a fence (I2, I10)."""

import pytest

from harness.fakes.lease_bench import LeaseBench
from kubesync.aws.dynamodb.store import CONTROL, Key
from kubesync.aws.tables.control.lease import Lease, LeaseTable, lease_key
from kubesync.domain.errors import NotMasterError

LEASE = lease_key("0")
EPOCH = Key(CONTROL, "lease", "epoch")


@pytest.fixture
def bench() -> LeaseBench:
    return LeaseBench()


# --- how long there was no master ---


def test_first_session_has_no_gap(bench: LeaseBench) -> None:
    keeper, before, _ = bench.take()
    assert keeper.seconds_since(before) is None


def test_gap_counts_from_the_release(bench: LeaseBench) -> None:
    keeper, _, _ = bench.take("other")
    bench.clock.advance(7)
    assert keeper.release(clean=True)
    bench.clock.advance(0.25)
    mine, before, _ = bench.take()
    assert mine.seconds_since(before) == 0.25


def test_gap_after_a_master_that_died_counts_from_its_last_renewal(bench: LeaseBench) -> None:
    bench.other(ends_in=800)
    bench.clock.advance(16)
    mine, before, _ = bench.take()
    bench.clock.advance(2)
    assert mine.seconds_since(before) == 18.0


@pytest.mark.parametrize(
    ("pause_seconds", "to_settle"), [(0.25, ("Z1",)), (300.0, ("Z1",)), (301.0, None), (864_000.0, None)]
)
def test_i2_after_a_long_pause_all_zones_are_to_be_settled(
    bench: LeaseBench, pause_seconds: float, to_settle: tuple[str, ...] | None
) -> None:
    keeper, _, _ = bench.take("other")
    assert keeper.release(clean=True, unsettled=["Z1"])
    bench.clock.advance(pause_seconds)
    mine, before, _ = bench.take()
    assert (mine.to_settle(before), before.to_settle) == (to_settle, ("Z1",))


def test_lease_that_does_not_say_when_it_was_released_counts_as_an_old_one(bench: LeaseBench) -> None:
    keeper, _, lease = bench.take("other")
    bench.table.release(lease, clean=True)
    mine, before, _ = bench.take()
    assert (mine.to_settle(before), before.to_settle) == (None, ())
    assert keeper.lease == lease


def test_first_session_has_nothing_to_settle(bench: LeaseBench) -> None:
    mine, before, _ = bench.take()
    assert mine.to_settle(before) == ()


# --- a fence above the session's epoch ---


def counter(bench: LeaseBench) -> object:
    item = bench.store.get(EPOCH)
    return None if item is None else item["value"]


def test_i10_lease_of_this_session_is_taken_again_above_the_fence(bench: LeaseBench) -> None:
    keeper, _, first = bench.take()
    bench.clock.advance(7.0)
    keeper.take_again(41)
    lease = bench.table.read()
    assert (lease.holder, lease.epoch, lease.renewal, lease.released) == ("me", 42, first.renewal + 1, False)
    assert keeper.lease == lease
    bench.clock.advance(9.5)
    keeper.check_may_write()  # the lease counts from when it was taken again
    keeper.renew()
    assert not keeper.lost


@pytest.mark.parametrize("expired", [False, True])
def test_i2_fence_of_a_successor_ends_the_session_and_nothing_is_written(bench: LeaseBench, *, expired: bool) -> None:
    keeper, _, _ = bench.take()
    bench.clock.advance(20.0)
    other = bench.other(ends_in=600)
    bench.clock.advance(100.0 if expired else 0.0)
    with pytest.raises(NotMasterError, match="lost to another session"):
        keeper.take_again(41)
    assert (bench.table.read(), counter(bench)) == (other, 2)
    assert keeper.lost


def test_i2_session_that_has_released_its_lease_takes_it_no_more(bench: LeaseBench) -> None:
    keeper, _, _ = bench.take()
    keeper.release(clean=True)
    with pytest.raises(NotMasterError):
        keeper.take_again(41)
    assert (bench.table.read().released, counter(bench)) == (True, 1)


def test_i2_counter_that_is_above_the_fence_already_never_goes_down(bench: LeaseBench) -> None:
    keeper, _, _ = bench.take()
    for _ in range(50):
        bench.table.draw_epoch()
    keeper.take_again(41)
    assert (bench.table.read().epoch, counter(bench)) == (52, 52)


def test_i2_successor_that_comes_while_the_counter_is_raised_keeps_the_lease(bench: LeaseBench) -> None:
    keeper, _, _ = bench.take()
    table, raise_epoch, came = bench.table, bench.table.raise_epoch, list[Lease]()

    class Interrupted(LeaseTable):
        def raise_epoch(self, at_least: int) -> None:
            raise_epoch(at_least)
            came.append(bench.other(ends_in=600))

    keeper.table = Interrupted(bench.store, "0")
    with pytest.raises(NotMasterError):
        keeper.take_again(41)
    assert table.read() == came[0]
    assert came[0].epoch == 42
