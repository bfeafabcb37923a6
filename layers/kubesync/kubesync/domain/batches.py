"""Change batches: which changes go together, how much fits, and which changes a refusal is about.

A *unit* is the smallest part of a batch: changes of one key at one name. A *group* is units of several keys that go in one batch or not at
all (``together``).

Limits of ChangeResourceRecordSets (Route 53 API reference, "ChangeResourceRecordSets", section on limits): one request holds
at most 1,000 ResourceRecord elements and 32,000 characters of Value. The journal swap counts too.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Final

from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet, in_the_way
from kubesync.domain.objects import Namespace, ObjectKey


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one batch may hold, the journal swap included."""

    elements: int = 1000
    characters: int = 32_000


@dataclass(frozen=True, slots=True)
class Unit:
    """Changes that must land together: all sets of one name and type, or all sets of a name where a CNAME comes or goes."""

    key: ObjectKey
    changes: tuple[RecordChange, ...]

    @property
    def name(self) -> str:
        return self.changes[0].key.name

    @property
    def deletes(self) -> list[tuple[RecordKey, RecordSet]]:
        """The sets that it takes away or replaces, as they are known."""
        return [(change.key, change.before) for change in self.changes if change.before is not None]

    @property
    def creates(self) -> list[tuple[RecordKey, RecordSet]]:
        """The sets that it makes, also in place of others."""
        return [(change.key, change.after) for change in self.changes if change.after is not None]

    @property
    def wanted(self) -> RecordKey:
        """The key of the first set that the unit creates. Where it only deletes, the key of its first change."""
        return next((key for key, _ in self.creates), self.changes[0].key)

    @property
    def elements(self) -> int:
        return sum(each.elements for _, each in (*self.deletes, *self.creates))

    @property
    def characters(self) -> int:
        return sum(each.characters for _, each in (*self.deletes, *self.creates))

    @property
    def only_deletes(self) -> bool:
        return not self.creates

    @property
    def only_creates(self) -> bool:
        return not self.deletes

    @property
    def growth(self) -> int:
        """How many sets more the zone holds afterwards. A full zone refuses a unit that has growth."""
        return len(self.creates) - len(self.deletes)


def units_of(key: ObjectKey, changes: Iterable[RecordChange]) -> tuple[Unit, ...]:
    """Group the changes of one key in one zone, in a stable order."""
    by_name: dict[str, list[RecordChange]] = defaultdict(list)
    for change in changes:
        by_name[change.key.name].append(change)
    units: list[Unit] = []
    for name in sorted(by_name):
        group = sorted(by_name[name], key=lambda c: c.key)
        if any(change.key.type == "CNAME" for change in group):
            # A CNAME excludes all other types: what it replaces, or what replaces it, goes in the same unit.
            units.append(Unit(key, tuple(group)))
        else:
            # One batch also turns a simple set into a weighted one, or gives a set another identifier.
            units.extend(Unit(key, tuple(same)) for _, same in groupby(group, key=lambda c: c.key.type))
    return tuple(units)


def by_cluster(units: Iterable[Unit]) -> list[tuple[str, tuple[Unit, ...]]]:
    """The clusters of these units in the order of their names, each with its units."""
    clusters: dict[str, list[Unit]] = {}
    for unit in units:
        clusters.setdefault(unit.key.cluster, []).append(unit)
    return [(cluster, tuple(of_one)) for cluster, of_one in sorted(clusters.items())]


def together(units: Iterable[Unit]) -> list[tuple[Unit, ...]]:
    """Group units that go in one batch or not at all, in the order of the first of each.

    Units of different keys at one name go together if one deletes a set that must go before a set of the other can come.
    """
    groups: list[list[Unit]] = []
    at_name: dict[str, list[list[Unit]]] = defaultdict(list)  # by name, those of ``groups`` that are there
    for unit in units:
        joined = [group for group in at_name[unit.name] if any(_clears(unit, o) or _clears(o, unit) for o in group)]
        if not joined:
            groups.append([unit])
            at_name[unit.name].append(groups[-1])
            continue
        first, *others = joined  # the unit joins several groups: they become one, and the others stay empty
        for other in others:
            first += other
            other.clear()
            at_name[unit.name].remove(other)
        first.append(unit)
    return [tuple(group) for group in groups if group]


