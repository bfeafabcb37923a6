"""Fences: per cluster, the epoch of the master that may write for it (I2)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import cast

from kubesync.aws.store import CONTROL, AbsentOrBelow, Check, Equals, Key, Store, Update
from kubesync.domain.errors import ConditionFailedError, NotMasterError, StoreError, TransactionRefusedError


def fence_key(cluster: str) -> Key:
    return Key(CONTROL, f"cluster#{cluster}", "fence")


def fence_check(cluster: str, epoch: int) -> Check:
    """The first action of every transaction for a cluster."""
    return Check(fence_key(cluster), (Equals("epoch", epoch),))


def raise_fence(store: Store, cluster: str, epoch: int, lease: Check | None = None) -> None:
    """Shut out every master with a lower epoch. Only upward; raising it to what it already is, is fine.

    Args:
        lease: that the lease is ours, checked in the same transaction (``lease.held_check``). Otherwise a master that lost it
            unawares could still fence a cluster that its successor does not know yet. Once per cluster and take-over, so
            that it hardly ever collides with a renewal.

    Raises:
        NotMasterError: a later master has raised it further, or holds the lease.
        StoreBusyError, StoreOutcomeUnknownError: try again.
    """
    update = Update(fence_key(cluster), set={"epoch": epoch}, conditions=(AbsentOrBelow("epoch", epoch),))
    try:
        if lease is None:
            store.write(update)
        else:
            store.transact([update, lease], secrets.token_hex(16))
    except ConditionFailedError as refused:
        _judge(cluster, epoch, refused.item, refused)
    except TransactionRefusedError as refused:
        if 1 in refused.failed:
            raise NotMasterError("the lease was lost to another session") from refused
        _judge(cluster, epoch, refused.failed[0], refused)


def _judge(cluster: str, epoch: int, stands: Mapping[str, object] | None, refused: StoreError) -> None:
    if stands is None or cast(int, stands["epoch"]) != epoch:
        raise NotMasterError(f"a later master has fenced cluster {cluster}") from refused
