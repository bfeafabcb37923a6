"""The merge window: it collects events for a while after the first and keeps the newest per object, to apply them as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace

from kubesync.domain.objects import EMPTY_SET, ObjectKey, RawEvent, Resource, Snapshot


@dataclass(frozen=True, slots=True)
class Mode:
    """How lists are recorded: ``forced`` lets held deletions through; ``reread_upstreams`` reads what the table really holds."""

    forced: bool = False
    reread_upstreams: bool = False


@dataclass(frozen=True, slots=True)
class WindowContent:
    """A closed window: what one cluster has to record next.

    ``events`` holds the newest event per object, in version order within a resource. All are later than the resource's entry in
    ``snapshots``, if any. ``checkpoints`` holds the last version read per resource before the window closed. ``opened_at`` is the monotonic
    time of the first event; None for a window of bookmarks only. ``received`` counts the events before merging.
    """

    events: tuple[RawEvent, ...]
    snapshots: Mapping[Resource, Snapshot]
    checkpoints: Mapping[Resource, int]
    opened_at: float | None
    received: int

    @property
    def empty(self) -> bool:
        """Whether only bookmarks came."""
        return not self.events and not self.snapshots

    @property
    def size(self) -> int:
        """How many bytes its events take, as they came."""
        return _size_of(self.events)

    @property
    def merged(self) -> int:
        """How many events were replaced by a newer one of the same object, or by a list."""
        return self.received - len(self.events)

    @property
    def listed(self) -> int:
        """How many objects the window's lists hold."""
        return sum(len(snapshot.items) for snapshot in self.snapshots.values())

    def followed_by(self, later: WindowContent) -> WindowContent:
        """This window and a later one as one, with the newest event of each object.

        For a long window: while its keys are recorded, the next window closes, and its keys join those that still wait. ``later`` holds
        events only, no lists.
        """
        newest = {(e.resource, e.namespace, e.name): e for e in (*self.events, *later.events)}
        return WindowContent(
            tuple(sorted(newest.values(), key=lambda event: (event.resource, event.resource_version))),
            self.snapshots,
            {**self.checkpoints, **later.checkpoints},
            later.opened_at if self.opened_at is None else self.opened_at,
            self.received + later.received,
        )


class Turns:
    """The order in which the keys of a long window are recorded: their namespaces take turns.

    The lowest rank is recorded first; of one rank, the key that was added first. The rank of a new key is the highest of these:

        - the lowest rank that waits now (0: none waits)
        - one more than the last turn of its namespace, if namespaces take turns
        - the rank of the last key that asks for one of its names: who gets a name does not depend on turns. Its namespace loses no turn by it

    So a namespace's only change comes after at most one change of each other namespace. A key that asks for another name while it waits goes
    behind those that ask for it.

    ``keys``: all keys of the window in this order. ``recorded``: so many of them, from the front, are recorded; the others wait. The
    reconciler, which records them, counts it up.
    """

    def __init__(self) -> None:
        self.keys: list[ObjectKey] = []
        self.recorded = 0
        self._ranks: list[int] = []  # the rank of each of ``keys``, in the same order
        # Two kinds of entries. By a DNS name: the highest rank of the keys that ask for it. By "<namespace>/": the rank that the namespace
        # had last, which is its last turn.
        self._last: dict[str, int] = {}
        self._asked: dict[ObjectKey, AbstractSet[str]] = {}  # the names that each key asked for last (``add``)
        self._since: dict[ObjectKey, float] = {}  # when (monotonic) the first event of each key was read

    def add(
        self, keys: Iterable[ObjectKey], names: Mapping[ObjectKey, AbstractSet[str]], since: float, *, fair: bool
    ) -> None:
        """Add keys, the oldest first. One that waits already keeps its place, unless it asks for another name now.

        Args:
            names: what each asks for, waits for or has.
            since: when (monotonic) the first event of theirs was read.
            fair: namespaces take turns. Else all keys keep the order in which they came.
        """
        at = self.recorded  # from here on, keys wait
        ranks = dict(zip(self.keys[at:], self._ranks[at:], strict=True))
        now = min(ranks.values(), default=0)  # the rank that is recorded next
        for key in keys:
            rank, asked = ranks.get(key), names.get(key) or EMPTY_SET
            new = asked if rank is None else asked - self._asked[key]
            # The highest rank of those that ask for one of its names already. -1: nobody does.
            behind = max((self._last.get(name, -1) for name in new), default=-1)
            if rank is None:
                rank, self._since[key], namespace = now, since, f"{key.namespace}/"
                if fair and key.namespace:  # a bucket of shared objects is in no namespace, and has no turn
                    rank = self._last[namespace] = max(now, self._last.get(namespace, -1) + 1)
                ranks[key] = max(rank, behind)
            elif behind >= rank:
                del ranks[key]  # inserted anew, it is the last of its rank: ``sorted`` keeps the order of insertion
                ranks[key] = behind
            # else: it keeps its rank.
            self._asked[key] = asked
            self._last |= {name: max(ranks[key], self._last.get(name, -1)) for name in asked}
        self.keys[at:] = sorted(ranks, key=ranks.__getitem__)
        self._ranks[at:] = sorted(ranks.values())

    @property
    def mixed(self) -> bool:
        """Whether its keys are of several namespaces, or of several windows. Then the result of one must not wait for the recording of all."""
        return any(
            key.namespace != self.keys[0].namespace or self._since[key] != self._since[self.keys[0]]
            for key in self.keys
        )

    def since(self, keys: Iterable[ObjectKey]) -> float | None:
        """When (monotonic) the first event of these keys was read. None: nobody knows."""
        return min((self._since[key] for key in keys if key in self._since), default=None)

    def oldest(self) -> tuple[float, str] | None:
        """Since when (monotonic) the oldest event waits, and of which namespace it is. None: nothing waits."""
        return min(((self._since[key], key.namespace) for key in self.keys[self.recorded :]), default=None)