def _clears(one: Unit, other: Unit) -> bool:
    """Whether ``one`` deletes a set that must go before a set of ``other``, a unit of another key, can come."""
    return one.key != other.key and any(in_the_way(*gone, *comes) for gone in one.deletes for comes in other.creates)


def without_rivals(units: Sequence[Unit]) -> list[Unit]:
    """Leave out each unit that conflicts with an earlier unit of another key.

        two units of different keys             the later one waits, because
        ---------------------------             ----------------------------
        touch one set, unless one deletes       a claim is missing, which is a fault of ours: both create it, or both know of it
        what the other creates
        want sets that exclude each other       claims are by name and set identifier: two clusters can claim a name at once for
                                                sets of different policies

    A key whose unit waits stays open, and its other new sets at the name wait too: the name has one policy. If the earlier unit's set still
    stands there at the next batch, that is an ordinary conflict, reported on the key. Nothing else in the zone waits for it (I4).
    """
    # By name, the new sets of the units that are kept so far, each with the key that wants it.
    wanted: dict[str, list[tuple[ObjectKey, RecordKey, RecordSet]]] = defaultdict(list)
    # What these units delete (True) and create (False), each with the key that does.
    touched: dict[tuple[RecordKey, bool], ObjectKey] = {}
    kept: list[Unit] = []
    # Keys that must wait at a name, because a set of theirs excludes one of an earlier key there.
    late = set[tuple[ObjectKey, str]]()
    for unit in units:
        creates = unit.creates
        sides = [(key, True) for key, _ in unit.deletes] + [(key, False) for key, _ in creates]
        others = [(key, record_set) for owner, key, record_set in wanted[unit.name] if owner != unit.key]
        if any(touched.get(side, unit.key) != unit.key for side in sides):
            continue
        if any(in_the_way(*other, *comes) for comes in creates for other in others):
            late.add((unit.key, unit.name))
            continue
        wanted[unit.name] += [(unit.key, *comes) for comes in creates]
        touched |= dict.fromkeys(sides, unit.key)
        kept.append(unit)
    # Also units of late keys that were kept before their rival was met.
    return [unit for unit in kept if not unit.only_creates or (unit.key, unit.name) not in late]


def next_batch(units: Collection[Unit], limits: BatchLimits) -> tuple[list[Unit], list[Unit]]:
    """Choose the units of the next batch, and put them in a stable order. Returns as ``fill``.

    ``units`` come in the order of their keys, the oldest key first. The oldest get into the batch first: round-robin over namespaces.
    """
    age_rank = {key: number for number, key in enumerate(dict.fromkeys(unit.key for unit in units))}
    oldest_first = sorted(without_rivals(in_stable_order(units)), key=lambda unit: age_rank[unit.key])
    taken, oversized = fill(by_turns(together(oldest_first), lambda group: group[0].key), limits)
    return in_stable_order(taken), oversized


def fill(groups: Iterable[Sequence[Unit]], limits: BatchLimits) -> tuple[list[Unit], list[Unit]]:
    """Take groups of units from the front, and leave out what does not fit. ``limits``: what one batch may hold, less what the journal swap takes.

    A large group keeps no room free behind it: it is the first of a later batch.

    Returns:
        Units for this batch, and units that fit no batch at all.
    """
    taken: list[Unit] = []
    oversized: list[Unit] = []
    left_elements, left_characters = limits.elements, limits.characters
    for group in groups:
        elements, characters = sum(unit.elements for unit in group), sum(unit.characters for unit in group)
        if elements > limits.elements or characters > limits.characters:
            # Those that only delete are not reported: without the others they may fit.
            oversized += [unit for unit in group if not unit.only_deletes] or group
        elif elements <= left_elements and characters <= left_characters:
            taken += group
            left_elements -= elements
            left_characters -= characters
    return taken, oversized


