"""How many names the Services of each namespace hold that they asked for: one item for each namespace (ADR 0021).

    a key's claims change ── its transaction adds the difference to the item
    a complete list       ── every key is read anyway: ``begin``, ``tally`` each, compare with the items, ``done``

A name counts if the key holds a claim of it and it is not at or below the key's own name. So the number follows from the claims.
Between two buckets of a list the cluster's actor serves its mailbox: keys that were tallied may change. ``remember`` notes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.desired import Desired, bounded
from kubesync.domain.dns.permissions import NameRules, counts, too_many
from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import Policy
from kubesync.domain.state import KeyState, Name, names_of


class NameCounts:
    """Of one cluster. Without rules nothing counts, and nothing is read or written."""

    def __init__(self, table: StateTable) -> None:
        self._table = table
        self.configure("", None)

    def configure(self, cluster: str, rules: NameRules | None) -> None:
        """Go by these rules from now on. What was counted by others is corrected by the list that follows."""
        self._cluster = cluster
        self.rules = rules
        self._known: dict[str, int] = {}
        self._tallied: dict[ServiceKey, int] | None = None

    def held(self, state: KeyState) -> AbstractSet[str]:
        """Names that count and that the key holds."""
        if self.rules is None or not state.claims:
            return frozenset()
        own = self.rules.own_name(state.key)
        return {name.name for name in state.claims if counts(name.name, own)}

    def of(self, namespace: str) -> int:
        """How many names a namespace holds. Read once."""
        if namespace not in self._known:
            self._known[namespace] = self._table.names_held(self._cluster, namespace)
        return self._known[namespace]

    def forget(self) -> None:
        """Read the items anew next time."""
        self._known.clear()

    def added(self, changes: Mapping[str, int]) -> list[Action]:
        """What adds to the items, in the transaction of the claims. Their numbers are not known until ``written``."""
        changed = {namespace: change for namespace, change in changes.items() if change}
        return [self._table.add_names_held(self._cluster, namespace, change) for namespace, change in changed.items()]

    def written(self, changes: Mapping[str, int], states: Iterable[KeyState]) -> None:
        """A transaction is through."""
        for namespace, change in changes.items():
            if namespace in self._known:
                self._known[namespace] += change
        if self._tallied is not None:
            self._tallied |= {state.key: len(self.held(state)) for state in states if state.key in self._tallied}

    # --- complete lists ---

    def begin(self) -> None:
        """Every key is about to be read."""
        self._tallied = None if self.rules is None else {}

    def tally(self, state: KeyState) -> None:
        """A key as it is stored now."""
        if self._tallied is not None:
            self._tallied[state.key] = len(self.held(state))

    def corrections(self) -> list[Action]:
        """What makes the items right, once every key is tallied; each is conditional on what was just read."""
        if self._tallied is None:
            return []
        right: Counter[str] = Counter()
        for key, held in self._tallied.items():
            right[key.namespace] += held
        stored = self._table.all_names_held(self._cluster)
        self._known = {namespace: right[namespace] for namespace in right.keys() | stored.keys()}
        return [
            self._table.correct_names_held(self._cluster, namespace, stored.get(namespace), right[namespace])
            for namespace in sorted(right.keys() | stored.keys())
            if stored.get(namespace, 0) != right[namespace] or (namespace in stored and not right[namespace])
        ]

    def done(self) -> None:
        """The items are right."""
        self._tallied = None


class NamespaceLimit:
    """Which names keys may still gain, within one plan: what is planned first counts for the keys after it.

    the name is            a place in the namespace's limit
    -----------            --------------------------------
    held                   taken already: it stays, also beyond the limit
    free, or given to it   needed
    another key's          needed to stand in line; not asked again as long as the key waits
    in conflict            not needed before the foreign record set is gone

    Names that the key itself lets go make room at once, where the policy lets their record sets be deleted.
    """

    def __init__(self, counted: NameCounts, policy: Policy) -> None:
        self._counted = counted
        self._policy = policy
        self._planned: Counter[str] = Counter()

    def within(self, seen: KeyState, want: Desired, owners: Mapping[Name, ServiceKey | None]) -> Desired:
        """What the key wants, less the names beyond the limit, which are reported."""
        rules, namespace = self._counted.rules, seen.key.namespace
        if rules is None or want.records is None or not want.counted:
            return want
        held = self._counted.held(seen)
        missing = names_of(want.records) - seen.claims - seen.conflicts.keys()
        fresh = {
            name.name
            for name in missing
            if name.name not in held and (owners.get(name) in (None, seen.key) or name not in seen.waits)
        }
        asked = [name for name in want.counted if name in fresh]
        if not asked:
            return want  # so the item is read only where names are gained (I7)
        leaving = held - set(want.counted) if self._policy is Policy.SYNC else ()
        room = rules.per_namespace - self._counted.of(namespace) - self._planned[namespace] + len(leaving)
        if not (refused := frozenset(asked[max(0, room) :])):
            return want
        why = f"the Services of namespace {namespace} hold {rules.per_namespace} names"
        problems = bounded(too_many(name, why, "namespace") for name in refused)
        records = {key: record_set for key, record_set in want.records.items() if key.name not in refused}
        return replace(want, records=records, problems=(*want.problems, *problems))

    def planned(self, before: KeyState, after: KeyState) -> None:
        """A key is planned."""
        if self._counted.rules is not None:
            change = len(self._counted.held(after)) - len(self._counted.held(before))
            self._planned[before.key.namespace] += change
