"""Fences: the epoch of the master that may write, one per cluster and one per shard (I2).

control table
partition            sort     holds
---------            ----     -----
cluster#<cluster>    fence    epoch: for everything that is written for the cluster
lease#<shard>        fence    epoch: for what belongs to a zone and shard, whichever clusters publish there

A take-over raises all of them before it reads any state. The set of clusters that a master knows changes; its shard does not.
Every successor raises the shard's fence, so one check of it proves as much as checks of all clusters.
"""

from __future__ import annotations

import secrets
from collections.abc import Container, Sequence
from typing import Final, cast

from kubesync.aws.dynamodb.store import (
    CONTROL,
    MAX_TRANSACTION_ACTIONS,
    AbsentOrBelow,
    Check,
    Equals,
    Key,
    Store,
    Update,
)
from kubesync.domain.errors import FencedOutError, NotMasterError, TransactionRefusedError

# The transaction also checks the lease.
MAX_FENCES_AT_A_TIME: Final = MAX_TRANSACTION_ACTIONS - 1


def fence_key(cluster: str) -> Key:
    return Key(CONTROL, f"cluster#{cluster}", "fence")


def shard_fence_key(shard: str) -> Key:
    return Key(CONTROL, f"lease#{shard}", "fence")


def fence_check(cluster: str, epoch: int) -> Check:
    """The first action of every transaction for a cluster."""
    return Check(fence_key(cluster), (Equals("epoch", epoch),))


def shard_fence_check(shard: str, epoch: int) -> Check:
    """The first action of a transaction that belongs to no cluster."""
    return Check(shard_fence_key(shard), (Equals("epoch", epoch),))


def raise_fences(
    store: Store, fences: Sequence[Key], epoch: int, lease: Check, mine: Container[Key] = frozenset()
) -> None:
    """Exclude every master with a lower epoch: raises all of these fences, or none. Fences only move up.

    One transaction raises several fences: each one checks the lease item, and such transactions collide with one another and with renewals.

    Args:
        fences: at most ``MAX_FENCES_AT_A_TIME``.
        lease: checks that the lease is ours (``lease.held_check``). Without it, a master that lost the lease unnoticed could
            fence a cluster that its successor does not know yet.
        mine: fences that this session has raised, or tried to. Another one with this epoch is of another session: a counter of
            epochs that was restored gives two of them one epoch.

    Raises:
        FencedOutError: a fence is higher, or another session has this epoch. A later master raised it, or the counter of epochs was lost.
        NotMasterError: a later master holds the lease.
        StoreBusyError, StoreOutcomeUnknownError: the caller tries again.
    """
    left = list(fences)
    while left:
        updates = [Update(place, set={"epoch": epoch}, conditions=(AbsentOrBelow("epoch", epoch),)) for place in left]
        try:
            store.transact([*updates, lease], secrets.token_hex(16))
        except TransactionRefusedError as refused:
            if len(updates) in refused.failed:
                raise NotMasterError("the lease was lost to another session") from refused
            found = {index: cast(int, (now or {}).get("epoch", 0)) for index, now in refused.failed.items()}
            highest = max(found, key=found.__getitem__)
            if found[highest] != epoch:
                said = f"the fence of {left[highest].partition} has epoch {found[highest]}, above that of this session ({epoch})"
                raise FencedOutError(said, found[highest]) from refused
            if foreign := [left[index].partition for index in refused.failed if left[index] not in mine]:
                raise FencedOutError(
                    f"another session has raised the fence of {foreign[0]} to {epoch}", epoch
                ) from refused
            left = [place for index, place in enumerate(left) if index not in refused.failed]
        else:
            return
