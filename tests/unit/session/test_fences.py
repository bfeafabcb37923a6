"""I2: a fence is raised only by whoever holds the lease, in the same transaction."""

from __future__ import annotations

import pytest

from kubesync.aws.fences import fence_key, raise_fence
from kubesync.aws.lease import LeaseTable, held_check
from kubesync.domain.errors import NotMasterError
from support.manual_clock import ManualClock
from support.memory_store import MemoryStore


def a_store_with_master(epoch: int) -> MemoryStore:
    store = MemoryStore(clock=ManualClock())
    table = LeaseTable(store, "0")
    table.take(table.read(), "somebody", epoch, 10_000)
    return store


def test_i2_fence_is_raised_by_the_holder_of_the_lease() -> None:
    store = a_store_with_master(7)
    raise_fence(store, "prod", 7, held_check("0", 7))
    raise_fence(store, "prod", 7, held_check("0", 7))  # an answer was lost: the same again is fine
    item = store.get(fence_key("prod"))
    assert item is not None
    assert item["epoch"] == 7


def test_i2_master_that_lost_the_lease_fences_no_cluster_that_its_successor_does_not_know() -> None:
    store = a_store_with_master(7)
    table = LeaseTable(store, "0")
    table.take(table.read(), "successor", 8, 20_000)
    with pytest.raises(NotMasterError):
        raise_fence(store, "new", 7, held_check("0", 7))
    assert store.get(fence_key("new")) is None


def test_i2_fence_of_a_later_master_is_not_lowered() -> None:
    store = a_store_with_master(7)
    raise_fence(store, "prod", 9)
    with pytest.raises(NotMasterError):
        raise_fence(store, "prod", 7, held_check("0", 7))
