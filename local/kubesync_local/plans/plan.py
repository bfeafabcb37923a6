"""A plan as values: lines by hosted zone and for upstreams, what keeps others from being done, and how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.merge import too_many
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.registration.private_addresses import in_words, is_private
from kubesync_local.terminal.sorting import natural

UPSTREAMS: Final = "upstreams"
TTL: Final = "ttl "
"""How the part of a side begins that stands behind its values."""
_PRIVATE: Final = ", private)"
"""How the title of a private zone ends."""


class Sign(StrEnum):
    """What happens to a record set or an upstream; the value stands before it."""

    ADD = "+"
    CHANGE = "~"
    DELETE = "-"
    STAYS = "!"


@dataclass(frozen=True, slots=True)
class Line:
    """One record set, upstream or object.

    Args:
        subject: what it is: a name and a type, or the name of an upstream.
        before, after: its parts, such as each value and then the TTL; None: nothing.
        why: the reason in words.
    """

    sign: Sign
    subject: str
    before: tuple[str, ...] | None = None
    after: tuple[str, ...] | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The lines of one hosted zone, or of all upstreams. ``left_out``: how many more there are. ``of_zone``: it is a hosted zone."""

    title: str
    lines: tuple[Line, ...] = ()
    left_out: int = 0
    of_zone: bool = False


