"""Sorts what a window saw by service key, and tells what a complete list implies for keys that it does not hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kubesync.aws.state import StateTable
from kubesync.aws.store import Action
from kubesync.domain.objects import EndpointsObject, Observation, Resource, Service, ServiceKey, Snapshot
from kubesync.domain.state import KeyState, PartId


@dataclass(slots=True)
class Sightings:
    """Observations per key, and writes that belong to a key besides its own item (which Service a slice has)."""

    by_key: dict[ServiceKey, list[Observation]] = field(default_factory=lambda: defaultdict(list))
    extras: dict[ServiceKey, list[Action]] = field(default_factory=lambda: defaultdict(list))

    def created_at(self, key: ServiceKey) -> str:
        """The creationTimestamp of the key's Service as seen now, empty where it was not seen."""
        for seen in self.by_key.get(key, ()):
            if isinstance(seen.value, Service):
                return seen.value.created_at
        return ""


def sort_sightings(
    cluster: str, observations: Iterable[Observation], services_of_slices: Mapping[tuple[str, str], str]
) -> Sightings:
    """Group observations by service key.

    An EndpointSlice belongs to the Service that its label names *now*; where that was another one before, the slice is gone there.

    Args:
        services_of_slices: the Service that each slice (namespace, name) was last seen with.
    """
    found = Sightings()
    for seen in observations:
        if seen.resource is not Resource.ENDPOINTSLICES:
            found.by_key[ServiceKey(cluster, seen.namespace, seen.name)].append(seen)
            continue
        place = (seen.namespace, seen.name)
        earlier = services_of_slices.get(place, "")
        # Not understood, or deleted without a last state: where it was before.
        service = seen.value.service if isinstance(seen.value, EndpointsObject) else earlier
        if earlier and (earlier != service or seen.deleted):
            old_key = ServiceKey(cluster, seen.namespace, earlier)
            found.by_key[old_key].append(_gone(seen))
            # Noted together with the old key: until the slice is gone there, a repeated event has to find it there.
            now = None if seen.deleted or not service else service
            found.extras[old_key].append(StateTable.remember_slice(cluster, *place, now))
        if service and not seen.deleted:
            key = ServiceKey(cluster, seen.namespace, service)
            found.by_key[key].append(seen)
            if not earlier:
                found.extras[key].append(StateTable.remember_slice(cluster, *place, service))
        elif service and seen.deleted and not earlier:
            found.by_key[ServiceKey(cluster, seen.namespace, service)].append(_gone(seen))
    return found


def _gone(seen: Observation) -> Observation:
    return Observation(seen.resource, seen.namespace, seen.name, seen.uid, seen.resource_version, deleted=True)


@dataclass(frozen=True, slots=True)
class LivePart:
    """As much of a stored part as is needed to judge its absence from a list."""

    key: ServiceKey
    part_id: PartId
    generation: int
    resource_version: int


def live_parts(state: KeyState, resources: Iterable[Resource]) -> list[LivePart]:
    """The live parts of a key for some listeners."""
    wanted = frozenset(resources)
    return [
        LivePart(state.key, part_id, part.generation, part.resource_version)
        for part_id, part in state.parts.items()
        if part_id.resource in wanted and not part.deleted
    ]


def absent_from(snapshot: Snapshot, parts: Iterable[LivePart], generation: int) -> list[LivePart]:
    """Parts that a complete list does not hold and that are not newer than it (I5)."""
    listed = {(item.namespace, item.name) for item in snapshot.items}
    return [
        part
        for part in parts
        if part.part_id.resource is snapshot.resource
        and (part.key.namespace, part.part_id.name) not in listed
        and (part.generation < generation or part.resource_version <= snapshot.resource_version)
    ]
