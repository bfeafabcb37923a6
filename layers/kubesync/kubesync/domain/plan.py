"""Planning: which wanted names a key may have, and which changes lead from applied to intended record sets.

Which key gets a wanted name (a claim is per zone, name and set identifier):

    the claim's owner     first waiter     this key
    -----------------     ------------     --------
    this key              -                has it
    nobody                nobody           gains it
    nobody                this key         gains it, waits no longer
    another key           -                waits; reported; opened when the owner lets go
    another one of its    -                gains the types that are free beside theirs (``ClaimBook.sets_of_sharers``); types of others are reported
      namespace

A claim of a set that excludes the wanted one may also keep a name from a key: then it waits for that claim (``waits_for``). Sets of the
key that stand at the name stay as they are meanwhile: it keeps what it has until there is room for what it wants. The same holds for who
waits for a seat: a region, a place or a role of a routing policy.

A name in conflict for this key (a foreign set stands there) stays in conflict until the next conflict check of the zone,
whoever owns the name by then. Otherwise two such keys would queue again at each planning and pass the name to and fro.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from kubesync.domain.dns.records import Problem, RecordChange, RecordKey, RecordSet, clash, exclude_each_other
from kubesync.domain.dns.routing.policies import POLICIES, Simple, Weighted
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.state import KeyState, Name, kept_sets, names_of, policies_of, turned_by, turning


class Policy(StrEnum):
    """What a cluster allows kubesync to do to record sets."""

    SYNC = "sync"
    UPSERT_ONLY = "upsert-only"
    CREATE_ONLY = "create-only"


def waits_for(
    name: Name, policy: str, key: ObjectKey, owners: Mapping[Name, ObjectKey], *, agreed: bool = False
) -> Name:
    """The claim that a key must wait for if it wants the claim ``name``: ``name`` itself, unless a claim of another key excludes it.

    A claim is of a name, or of a *seat* at it: what a routing policy gives to only one set of a name, such as a region. Which policies exclude
    each other is a rule of Route 53. The claims say of which policy their sets are:

        the claim has                                  policy of its sets
        -------------                                  ------------------
        a seat, such as ``latency eu-west-1``          the first word of the seat
        no identifier, no seat                         simple
        an identifier, and its owner claims a seat     what the claim of the seat says
        an identifier, and its owner claims no seat    weighted: all other policies have seats

        wanted      claimed by another key, the first of                         waits for
        ------      -------------------------------------                        ---------
        any         the same name and identifier, or the same seat               that claim
        simple      sets with an identifier                                      that claim
        any other   the simple set; a seat of another policy;                    that claim
                    where it is not weighted: a weighted set
        weighted    100 sets with other identifiers                              the first of them
        geoproximity   30                                                        the first of them

    Args:
        policy: that of the wanted sets.
        owners: of all claims at the name.
        agreed: all of them change to this policy in one batch.
    """
    others = {each: owners[each] for each in sorted(owners) if owners[each] != key}  # claims of other keys
    if name in others:
        return name
    seated = {owner for each, owner in others.items() if each.seat}
    sets = [each for each in others if each.identifier]
    # Return the first claim that excludes the wanted policy.
    for each, owner in () if agreed else others.items():
        # Empty: the claim alone does not say it.
        of_policy = each.seat.split(" ")[0] if each.seat else "simple" if not each.identifier else ""
        weighted = not of_policy and owner not in seated
        if policy == Simple.kind and each.identifier:
            return each
        if policy != Simple.kind and (of_policy not in ("", policy) or (weighted and policy != Weighted.kind)):
            return each
    most = POLICIES[policy].most
    return sets[0] if most and len(sets) >= most else name


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which of the wanted names a key has, which it gains, and which it waits for.

    ``intended``: the sets at names that it has or gains, and those that it keeps while it waits. ``waits``: claims of others (``waits_for``).
    """

    intended: Mapping[RecordKey, RecordSet]
    gained: frozenset[Name]
    waits: frozenset[Name]
    problems: tuple[Problem, ...]


