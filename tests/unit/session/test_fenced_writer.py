"""Every write of a master is fenced (I2) and repeated until its outcome is known (I1)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness.fakes.fencing import NO_LEASE, raise_fence, raise_shard_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import LandLater, MemoryStore
from harness.fakes.store_faults import StoreFaults, writes_to
from kubesync.aws.dynamodb.store import AUDIT, CONTROL, Absent, Action, Equals, Key, Put, Update
from kubesync.aws.fencing.take_over import raise_fences
from kubesync.aws.fencing.writer import FencedWriter, FenceQueues, StaleStateError
from kubesync.aws.tables.control.fences import fence_key
from kubesync.domain.errors import (
    NotMasterError,
    StoreBusyError,
    StoreError,
    StoreOutcomeUnknownError,
    StoreUnavailableError,
)

PLACE = Key(CONTROL, "test", "place")
COUNTER = Key(CONTROL, "test", "counter")
EPOCH = 7


class Bench:
    """A fenced_writer of epoch 7 and the store that it writes to."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.faults = StoreFaults()
        self.store = MemoryStore(clock=self.clock, faults=self.faults)
        self.checks = 0
        self.write_until = float("inf")
        self.fenced_writer = FencedWriter(self.store, EPOCH, self._may_write, self.clock)
        for cluster in ("prod", "other"):
            raise_fence(self.store, cluster, EPOCH)

    def _may_write(self) -> None:
        self.checks += 1
        if self.clock.monotonic() > self.write_until:
            raise NotMasterError("the lease could not be renewed in time")

    def put(self, *, token: str = "t1", clusters: tuple[str, ...] = ("prod",), value: int = 1) -> None:
        """Make the place, which must not be there yet, and count up."""
        actions: list[Action] = [
            Put(PLACE, {"tx": token, "value": value}, (Absent(),)),
            Update(COUNTER, add={"value": 1}),
        ]
        self.fenced_writer.run(clusters, actions, token)

    def stored(self) -> tuple[object, object]:
        place, counter = self.store.get(PLACE), self.store.get(COUNTER)
        return (None if place is None else place["value"], None if counter is None else counter["value"])


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_run_writes_everything_once(bench: Bench) -> None:
    bench.put()
    assert bench.stored() == (1, 1)
    assert [call.operation for call in bench.store.calls if call.token] == ["transact_write_items"]


@pytest.mark.parametrize("fenced", ["prod", "other"])
def test_i2_run_is_refused_whole_where_one_of_its_fences_was_raised(bench: Bench, fenced: str) -> None:
    raise_fence(bench.store, fenced, EPOCH + 1)
    with pytest.raises(NotMasterError):
        bench.put(clusters=("prod", "other"))
    assert bench.stored() == (None, None)


def test_i2_run_is_refused_where_a_fence_is_missing(bench: Bench) -> None:
    with pytest.raises(NotMasterError):
        bench.put(clusters=("unheard-of",))
    assert bench.stored() == (None, None)


def test_i2_run_sends_nothing_once_the_lease_may_be_lost(bench: Bench) -> None:
    bench.write_until = 0.0
    with pytest.raises(NotMasterError):
        bench.put()
    assert not any(call.token for call in bench.store.calls)


def test_i2_run_stops_repeating_when_the_lease_may_be_lost(bench: Bench) -> None:
    bench.write_until = bench.clock.monotonic() + 10
    bench.faults.fail(writes_to(PLACE), StoreBusyError("throttled"), times=None)
    with pytest.raises(NotMasterError):
        bench.put()
    # Backoff doubles from 0.1 s with jitter of a half: the last try came within the time, none after it.
    assert bench.clock.slept
    assert sum(bench.clock.slept[:-1]) <= 10
    assert all(0.05 <= pause <= 7.5 for pause in bench.clock.slept)


def test_i2_a_fence_is_only_raised(bench: Bench) -> None:
    place = fence_key("prod")
    raise_fences(bench.store, [place], EPOCH, NO_LEASE, {place})  # to what it is: fine, an answer may have been lost
    with pytest.raises(NotMasterError):
        raise_fences(bench.store, [place], EPOCH - 1, NO_LEASE)
    item = bench.store.get(fence_key("prod"))
    assert item is not None
    assert item["epoch"] == EPOCH


def test_i2_run_for_no_cluster_is_refused_where_the_fence_of_the_shard_was_raised(bench: Bench) -> None:
    with pytest.raises(NotMasterError):
        bench.put(clusters=())
    raise_shard_fence(bench.store, EPOCH)
    bench.put(clusters=())
    raise_shard_fence(bench.store, EPOCH + 1)
    with pytest.raises(NotMasterError):
        bench.put(clusters=(), token="t2")
    assert bench.stored() == (1, 1)


def test_run_repeats_what_was_throttled_or_collided(bench: Bench) -> None:
    bench.faults.fail(writes_to(PLACE), StoreBusyError("throttled"), times=3)
    bench.put()
    assert bench.stored() == (1, 1)
    assert len(bench.clock.slept) == 3


def test_run_finds_that_a_lost_answer_had_landed_and_does_not_repeat(bench: Bench) -> None:
    bench.faults.fail(writes_to(PLACE), StoreOutcomeUnknownError("no answer"), after=True)
    bench.put()
    assert bench.stored() == (1, 1)


