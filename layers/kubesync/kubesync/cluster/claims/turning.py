"""A name changes the form of its sets in one batch, also where several clusters have sets there (ADR 0072).

Route 53 lets sets of one form (``form_of``) stand at a name, and no others. So a key that has a set there, and wants another form, records
that it does, and waits in the lines of all who have not turned yet: the zone sends its change together with theirs (``KeyState``,
``zone.passing``). If one of these lets its claim go, the key is given it, and is planned again. Who comes to a name where sets have another
form waits for the claim of the first of them: claims show the policies (``waits_for``), the sets of their owners show whether one is a CNAME
(``types_in_the_way``).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kubesync.aws.dynamodb.store import Action
from kubesync.cluster.claims.claim_book import ClaimBook
from kubesync.domain.dns.desired import Desired, DnsRules
from kubesync.domain.dns.publishing import OF_ENDPOINTS, OF_PORTS, OF_TEMPLATE
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet, exclude_each_other
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Assignment, waits_for
from kubesync.domain.state import Form, KeyState, Name, form_of, policies_of, turned, turning

_CNAMES_ONLY: Final = (
    "a CNAME shares a name with CNAMEs only; --load-balancer-alias publishes load balancers as aliases"
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A name at which a key changes the form of its sets, and others have sets. ``place``: its zone id and the name. ``wants``: what all have to
    want, in words. ``waits``: claims whose sets have to change their form, or to go, in the same batch. ``others``: owners of such claims that
    want another form, as far as this session knows."""

    place: tuple[str, str]
    wants: str
    waits: frozenset[Name] = frozenset()
    others: tuple[ObjectKey, ...] = ()


def turns_of(book: ClaimBook, seen: KeyState, wanted: Mapping[RecordKey, RecordSet]) -> list[Turn]:
    """Names at which a key gives its sets another form, and others have sets. All claims of these names were read before.

    a name is left out if                                                                        instead
    ---------------------                                                                        -------
    nobody else has a claim there                                                                the key turns alone
    all others are of the key's cluster, the policy changes, and the key has not begun to turn   they agree first (``plan_together``)
    something else is in the key's way, such as a region that another key has                    the key waits for that, with what it has
    an owner is of a cluster that this master does not write for                                 the same
    """
    policies, found = policies_of(wanted), list[Turn]()
    begun = {name.place for name in turning(seen)}
    forms = {name.place: form for name, form in turned(seen.applied, wanted).items()}
    for place, form in sorted(forms.items()):
        owners = {each: owner for each, owner in book.owners_at(Name(*place)).items() if owner != seen.key}
        names = {name: policy for name, policy in policies.items() if name.place == place}
        # The policy stays: sets become CNAMEs, or are CNAMEs no more.
        only_type = {each.routing.kind for key, each in seen.applied.items() if key.place == place} == {*names.values()}
        clusters = {owner.cluster for owner in owners.values()}
        if not owners:
            continue
        if not (place in begun or only_type or clusters != {seen.key.cluster}):
            continue
        if not clusters <= book.writable_clusters:
            continue
        # With the form agreed, a claim that waits for another one has something else in its way.
        if any(waits_for(each, policy, seen.key, owners, agreed=True) != each for each, policy in names.items()):
            continue
        waits, others = _not_turned_yet(book, owners, form)
        policy = names[min(names)]  # all names of a place have one
        wants = f"{policy} too: all sets of a name have one policy"
        if only_type:
            wants = f"{'a CNAME' if form.cname else 'no CNAME'} too: {_CNAMES_ONLY}"
        found.append(Turn(place, wants, waits, others))
    return found


def _not_turned_yet(
    book: ClaimBook, owners: Mapping[Name, ObjectKey], form: Form
) -> tuple[frozenset[Name], tuple[ObjectKey, ...]]:
    """Find out whom a key has to wait for before its sets can take this form, of the other owners of claims at the name.

    Returns the claims whose sets are not wanted in this form yet, or still have another one in Route 53; and the owners who do not want it yet.
    """
    waits, others = set[Name](), set[ObjectKey]()
    for each, owner in owners.items():
        if not each.identifier:
            continue  # only sets with identifiers turn. Who has a seat also has a claim with an identifier
        state = book.known(owner)
        if _forms(state.intended, each) != {form}:
            others.add(owner)
            waits.add(each)
        elif not _forms(state.applied, each) <= {form}:
            waits.add(each)
    return frozenset(waits), tuple(sorted(others))


def types_in_the_way(
    book: ClaimBook,
    seen: KeyState,
    wanted: Iterable[RecordKey],
    needed: Mapping[Name, Name],
    turns: Iterable[Turn],
) -> dict[Name, Name]:
    """Find wanted claims that the key could have by its routing policy, but at whose names a CNAME would meet another type.

    Claims do not say types, so this looks at the sets of the other owners there. The planner adds the result to ``needed``: the key waits.
    Not where the key turns (``turns``), nor where all owners turn in this commit to the form that it wants (``ClaimBook.agreed_form``): there the
    sets change in one batch.

    Args:
        wanted: the sets that the key wants.
        needed: by contested claim, the claim that the key must own to have it (``ClaimBook.needed_claim``). If these two differ, the key waits
            already, and the claim is not looked at.

    Returns:
        By wanted claim, the claim to wait for instead: the first of another key that has a set, intended or applied, which excludes a wanted one.
    """
    found, at = dict[Name, Name](), defaultdict[tuple[str, str], list[RecordKey]](list)
    for key in wanted if needed else ():
        at[key.place].append(key)
    turning_here = {turn.place for turn in turns}
    for name in (name for name, claim in needed.items() if claim == name and name.place not in turning_here):
        agreed = book.agreed_form(name)
        if agreed is not None and all((key.type == "CNAME") == agreed.cname for key in at[name.place]):
            continue
        owners = {each: owner for each, owner in book.owners_at(name).items() if each.identifier and owner != seen.key}
        for each in sorted(owners):
            of_owner = book.known(owners[each])
            theirs = [key for key in (*of_owner.intended, *of_owner.applied) if Name.of(key) == each]
            if any(exclude_each_other(one, other) for one in theirs for other in at[name.place]):
                found.setdefault(name, each)
    return found


