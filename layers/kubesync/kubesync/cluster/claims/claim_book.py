"""Tracks how claims will stand after what one commit has planned so far. Several keys of the commit may change one claim.

    book ── gain ── wait ── give up ── let go ── actions, each conditional on the claim's version after the action before

One name can have several claims: of its simple set, of each set with an identifier, and of each seat (``Name``; ADR 0010, ADR 0048).
Sets of different claims can exclude each other in Route 53. Then a key waits for the claim of the set that excludes its own
(``domain.plan.waits_for``). This holds in clusters with rules for names, and for policies other than weights in every cluster.
A key that is given such a claim either takes the name, or waits for the next claim in its way and hands the given one on.

A transaction may name an item once. So ``key_writes`` puts actions on one claim into successive transactions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace

from kubesync.actors.parallel import Map
from kubesync.aws.dynamodb.store import Action, Key
from kubesync.aws.tables.claims import Claim, Waiters, first_place
from kubesync.aws.tables.control.next_owners import NextOwnerTable
from kubesync.aws.tables.of_clusters import Tables
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Simple, Weighted
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.objects import EMPTY_SET, ObjectKey, neighbours
from kubesync.domain.plan import waits_for
from kubesync.domain.state import Form, KeyState, Name, claims_beside_waits, form_of, kept_sets, names_of, policies_of


@dataclass(slots=True)
class _Commit:
    """What is known of the keys of one commit, besides ``ClaimBook.wants``.

    ``coming``: by claim, the keys that will join its queue, at their places. ``going``: keys that will leave the queue of a claim.
    ``planned``: keys that are planned already. ``given``: claims that a key has received from another key of this commit.
    """

    coming: dict[Name, dict[Key, ObjectKey]] = field(default_factory=dict)
    going: set[tuple[Name, ObjectKey]] = field(default_factory=set)
    planned: set[ObjectKey] = field(default_factory=set)
    given: dict[ObjectKey, set[Name]] = field(default_factory=dict)


class ClaimBook:
    """Tracks claims while one section of a commit is planned. Methods that change a claim return the actions that write the change.

    ``to_plan_next``: keys that must be planned next: they were given a claim, may take more of one, or can hand one on now (``wait``).
    ``wants``: each key that is planned in this commit, as it is seen now, with the record sets that it wants (None: not known). The planner
    sets it.

    Args:
        tables: only keys of clusters in ``writable_clusters`` can be notified that they were given a name.
        known: returns a key without its parts: as planned so far in this commit, else as stored (``PublishedSets.of``).
        reserve: called with a key and a name if a neighbour gives the key the name. Their namespace counts it already, so its room is kept.
    """

    def __init__(
        self, tables: Tables, known: Callable[[ObjectKey], KeyState], reserve: Callable[[ObjectKey, str], None]
    ) -> None:
        self._table = tables.claims
        self._states = tables.state
        self.writable_clusters = tables.writable_clusters
        self.known = known
        self._reserve = reserve
        self._waiters = Waiters(tables.claims)
        self._claims: dict[Name, Claim | None] = {}  # those that were read; None: does not exist
        self._related: dict[Name, set[Name]] = {}  # by the name's simple claim, all claims of the name
        self._ownerless: frozenset[Name] | None = None  # see ``check_owners``; None: not checked
        self._commit = _Commit()
        self.to_plan_next: list[ObjectKey] = []
        self.wants: Mapping[ObjectKey, tuple[KeyState, Mapping[RecordKey, RecordSet] | None]] = {}

    def read(self, names: AbstractSet[Name], if_awaited: AbstractSet[Name] = EMPTY_SET) -> None:
        """Read claims that are about to be needed and are not known yet.

        ``if_awaited``: further claims, kept only if a key waits for them. For each kept claim the planner also reads what its owner
        publishes, and without a waiter nobody needs that (I7).
        """
        missing = (names | if_awaited) - self._claims.keys()
        found = self._table.read(missing) if missing else {}
        waited_for = {name for name, claim in found.items() if claim.waiting}
        self._claims |= {name: found.get(name) for name in missing & (names | waited_for)}

    def read_related(self, names: AbstractSet[Name], reads: Map) -> None:
        """Read all claims of these names: of simple sets, of sets with an identifier and of seats."""
        simple = sorted({_simple(name) for name in names} - self._related.keys())
        for name, found in zip(simple, reads(self._table.read_all, simple), strict=True):
            for each, claim in found.items():
                self._claims.setdefault(each, claim)
            self._related[name] = set(found)

    def check_owners(self) -> None:
        """Find claims, of those read so far, whose owners do not know of them. From then on, ``owner`` says that nobody owns these. Only a full
        resync calls this.

        Such a claim exists if an operator restored its item: the item names an owner that has let the name go. The owner would never
        let the name go again, so no other key would get it.
        """
        claims = [claim for claim in self._claims.values() if claim is not None]
        known = self._known_to(sorted({claim.owner for claim in claims}))
        # An owner that ``_known_to`` leaves out may know of the claim: then the claim stays.
        self._ownerless = frozenset(c.name for c in claims if c.name not in known.get(c.owner, {c.name}))

    def _known_to(self, owners: Sequence[ObjectKey]) -> dict[ObjectKey, frozenset[Name]]:
        """The claims that each of these keys has or waits for. Keys that a newer release wrote are missing: they may know of any claim."""
        try:
            # One after the other, and only their names: a namespace can have many large keys.
            return {state.key: state.claims | state.waits for state in self._states.load_each(owners)}
        except NewerSchemaError:  # one such key fails the whole call: read each key alone. Alone, it is left out.
            alone = ([owner] for owner in owners) if len(owners) > 1 else ()
            return {key: names for owner in alone for key, names in self._known_to(owner).items()}

    def needed_claim(self, name: Name, key: ObjectKey, policy: str) -> Name:
        """The claim that a key needs to publish sets of a policy at a name. If another key owns this claim, the key waits for it.

        case                                                            needed claim (``domain.plan.waits_for``)
        ----                                                            ------------
        no other claim excludes these sets                              ``name`` itself
        all owners of claims at the name want this policy in this       ``name`` itself; the first of the other sets, if there are as many as
          commit: all sets there turn in one batch                        Route 53 allows
        the key was given a claim at the name                           the first that excludes the sets, of claims that are taken
        else                                                            the first that excludes the sets
        """
        owners = self.owners_at(name)
        needed = waits_for(name, policy, key, owners)
        if needed == name:
            return name
        agreed = self.agreed_form(name)
        if agreed is not None and agreed.policy == policy:
            return waits_for(name, policy, key, owners, agreed=True)
        # Of a simple set: whether the key was given just this claim. Of other sets: any claim at the name. Of weighted ones: see ``_is_taken``.
        given = owners.get(name) == key if policy == Simple.kind else key in owners.values() and policy != Weighted.kind
        if given:
            return waits_for(name, policy, key, {each: owner for each, owner in owners.items() if self._is_taken(each)})
        return needed

    def agreed_form(self, name: Name) -> Form | None:
        """The one form that all owners of claims at a name want there in this commit: their sets can turn in one batch (ADR 0072).

        Where all agree, a set that stands there keeps nobody out, because it turns too. Keys that only share a claim are not asked.

        None if                                                   because
        -------                                                   -------
        an owner is not planned in this commit                    nobody knows here what it wants
        an owner wants no set there, or is in conflict there      it brings no set to the batch
        an owner wants a claim that another key owns              it has to wait for that claim first
        two owners want one seat, or owners want several forms    their sets would exclude each other
        they want simple sets                                     simple sets have one claim, so only one key can get it
        """
        simple, forms, seats = _simple(name), set[Form](), list[Name]()
        for owner in {*self.owners_at(name).values()}:
            seen, records = self.wants.get(owner, (None, None))
            here = {k: each for k, each in (records or {}).items() if k.place == simple.place}
            if seen is None or not here or any(_simple(each) == simple for each in seen.conflicts):
                return None
            forms |= {form_of(key, each) for key, each in here.items()}
            seats += [each for each in names_of(here) if each.seat and self.owner(each) in (None, owner)]
            if any(self.owner(each) not in (None, owner) for each in names_of(here)):
                return None
        agreed = next(iter(forms)) if len(forms) == 1 and len(seats) == len(set(seats)) else None
        return None if agreed is None or agreed.policy == Simple.kind else agreed

    def _is_taken(self, name: Name) -> bool:
        """Whether the owner of a claim was planned since it was given the claim, and took it.

        Two keys can each be given a claim that excludes the other's. If both counted as obstacles, each key would hand on its claim and
        meet the other key again, for ever. So ``needed_claim`` ignores claims that are not taken, except for a weighted set: that waits.
        """
        owner = self.owner(name)
        return owner is not None and name in self.known(owner).claims

    def exchange(
        self, seen: KeyState, wanted: AbstractSet[Name], owners: Mapping[Name, ObjectKey | None]
    ) -> Iterator[tuple[Name, Name, list[Action], frozenset[str]]]:
        """Swap claims with another owner at the same name, if each of the two keys wants the other's claim and no longer its own.

        For example, two keys swap the seats PRIMARY and SECONDARY. Both claims change hands in one transaction: otherwise each key would
        wait for the other for ever. A key gives only claims of sets that it keeps (``kept_sets``). What it wanted to turn to, but has never
        published, it lets go. An exchange is made when the generator yields it. The caller corrects ``owners``.

        Yields: the claim that the key gives, the claim that it gets, actions, and clusters besides the key's own.
        """
        kept = seen.claims & names_of(kept_sets(seen))  # what the key can give
        for theirs in sorted(wanted - seen.claims):
            owner, claim = owners.get(theirs), self._claims.get(theirs)
            if owner in (None, seen.key) or claim is None or claim.owner != owner:
                continue
            if owner.cluster not in self.writable_clusters:
                continue
            # The claims of other keys at the name. A seat begins with its policy.
            third = [each for each, key in self.owners_at(theirs).items() if key not in (owner, seen.key)]
            if len({each.seat.split(" ")[0] for each in (theirs, *third) if each.seat}) > 1:
                continue  # the name changes its policy: a third key still has the old one, which excludes the sets of both keys
            for mine in sorted(kept - wanted):
                if mine.place != theirs.place or self.owner(mine) != seen.key:
                    continue
                place = next(iter(self._waiters.places_of(mine, owner)), None)  # None: the owner does not want ``mine``
                if place is not None:
                    own = next(iter(self._waiters.places_of(theirs, seen.key)), None)
                    given = [*self._hand_over(mine, owner, place), self.plan_next(owner, mine)]
                    yield mine, theirs, [*given, *self._hand_over(theirs, seen.key, own)], frozenset({owner.cluster})
                    break

    def without_lost(self, seen: KeyState) -> KeyState:
        """The key without claims that it has lost: another key took them by ``exchange``, and gave this key the claim that it waits for.

        The other key's transaction wrote the claims, but not this key's item. So the item names the lost claims until this key is planned.
        """
        beside = claims_beside_waits(seen)  # only a key that waits at the name can have lost a claim there
        lost = {name for name in beside if self.owner(name) is not None and seen.key not in self._holders(name)}
        return replace(seen, claims=seen.claims - lost, shared=seen.shared - lost) if lost else seen

    def _hand_over(self, name: Name, heir: ObjectKey, place: Key | None) -> list[Action]:
        """Make a key the owner of a claim. The key leaves its ``place`` in the queue; None: it does not wait."""
        left = [] if place is None else [place]
        claim = self._existing(name)
        return self._change(claim, claim.changed(owner=heir, waiting=claim.waiting - len(left)), leaves=left)

    def plan_next(self, key: ObjectKey, name: Name) -> Action:
        """Have a key planned next, because of a name. Returns a durable mark, for the case that the session ends before (I1). It belongs into a
        transaction with the fence of the key's cluster."""
        self.to_plan_next.append(key)
        return self._states.mark_to_plan(key, name)

    def claim(self, name: Name) -> Claim | None:
        """A claim as it stands now. None: it does not exist, or was not read."""
        return self._claims.get(name)

    def owner(self, name: Name) -> ObjectKey | None:
        """The key that owns a claim now. None: nobody, or the claim was not read."""
        claim = self._claims.get(name)
        return None if claim is None or (self._ownerless and name in self._ownerless) else claim.owner

    def waiters_in_order(self, name: Name) -> list[ObjectKey]:
        """The keys that wait for a claim, next in line first."""
        line = self._waiters.by_place(name) if self.is_awaited(name) else {}
        return [line[place] for place in sorted(line, key=lambda place: str(place.sort))]

    def owners_at(self, name: Name) -> dict[Name, ObjectKey]:
        """All claims of a name that were read and are owned, each with its owner."""
        claims = {name, *self._related.get(_simple(name), ())}
        return {each: owner for each in claims if (owner := self.owner(each)) is not None}

    def holders_at(self, name: Name) -> AbstractSet[ObjectKey]:
        """The keys that own or share any claim of a name. ``read_related`` must have read the name before."""
        return {key for each in self._related[name] for key in self._holders(each)}

    def is_any_awaited(self, name: Name) -> bool:
        """Whether a key waits for any claim of a name. ``read_related`` must have read the name before."""
        return any(map(self.is_awaited, self._related[name]))

    def _holders(self, name: Name) -> Sequence[ObjectKey]:
        """The keys that own or share a claim. Empty: nobody, or the claim was not read."""
        claim = self._claims.get(name)
        return () if claim is None or self.owner(name) is None else claim.holders

    def sets_of_sharers(
        self, seen: KeyState, wanted: Mapping[RecordKey, RecordSet], needed: Mapping[Name, Name], *, moved: bool
    ) -> dict[Name, dict[RecordKey, ObjectKey]]:
        """Claims that the key shares, or may share, with other keys of its namespace, each with the sets of these others (ADR 0062).

        A key may share a claim of a neighbour if sets of both are simple, or both are weighted.

        Args:
            needed: see ``needed_claim``.
            moved: the key has changed, or was notified that types are free. Otherwise a key that waits for a claim goes on waiting.
        """
        found: dict[Name, dict[RecordKey, ObjectKey]] = {}
        for name, policy in policies_of(wanted).items():
            claim = self._claims.get(name)
            # Nothing to share: the claim is free, the key has to wait for another claim first, or only one key may have it (a seat).
            if claim is None or self.owner(name) is None or needed.get(name, name) != name or name.seat:
                continue
            # 1. Who may take part: a key that has the claim or shares it, or a neighbour of the owner.
            holds = seen.key in claim.holders
            if not holds and (not neighbours(claim.owner, seen.key) or (name in seen.waits and not moved)):
                continue
            # 2. Whether the policies allow it. 3. The sets there: who shares a type has its set, the owner has the others.
            of_owner = {k: each for k, each in self.known(claim.owner).intended.items() if Name.of(k) == name}
            kinds = {policy, *(each.routing.kind for each in of_owner.values())}
            # An owner without sets at the name is planned first: only then it is known which types are free.
            if holds or ((of_owner or claim.types) and kinds in ({Simple.kind}, {Weighted.kind})):
                sets = {RecordKey(name.zone_id, name.name, t, name.identifier): k for t, k in claim.types.items()}
                sets = {**dict.fromkeys(of_owner, claim.owner), **sets}
                found[name] = {each: key for each, key in sets.items() if key != seen.key}
        return found

    def share(self, name: Name, key: ObjectKey, types: AbstractSet[str]) -> list[Action]:
        """Give a key these types, and no others, of a claim that another key owns. The key leaves the queue of the claim."""
        before = self._existing(name)
        after = {**before.types_without(key), **dict.fromkeys(types, key)}
        if after == before.types:
            return []
        places = self._waiters.places_of(name, key) if before.waiting else []
        return self._change(before, before.changed(types=after, waiting=before.waiting - len(places)), leaves=places)

    def _change(
        self,
        before: Claim | None,
        after: Claim,
        joins: Mapping[Key, ObjectKey] | None = None,
        leaves: Sequence[Key] = (),
    ) -> list[Action]:
        """Write a claim as it is to be, and keep it. Keys join its queue and leave it."""
        self._claims[after.name] = after
        self._waiters.change(after.name, joins or {}, leaves)
        return self._table.change(before, after, joins, leaves)

    def is_awaited(self, name: Name) -> bool:
        """Whether a key waits for a claim."""
        claim = self._claims.get(name)
        return claim is not None and claim.waiting > 0

    def gain(self, name: Name, key: ObjectKey) -> list[Action]:
        """Take a claim that nobody owns. Returns no action if the key was given the claim already."""
        if self.owner(name) == key:
            return []
        self._related.get(_simple(name), set()).add(name)  # only if all claims of the name were read
        if self._ownerless is not None:  # a full resync: the claim may have an item without a right owner
            return self._regain(name, key)
        return self._change(None, Claim(name, key, 1, 0))

    def _regain(self, name: Name, key: ObjectKey) -> list[Action]:
        """Take a claim whose item is lost or names a wrong owner (``check_owners``). The keys that wait for it are counted again."""
        before, waiting = self._claims.get(name), self._waiters.by_place(name)
        own = self._waiters.places_of(name, key)
        version, types = (1, {}) if before is None else (before.version + 1, before.types_without(key))
        self._ownerless = (self._ownerless or frozenset()) - {name}
        return self._change(before, Claim(name, key, version, len(waiting) - len(own), types), leaves=own)

    def wait(self, name: Name, key: ObjectKey, created_at: str) -> list[Action]:
        """Queue for a claim that another key owns."""
        claim = self._existing(name)
        # An owner that no longer wants the name keeps the claim until its set is deleted. Now that a key waits, it can hand the claim on.
        if claim.owner.cluster in self.writable_clusters and name not in names_of(self.known(claim.owner).intended):
            self.to_plan_next.append(claim.owner)
        joins = {self._table.waiter_place(name, key, created_at): key}
        # A key that waits shares no types.
        return self._change(claim, claim.changed(waiting=claim.waiting + 1, types=claim.types_without(key)), joins)

    def requeue(self, name: Name, key: ObjectKey, created_at: str) -> list[Action]:
        """Move a key to another place in the queue, because its object was deleted and created again: places sort by creation time."""
        claim = self._existing(name)
        place = self._table.waiter_place(name, key, created_at)
        left = [each for each in self._waiters.places_of(name, key) if each != place]
        if not left:
            return []
        return self._change(claim, claim.changed(), {place: key}, left)

    def note_queues(self, seen: KeyState, created_at: str, wanted: AbstractSet[Name]) -> None:
        """Note which queues a key of this commit will join and leave. The planner calls it for all keys before it plans the first of them, so that
        a key that lets a claim go finds the next in line also among keys that are planned later (``_future_waiters``)."""
        asked = wanted - seen.claims - seen.conflicts.keys()
        for name in asked - seen.waits:
            self._commit.coming.setdefault(name, {})[self._table.waiter_place(name, seen.key, created_at)] = seen.key
        # A key may wait for a claim that excludes the one it wants: it leaves only if it wants nothing at the whole name.
        stays = {name.place for name in asked}
        self._commit.going.update((n, seen.key) for n in seen.waits if n.place not in stays)

    def begin_key(self, key: ObjectKey) -> frozenset[Name]:
        """Mark the key as planned. Returns claims that keys planned earlier in this commit have given to the key."""
        self._commit.planned.add(key)
        return frozenset(self._commit.given.get(key, ()))

    def heir(self, name: Name, key: ObjectKey) -> ObjectKey | None:
        """The next in line, if ``key`` can hand the claim on to it before its own set is deleted (ADR 0052). None: it does not own the claim,
        or nobody will wait; or neighbours share the claim, or the next is of a cluster that this master does not write for: then it is let go
        later (``_let_owned_go``)."""
        claim = self._claims.get(name)
        line = {} if claim is None or claim.owner != key or claim.types else self._future_waiters(claim)
        heir = line[first_place(line)] if line else None
        return heir if heir is not None and heir.cluster in self.writable_clusters else None

    def _future_waiters(self, claim: Claim) -> dict[Key, ObjectKey]:
        """The keys that will wait for a claim after this commit: those that wait now or will come, without those that will go."""
        name = claim.name
        coming = {p: each for p, each in self._commit.coming.get(name, {}).items() if each not in self._commit.planned}
        line = (self._waiters.by_place(name) if claim.waiting else {}) | coming
        return {place: each for place, each in line.items() if (name, each) not in self._commit.going}

    def give_up(self, name: Name, key: ObjectKey) -> tuple[list[Action], frozenset[str]]:
        """Leave the queue of a claim. Lets the claim go if the key was given it meanwhile. Also returns clusters besides the key's own.

        If the claim exists, it is written too, on condition that nobody has changed it since it was read. The queue is read later. In between,
        another cluster may have given the claim to this key: then the transaction is refused, and the claim is read again.
        """
        claim = self._claims.get(name)
        if claim is not None and claim.owner == key:
            return self._let_owned_go(claim)
        places = self._waiters.places_of(name, key)
        if claim is None:
            self._waiters.change(name, {}, places)
            return self._table.change(None, None, leaves=places), frozenset()
        return self._change(claim, claim.changed(waiting=claim.waiting - 1), leaves=places), frozenset()

    def let_go(self, name: Name, key: ObjectKey) -> tuple[list[Action], frozenset[str]]:
        """Let a claim go, or the types that the key shares of it. A place in its queue stays: the key may wait again by now (``give_up``).

        Also returns clusters, besides the key's own, whose fence is checked.
        """
        claim = self._claims.get(name)
        if claim is None:
            return [], frozenset()
        if claim.owner != key:
            return self.share(name, key, frozenset()), frozenset()
        return self._let_owned_go(claim)

    def _let_owned_go(self, claim: Claim) -> tuple[list[Action], frozenset[str]]:
        """Let go of a claim for its owner, and give it to the next key. As ``let_go`` returns.

        case                                           new owner                     how it hears of the claim
        ----                                           ---------                     -------------------------
        keys of the namespace share the claim          the first of these            a mark under its cluster's fence
        nobody waits                                   none: the claim is deleted    -
        the next in line joins later in this commit    that key                      ``begin_key`` returns the claim
        the next in line is of another shard           that key                      a note that its master looks for
        another key is next in line                    that key                      a mark under its cluster's fence
        """
        name = claim.name
        if claim.types:  # the name stays in its namespace as long as a key there has a type
            heir = claim.holders[1]
            given = self._change(claim, claim.changed(owner=heir, types=claim.types_without(heir)))
            return [*given, self.plan_next(heir, name)], frozenset({heir.cluster})
        # If all who wait leave in this commit, one of them gets the claim, and lets it go in turn: the session may end before they leave, and
        # nobody would look at a queue without a claim again (I1).
        line = self._future_waiters(claim) or (self._waiters.by_place(name) if claim.waiting else {})
        if not line:
            self._claims[name] = None
            return self._table.change(claim, None), frozenset()
        place = first_place(line)
        heir = line[place]
        if neighbours(heir, claim.owner):
            self._reserve(heir, name.name)
        if not (claim.waiting and place in self._waiters.by_place(name)):  # it joins later in this commit
            self._commit.given.setdefault(heir, set()).add(name)
            return self._hand_over(name, heir, None), frozenset()
        actions = self._hand_over(name, heir, place)
        if heir.cluster not in self.writable_clusters:
            return [*actions, NextOwnerTable.note(heir, name, claim.version + 1)], frozenset()
        return [*actions, self.plan_next(heir, name)], frozenset({heir.cluster})

    def _existing(self, name: Name) -> Claim:
        """A claim that was read and exists. The caller knows that."""
        claim = self._claims[name]
        assert claim is not None, "only for a name that somebody owns"
        return claim


def _simple(name: Name) -> Name:
    """The claim of the simple set at the same name."""
    return Name(name.zone_id, name.name)