def assign_names(
    state: KeyState,
    wanted: Mapping[RecordKey, RecordSet],
    owners: Mapping[Name, ObjectKey | None],
    needed: Mapping[Name, Name] = MappingProxyType({}),
    published: Mapping[tuple[str, str], Mapping[RecordKey, RecordSet]] = MappingProxyType({}),
    others: Mapping[Name, Mapping[RecordKey, ObjectKey]] = MappingProxyType({}),
) -> Assignment:
    """Decide which wanted record sets a key may intend, and for which claims it waits (see the table above). Called whenever a key is planned.

    A *name* below is a claim (``Name``): of a name, with its set identifier, or of a seat at it.

    Args:
        state: the key. It owns the names in ``state.claims``.
        owners: by wanted name that is not in ``state.claims``, the owner of the claim that the key needs for it; None or missing: nobody.
        needed: by wanted name, the claim that the key needs for it (``waits_for``), only where that is not the name itself.
        published: by zone id and name, what other owners publish there. Who waits for the same has nothing to report.
        others: names that the key shares with others of its namespace, or may share, each with their sets and whose these are.
    """
    gained: set[Name] = set()
    waits: dict[Name, Name] = {}  # wanted names, each with the claim that the key waits for
    barred: dict[RecordKey, ObjectKey] = {}  # wanted sets at shared names, each with the key whose set keeps it out
    problems: list[Problem] = []
    # 1. Each name by itself, as in the table. A name in conflict is left out: it stays in conflict.
    policies, at = policies_of(wanted), _by_place(wanted)
    for name in sorted(policies.keys() - state.conflicts.keys()):
        # The claim that the key needs, and its owner; ``here``: the wanted sets at the place, of all identifiers and types.
        claim, owner, here = needed.get(name, name), owners.get(name), at[name.place]
        sets = [key for key in here if Name.of(key) == name]  # the wanted sets of this name; none for a seat
        barred_here = {key: who for key in sets for each, who in others.get(name, {}).items() if clash(key, each)}
        has_room = name in others and len(barred_here) < len(sets)  # a shared name, and a place for one of the sets
        if name in state.claims and claim == name and (has_room or name not in state.shared):
            barred |= barred_here  # it has the name
        elif owner is None or owner == state.key or has_room:
            gained.add(name)
            barred |= barred_here
        else:
            waits[name] = claim
            sets_there = published.get(name.place, {})
            # Where a seat waits for another policy, or is nothing but its set's identifier, the problem of the name itself says all.
            of_the_name = {f"{policies[name]} {key.identifier}" for key in here}
            reported = name.seat and (claim != name or name.seat in of_the_name)
            if not reported and not _answers_alike(wanted, here, sets_there):
                theirs = [each.routing.kind for key, each in sets_there.items() if claim in names_of({key: each})]
                why = _why_taken(name, claim, policies[name], owner, next(iter(theirs), ""))
                problems.append(Problem("NameTaken", name.label, why))
    # 2. A name is blocked as a whole, with all its claims, if one of them is waited for.
    blocked = {name.place for name in waits}
    barred = {key: barred[key] for key in sorted(barred) if key.place not in blocked}
    intended = {k: each for k, each in wanted.items() if k.place not in blocked and k not in barred}
    # 3. Sets that are barred at shared names are reported.
    for name in sorted({Name.of(key) for key in barred}):
        missing = {key: who for key, who in barred.items() if Name.of(key) == name}
        if not _answers_alike(wanted, missing, published.get(name.place, {})):
            why = ", ".join(f"{who} has what keeps out its {key.type} set" for key, who in missing.items())
            problems.append(Problem("NameTaken", name.label, why))
        # It keeps what it has until there is room for what it wants instead.
        own = {k: each for k, each in state.intended.items() if Name.of(k) == name and k not in wanted}
        intended |= {k: each for k, each in own.items() if any(clash(k, other) for other in missing)}
    # 4. What it keeps at blocked names.
    intended |= _kept_while_waiting(state, waits)
    free = frozenset(name for name in gained if name.place not in blocked)
    return Assignment(intended, free, frozenset(waits.values()), tuple(problems))


def _kept_while_waiting(state: KeyState, waits: Mapping[Name, Name]) -> dict[RecordKey, RecordSet]:
    """The sets that a key keeps where it waits for a seat, or for a claim that excludes the one that it wants (``waits_for``).

    It keeps what it has there until it can have what it wants, instead of having nothing meanwhile. ``waits``: by wanted claim, the claim
    that the key waits for.
    """
    places = {name.place for name, claim in waits.items() if name.seat or claim != name}
    if not places:
        return {}
    own = {key: each for key, each in kept_sets(state).items() if key.place in places}
    # It does not keep a set whose claim it has given away: that happens where two keys exchange their seats.
    return {key: each for key, each in own.items() if names_of({key: each}) <= state.claims}


