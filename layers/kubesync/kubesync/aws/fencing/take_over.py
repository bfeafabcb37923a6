"""What a take-over needs of DynamoDB: fences, and calls that are repeated while it throttles, since a session cannot begin without them.

A fence is an item that holds the epoch of the master that may write (``tables.control.fences``). Fences are raised before the master reads what
they guard (I2): ``Master.take_over`` and ``release_zones`` read it.
"""

import secrets
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from itertools import batched, count
from typing import Final, cast

from kubesync.actors.backoff import Backoff
from kubesync.actors.scheduler import Scheduler
from kubesync.aws.dynamodb.store import MAX_TRANSACTION_ACTIONS, AbsentOrBelow, Check, Key, Store, Update
from kubesync.aws.tables.control.fences import fence_key, shard_fence_key
from kubesync.aws.tables.control.lease import lease_check
from kubesync.domain.errors import (
    FencedOutError,
    NotMasterError,
    StoreBusyError,
    StoreOutcomeUnknownError,
    TransactionRefusedError,
)

# The transaction also checks the lease.
MAX_FENCES_AT_A_TIME: Final = MAX_TRANSACTION_ACTIONS - 1


class Fencing:
    """Raises fences for the master of one epoch.

    Args:
        holder: the session that has the lease.
        retry: repeats a call while DynamoDB is busy, within the session's time.

    ``raised``: names of the served clusters whose fences have this epoch, so that this master may write their keys. It changes in place: it is
    the same set as ``Tables.writable_clusters``.
    """

    def __init__(
        self, store: Store, shard: str, epoch: int, holder: str, retry: Callable[[Callable[[], None]], None]
    ) -> None:
        self.raised: set[str] = set()
        self._store = store
        self._shard = shard
        self._epoch = epoch
        self._lease_check = lease_check(shard, epoch, holder)
        self._retry = retry
        # All fences that this session has raised, or may have raised, because an answer was lost. None is ever removed. If a fence has our
        # epoch already, this set says whether that was us, or another session with the same epoch (``raise_fences``).
        self._mine: set[Key] = set()

    def take_over(self, clusters: Iterable[str]) -> None:
        """Raise the shard's fence and those of all its clusters, many in one transaction.

        Raises:
            FencedOutError: a fence is higher: see ``LeaseKeeper.take_again``.
            NotMasterError: another master holds the lease.
            StoreBusyError: DynamoDB stayed busy for the session's time.
        """
        names = list(clusters)
        fences = [shard_fence_key(self._shard), *map(fence_key, names)]
        groups = deque(batched(fences, MAX_FENCES_AT_A_TIME))
        while groups:
            group = groups.popleft()
            if len(group) == 1:
                self._retry(partial(self._raise, group))
                continue
            try:
                self._raise(group)
            except StoreBusyError:
                # The old master may be using one of these fences: the others need not wait for it. So halves are tried, down to one fence.
                half = len(group) // 2
                groups.extendleft((group[half:], group[:half]))
        # Only now: if a fence cannot be raised, the take-over fails as a whole, and this master writes for no cluster.
        self.raised.update(names)

    def ensure_raised(self, cluster: str) -> None:
        """Raise the fence of a newly served cluster, unless it is raised. Raises NotMasterError, or StoreBusyError: call again later."""
        if cluster not in self.raised:
            self.raise_one(cluster)
            self.raised.add(cluster)

    def forget(self, cluster: str) -> None:
        """Let ``ensure_raised`` raise the cluster's fence again, because the cluster is not served any more."""
        self.raised.discard(cluster)

    def raise_one(self, cluster: str) -> None:
        """Try once to raise a cluster's fence, also if it is raised. Raises NotMasterError, StoreBusyError."""
        self._raise([fence_key(cluster)])

    def _raise(self, fences: Sequence[Key]) -> None:
        """Raise these fences once, all or none, and note them as ours. Raises like ``raise_fences``, but never StoreOutcomeUnknownError.

        If no answer comes, they may be raised. So they count as ours, and the caller gets StoreBusyError and calls again. A repeat does no harm:
        ``raise_fences`` leaves out fences that have our epoch already and are ours.
        """
        try:
            raise_fences(self._store, fences, self._epoch, self._lease_check, self._mine)
            self._mine.update(fences)
        except StoreOutcomeUnknownError as unknown:
            self._mine.update(fences)
            raise StoreBusyError(str(unknown)) from unknown