def with_turns(assignment: Assignment, turns: list[Turn], of_types: Mapping[str, ObjectKey | None]) -> Assignment:
    """The assignment of a key, with what ``assign_names`` does not know of: sets of other types, and names at which the key turns.

    Where a set of another type keeps the key out, the problem says so. Where the key turns, it waits also for the claims that have to turn in
    the same batch, and reports whose they are.

    Args:
        of_types: by the label of a name, the key that has a set of another type there (``types_in_the_way``).
    """
    waits, problems = assignment.waits, list(assignment.problems)
    for at, problem in enumerate(problems):
        if owner := of_types.get(problem.subject):
            problems[at] = replace(problem, message=f"{owner} has the name, with a set of another type: {_CNAMES_ONLY}")
    for turn in turns:
        waits |= turn.waits
        if turn.others:
            others = f"{', '.join(map(str, turn.others))} {'want' if turn.others[1:] else 'wants'} {turn.wants}"
            problems.append(Problem("NameTaken", Name(*turn.place).label, f"it waits until {others}"))
    return replace(assignment, waits=waits, problems=tuple(problems))


def plan_together(book: ClaimBook, before: KeyState, seen: KeyState, needed: Mapping[Name, Name]) -> list[Action]:
    """Have all keys with claims at a name planned in one commit, if they may agree on another form there (``ClaimBook.agreed_form``).

    Planned one by one, each would wait for the others for ever. The planner calls this for each key. It does so for a name if all of this holds:

    - another claim keeps the key out, and the key has changed or begins to wait now;
    - this commit does not plan all of the keys already;
    - the key has a claim there, and all others are of its cluster: their changes can be recorded in one commit;
    - all others wait for something there: this key is the last that has to agree.

    Returns the marks of these keys.
    """
    # Names at which another claim keeps the key out. If the key has not changed: only those for which it does not wait yet.
    names = sorted(name for name, claim in needed.items() if claim != name)
    if names and before.parts == seen.parts:
        names = [name for name in names if needed[name] not in seen.waits]
    marks: list[Action] = []
    for name in {name.place: name for name in names}.values():
        owners = {*book.owners_at(name).values()}
        others = sorted(owners - {seen.key})
        apart = not book.wants.keys() >= {*others}  # this commit does not plan all of them already
        here = seen.key in owners and all(each.cluster == seen.key.cluster for each in others)
        if here and apart and all(any(w.place == name.place for w in book.known(each).waits) for each in others):
            marks += [book.plan_next(each, name) for each in (seen.key, *others)]
    return marks


def _forms(sets: Mapping[RecordKey, RecordSet], name: Name) -> set[Form]:
    """The forms of the sets of a claim; none: it has no set there, as one that was just given the name."""
    return {form_of(key, each) for key, each in sets.items() if Name.of(key) == name}


def contested_claims(seen: KeyState, want: Desired, rules: DnsRules) -> dict[Name, str]:
    """Wanted claims for which the key may have to wait for a claim of another key (``ClaimBook.needed_claim``), each with its policy.

    wanted claim                                                       contested
    ------------                                                       ---------
    in conflict: a foreign set exists                                  no
    at a name where seats change, or sets change their form            yes
    at a name where the key waits for a claim that excludes its set    yes
    at a name where a batch met sets of another policy (NameTaken)     yes
    the key has the claim                                              no
    cluster without rules for names, and without routing policies      no: other keys exclude nothing there
    cluster with routing policies                                      yes
    a simple set, at a name where the key has sets with identifiers    yes
    of ports or endpoints, or of a template with the namespace         no: no other namespace can want the name
    else                                                               yes
    """
    policies = policies_of(want.records or {})
    # 1. Names where even a claim that the key has may be contested: rows 2 to 4. ``places``: by zone id and name. ``changed``: the claims there.
    places = {name.place for name in seen.claims ^ policies.keys() if name.seat}  # a seat comes or goes
    places |= {name.place for name in turned(seen.applied, want.records or {})}
    asked = policies.keys() - seen.conflicts.keys()
    # The key waits for a claim that it does not want for itself: so this claim excludes its set.
    places |= {name.place for name in seen.waits - policies.keys()}
    if seen.opened is not None and seen.opened.code == "NameTaken":
        places |= {name.place for name in asked - seen.claims}
    changed = {name for name in asked if name.place in places}
    # 2. Claims that the key does not have.
    missing = asked - seen.claims - changed
    if not missing or (rules.names is None and not rules.routing):
        return {name: policies[name] for name in changed}
    # Names with these rules are of one namespace (``derived``). At the ``shared`` places the key has sets with identifiers.
    derived = (OF_ENDPOINTS, OF_PORTS) + ((OF_TEMPLATE,) if "{namespace}" in rules.template else ())
    shared = {name.place for name in seen.claims if name.identifier}
    missing = {
        name
        for name in missing
        if rules.routing
        or (not name.identifier and name.place in shared)
        or any(not origin.rule.startswith(derived) for origin in want.origins.get(name.name, ()))
    }
    return {name: policies[name] for name in missing | changed}
