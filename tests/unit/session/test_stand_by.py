"""Taking the lease and standing by for it. Names follow client-go's leaderelection_test where it has a counterpart."""

import math
from dataclasses import replace

import pytest

from harness.fakes.lease_bench import LeaseBench
from harness.fakes.memory_store import LandLater
from harness.fakes.store_faults import Wanted, names, writes_to
from kubesync.aws.dynamodb.store import CONTROL, Key, Update
from kubesync.aws.tables.control.lease import lease_key
from kubesync.domain.errors import NotMasterError, StoreBusyError, StoreOutcomeUnknownError
from kubesync.session.lease_keeper import LeaseTimes

LEASE = lease_key("0")
EPOCH = Key(CONTROL, "lease", "epoch")


@pytest.fixture
def bench() -> LeaseBench:
    return LeaseBench()


# --- client-go: TestTryAcquireOrRenew ---


def test_acquire_takes_a_lease_that_nobody_ever_held(bench: LeaseBench) -> None:
    _, before, lease = bench.take()
    assert (before.holder, before.released, before.clean) == ("", True, True)
    assert (lease.holder, lease.epoch, lease.released, lease.clean) == ("me", 1, False, False)
    assert bench.table.read() == lease
    assert bench.clock.slept == []


def test_acquire_takes_a_lease_of_which_only_a_signal_is_there_and_keeps_the_signal(bench: LeaseBench) -> None:
    bench.table.signal()
    _, _, lease = bench.take()
    assert (lease.holder, lease.signal) == ("me", 1)


@pytest.mark.parametrize("clean", [True, False])
def test_acquire_takes_a_released_lease_and_says_whether_its_end_was_clean(bench: LeaseBench, *, clean: bool) -> None:
    bench.table.release(bench.other(ends_in=600), clean=clean)
    _, before, lease = bench.take()
    assert (before.holder, before.released, before.clean) == ("other", True, clean)
    assert (lease.holder, lease.epoch) == ("me", 2)
    assert bench.clock.slept == []


def test_acquire_takes_an_expired_lease_which_is_never_clean(bench: LeaseBench) -> None:
    bench.other(ends_in=600)
    bench.clock.advance(15)
    _, before, lease = bench.take()
    assert (before.released, before.clean, lease.holder, lease.epoch) == (False, False, "me", 2)


def test_acquire_gives_up_at_once_where_the_holder_goes_on_for_long(bench: LeaseBench) -> None:
    held = bench.other(ends_in=61)
    with pytest.raises(NotMasterError, match="session other is the master"):
        bench.take()
    assert (bench.clock.slept, bench.table.read()) == ([], held)


def test_acquire_draws_no_epoch_while_another_holds_the_lease(bench: LeaseBench) -> None:
    bench.other(ends_in=600)
    with pytest.raises(NotMasterError):
        bench.take()
    assert bench.table.draw_epoch() == 2


def test_acquire_leaves_a_lease_to_whoever_was_quicker(bench: LeaseBench) -> None:
    quick = bench.keeper("quick")
    bench.faults.do(writes_to(LEASE), lambda _call: quick.acquire(bench.may_wait) and None)
    with pytest.raises(NotMasterError):
        bench.take()
    assert bench.table.read().holder == "quick"
    # The epoch that was drawn and not used does no harm: the next one is above both.
    assert bench.table.read().epoch == 2
    assert bench.table.draw_epoch() == 3


# --- standing by ---


def test_acquire_stands_by_for_a_holder_that_ends_soon_and_takes_over_within_a_poll(bench: LeaseBench) -> None:
    held = bench.other(ends_in=60)

    def may_wait() -> bool:
        bench.waits += 1
        if bench.waits == 8:
            bench.table.release(held, clean=True)
        return True

    before, lease = bench.keeper().acquire(may_wait)
    assert (before.clean, lease.holder) == (True, "me")
    # Released after the eighth look, taken at the ninth: a quarter of a second later.
    assert bench.clock.slept == [0.25] * 8


def test_acquire_stands_by_for_60_seconds_and_no_longer(bench: LeaseBench) -> None:
    held = bench.other(ends_in=60)

    def renewing() -> bool:
        # The holder overruns: it renews every poll and never ends.
        now_ms = int(bench.clock.epoch_seconds() * 1000)
        bench.table.renew(held, now_ms + 15_000, held.ends_at_ms)
        return True

    with pytest.raises(NotMasterError):
        bench.keeper().acquire(renewing)
    assert sum(bench.clock.slept) == 60