_BACKOFF: Final = Backoff(initial=0.2, cap=5.0, least=0.5, most=1.5)


def retry_while_throttled[T](
    call: Callable[[], T], check: Callable[[], None], scheduler: Scheduler, deadline_monotonic: float
) -> T:
    """Call until there is an answer, with growing pauses and jitter.

    Args:
        call: can be repeated without harm.
        check: raises if going on makes no sense (NotMasterError).

    Raises:
        StoreBusyError: still throttled at the deadline.
    """
    for failures in count(1):
        check()
        try:
            return call()
        except StoreBusyError:
            if scheduler.monotonic() + _BACKOFF.without_jitter(failures) >= deadline_monotonic:
                raise
        scheduler.sleep(_BACKOFF.delay(failures, scheduler.random()))
    raise AssertionError("``count`` does not end")


def raise_fences(
    store: Store, fences: Sequence[Key], epoch: int, lease: Check, mine: Container[Key] = frozenset()
) -> None:
    """Raise all of these fences to this epoch, or none. From then on, masters with a lower epoch cannot write. Fences only move up.

    One transaction raises several fences. Each transaction checks the lease item, and transactions that check one item at the same time collide,
    also with renewals of the lease. So there should be few of them.

    Args:
        fences: at most ``MAX_FENCES_AT_A_TIME``.
        lease: checks that the lease is ours (``lease.lease_check``). Without it, a master that lost the lease unnoticed could
            fence a cluster that its successor does not know yet.
        mine: fences that this session has raised, or may have raised. If another fence has this epoch, another session raised it: the counter
            of epochs was restored from a backup, and has given one epoch to two sessions.

    Raises:
        FencedOutError: a fence is higher, or another session has this epoch. A later master raised it, or the counter of epochs was lost.
        NotMasterError: a later master holds the lease.
        StoreBusyError: no fence is raised. The caller tries again.
        StoreOutcomeUnknownError: the fences may be raised. The caller tries again, and then names them in ``mine``.
    """
    left = list(fences)
    while left:  # Only case 4 goes round again.
        updates = [Update(place, set={"epoch": epoch}, conditions=(AbsentOrBelow("epoch", epoch),)) for place in left]
        try:
            store.transact([*updates, lease], secrets.token_hex(16))
        except TransactionRefusedError as refused:
            # ``refused.failed`` holds, by the index of each refused action, the item that is in the table.
            # 1. The last action, which checks the lease, was refused.
            if len(updates) in refused.failed:
                raise NotMasterError("the lease was lost to another session") from refused
            # 2. Fences refused, so each has our epoch or a higher one.
            epochs = {index: cast(int, (now or {}).get("epoch", 0)) for index, now in refused.failed.items()}
            highest = max(epochs, key=epochs.__getitem__)
            if epochs[highest] != epoch:
                said = f"the fence of {left[highest].partition} has epoch {epochs[highest]}, above that of this session ({epoch})"
                raise FencedOutError(said, epochs[highest]) from refused
            # 3. All refused fences have our epoch, and another session raised one of them.
            if foreign := [left[index].partition for index in refused.failed if left[index] not in mine]:
                raise FencedOutError(
                    f"another session has raised the fence of {foreign[0]} to {epoch}", epoch
                ) from refused
            # 4. This session has raised all refused fences before. Nothing was written now, so the others are raised without them.
            left = [place for index, place in enumerate(left) if index not in refused.failed]
        else:
            return
