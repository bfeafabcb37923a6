"""Raises the fences of a master, before it reads any state of what they guard (I2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import batched

from kubesync.aws.dynamodb.store import Key, Store
from kubesync.aws.tables.control.fences import MAX_FENCES_AT_A_TIME, fence_key, raise_fences, shard_fence_key
from kubesync.aws.tables.control.lease import held_check
from kubesync.domain.errors import StoreBusyError, StoreOutcomeUnknownError


class Fencing:
    """For the master of one epoch.

    Args:
        retry: calls again while DynamoDB is busy, as long as that makes sense.

    ``raised``: clusters whose fences stand at this epoch.
    """

    def __init__(self, store: Store, shard: str, epoch: int, retry: Callable[[Callable[[], None]], None]) -> None:
        self.raised: set[str] = set()
        self._store = store
        self._shard = shard
        self._epoch = epoch
        self._retry = retry

    def take_over(self, clusters: Iterable[str]) -> None:
        """The shard's, and those of all its clusters: many in one transaction.

        Raises:
            NotMasterError: another master has raised one further, or holds the lease.
            StoreBusyError: not within the session's time.
        """
        names = list(clusters)
        fences = [shard_fence_key(self._shard), *map(fence_key, names)]
        groups = deque(batched(fences, MAX_FENCES_AT_A_TIME))
        while groups:
            some = groups.popleft()
            if len(some) == 1:
                self._retry(partial(self._raise, some))
                continue
            try:
                self._raise(some)
            except StoreBusyError:
                # One of them may be in use by the master that is being shut out: the others need not wait for it.
                half = len(some) // 2
                groups.extendleft((some[half:], some[:half]))
        self.raised.update(names)

    def adopt(self, cluster: str) -> None:
        """That of a cluster that is served from now on. Raises NotMasterError, StoreBusyError: the caller comes back to it."""
        if cluster not in self.raised:
            self.raise_one(cluster)
            self.raised.add(cluster)

    def raise_one(self, cluster: str) -> None:
        """That of one cluster, once. Raises NotMasterError, StoreBusyError."""
        self._raise([fence_key(cluster)])

    def _raise(self, fences: Sequence[Key]) -> None:
        try:
            raise_fences(self._store, fences, self._epoch, held_check(self._shard, self._epoch))
        except StoreOutcomeUnknownError as unknown:
            raise StoreBusyError(str(unknown)) from unknown  # the same again does no harm