def test_acquire_stands_by_as_long_as_the_setting_says(bench: LeaseBench) -> None:
    bench.other(ends_in=3)
    with pytest.raises(NotMasterError):
        bench.take(times=LeaseTimes(stand_by=2))
    assert bench.clock.slept == []
    with pytest.raises(NotMasterError):
        bench.take(times=LeaseTimes(stand_by=3))
    assert sum(bench.clock.slept) == 3


def test_acquire_stops_standing_by_when_the_process_may_not_wait(bench: LeaseBench) -> None:
    bench.other(ends_in=30)
    answers = iter([True, True, False])
    with pytest.raises(NotMasterError):
        bench.keeper().acquire(lambda: next(answers))
    assert bench.clock.slept == [0.25, 0.25]


def test_acquire_takes_over_from_a_holder_that_dies_while_it_stands_by(bench: LeaseBench) -> None:
    bench.other(ends_in=30)
    _, before, lease = bench.take()
    assert (before.released, lease.holder) == (False, "me")
    assert sum(bench.clock.slept) == 15


# --- standing by for as long as it takes (kubesync run) ---

PATIENT = LeaseTimes(stand_by=math.inf)
DOLLARS_A_READ = 0.125e-6  # docs/cost.md
MONTH_SECONDS = 2_628_000


def test_standing_by_for_an_hour_takes_so_many_reads_and_a_month_of_it_less_than_20_cents(bench: LeaseBench) -> None:
    """The holder renews every 5 s; its sessions end every 840 s, each half a second after its time, and follow one another."""
    began = bench.clock.monotonic()
    held = [bench.other(ends_in=840)]
    renewed, ended = [began], [began]

    def living() -> bool:
        now = bench.clock.monotonic()
        now_ms = int(bench.clock.epoch_seconds() * 1000)
        if now - ended[0] >= 840.5:
            ended[0] = renewed[0] = now
            held[0] = bench.other(ends_in=840)
        elif now - renewed[0] >= 5:
            renewed[0] = now
            held[0] = bench.table.renew(held[0], now_ms + 15_000, held[0].ends_at_ms)
        return now - began < 3600

    with pytest.raises(NotMasterError):
        bench.keeper(times=PATIENT).acquire(living)
    reads = len(bench.clock.slept) + 1
    assert reads == 1828
    assert round(reads / 3600 * MONTH_SECONDS * DOLLARS_A_READ, 2) == 0.17


@pytest.mark.parametrize("ends_in", [None, 3600.0])
def test_patient_stand_by_waits_whoever_holds_the_lease_and_takes_it_the_moment_it_expires(
    bench: LeaseBench, ends_in: float | None
) -> None:
    if ends_in is None:  # it was just taken: nobody knows yet when its session ends
        now_ms = int(bench.clock.epoch_seconds() * 1000)
        bench.table.take(bench.table.read(), "other", bench.table.draw_epoch(), now_ms + 14_500)
    else:
        bench.other(ends_in=ends_in, expires_in=14.5)
    _, before, lease = bench.take(times=PATIENT)
    assert (before.released, lease.holder, sum(bench.clock.slept)) == (False, "me", 14.5)


def test_patient_stand_by_does_not_oversleep_a_lease_that_expires_in_a_moment(bench: LeaseBench) -> None:
    bench.other(ends_in=3600.0, expires_in=14.1)
    bench.take(times=PATIENT)
    assert sum(bench.clock.slept) == pytest.approx(14.1, abs=0.01)


def test_patient_stand_by_polls_often_once_the_session_should_end(bench: LeaseBench) -> None:
    held = bench.other(ends_in=9.5)

    def may_wait() -> bool:
        bench.waits += 1
        if bench.waits == 9:
            bench.table.release(held, clean=True)
        return True

    _, lease = bench.keeper(times=PATIENT).acquire(may_wait)
    assert lease.holder == "me"
    assert bench.clock.slept == [2.0, 2.0, 2.0, 2.0, 0.5, 0.25, 0.25, 0.25, 0.25]


# --- clocks (correctness never depends on them) ---


