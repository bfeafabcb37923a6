"""Fences raised by hand, past any lease."""

from typing import Final

from kubesync.aws.dynamodb.store import CONTROL, Absent, Check, Key, Put, Store
from kubesync.aws.tables.control.fences import fence_key, shard_fence_key

NO_LEASE: Final = Check(Key(CONTROL, "test", "no lease"), (Absent(),))
"""Holds always: for ``raise_fences`` where a lease is not what a test is about."""


def raise_fence(store: Store, cluster: str, epoch: int) -> None:
    """What stands after a master of this epoch has fenced a cluster."""
    store.write(Put(fence_key(cluster), {"epoch": epoch}))


def raise_shard_fence(store: Store, epoch: int, shard: str = "0") -> None:
    """The same of what belongs to zone and shard."""
    store.write(Put(shard_fence_key(shard), {"epoch": epoch}))
