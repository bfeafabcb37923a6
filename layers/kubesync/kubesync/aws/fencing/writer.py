"""Writes for a master: each write is one fenced transaction, repeated until its outcome is known (I1, I2).

A *fence* is an item with the epoch of the master that may write (``tables.control.fences``). A *witness* is an item that a transaction writes
and that shows later that it landed, although its answer was lost (``_witness_key``).

Transactions that check the same fence would collide in DynamoDB, so they queue for it (``FenceQueues``): a transaction takes all its places
together, or none, first come first served.

Each place has a queue. Work enters all its queues in one step, and runs when it is the first in all of them. The work that asked first
of all is the first everywhere, so nobody waits in a circle, and no stream of small work keeps out what needs many places. Whoever
ends wakes only those who were waiting for nobody else.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Final

from kubesync.actors.backoff import Backoff
from kubesync.actors.scheduler import Event, Scheduler
from kubesync.aws.dynamodb.store import AUDIT, MAX_TRANSACTION_ACTIONS, Action, Key, Put, Store
from kubesync.aws.tables.control.fences import fence_check, shard_fence_check
from kubesync.domain.errors import (
    KubesyncError,
    NotMasterError,
    StoreBusyError,
    StoreError,
    StoreOutcomeUnknownError,
    TransactionRefusedError,
)

_BACKOFF: Final = Backoff(initial=0.1, cap=5.0, least=0.5, most=1.5)
_CHECK_SECONDS: Final = 1.0


class StaleStateError(KubesyncError):
    """The table no longer holds the state that was planned on: read again, plan again. The writes to ``places`` were refused."""

    def __init__(self, places: tuple[Key, ...]) -> None:
        super().__init__(f"changed meanwhile: {', '.join(f'{p.partition}/{p.sort}' for p in places)}")
        self.places = places


class FencedWriter:
    """Runs transactions for the master of one epoch. Those that check the same fence take turns.

    Args:
        check_may_write: raises NotMasterError as soon as another session may hold the lease. Zones call it too, as ``check``, before they write
            to Route 53.
        shard: transactions without a cluster check the fence of this shard.

    ``until_monotonic``: when the session's time to write is over. The session sets it, also while threads wait here.
    ``sent`` counts transactions. ``repeated`` counts repeats (throttled, collided, no answer). Both are approximate, because
    threads count at the same time.
    """

    def __init__(
        self, store: Store, epoch: int, check_may_write: Callable[[], None], scheduler: Scheduler, shard: str = "0"
    ) -> None:
        self.epoch = epoch
        self.check = check_may_write
        self._store = store
        self._scheduler = scheduler
        self._shard = shard
        self._queues = FenceQueues(scheduler)
        self.until_monotonic = math.inf
        self.sent = 0
        self.repeated = 0

    def token(self) -> str:
        """A fresh ClientRequestToken."""
        return self._scheduler.token_hex(16)

    @staticmethod
    def room(clusters: int) -> int:
        """How many actions fit in addition to the fence checks and an audit item."""
        return MAX_TRANSACTION_ACTIONS - clusters - 1

    def run(
        self, clusters: Iterable[str], actions: Sequence[Action], token: str, *, until_monotonic: float = math.inf
    ) -> None:
        """Write all actions or none.

        DynamoDB answers               the witness shows                        then
        ----------------               -----------------                        ----
        it is written                                                           done
        a fence refuses                                                         NotMasterError
        another condition refuses      an earlier attempt landed                done
                                       none landed, or there is no witness      StaleStateError: the caller reads again, and may find it done
                                       (it cannot be read)                      the same transaction again
        no answer                      it landed                                done
                                       anything else                            the same again, up to the session's end: it may land yet
        busy: nothing is written                                                the same again, up to ``until_monotonic``

        Args:
            clusters: the clusters whose fences are checked. Empty: the shard's fence, for items that belong to no cluster.
            until_monotonic: stop trying then, even if the session has time left.

        Raises:
            NotMasterError: another master holds a fence or the lease: stop.
            StaleStateError: a condition failed: plan again.
            StoreBusyError: no time is left for another try. Nothing is written, unless an answer was lost: then it may have landed.
        """
        checks: list[Action] = [fence_check(cluster, self.epoch) for cluster in sorted(set(clusters))]
        if not checks:
            checks = [shard_fence_check(self._shard, self.epoch)]
        fenced = [*checks, *actions]
        witness = _witness_key(actions, token)
        self.sent += 1
        # When to stop repeating. The session may set an earlier end meanwhile: then that one counts.
        limit = min(self.until_monotonic, until_monotonic)
        for failures in count(1):
            try:
                with self._in_turn(checks, limit):
                    self.check()
                    self._store.transact(fenced, token)
            except TransactionRefusedError as refused:
                if any(index < len(checks) for index in refused.failed):
                    raise NotMasterError("another master has fenced this one out") from refused
                landed = self._has_landed(witness, token)
                if landed:
                    return
                if landed is not None:
                    raise StaleStateError(tuple(fenced[index].key for index in sorted(refused.failed))) from refused
                # None: the witness cannot be read. So the same transaction is repeated below.
            except StoreOutcomeUnknownError:
                if self._has_landed(witness, token):
                    return
                # It may land yet, and the caller would not know. So it is repeated up to the session's end, even after the caller's limit.
                limit = self.until_monotonic
            except StoreBusyError:
                pass  # nothing is written: repeated below
            else:
                return
            self.repeated += 1
            if self._scheduler.monotonic() + _BACKOFF.without_jitter(failures) > min(self.until_monotonic, limit):
                raise StoreBusyError("DynamoDB is busy, and the session has to end")
            self._scheduler.sleep(_BACKOFF.delay(failures, self._scheduler.random()))

    def write_without_lease_check(self, cluster: str, actions: Sequence[Action], token: str) -> None:
        """Try once to write, also after the lease was lost. Only the cluster's fence is checked, which another master may not have raised yet.

        It is called to store that a listener ended because the lease was lost, and that a plan of a large key failed, perhaps for that reason.
        There is no second try: what may be lost is only a note.

        Args:
            actions: they have no conditions. So only the fence can refuse the transaction.

        Raises:
            NotMasterError: another master has raised the fence. Nothing was written.
            StoreError: perhaps nothing was written.
        """
        check = fence_check(cluster, self.epoch)
        try:
            with self._in_turn([check]):
                self._store.transact([check, *actions], token)
        except TransactionRefusedError as refused:
            raise NotMasterError("another master has fenced this one out") from refused

    def _in_turn(self, checks: Iterable[Action], until_monotonic: float = math.inf) -> AbstractContextManager[None]:
        """Return a context in which no other transaction of this process checks these fences.

        Entering it waits for a turn, and raises StoreBusyError once the session has to end.
        """

        def give_up() -> None:
            # The session's end may be set while others wait.
            if self._scheduler.monotonic() > min(self.until_monotonic, until_monotonic):
                raise StoreBusyError("DynamoDB is busy, and the session has to end")

        return self._queues.at((check.key for check in checks), give_up)

    def _has_landed(self, witness: Key | None, token: str) -> bool | None:
        """Whether the transaction landed, read from its witness. False also without a witness. None: DynamoDB cannot be read; the caller repeats."""
        if witness is None:
            return False
        try:
            item = self._store.get(witness)
        except StoreError:
            return None
        # The key of an audit item holds the token, so only this transaction makes the item. Other items live on, and ``tx`` says who wrote last.
        return item is not None and (witness.table == AUDIT or item.get("tx") == token)


def _witness_key(actions: Sequence[Action], token: str) -> Key | None:
    """Return the key of an item that shows later whether a transaction landed. None: there is no such item.

    It is a Put with the token in ``tx``, or the audit item, whose key holds the token.
    """
    for action in actions:
        if isinstance(action, Put) and (action.item.get("tx") == token or action.key.table == AUDIT):
            return action.key
    return None


class _Waiting:
    """One piece of work in its queues. It may run once it is the first in all of them.

    ``behind``: in how many of its queues others are still before it.
    ``ready``: set when ``behind`` falls to 0. None: it was the first in all queues when it joined, and need not wait.
    """

    __slots__ = ("behind", "ready")

    def __init__(self) -> None:
        self.behind = 0
        self.ready: Event | None = None


class FenceQueues:
    """Lets work at the same place go one after another, first come first served: one queue for each place (the key of a fence)."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._lock = scheduler.lock()
        # By place. It is the turn of the first one of each queue. No queue is empty.
        self._queues: dict[object, deque[_Waiting]] = {}

    @contextmanager
    def at(self, places: Iterable[object], give_up: Callable[[], None]) -> Iterator[None]:
        """Wait until it is the first at all of these places, and keep others out for the length of the context.

        Args:
            give_up: called every second while waiting. What it raises ends the wait: those before may hang.
        """
        places = tuple(dict.fromkeys(places))
        waiting = self._join_queues(places)
        try:
            while waiting.ready is not None and not waiting.ready.wait(_CHECK_SECONDS):
                give_up()
            yield
        finally:
            self._leave_queues(waiting, places)

    def _join_queues(self, places: tuple[object, ...]) -> _Waiting:
        """Join the queues of all these places at once, so that two never wait for each other."""
        waiting = _Waiting()
        with self._lock:
            for place in places:
                queue = self._queues.setdefault(place, deque())
                waiting.behind += bool(queue)
                queue.append(waiting)
            if waiting.behind:
                waiting.ready = self._scheduler.event()
        return waiting

    def _leave_queues(self, waiting: _Waiting, places: tuple[object, ...]) -> None:
        """Leave the queues, and wake those who are first in all their queues now. It has ended, or it gave up while it was waiting."""
        with self._lock:
            for place in places:
                queue = self._queues[place]
                if queue[0] is not waiting:  # it gave up; those behind it still wait for the first one
                    queue.remove(waiting)
                    continue
                queue.popleft()
                if not queue:
                    del self._queues[place]
                    continue
                # The next one is the first in this queue now.
                queue[0].behind -= 1
                if not queue[0].behind and queue[0].ready is not None:
                    queue[0].ready.set()