# Messages of InvalidChangeBatch name a change in one of these forms. They come from public reports of external-dns, octodns and
# terraform-provider-aws; Route 53 does not document them. A batch refused with any other message is bisected.
_ABOUT_A_NAME = [
    re.compile(text)
    for text in (
        r"\[name='(?P<name>[^']+)',\s*type='(?P<type>[A-Z0-9]+)'(?:,\s*set-identifier='(?P<identifier>[^']*)')?",
        r"RRSet of type (?P<type>[A-Z0-9]+) with DNS name (?P<name>\S+) (?:is not permitted|must contain)",
        r"RRSet with DNS name (?P<name>\S+) is not permitted",
        r"RRSet with DNS name (?P<name>\S+), type (?P<type>[A-Z0-9]+), (?:SetIdentifier (?P<identifier>.*?) )?.*?cannot be",
        r"invalid set of changes for a resource record set '(?P<type>[A-Z0-9]+) (?P<name>[^']+)'",
    )
]
_QUOTED = (
    re.compile(r"encountered with '(?P<text>.+?)'(?='?(?:$|[\s,\]]))"),
    re.compile(r"Duplicate Resource Record: '(?P<text>.+)'"),
    re.compile(r"alias that targets (?P<text>\S+), type "),
)
# Does not match "Number of records limit of 1000 exceeded.": that is the limit of a batch, not of the zone.
_FULL = re.compile(
    r"(?i)MAX_RRSETS_BY_ZONE|limit of \d+ (?:resource )?record sets|exceed\w* the (?:limit|maximum) .*record sets"
)
_MARKS: Final = ".,:;'\"()[]"
_OCTAL = re.compile(r"\\([0-7]{3})")


def says_zone_is_full(messages: Iterable[str]) -> bool:
    """Whether the refusal says that the zone holds too many record sets, rather than that a change is wrong."""
    return any(_FULL.search(message) for message in messages)


def culprits(units: Sequence[Unit], messages: Sequence[str]) -> dict[Unit, str]:
    """Find the units that the messages of a refusal name, each with its message. Empty if the messages name none.

    A message names a unit by its name, or by a value or alias target that it creates.
    """
    by_name: dict[str, list[Unit]] = defaultdict(list)
    by_text: dict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        by_name[unit.name].append(unit)
        for text in {_plain(text) for text in _new_texts(unit)}:
            by_text[text].append(unit)
    found: dict[Unit, str] = {}
    for message in messages:
        for pattern in _ABOUT_A_NAME:
            for match in pattern.finditer(message):
                for unit in _meant(by_name.get(_plain(match["name"]), ()), match):
                    found.setdefault(unit, message)
        for pattern in _QUOTED:
            for match in pattern.finditer(message):
                # A quoted text is a value, or a name as it was sent.
                for unit in (*by_name.get(_plain(match["text"]), ()), *by_text.get(_plain(match["text"]), ())):
                    found.setdefault(unit, message)
    return found or _with_health_checks(units, messages)


def _with_health_checks(units: Sequence[Unit], messages: Sequence[str]) -> dict[Unit, str]:
    """Units whose health check a message names. ``--health-check`` gives one to all sets of a cluster: bisecting would find each alone."""
    found: dict[Unit, str] = {}
    for message in (each for each in messages if "health check" in each.lower()):
        ids = {word.strip(_MARKS) for word in message.split()} - {""}
        for unit in units:
            if any(each.routing.health_check in ids for _, each in unit.creates):
                found.setdefault(unit, message)
    return found


def _meant(at_name: Iterable[Unit], match: re.Match[str]) -> list[Unit]:
    """The units at a name that a message means: those with the type in it, and of these those with its set identifier, if any has it."""
    named = match.groupdict()
    fitting = [unit for unit in at_name if any(named.get("type") in (None, each.key.type) for each in unit.changes)]
    if (identifier := named.get("identifier")) is not None:
        return [unit for unit in fitting if any(each.key.identifier == identifier for each in unit.changes)] or fitting
    return fitting


