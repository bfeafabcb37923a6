"""The state table: service keys, the queue of open keys, and the Service that each EndpointSlice was last seen with.

partition                       sort                              holds
---------                       ----                              -----
<cluster>#<bucket 0..f>         key#<namespace>/<name>            head: version, tx, slices, body
                                key#<namespace>/<name>#<001..>    further slices of a body over 100 KB, ``of`` a version
                                slice#<namespace>/<object>        service: the label's last value (EndpointSlices only)
<cluster>#open#<0..3>           <namespace>/<name>                open mark: attempts, retry_at, reason, code, cause, since
                                <namespace>/<name>#heir#<name>    the key has to be planned, because of the name: for example, it was given it
                                <namespace>/<name>#gone           the key holds tombstones that have to be swept
<cluster>#open#0                #changed#<shared object>          a shared object changed: plan the keys that read it. ``by``: a number
<cluster>#readers#<0..f>        <shared object>#<namespace>/<name>  the key reads the object (kind/namespace/name), which may not exist
<cluster>#asked                 <namespace>                       see ``name_counts``

A *mark* is an item that says what is still to do for a key. A take-over finds the marks of a cluster with one query for each of four
partitions (``queued``). A *tombstone* is the part of a deleted object: it stays until no late event can bring the object back.

A *shared object* has no key of its own; plans of many keys read it, as those of routes would read a Gateway (``sources.port.shared_kind``). No
kind of this release has any: only one of the tests does. Shared objects lie in *buckets*, which are stored like keys (``bucket_of``). A key that
reads one is its *reader*.
"""

import logging
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import batched, chain
from typing import Final

from kubesync.aws.dynamodb.store import STATE, Action, Delete, Equals, Item, Key
from kubesync.aws.tables.items import Table, attributes_of, place_of, put, slice_place, sliced, unchanged, unpack_slices
from kubesync.aws.tables.name_counts import OF_NAMESPACES
from kubesync.aws.tables.state_codec import decode_state, encode_state, schema_of
from kubesync.domain.errors import StoreBusyError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.sources.registry import bucket_of
from kubesync.domain.state import KeyState, Name, OpenMark, Reference

# A child of the functions' Logger, by its name. Commands import this file too: Powertools would be a tenth of their start.
logger = logging.getLogger(f"kubesync.{__name__}")

BUCKETS: Final = 16
# Fewer than the buckets of keys, because every take-over queries all of them (I7). It divides the number of buckets, so that the
# marks of one bucket's keys are all in one of these.
OPEN_PARTITIONS: Final = 4
_READ_AT_A_TIME: Final = 50  # a head and a mark each: one request
_TORN_READS: Final = 5
_GONE: Final = "gone"
_CHANGED: Final = "changed#"


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def state_key(key: ObjectKey) -> Key:
    """The item of a key's head."""
    return Key(STATE, f"{key.cluster}#{_hash(key.path) % BUCKETS:x}", f"key#{key.path}")


def open_key(key: ObjectKey) -> Key:
    """The item of a key's open mark."""
    return Key(STATE, f"{key.cluster}#open#{_hash(key.path) % OPEN_PARTITIONS}", key.path)


def _to_plan_key(key: ObjectKey, name: Name) -> Key:
    """The item of ``mark_to_plan``. ``heir`` is the stored word for a key that was given a name."""
    place = open_key(key)
    # One transaction can give a key two claims of one name: with an identifier, and of a seat in its routing policy. Each has its own mark.
    seat = f"/{name.seat}" if name.seat else ""
    return Key(STATE, place.partition, f"{place.sort}#heir#{name.zone_id}/{name.name}{seat}")


def _changed_key(cluster: str, reference: Reference) -> Key:
    """The item that says that a shared object has changed."""
    return Key(STATE, f"{cluster}#open#0", f"#{_CHANGED}{reference.path}")


def _readers_partition(bucket: ObjectKey) -> str:
    """Where the readers of a bucket's objects are noted."""
    return f"{bucket.cluster}#readers#{bucket.name}"


def slice_key(cluster: str, namespace: str, name: str) -> Key:
    """The item that holds the Service of an EndpointSlice."""
    path = f"{namespace}/{name}"
    return Key(STATE, f"{cluster}#{_hash(path) % BUCKETS:x}", f"slice#{path}")


