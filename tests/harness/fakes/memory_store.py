"""A DynamoDB in memory with the semantics of ``kubesync.aws.dynamodb.store``, for enumerations and benches.

Held to the real adapter by ``tests/contract/store``. Calls can be made to fail in every way that DynamoDB fails in:

    | to play                     | the hook                                    | the write happens |
    | --------------------------- | ------------------------------------------- | ----------------- |
    | crash before                | ``before`` raises anything                  | no                |
    | crash after                 | ``after`` raises anything                   | yes               |
    | throttle                    | ``before`` raises StoreBusyError            | no                |
    | answer lost, not landed     | ``before`` raises StoreOutcomeUnknownError  | no                |
    | answer lost, landed         | ``after`` raises StoreOutcomeUnknownError   | yes               |
    | answer lost, lands later    | ``before`` raises LandLater                 | at ``land``       |
    | delay, pause                | either one blocks                           | yes               |
"""

import threading
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, Unpack

from kubesync.actors.scheduler import Clock
from kubesync.aws.dynamodb.store import (
    KEY_ATTRIBUTES,
    MAX_TRANSACTION_ACTIONS,
    UPSTREAMS,
    Action,
    Delete,
    Item,
    Key,
    Put,
    QueryOptions,
    Update,
    Write,
)
from kubesync.aws.dynamodb.store_calls import Kind, StoreCalls
from kubesync.aws.dynamodb.wire import item_bytes
from kubesync.domain.errors import (
    ConditionFailedError,
    StoreBusyError,
    StoreError,
    StoreOutcomeUnknownError,
    TransactionRefusedError,
)
from kubesync_local.workplace.items_in_memory import (
    StoredItem,
    applied,
    check_action,
    check_key,
    check_partition,
    copy_item,
    holds,
    invalid,
)

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
MAX_TRANSACTION_BYTES = 4 * 1024 * 1024
PAGE_BYTES = 1024 * 1024
BATCH_GET_KEYS = 100
TOKEN_CHARACTERS = 36
TOKEN_SECONDS = 600.0


class LandLater(Exception):  # noqa: N818  # an instruction to the store, not an error
    """Raised by a ``before`` hook: the caller sees StoreOutcomeUnknownError, the write waits for ``MemoryStore.land``."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request as DynamoDB would count it: each page of a query is one, and each hundred keys of a batch.

    ``operation`` is the client's method name: ``get_item``, ``batch_get_item``, ``query``, ``scan``, ``put_item``,
    ``update_item``, ``delete_item`` or ``transact_write_items``.
    """

    operation: str
    tables: tuple[str, ...]
    actions: tuple[Action, ...] = ()
    keys: tuple[Key, ...] = ()
    partition: str = ""
    token: str = ""


class Faults(Protocol):
    """Hooks around each call. Called outside the store's lock, so they may block or use the store."""

    def before(self, call: Call) -> None: ...
    def after(self, call: Call) -> None: ...


class NoFaults:
    def before(self, call: Call) -> None: ...
    def after(self, call: Call) -> None: ...


@dataclass(slots=True)
class _Partition:
    """Items by sort key; ``order`` holds the sort keys in order."""

    items: dict[str | int, StoredItem] = field(default_factory=dict)
    order: list[str | int] = field(default_factory=list)


