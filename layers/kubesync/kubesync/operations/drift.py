"""What stands in a zone against what is known of it: sets of ours that drifted, and foreign ones that will be in the way (I3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from kubesync.aws.tables.audit import describe
from kubesync.aws.tables.control.inflight import Inflight
from kubesync.aws.tables.of_clusters import Tables
from kubesync.domain.dns.records import RecordKey, RecordSet, exclude_each_other
from kubesync.domain.dns.standing import Drift, what_stands, why_foreign
from kubesync.domain.state import KeyState, Name


def document_of(drift: Drift) -> dict[str, Any]:
    """A drift as reports show it."""
    return {
        "drift": what_stands(drift.known, drift.stands).value,
        "name": drift.key.name,
        "type": drift.key.type,
        **({"identifier": drift.key.identifier} if drift.key.identifier else {}),
        "zone": drift.key.zone_id,
        "service": str(drift.service),
        "known": describe(drift.known),
        "stands": describe(drift.stands),
    }


def landed(inflight: Inflight | None, standing: Mapping[RecordKey, RecordSet]) -> frozenset[RecordKey]:
    """Sets that stand, or are gone, as the zone's last batch left them.

    If a session ended before it settled this batch, the key states do not know these sets yet.
    """
    if inflight is None:
        return frozenset()
    units = [*inflight.units, *(unit for owed in inflight.owed.values() for unit in owed.units)]
    changes = [change for unit in units for change in unit.changes]
    return frozenset(change.key for change in changes if standing.get(change.key) == change.after)


def forgotten(tables: Tables, standing: Mapping[RecordKey, RecordSet], others: Collection[str]) -> list[dict[str, Any]]:
    """Those of some sets that kubesync may have made and lost track of, as reports show them. Nothing proves it: a person decides (I3).

    A key owns the name, and its state does not have it: somebody deleted the key's item, or restored an older one. A set of another type
    at a name that the key still has is not found: it may be anybody's.

    Args:
        others: clusters whose keys are not read.
    """
    claims = tables.claims.read({Name.of(key) for key in standing})
    owners = {name: claim.owner for name, claim in claims.items() if claim.owner.cluster not in others}
    states = tables.state.load(set(owners.values()))
    had = {(key, Name.of(each)) for key, state in states.items() for each in (*state.intended, *state.applied)}
    return [
        {"name": key.name, "type": key.type, "zone": key.zone_id, "service": str(owner), "stands": describe(stands)}
        for key, stands in standing.items()
        if (owner := owners.get(Name.of(key))) and (owner, Name.of(key)) not in had
    ]


@dataclass(frozen=True, slots=True)
class Coming:
    """Sets that are to be made, each with its Service; ``ours`` are those of ours that stand at their names."""

    sets: tuple[tuple[str, RecordKey], ...]
    ours: AbstractSet[RecordKey]

    @classmethod
    def of(cls, states: Iterable[KeyState]) -> Coming:
        """What states as they are planned to be will make."""
        known = list(states)
        sets = tuple((str(s.key), key) for s in known for key in sorted(s.intended.keys() - s.applied.keys()))
        names = {(key.zone_id, key.name) for _, key in sets}
        return cls(sets, {key for state in known for key in state.applied if (key.zone_id, key.name) in names})

    def conflicts(self, zone_id: str, standing: Mapping[RecordKey, RecordSet]) -> dict[tuple[str, Name], str]:
        """Where they will meet foreign sets: service and name, and why."""
        wanted: dict[str, list[tuple[str, RecordKey]]] = {}
        for service, key in self.sets:
            if key.zone_id == zone_id:
                wanted.setdefault(key.name, []).append((service, key))
        found: dict[tuple[str, Name], str] = {}
        for other, stands in standing.items():
            if other in self.ours:
                continue
            for service, key in wanted.get(other.name, ()):
                if other == key or exclude_each_other(other, key):
                    found[service, Name.of(key)] = why_foreign(other, stands, key)
        return found
