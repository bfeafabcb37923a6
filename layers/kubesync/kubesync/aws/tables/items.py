"""The form of every item: its schema version ``v``, the guard of its version, and slices for documents of more than 100 KB.

An item has up to two versions. ``v`` is the version of its form: which releases can read it. ``version`` goes up at each change: a *guard*, which
is a condition of a write, refuses to replace what was not read.

sort key             holds
--------             -----
<sort>               the head: the first slice, and how many there are
<sort>#<001..>       further slices

This release neither misreads nor overwrites items of a newer one (``SchemaGuard``). A missing ``v`` counts as 1. A release reads its own
version and older ones:

    item's v          read                                          written, deleted
    --------          ----                                          ----------------
    up to ours        normally                                      normally
    above ours        NewerSchemaError for this item; others can    NewerSchemaError; nothing of the transaction is
                      still be read                                 written

As a rule the second line does not occur: if the tables say that a newer release was master, no session of this release
becomes master (``LeaseTable.bind``).
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, Unpack, cast

from kubesync.aws.dynamodb.store import (
    CONTROL,
    KEY_ATTRIBUTES,
    STATE,
    Absent,
    AbsentOrBelow,
    Action,
    Check,
    Condition,
    Delete,
    Equals,
    Item,
    Key,
    Put,
    QueryOptions,
    Store,
    Update,
    Write,
)
from kubesync.domain.dns.routing.policies import POLICIES
from kubesync.domain.errors import ConditionFailedError, NewerSchemaError, TransactionRefusedError
from kubesync.domain.sources.registry import KINDS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA: Final = 1
# Forms that only some items have (ADR 0013). A release that does not know them leaves the zone, or the cluster, alone. Kinds of objects and
# routing policies say their own: ``Kind.schema`` (configurations, inflight items), ``policies.since`` (keys, inflight items).
SCHEMA_OF_UNCLOSED: Final = 2  # an inflight item with units that are unclosed
SCHEMA_OF_KINDS: Final = 3  # an inflight item with units of other kinds than Services, at least
SCHEMA_OF_SHARING: Final = 3  # a configuration with a routing policy
SCHEMA_OF_TYPES: Final = 5  # a claim that several keys share by types, and such a key
SCHEMA_OF_TURNING: Final = 6  # a key whose sets change their policy in one batch with those of other clusters

_VERSION: Final = "v"
_OF_POLICIES: Final = max(policy.since for policy in POLICIES.values())

MAX_SLICE_BYTES: Final = 100_000
# Longer documents are stored deflated. Shorter ones are text, which a person can read in the console, unless deflating saves a write unit.
_READABLE_BYTES: Final = 8_000
_UNIT_BYTES: Final = 1024
_OVERHEAD_BYTES: Final = 240  # what an item holds besides its document
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Table:
    """Reads one kind of item. Methods that need no store make writes."""

    def __init__(self, store: Store) -> None:
        self._store = store


def put(place: Key, /, *guards: Condition, **fields: object) -> Put:
    """Replace an item, if the ``guards`` hold. Its ``v`` is ``SCHEMA``, if ``fields`` give no other."""
    return Put(place, {"v": SCHEMA, **fields}, guards)


def update(place: Key, /, add: Mapping[str, int], **fields: object) -> Update:
    """Set these ``fields`` of an item, and add to the numbers in ``add``. Creates a missing item."""
    return Update(place, set={"v": SCHEMA, **fields}, add=add)


def unchanged(version: int) -> Absent | Equals:
    """A guard: the item still has this version. 0: there is no item."""
    return Equals("version", version) if version else Absent()


def place_of(table: str, item: Item) -> Key:
    """The key of an item that was read."""
    partition, sort = KEY_ATTRIBUTES[table]
    return Key(table, item[partition], item[sort])


def attributes_of(kind: type[DataclassInstance], item: Item) -> dict[str, Any]:
    """The attributes of an item that are fields of this dataclass, as arguments for it. An older item lacks some: the fields have defaults."""
    return {field.name: item[field.name] for field in fields(kind) if field.name in item}


def sliced(
    place: Key, document: object, before: int = 1, /, **of_slices: object
) -> tuple[dict[str, Any], list[Action]]:
    """A document in as many slices as it needs. Text always fits one.

    Args:
        place: of the head, which is the item with the first slice.
        before: how many slices the item has now; 1 also if there is no item. Surplus ones are deleted.
        of_slices: attributes that the further slices hold besides ``body``.

    Returns:
        The attributes ``slices`` and ``body`` of the head, and the writes of the further slices.
    """
    packed = pack(document)
    slices: list[str | bytes] = [packed]
    if isinstance(packed, bytes):
        slices = [packed[at : at + MAX_SLICE_BYTES] for at in range(0, len(packed), MAX_SLICE_BYTES)]
    writes: list[Action] = [put(slice_place(place, n), **of_slices, body=slices[n]) for n in range(1, len(slices))]
    writes += [Delete(slice_place(place, n)) for n in range(len(slices), before)]
    return {"slices": len(slices), "body": slices[0]}, writes


def unpack_slices(slices: Sequence[Any]) -> Any:
    """The document of these slices, which are the ``body`` of each item in order. Several are always deflated."""
    if len(slices) == 1:
        return unpack(slices[0])
    return unpack(b"".join(slices))


def slice_place(head: Key, number: int) -> Key:
    """The key of a slice; slice 0 is the head."""
    return Key(head.table, head.partition, f"{head.sort}#{number:03d}") if number else head


def read_slices(store: Store, place: Key, head: Item, attribute: str = "body") -> Any:
    """The document of a head that was read already and holds its slice in ``attribute``. Reads the further slices.

    Raises:
        KeyError: a slice is missing.
        ValueError, zlib.error: the slices do not belong together.
    """
    places = [slice_place(place, number) for number in range(1, head["slices"])]
    found = store.batch_get(places) if places else {}
    return unpack_slices([head[attribute], *(found[further]["body"] for further in places)])


def pack(document: object) -> str | bytes:
    """JSON as text, which a person can read, or deflated. Every release reads both.

    It is deflated if it is long, if that saves write units, which DynamoDB charges, or if it is no valid UTF-8: JSON lets lone surrogates through.
    """
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    encoded = text.encode("utf-8", "surrogatepass")
    readable = len(encoded) <= _READABLE_BYTES and not _SURROGATE.search(text)
    if readable and _units(len(encoded)) == 1:
        return text
    deflated = zlib.compress(encoded, 6)
    return text if readable and _units(len(encoded)) == _units(len(deflated)) else deflated


def _units(length: int) -> int:
    """Write units that DynamoDB charges for an item whose document has this length: one for each KB that is begun."""
    return -(-(length + _OVERHEAD_BYTES) // _UNIT_BYTES)


def unpack(body: str | bytes) -> Any:
    """The inverse of ``pack``."""
    if isinstance(body, str):
        return json.loads(body)
    return json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass"))


class SchemaGuard:
    """A Store over another one that refuses to read or overwrite items of newer releases. As thread-safe as the other.

    ``knows``: the highest schema version that this release understands of every item; of some it understands more (``_highest_known``). Methods
    raise NewerSchemaError.
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
        """Implements ``Store``. Refuses to replace or delete an item of a newer release, also if nobody has read it before."""
        try:
            return self._store.write(
                replace(action, conditions=(*action.conditions, self._readable_condition(action.key)))
            )
        except ConditionFailedError as refused:
            if refused.item is not None:
                self._check(action.key.table, cast(Item, refused.item))
            raise

    def transact(self, actions: Sequence[Action], token: str) -> None:
        """Implements ``Store``. One item of a newer release that would be written refuses the whole transaction. A ``Check`` writes nothing."""
        guarded = [
            action
            if isinstance(action, Check)
            else replace(action, conditions=(*action.conditions, self._readable_condition(action.key)))
            for action in actions
        ]
        try:
            self._store.transact(guarded, token)
        except TransactionRefusedError as refused:
            # ``failed``: by index of an action, the item that stands there. Raise NewerSchemaError only if nothing but newer items was in the way.
            # If another condition failed too, perhaps a fence, the caller must hear of that.
            if all(self._is_newer(actions[index].key.table, item) for index, item in refused.failed.items()):
                for index, item in refused.failed.items():
                    self._check(actions[index].key.table, cast(Item, item))
            raise

    def _highest_known(self, table: str, partition: object) -> int:
        """Return the highest schema version that this release understands of items in a partition: see ``SCHEMA_OF_UNCLOSED`` and the following.

        items                            besides ``knows``
        -----                            -----------------
        state table: keys, claims        forms of sharing and turning; routing policies
        inflight items                   routing policies; kinds of objects
        configurations of clusters       a routing of the cluster; kinds of objects
        all others                       nothing
        """
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
        """Whether only a newer release understands the item. None: there is no item, so it is not newer."""
        if item is None:
            return False
        return cast(int, item.get(_VERSION, 1)) > self._highest_known(table, item[KEY_ATTRIBUTES[table][0]])

    def _check(self, table: str, item: Item) -> None:
        """Raise NewerSchemaError if only a newer release understands the item."""
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