class MemoryStore:
    """Implements ``Store``. Threads may share one; what it returns and what it is given are copied.

    Args:
        clock: a transaction's token is forgotten after ten minutes, as by DynamoDB.
        faults: hooks around each call; can be exchanged at any time.
        conflicts: simulate TransactionConflict: while a transaction is under way (from the start of its ``before`` hook to
            its effect), other transactions and writes that name one of its items get StoreBusyError; reads do not.

    Attributes:
        calls: every call made, in order; clear it to count again.
        in_flight: writes whose answer is lost and that wait for ``land``.
        counted: is told of each request, as the real adapter tells it.
    """

    def __init__(self, *, clock: Clock, faults: Faults | None = None, conflicts: bool = False) -> None:
        self.calls: list[Call] = []
        self.in_flight: list[Call] = []
        self.faults: Faults = faults or NoFaults()
        self.counted = StoreCalls()
        self._clock = clock
        self._conflicts = conflicts
        self._lock = threading.RLock()
        self._tables: dict[str, dict[str, _Partition]] = {table: {} for table in KEY_ATTRIBUTES}
        self._landed: dict[str, tuple[tuple[Action, ...], float]] = {}
        self._under_way: set[Key] = set()

    def get(self, key: Key) -> Item | None:
        check_key(key)
        with self._call(Call("get_item", (key.table,), keys=(key,))):
            item = self._find(key)
            return None if item is None else copy_item(item)

    def batch_get(self, keys: Sequence[Key]) -> dict[Key, Item]:
        found: dict[Key, Item] = {}
        waiting = iter(dict.fromkeys(keys))
        while chunk := tuple(islice(waiting, BATCH_GET_KEYS)):
            for key in chunk:
                check_key(key)
            with self._call(Call("batch_get_item", tuple(sorted({key.table for key in chunk})), keys=chunk)):
                for key in chunk:
                    if (item := self._find(key)) is not None:
                        found[key] = copy_item(item)
        return found

    def query(self, table: str, partition: str, **wanted: Unpack[QueryOptions]) -> Iterator[Item]:
        if "prefix" in wanted and "between" in wanted:
            raise ValueError("a query takes a prefix or a range, not both")
        if "between" in wanted and wanted["between"][0] > wanted["between"][1]:
            raise invalid("the range of a query ends before it begins")
        return self._query(table, partition, wanted)

    def _query(self, table: str, partition: str, wanted: QueryOptions) -> Iterator[Item]:
        check_partition(partition)
        if table == UPSTREAMS and ("prefix" in wanted or "between" in wanted):
            raise invalid("the sort key of the upstreams table is a number")
        left, last = wanted.get("limit"), None
        while left is None or left > 0:
            page: list[Item] = []
            size = 0
            more = False
            with self._call(Call("query", (table,), partition=partition)):
                rows = self._tables[table].get(partition) or _Partition()
                for sort in _wanted_of(rows.order, wanted, last):
                    if size >= PAGE_BYTES or len(page) == left:
                        more = True
                        break
                    page.append(copy_item(rows.items[sort]))
                    size += item_bytes(rows.items[sort])
                    last = sort
            yield from page
            if not more:
                return
            left = None if left is None else left - len(page)

    def scan(self, table: str, limit: int | None = None) -> Iterator[Item]:
        with self._lock:
            places = (
                Key(table, partition, sort) for partition, rows in self._tables[table].items() for sort in rows.order
            )
            waiting = deque(islice(places, limit))
        while True:
            page: list[Item] = []
            size = 0
            with self._call(Call("scan", (table,))):
                while waiting and size < PAGE_BYTES:
                    if (item := self._find(waiting.popleft())) is not None:
                        page.append(copy_item(item))
                        size += item_bytes(item)
            yield from page
            if not waiting:
                return

    def write(self, action: Write) -> Item:
        check_action(action)
        call = Call(_METHODS[type(action)], (action.key.table,), actions=(action,))
        with self._call(call):
            if action.key in self._under_way:
                self.counted.count("refused_writes")
                raise StoreBusyError("a transaction is under way on this item: nothing was written")
            after = self._apply_write(action)
        return {} if after is None else copy_item(after)

    def transact(self, actions: Sequence[Action], token: str) -> None:
        actions = tuple(actions)
        _check_transaction(actions, token)
        tables = tuple(sorted({action.key.table for action in actions}))
        call = Call("transact_write_items", tables, actions=actions, token=token)
        with self._reserved({action.key for action in actions}, call), self._call(call, logged=True):
            self._apply_transaction(actions, token)

    def land(self) -> bool:
        """Let the oldest write in flight arrive now; False: its conditions do not hold any more, so it did nothing."""
        with self._lock:
            call = self.in_flight.pop(0)
            try:
                if call.token:
                    self._apply_transaction(call.actions, call.token)
                else:
                    (action,) = call.actions
                    assert isinstance(action, Put | Update | Delete)
                    self._apply_write(action)
            except StoreError:
                return False
            return True

    def dump(self) -> dict[Key, Item]:
        """Every item of every table, without a call: to compare what two runs left behind."""
        with self._lock:
            return {
                Key(table, partition, sort): copy_item(item)
                for table, partitions in self._tables.items()
                for partition, rows in partitions.items()
                for sort, item in rows.items.items()
            }

    @contextmanager
    def _call(self, call: Call, *, logged: bool = False) -> Iterator[None]:
        if not logged:
            self._log(call)
        try:
            self.faults.before(call)
        except LandLater:
            assert call.actions, "only a write can land later"
            with self._lock:
                self.in_flight.append(call)
            raise StoreOutcomeUnknownError("no answer to a write: it may have happened") from None
        except StoreBusyError:
            single: Kind = "writes" if call.actions else "reads"
            self.counted.count(f"refused_{'transactions' if call.token else single}")
            raise
        with self._lock:
            yield
        self.faults.after(call)

    def _log(self, call: Call) -> None:
        self.counted.count("requests")
        with self._lock:
            self.calls.append(call)

    @contextmanager
    def _reserved(self, keys: set[Key], call: Call) -> Iterator[None]:
        self._log(call)
        if not self._conflicts:
            yield
            return
        with self._lock:
            if not self._under_way.isdisjoint(keys):
                self.counted.count("refused_transactions")
                raise StoreBusyError("another transaction is under way on an item: nothing was written")
            self._under_way |= keys
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= keys

    def _apply_write(self, action: Write) -> StoredItem | None:
        item = self._find(action.key)
        if not all(holds(condition, item) for condition in action.conditions):
            raise ConditionFailedError("a condition of the write failed", None if item is None else copy_item(item))
        after = applied(action, item)
        self._put(action.key, after)
        return after

    def _apply_transaction(self, actions: tuple[Action, ...], token: str) -> None:
        landed, until_monotonic = self._landed.get(token, ((), 0.0))
        if landed and self._clock.monotonic() < until_monotonic:
            if landed != actions:
                raise invalid("a transaction's token was used for another transaction")
            return
        before = [self._find(action.key) for action in actions]
        failed: dict[int, Mapping[str, object] | None] = {
            index: None if item is None else copy_item(item)
            for index, (action, item) in enumerate(zip(actions, before, strict=True))
            if not all(holds(condition, item) for condition in action.conditions)
        }
        if failed:
            raise TransactionRefusedError(f"conditions of actions {list(failed)} of a transaction failed", failed)
        after = [applied(action, item) for action, item in zip(actions, before, strict=True)]
        if sum(item_bytes(item) for item in after if item is not None) > MAX_TRANSACTION_BYTES:
            raise invalid("a transaction is larger than 4 MB")
        for action, item in zip(actions, after, strict=True):
            self._put(action.key, item)
        self._landed[token] = (actions, self._clock.monotonic() + TOKEN_SECONDS)

    def _find(self, key: Key) -> StoredItem | None:
        rows = self._tables[key.table].get(key.partition)
        return None if rows is None else rows.items.get(key.sort)

    def _put(self, key: Key, item: StoredItem | None) -> None:
        partitions = self._tables[key.table]
        if item is not None:
            rows = partitions.setdefault(key.partition, _Partition())
            if key.sort not in rows.items:
                insort(rows.order, key.sort)
            rows.items[key.sort] = item
        elif (found := partitions.get(key.partition)) is not None and key.sort in found.items:
            del found.items[key.sort]
            del found.order[bisect_left(found.order, key.sort)]
            if not found.items:
                del partitions[key.partition]


