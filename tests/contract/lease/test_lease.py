"""The lease and the fences, on every store: one holder at a time, epochs that only rise, signals that are kept."""

import contextlib
import threading

import pytest

from harness.fakes.fencing import NO_LEASE
from kubesync.aws.dynamodb.store import CONTROL, Key, Put, Store
from kubesync.aws.fencing.take_over import raise_fences
from kubesync.aws.tables.control.fences import fence_check, fence_key
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.domain.errors import NotMasterError, TransactionRefusedError


def test_a_lease_that_was_never_held_is_free(store: Store, shard: str) -> None:
    lease = LeaseTable(store, shard).read()
    assert (lease.holder, lease.epoch, lease.renewal, lease.released, lease.clean, lease.signal) == (
        *("", 0, 0),
        *(True, True, 0),
    )


def test_take_renew_and_release(store: Store, shard: str) -> None:
    table = LeaseTable(store, shard)
    epoch = table.draw_epoch()
    taken = table.take(table.read(), "a", epoch, 1000)
    assert (taken.holder, taken.epoch, taken.released, taken.clean, taken.ends_at_ms) == ("a", epoch, False, False, 0)
    assert table.read() == taken
    renewed = table.renew(taken, 2000, 9000)
    assert (renewed.renewal, renewed.expires_at_ms, renewed.ends_at_ms) == (taken.renewal + 1, 2000, 9000)
    assert table.read() == renewed
    table.release(renewed, clean=True)
    released = table.read()
    assert (released.holder, released.released, released.clean) == ("a", True, True)
    with pytest.raises(NotMasterError):
        table.renew(renewed, 3000, 9000)


def test_take_is_refused_for_what_moved_since_it_was_seen(store: Store, shard: str) -> None:
    table = LeaseTable(store, shard)
    free = table.read()
    first = table.take(free, "a", table.draw_epoch(), 1000)
    for seen in (free, first):
        if seen is first:
            table.renew(first, 2000, 0)
        with pytest.raises(NotMasterError):
            table.take(seen, "b", table.draw_epoch(), 1000)
    assert table.read().holder == "a"


def test_one_of_many_takes_the_lease(store: Store, shard: str) -> None:
    table = LeaseTable(store, shard)
    free = table.read()
    start = threading.Barrier(8)
    won: list[str] = []

    def try_to_take(name: str) -> None:
        mine = LeaseTable(store, shard)
        epoch = mine.draw_epoch()
        start.wait(120)
        with contextlib.suppress(NotMasterError):
            won.append(mine.take(free, name, epoch, 1000).holder)

    threads = [threading.Thread(target=try_to_take, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert won == [table.read().holder]


def test_a_stolen_lease_can_neither_be_renewed_nor_released(store: Store, shard: str) -> None:
    table = LeaseTable(store, shard)
    mine = table.take(table.read(), "a", table.draw_epoch(), 1000)
    stolen = table.take(mine, "b", table.draw_epoch(), 2000)
    with pytest.raises(NotMasterError):
        table.renew(mine, 3000, 0)
    with pytest.raises(NotMasterError):
        table.release(mine, clean=True)
    assert table.read() == stolen


def test_zones_left_unsettled_are_told_to_the_next_holder_and_to_nobody_else(store: Store, shard: str) -> None:
    table = LeaseTable(store, shard)
    assert table.read().to_settle == (), "never held: nothing to settle"
    first = table.take(table.read(), "a", table.draw_epoch(), 1000)
    assert table.read().to_settle is None, "held: a holder that dies leaves all to settle"
    table.release(first, clean=True, unsettled=["Z2", "Z1"])
    # A release of kubesync that does not know the list sees an unclean end, and settles all.
    assert (table.read().clean, table.read().to_settle) == (False, ("Z1", "Z2"))
    second = table.take(table.read(), "b", table.draw_epoch(), 2000)
    assert second.to_settle is None
    table.release(second, clean=False, unsettled=["Z1"])
    assert table.read().to_settle is None, "the list of an earlier holder says nothing about this one"
    third = table.take(table.read(), "c", table.draw_epoch(), 3000)
    table.release(third, clean=True)
    assert (table.read().clean, table.read().to_settle) == (True, ())


def test_signals_are_counted_before_between_and_while_it_is_held(store: Store, shard: str) -> None:
    table = LeaseTable(store, shard)
    table.signal()
    taken = table.take(table.read(), "a", table.draw_epoch(), 1000)
    assert taken.signal == 1
    table.signal()
    renewed = table.renew(taken, 2000, 0)
    assert renewed.signal == 2
    table.release(renewed, clean=False)
    table.signal()
    again = table.take(table.read(), "b", table.draw_epoch(), 3000)
    assert again.signal == 3


def test_epochs_only_rise(store: Store, shard: str) -> None:
    table = LeaseTable(store, shard)
    first = table.draw_epoch()
    assert table.draw_epoch() == first + 1
    table.raise_epoch(first + 40)
    table.raise_epoch(first)
    assert table.draw_epoch() == first + 41


def test_shards_have_leases_of_their_own_and_epochs_in_common(store: Store, shard: str) -> None:
    one, other = LeaseTable(store, shard), LeaseTable(store, shard[:-1] + "z")
    one.take(one.read(), "a", one.draw_epoch(), 1000)
    assert other.read().holder == ""
    assert other.draw_epoch() > one.read().epoch


def test_i2_a_fence_lets_its_epoch_through_and_no_other(store: Store, shard: str) -> None:
    cluster, place = f"c-{shard}", Key(CONTROL, f"test#{shard}", "place")
    raise_fences(store, [fence_key(cluster)], 7, NO_LEASE)
    raise_fences(store, [fence_key(cluster)], 7, NO_LEASE, {fence_key(cluster)})
    store.transact([fence_check(cluster, 7), Put(place, {"value": 1})], f"a-{shard}")
    raise_fences(store, [fence_key(f"other-{shard}"), fence_key(cluster)], 9, NO_LEASE)
    for epoch in (7, 8, 10):
        with pytest.raises(TransactionRefusedError) as refused:
            store.transact([fence_check(cluster, epoch), Put(place, {"value": 2})], f"b{epoch}-{shard}")
        assert 0 in refused.value.failed
    with pytest.raises(NotMasterError):
        raise_fences(store, [fence_key(cluster)], 8, NO_LEASE)
    item, fence = store.get(place), store.get(fence_key(cluster))
    assert item is not None
    assert fence is not None
    assert (item["value"], fence["epoch"]) == (1, 9)
