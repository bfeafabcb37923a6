"""Objects, their versions and their history: one counter for everything, as etcd has it.

A write takes the next version of the whole store. Each resource keeps a history of changes: watches resume from it, and later
pages of a list are rebuilt from it. Compaction and a restore from a backup act on that history.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kubesync_local.standins.apiserver.objects.resources import BY_PLURAL, ResourceType
from kubesync_local.standins.apiserver.objects.status import JsonObject
from kubesync_local.standins.apiserver.objects.wire import go_json

# The pages of one list come from one kept snapshot; a few lists may be under way at a time.
_KEPT_SNAPSHOTS: Final = 8
BOOKMARK: Final = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One state of an object, as a list's item; ``item`` is never changed."""

    key: str
    version: int
    item: JsonObject
    encoded: bytes

    @classmethod
    def of(cls, item: JsonObject) -> StoredObject:
        """Wrap an item that has its namespace, name and resourceVersion."""
        metadata = item["metadata"]
        return cls(
            object_key(metadata["namespace"], metadata["name"]), int(metadata["resourceVersion"]), item, go_json(item)
        )


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of a resource's history.

    ``type`` is ADDED, MODIFIED, DELETED or BOOKMARK. ``sequence`` grows with every entry of the store and never goes back,
    even when versions do. ``after`` of a DELETED is the last state with the version of the deletion.
    """

    sequence: int
    version: int
    type: str
    before: StoredObject | None = None
    after: StoredObject | None = None


@dataclass(slots=True)
class _History:
    objects: dict[str, StoredObject] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    compacted: int = 0
    pinned: int | None = None


def object_key(namespace: str, name: str) -> str:
    """The key under which an object is stored; lists are in the order of keys."""
    return f"{namespace}/{name}"


class VersionGoneError(Exception):
    """The version is compacted; ``oldest`` is the first one still kept."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"compacted up to {oldest}")
        self.oldest = oldest