def _answers_alike(
    wanted: Mapping[RecordKey, RecordSet], keys: Iterable[RecordKey], found: Mapping[RecordKey, RecordSet]
) -> bool:
    """Whether resolvers get from the sets that were found what they would get from these wanted ones: then nothing is wrong for a person."""
    return all(_same(wanted[key], found.get(key)) for key in keys)


def _by_place(keys: Iterable[RecordKey]) -> dict[tuple[str, str], list[RecordKey]]:
    """Record sets by zone id and name."""
    at: dict[tuple[str, str], list[RecordKey]] = {}
    for key in keys:
        at.setdefault(key.place, []).append(key)
    return at


def published_sets(state: KeyState) -> Mapping[RecordKey, RecordSet]:
    """What a key publishes, or will in a moment: what it intends, without new sets at names in conflict, where a foreign set keeps them out.

    A set that is applied stands in the zone, so it counts also at such a name.
    """
    if not state.conflicts:
        return state.intended
    return {k: s for k, s in state.intended.items() if k in state.applied or Name.of(k) not in state.conflicts}


def differs(
    wanted: Mapping[RecordKey, RecordSet], before: Mapping[RecordKey, RecordSet], after: Mapping[RecordKey, RecordSet]
) -> bool:
    """Whether a key that wants these sets is affected if another key published ``before``, and now publishes ``after``."""
    return any(_same(each, before.get(key)) != _same(each, after.get(key)) for key, each in wanted.items())


def _same(wanted: RecordSet, found: RecordSet | None) -> bool:
    """Whether both sets give the same answers, whatever the TTL."""
    return found is not None and replace(found, ttl=wanted.ttl) == wanted


# A name that another key has, and what the key may do besides waiting.
#
# | wants                   | the other key has                   | what helps                                                  |
# | ----------------------- | ----------------------------------- | ----------------------------------------------------------- |
# | a seat                  | the same                            | another region, place or role                               |
# | a simple set            | a simple set                        | another name                                                |
# | a simple set            | a set with a policy                 | a set identifier and that policy                            |
# | a set with a policy     | a simple set                        | the other one needs a set identifier and that policy        |
# | a set with a policy     | the same identifier                 | another identifier; and that policy, if it has another one  |
# | a set with a policy     | a set with another policy           | that policy                                                 |
# | a set with a policy     | one of as many as a name may have   | -                                                           |
def _why_taken(name: Name, claim: Name, policy: str, owner: ObjectKey, its: str) -> str:
    """The text of the problem of a name that waits for a claim of another key, in the words of the table above.

    ``policy``: of the wanted sets. ``its``: of the owner's set; empty: it is not known.
    """
    taken, kind = f"the name is claimed by {owner}", its or claim.seat.split(" ")[0]
    other = f"policy {kind}" if kind else "another policy"
    if name.seat:
        return f"{owner} has it: only one set of a name has {name.seat}"
    if claim == name and not name.identifier:
        return taken
    if claim == name and kind in ("", policy):
        return f"{taken}, with the same set identifier: to share it, give this one another identifier"
    if claim == name:
        return f"{taken}, with the same set identifier and {other}: to share it, give this one another identifier and that policy"
    if (most := POLICIES[policy].most) and claim.identifier and its == policy:
        return f"{taken} and others: at most {most} {policy} sets share a name"
    if policy == Simple.kind:
        return f"{taken}, with {other}: to share it, give this one a set identifier and that policy"
    if not (claim.identifier or claim.seat):
        return f"{taken}, without a policy: to share it, give that one a set identifier and policy {policy}"
    return f"{taken}, with {other}: to share it, both need the same policy"


@dataclass(frozen=True, slots=True)
class Intent:
    """What a key wants in one zone.

    Args:
        changes: from what is applied to what is intended there, as far as the policy allows.
        conflicts: names in the zone where a foreign set stands: the key waits for a conflict check there.
        attempts: how often the key was refused, in whatever zone. ``retry_at`` (epoch seconds): when it may be tried again.
        checked_hourly: see ``KeyState``.
        needs: the resources that its record sets depend on: it cannot be planned before they are listed.
        passes: names where changes of other keys belong into the same batch (``zone.passing``).
        turning: claims of other keys that have to turn to the same policy, or to go, in that batch.
    """

    key: ObjectKey
    changes: tuple[RecordChange, ...] = ()
    conflicts: frozenset[str] = frozenset()
    attempts: int = 0
    retry_at: float = 0.0
    checked_hourly: bool = False
    needs: frozenset[Resource] = frozenset()
    passes: frozenset[str] = frozenset()
    turning: frozenset[Name] = frozenset()


