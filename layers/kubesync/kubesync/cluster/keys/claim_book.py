"""Claims as they will stand after what one commit has planned so far: several keys may change one claim in it.

    book ── gain ── wait ── give up ── let go ── actions, each conditional on what the one before it leaves behind

Sets of one name that exclude each other in Route 53 have claims of their own (ADR 0010, ADR 0048). In a cluster with rules for names, and
for policies other than weights in every cluster, who wants a set waits for the claim of one that excludes it (``domain.plan.waits_for``).

Who is given such a claim takes what it wants, or waits for the next claim in its way, and hands that one on.

Actions on one claim go into transactions one after the other (``key_writes``), since a transaction may name an item once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from kubesync.actors.parallel import Map
from kubesync.aws.dynamodb.store import Action, Key
from kubesync.aws.tables.claims import Claim, ClaimTable
from kubesync.aws.tables.control.heirs import HeirTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.routing.policies import Simple, Weighted
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import waits_for
from kubesync.domain.state import Name


class ClaimBook:
    """For one section of a commit.

    Args:
        fenced_here: clusters whose fence this master has raised: only their keys can be told that they were given a name.
    """

    def __init__(self, claims: ClaimTable, states: StateTable, fenced_here: AbstractSet[str]) -> None:
        self._table = claims
        self._states = states
        self._fenced_here = fenced_here
        self._claims: dict[Name, Claim | None] = {}
        self._came: dict[Name, dict[Key, ObjectKey]] = defaultdict(dict)
        self._left: dict[Name, set[Key]] = defaultdict(set)
        self._stored: dict[Name, dict[Key, ObjectKey]] = {}
        self._beside: dict[Name, set[Name]] = {}
        self._gained: set[Name] = set()
        self._nobodys: frozenset[Name] | None = None
        self.promoted: list[ObjectKey] = []

    def read(self, names: Iterable[Name]) -> None:
        """Read claims that are about to be needed and are not known yet."""
        missing = [name for name in names if name not in self._claims]
        found = self._table.read(missing) if missing else {}
        self._claims |= {name: found.get(name) for name in missing}

    def read_beside(self, names: AbstractSet[Name], reads: Map) -> None:
        """Read all other claims at these names."""
        simple = sorted({_simple(name) for name in names} - self._beside.keys())
        for name, found in zip(simple, reads(self._table.read_all, simple), strict=True):
            for each, claim in found.items():
                self._claims.setdefault(each, claim)
            self._beside[name] = set(found)

    def distrust(self) -> None:
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
        """The claim in whose line a key stands that wants a name for sets of a policy: the name itself where nothing is in its way."""
        owners = {
            each: owner for each in {name, *self._beside[_simple(name)]} if (owner := self.owner(each)) is not None
        }
        line = waits_for(name, policy, key, owners)
        given = owners.get(name) == key if policy == Simple.kind else key in owners.values() and policy != Weighted.kind
        if line != name and given:
            line = waits_for(name, policy, key, {each: owner for each, owner in owners.items() if self._held(each)})
        return line

    def _held(self, name: Name) -> bool:
        """Whether its owner has taken a claim. One that is still on its way does not count for who was given another one there: each would
        hand on what it has, and meet the other again, for ever. Of a weighted set and another one, the weighted one waits.
        """
        owner = self.owner(name)
        return owner is not None and (name in self._gained or name in self._states.load([owner])[owner].claims)

    def owner(self, name: Name) -> ObjectKey | None:
        """Who owns a name by now."""
        claim = self._claims.get(name)
        return None if claim is None or (self._nobodys and name in self._nobodys) else claim.owner

    def gain(self, name: Name, key: ObjectKey) -> list[Action]:
        """Take a name that nobody owns; nothing is to be done where the key was given it."""
        self._gained.add(name)
        if self.owner(name) == key:
            return []
        self._beside.get(_simple(name), set()).add(name)
        if self._nobodys is not None:
            return self._regain(name, key)
        self._claims[name] = Claim(name, key, 1, 0)
        return self._table.gain(name, key)

    def _regain(self, name: Name, key: ObjectKey) -> list[Action]:
        before, waiting = self._claims.get(name), self._waiters(name)
        own = [place for place, waiter in waiting.items() if waiter == key]
        claim = Claim(name, key, 1 if before is None else before.version + 1, len(waiting) - len(own))
        self._claims[name] = claim
        self._nobodys = (self._nobodys or frozenset()) - {name}
        self._drop(name, own)
        return self._table.regain(claim, before, own)

    def wait(self, name: Name, key: ObjectKey, created_at: str) -> list[Action]:
        """Queue for a name that another key owns."""
        claim = self._known(name)
        place = self._table.waiter_place(name, key, created_at)
        self._came[name][place] = key
        self._left[name].discard(place)
        self._claims[name] = replace(claim, version=claim.version + 1, waiting=claim.waiting + 1)
        return self._table.wait(claim, key, created_at)

    def give_up(self, name: Name, key: ObjectKey) -> tuple[list[Action], frozenset[str]]:
        """Queue no more; where the key was given the name meanwhile, let it go. Returns clusters besides the key's own."""
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
        """Queue at another place: the Service was made anew while it waited."""
        claim = self._known(name)
        place = self._table.waiter_place(name, key, created_at)
        left = [p for p, waiter in self._waiters(name).items() if waiter == key and p != place]
        if not left:
            return []
        self._drop(name, left)
        self._came[name][place] = key
        self._claims[name] = replace(claim, version=claim.version + 1)
        return self._table.requeue(claim, key, created_at, left)

    def let_go(self, name: Name, key: ObjectKey) -> tuple[list[Action], frozenset[str]]:
        """Let a name go: hand it on to the next in line, if one waits. Also returns other clusters whose fence is checked."""
        claim = self._claims.get(name)
        return ([], frozenset()) if claim is None or claim.owner != key else self._let_go(claim)

    def _let_go(self, claim: Claim) -> tuple[list[Action], frozenset[str]]:
        """As ``let_go``. The new owner gets a note under its cluster's fence; of another shard, a note that its master looks for."""
        name = claim.name
        waiting = self._waiters(name) if claim.waiting else {}
        place = min(waiting, key=lambda p: str(p.sort), default=None)
        if place is None:
            self._claims[name] = None
            return self._table.let_go(claim, None), frozenset()
        promoted = waiting[place]
        actions = self._table.let_go(claim, (promoted, place))
        self._drop(name, [place])
        self._claims[name] = replace(claim, owner=promoted, version=claim.version + 1, waiting=claim.waiting - 1)
        if promoted.cluster not in self._fenced_here:
            return [*actions, HeirTable.note(promoted, name, claim.version + 1)], frozenset()
        self.promoted.append(promoted)
        return [*actions, self._states.mark_promoted(promoted, name)], frozenset({promoted.cluster})

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


def _simple(name: Name) -> Name:
    return Name(name.zone_id, name.name)
