"""How observations become parts: which observation is newer, what a deletion means, what a complete list implies.

How an observation changes the stored part of its object:

    part              observation                      becomes
    ----              -----------                      -------
    any               older generation                 dropped
    live              the part's own version and uid,  the new value: a new release or configuration keeps more of the
                      read again, or now understood     same object, or there was no room for it before
    same generation   version not above the part's     dropped: late or repeated (I1), whatever its uid. A tombstone
                                                       that a later complete list disproves is removed first
    none              DELETED                          dropped: there is nothing to delete
    any               DELETED, newer                   tombstone
    any               not understood, newer            the value stays (same uid) or is None; the problem is kept (I4)
    equal, same uid   newer                            dropped: nothing has changed (I6)
    any               newer                            the new value

A *tombstone* is a part whose object is deleted: it stays until no older event can come any more, and bring the object back
(``without_tombstones``). A *generation* counts, for each listener, how often its versions began anew because the API server's store was
restored or replaced (``KeyStates.begin_generations``). It is not ``metadata.generation``. Versions of two generations cannot be compared.

Versions also order events of objects that had the same name one after the other. A new object is created after the deletion of
the old one, so an event of an old uid is never newer than a part of the new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from kubesync.domain.objects import Observation, Resource, Snapshot
from kubesync.domain.state import KeyState, Part, PartId

# I5: deletions are held back where a list lacks more than this share of at least this many live objects.
GUARD_MINIMUM_OBJECTS: Final = 10
GUARD_SHARE: Final = 0.3
GUARD_MINUTES: Final = 60


def observe(part: Part | None, seen: Observation, generation: int, *, reread: bool = False) -> Part | None:
    """The part after an observation; None where nothing changes (see the table above).

    Args:
        part: what is stored of the object; None: nothing yet.
        generation: the listener's, in which the observation was seen.
        reread: the observation comes from a list that is read because the rules or the configuration changed.
    """
    if part is None:
        if seen.deleted:
            return None
        return Part(seen.uid, seen.resource_version, generation, seen.value, problem=seen.problem or "")
    if generation < part.generation:
        return None
    again = (generation, seen.resource_version, seen.uid) == (part.generation, part.resource_version, part.uid)
    both_live = not (seen.deleted or part.deleted or part.held)
    # The same version once more, and this time it may say more than the part.
    if (reread or part.problem) and again and both_live and seen.problem is None:
        renewed = replace(part, value=seen.value, problem="")
        return None if renewed == part else renewed
    # The oldest version that is news. A held part takes its own version again: the object has reappeared, unchanged.
    oldest = part.resource_version if part.held else part.resource_version + 1
    if generation == part.generation and seen.resource_version < oldest:
        return None
    if seen.deleted:
        return None if part.deleted else Part(seen.uid, seen.resource_version, generation, None, deleted=True)
    if seen.problem is not None:
        kept = part.value if part.uid == seen.uid else None
        fresh = Part(seen.uid, seen.resource_version, generation, kept, problem=seen.problem)
    else:
        fresh = Part(seen.uid, seen.resource_version, generation, seen.value)
    same = replace(part, resource_version=seen.resource_version) == fresh
    return None if same else fresh


def with_observations(
    state: KeyState,
    seen: Iterable[Observation],
    generation: Mapping[Resource, int],
    reread: AbstractSet[Resource] = frozenset(),
) -> KeyState:
    """The key after these observations. Returns the same object where nothing changes. ``reread``: see ``observe``."""
    parts = dict(state.parts)
    changed = False
    for observation in seen:
        part_id = PartId(observation.resource, observation.name)
        after = observe(
            parts.get(part_id), observation, generation[observation.resource], reread=observation.resource in reread
        )
        if after is not None:
            parts[part_id] = after
            changed = True
    return replace(state, parts=parts) if changed else state


class Pending(NamedTuple):
    """The believed deletions of a list that is being recorded. It is stored as a row of three numbers.

    Args:
        minute: in which they were decided, since 1970.
        version: of the list, and so of the tombstones that it leads to.
        deletions: how many.
    """

    minute: int
    version: int
    deletions: int


@dataclass(frozen=True, slots=True)
class Believed:
    """The guard's memory: how many deletions of one listener's objects were believed because a list lacked the objects (I5).

    It is stored with the listener's checkpoint. Entries with a later time count: the clock of another master may be ahead. ``pause`` below:
    seconds between the last session and this one, by this one's clock. They do not count towards the hour, because this clock may be ahead.

    Args:
        by_minute: how many, by the minute (since 1970) in which they were decided.
        pending: those of a list that is being recorded. Written before the first of them is recorded: if the session dies in the middle, the
            next one counts those that are recorded, by their tombstones (``done``).
        holding: lists lacked too many: what they lack stays held, also once the hour is over.
        limit: how many lists may take away within the hour, as judged last; for people.
    """

    by_minute: Mapping[int, int] = field(default_factory=dict)
    pending: Pending | None = None
    holding: bool = False
    limit: int = field(default=0, compare=False)

    def within_the_hour(self, epoch: float, pause: float = 0.0) -> int:
        """How many deletions were believed within the last hour, without those of ``pending``."""
        return sum(self._recent(epoch - pause).values())

    def floor(self, version: int) -> int:
        """The version up to which tombstones may be dropped (``without_tombstones``).

        That is the version of the durable checkpoint, which the caller gives: nothing up to it is ever read again. But the tombstones of a
        list that is being recorded stay, whatever the checkpoint: ``done`` counts them if the session dies.
        """
        return version if self.pending is None else min(version, self.pending.version - 1)

    def done(self, tombstones: Mapping[int, int]) -> int:
        """How many of ``pending`` were recorded before the session died. ``tombstones``: how many there are, by version."""
        return min(self.pending.deletions, tombstones.get(self.pending.version, 0)) if self.pending else 0

    def begin(self, epoch: float, version: int, done: int, more: int, pause: float = 0.0) -> Believed:
        """The memory to store before a list of this version is recorded.

        the list that is still pending,           its deletions
        as a session died while it recorded it
        --------------------------------------    -------------
        none                                      -
        this one                                  those that were recorded count, and ``more`` with them
        another one                               those that were recorded count, in the minute in which they were decided

        Args:
            done: how many deletions of the pending list were recorded (the method ``done``).
            more: how many deletions are believed because of this list, besides those.
        """
        minute = int(epoch // 60)
        if self.pending is None:
            return Believed(self._recent(epoch - pause), Pending(minute, version, more)) if more else self
        if self.pending.version == version:
            return replace(self, pending=self.pending._replace(deletions=done + more))
        earlier = Believed(self.by_minute, self.pending._replace(deletions=done)).end(epoch, pause)
        return earlier.begin(epoch, version, 0, more, pause)

    def end(self, epoch: float, pause: float = 0.0) -> Believed:
        """The memory to store when a list is recorded to its end: its ``pending`` deletions count in their minute, and nothing is pending."""
        by_minute = self._recent(epoch - pause)
        if self.pending is not None:
            by_minute[self.pending.minute] += self.pending.deletions
        return replace(self, by_minute=dict(+by_minute), pending=None)  # +: without minutes whose count is 0

    def _recent(self, epoch: float) -> Counter[int]:
        """``by_minute``, without the minutes that are over an hour ago."""
        since = epoch // 60 - GUARD_MINUTES
        return Counter({minute: count for minute, count in self.by_minute.items() if minute >= since})


def most_believed(live: int, earlier: int = 0) -> int:
    """How many deletions the guard believes within an hour: all if there are few objects, else 30 % of the objects.

    The deletions of the last hour count against this number, so the objects that they took away count as objects here.

    Args:
        live: how many objects there are now.
        earlier: how many went within the last hour because lists lacked them.
    """
    objects = live + earlier
    return objects if objects < GUARD_MINIMUM_OBJECTS else int(GUARD_SHARE * objects)


def too_many(live: int, gone: int, earlier: int = 0) -> bool:
    """Whether these are more deletions than the guard believes. ``gone``: how many of ``live`` go now. ``earlier``: as in ``most_believed``."""
    return gone + earlier > most_believed(live, earlier)


def judge_absences(live: int, absent: int, believed: int = 0, *, same_cluster: bool, forced: bool) -> str:
    """Return why all deletions that one list implies are held, in one line (I5). Empty: they are believed.

    Held, unless forced, are those of another cluster, and more than 30 % of 10 or more objects (an empty list, an emptied cluster). What
    earlier lists of the last hour have taken away counts as if this list did.

    Args:
        live: how many of the listener's objects were live before the list.
        absent: how many of these the list lacks.
        believed: how many more went within the last hour because lists lacked them.
        same_cluster: the uid of Service default/kubernetes is the remembered one, or could not be compared.
        forced: a person asked for a resync with ``--force``.
    """
    if forced or absent == 0:
        return ""
    if not same_cluster:
        return "the uid of Service default/kubernetes is not the remembered one: another cluster?"
    if too_many(live, absent, believed):
        earlier = f" (with {believed} that went by lists of the last hour)" if believed else ""
        return f"the list lacks {absent} of {live} objects, more than {GUARD_SHARE:.0%}{earlier}"
    return ""


def without_parts(
    state: KeyState, absent: Iterable[PartId], snapshot: Snapshot, generation: int, *, hold: bool
) -> KeyState:
    """The key after a complete list (``snapshot``) that lacks objects of its parts (``absent``).

    An object that a complete list lacks is deleted. So its part becomes a tombstone with the list's version, against older events. With
    ``hold``, the guard does not believe the list (``judge_absences``), or that a configuration leaves so many objects out: then the part keeps
    its value and is marked as held, until a person confirms the deletion or the object reappears.
    """
    parts = dict(state.parts)
    for part_id in absent:
        part = parts[part_id]
        if hold:
            parts[part_id] = replace(part, held=True)
        else:
            parts[part_id] = Part(part.uid, snapshot.resource_version, generation, None, deleted=True)
    return state if parts == dict(state.parts) else replace(state, parts=parts)


def without_disproved(state: KeyState, seen: Iterable[Observation], snapshot: Snapshot, generation: int) -> KeyState:
    """Remove tombstones of objects that are in a later complete list (``snapshot``). Called before its observations (``seen``) are merged.

    A tombstone that an earlier list led to has the version of that list. If that list lacked the object by mistake, or because it was out of
    scope then, the object itself is older: ``observe`` would drop it as older than its tombstone.
    """
    if not state.tombstoned:
        return state
    listed = {
        PartId(each.resource, each.name)
        for each in seen
        if each.resource is snapshot.resource and not each.deleted
        if each.resource_version <= snapshot.resource_version
    }
    disproved = {
        part_id
        for part_id in listed & state.parts.keys()
        if (part := state.parts[part_id]).deleted and part.generation == generation
        if part.resource_version <= snapshot.resource_version  # else it was deleted after the list
    }
    parts = {part_id: part for part_id, part in state.parts.items() if part_id not in disproved}
    return replace(state, parts=parts) if disproved else state


def without_tombstones(state: KeyState, floors: Mapping[Resource, tuple[int, int]]) -> KeyState:
    """Remove tombstones that no event can contradict any more.

    ``floors``: by resource, generation and version of the durable checkpoint. Nothing at or below it is ever read again. While a list is being
    recorded, the version is lower (``Believed.floor``).
    """
    parts = {
        part_id: part
        for part_id, part in state.parts.items()
        if not part.deleted or (part.generation, part.resource_version) > floors.get(part_id.resource, (0, 0))
    }
    return state if len(parts) == len(state.parts) else replace(state, parts=parts)
