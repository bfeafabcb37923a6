"""Tracks what keys publish while a commit is planned, and finds the waiting keys that have to be planned again when that changes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.claims.claim_book import ClaimBook
from kubesync.cluster.claims.dependents import Dependents
from kubesync.domain.dns.records import RecordKey, RecordSet, clash
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.objects import ObjectKey, neighbours
from kubesync.domain.plan import differs, published_sets
from kubesync.domain.state import KeyState, Name, names_of

IN_LINE: Final = 500
"""If the owner of a name publishes something else, so many of the keys in line for the name are planned again."""
_FEW: Final = 50
"""If sets come or go, so many of the waiting keys are planned again although they want other sets."""
_ASKED: Final = 500
"""If a key frees types of a name, so many keys in line for the name are asked whether they want such a type."""
_NOTIFIED: Final = 20
"""So many of the asked keys are notified."""

type _Sets = Mapping[RecordKey, RecordSet]


class PublishedSets:
    """What keys publish, for one section of a commit.

    Args:
        dependents: which keys wait for which owner. It lasts for the whole session and is updated here.
    """

    def __init__(self, states: StateTable, dependents: Dependents) -> None:
        self._states = states
        self._dependents = dependents
        self._known: dict[ObjectKey, KeyState] = {}

    def read(self, owners: Iterable[ObjectKey]) -> None:
        """Read these keys, many at a time. A key that a newer release wrote ends this: ``of`` reads those after it one by one."""
        with suppress(NewerSchemaError):
            for state in self._states.load_each(sorted({*owners} - self._known.keys())):
                self._note(state)

    def of(self, owner: ObjectKey) -> KeyState:
        """A key without its parts: as planned in this commit, else as stored. If a newer release wrote it, it counts as a key that publishes
        nothing."""
        if owner not in self._known:
            self.read([owner])
        return self._known.setdefault(owner, KeyState(owner))

    def _note(self, state: KeyState) -> None:
        self._known[state.key] = replace(state, parts={})

    def of_rivals_at(
        self,
        seen: KeyState,
        wanted: _Sets,
        owners: Mapping[Name, ObjectKey | None],
        needed: Mapping[Name, Name],
        others: Mapping[Name, Mapping[RecordKey, ObjectKey]],
    ) -> Mapping[tuple[str, str], _Sets]:
        """What other keys publish at names where they may keep this key out, by zone id and name. ``assign_names`` then decides.

        Others are the owner of the claim that the key needs, and who has types of a claim that the key shares or may share. Remembers in
        ``Dependents`` what the key wants there, so that ``changed`` has it planned again if one of them publishes something else.

        Args:
            owners, needed, others: see ``assign_names``.
        """
        found: dict[tuple[str, str], dict[RecordKey, RecordSet]] = {}
        rivals: set[ObjectKey] = set()
        for name, owner in owners.items():
            # Nobody else's claim keeps the name from the key: the needed claim is free or its own, or it has the name itself.
            own = owner in (None, seen.key) or (name in seen.claims and needed.get(name, name) == name)
            for other in {*(() if own else (owner,)), *others.get(name, {}).values()}:
                if other is not None:
                    rivals.add(other)
                    found.setdefault(name.place, {}).update(published_sets(self.of(other)))
        wanted_there = {key: each for key, each in wanted.items() if key.place in found}
        for other in rivals:
            self._dependents.wanted.setdefault(other, {})[seen.key] = wanted_there
        return found

    def unread_queues(self, before: KeyState, seen: KeyState, records: _Sets) -> set[Name]:
        """Claims of a key whose stored queues have to be read: its sets there change for the first time in this session.

        Keys that earlier sessions planned may wait in these queues. This session does not know them otherwise.
        """
        places = _changed_places(before, seen, records)
        return self._dependents.unread(before.key, {name for name in before.claims if name.place in places})

    def changed(
        self, before: KeyState, after: KeyState, waiters: Callable[[Name], Sequence[ObjectKey]]
    ) -> list[ObjectKey]:
        """Note what a planned key publishes now. Returns the waiting keys that have to be planned again because of the change.

        The planner calls it at the end of each plan. It knows which keys wait from the plans of this session (``Dependents.wanted``).

        the planned key changes                         planned again
        -----------------------                         -------------
        its sets                                        keys that wanted the same set as before, or want the same as now: what they report
                                                        changes (``plan.differs``)
        its sets come or go                             also some other waiting keys, neighbours first: they may share the name now, or
                                                        report another owner. There may be thousands, so only ``_FEW``
        its sets for the first time in this session     also keys in line, at most ``IN_LINE``: earlier sessions may have planned them

        Args:
            waiters: the keys that wait for a claim, next in line first.
        """
        self._note(after)
        if after.intended == before.intended and after.conflicts.keys() == before.conflicts.keys():
            return []
        # ``behind``: the keys that wait for names of this one, each with the sets that it wants there.
        behind, was, now = self._dependents.wanted.get(after.key, {}), published_sets(before), published_sets(after)
        notified = {key for key, each in behind.items() if differs(each, was, now)}
        places = _changed_places(before, after, after.intended)
        claims = {name for name in before.claims | after.claims if name.place in places}
        # A claim that it was given has a queue of earlier sessions too. Who was planned in this session is in ``behind``.
        for name in self._dependents.unread(after.key, claims & before.claims) | (claims - before.claims):
            first = waiters(name)[:IN_LINE]
            notified.update(key for key in first if key.cluster == after.key.cluster and key not in behind)
        self._dependents.note_read(after.key, claims, new=not before.claims or claims >= after.claims)
        if before.intended.keys() != after.intended.keys():
            notified.update(sorted(behind, key=lambda key: (not neighbours(key, after.key), key))[:_FEW])
        for key in notified:
            behind.pop(key, None)  # its next plan notes it again (``of_rivals_at``)
        return sorted(notified)

    def offer_freed_types(
        self, book: ClaimBook, before: KeyState, after: KeyState, wants: Callable[[ObjectKey], _Sets]
    ) -> tuple[set[RecordKey], list[Action]]:
        """Have keys of the same namespace planned next if they want types of a name which a key no longer wants (ADR 0062).

        These keys are the owner of the claim, keys that share it, and the first in line for it. If the key lets the whole claim go,
        ``ClaimBook.let_go`` gives it to the next key instead.

        Args:
            wants: returns the record sets that a key wants, whether or not it has their names.

        Returns:
            The sets that the key no longer wants and that sets of these keys replace; and the marks of these keys (``ClaimBook.plan_next``).
        """
        replaced, marks = set[RecordKey](), list[Action]()
        gone, stays = before.intended.keys() - after.intended.keys(), names_of(after.intended)
        for name in sorted({Name.of(key) for key in gone} & before.claims):
            claim = book.claim(name)
            shared = name in before.shared
            if claim is None or not (shared or claim.owner == after.key):  # the whole claim has gone to another key
                continue
            # Types are offered only if the claim stays in the namespace and others may take part: keys share it; or keys wait for it, and this
            # key keeps another set at the name or only shared the claim.
            if not (claim.types or (claim.waiting and (shared or name in stays))):
                continue
            # Ask those who have a part of the claim, and the first neighbours in line. Only ``most`` marks are made in all.
            near = [key for key in book.waiters_in_order(name) if neighbours(key, after.key)][:_ASKED]
            most = len(marks) + len(claim.holders) + _NOTIFIED
            for key in dict.fromkeys(each for each in (*claim.holders, *near) if each != after.key):
                if len(marks) == most:
                    break
                asks = [each for each in wants(key).keys() - self.of(key).intended.keys() if Name.of(each) == name]
                if freed := {each for each in gone if any(clash(each, ask) for ask in asks)}:
                    replaced |= freed
                    marks.append(book.plan_next(key, name))
        return replaced, marks


def _changed_places(before: KeyState, after: KeyState, records: _Sets) -> set[tuple[str, str]]:
    """Zone id and name where the key publishes something else from now on: other sets (``records``), or a conflict comes or goes."""
    changed = {Name.of(k) for k in {*before.intended, *records} if before.intended.get(k) != records.get(k)}
    return {name.place for name in changed | (before.conflicts.keys() ^ after.conflicts.keys())}
