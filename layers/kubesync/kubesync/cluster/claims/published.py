"""Tracks what keys publish while a commit is planned, and which waiting keys have to be planned again when that changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.objects import ObjectKey, neighbours
from kubesync.domain.plan import differs
from kubesync.domain.state import KeyState, Name

_FEW: Final = 50

type Behind = dict[ObjectKey, dict[ObjectKey, Mapping[RecordKey, RecordSet]]]
"""By the owner of a name, keys of the cluster that wait for it, as far as this session has planned them, and what each wants there."""


class PublishedSets:
    """What keys publish, for one section of a commit. ``behind``: who waits for whom, of the whole session; updated here."""

    def __init__(self, states: StateTable, behind: Behind) -> None:
        self._states = states
        self._behind = behind
        self._intended: dict[ObjectKey, Mapping[RecordKey, RecordSet]] = {}

    def of(self, owner: ObjectKey) -> Mapping[RecordKey, RecordSet]:
        """What a key publishes, as this commit leaves it; nothing where a newer release wrote the key."""
        if owner not in self._intended:
            try:
                self._intended[owner] = self._states.load([owner])[owner].intended
            except NewerSchemaError:
                self._intended[owner] = {}
        return self._intended[owner]

    def at_names(
        self,
        seen: KeyState,
        wanted: Mapping[RecordKey, RecordSet],
        owners: Mapping[Name, ObjectKey | None],
        lines: Mapping[Name, Name],
        others: Mapping[Name, Mapping[RecordKey, ObjectKey]],
    ) -> Mapping[tuple[str, str], Mapping[RecordKey, RecordSet]]:
        """What others publish at names where the key waits. Remembers the key, so that a change there has it planned again (``planned``)."""
        found: dict[tuple[str, str], dict[RecordKey, RecordSet]] = {}
        before: set[ObjectKey] = set()
        for name, owner in owners.items():
            own = owner in (None, seen.key) or (name in seen.claims and lines.get(name, name) == name)
            for each in {*(() if own else (owner,)), *others.get(name, {}).values()}:
                if each is not None:
                    before.add(each)
                    found.setdefault((name.zone_id, name.name), {}).update(self.of(each))
        there = {key: each for key, each in wanted.items() if (key.zone_id, key.name) in found}
        for other in before:
            self._behind.setdefault(other, {})[seen.key] = there
        return found

    def planned(self, before: KeyState, after: KeyState) -> list[ObjectKey]:
        """Note what a planned key publishes now. Returns the keys that wait for its names and have to be planned again.

        A change of its sets matters to those of whom one of the two publishes the same, before or now. Where its sets come or go, some
        others are notified too, neighbours first: they may share the name, or say who has it now. Of the rest there may be thousands.
        """
        self._intended[after.key] = after.intended
        behind = self._behind.get(after.key)
        if after.intended == before.intended or not behind:
            return []
        notified = {key for key, each in behind.items() if differs(each, before.intended, after.intended)}
        if before.intended.keys() != after.intended.keys():
            notified.update(sorted(behind, key=lambda key: (not neighbours(key, after.key), key))[:_FEW])
        for key in notified:
            del behind[key]
        return sorted(notified)
