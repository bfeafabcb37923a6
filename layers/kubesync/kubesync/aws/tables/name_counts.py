"""How many names the Services of each namespace hold that they asked for: one item for each namespace (ADR 0021).

    partition             sort            holds
    ---------             ----            -----
    <cluster>#asked       <namespace>     count

    a key's claims change ── its transaction adds the difference to the item
    a complete list       ── every key is read anyway: ``begin``, ``tally`` each, compare with the items, ``done``

A name counts if the key holds a claim of it and it is not at or below the key's own name. So the number follows from the claims.
Between two buckets of a list the cluster's actor serves its mailbox: keys that were tallied may change. ``written`` notes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import cast

from kubesync.aws.dynamodb.store import STATE, Absent, Action, Delete, Equals, Key, Store
from kubesync.aws.tables.items import put, update
from kubesync.domain.dns.permissions import NameRules, counts
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState


def _asked_key(cluster: str, namespace: str) -> Key:
    return Key(STATE, f"{cluster}#asked", namespace)


class NameCountTable:
    """Reads the items and builds their writes, each of which belongs into a transaction with a fence (I2)."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def held(self, cluster: str, namespace: str) -> int:
        """How many, by the namespace's item; 0 without one."""
        item = self._store.get(_asked_key(cluster, namespace))
        return 0 if item is None else cast(int, item["count"])

    def all_held(self, cluster: str) -> dict[str, int]:
        """The same, for every namespace that has an item."""
        items = self._store.query(STATE, _asked_key(cluster, "").partition)
        return {cast(str, item["sk"]): cast(int, item["count"]) for item in items}

    @staticmethod
    def correct(cluster: str, namespace: str, stored: int | None, right: int) -> Action:
        """Replace a count. ``stored``: as just read; None: there is no item."""
        place = _asked_key(cluster, namespace)
        guard = (Absent(),) if stored is None else (Equals("count", stored),)
        return put(place, *guard, count=right) if right else Delete(place, guard)


class NameCounts:
    """Of one cluster. Without rules nothing counts, and nothing is read or written."""

    def __init__(self, table: NameCountTable) -> None:
        self._table = table
        self.configure("", None)

    def configure(self, cluster: str, rules: NameRules | None) -> None:
        """Go by these rules from now on. What was counted by others is corrected by the list that follows."""
        self._cluster = cluster
        self.rules = rules
        self._known: dict[str, int] = {}
        self._reserved: dict[ObjectKey, set[str]] = {}
        self._tallied: dict[ObjectKey, int] | None = None

    def held(self, state: KeyState) -> AbstractSet[str]:
        """Names that count and that the key holds."""
        if self.rules is None or not state.claims:
            return frozenset()
        own = self.rules.own_name(state.key)
        return {name.name for name in state.claims if counts(name.name, own)}

    def of(self, namespace: str) -> int:
        """How many names a namespace holds. Read once."""
        if namespace not in self._known:
            self._known[namespace] = self._table.held(self._cluster, namespace)
        return self._known[namespace]

    def reserve(self, key: ObjectKey, name: str) -> None:
        """A key was given a name of its namespace: the room for it is no other's until the key is planned."""
        if self.rules is not None and counts(name, self.rules.own_name(key)):
            self._reserved.setdefault(key, set()).add(name)

    def reserved(self, namespace: str) -> dict[ObjectKey, set[str]]:
        """What is kept free for keys of a namespace. After a crash nothing is: whoever comes first has the room."""
        return {key: names for key, names in self._reserved.items() if key.namespace == namespace}

    def forget(self) -> None:
        """Read the items again next time."""
        self._known.clear()
        self._reserved.clear()

    def added(self, changes: Mapping[str, int]) -> list[Action]:
        """What adds to the items, in the transaction of the claims; it is conditional on their keys, so no repetition counts
        twice. The items' numbers are not known until ``written``.
        """
        return [
            update(_asked_key(self._cluster, namespace), {"count": change})
            for namespace, change in changes.items()
            if change
        ]

    def written(self, changes: Mapping[str, int], states: Iterable[KeyState]) -> None:
        """A transaction is through."""
        for namespace, change in changes.items():
            if namespace in self._known:
                self._known[namespace] += change
        for state in states if self._reserved else ():
            # A batch of the key may close before it is planned.
            if left := self._reserved.pop(state.key, set()) & {name.name for name in state.waits}:
                self._reserved[state.key] = left
        if self._tallied is not None:
            self._tallied |= {state.key: len(self.held(state)) for state in states if state.key in self._tallied}

    # --- complete lists ---

    def begin(self) -> None:
        """Every key is about to be read."""
        self._tallied = None if self.rules is None else {}

    def tally(self, state: KeyState) -> None:
        """A key as it is stored now."""
        if self._tallied is not None:
            self._tallied[state.key] = len(self.held(state))

    def corrections(self) -> list[Action]:
        """What makes the items right, once every key is tallied; each is conditional on what was just read."""
        if self._tallied is None:
            return []
        right: Counter[str] = Counter()
        for key, held in self._tallied.items():
            right[key.namespace] += held
        stored = self._table.all_held(self._cluster)
        self._known = {namespace: right[namespace] for namespace in right.keys() | stored.keys()}
        return [
            self._table.correct(self._cluster, namespace, stored.get(namespace), right[namespace])
            for namespace in sorted(right.keys() | stored.keys())
            if stored.get(namespace, 0) != right[namespace] or (namespace in stored and not right[namespace])
        ]

    def done(self) -> None:
        """The items are right."""
        self._tallied = None
