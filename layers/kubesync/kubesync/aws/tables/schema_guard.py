"""Protects items of a newer release: this release neither misreads nor overwrites what it does not understand.

Every item has a schema version ``v`` (a missing one counts as 1). A release reads its own version and older ones:

    item's v          read                                          written, deleted
    --------          ----                                          ----------------
    up to ours        normally                                      normally
    above ours        NewerSchemaError for this item; others can    NewerSchemaError; nothing of the transaction is
                      still be read                                 written

As a rule the second line does not occur: if the tables say that a newer release was master, no session of this release
becomes master (``LeaseTable.bind``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Unpack, cast

from kubesync.aws.dynamodb.store import (
    CONTROL,
    KEY_ATTRIBUTES,
    STATE,
    AbsentOrBelow,
    Action,
    Check,
    Item,
    Key,
    QueryOptions,
    Store,
    Write,
)
from kubesync.aws.tables.items import SCHEMA, SCHEMA_OF_SHARING, SCHEMA_OF_TURNING
from kubesync.domain.dns.routing.policies import POLICIES
from kubesync.domain.errors import ConditionFailedError, NewerSchemaError, TransactionRefusedError
from kubesync.domain.sources.registry import KINDS

_VERSION: Final = "v"
_OF_POLICIES: Final = max(policy.since for policy in POLICIES.values())


class SchemaGuard:
    """A Store over another one that refuses to read or overwrite items of newer releases. As thread-safe as the other.

    ``knows``: the highest schema version that this release understands. Methods raise NewerSchemaError.
    """

    def __init__(self, store: Store, knows: int = SCHEMA) -> None:
        self._store = store
        self._knows = knows

    def get(self, key: Key) -> Item | None:
        item = self._store.get(key)
        if item is not None:
            self._check(key.table, item)
        return item

    def batch_get(self, keys: Sequence[Key]) -> dict[Key, Item]:
        """Implements ``Store``. One item of a newer release fails the whole call."""
        found = self._store.batch_get(keys)
        for key, item in found.items():
            self._check(key.table, item)
        return found

    def query(self, table: str, partition: str, **wanted: Unpack[QueryOptions]) -> Iterator[Item]:
        """Implements ``Store``. After an error for one item, the iterator continues with the next: see ``readable``."""
        return _Checked(self._store.query(table, partition, **wanted), table, self._check)

    def scan(self, table: str, limit: int | None = None) -> Iterator[Item]:
        return _Checked(self._store.scan(table, limit), table, self._check)

    def write(self, action: Write) -> Item:
        try:
            return self._store.write(
                replace(action, conditions=(*action.conditions, self._readable_condition(action.key)))
            )
        except ConditionFailedError as refused:
            if refused.item is not None:
                self._check(action.key.table, cast(Item, refused.item))
            raise

    def transact(self, actions: Sequence[Action], token: str) -> None:
        guarded = [
            action
            if isinstance(action, Check)
            else replace(action, conditions=(*action.conditions, self._readable_condition(action.key)))
            for action in actions
        ]
        try:
            self._store.transact(guarded, token)
        except TransactionRefusedError as refused:
            # If another condition failed too, perhaps a fence, that one comes first.
            if all(self._is_newer(actions[index].key.table, item) for index, item in refused.failed.items()):
                for index, item in refused.failed.items():
                    self._check(actions[index].key.table, cast(Item, item))
            raise

    def _highest_known(self, table: str, partition: object) -> int:
        """Return the highest schema version that this release understands of items in a partition."""
        if table == STATE:
            return max(self._knows, SCHEMA_OF_TURNING, _OF_POLICIES)
        of_sets, of_cluster = str(partition).startswith("inflight#"), partition == "clusters"
        if table != CONTROL or not (of_sets or of_cluster):
            return self._knows
        of_kinds = max(kind.schema for kind in KINDS.values())
        return max(self._knows, _OF_POLICIES if of_sets else SCHEMA_OF_SHARING, of_kinds)

    def _readable_condition(self, key: Key) -> AbsentOrBelow:
        """Return the condition, for every write, that the item is not of a newer release.

        Checking at reads is not enough: an item may be replaced between read and write, and some items are never read.
        """
        return AbsentOrBelow(_VERSION, self._highest_known(key.table, key.partition) + 1)

    def _is_newer(self, table: str, item: Mapping[str, object] | None) -> bool:
        if item is None:
            return False
        return cast(int, item.get(_VERSION, 1)) > self._highest_known(table, item[KEY_ATTRIBUTES[table][0]])

    def _check(self, table: str, item: Item) -> None:
        if self._is_newer(table, item):
            partition, sort = (cast("str | int", item[name]) for name in KEY_ATTRIBUTES[table])
            knows = self._highest_known(table, partition)
            raise NewerSchemaError(f"{table} item {partition}/{sort}", str(sort), cast(int, item[_VERSION]), knows)


class _Checked(Iterator[Item]):
    """An iterator that continues after it has raised for one item, as a generator cannot."""

    def __init__(self, items: Iterator[Item], table: str, check: Callable[[str, Item], None]) -> None:
        self._items = items
        self._table = table
        self._check = check

    def __next__(self) -> Item:
        item = next(self._items)
        self._check(self._table, item)
        return item


def readable(items: Iterator[Item], on_newer: Callable[[NewerSchemaError], None]) -> Iterator[Item]:
    """The items of a query that this release understands. Calls ``on_newer`` for each of the others (I4)."""
    while True:
        try:
            item = next(items)
        except StopIteration:
            return
        except NewerSchemaError as newer:
            on_newer(newer)
            continue
        yield item
