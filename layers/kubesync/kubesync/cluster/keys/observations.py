"""Sorts observations of a window by key, and takes in the windows that follow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kubesync.actors.actor import Steps
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.keys.key_writes import OrderedWrites, Recorded
from kubesync.domain.objects import ObjectKey, Observation
from kubesync.domain.sources.registry import SOURCES, bucket_of, kind_of, part_of
from kubesync.domain.state import Reference
from kubesync.domain.window import Turns, WindowContent


class Following:
    """Hooks that are called while a window is recorded. These here do nothing. ``turns``: the keys of the window in the order of recording."""

    def __init__(self) -> None:
        self.turns = Turns()

    def take_next_window(self) -> WindowContent | None:
        """Close the next window, if it is due and holds no list. Its events join the window that is recorded."""
        return None

    def run_other_tasks(self) -> Steps[None]:
        """Run other tasks, which must not wait for a long window."""
        yield from ()

    def written(self, part: Recorded) -> None:
        """Called when a section, or a part of it, is recorded."""


@dataclass(slots=True)
class Observations:
    """Observations by key, and writes about objects that may move to another key, such as an EndpointSlice.

    Such an object's stored *place* says to which key the object belongs. ``ordered``: the writes of places.
    ``places``: by namespace and name, the objects that were seen, each with the name of the key that it belongs to now.
    """

    by_key: dict[ObjectKey, list[Observation]] = field(default_factory=lambda: defaultdict(list))
    ordered: OrderedWrites = field(default_factory=OrderedWrites)
    places: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, later: Observations) -> None:
        """Add later observations. They replace earlier observations of the same objects, and later writes replace earlier ones."""
        for key, seen in later.by_key.items():
            seen_again = {(each.resource, each.name) for each in seen}
            self.by_key[key] = [e for e in self.by_key.get(key, ()) if (e.resource, e.name) not in seen_again] + seen
        self.ordered.add(later.ordered)
        self.places |= later.places

    def of(self, key: ObjectKey) -> Sequence[Observation]:
        """The observations of a key."""
        return self.by_key.get(key, ())


def sort_observations(
    cluster: str, observations: Iterable[Observation], owners: Mapping[tuple[str, str], str]
) -> Observations:
    """Group observations by key.

        an observation                                     goes to
        --------------                                     -------
        of a shared object                                 the bucket of the object
        of an object that cannot move                      the key of the same name
        of an object that may move (``Source.owner``)      the key that the object names now; a deletion goes to the key that it named
        of the same, which named another key before        also to that key, as a deletion
        of the same, not readable                          the key that the object named before

    Args:
        observations: those of one object in the order of their versions.
        owners: by namespace and name of an object that may move, the name of the key that the object was last seen with.
    """
    found = Observations()
    # By namespace and name of an object that may move: the name of its key after these observations (empty: none), and its kind.
    now: dict[tuple[str, str], str] = {}
    kinds: dict[tuple[str, str], str] = {}
    for seen in observations:
        owner_of, kind = SOURCES[seen.resource].owner, kind_of(seen.resource).name
        if kind_of(seen.resource).shared:
            reference = Reference(kind, seen.namespace, seen.name)
            found.by_key[bucket_of(cluster, reference)].append(replace(seen, name=part_of(reference).name))
            continue
        if owner_of is None:
            found.by_key[ObjectKey(cluster, seen.namespace, seen.name, kind)].append(seen)
            continue
        place = (seen.namespace, seen.name)
        kinds[place] = kind
        # Names of keys; empty: none. ``earlier``: the key that the object belonged to. ``named``: the one that it names; ``earlier`` if not readable.
        earlier = now.get(place, owners.get(place, ""))
        named = earlier if seen.value is None else owner_of(seen.value)
        # ``owner``: the key that it belongs to now. ``left``: the key that it may have to leave; of an object that is first seen deleted: ``named``.
        owner = "" if seen.deleted else named
        left = earlier or named
        if left and left != owner:
            # Its object was deleted, or has moved to another key.
            gone = replace(seen, value=None, problem=None, deleted=True)
            found.by_key[ObjectKey(cluster, seen.namespace, left, kind)].append(gone)
        if owner:
            found.by_key[ObjectKey(cluster, seen.namespace, owner, kind)].append(seen)
        now[place] = owner
    # Write the places that change.
    found.places = now
    for place, owner in now.items():
        earlier = owners.get(place, "")
        if earlier == owner:
            continue
        action = StateTable.remember_slice(cluster, *place, owner or None)
        if earlier:
            # Late: until the object is deleted at the old key, an event that is read again has to find it there.
            found.ordered.late[ObjectKey(cluster, place[0], earlier, kinds[place])].append(action)
        else:
            found.ordered.early[ObjectKey(cluster, place[0], owner, kinds[place])].append(action)
    return found
