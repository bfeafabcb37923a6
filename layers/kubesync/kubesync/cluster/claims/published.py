"""Tracks what keys publish while a commit is planned, and which waiting keys have to be planned again when that changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.objects import ObjectKey, neighbours
from kubesync.domain.plan import differs, published_sets
from kubesync.domain.state import KeyState, Name

IN_LINE: Final = 500
"""Of those in line for a name, so many are planned again because its owner publishes something else."""
_FEW: Final = 50


@dataclass(slots=True)
class Behind:
    """Which keys of a cluster wait for names of which owner, as far as this session knows.

    ``wanted``: by the owner, keys that this session has planned, and what each wants there. ``looked``: owners whose lines were read: who
    comes later is planned, so it is in ``wanted``.
    """

    wanted: dict[ObjectKey, dict[ObjectKey, Mapping[RecordKey, RecordSet]]] = field(default_factory=dict)
    looked: set[ObjectKey] = field(default_factory=set)


class PublishedSets:
    """What keys publish, for one section of a commit. ``behind``: who waits for whom, of the whole session; updated here."""

    def __init__(self, states: StateTable, behind: Behind) -> None:
        self._states = states
        self._behind = behind
        self._intended: dict[ObjectKey, Mapping[RecordKey, RecordSet]] = {}
        self._published: dict[ObjectKey, Mapping[RecordKey, RecordSet]] = {}

    def intended(self, owner: ObjectKey) -> Mapping[RecordKey, RecordSet]:
        """What a key intends: as planned in this commit (``planned``), else as stored. Empty if a newer release wrote the key."""
        if owner not in self._intended:
            try:
                self._note(self._states.load([owner])[owner])
            except NewerSchemaError:
                self._intended[owner] = self._published[owner] = {}
        return self._intended[owner]

    def _note(self, state: KeyState) -> None:
        self._intended[state.key], self._published[state.key] = state.intended, published_sets(state)

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
                    self.intended(each)
                    found.setdefault(name.place, {}).update(self._published[each])
        there = {key: each for key, each in wanted.items() if key.place in found}
        for other in before:
            self._behind.wanted.setdefault(other, {})[seen.key] = there
        return found

    def unread_lines(self, before: KeyState, seen: KeyState, records: Mapping[RecordKey, RecordSet]) -> set[Name]:
        """Claims of a key at names where its sets change for the first time in this session: earlier sessions may have planned who waits."""
        changed = {Name.of(k) for k in {*before.intended, *records} if before.intended.get(k) != records.get(k)}
        changed |= before.conflicts.keys() ^ seen.conflicts.keys()
        if before.key in self._behind.looked or not changed:
            return set()
        places = {name.place for name in changed}
        return {name for name in before.claims if name.place in places}

    def planned(
        self, before: KeyState, after: KeyState, in_line: Callable[[Name], Sequence[ObjectKey]]
    ) -> list[ObjectKey]:
        """Note what a planned key publishes now. Returns the keys that wait for its names and have to be planned again.

        A change of its sets matters to those of whom one of the two publishes the same, before or now. Where its sets come or go, some
        others are notified too, neighbours first: they may share the name, or say who has it now. Of the rest there may be thousands.
        The first change in a session matters to all who are in line: nobody knows what earlier sessions have told them.
        """
        self._note(after)
        if after.intended == before.intended and after.conflicts.keys() == before.conflicts.keys():
            return []
        behind = self._behind.wanted.get(after.key, {})
        notified = {
            key for key, each in behind.items() if differs(each, published_sets(before), self._published[after.key])
        }
        for name in self.unread_lines(before, after, after.intended):
            notified.update(key for key in in_line(name)[:IN_LINE] if key.cluster == after.key.cluster)
        self._behind.looked.add(after.key)
        if before.intended.keys() != after.intended.keys():
            notified.update(sorted(behind, key=lambda key: (not neighbours(key, after.key), key))[:_FEW])
        for key in notified:
            behind.pop(key, None)
        return sorted(notified)