def test_acquire_takes_over_from_a_dead_holder_whose_clock_was_far_ahead(bench: LeaseBench) -> None:
    bench.other(ends_in=3600 + 800, expires_in=3600 + 15)
    _, before, lease = bench.take()
    assert (before.holder, lease.holder) == ("other", "me")
    # Longer than a lease and a renewal last, by our own clock.
    assert sum(bench.clock.slept) == 20.25


def test_acquire_leaves_a_living_holder_alone_whose_clock_is_far_ahead(bench: LeaseBench) -> None:
    held = bench.other(ends_in=3600 + 800, expires_in=3600 + 15)

    def renewing() -> bool:
        bench.waits += 1
        if bench.waits == 20:
            bench.table.renew(held, held.expires_at_ms + 5000, held.ends_at_ms)
        return True

    with pytest.raises(NotMasterError):
        bench.keeper().acquire(renewing)
    assert sum(bench.clock.slept) == 5


# --- answers that are lost ---


def test_acquire_finds_that_a_take_whose_answer_was_lost_had_landed(bench: LeaseBench) -> None:
    bench.table.release(bench.other(ends_in=600), clean=True)
    bench.faults.fail(writes_to(LEASE), StoreOutcomeUnknownError("no answer"), after=True)
    keeper, before, lease = bench.take()
    assert (before.holder, before.clean, lease.holder, lease.epoch) == ("other", True, "me", 2)
    assert bench.table.draw_epoch() == 3  # one epoch was enough
    # Writing is allowed for 10 s from the start of that try, not from when it was found to have landed.
    bench.clock.advance(9.75)
    keeper.check_may_write()
    bench.clock.advance(0.01)
    with pytest.raises(NotMasterError):
        keeper.check_may_write()


def test_acquire_tries_again_where_a_take_whose_answer_was_lost_had_not_landed(bench: LeaseBench) -> None:
    bench.faults.fail(writes_to(LEASE), StoreOutcomeUnknownError("no answer"))
    _, before, lease = bench.take()
    assert (before.holder, lease.epoch, bench.table.read()) == ("", 2, lease)


def test_acquire_adopts_a_take_that_lands_late(bench: LeaseBench) -> None:
    bench.table.release(bench.other(ends_in=600), clean=True)
    bench.faults.fail(writes_to(LEASE), LandLater())

    def land() -> bool:
        assert bench.store.land()
        return True

    before, lease = bench.keeper().acquire(land)
    assert (before.holder, before.clean, lease.holder, lease.epoch) == ("other", True, "me", 2)


@pytest.mark.parametrize("busy", [names(EPOCH), names(LEASE)], ids=["epoch", "lease"])
def test_acquire_goes_on_where_the_table_is_throttled_for_a_while(bench: LeaseBench, busy: Wanted) -> None:
    bench.faults.fail(busy, StoreBusyError("throttled"), times=4)
    _, _, lease = bench.take()
    assert lease.holder == "me"
    assert bench.clock.slept == [0.25] * 4


def test_acquire_says_that_the_table_is_throttled_where_that_does_not_end(bench: LeaseBench) -> None:
    bench.faults.fail(names(LEASE), StoreBusyError("throttled"), times=None)
    with pytest.raises(StoreBusyError):
        bench.take()
    assert sum(bench.clock.slept) == 60


def test_acquire_survives_an_epoch_that_was_drawn_without_an_answer(bench: LeaseBench) -> None:
    bench.faults.fail(names(EPOCH), StoreOutcomeUnknownError("no answer"), after=True)
    _, _, lease = bench.take()
    assert lease.epoch == 2


def test_raise_epoch_lifts_the_counter_and_never_lowers_it(bench: LeaseBench) -> None:
    bench.table.raise_epoch(41)
    assert bench.take()[2].epoch == 42
    bench.table.raise_epoch(7)
    assert bench.table.draw_epoch() == 43


def test_take_is_refused_for_a_lease_that_was_renewed_since_it_was_seen(bench: LeaseBench) -> None:
    held = bench.other(ends_in=600)
    bench.table.renew(held, held.expires_at_ms, held.ends_at_ms)
    with pytest.raises(NotMasterError):
        bench.table.take(held, "me", 9, 0)
    assert bench.table.read() == replace(held, renewal=held.renewal + 1)


def test_take_is_refused_where_the_item_vanished(bench: LeaseBench) -> None:
    held = bench.other(ends_in=600)
    bench.store.write(Update(LEASE, remove=("renewal", "holder")))
    with pytest.raises(NotMasterError):
        bench.table.take(held, "me", 9, 0)
