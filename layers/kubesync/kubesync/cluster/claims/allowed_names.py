"""Which of the names that a key wants it may ask for at all, before anybody looks whose they are (``assign_names``).

- ``held_only``: an annotation that kubesync refuses, or a policy that is not possible, keeps a key to the names that it holds (ADR 0022).
- ``NamespaceLimit``: a namespace has room for a number of names (ADR 0021), of places in lines and of record sets (ADR 0070).
- ``names_asked``: the names for which the order of keys matters (``Turns``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from kubesync.aws.tables.name_counts import NAMES, SETS, WAITS, NameCounts, Taken
from kubesync.domain.dns.desired import Desired, DnsRules, bounded
from kubesync.domain.dns.permissions import OF_NAMESPACE, most_looked_at, too_many
from kubesync.domain.dns.provenance import OF_ENDPOINTS, OF_PORTS, OF_TEMPLATE
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet, clash
from kubesync.domain.dns.routing.limits import why_not_possible
from kubesync.domain.dns.routing.policies import DEFAULT_WEIGHT, NOT_POSSIBLE, SIMPLE, Routing, Weighted
from kubesync.domain.objects import EMPTY_SET, ObjectKey, neighbours
from kubesync.domain.plan import Assignment, Policy
from kubesync.domain.sources.registry import KINDS
from kubesync.domain.state import KeyState, Name, names_of


def held_only(want: Desired, state: KeyState) -> Desired:
    """What a key may publish where an annotation keeps it to the names that it holds (``Desired.only_held``).

    A name is held in a zone where the key owns its claim, or a set of the key stands there.

        wanted name                                     published
        -----------                                     ---------
        held                                            as wanted
        held, with another set identifier               as wanted, under the identifier that is held
        held, and its routing policy is not possible    as wanted, with the policy that is held
        not held; of ports or endpoints of the          as wanted, under that name's identifier: else the name
          Service's own name, which is held               of a pod would go when the pod is made again
        not held                                        not: the key does not wait for it either
    """
    refused = {key for key, record_set in (want.records or {}).items() if record_set.routing == NOT_POSSIBLE}
    if want.records is None or not (want.only_held or refused):
        return want
    names = state.claims | names_of(state.applied)
    held: dict[tuple[str, str], set[str]] = {}
    for name in names:
        held.setdefault(name.place, set()).add(name.identifier)
    rules = {name: [origin.rule for origin in origins] for name, origins in want.origins.items()}
    own = {name for name, of_name in rules.items() if any(rule.startswith(OF_TEMPLATE) for rule in of_name)}
    of_own = {name.identifier for name in names if name.name in own}
    records: dict[RecordKey, RecordSet] = {}
    for wanted, record_set in want.records.items():
        if not (want.only_held or wanted in refused):
            records[wanted] = record_set
            continue
        derived = all(rule in (OF_ENDPOINTS, OF_PORTS) for rule in rules.get(wanted.name, [""]))
        identifiers = held.get(wanted.place, of_own if derived else set())
        if not identifiers:
            continue
        key = wanted if wanted.identifier in identifiers else replace(wanted, identifier=min(identifiers))
        if wanted in refused:
            if (stays := _as_held(key, record_set, state)) is not None:
                records[key] = stays
        else:
            moved = replace(record_set, routing=_routing(state, key.identifier))
            records[key] = record_set if key == wanted else moved
    return replace(want, records=records)


def _as_held(key: RecordKey, wanted: RecordSet, state: KeyState) -> RecordSet | None:
    """The wanted set under the policy that the key holds. Where that policy is not possible for it: the set that is held, if any."""
    held = state.intended.get(key) or state.applied.get(key)
    routing = _routing(state, key.identifier) if held is None else held.routing
    stays = replace(wanted, routing=routing)
    return held if why_not_possible(key.type, stays, private=False) else stays


def _routing(state: KeyState, identifier: str) -> Routing:
    """The routing that goes with an identifier that is held: all sets of a Service have the same."""
    if not identifier:
        return SIMPLE
    sets = [*state.intended.items(), *state.applied.items()]
    held = (found.routing for key, found in sets if key.identifier == identifier and found.routing != SIMPLE)
    return next(held, Weighted(DEFAULT_WEIGHT))


type _HeirOf = Callable[[Name, ObjectKey], ObjectKey | None]
"""``ClaimBook.heir``."""
type _Others = dict[Name, dict[RecordKey, ObjectKey]]
"""``ClaimBook.others``."""


class NamespaceLimit:
    """Which names keys may still gain, within one plan: what is planned first counts for the keys after it.

    the name is            a place in the namespace's limit
    -----------            --------------------------------
    held                   taken already: it stays, also beyond the limit
    free                   needed
    another key's          needed to stand in line; not asked again as long as the key waits
    one's of the           not needed to stand in line: the namespace has counted it; needed to share it
      same namespace
    given to it            needed; kept free for it if it was given by one of the same namespace, until it is planned
    in conflict            not needed before the foreign record set is gone

    Names that the key itself lets go make room at once, where the policy lets their record sets be deleted and they do not pass on to another key
    of the namespace.
    """

    def __init__(self, counted: NameCounts, policy: Policy) -> None:
        self._counted = counted
        self._policy = policy
        self._planned = Counter[Taken]()
        self._taken: dict[ObjectKey, AbstractSet[str]] = {}
        self._gains = 0  # of the key that is planned

    def within(
        self,
        seen: KeyState,
        want: Desired,
        owners: Mapping[Name, ObjectKey | None],
        lines: Mapping[Name, Name],
        heir: _HeirOf,
    ) -> Desired:
        """What the key wants, less the names beyond the limit, which are reported. ``owners``, ``lines``: see ``assign_names``."""
        rules, key, self._gains = self._counted.rules, seen.key, 0
        if rules is None or want.records is None or not want.counted:
            return want
        held, reserved = self._counted.held(seen), self._counted.reserved(key.namespace).get(key, ())
        missing = names_of(want.records) - seen.claims - seen.conflicts.keys()
        fresh = {
            name.name
            for name in missing
            if name.name not in held
            and name.name not in reserved
            and ((owner := owners.get(name)) in (None, key) or lines.get(name, name) not in seen.waits)
            and (owner in (None, key) or not neighbours(owner, key))
        }
        asked = [name for name in want.counted if name in fresh]
        if not asked:
            return want  # so the item is read only where names are gained (I7)
        refused = frozenset(asked[max(0, self._room(seen, want, heir)) :])
        self._gains = len(asked) - len(refused)
        if not refused:
            return want
        why = f"the Services of namespace {key.namespace} hold {rules.per_namespace} names"
        problems = bounded(too_many(name, why, OF_NAMESPACE) for name in refused)
        records = {each: record_set for each, record_set in want.records.items() if each.name not in refused}
        return replace(want, records=records, problems=(*want.problems, *problems))

    def shared(self, seen: KeyState, want: Desired, others: _Others, heir: _HeirOf) -> _Others:
        """Of names that the key may share, those for which there is room. It waits for the others."""
        held, records = self._counted.held(seen), want.records or {}
        free = {Name.of(key) for key in records if not any(clash(key, each) for each in others.get(Name.of(key), ()))}
        asked = {name.name for name in free & others.keys() - seen.claims if name.name in want.counted} - held
        if not asked:
            return others
        without = set(sorted(asked)[max(0, self._room(seen, want, heir) - self._gains) :])
        return {name: sets for name, sets in others.items() if name.name not in without}

    def _room(self, seen: KeyState, want: Desired, heir: _HeirOf) -> int:
        """How many more names the key's namespace may gain, once the names that the key lets go are gone."""
        counted, namespace = self._counted, seen.key.namespace
        assert counted.rules is not None
        leaving = counted.held(seen) - {*want.counted} if self._policy is Policy.SYNC else frozenset[str]()
        next_owners = ((name.name, heir(name, seen.key)) for name in sorted(seen.claims) if name.name in leaving)
        passes = {name for name, each in next_owners if each is not None and neighbours(each, seen.key)}
        reserved = counted.reserved(namespace).items()
        kept = sum(len(names - self._taken.get(key, frozenset())) for key, names in reserved)
        return counted.rules.per_namespace - self._holds(NAMES, namespace) - kept + len(leaving - passes)

    def fitting(self, seen: KeyState, assignment: Assignment, owners: Mapping[Name, ObjectKey | None]) -> Assignment:
        """What of it there is room for: places in lines, and record sets at names where the key has none. It gets all of these sets or none: else
        an SRV set leads to a name that is not there. Whatever was given to it, it takes.
        """
        rules, namespace = self._counted.rules, seen.key.namespace
        if rules is None:
            return assignment
        problems: list[Problem] = []
        if comes := sorted(assignment.waits - seen.waits):
            room = rules.waits - self._holds(WAITS, namespace) + len(seen.waits - assignment.waits)
            if refused := comes[max(0, room) :]:
                why = f"the objects of namespace {namespace} wait for {rules.waits} names (--max-waits{OF_NAMESPACE}"
                problems += bounded(Problem("TooManyWaits", name.label, why) for name in refused)
                assignment = replace(assignment, waits=assignment.waits - frozenset(refused))
        held = seen.claims | names_of(seen.intended) | {name for name, owner in owners.items() if owner == seen.key}
        places = {name.place for name in held}
        fresh = {key for key in assignment.intended if key.place not in places}
        stays = seen.applied.keys() if self._policy is not Policy.SYNC else frozenset[RecordKey]()
        more = len(assignment.intended.keys() | stays) - len(seen.intended.keys() | stays) if fresh else 0
        if more > 0 and more > rules.sets - self._holds(SETS, namespace):
            why = (
                f"the objects of namespace {namespace} have {rules.sets} record sets, and these {len(fresh)} do not fit "
                f"(--max-record-sets{OF_NAMESPACE}"
            )
            problems.append(Problem("TooManyRecordSets", min(key.name for key in fresh), why))
            intended = {key: each for key, each in assignment.intended.items() if key not in fresh}
            gained = frozenset(name for name in assignment.gained if name.place in places)
            assignment = replace(assignment, intended=intended, gained=gained)
        return replace(assignment, problems=(*assignment.problems, *problems))

    def _holds(self, kind: str, namespace: str) -> int:
        return self._counted.of(namespace, kind) + self._planned[kind, namespace]

    def planned(self, before: KeyState, after: KeyState) -> None:
        """Count what a planned key takes, so that keys planned after it find less room."""
        counted = self._counted
        if counted.rules is not None:
            was, now = counted.taken(before), counted.taken(after)
            self._planned.update({(kind, before.key.namespace): count - was[kind] for kind, count in now.items()})
            self._taken[before.key] = counted.held(after)


def namespaces_apart(rules: DnsRules) -> bool:
    """Whether no namespace can ask for names that the template gives to another one. Else age alone decides which key comes first."""
    return rules.names is not None and "{namespace}" in rules.template


def names_asked(before: KeyState, seen: KeyState, rules: DnsRules) -> AbstractSet[str]:
    """Names, besides its own, for which it matters whether a key is planned before others: it has them, waits for them or asks for them.

    Args:
        before, seen: the key as stored, and as it is about to be planned.
    """
    asked = KINDS[seen.key.kind].keeps(seen, rules, _Anything(most_looked_at(rules.names))).names
    return asked.union(name.name for name in before.claims | before.waits) or EMPTY_SET


class _Anything(Collection[str]):
    """Holds whatever is asked, the first ``most`` times. Nobody gets more names than that (``permitted``)."""

    def __init__(self, most: int) -> None:
        self._left = most

    def __contains__(self, _name: object) -> bool:
        self._left -= 1
        return self._left >= 0

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return self._left
