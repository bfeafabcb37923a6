"""The form of every item: its schema version ``v``, the guard of its version, and slices for documents of more than 100 KB.

sort key             holds
--------             -----
<sort>               the head: the first slice, and how many there are
<sort>#<001..>       further slices
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubesync.aws.dynamodb.store import (
    KEY_ATTRIBUTES,
    Absent,
    Action,
    Condition,
    Delete,
    Equals,
    Item,
    Key,
    Put,
    Store,
    Update,
)

SCHEMA: Final = 1
# Forms that only some items have (ADR 0013). A release that does not know them leaves the zone, or the cluster, alone. Kinds of objects and
# routing policies say their own: ``Kind.schema`` (configurations, inflight items), ``policies.since`` (keys, inflight items).
SCHEMA_OF_UNCLOSED: Final = 2  # an inflight item with units that are unclosed
SCHEMA_OF_KINDS: Final = 3  # an inflight item with units of other kinds than Services, at least
SCHEMA_OF_SHARING: Final = 3  # a configuration with a routing policy
SCHEMA_OF_TYPES: Final = 5  # a claim that several keys share by types, and such a key
SCHEMA_OF_TURNING: Final = 6  # a key whose sets change their policy in one batch with those of other clusters

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
    """Replace an item. Its ``v`` is ``SCHEMA``, if ``fields`` give no other."""
    return Put(place, {"v": SCHEMA, **fields}, guards)


def update(place: Key, /, add: Mapping[str, int], **fields: object) -> Update:
    """Set these attributes of an item and add to others. Creates a missing item."""
    return Update(place, set={"v": SCHEMA, **fields}, add=add)


def unchanged(version: int) -> Absent | Equals:
    """A guard: the item still has this version. 0: there is no item."""
    return Equals("version", version) if version else Absent()


def place_of(table: str, item: Item) -> Key:
    """The key of an item that was read."""
    partition, sort = KEY_ATTRIBUTES[table]
    return Key(table, item[partition], item[sort])


def sliced(
    place: Key, document: object, before: int = 1, /, **of_slices: object
) -> tuple[dict[str, Any], list[Action]]:
    """A document in as many slices as it needs. Text always fits one.

    Args:
        before: how many slices there are now.
        of_slices: what further slices hold besides.

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
    """The document of these slices."""
    if len(slices) == 1:
        return unpack(slices[0])
    return unpack(b"".join(slices))


def slice_place(head: Key, number: int) -> Key:
    """The key of a slice; slice 0 is the head."""
    return Key(head.table, head.partition, f"{head.sort}#{number:03d}") if number else head


def read_slices(store: Store, place: Key, head: Item, attribute: str = "body") -> Any:
    """The document of a head that was read already and holds its slice in ``attribute``. Reads the further slices."""
    places = [slice_place(place, number) for number in range(1, head["slices"])]
    found = store.batch_get(places) if places else {}
    return unpack_slices([head[attribute], *(found[each]["body"] for each in places)])


def pack(document: object) -> str | bytes:
    """JSON as text if it is short and valid UTF-8 (JSON lets lone surrogates through), else deflated. Every release reads both."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    encoded = text.encode("utf-8", "surrogatepass")
    readable = len(encoded) <= _READABLE_BYTES and not _SURROGATE.search(text)
    if readable and _units(len(encoded)) == 1:
        return text
    deflated = zlib.compress(encoded, 6)
    return text if readable and _units(len(encoded)) == _units(len(deflated)) else deflated


def _units(length: int) -> int:
    """Write units of an item whose document has this length."""
    return -(-(length + _OVERHEAD_BYTES) // _UNIT_BYTES)


def unpack(body: str | bytes) -> Any:
    """The inverse of ``pack``."""
    if isinstance(body, str):
        return json.loads(body)
    return json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass"))
