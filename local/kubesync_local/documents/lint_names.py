"""Names that the objects of manifests take from one another: the oldest gets a name, as in a session."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Simple, Weighted
from kubesync.domain.objects import ObjectKey, neighbours
from kubesync.domain.plan import Assignment, assign_names
from kubesync.domain.state import KeyState, Name, names_of, policies_of

_MAY_SHARE = ({Simple.kind}, {Weighted.kind})


@dataclass(slots=True)
class NamesTaken:
    """What the objects so far have got.

    ``unknown``: values in place of addresses that are not in a manifest. Nobody knows whether two of them are the same.
    ``_owners``: by claim. ``_sets``: by zone id and name, the sets there, each with its object.
    """

    unknown: Collection[str]
    _owners: dict[Name, ObjectKey] = field(default_factory=dict)
    _sets: dict[tuple[str, str], dict[RecordKey, tuple[RecordSet, ObjectKey]]] = field(default_factory=dict)

    def assign(
        self, key: ObjectKey, records: Mapping[RecordKey, RecordSet], registered: Mapping[Name, ObjectKey]
    ) -> Assignment:
        """What the next object gets of the record sets that it wants. ``registered``: who owns the names now, as tables say."""
        policies = policies_of(records)
        needed = {name: claim for name, policy in policies.items() if (claim := self._excluding(name, policy))}
        owners: dict[Name, ObjectKey | None] = {**registered}
        owners |= {name: self._owners[claim] for name in policies if (claim := needed.get(name, name)) in self._owners}
        others = {name: sets for name, policy in policies.items() if (sets := self._sharers(key, name, policy))}
        there = {
            name.place: {k: each for k, (each, _) in self._at(name).items() if self._is_known(each)}
            for name in policies
        }
        assigned = assign_names(KeyState(key), records, owners, needed, there, others)
        for name in names_of(assigned.intended):
            self._owners.setdefault(name, key)
        for record, record_set in assigned.intended.items():
            self._sets.setdefault(record.place, {})[record] = record_set, key
        return assigned

    def owners_at(self, keys: Iterable[RecordKey]) -> list[ObjectKey]:
        """Whose sets are at the places of these."""
        return sorted({owner for key in keys for _, owner in self._sets.get(key.place, {}).values()})

    def _is_known(self, record_set: RecordSet) -> bool:
        return not any(value in self.unknown for value in record_set.values)

    def _at(self, name: Name) -> Mapping[RecordKey, tuple[RecordSet, ObjectKey]]:
        return self._sets.get(name.place, {})

    def _excluding(self, name: Name, policy: str) -> Name | None:
        """The claim of a set with another policy: sets of two policies cannot be at one name. None: there is none."""
        return next((Name.of(k) for k, (each, _) in self._at(name).items() if each.routing.kind != policy), None)

    def _sharers(self, key: ObjectKey, name: Name, policy: str) -> dict[RecordKey, ObjectKey]:
        """The sets of the claim, if the object may have other types beside them (docs/adr/0062)."""
        here = {k: (each, owner) for k, (each, owner) in self._at(name).items() if Name.of(k) == name}
        kinds = {policy, *(each.routing.kind for each, _ in here.values())}
        if kinds not in _MAY_SHARE or not all(neighbours(owner, key) for _, owner in here.values()):
            return {}
        return {k: owner for k, (_, owner) in here.items()}
