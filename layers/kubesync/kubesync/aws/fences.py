"""Fences: per cluster, the epoch of the master that may write for it (I2)."""

from __future__ import annotations

from typing import cast

from kubesync.aws.store import CONTROL, AbsentOrBelow, Check, Equals, Key, Store, Update
from kubesync.domain.errors import ConditionFailedError, NotMasterError


def fence_key(cluster: str) -> Key:
    return Key(CONTROL, f"cluster#{cluster}", "fence")


def fence_check(cluster: str, epoch: int) -> Check:
    """The first action of every transaction for a cluster."""
    return Check(fence_key(cluster), (Equals("epoch", epoch),))


def raise_fence(store: Store, cluster: str, epoch: int) -> None:
    """Shut out every master with a lower epoch. Only upward; raising it to what it already is, is fine.

    Raises:
        NotMasterError: a later master has raised it further.
    """
    try:
        store.write(Update(fence_key(cluster), set={"epoch": epoch}, conditions=(AbsentOrBelow("epoch", epoch),)))
    except ConditionFailedError as refused:
        if refused.item is not None and cast(int, refused.item["epoch"]) == epoch:
            return
        raise NotMasterError(f"a later master has fenced cluster {cluster}") from refused
