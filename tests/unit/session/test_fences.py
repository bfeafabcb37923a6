"""I2: fences are raised only by whoever holds the lease, in the same transaction, many at a time."""

import pytest

from harness.fakes.fencing import raise_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import Call, MemoryStore
from harness.fakes.store_faults import StoreFaults, writes_to
from kubesync.aws.dynamodb.store import Key
from kubesync.aws.fencing.take_over import Fencing, raise_fences, retry_while_throttled
from kubesync.aws.tables.control.fences import fence_key, shard_fence_key
from kubesync.aws.tables.control.lease import LeaseTable, lease_check, lease_key
from kubesync.domain.errors import FencedOutError, NotMasterError, StoreBusyError, StoreOutcomeUnknownError


def a_store_with_master(epoch: int, faults: StoreFaults | None = None) -> MemoryStore:
    store = MemoryStore(clock=ManualClock(), faults=faults)
    table = LeaseTable(store, "0")
    table.take(table.read(), "somebody", epoch, 10_000)
    return store


def fencing(store: MemoryStore, epoch: int = 7) -> Fencing:
    clock = ManualClock()
    return Fencing(
        store,
        "0",
        epoch,
        "somebody",
        lambda call: retry_while_throttled(call, lambda: None, clock, clock.monotonic() + 60.0),
    )


def epochs(store: MemoryStore, *places: Key) -> list[object]:
    items = [store.get(place) for place in places]
    return [None if item is None else item["epoch"] for item in items]


def fences_of(call: Call) -> list[Key]:
    return [action.key for action in call.actions if action.key.sort == "fence"]


def test_i2_fence_is_raised_by_the_holder_of_the_lease() -> None:
    store = a_store_with_master(7)
    raise_fences(store, [fence_key("prod")], 7, lease_check("0", 7, "somebody"))
    # An answer was lost: the same again is fine.
    raise_fences(store, [fence_key("prod")], 7, lease_check("0", 7, "somebody"), {fence_key("prod")})
    assert epochs(store, fence_key("prod")) == [7]


def test_i2_session_that_drew_the_epoch_of_another_is_refused_at_its_fence() -> None:
    store = a_store_with_master(7)
    raise_fences(store, [fence_key("prod")], 7, lease_check("0", 7, "somebody"))
    # The counter was restored to what it was before the last epoch was drawn.
    table = LeaseTable(store, "0")
    table.take(table.read(), "successor", 7, 20_000)
    with pytest.raises(FencedOutError) as refused:
        raise_fences(store, [fence_key("other"), fence_key("prod")], 7, lease_check("0", 7, "successor"))
    assert refused.value.epoch == 7
    assert epochs(store, fence_key("other")) == [None]


def test_i2_answer_that_is_lost_while_fences_are_raised_keeps_nobody_out() -> None:
    store = a_store_with_master(7)
    made = fencing(store)
    made.take_over(["prod"])
    made.raised.clear()
    made.ensure_raised("prod")
    assert made.raised == {"prod"}


def test_i2_master_that_lost_the_lease_fences_no_cluster_that_its_successor_does_not_know() -> None:
    store = a_store_with_master(7)
    table = LeaseTable(store, "0")
    table.take(table.read(), "successor", 8, 20_000)
    with pytest.raises(NotMasterError):
        raise_fences(store, [fence_key("new")], 7, lease_check("0", 7, "somebody"))
    assert store.get(fence_key("new")) is None


def test_i2_master_that_lost_the_lease_raises_no_fence_though_its_epoch_was_drawn_once_more() -> None:
    store = a_store_with_master(7)
    table = LeaseTable(store, "0")
    table.take(table.read(), "successor", 7, 20_000)  # the counter of epochs was lost meanwhile
    with pytest.raises(NotMasterError, match="lost to another session"):
        fencing(store).take_over(["prod"])
    assert epochs(store, fence_key("prod")) == [None]


def test_i2_fence_of_a_later_master_is_not_lowered() -> None:
    store = a_store_with_master(7)
    raise_fence(store, "prod", 9)
    with pytest.raises(NotMasterError):
        raise_fences(store, [fence_key("other"), fence_key("prod")], 7, lease_check("0", 7, "somebody"))
    assert epochs(store, fence_key("prod"), fence_key("other")) == [9, None]


def test_those_that_are_raised_already_do_not_keep_others_from_being_raised() -> None:
    store = a_store_with_master(7)
    raise_fence(store, "b", 7)
    raise_fence(store, "c", 3)
    fences = [fence_key("a"), fence_key("b"), fence_key("c")]
    raise_fences(store, fences, 7, lease_check("0", 7, "somebody"), {fence_key("b")})
    assert epochs(store, fence_key("a"), fence_key("b"), fence_key("c")) == [7, 7, 7]


def test_i2_take_over_raises_the_fence_of_the_shard_and_of_all_clusters_in_few_transactions() -> None:
    store = a_store_with_master(7)
    names = [f"c{n:03d}" for n in range(150)]
    store.calls.clear()
    made = fencing(store)
    made.take_over(names)
    assert [len(fences_of(call)) for call in store.calls] == [99, 52]
    assert all(call.actions[-1] == lease_check("0", 7, "somebody") for call in store.calls)
    assert fences_of(store.calls[0])[0] == shard_fence_key("0") == Key("control", "lease#0", "fence")
    assert epochs(store, *(fence_key(name) for name in names)) == [7] * 150
    assert made.raised == set(names)


def test_i2_take_over_of_no_cluster_raises_the_fence_of_the_shard() -> None:
    store = a_store_with_master(7)
    fencing(store).take_over([])
    assert epochs(store, shard_fence_key("0")) == [7]


def test_fence_in_use_by_who_is_shut_out_holds_up_itself_alone() -> None:
    faults = StoreFaults()
    store = a_store_with_master(7, faults)
    faults.fail(writes_to(fence_key("c5")), StoreBusyError("TransactionConflict"), times=4)
    store.calls.clear()
    fencing(store).take_over([f"c{n}" for n in range(7)])  # and the shard's: eight
    # Halves until it is alone (refused: 8, the second 4, the second 2, 1), then again until it is free.
    assert epochs(store, shard_fence_key("0"), *(fence_key(f"c{n}") for n in range(7))) == [7] * 8
    assert [len(fences_of(call)) for call in store.calls if call.actions] == [8, 4, 4, 2, 2, 1, 1, 1]


def test_i2_answer_that_is_lost_is_no_reason_to_read_before_the_fences_are_raised() -> None:
    faults = StoreFaults()
    store = a_store_with_master(7, faults)
    faults.fail(writes_to(fence_key("prod")), StoreOutcomeUnknownError("no answer"), after=True, times=1)
    fencing(store).take_over(["prod", "other"])
    assert epochs(store, shard_fence_key("0"), fence_key("prod"), fence_key("other")) == [7, 7, 7]


def test_i2_take_over_ends_where_the_lease_is_another_s() -> None:
    store = a_store_with_master(8)
    with pytest.raises(NotMasterError):
        fencing(store, epoch=7).take_over(["prod"])
    assert epochs(store, shard_fence_key("0"), fence_key("prod")) == [None, None]
    assert store.get(lease_key("0")) is not None
