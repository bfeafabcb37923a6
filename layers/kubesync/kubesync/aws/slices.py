"""Documents of more than 100 KB take several items: a head, and further slices.

sort key             holds
--------             -----
<sort>               the head: the first slice, and how many there are
<sort>#<001..>       further slices
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from kubesync.aws.dynamodb.store import Item, Key, Store
from kubesync.aws.tables.state_codec import pack, unpack

MAX_SLICE_BYTES: Final = 100_000


def pack_slices(document: object) -> list[str | bytes]:
    """A packed document, in as many slices as it needs. Text always fits one."""
    body = pack(document)
    if isinstance(body, str):
        return [body]
    return [body[at : at + MAX_SLICE_BYTES] for at in range(0, len(body), MAX_SLICE_BYTES)]


def unpack_slices(slices: Sequence[object]) -> Any:
    """The inverse of ``pack_slices``."""
    if len(slices) == 1:
        return unpack(cast("str | bytes", slices[0]))
    return unpack(b"".join(cast("Sequence[bytes]", slices)))


def slice_place(head: Key, number: int) -> Key:
    """The key of a slice; slice 0 is the head."""
    return Key(head.table, head.partition, f"{head.sort}#{number:03d}") if number else head


def read_slices(store: Store, place: Key, head: Item, attribute: str = "body") -> Any:
    """The document of a head that was read already and holds its slice in ``attribute``. Reads the further slices."""
    places = [slice_place(place, number) for number in range(1, cast(int, head["slices"]))]
    found = store.batch_get(places) if places else {}
    return unpack_slices([head[attribute], *(found[each]["body"] for each in places)])