class Store:
    """Thread-safe. ``changed`` is notified after every change, and is the lock of the whole store."""

    def __init__(self, first_version: int = 200, history_limit: int | None = None) -> None:
        """``history_limit``: changes kept per resource, the oldest are compacted; None keeps all."""
        self.changed = threading.Condition(threading.RLock())
        self._revision = first_version
        self._sequence = 0
        self._history_limit = history_limit
        self._histories = {resource.plural: _History(compacted=first_version) for resource in BY_PLURAL.values()}
        self._snapshots: OrderedDict[tuple[str, int], tuple[StoredObject, ...]] = OrderedDict()

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The version of the last write to the whole store."""
        with self.changed:
            return self._revision

    @property
    def sequence(self) -> int:
        """The number of the last history entry."""
        with self.changed:
            return self._sequence

    def version(self, resource: ResourceType) -> int:
        """The version that a list of this resource shows: the store's, or the one that a replay has reached."""
        with self.changed:
            pinned = self._histories[resource.plural].pinned
            return self._revision if pinned is None else pinned

    def compacted(self, resource: ResourceType) -> int:
        """Changes up to this version are compacted."""
        with self.changed:
            return self._histories[resource.plural].compacted

    def get(self, resource: ResourceType, namespace: str, name: str) -> StoredObject | None:
        """The object's current state."""
        with self.changed:
            return self._histories[resource.plural].objects.get(object_key(namespace, name))

    def objects(self, resource: ResourceType) -> tuple[StoredObject, ...]:
        """Current states, in the order of keys."""
        with self.changed:
            return self.snapshot(resource, self.version(resource))

    def snapshot(self, resource: ResourceType, version: int) -> tuple[StoredObject, ...]:
        """All objects as they were at ``version``, in the order of keys. Raises VersionGoneError."""
        with self.changed:
            history = self._histories[resource.plural]
            if version < history.compacted:
                raise VersionGoneError(history.compacted)
            cache_key = (resource.plural, min(version, self.version(resource)))
            if cache_key not in self._snapshots:
                objects = dict(history.objects)
                for change in reversed(history.changes[self._position(history, version) :]):
                    if change.before is not None:
                        objects[change.before.key] = change.before
                    elif change.after is not None:
                        objects.pop(change.after.key, None)
                self._snapshots[cache_key] = tuple(objects[key] for key in sorted(objects))
                while len(self._snapshots) > _KEPT_SNAPSHOTS:
                    self._snapshots.popitem(last=False)
            return self._snapshots[cache_key]

    def changes_after_version(self, resource: ResourceType, version: int) -> list[Change]:
        """The changes for a watch that resumes at ``version``, without bookmarks.

        Raises VersionGoneError if that version is compacted.
        """
        with self.changed:
            history = self._histories[resource.plural]
            if version < history.compacted:
                raise VersionGoneError(history.compacted)
            return [change for change in history.changes[self._position(history, version) :] if change.type != BOOKMARK]

    def changes_after_sequence(self, resource: ResourceType, sequence: int) -> list[Change]:
        """The entries after a given one, bookmarks included."""
        with self.changed:
            changes = self._histories[resource.plural].changes
            return changes[bisect_right(changes, sequence, key=lambda change: change.sequence) :]

    # -- writing -------------------------------------------------------------------------------------------------

    def next_version(self) -> int:
        """The version that the next ``commit`` must carry. Hold ``changed`` across both."""
        return self._revision + 1

    def commit(self, resource: ResourceType, change_type: str, after: StoredObject) -> None:
        """Record a change made at ``next_version()``."""
        with self.changed:
            for history in self._histories.values():
                history.pinned = None
            self._revision = max(self._revision + 1, after.version)
            self._record(resource, change_type, after)

    def replay(self, resource: ResourceType, change_type: str, after: StoredObject) -> None:
        """Record a change of a recording, with the version it had; other resources do not change."""
        with self.changed:
            self._record(resource, change_type, after)
            self._pin(resource, after.version)

    def bookmark(self, resource: ResourceType, version: int | None = None) -> None:
        """Send a bookmark now to the watches that want them. ``version``: a recorded one."""
        with self.changed:
            if version is not None:
                self._pin(resource, max(version, self.version(resource)))
            self._append(resource, Change(self._sequence + 1, self.version(resource), BOOKMARK))
            self.changed.notify_all()

    def install(self, resource: ResourceType, items: Iterable[JsonObject], version: int) -> None:
        """Replace a resource by these objects, verbatim, as its state at ``version``; its history starts there."""
        with self.changed:
            stored = (StoredObject.of(item) for item in items)
            history = _History({each.key: each for each in stored}, compacted=version)
            self._histories[resource.plural] = history
            self._snapshots.clear()
            self._pin(resource, version)
            self.changed.notify_all()

    def advance(self, version: int) -> None:
        """Set the version of the whole store, as after writes to resources that are not served here."""
        with self.changed:
            self._revision = max(self._revision, version)
            for history in self._histories.values():
                history.pinned = None
            self._snapshots.clear()
            self.changed.notify_all()

    def write_elsewhere(self) -> None:
        """Move the store's version on, as a cluster does all the time: its nodes renew their leases.

        Not while a recording is replayed: its versions are given.
        """
        with self.changed:
            if all(history.pinned is None for history in self._histories.values()):
                self._revision += 1

    def compact(self, to_version: int, resource: ResourceType | None = None) -> None:
        """Forget changes up to ``to_version``, of one resource or of all; a version below it is then too old."""
        with self.changed:
            for name, history in self._histories.items():
                if resource is None or resource.plural == name:
                    del history.changes[: self._position(history, to_version)]
                    history.compacted = max(history.compacted, to_version)
            self._snapshots.clear()

    def restore(self, to_version: int) -> None:
        """Go back to the state at ``to_version``, as after a restore from a backup; later versions are used again.

        Raises VersionGoneError if that state is no longer kept.
        """
        with self.changed:
            states = {resource.plural: self.snapshot(resource, to_version) for resource in BY_PLURAL.values()}
            for name, history in self._histories.items():
                del history.changes[self._position(history, to_version) :]
                history.objects = {each.key: each for each in states[name]}
                history.pinned = None
            self._revision = to_version
            self._snapshots.clear()
            self.changed.notify_all()

    def _record(self, resource: ResourceType, change_type: str, after: StoredObject) -> None:
        history = self._histories[resource.plural]
        before = history.objects.get(after.key)
        if change_type == "DELETED":
            history.objects.pop(after.key, None)
        else:
            history.objects[after.key] = after
        self._append(resource, Change(self._sequence + 1, after.version, change_type, before, after))
        for key in [key for key in self._snapshots if key[0] == resource.plural and key[1] >= after.version]:
            del self._snapshots[key]
        self.changed.notify_all()

    def _append(self, resource: ResourceType, change: Change) -> None:
        self._sequence = change.sequence
        history = self._histories[resource.plural]
        history.changes.append(change)
        if self._history_limit is not None and len(history.changes) > self._history_limit:
            history.compacted = max(history.compacted, history.changes.pop(0).version)

    def _pin(self, resource: ResourceType, version: int) -> None:
        self._histories[resource.plural].pinned = version
        self._revision = max(self._revision, version)

    @staticmethod
    def _position(history: _History, version: int) -> int:
        return bisect_right(history.changes, version, key=lambda change: change.version)
