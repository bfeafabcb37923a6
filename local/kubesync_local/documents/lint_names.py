"""Names that the objects of manifests take from one another: the oldest gets a name, as in a session."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kubesync.cluster.claims.turning import with_turns
from kubesync.domain.dns.records import RecordKey, RecordSet, exclude_each_other
from kubesync.domain.dns.routing.policies import Simple, Weighted
from kubesync.domain.objects import ObjectKey, neighbours
from kubesync.domain.plan import Assignment, assign_names, waits_for
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
    _claims_at: dict[tuple[str, str], set[Name]] = field(default_factory=dict)
    _sets: dict[tuple[str, str], dict[RecordKey, tuple[RecordSet, ObjectKey]]] = field(default_factory=dict)

    def stand(self, claims: Mapping[Name, tuple[ObjectKey, Mapping[RecordKey, tuple[RecordSet, ObjectKey]]]]) -> None:
        """Claims of objects that are not in the manifests, each with its owner, and the sets there."""
        for name, (owner, sets) in claims.items():
            self._own(name, owner)
            for record, each in sets.items():
                self._sets.setdefault(record.place, {})[record] = each

    def assign(self, key: ObjectKey, records: Mapping[RecordKey, RecordSet]) -> Assignment:
        """What the next object gets of the record sets that it wants."""
        policies = policies_of(records)
        needed, of_types = self._needed(key, records)
        owners: dict[Name, ObjectKey | None] = {
            name: self._owners[claim] for name in policies if (claim := needed.get(name, name)) in self._owners
        }
        others = {
            name: sets
            for name, policy in policies.items()
            if needed.get(name, name) == name and (sets := self._sharers(key, name, policy))
        }
        there = {
            name.place: {k: each for k, (each, _) in self._at(name).items() if self._is_known(each)}
            for name in policies
        }
        assigned = assign_names(KeyState(key), records, owners, needed, there, others)
        assigned = with_turns(assigned, [], {name.label: owners[name] for name in of_types})
        for name in names_of(assigned.intended):
            self._own(name, key)
        for record, record_set in assigned.intended.items():
            self._sets.setdefault(record.place, {})[record] = record_set, key
        return assigned

    def _own(self, name: Name, key: ObjectKey) -> None:
        self._owners.setdefault(name, key)
        self._claims_at.setdefault(name.place, set()).add(name)

    def _needed(self, key: ObjectKey, records: Mapping[RecordKey, RecordSet]) -> tuple[dict[Name, Name], set[Name]]:
        """By wanted claim, the claim that the object needs (``ClaimBook.needed_claim``); and the claims where a set of another type is in the way
        (``types_in_the_way``). In a cluster without rules some of these become conflicts instead."""
        needed, of_types = dict[Name, Name](), set[Name]()
        for name, policy in policies_of(records).items():
            owners = {each: self._owners[each] for each in self._claims_at.get(name.place, ())}
            needed[name] = waits_for(name, policy, key, owners)
            if needed[name] != name:
                continue
            here = [k for k in records if k.place == name.place]
            for each in sorted(owner for owner in owners if owner.identifier):
                theirs = [k for k, (_, whose) in self._at(name).items() if Name.of(k) == each and whose == owners[each]]
                if any(exclude_each_other(one, other) for one in theirs for other in here):
                    needed[name] = each
                    of_types.add(name)
                    break
        return needed, of_types

    def owners_at(self, keys: Iterable[RecordKey]) -> list[ObjectKey]:
        """Whose sets are at the places of these."""
        return sorted({owner for key in keys for _, owner in self._sets.get(key.place, {}).values()})

    def _is_known(self, record_set: RecordSet) -> bool:
        return not any(value in self.unknown for value in record_set.values)

    def _at(self, name: Name) -> Mapping[RecordKey, tuple[RecordSet, ObjectKey]]:
        return self._sets.get(name.place, {})

    def _sharers(self, key: ObjectKey, name: Name, policy: str) -> dict[RecordKey, ObjectKey]:
        """The sets of the claim, if the object may have other types beside them (docs/adr/0062)."""
        here = {k: (each, owner) for k, (each, owner) in self._at(name).items() if Name.of(k) == name}
        kinds = {policy, *(each.routing.kind for each, _ in here.values())}
        if kinds not in _MAY_SHARE or not all(neighbours(owner, key) for _, owner in here.values()):
            return {}
        return {k: owner for k, (_, owner) in here.items()}