class Window:
    """Collects the events of one cluster, ``length_seconds`` from the first one on. Not thread-safe: its owner holds a lock."""

    def __init__(self, length_seconds: float) -> None:
        self._length_seconds = length_seconds
        # What ``close`` returns (``WindowContent``). Of each resource: the newest event of each object, by its namespace and name; the newest
        # complete list; and the version that was read last.
        self._events: dict[Resource, dict[tuple[str, str], RawEvent]] = {}
        self._snapshots: dict[Resource, Snapshot] = {}
        self._checkpoints: dict[Resource, int] = {}
        # The highest version of the kept events of each resource. The checkpoint may be lower, after a list that was read before some of them.
        self._newest: dict[Resource, int] = {}
        self.opened_at: float | None = None  # monotonic time of the first event or list; None: none has come yet
        self._received = 0  # events, before merging
        self._size = 0  # bytes of the kept events, or more: events that were replaced count until ``over`` counts anew

    def add_events(self, events: Sequence[RawEvent], now: float) -> None:
        """Keep events of one resource; there is at least one.

        An event is dropped if a newer one of its object is kept, or if a kept list is as new: then the list shows the object.
        """
        # The hot path of a session: work that is the same for all events stays out of the loop.
        self._open(now)
        self._received += len(events)
        resource = events[0].resource
        kept = self._events.setdefault(resource, {})
        snapshot = self._snapshots.get(resource)
        listed = -1 if snapshot is None else snapshot.resource_version
        before = newest = max(listed, self._newest.get(resource, 0))
        # ``late``: the highest version of the events that are newer than the kept list, but not than all kept events. They come after a list
        # that is older than kept events: the watch goes on at the list's version, where the checkpoint is too, and sends these events once more.
        size = late = 0
        for event in events:
            _, _, namespace, name, _, version, line = event
            size += len(line)
            if version > newest:  # the usual case: no kept event is newer
                newest = version
                kept[namespace, name] = event
            elif version > listed:
                late = max(late, version)
                known = kept.get((namespace, name))
                if known is None or known.resource_version < version:
                    kept[namespace, name] = event
        self._newest[resource] = newest
        self._size += size
        # If nothing is newer, only late events move the checkpoint. If there are none, ``late`` is 0, which moves nothing.
        self._advance(resource, newest if newest > before else late)

    def add_bookmark(self, resource: Resource, resource_version: int) -> None:
        """Move the checkpoint; a bookmark alone opens no window."""
        self._advance(resource, resource_version)

    def add_snapshot(self, snapshot: Snapshot, now: float) -> None:
        """A complete list replaces its listener's pending events up to the list's version.

        If the store went back, earlier versions mean nothing: all pending events of that listener are dropped.
        """
        self._open(now)
        resource = snapshot.resource
        pending = {} if snapshot.store_went_back else self._events.get(resource, {})
        if not pending:  # after a store that went back, the old version would hide newer events
            self._newest.pop(resource, None)
        self._events[resource] = {
            place: event for place, event in pending.items() if event.resource_version > snapshot.resource_version
        }
        earlier = self._snapshots.get(resource)
        if earlier is not None:
            # The earlier list is not recorded yet. The new one carries on the generation that it began, and the room that it took.
            went_back = snapshot.store_went_back or earlier.store_went_back
            snapshot = replace(snapshot, store_went_back=went_back, size=snapshot.size + earlier.size)
        self._snapshots[resource] = snapshot
        self._checkpoints[resource] = snapshot.resource_version

    def over(self, most_bytes: int) -> bool:
        """Whether the kept events take more than so many bytes.

        To count the kept events takes long. So it is done only once all events that came since the last count take more.
        """
        if self._size > most_bytes:
            self._size = sum(map(_size_of, (kept.values() for kept in self._events.values())))
        return self._size > most_bytes

    def closes_at(self) -> float | None:
        """Monotonic time at which the window is due, None while it is not open."""
        return None if self.opened_at is None else self.opened_at + self._length_seconds

    def close(self) -> WindowContent:
        """Return what was collected, and begin again."""
        of_resources = (self._events[resource].values() for resource in sorted(self._events))
        events = tuple(event for some in of_resources for event in sorted(some, key=lambda e: e.resource_version))
        content = WindowContent(events, self._snapshots, self._checkpoints, self.opened_at, self._received)
        self._events, self._snapshots, self._checkpoints, self._newest = {}, {}, {}, {}
        self.opened_at, self._received, self._size = None, 0, 0
        return content

    def _open(self, now: float) -> None:
        """Open the window, if it is not open."""
        if self.opened_at is None:
            self.opened_at = now

    def _advance(self, resource: Resource, resource_version: int) -> None:
        """Move the checkpoint of a resource, only upward."""
        if resource_version > self._checkpoints.get(resource, 0):
            self._checkpoints[resource] = resource_version


def _size_of(events: Iterable[RawEvent]) -> int:
    return sum(len(event.line) for event in events)