def _new_texts(unit: Unit) -> Iterator[str]:
    """Values and alias targets that a unit creates: a message may quote them."""
    for _, record_set in unit.creates:
        yield from record_set.values
        if record_set.alias is not None:
            yield record_set.alias.name


def _plain(name: str) -> str:
    """A name or value as it can be compared: octal escapes decoded, in lower case, without the last dot."""
    return _OCTAL.sub(lambda m: chr(int(m[1], 8)), name).rstrip(".").lower()


def halves(groups: Sequence[Sequence[Unit]]) -> tuple[list[Unit], list[Unit]]:
    """Split a refused batch whose messages name no unit. What goes together stays together."""
    middle = len(groups) // 2
    return [unit for group in groups[:middle] for unit in group], [unit for group in groups[middle:] for unit in group]


def at_fault(
    group: Sequence[Unit], named: AbstractSet[Unit], actual: Mapping[RecordKey, RecordSet]
) -> dict[Unit, Mapping[RecordKey, RecordSet]]:
    """Which units of a refused group are at fault, and what stands in the zone at the name of each. Called once a batch of one group is refused.

        what stands                                      at fault
        -----------                                      --------
        a set that a unit changes or deletes does not    each such unit. The others are sent again, with what becomes of it
        stand there as its key knows it
        all sets stand as known                          of the units that create a set: those that the messages name, else all

    The cluster of a unit judges it by the sets that are returned with it. In the second case these lack the sets that units of other keys
    delete: without the fault, these would be gone once the group has landed.

    Args:
        named: units that the messages name.
        actual: the sets that stand at the names of the group.
    """
    if len(group) == 1:
        return {group[0]: actual}
    unlike = [unit for unit in group if any(actual.get(key) != known for key, known in unit.deletes)]
    creating = [unit for unit in group if not unit.only_deletes]
    # As in the table. With ``unlike`` units, ``actual`` stays whole: their clusters must see what really stands there.
    blamed = unlike or [unit for unit in creating if unit in named] or creating
    found: dict[Unit, Mapping[RecordKey, RecordSet]] = {}
    for unit in blamed:
        deleted = {key for other in group if other.key != unit.key for key, _ in other.deletes}
        found[unit] = actual if unlike else {key: each for key, each in actual.items() if key not in deleted}
    return found


_NO_TURNS: Final[Mapping[Namespace, int]] = MappingProxyType({})


def by_turns[T](
    items: Iterable[T], key_of: Callable[[T], ObjectKey], last_turns: Mapping[Namespace, int] = _NO_TURNS
) -> Iterator[T]:
    """Order items round-robin over namespaces: the first of each namespace, then the second of each. Keeps the order in a namespace.

    So no namespace waits until another one has all that it wants (I9).

    Args:
        key_of: the key of an item, which says its namespace.
        last_turns: by namespace, the number of the batch in which it had a turn last. Namespaces that never had one, or whose turn is longest
            ago, come first: so all come in time, even if they are more than fit one batch.
    """
    lines: dict[Namespace, list[T]] = {}
    for item in items:
        lines.setdefault(key_of(item).full_namespace, []).append(item)
    left, turn = [lines[each] for each in sorted(lines, key=lambda each: last_turns.get(each, 0))], 0
    while len(left) > 1:  # ``turn``: how many items each of these namespaces has had
        yield from (line[turn] for line in left)
        turn += 1
        left = [line for line in left if turn < len(line)]
    for line in left:
        yield from line[turn:]


def in_stable_order(units: Iterable[Unit]) -> list[Unit]:
    """Sort by name, then type, identifier and key. The same content always makes the same batch."""
    return sorted(units, key=lambda u: (u.name, u.changes[0].key.type, u.changes[0].key.identifier, u.key))
