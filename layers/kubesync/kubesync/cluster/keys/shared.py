"""Shared objects, such as Gateways: what plans read of them, which keys read which object, and what follows when an object changes.

    a plan reads an object          ── its key is written to the index of readers, also if the object does not exist
    an object changes               ── a durable mark "plan the readers of this object" is written with the object's bucket, if it has readers
    the cluster has time            ── it plans the readers, some at a time, and removes the mark (``served_keys.Readers``)

Shared objects are packed into buckets, and a bucket is stored like a key. It is recorded before the keys of its window, so no plan is older
than the objects that it read.

No kind of this release is shared, or reads shared objects: the tests register one.
"""

from collections.abc import Callable, Set as AbstractSet
from typing import Final

from kubesync.aws.tables.state import StateTable
from kubesync.cluster.keys.key_writes import Piece
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.sources.port import UnknownObjectError
from kubesync.domain.sources.registry import KINDS, bucket_of, part_of, place_of
from kubesync.domain.state import KeyState, Reference

# If more objects of a bucket change, its whole index of readers is read once. Up to this number, one query for each is cheaper.
_ASKED_ONE_BY_ONE: Final = 4


class SharedReader:
    """Implements ``Shared`` for one plan of one key.

    ``reads``: the objects that the plan has read. ``missing``: resources that the plan needed and whose views are not complete.

    Args:
        complete: resources whose views are complete.
        bucket: returns the state of a bucket, as this commit leaves it.
    """

    def __init__(self, cluster: str, complete: AbstractSet[Resource], bucket: Callable[[ObjectKey], KeyState]) -> None:
        self.reads: set[Reference] = set()
        self.missing: set[Resource] = set()
        self._cluster = cluster
        self._complete = complete
        self._bucket = bucket

    def get(self, kind: str, namespace: str, name: str) -> object | None:
        reference = Reference(kind, namespace, name)
        self.reads.add(reference)
        if KINDS[kind].main not in self._complete:
            self.missing.add(KINDS[kind].main)
            raise UnknownObjectError(str(reference))
        part = self._bucket(bucket_of(self._cluster, reference)).parts.get(part_of(reference))
        return None if part is None else part.value


def index_updates(before: KeyState, after: KeyState) -> list[Piece]:
    """Writes of the index of readers: which shared objects the key reads from now on, and which no longer."""
    changed = sorted(before.reads ^ after.reads)
    return [Piece((StateTable.note_reader(after.key, each, reads=each in after.reads),)) for each in changed]


def change_marks(table: StateTable, before: KeyState, after: KeyState) -> tuple[list[Piece], dict[Reference, int]]:
    """Durable marks for the objects of a bucket that change and that keys read. Also returns these objects, with the numbers of their marks."""
    # The number of a mark is the version of the bucket that it belongs to: whoever removes the mark removes no later one.
    cluster, number = after.key.cluster, before.version + 1
    was, now = ({part_id: part.value for part_id, part in state.parts.items()} for state in (before, after))
    parts = sorted(part_id for part_id in was.keys() | now.keys() if was.get(part_id) != now.get(part_id))
    changed = [Reference(after.key.kind, *place_of(after.key, part_id)) for part_id in parts]
    if len(changed) > _ASKED_ONE_BY_ONE:
        known = table.objects_read(after.key)
        read = [reference for reference in changed if reference in known]
    else:
        read = [each for each in changed if next(table.readers(cluster, each), None) is not None]
    pieces = [Piece((table.mark_changed(cluster, ref, number),)) for ref in read]
    return pieces, dict.fromkeys(read, number)
