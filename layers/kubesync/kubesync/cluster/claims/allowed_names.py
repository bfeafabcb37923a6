"""Decides which of its wanted names a key may ask for. Only then ``assign_names`` decides which of these names the key gets.

- ``keep_to_held_names``: after an annotation that kubesync refuses, or with a policy that is not possible, a key keeps only names that it
  holds (ADR 0022).
- ``NamespaceLimit``: a namespace may have a number of names (ADR 0021), of places in queues and of record sets (ADR 0070).
- ``names_asked``: the names for which the order of keys matters (``Turns``).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Set as AbstractSet
from dataclasses import replace

from kubesync.aws.tables.name_counts import NAMES, SETS, WAITS, CountKey, NameCounts
from kubesync.domain.dns.desired import Desired, DnsRules, bounded
from kubesync.domain.dns.permissions import OF_NAMESPACE, too_many
from kubesync.domain.dns.publishing import OF_ENDPOINTS, OF_PORTS, OF_TEMPLATE, why_not_possible
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet, clash
from kubesync.domain.dns.routing.policies import DEFAULT_WEIGHT, NOT_POSSIBLE, SIMPLE, Routing, Weighted
from kubesync.domain.objects import EMPTY_SET, ObjectKey, neighbours
from kubesync.domain.plan import Assignment, Policy
from kubesync.domain.sources.registry import KINDS
from kubesync.domain.state import KeyState, Name, names_of


def keep_to_held_names(want: Desired, state: KeyState) -> Desired:
    """What a key may publish where an annotation keeps it to the names that it holds (``Desired.only_held``).

    A name is held in a zone where the key owns its claim, or a set of the key stands there.

        wanted name                                     published
        -----------                                     ---------
        held                                            the wanted set
        held, with another set identifier               the wanted set, with the identifier that is held
        held, and its routing policy is not possible    the wanted set, with the policy that is held (``_with_held_policy``)
        not held; of ports or endpoints of the          the wanted set, with the identifier of the Service's own name:
          Service's own name, which is held               else the name of a pod would go when the pod is created again
        not held                                        nothing, and the key does not wait for the name
    """
    refused = {key for key, record_set in (want.records or {}).items() if record_set.routing == NOT_POSSIBLE}
    if want.records is None or not (want.only_held or refused):
        return want
    names = state.claims | names_of(state.applied)
    held: dict[tuple[str, str], set[str]] = {}  # by zone id and name: the set identifiers with which the name is held
    for name in names:
        held.setdefault(name.place, set()).add(name.identifier)
    # By wanted name: the rules that want it (``domain.dns.publishing``).
    rules = {name: [origin.rule for origin in origins] for name, origins in want.origins.items()}
    own_names = {name for name, of_name in rules.items() if any(rule.startswith(OF_TEMPLATE) for rule in of_name)}
    own_identifiers = {name.identifier for name in names if name.name in own_names}
    records: dict[RecordKey, RecordSet] = {}
    for wanted, record_set in want.records.items():
        if not (want.only_held or wanted in refused):
            records[wanted] = record_set
            continue
        derived = all(rule in (OF_ENDPOINTS, OF_PORTS) for rule in rules.get(wanted.name, [""]))
        identifiers = held.get(wanted.place, own_identifiers if derived else set())
        if not identifiers:
            continue  # not held
        key = wanted if wanted.identifier in identifiers else replace(wanted, identifier=min(identifiers))
        if wanted in refused:
            if (stays := _with_held_policy(key, record_set, state)) is not None:
                records[key] = stays
        elif key == wanted:
            records[key] = record_set
        else:
            records[key] = replace(record_set, routing=_held_routing(state, key.identifier))
    return replace(want, records=records)


def _with_held_policy(key: RecordKey, wanted: RecordSet, state: KeyState) -> RecordSet | None:
    """The wanted set with the policy that the key holds. If that policy is not possible either: the set that is held; None: none is held."""
    held = state.intended.get(key) or state.applied.get(key)
    routing = _held_routing(state, key.identifier) if held is None else held.routing
    stays = replace(wanted, routing=routing)
    return held if why_not_possible(key.type, stays, private=False) else stays


def _held_routing(state: KeyState, identifier: str) -> Routing:
    """The routing of a set identifier that the key holds: that of any set with it, because all sets of a Service have the same routing."""
    if not identifier:
        return SIMPLE
    sets = [*state.intended.items(), *state.applied.items()]
    held = (found.routing for key, found in sets if key.identifier == identifier and found.routing != SIMPLE)
    return next(held, Weighted(DEFAULT_WEIGHT))


type _HeirOf = Callable[[Name, ObjectKey], ObjectKey | None]
"""``ClaimBook.heir``."""
type _SetsOfSharers = dict[Name, dict[RecordKey, ObjectKey]]
"""``ClaimBook.sets_of_sharers``."""


class NamespaceLimit:
    """Decides which names the keys of a namespace may still gain. A key that is planned earlier takes room from the keys after it.

    The planner calls it for one key after the other: ``within``, ``sharable``, ``fitting``, ``planned``.

    the name is                      does the key need room for it in the namespace's limit?
    -----------                      -------------------------------------------------------
    held by the key                  no: the name is counted, and stays also beyond the limit
    free                             yes
    owned by a key of another        yes, also to wait for the name; not again as long as the key waits
      namespace
    owned by a neighbour             no to wait for the name: the namespace has counted the name; yes to share it
    given to the key                 yes; if a neighbour gave the name, the room is reserved until the key is planned
    in conflict                      no, before the foreign record set is gone

    A *neighbour* is another key of the namespace. Names that the key lets go make room at once, unless the policy forbids to delete their
    record sets, or they go to a neighbour.
    """

    def __init__(self, counted: NameCounts, policy: Policy, heir: _HeirOf) -> None:
        self._counted = counted
        self._policy = policy
        self._heir = heir
        # What planned keys take more, or less, than before. ``NameCounts`` counts it only once it is written.
        self._planned = Counter[CountKey]()
        self._taken: dict[ObjectKey, AbstractSet[str]] = {}  # the counted names of planned keys
        self._gains = 0  # how many names ``within`` let the key gain that is planned now

    def within(
        self, seen: KeyState, want: Desired, owners: Mapping[Name, ObjectKey | None], needed: Mapping[Name, Name]
    ) -> Desired:
        """What the key wants, without new names for which the namespace has no room. Reports these.

        ``fresh``: of the wanted names, those that the namespace does not count yet for this key (see the table above). ``owners``, ``needed``:
        see ``assign_names``.
        """
        rules, key, self._gains = self._counted.rules, seen.key, 0
        if rules is None or want.records is None or not want.counted:
            return want
        held, reserved = self._counted.counted_names(seen), self._counted.reserved(key.namespace).get(key, ())
        missing = names_of(want.records) - seen.claims - seen.conflicts.keys()
        fresh = {
            name.name
            for name in missing
            if name.name not in held  # another claim of the key counts the name already
            and name.name not in reserved  # a neighbour gave the name
            # It is free or given to the key, or another key owns it and this key does not wait for it yet.
            and ((owner := owners.get(name)) in (None, key) or needed.get(name, name) not in seen.waits)
            # That other key is no neighbour: of a neighbour, the namespace has counted the name.
            and (owner in (None, key) or not neighbours(owner, key))
        }
        asked = [name for name in want.counted if name in fresh]
        if not asked:
            return want  # before ``_room`` reads the counts (I7)
        refused = frozenset(asked[max(0, self._room(seen, want)) :])
        self._gains = len(asked) - len(refused)
        if not refused:
            return want
        why = f"the Services of namespace {key.namespace} hold {rules.max_names_per_namespace} names"
        problems = bounded(too_many(name, why, OF_NAMESPACE) for name in refused)
        records = {each: record_set for each, record_set in want.records.items() if each.name not in refused}
        return replace(want, records=records, problems=(*want.problems, *problems))

    def sharable(self, seen: KeyState, want: Desired, others: _SetsOfSharers) -> _SetsOfSharers:
        """Of the claims that the key may share with neighbours, those for which the limit of names has room. The key waits for the rest.

        A shared name takes room only if it is new to the key, counts (``Desired.counted``), and a set of the key has a type that no neighbour
        has there. Call this after ``within`` for the same key: names gained there take room first.

        Args:
            others: by claim, the sets that neighbours have there (``ClaimBook.sets_of_sharers``).
        """
        held, records = self._counted.counted_names(seen), want.records or {}
        with_a_free_type = {
            Name.of(key) for key in records if not any(clash(key, each) for each in others.get(Name.of(key), ()))
        }
        asked = {
            name.name for name in with_a_free_type & others.keys() - seen.claims if name.name in want.counted
        } - held
        if not asked:
            return others
        # Room is left after the names that ``within`` let the key gain. The last of the sorted names get none.
        without = set(sorted(asked)[max(0, self._room(seen, want) - self._gains) :])
        return {name: sets for name, sets in others.items() if name.name not in without}

    def _room(self, seen: KeyState, want: Desired) -> int:
        """How many more names the key's namespace may gain. Negative: it has more than the limit allows.

        Names that the key lets go make room (``leaving``), unless a neighbour gets them (``passes``). Names reserved for keys that are not
        planned yet take room (``kept``).
        """
        counted, namespace = self._counted, seen.key.namespace
        assert counted.rules is not None
        leaving = counted.counted_names(seen) - {*want.counted} if self._policy is Policy.SYNC else frozenset[str]()
        next_owners = ((name.name, self._heir(name, seen.key)) for name in sorted(seen.claims) if name.name in leaving)
        passes = {name for name, each in next_owners if each is not None and neighbours(each, seen.key)}
        reserved = counted.reserved(namespace).items()
        kept = sum(len(names - self._taken.get(key, frozenset())) for key, names in reserved)
        return counted.rules.max_names_per_namespace - self._count(NAMES, namespace) - kept + len(leaving - passes)

    def fitting(self, seen: KeyState, assignment: Assignment, owners: Mapping[Name, ObjectKey | None]) -> Assignment:
        """The assignment without what exceeds the limits of places in queues, and of record sets. Reports what is left out.

        Of record sets at names where the key has none, the key gets all or none: else an SRV set could lead to a name that does not exist.
        Names that were given to the key count as names that it has.
        """
        rules, namespace = self._counted.rules, seen.key.namespace
        if rules is None:
            return assignment
        problems: list[Problem] = []
        # 1. Places in queues: those that the key leaves make room.
        if joined := sorted(assignment.waits - seen.waits):
            room = rules.max_waits_per_namespace - self._count(WAITS, namespace) + len(seen.waits - assignment.waits)
            if refused := joined[max(0, room) :]:
                why = f"the objects of namespace {namespace} wait for {rules.max_waits_per_namespace} names (--max-waits{OF_NAMESPACE}"
                problems += bounded(Problem("TooManyWaits", name.label, why) for name in refused)
                assignment = replace(assignment, waits=assignment.waits - frozenset(refused))
        # 2. Record sets at names where the key has none (``fresh``). ``stays``: sets that the policy forbids to delete still count. ``more``: how
        # many sets the key would have more than now.
        held = seen.claims | names_of(seen.intended) | {name for name, owner in owners.items() if owner == seen.key}
        places = {name.place for name in held}
        fresh = {key for key in assignment.intended if key.place not in places}
        stays = seen.applied.keys() if self._policy is not Policy.SYNC else frozenset[RecordKey]()
        more = len(assignment.intended.keys() | stays) - len(seen.intended.keys() | stays) if fresh else 0
        if more > 0 and more > rules.max_record_sets_per_namespace - self._count(SETS, namespace):
            why = (
                f"the objects of namespace {namespace} have {rules.max_record_sets_per_namespace} record sets, and these {len(fresh)} do not fit "
                f"(--max-record-sets{OF_NAMESPACE}"
            )
            problems.append(Problem("TooManyRecordSets", min(key.name for key in fresh), why))
            intended = {key: each for key, each in assignment.intended.items() if key not in fresh}
            gained = frozenset(name for name in assignment.gained if name.place in places)
            assignment = replace(assignment, intended=intended, gained=gained)
        return replace(assignment, problems=(*assignment.problems, *problems))

    def _count(self, kind: str, namespace: str) -> int:
        """What the namespace has of a kind (NAMES, WAITS or SETS), with what planned keys take (``_planned``)."""
        return self._counted.used(namespace, kind) + self._planned[kind, namespace]

    def planned(self, before: KeyState, after: KeyState) -> None:
        """Count what a planned key takes, so that keys planned after it find less room."""
        counted = self._counted
        if counted.rules is not None:
            was, now = counted.usage(before), counted.usage(after)
            self._planned.update({(kind, before.key.namespace): count - was[kind] for kind, count in now.items()})
            self._taken[before.key] = counted.counted_names(after)


def namespaces_apart(rules: DnsRules) -> bool:
    """Whether namespaces can take turns (ADR 0051): no namespace can ask for names that the template gives to another one.

    So the template names the namespace, and there are rules of names, which refuse such a name to others (``NameReserved``). Otherwise the
    age of keys alone decides which key is planned first: also without a template (``none``), where all names come from annotations.
    """
    return rules.names is not None and "{namespace}" in rules.template


def names_asked(before: KeyState, seen: KeyState, rules: DnsRules) -> AbstractSet[str]:
    """Names that a key has, waits for or asks for, besides its own name: for these it matters which of several keys is planned first.

    So keys that ask for one name are planned in the order of their age, also if namespaces take turns (``Turns``).

    Args:
        before: the key as stored.
        seen: the key as it is about to be planned.
    """
    asked = KINDS[seen.key.kind].keeps(seen, rules, None).names  # None: not only of the names that it holds
    return asked.union(name.name for name in before.claims | before.waits) or EMPTY_SET