def intent_of(state: KeyState, zone_id: str, policy: Policy, needs: frozenset[Resource] = frozenset()) -> Intent:
    """What a key wants in a zone now, for the message to the zone. Without changes it wants nothing there. ``needs``: as in ``Intent``."""
    mark = state.opened
    changes = tuple(change for change in changes_of(state, policy) if change.key.zone_id == zone_id)
    return Intent(
        state.key,
        changes=changes,
        conflicts=frozenset(name.name for name in state.conflicts if name.zone_id == zone_id),
        attempts=0 if mark is None else mark.attempts,
        retry_at=0.0 if mark is None else mark.retry_at,
        checked_hourly=state.checked_hourly,
        needs=needs,
        passes=frozenset(_passing(changes, state)),
        turning=frozenset(name for name in turning(state) if name.zone_id == zone_id) if changes else frozenset(),
    )


def _passing(changes: Sequence[RecordChange], state: KeyState) -> set[str]:
    """Names where a change of another key may have to go in the same batch as these changes.

    1. A set of this key goes, and makes room for one of another key. The other key was given its claim already (``claims_to_leave``), or
       shares the name (``KeyState.passing``).
    2. A set changes its form: the sets of other keys at the name have to change theirs in the same batch.
    """
    making_room = (
        each.key for each in changes if each.before is not None
        if each.key in state.passing or not names_of({each.key: each.before}) <= state.claims
    )  # fmt: skip
    return {key.name for key in making_room} | {claim.name for claim in turned_by(changes)}


def claims_to_leave(state: KeyState, policy: Policy) -> frozenset[Name]:
    """Claims that a key has only because the sets that need them are still in the zone, and will be deleted by its next batch.

    They are given to the first key that waits, if one does, when this key is planned: then one batch can delete the old set and create the
    new one. A set that the policy does not allow to delete stays, and so does its claim.
    """
    names = (names_of(state.applied) - names_of(state.intended)) & state.claims
    stands = dict(state.applied) if names else {}  # from here on: what will stand after the next batch
    for change in changes_of(state, policy) if names else ():
        if change.after is None:
            stands.pop(change.key, None)
        else:
            stands[change.key] = change.after
    return names - names_of(stands)


def changes_of(state: KeyState, policy: Policy) -> tuple[RecordChange, ...]:
    """The changes that turn ``applied`` into ``intended``, as far as the policy allows, in a stable order."""
    changes: list[RecordChange] = []
    for key in sorted(state.intended.keys() | state.applied.keys()):
        before, after = state.applied.get(key), state.intended.get(key)
        if before == after:
            continue
        change = RecordChange(key, before, after)
        if _allows(policy, change, state):
            changes.append(change)
    return tuple(changes)


def surplus(state: KeyState, wanted: Mapping[RecordKey, RecordSet]) -> dict[RecordKey, RecordSet]:
    """Record sets of a key that would be deleted if it wanted only these: they are not wanted, and no wanted set replaces them.

    A resync, and new rules, ask for them before they take anything away: too many deletions are held back (I5). At a name in conflict,
    nothing of ours is deleted: a foreign set stands there.
    """
    conflicts, gone = state.conflicts, {key: each for key, each in remaining_sets(state).items() if key not in wanted}
    wanted_at = _by_place(wanted if gone else ())
    replaced = {key for key in gone if any(_in_the_way(key, other) for other in wanted_at.get(key.place, ()))}
    return {key: each for key, each in gone.items() if key not in replaced and Name.of(key) not in conflicts}


def remaining_sets(state: KeyState) -> dict[RecordKey, RecordSet]:
    """Record sets of a key that stand and are to stay, or are to come. Of an open key, what is not intended goes already."""
    return dict(state.intended) if state.opened else {**state.applied, **state.intended}


def _allows(policy: Policy, change: RecordChange, state: KeyState) -> bool:
    """upsert-only deletes only sets that exclude an intended one. create-only adds only where no set of ours is in the way."""
    match policy:
        case Policy.SYNC:
            return True
        case Policy.UPSERT_ONLY:
            return change.after is not None or any(_in_the_way(change.key, wanted) for wanted in state.intended)
        case Policy.CREATE_ONLY:
            return change.before is None and not any(_in_the_way(ours, change.key) for ours in state.applied)


def _in_the_way(current: RecordKey, comes: RecordKey) -> bool:
    """Whether a set of ours excludes another one at its name."""
    same_name = current.place == comes.place
    return same_name and current != comes and exclude_each_other(current, comes)