def test_run_repeats_what_had_not_landed_with_the_same_token(bench: Bench) -> None:
    bench.faults.fail(writes_to(PLACE), StoreOutcomeUnknownError("no answer"))
    bench.put()
    assert bench.stored() == (1, 1)
    assert [call.token for call in bench.store.calls if call.token] == ["t1", "t1"]


def test_i1_what_may_have_landed_is_repeated_behind_others_though_the_callers_time_is_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.faults.fail(writes_to(PLACE), StoreOutcomeUnknownError("no answer"))
    waits: list[float] = []

    @contextmanager
    def behind_others(_queues: FenceQueues, _places: object, give_up: Callable[[], None]) -> Iterator[None]:
        if waits:
            bench.clock.advance(5.0)
            give_up()
        waits.append(bench.clock.monotonic())
        yield

    monkeypatch.setattr(FenceQueues, "at", behind_others)
    bench.fenced_writer.run(("prod",), [Put(PLACE, {"tx": "t1", "value": 1}, (Absent(),))], "t1", until_monotonic=2.0)

    assert bench.stored() == (1, None)
    assert len(waits) == 2


def test_run_is_not_written_twice_where_the_first_try_lands_late(bench: Bench) -> None:
    bench.faults.fail(writes_to(PLACE), LandLater())
    bench.put()
    assert bench.stored() == (1, 1)
    bench.store.land()
    assert bench.stored() == (1, 1)


def test_run_finds_that_it_had_landed_when_the_repeat_is_refused_after_the_token_was_forgotten(bench: Bench) -> None:
    def lose_and_wait(_call: object) -> None:
        bench.clock.advance(700)  # DynamoDB forgets tokens after ten minutes
        raise StoreOutcomeUnknownError("no answer")

    bench.faults.do(writes_to(PLACE), lose_and_wait, after=True)
    # Nor can the table be read: not after the lost answer, and not after the repeat was refused.
    bench.faults.fail(lambda call: PLACE in call.keys, StoreBusyError("throttled"), times=2)
    bench.put()
    assert bench.stored() == (1, 1)
    assert [call.operation for call in bench.store.calls if call.keys or call.token] == [
        "transact_write_items",
        "get_item",
        "transact_write_items",
        "get_item",
        "transact_write_items",
        "get_item",
        "get_item",
        "get_item",
    ]


@pytest.mark.parametrize("landed", [True, False])
def test_run_without_a_marked_item_judges_by_its_audit_item(bench: Bench, *, landed: bool) -> None:
    audit = Key(AUDIT, "changes#prod#2027-01-15", "at#session#t1")
    bench.faults.fail(writes_to(audit), StoreOutcomeUnknownError("no answer"), after=landed)
    bench.fenced_writer.run(["prod"], [Update(COUNTER, add={"value": 1}), Put(audit, {"v": 1})], "t1")
    assert bench.stored() == (None, 1)


def test_run_says_what_is_stale(bench: Bench) -> None:
    bench.put()
    with pytest.raises(StaleStateError) as stale:
        bench.put(token="t2", value=2)
    assert stale.value.places == (PLACE,)
    assert bench.stored() == (1, 1)


def test_run_prefers_not_master_to_stale(bench: Bench) -> None:
    bench.put()
    raise_fence(bench.store, "prod", EPOCH + 1)
    with pytest.raises(NotMasterError):
        bench.put(token="t2", value=2)


@pytest.mark.parametrize("error", [StoreUnavailableError("no such table"), ValueError("a fault of ours")])
def test_run_does_not_repeat_what_cannot_succeed(bench: Bench, error: Exception) -> None:
    bench.faults.fail(writes_to(PLACE), error, times=None)
    with pytest.raises(type(error)):
        bench.put()
    assert bench.clock.slept == []


def test_write_without_lease_check_works_though_the_lease_is_lost(bench: Bench) -> None:
    bench.write_until = 0.0
    bench.fenced_writer.write_without_lease_check("prod", [Update(COUNTER, add={"value": 1})], "t1")
    assert bench.stored() == (None, 1)


def test_i2_write_without_lease_check_is_refused_where_another_master_is_fenced_in(bench: Bench) -> None:
    raise_fence(bench.store, "prod", EPOCH + 1)
    with pytest.raises(NotMasterError):
        bench.fenced_writer.write_without_lease_check("prod", [Update(COUNTER, add={"value": 1})], "t1")
    assert bench.stored() == (None, None)


def test_write_without_lease_check_tries_once(bench: Bench) -> None:
    bench.faults.fail(writes_to(COUNTER), StoreBusyError("throttled"), times=None)
    with pytest.raises(StoreError):
        bench.fenced_writer.write_without_lease_check("prod", [Update(COUNTER, add={"value": 1})], "t1")
    assert bench.clock.slept == []


def test_conditions_of_a_transaction_hold_for_its_own_items_only(bench: Bench) -> None:
    bench.put()
    guarded = Put(PLACE, {"tx": "t2", "value": 2}, (Equals("value", 1),))
    bench.fenced_writer.run(["prod"], [guarded], "t2")
    assert bench.stored() == (2, 1)