@dataclass(frozen=True, slots=True)
class Queued:
    """What the marks of a cluster say is still to do.

    Attributes:
        marks: the open keys.
        to_plan: keys that have to be planned because of a name (``mark_to_plan``).
        unswept: keys whose tombstones have to be swept.
        changed: shared objects whose readers have to be planned, with the numbers of their marks (``mark_changed``).
    """

    marks: dict[ObjectKey, OpenMark]
    to_plan: set[ObjectKey]
    unswept: set[ObjectKey]
    changed: dict[Reference, int] = field(default_factory=dict)


class StateTable(Table):
    """Reads items and builds their writes. It never writes itself: every write belongs into a transaction with a fence (I2)."""

    def load(self, keys: Iterable[ObjectKey]) -> dict[ObjectKey, KeyState]:
        """Read the states of these keys. A key without one gets ``KeyState(key)``."""
        return {state.key: state for state in self.load_each(keys)}

    def load_each(self, keys: Iterable[ObjectKey]) -> Iterator[KeyState]:
        """Read like ``load``, lazily and in the order given, so that not all states need to fit into memory."""
        for some in batched(dict.fromkeys(keys), _READ_AT_A_TIME):
            found = self._store.batch_get([*map(state_key, some), *map(open_key, some)])
            for key in some:
                head = found.pop(state_key(key), None)
                marked = found.get(open_key(key))
                mark = None if marked is None else _mark(marked)
                yield KeyState(key, opened=mark) if head is None else self._decode(key, head, mark)

    def load_all(self, cluster: str) -> Iterator[KeyState]:
        """Read the states of all keys of a cluster, lazily. Only for lists and resyncs (I7)."""
        marks = self.queued(cluster).marks
        for bucket in range(BUCKETS):
            yield from self._read_bucket(cluster, bucket, marks)

    def load_bucket(self, cluster: str, bucket: int) -> Iterator[KeyState]:
        """Read the states of one of the ``BUCKETS``: a part of what ``load_all`` reads."""
        return self._read_bucket(cluster, bucket, self.queued(cluster, [bucket % OPEN_PARTITIONS]).marks)

    def _read_bucket(self, cluster: str, bucket: int, marks: Mapping[ObjectKey, OpenMark]) -> Iterator[KeyState]:
        """Read the states of a bucket of keys. ``marks``: open marks of these keys, read before. A head has ``version``, a slice has ``of``."""
        items: list[Item] = []  # a head, then its slices: "#" sorts before every character of a name
        for item in self._store.query(STATE, f"{cluster}#{bucket:x}", prefix="key#"):
            if "version" in item and items:
                yield self._assemble(cluster, items, marks)
                items = []
            if items or "version" in item:  # else a slice whose head somebody deleted
                items.append(item)
        if items:
            yield self._assemble(cluster, items, marks)

    def any_key(self, cluster: str) -> bool:
        """Whether any key is stored: the removal of a cluster ends when none is. The cost does not depend on the number of keys."""
        return any(
            next(iter(self._store.query(STATE, f"{cluster}#{bucket:x}", prefix="key#", limit=1)), None) is not None
            for bucket in range(BUCKETS)
        )

    def open_keys(self, cluster: str) -> Iterator[tuple[ObjectKey, OpenMark]]:
        """Read the open keys of a cluster, with their marks: the durable work queue."""
        return iter(self.queued(cluster).marks.items())

    def queued(self, cluster: str, partitions: Iterable[int] = range(OPEN_PARTITIONS)) -> Queued:
        """Read all marks of a cluster: the work that a take-over finds. ``partitions``: of the ``OPEN_PARTITIONS``."""
        found = Queued({}, set(), set())
        # What follows the key's path says which mark it is: see the first lines of this file. Marks of shared objects have no path.
        for item in chain.from_iterable(self._store.query(STATE, f"{cluster}#open#{each}") for each in partitions):
            path, _, kind = item["sk"].partition("#")
            key = ObjectKey.at(cluster, path)
            if not kind:
                found.marks[key] = _mark(item)
            elif kind.startswith(_CHANGED):
                found.changed[Reference.at(kind.removeprefix(_CHANGED))] = item["by"]
            elif kind == _GONE:
                found.unswept.add(key)
            else:  # #heir#
                found.to_plan.add(key)
        return found

    def services_of_slices(self, cluster: str, slices: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The Service that each EndpointSlice (namespace, name) was last seen with. Slices never seen are missing."""
        places = {slice_key(cluster, namespace, name): (namespace, name) for namespace, name in slices}
        return {places[k]: item["service"] for k, item in self._store.batch_get(list(places)).items()}

    def all_slices(self, cluster: str) -> Iterator[tuple[tuple[str, str], str]]:
        """Namespace and name of every remembered EndpointSlice, with its Service. Read lazily."""
        for bucket in range(BUCKETS):
            for item in self._store.query(STATE, f"{cluster}#{bucket:x}", prefix="slice#"):
                namespace, _, name = item["sk"].removeprefix("slice#").partition("/")
                yield (namespace, name), item["service"]

    def put(self, before: KeyState, after: KeyState, token: str) -> tuple[KeyState, list[Action]]:
        """Replace a key. Returns the state with its new version, and the actions that store it. A key of which nothing is left is deleted.

        Args:
            before: as loaded; its version is the condition.
            token: the transaction's. It is stored, so that a read shows whether a write with a lost answer happened.
        """
        place = state_key(before.key)
        guard = unchanged(before.version)
        # Nothing is left: no outputs, no parts (tombstones are parts too), nothing to do.
        if after.bare and not after.parts and after.opened is None:
            gone: list[Action] = [] if before.version == 0 else [Delete(place, (guard,))]
            gone += [Delete(slice_place(place, n)) for n in range(1, before.slices)]
            gone += self._mark_change(before, after)
            return KeyState(before.key), gone
        version = before.version + 1
        head, rest = sliced(place, encode_state(after), before.slices, of=version)
        head["v"] = schema_of(after)
        stored = replace(after, version=version, slices=head["slices"])
        return stored, [put(place, guard, version=version, tx=token, **head), *rest, *self._mark_change(before, after)]

    @staticmethod
    def remember_slice(cluster: str, namespace: str, name: str, service: str | None) -> Action:
        """Remember which Service an EndpointSlice belongs to; with None, forget it."""
        place = slice_key(cluster, namespace, name)
        return Delete(place) if service is None else put(place, service=service)

    @staticmethod
    def mark_open(key: ObjectKey, mark: OpenMark) -> Action:
        """Put a key into the durable work queue."""
        since = {"since": round(mark.since * 1000)} if mark.since else {}
        fields = {"attempts": mark.attempts, "retry_at": round(mark.retry_at * 1000), **since}
        return put(open_key(key), **fields, reason=mark.reason, code=mark.code, cause=mark.cause)

    @staticmethod
    def mark_to_plan(key: ObjectKey, name: Name) -> Action:
        """Mark durably that a key has to be planned because of a name, for example because it was given the name. Whoever plans it removes the
        mark."""
        return put(_to_plan_key(key, name))

    def unmark_to_plan(self, cluster: str, keys: Iterable[ObjectKey]) -> dict[ObjectKey, list[Action]]:
        """Return, by key, the writes that remove all marks (``mark_to_plan``) of keys that are being planned.

        For few keys it makes one query each; for more it queries the whole queue once, as every take-over does.
        """
        found: dict[ObjectKey, list[Action]] = {key: [] for key in keys}
        if len(found) <= OPEN_PARTITIONS:
            places = map(open_key, found)
            queries = [self._store.query(STATE, at.partition, prefix=f"{at.sort}#heir#") for at in places]
        else:
            queries = [self._store.query(STATE, f"{cluster}#open#{each}") for each in range(OPEN_PARTITIONS)]
        for item in chain.from_iterable(queries):
            path, _, mark = item["sk"].partition("#")
            key = ObjectKey.at(cluster, path)
            if mark.startswith("heir#") and key in found:
                found[key].append(_delete(item))
        return found

    def readers(self, cluster: str, reference: Reference) -> Iterator[ObjectKey]:
        """The keys that read a shared object, read lazily."""
        prefix = f"{reference.path}#"
        for item in self._store.query(STATE, _readers_partition(bucket_of(cluster, reference)), prefix=prefix):
            yield ObjectKey.at(cluster, item["sk"].removeprefix(prefix))

    def objects_read(self, bucket: ObjectKey) -> set[Reference]:
        """Return the shared objects of a bucket that any key reads, including objects that do not exist. Reads the index of the whole bucket."""
        found = self._store.query(STATE, _readers_partition(bucket), prefix=f"{bucket.kind}/")
        return {Reference.at(item["sk"].partition("#")[0]) for item in found}

    @staticmethod
    def note_reader(key: ObjectKey, reference: Reference, *, reads: bool) -> Action:
        """Return the write that notes that a key reads a shared object (``reads``), or no longer does."""
        place = Key(STATE, _readers_partition(bucket_of(key.cluster, reference)), f"{reference.path}#{key.path}")
        return put(place) if reads else Delete(place)

    @staticmethod
    def mark_changed(cluster: str, reference: Reference, number: int) -> Action:
        """Return the write that notes durably that the readers of a shared object have to be planned.

        ``number``: the bucket's version with the change. So each change has another number, and ``unmark_changed`` leaves a later one alone.
        """
        return put(_changed_key(cluster, reference), by=number)

    @staticmethod
    def unmark_changed(cluster: str, reference: Reference, number: int) -> Action:
        """Return the write that removes the note of ``mark_changed``, once the readers are planned. A note with another number stays."""
        return Delete(_changed_key(cluster, reference), (Equals("by", number),))

    def leftover_marks(self, cluster: str) -> Iterator[Delete]:
        """Return the writes that remove the marks and counts of a cluster without keys: no planning will remove them."""
        for partition in (*(f"open#{number}" for number in range(OPEN_PARTITIONS)), *OF_NAMESPACES):
            yield from map(_delete, self._store.query(STATE, f"{cluster}#{partition}"))

    def _mark_change(self, before: KeyState, after: KeyState) -> list[Action]:
        """Return the writes for a key's open mark, and for the mark that it holds tombstones, as far as they change."""
        actions: list[Action] = []
        place, mark = open_key(after.key), after.opened
        if before.opened != after.opened:
            actions.append(Delete(place) if mark is None else self.mark_open(after.key, mark))
        if before.tombstoned != after.tombstoned:
            # Only a list would read such a key again (I7): the mark lets the next take-over find it.
            gone = replace(place, sort=f"{place.sort}#{_GONE}")
            actions.append(put(gone) if after.tombstoned else Delete(gone))
        return actions

    def _decode(self, key: ObjectKey, head: Item, mark: OpenMark | None) -> KeyState:
        """Decode a key's state. Reads its slices, which another write may replace at the same time: then it reads all items again, some times.

        what was read                                       result
        -------------                                       ------
        head and slices of one version                      the state
        never of one version, and the head has not changed  a state without content: an operator deleted or restored an item
        never of one version, and the head has changed      StoreBusyError: it keeps changing
        """
        items = [head]
        for _ in range(_TORN_READS):
            places = [slice_place(state_key(key), n) for n in range(1, items[0]["slices"])]
            found = self._store.batch_get([state_key(key), *places]) if places else {}
            items = [found.get(state_key(key), items[0]), *(found[place] for place in places if place in found)]
            if _of_one_version(items):
                return _decode_items(key, items, mark)
        if items[0]["version"] == head["version"]:
            # Nobody writes it: an operator deleted or restored one of its items. It is as one that was deleted; others go on (I4).
            logger.error("a key's items do not belong together: its state is lost", extra={"service": str(key)})
            return KeyState(key, head["version"], opened=mark, slices=head["slices"])
        raise StoreBusyError(f"the state of {key} keeps changing while it is read")

    def _assemble(self, cluster: str, items: list[Item], marks: Mapping[ObjectKey, OpenMark]) -> KeyState:
        """Decode a head and its slices as a query returned them. ``marks``: open marks, by key."""
        key = ObjectKey.at(cluster, items[0]["sk"].removeprefix("key#"))
        # A page of a query is not a transaction: a key that changed meanwhile is read again on its own.
        return _decode_items(key, items, marks.get(key)) if _of_one_version(items) else self.load([key])[key]


def _of_one_version(items: list[Item]) -> bool:
    """Whether a head and its slices have the same version."""
    head, *rest = items
    return len(items) == head["slices"] and all(item.get("of") == head["version"] for item in rest)


def _decode_items(key: ObjectKey, items: list[Item], mark: OpenMark | None) -> KeyState:
    document = unpack_slices([item["body"] for item in items])
    return decode_state(key, items[0]["version"], document, mark, len(items))


def _delete(item: Item) -> Delete:
    return Delete(place_of(STATE, item))


def _mark(item: Item) -> OpenMark:
    # Older marks have no code, no cause and no ``since``.
    return replace(
        OpenMark(**attributes_of(OpenMark, item)), retry_at=item["retry_at"] / 1000, since=item.get("since", 0) / 1000
    )