@dataclass(frozen=True, slots=True)
class Numbers:
    """How many record sets, or upstreams, are added, changed and deleted."""

    add: int = 0
    change: int = 0
    delete: int = 0

    def __add__(self, other: Numbers) -> Numbers:
        return Numbers(self.add + other.add, self.change + other.change, self.delete + other.delete)

    def __bool__(self) -> bool:
        return bool(self.add or self.change or self.delete)

    @classmethod
    def of(cls, lines: Iterable[Line]) -> Numbers:
        """Count lines."""
        found = Counter(line.sign for line in lines)
        return cls(found[Sign.ADD], found[Sign.CHANGE], found[Sign.DELETE])


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done.

    Args:
        groups: record sets by hosted zone, then upstreams, then deletions that are held back.
        held: how many deletions of objects and of upstreams are held back.
        in_conflict: how many record sets stay undone because foreign ones stand there.
        quiet: the last line where nothing is to be done.
        kept: how many record sets and upstreams of a removed cluster stay; None: it is no such plan.
        notes: more that a person has to know, a sentence each.
        unseen: those of the notes that say what only the next list of a cluster will show.
        may_delete: that list may lead to deletions of record sets.
        errors: what could not be planned: one line each.
        unwanted: of each cluster whose configuration changes, how many of its record sets would go, and how many it has.
    """

    groups: tuple[Group, ...] = ()
    records: Numbers = Numbers()
    upstreams: Numbers = Numbers()
    held: int = 0
    in_conflict: int = 0
    quiet: str = "nothing to do"
    kept: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    may_delete: bool = False
    errors: tuple[str, ...] = ()
    unwanted: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __add__(self, other: Plan) -> Plan:
        """Both plans as one; what they say of one hosted zone stands together."""
        groups: dict[str, Group] = {}
        for group in (*self.groups, *other.groups):
            known = groups.get(group.title, Group(group.title, of_zone=group.of_zone))
            lines, left_out = (*known.lines, *group.lines), known.left_out + group.left_out
            named = group.of_zone or group.title == UPSTREAMS
            groups[group.title] = replace(known, lines=in_order(lines) if named else lines, left_out=left_out)
        return Plan(
            tuple(
                sorted(groups.values(), key=lambda group: 1 if group.of_zone else 2 if group.title == UPSTREAMS else 0)
            ),
            self.records + other.records,
            self.upstreams + other.upstreams,
            self.held + other.held,
            self.in_conflict + other.in_conflict,
            self.quiet,
            self.kept or other.kept,
            self.notes + other.notes,
            self.unseen + other.unseen,
            self.may_delete or other.may_delete,
            self.errors + other.errors,
            {**self.unwanted, **other.unwanted},
        )

    @property
    def too_many(self) -> int:
        """How many record sets would go in clusters where these are more than the guard believes: a person has to confirm the number."""
        return sum(gone for gone, sets in self.unwanted.values() if too_many(sets, gone))

    @property
    def numbers(self) -> Numbers:
        """Record sets and upstreams together."""
        return self.records + self.upstreams

    @property
    def empty(self) -> bool:
        """Whether nothing is to be done, by kubesync or by a person who forces it."""
        return not self.numbers and not self.held

    @property
    def last_line(self) -> str:
        """The numbers, such as ``5 to add, 2 to change, 4 to delete, 1 held back``."""
        if self.kept is not None:
            records, upstreams = self.kept
            return f"{some(records, 'record set')} and {some(upstreams, 'upstream')} stay"
        if self.empty:
            conflicts = f": {some(self.in_conflict, 'conflict')} for a person" if self.in_conflict else ""
            return f"{self.quiet}{' in what was compared' if self.errors else ''}{conflicts}"
        of = self.numbers
        conflicts = f", {some(self.in_conflict, 'conflict')}" if self.in_conflict else ""
        return f"{of.add} to add, {of.change} to change, {of.delete} to delete, {self.held} held back{conflicts}"

    @property
    def exposes(self) -> tuple[str, ...]:
        """For each public zone a sentence about private addresses that it would get."""
        found = []
        for group in self.groups:
            if group.of_zone and group.title.endswith(")") and not group.title.endswith(_PRIVATE):
                sets = [
                    f"{line.subject.partition(' ')[0]} {new}" for line in group.lines if (new := _newly_private(line))
                ]
                found += [in_words(group.title, len(sets), min(sets))] if sets else []
        return tuple(found)

    @property
    def question(self) -> str:
        """What a person is asked: the deletions first."""
        gone, zones = self.records.delete, self._zones_that_lose()
        where = f" in {some(zones, 'zone')}" if zones else ""
        deleted = [f"{some(gone, 'record set')}{where}"] if gone else []
        deleted += [some(self.upstreams.delete, "upstream")] if self.upstreams.delete else []
        others = self.numbers.add + self.numbers.change
        if not deleted:
            return f"Make {some(others, 'change')}?"
        more = f", and make {some(others, 'other change')}" if others else ""
        return f"Delete {' and '.join(deleted)}{more}?"

    def deletes_within(self, shown: Plan) -> bool:
        """Whether it deletes nothing that ``shown`` does not delete. Where not all is shown, numbers are compared."""
        ours, theirs = (
            {(group.title, line.subject) for group in plan.groups for line in group.lines if line.sign is Sign.DELETE}
            for plan in (self, shown)
        )
        return ours <= theirs and self.numbers.delete <= shown.numbers.delete

    def _zones_that_lose(self) -> int:
        """How many hosted zones have a deletion; 0 if not all are shown."""
        if any(group.left_out and not any(line.sign is Sign.DELETE for line in group.lines) for group in self.groups):
            return 0
        losing = [group for group in self.groups if any(line.sign is Sign.DELETE for line in group.lines)]
        return sum(group.of_zone for group in losing)


def _newly_private(line: Line) -> str:
    """The first private address of a record set that has none now."""
    if line.sign not in (Sign.ADD, Sign.CHANGE) or any(map(is_private, line.before or ())):
        return ""
    return next(filter(is_private, line.after or ()), "")


def some(number: int, what: str) -> str:
    """``1 record set``, ``47 record sets``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def parts_of(side: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """One side of a record set as reports show it (``record_rows.side``): each value, then the TTL; or an alias."""
    if side is None:
        return None
    weight = (side["routing"],) if "routing" in side else (f"weight {side['weight']}",) if "weight" in side else ()
    form = (str(side["foreign_form"]),) if side.get("foreign_form") else ()
    if "alias" in side:
        health = () if side.get("evaluate_health", True) else ("evaluate-health no",)
        zone = (f"zone {side['alias_zone']}",) if "alias_zone" in side else ()
        return (f"alias {side['alias']}", *zone, *health, *weight, *form)
    values = [str(value) for value in side["values"]]
    if any(" " in value for value in values):  # addresses come in the order of their numbers
        values.sort(key=natural)
    return (*values, f"{TTL}{side['ttl']}", *weight, *form)


def line_of(row: Mapping[str, Any], why: str) -> Line:
    """A row of a report (``record_rows``) as a line."""
    identifier = f" [{row['identifier']}]" if row.get("identifier") else ""
    before, after = parts_of(row["from"]), parts_of(row["to"])
    sign = Sign.STAYS if row.get("conflict") else sign_of(before, after)
    return Line(sign, f"{row['name']} {row['type']}{identifier}", before, after, in_the_way_for_people(why))


def in_order(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Lines by name, as people sort: ``web-2`` before ``web-10``."""
    return tuple(sorted(lines, key=lambda line: natural(line.subject)))


def sign_of(before: object, after: object) -> Sign:
    """Of a change; None: nothing."""
    return Sign.ADD if before is None else Sign.DELETE if after is None else Sign.CHANGE


def zone_titles(configs: Iterable[ClusterConfig]) -> dict[str, str]:
    """The title of each registered hosted zone, by its id."""
    return {
        zone.id: f"{zone.name} ({zone.id}{_PRIVATE if zone.private else ')'}"
        for config in configs
        for zone in config.zones
    }
