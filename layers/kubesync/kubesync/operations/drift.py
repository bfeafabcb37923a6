"""What stands in a zone against what is known of it: sets of ours that drifted, and foreign ones that will be in the way (I3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from kubesync.aws.tables.audit import describe
from kubesync.aws.tables.control.inflight import Inflight
from kubesync.domain.dns.records import RecordKey, RecordSet, exclude_each_other
from kubesync.domain.objects import ServiceKey
from kubesync.domain.state import KeyState, Name
from kubesync.zone.reader import Stands, what_stands
from kubesync.zone.refusals import why_foreign


@dataclass(frozen=True, slots=True)
class Drift:
    """A record set of ours that is not in the zone as we know it."""

    service: ServiceKey
    key: RecordKey
    known: RecordSet
    stands: RecordSet | None

    def document(self) -> dict[str, Any]:
        of_set = {"identifier": self.key.identifier} if self.key.identifier else {}
        return {
            "drift": what_stands(self.known, self.stands).value,
            "name": self.key.name,
            "type": self.key.type,
            **of_set,
            "zone": self.key.zone_id,
            "service": str(self.service),
            "known": describe(self.known),
            "stands": describe(self.stands),
        }


def replacements(standing: Mapping[RecordKey, RecordSet]) -> dict[RecordKey, RecordSet]:
    """What stands in a zone, and under the key of a simple set what was put in its place: a set with a set identifier."""
    found = {
        replace(key, identifier=""): replace(stands, foreign_form=f"SetIdentifier={key.identifier}")
        for key, stands in standing.items()
        if key.identifier
    }
    return found | dict(standing)


@dataclass(frozen=True, slots=True)
class Known:
    """What was known of one Service in one zone before the zone was walked.

    ``version`` is that of the state that said so, ``seen`` what it came from (of each part uid, generation and
    resourceVersion): a Service that goes and comes back begins anew with the first version, and may stand as before.
    """

    service: ServiceKey
    version: int
    seen: frozenset[tuple[str, int, int]]
    applied: tuple[tuple[RecordKey, RecordSet], ...]

    @classmethod
    def of(cls, state: KeyState, zone_id: str) -> Known:
        """What a state says of a zone."""
        here = ((key, known) for key, known in state.applied.items() if key.zone_id == zone_id)
        return cls(state.key, state.version, _seen(state), tuple(sorted(here, key=lambda item: item[0])))

    def still(self, state: KeyState) -> bool:
        """Whether the key was not written since."""
        return (state.version, _seen(state)) == (self.version, self.seen)

    def drifts(self, standing: Mapping[RecordKey, RecordSet]) -> list[Drift]:
        """Its sets that do not stand in the zone as they were applied."""
        return [
            Drift(self.service, key, known, standing.get(key))
            for key, known in self.applied
            if what_stands(known, standing.get(key)) is not Stands.OURS
        ]


def _seen(state: KeyState) -> frozenset[tuple[str, int, int]]:
    return frozenset((part.uid, part.generation, part.resource_version) for part in state.parts.values())


def drifts_of(state: KeyState, zone_id: str, standing: Mapping[RecordKey, RecordSet]) -> list[Drift]:
    """Sets of one Service that do not stand in the zone as they were applied."""
    return Known.of(state, zone_id).drifts(standing)


def landed(inflight: Inflight | None, standing: Mapping[RecordKey, RecordSet]) -> frozenset[RecordKey]:
    """Sets that stand, or are gone, as the zone's last batch left them.

    If a session ended before it settled this batch, the key states do not know these sets yet.
    """
    if inflight is None:
        return frozenset()
    changes = [change for unit in inflight.units for change in unit.changes]
    return frozenset(change.key for change in changes if standing.get(change.key) == change.after)


def as_it_stands(state: KeyState, drifts: Iterable[Drift]) -> KeyState:
    """The state with what was found in the zone taken as known; what has been written or let go since stays."""
    applied = dict(state.applied)
    conflicts = dict(state.conflicts)
    for drift in drifts:
        if applied.get(drift.key) != drift.known:
            continue
        what = what_stands(drift.known, drift.stands)
        if drift.stands is not None and what is Stands.CHANGED:
            applied[drift.key] = drift.stands
            continue
        applied.pop(drift.key)
        if drift.stands is not None:  # somebody replaced it by a set of a form that we never make: theirs now
            conflicts[Name.of(drift.key)] = f"{drift.key.label} was replaced ({drift.stands.foreign_form})"
    return replace(state, applied=applied, conflicts=conflicts)


@dataclass(frozen=True, slots=True)
class Coming:
    """Sets that are to be made, each with its Service; ``ours`` are those of ours that stand at their names."""

    sets: tuple[tuple[str, RecordKey], ...]
    ours: AbstractSet[RecordKey]

    @classmethod
    def of(cls, states: Iterable[KeyState]) -> Coming:
        """What states as they are planned to be will make."""
        known = list(states)
        sets = tuple(
            (str(state.key), key) for state in known for key in sorted(state.intended.keys() - state.applied.keys())
        )
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
