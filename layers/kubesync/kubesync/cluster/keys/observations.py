"""Sorts what a window saw by service key, and tells what a complete list implies for keys that it does not hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.keys.key_writes import Notes
from kubesync.domain.objects import EndpointsObject, ObjectKey, Observation, Resource, Service, Snapshot
from kubesync.domain.state import KeyState, PartId


@dataclass(slots=True)
class Observations:
    """Observations per key, and notes about which Service a slice has.

    ``early`` notes must be durable no later than the key's parts, ``late`` ones no earlier. ``places``: EndpointSlices seen.
    """

    by_key: dict[ObjectKey, list[Observation]] = field(default_factory=lambda: defaultdict(list))
    early: dict[ObjectKey, list[Action]] = field(default_factory=lambda: defaultdict(list))
    late: dict[ObjectKey, list[Action]] = field(default_factory=lambda: defaultdict(list))
    places: set[tuple[str, str]] = field(default_factory=set)

    def of(self, key: ObjectKey) -> Sequence[Observation]:
        """What was seen of a key."""
        return self.by_key.get(key, ())

    @property
    def notes(self) -> Notes:
        """For the planner."""
        return Notes(self.early, self.late)

    def created_at(self, key: ObjectKey) -> str:
        """The creationTimestamp of the key's Service as seen last, empty where it was not seen."""
        for seen in reversed(self.by_key.get(key, ())):
            if isinstance(seen.value, Service):
                return seen.value.created_at
        return ""


def sort_observations(
    cluster: str, observations: Iterable[Observation], services_of_slices: Mapping[tuple[str, str], str]
) -> Observations:
    """Group observations by service key; those of one object are given in the order of their versions.

    An EndpointSlice belongs to the Service that its label names *now*; where that was another one before, the slice is gone there.

    Args:
        services_of_slices: the Service that each slice (namespace, name) was last seen with.
    """
    found = Observations()
    now: dict[tuple[str, str], str] = {}
    for seen in observations:
        if seen.resource is not Resource.ENDPOINTSLICES:
            found.by_key[ObjectKey(cluster, seen.namespace, seen.name)].append(seen)
            continue
        place = (seen.namespace, seen.name)
        earlier = now.get(place, services_of_slices.get(place, ""))
        # Not understood, or deleted without a last state: where it was before.
        service = seen.value.service if isinstance(seen.value, EndpointsObject) else earlier
        if earlier and (earlier != service or seen.deleted):
            found.by_key[ObjectKey(cluster, seen.namespace, earlier)].append(_gone(seen))
        elif service and seen.deleted:
            found.by_key[ObjectKey(cluster, seen.namespace, service)].append(_gone(seen))
        if service and not seen.deleted:
            found.by_key[ObjectKey(cluster, seen.namespace, service)].append(seen)
        now[place] = "" if seen.deleted else service
    found.places = set(now)
    for place, service in now.items():
        earlier = services_of_slices.get(place, "")
        if earlier == service:
            continue
        namespace = place[0]
        note = StateTable.remember_slice(cluster, *place, service or None)
        if earlier:
            # Not before the slice is gone at the old key: until then, a repeated event has to find it there.
            found.late[ObjectKey(cluster, namespace, earlier)].append(note)
        else:
            found.early[ObjectKey(cluster, namespace, service)].append(note)
    return found


def _gone(seen: Observation) -> Observation:
    return Observation(seen.resource, seen.namespace, seen.name, seen.uid, seen.resource_version, deleted=True)


@dataclass(frozen=True, slots=True)
class LivePart:
    """As much of a stored part as is needed to judge its absence from a list."""

    key: ObjectKey
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
        for part in _not_newer(snapshot, parts, generation)
        if (part.key.namespace, part.part_id.name) not in listed
    ]


def moved_in(snapshot: Snapshot, parts: Iterable[LivePart], generation: int) -> list[LivePart]:
    """Parts of EndpointSlices that a complete list shows at another Service."""
    services = {
        (item.namespace, item.name): item.value.service
        for item in snapshot.items
        if isinstance(item.value, EndpointsObject)
    }
    return [
        part
        for part in _not_newer(snapshot, parts, generation)
        if snapshot.resource is Resource.ENDPOINTSLICES
        and services.get((part.key.namespace, part.part_id.name), part.key.name) != part.key.name
    ]


def _not_newer(snapshot: Snapshot, parts: Iterable[LivePart], generation: int) -> Iterator[LivePart]:
    for part in parts:
        if part.part_id.resource is snapshot.resource and (
            part.generation < generation or part.resource_version <= snapshot.resource_version
        ):
            yield part
