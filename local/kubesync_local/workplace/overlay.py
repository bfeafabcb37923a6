"""Tables that can be written to without changing them: every write stays in this process, above the tables as they are.

A session on them plans as any other session does, with the code of sessions, and leaves nothing behind. It needs no lease: it takes one
that only it sees. See ``looking``.
"""

import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Unpack, cast

from kubesync.aws.dynamodb.store import KEY_ATTRIBUTES, STATE, Action, Item, Key, QueryOptions, Store, Write
from kubesync.domain.errors import ConditionFailedError, TransactionRefusedError
from kubesync_local.workplace.items_in_memory import StoredItem, applied, holds


class OverlayStore:
    """Implements ``Store``. Thread-safe as far as the store below is."""

    def __init__(self, below: Store) -> None:
        self._below = below
        self._own: dict[Key, StoredItem | None] = {}
        self._lock = threading.RLock()
        self._seen: dict[Key, int] = {}

    def get(self, key: Key) -> Item | None:
        with self._lock:
            if key in self._own:
                return self._own[key]
        return self._read(key, self._below.get(key))

    def batch_get(self, keys: Sequence[Key]) -> dict[Key, Item]:
        with self._lock:
            own = {key: self._own[key] for key in keys if key in self._own}
        found = self._below.batch_get([key for key in keys if key not in own])
        for key in keys:
            if key not in own:
                self._read(key, found.get(key))
        return found | {key: item for key, item in own.items() if item is not None}

    def query(self, table: str, partition: str, **wanted: Unpack[QueryOptions]) -> Iterator[Item]:
        with self._lock:
            own = {key: i for key, i in self._own.items() if (key.table, key.partition) == (table, partition)}
        limit = wanted.get("limit")
        if not own:
            yield from (self._noted(table, item) for item in self._below.query(table, partition, **wanted))
            return
        unlimited: QueryOptions = {**wanted, "limit": None}
        below = [i for i in self._below.query(table, partition, **unlimited) if _key_of(table, i) not in own]
        ours = [item for key, item in own.items() if item is not None and _is_wanted(key.sort, wanted)]
        sort = KEY_ATTRIBUTES[table][1]
        items = sorted(
            [*(self._noted(table, item) for item in below), *ours],
            key=lambda item: cast(str, item[sort]),
            reverse=wanted.get("newest_first", False),
        )
        yield from islice(items, limit)

    def scan(self, table: str, limit: int | None = None) -> Iterator[Item]:
        with self._lock:
            own = {key: item for key, item in self._own.items() if key.table == table}
        below = (item for item in self._below.scan(table, None if own else limit) if _key_of(table, item) not in own)
        yield from islice((*below, *(item for item in own.values() if item is not None)), limit)

    def write(self, action: Write) -> Item:
        with self._lock:
            item = self.get(action.key)
            if not all(holds(condition, item) for condition in action.conditions):
                raise ConditionFailedError(f"{action.key}: a condition failed", item)
            return self._apply(action) or {}

    def transact(self, actions: Sequence[Action], token: str) -> None:
        with self._lock:
            items = {n: self.get(action.key) for n, action in enumerate(actions)}
            failed = {
                n: items[n]
                for n, action in enumerate(actions)
                if not all(holds(condition, items[n]) for condition in action.conditions)
            }
            if failed:
                raise TransactionRefusedError(f"{token}: conditions failed", failed)
            for action in actions:
                self._apply(action)

    def changed_since(self, keys: Sequence[Key]) -> set[Key]:
        """Which of these items of the state table somebody wrote after they were read here first."""
        now = self._below.batch_get(keys)
        return {key for key in keys if key in self._seen and self._seen[key] != _digest(now.get(key))}

    def _apply(self, action: Action) -> StoredItem | None:
        item = self.get(action.key)
        self._own[action.key] = after = applied(action, None if item is None else dict(item))
        return after

    def _read(self, key: Key, item: Item | None) -> Item | None:
        if key.table == STATE:
            self._seen.setdefault(key, _digest(item))
        return item

    def _noted(self, table: str, item: Item) -> Item:
        self._read(_key_of(table, item), item)
        return item


def _digest(item: Item | None) -> int:
    return hash(repr(sorted(item.items()))) if item is not None else 0


def _key_of(table: str, item: Item) -> Key:
    partition, sort = KEY_ATTRIBUTES[table]
    return Key(table, cast(str, item[partition]), cast("str | int", item[sort]))


def _is_wanted(sort: str | int, wanted: QueryOptions) -> bool:
    text = str(sort)
    if "prefix" in wanted:
        return text.startswith(wanted["prefix"])
    if "between" in wanted:
        first, last = wanted["between"]
        return first <= text <= last
    return True
