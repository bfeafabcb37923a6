"""Claims as they will stand after what one commit has planned so far: several keys may change one claim in it.

    book ── gain ── wait ── give up ── let go ── actions, each conditional on what the one before it leaves behind

Sets of one name that exclude each other in Route 53 have claims of their own (ADR 0010, ADR 0048). In a cluster with rules for names, and
for policies other than weights in every cluster, who wants a set waits for the claim of one that excludes it (``domain.plan.waits_for``).

Who is given such a claim takes what it wants, or waits for the next claim in its way, and hands that one on.

Actions on one claim go into transactions one after the other (``key_writes``), since a transaction may name an item once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from kubesync.actors.parallel import Map
from kubesync.aws.dynamodb.store import Action, Key
from kubesync.aws.tables.claims import Claim, ClaimTable
from kubesync.aws.tables.control.next_owners import NextOwnerTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet, clash
from kubesync.domain.dns.routing.policies import Simple, Weighted
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.objects import EMPTY_SET, ObjectKey, neighbours
from kubesync.domain.plan import waits_for
from kubesync.domain.state import KeyState, Name, names_of, of_line, policies_of

_ASKED: Final = 500  # of those in line for a name, when types of it are free
_NOTIFIED: Final = 20  # of these, who want such a type


@dataclass(slots=True)
class _Commit:
    """What is known of the keys of one commit. ``wants``: keys as planned, with the record sets that they want (None: not known).

    ``coming``: keys that will join the queue of a name, at their places; ``going``: that will leave it. ``planned``: keys that are
    planned already. ``given``: names that a key has received from another key of this commit.
    """

    wants: Mapping[ObjectKey, tuple[KeyState, Mapping[RecordKey, RecordSet] | None]] = field(default_factory=dict)
    coming: dict[Name, dict[Key, ObjectKey]] = field(default_factory=dict)
    going: set[tuple[Name, ObjectKey]] = field(default_factory=set)
    planned: set[ObjectKey] = field(default_factory=set)
    given: dict[ObjectKey, set[Name]] = field(default_factory=dict)


class ClaimBook:
    """Tracks claims while one section of a commit is planned. Its methods return the actions that write their change.

    Args:
        fenced_here: clusters whose fence this master has raised: only their keys can be notified that they were given a name.
        intended: what a key intends, as the commit leaves it.
        reserve: called with who is given a name of its own namespace, which has counted the name already.
    """

    def __init__(
        self,
        claims: ClaimTable,
        states: StateTable,
        fenced_here: AbstractSet[str],
        intended: Callable[[ObjectKey], Mapping[RecordKey, RecordSet]],
        reserve: Callable[[ObjectKey, str], None],
    ) -> None:
        self._table = claims
        self._states = states
        self._fenced_here = fenced_here
        self._intended = intended
        self._reserve = reserve
        self._claims: dict[Name, Claim | None] = {}
        self._came: dict[Name, dict[Key, ObjectKey]] = defaultdict(dict)
        self._left: dict[Name, set[Key]] = defaultdict(set)
        self._stored: dict[Name, dict[Key, ObjectKey]] = {}
        self._related: dict[Name, set[Name]] = {}
        self._gained: set[Name] = set()
        self._nobodys: frozenset[Name] | None = None
        self._commit = _Commit()
        self.promoted: list[ObjectKey] = []

    def read(self, names: AbstractSet[Name], lines: AbstractSet[Name] = EMPTY_SET) -> None:
        """Read claims that are about to be needed and are not known yet. Those of ``lines`` are kept only where somebody waits: else what
        their owners publish is read too (I7).
        """
        missing = (names | lines) - self._claims.keys()
        found = self._table.read(missing) if missing else {}
        waited_for = {name for name, claim in found.items() if claim.waiting}
        self._claims |= {name: found.get(name) for name in missing & (names | waited_for)}

    def read_related(self, names: AbstractSet[Name], reads: Map) -> None:
        """Read all other claims at these names."""
        simple = sorted({_simple(name) for name in names} - self._related.keys())
        for name, found in zip(simple, reads(self._table.read_all, simple), strict=True):
            for each, claim in found.items():
                self._claims.setdefault(each, claim)
            self._related[name] = set(found)

    def check_owners(self) -> None:
        """See whether owners know of the claims read so far; else they are nobody's (a full resync). An item that an operator restored
        names an owner that has let the name go: nobody would get it any more.
        """
        claims = [claim for claim in self._claims.values() if claim is not None]
        known = self._known_to(sorted({claim.owner for claim in claims}))
        self._nobodys = frozenset(c.name for c in claims if c.name not in known.get(c.owner, {c.name}))

    def _known_to(self, owners: Sequence[ObjectKey]) -> dict[ObjectKey, frozenset[Name]]:
        """The names that these keys have or wait for. Keys that a newer release wrote are missing: they may know of any."""
        try:
            # One after the other, and only their names: a namespace can have many large keys.
            return {state.key: state.claims | state.waits for state in self._states.each(owners)}
        except NewerSchemaError:  # it fails the whole call
            alone = ([owner] for owner in owners) if len(owners) > 1 else ()
            return {key: names for owner in alone for key, names in self._known_to(owner).items()}

    def line(self, name: Name, key: ObjectKey, policy: str) -> Name:
        """The claim that a key queues for if it wants a name for sets of a policy: the name itself if no other claim excludes it."""
        owners = self.owners_at(name)
        line = waits_for(name, policy, key, owners)
        if line != name and self._agreed(name) == policy:
            return waits_for(name, policy, key, owners, agreed=True)
        given = owners.get(name) == key if policy == Simple.kind else key in owners.values() and policy != Weighted.kind
        if line != name and given:
            line = waits_for(name, policy, key, {each: owner for each, owner in owners.items() if self._held(each)})
        return line

    def _agreed(self, name: Name) -> str:
        """The routing policy that all holders of claims at a name want, if all are planned in this commit. Empty: they do not agree,
        or two of them want one seat."""
        simple, policies, seats = _simple(name), set[str](), list[Name]()
        for holder in {*self.owners_at(name).values()}:
            seen, records = self._commit.wants.get(holder, (None, None))
            here = {k: each for k, each in (records or {}).items() if k.place == simple.place}
            if seen is None or not here or any(_simple(each) == simple for each in seen.conflicts):
                return ""
            policies |= {each.routing.kind for each in here.values()}
            seats += [each for each in names_of(here) if each.seat and self.owner(each) in (None, holder)]
            if any(self.owner(each) not in (None, holder) for each in names_of(here)):
                return ""
        agreed = next(iter(policies), "") if len(policies) == 1 else ""
        return agreed if agreed != Simple.kind and len(seats) == len(set(seats)) else ""

    def _held(self, name: Name) -> bool:
        """Whether its owner has taken a claim. One that is still on its way does not count for who was given another one there: each would
        hand on what it has, and meet the other again, for ever. Of a weighted set and another one, the weighted one waits.
        """
        owner = self.owner(name)
        return owner is not None and (name in self._gained or name in self._states.load([owner])[owner].claims)

    def exchange(
        self, seen: KeyState, wanted: AbstractSet[Name], owners: Mapping[Name, ObjectKey | None]
    ) -> Iterator[tuple[Name, Name, list[Action], frozenset[str]]]:
        """Swap claims with an owner that waits for what this key no longer wants at the name, such as PRIMARY and SECONDARY: both
        claims change hands in one transaction, or each would wait for the other for ever.

        Yields: the claim that it gives, the one that it gets, actions, and clusters besides the key's own.
        """
        for theirs in sorted(wanted - seen.claims):
            owner, claim = owners.get(theirs), self._claims.get(theirs)
            third = [each for each, key in self.owners_at(theirs).items() if key not in (owner, seen.key)]
            if len({each.seat.split(" ")[0] for each in (theirs, *third) if each.seat}) > 1:
                continue  # the name turns to another policy: that of a third key keeps out what these would get
            if owner in (None, seen.key) or claim is None or claim.owner != owner:
                continue
            if owner.cluster not in self._fenced_here:
                continue
            for mine in sorted(seen.claims - wanted):
                if mine.place != theirs.place or self.owner(mine) != seen.key:
                    continue
                place = next((p for p, waiter in self._waiters(mine).items() if waiter == owner), None)
                if place is not None:
                    own = next((p for p, waiter in self._waiters(theirs).items() if waiter == seen.key), None)
                    given = [*self._hand(mine, owner, place), self._states.mark_promoted(owner, mine)]
                    self.promoted.append(owner)
                    yield mine, theirs, [*given, *self._hand(theirs, seen.key, own)], frozenset({owner.cluster})
                    break

    def without_lost(self, seen: KeyState) -> KeyState:
        """Without claims that another key has taken in exchange for one that this key waited for."""
        lost = {name for name in of_line(seen) if self.owner(name) is not None and not self._has(name, seen.key)}
        return replace(seen, claims=seen.claims - lost, shared=seen.shared - lost) if lost else seen

    def _hand(self, name: Name, heir: ObjectKey, place: Key | None) -> list[Action]:
        """Make a key the owner of a claim. ``place``: its place in the queue, which it leaves; None: it does not wait."""
        claim = self._known(name)
        if place is not None:
            self._drop(name, [place])
        left = claim.waiting - (place is not None)
        self._claims[name] = replace(claim, owner=heir, version=claim.version + 1, waiting=left)
        return self._table.let_go(claim, (heir, place))

    def owner(self, name: Name) -> ObjectKey | None:
        """Who owns a name by now."""
        claim = self._claims.get(name)
        return None if claim is None or (self._nobodys and name in self._nobodys) else claim.owner

    def in_line(self, name: Name) -> list[ObjectKey]:
        """Who waits for a name, in their order."""
        line = self._waiters(name) if self.is_wanted(name) else {}
        return [line[place] for place in sorted(line, key=lambda place: str(place.sort))]

    def plans(self, key: ObjectKey) -> bool:
        """Whether a key is planned in this commit."""
        return key in self._commit.wants

    def owners_at(self, name: Name) -> dict[Name, ObjectKey]:
        """All claims at a name, as far as they were read, each with its owner."""
        claims = {name, *self._related.get(_simple(name), ())}
        return {each: owner for each in claims if (owner := self.owner(each)) is not None}

    def owners(self, name: Name) -> AbstractSet[ObjectKey]:
        """Who owns or shares any claim at a name whose claims were all read."""
        claims = (claim for each in self._related[name] if self.owner(each) and (claim := self._claims[each]))
        return {key for claim in claims for key in claim.holders}

    def is_wanted_by_any(self, name: Name) -> bool:
        """Whether anybody waits for any claim at a name whose claims were all read."""
        return any(map(self.is_wanted, self._related[name]))

    def _has(self, name: Name, key: ObjectKey) -> bool:
        """Whether a key owns a name, or shares it."""
        claim = self._claims.get(name)
        return claim is not None and self.owner(name) is not None and key in claim.holders

    def others(
        self, seen: KeyState, wanted: Mapping[RecordKey, RecordSet], lines: Mapping[Name, Name], *, moved: bool
    ) -> dict[Name, dict[RecordKey, ObjectKey]]:
        """Names that the key shares with others of its namespace, or may share, each with what they have there (ADR 0062).

        Args:
            moved: the key has changed, or was notified that types are free. Else who waits for a name waits for all of it.
        """
        found: dict[Name, dict[RecordKey, ObjectKey]] = {}
        for name, policy in policies_of(wanted).items():
            claim = self._claims.get(name)
            if claim is None or self.owner(name) is None or lines.get(name, name) != name or name.seat:
                continue
            mine = seen.key in claim.holders
            if not mine and (not neighbours(claim.owner, seen.key) or (name in seen.waits and not moved)):
                continue
            of_owner = {k: each for k, each in self._intended(claim.owner).items() if Name.of(k) == name}
            # An owner that has nothing there yet is planned first. All sets of a policy with seats are of one key.
            kinds = {policy, *(each.routing.kind for each in of_owner.values())}
            if mine or ((of_owner or claim.types) and kinds in ({Simple.kind}, {Weighted.kind})):
                sets = {RecordKey(name.zone_id, name.name, t, name.identifier): k for t, k in claim.types.items()}
                sets = {**dict.fromkeys(of_owner, claim.owner), **sets}
                found[name] = {each: key for each, key in sets.items() if key != seen.key}
        return found

    def share(self, name: Name, key: ObjectKey, types: AbstractSet[str]) -> list[Action]:
        """Give a key these types, and no others, of a name that another key owns. The key leaves the queue of the name."""
        before = self._known(name)
        after = {**before.without(key), **dict.fromkeys(types, key)}
        if after == before.types:
            return []
        places = [place for place, waiter in self._waiters(name).items() if waiter == key] if before.waiting else []
        self._drop(name, places)
        return self._replaced(before, before.owner, after, before.waiting - len(places), places)

    def _replaced(
        self, before: Claim, owner: ObjectKey, types: Mapping[str, ObjectKey], waiting: int, left: Sequence[Key] = ()
    ) -> list[Action]:
        claim = Claim(before.name, owner, before.version + 1, waiting, types)
        self._claims[before.name] = claim
        return self._table.replaced(claim, before, left)

    def freed(
        self, before: KeyState, after: KeyState, wants: Callable[[ObjectKey], Mapping[RecordKey, RecordSet]]
    ) -> tuple[set[RecordKey], list[Action]]:
        """Sets that a key no longer wants, and that make room for types that others of its namespace want: with marks for these, who are
        the owner of the name, who shares it, and the first in line. ``wants``: what a key wants, as stored."""
        passing, marks = set[RecordKey](), list[Action]()
        gone, stays = before.intended.keys() - after.intended.keys(), names_of(after.intended)
        for name in sorted({Name.of(key) for key in gone} & before.claims):
            claim = self._claims.get(name)
            shared = name in before.shared
            if claim is None or not (shared or claim.owner == after.key):  # it is another one's by now
                continue
            if not (claim.types or (claim.waiting and (shared or name in stays))):
                continue
            near = [key for key in self.in_line(name) if neighbours(key, after.key)][:_ASKED]
            most = len(marks) + len(claim.holders) + _NOTIFIED
            for key in dict.fromkeys(each for each in (*claim.holders, *near) if each != after.key):
                if len(marks) == most:
                    break
                asks = [each for each in wants(key).keys() - self._intended(key).keys() if Name.of(each) == name]
                if room := {each for each in gone if any(clash(each, ask) for ask in asks)}:
                    passing |= room
                    marks.append(self._states.mark_promoted(key, name))
                    self.promoted.append(key)
        return passing, marks

    def is_wanted(self, name: Name) -> bool:
        """Whether anybody waits for a name."""
        claim = self._claims.get(name)
        return claim is not None and claim.waiting > 0

    def gain(self, name: Name, key: ObjectKey) -> list[Action]:
        """Take a name that nobody owns; nothing is to be done where the key was given it."""
        self._gained.add(name)
        if self.owner(name) == key:
            return []
        self._related.get(_simple(name), set()).add(name)
        if self._nobodys is not None:
            return self._regain(name, key)
        self._claims[name] = Claim(name, key, 1, 0)
        return self._table.gain(name, key)

    def _regain(self, name: Name, key: ObjectKey) -> list[Action]:
        before, waiting = self._claims.get(name), self._waiters(name)
        own = [place for place, waiter in waiting.items() if waiter == key]
        version, types = (1, {}) if before is None else (before.version + 1, before.without(key))
        claim = Claim(name, key, version, len(waiting) - len(own), types)
        self._claims[name] = claim
        self._nobodys = (self._nobodys or frozenset()) - {name}
        self._drop(name, own)
        return self._table.replaced(claim, before, own)

    def wait(self, name: Name, key: ObjectKey, created_at: str) -> list[Action]:
        """Queue for a name that another key owns."""
        claim = self._known(name)
        place = self._table.waiter_place(name, key, created_at)
        self._came[name][place] = key
        self._left[name].discard(place)
        comes, changed = self._table.wait(claim, key, created_at)
        # It may leave, with its deletion yet to be sent: then it hands the name on.
        if claim.owner.cluster in self._fenced_here and name not in names_of(self._intended(claim.owner)):
            self.promoted.append(claim.owner)
        if key in claim.types.values():  # nothing is left of what it shared
            return [comes, *self._replaced(claim, claim.owner, claim.without(key), waiting=claim.waiting + 1)]
        self._claims[name] = replace(claim, version=claim.version + 1, waiting=claim.waiting + 1)
        return [comes, changed]

    def give_up(self, name: Name, key: ObjectKey) -> tuple[list[Action], frozenset[str]]:
        """Leave the queue of a name. Lets the name go if the key was given it meanwhile. Also returns clusters besides the key's own."""
        claim = self._claims.get(name)
        if claim is not None and claim.owner == key:
            return self._let_go(claim)
        places = [place for place, waiter in self._waiters(name).items() if waiter == key]
        actions = self._table.give_up(claim, places)
        self._drop(name, places)
        if claim is not None:
            self._claims[name] = replace(claim, version=claim.version + 1, waiting=claim.waiting - 1)
        return actions, frozenset()

    def requeue(self, name: Name, key: ObjectKey, created_at: str) -> list[Action]:
        """Queue at another place: the Service was made again while it waited."""
        claim = self._known(name)
        place = self._table.waiter_place(name, key, created_at)
        left = [p for p, waiter in self._waiters(name).items() if waiter == key and p != place]
        if not left:
            return []
        self._drop(name, left)
        self._came[name][place] = key
        self._claims[name] = replace(claim, version=claim.version + 1)
        return self._table.requeue(claim, key, created_at, left)

    def begin_commit(self, wants: Mapping[ObjectKey, tuple[KeyState, Mapping[RecordKey, RecordSet] | None]]) -> None:
        """Set the keys that are planned in this commit."""
        self._commit.wants = wants

    def expect(self, seen: KeyState, created_at: str, wanted: AbstractSet[Name]) -> None:
        """Note which queues a key of this commit will join and leave, before it is planned."""
        asked = wanted - seen.claims - seen.conflicts.keys()
        for name in asked - seen.waits:
            self._commit.coming.setdefault(name, {})[self._table.waiter_place(name, seen.key, created_at)] = seen.key
        # Who wants a set with another identifier may stand in this line because of what excludes it.
        stays = {name.place for name in asked}
        self._commit.going.update((n, seen.key) for n in seen.waits if n.place not in stays)

    def begin(self, key: ObjectKey) -> frozenset[Name]:
        """Mark the key as planned. Returns names that it was given in this very commit."""
        self._commit.planned.add(key)
        return frozenset(self._commit.given.get(key, ()))

    def heir(self, name: Name, key: ObjectKey) -> ObjectKey | None:
        """Who receives the name if the key lets it go. None: nobody, or a key of a cluster that this master does not write for."""
        claim = self._claims.get(name)
        line = {} if claim is None or claim.owner != key or claim.types else self._line(claim)
        return line[_first(line)] if line and line[_first(line)].cluster in self._fenced_here else None

    def _line(self, claim: Claim) -> dict[Key, ObjectKey]:
        """Who will wait for a claim after this commit: those that wait now or will come, without those that will go."""
        name = claim.name
        coming = {p: each for p, each in self._commit.coming.get(name, {}).items() if each not in self._commit.planned}
        line = (self._waiters(name) if claim.waiting else {}) | coming
        return {place: each for place, each in line.items() if (name, each) not in self._commit.going}

    def let_go(self, name: Name, key: ObjectKey) -> tuple[list[Action], frozenset[str]]:
        """Let a name go: hand it on to the next in line, if one waits. Also returns other clusters whose fence is checked."""
        claim = self._claims.get(name)
        if claim is None or claim.owner != key:
            return ([] if claim is None else self.share(name, key, frozenset())), frozenset()
        return self._let_go(claim)

    def _let_go(self, claim: Claim) -> tuple[list[Action], frozenset[str]]:
        """As ``let_go``. The new owner gets a note under its cluster's fence; of another shard, a note that its master looks for."""
        name = claim.name
        if claim.types:  # the name stays in its namespace as long as a key there has a type
            heir = claim.holders[1]
            self.promoted.append(heir)
            given = self._replaced(claim, heir, claim.without(heir), claim.waiting)
            return [*given, self._states.mark_promoted(heir, name)], frozenset({heir.cluster})
        line = self._line(claim) or (self._waiters(name) if claim.waiting else {})
        if not line:
            self._claims[name] = None
            return self._table.let_go(claim, None), frozenset()
        place = _first(line)
        heir = line[place]
        if neighbours(heir, claim.owner):
            self._reserve(heir, name.name)
        if claim.waiting and place in self._waiters(name):
            actions = self._hand(name, heir, place)
        else:  # it is planned later in this very commit, and finds the name its own
            self._commit.given.setdefault(heir, set()).add(name)
            return self._hand(name, heir, None), frozenset()
        if heir.cluster not in self._fenced_here:
            return [*actions, NextOwnerTable.note(heir, name, claim.version + 1)], frozenset()
        self.promoted.append(heir)
        return [*actions, self._states.mark_promoted(heir, name)], frozenset({heir.cluster})

    def _known(self, name: Name) -> Claim:
        claim = self._claims[name]
        assert claim is not None, "only for a name that somebody owns"
        return claim

    def _waiters(self, name: Name) -> dict[Key, ObjectKey]:
        """Who waits by now: as stored (read once), less who left and with who came in this commit."""
        if name not in self._stored:
            self._stored[name] = {place: key for key, place in self._table.waiters(name)}
        waiting = self._stored[name] | self._came[name]
        return {place: key for place, key in waiting.items() if place not in self._left[name]}

    def _drop(self, name: Name, places: Iterable[Key]) -> None:
        for place in places:
            self._left[name].add(place)
            self._came[name].pop(place, None)


def _first(line: Iterable[Key]) -> Key:
    return min(line, key=lambda place: str(place.sort))


def _simple(name: Name) -> Name:
    return Name(name.zone_id, name.name)