_METHODS: Mapping[type[Write], str] = {Put: "put_item", Update: "update_item", Delete: "delete_item"}


def _texts(order: list[str | int]) -> list[str]:
    return [sort for sort in order if isinstance(sort, str)]


def _wanted_of(order: list[str | int], wanted: QueryOptions, last: str | int | None) -> Iterator[str | int]:
    """The sort keys that a query asks for, out of those of a partition, after ``last``."""
    low, high = 0, len(order)
    if prefix := wanted.get("prefix"):
        texts = _texts(order)
        low = bisect_left(texts, prefix)
        high = bisect_right(texts, prefix, key=lambda text: text[: len(prefix)])
    if between := wanted.get("between"):
        texts = _texts(order)
        low, high = bisect_left(texts, between[0]), bisect_right(texts, between[1])
    newest_first = wanted.get("newest_first", False)
    if last is not None and newest_first:
        high = bisect_left(order, last)
    elif last is not None:
        low = bisect_right(order, last)
    indices = range(low, high)
    return (order[index] for index in (reversed(indices) if newest_first else indices))


def _check_transaction(actions: tuple[Action, ...], token: str) -> None:
    if not 1 <= len(actions) <= MAX_TRANSACTION_ACTIONS:
        raise invalid("a transaction takes 1 to 100 actions")
    if not 1 <= len(token) <= TOKEN_CHARACTERS:
        raise invalid("a transaction's token has 1 to 36 characters")
    for action in actions:
        check_action(action)
    if len({action.key for action in actions}) < len(actions):
        raise invalid("a transaction names one item twice")
