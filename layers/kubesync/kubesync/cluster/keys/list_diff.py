"""Compares complete lists with everything that is stored: which objects the lists lack, and whether that is believed (I5)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set as AbstractSet
from dataclasses import replace
from typing import Final

from kubesync.actors.actor import Steps
from kubesync.actors.answer import Answer
from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.state import BUCKETS
from kubesync.cluster.claims.allowed_names import names_asked, namespaces_apart
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.observations import Observations
from kubesync.domain.errors import ListenerError
from kubesync.domain.merge import (
    Believed,
    judge_absences,
    most_believed,
    observe,
    with_observations,
    without_disproved,
    without_parts,
    without_tombstones,
)
from kubesync.domain.objects import EMPTY_SET, ObjectKey, Observation, Resource, Snapshot
from kubesync.domain.sources.registry import IDENTITY, KINDS, MOVING, SOURCES, created_at, lives, main_id, place_of
from kubesync.domain.state import KeyState, Part, PartId
from kubesync.domain.window import WindowContent
from kubesync.log import logger

NOT_ANSWERED: Final = "not answered"
"""Stands for an unknown identity. It is the uid of no object, so it differs from the identity that is remembered (I5)."""
_PROBES: Final = 3
_PROBE_PAUSE_SECONDS: Final = 1.0
_PROBE_POLL_SECONDS: Final = 0.05

_MAIN: Final = frozenset(kind.main for kind in KINDS.values())

type StoredPart = tuple[ObjectKey, PartId]
"""A stored part of a key."""


class Absences:
    """Compares the stored parts of one listener with its complete list: ``see`` each part, then judge what the list lacks.

    ``live``: how many objects in scope are stored. ``tombstones``: how many there are, by version. Of the parts that are not newer than the
    list (I5): ``missing``: those in scope that it lacks. ``unlisted``: the others that it lacks. Both say of each part whether its deletion is
    held back, because an earlier list lacked it. ``moved``: those that it shows at another key.

    What follows from that, as ``ListMerge`` decides: ``gone``: parts to delete. ``held``: parts whose deletion is held back. ``left``: parts
    that the configuration leaves out. ``believed``: which deletions to remember as believed.
    """

    def __init__(self, snapshot: Snapshot, generation: int, in_scope: Callable[[str], bool]) -> None:
        """``in_scope``: whether the cluster watches this namespace."""
        owner_of = SOURCES[snapshot.resource].owner
        # By namespace and name: the name of the key that an object belongs to. None: it cannot move, or is not readable.
        self._owners = {
            (item.namespace, item.name): None if owner_of is None or item.value is None else owner_of(item.value)
            for item in snapshot.items
        }
        self._generation, self._version = generation, snapshot.resource_version
        self._in_scope = in_scope
        self.live = 0
        self.tombstones = Counter[int]()
        self.missing: dict[StoredPart, bool] = {}
        self.unlisted: dict[StoredPart, bool] = {}
        self.moved: set[StoredPart] = set()
        self.gone: AbstractSet[StoredPart] = frozenset()
        self.held: AbstractSet[StoredPart] = frozenset()
        self.left: AbstractSet[StoredPart] = frozenset()
        self.believed = Believed()

    def see(self, key: ObjectKey, part_id: PartId, part: Part) -> None:
        """Compare one stored part with the list: note whether the list lacks it, or shows it at another key."""
        if part.deleted:
            self.tombstones[part.resource_version] += 1
            return
        place = place_of(key, part_id)
        in_scope = self._in_scope(place[0])
        self.live += in_scope
        if part.generation >= self._generation and part.resource_version > self._version:
            return  # the part is newer than the list, which says nothing about it
        if place not in self._owners:
            (self.missing if in_scope else self.unlisted)[key, part_id] = part.held
        elif self._owners[place] not in (None, key.name):  # the list shows the object, as one of another key
            self.moved.add((key, part_id))


class ListMerge:
    """Merges complete lists with the stored keys of a cluster: ``compare`` once, then ``merged`` key by key.

    ``compare`` reads creation times and live parts. Only windows change these, and only one window is recorded at a time.

    ``names``: all keys, stored or observed, the oldest first, with the names that each asks for (``names_asked``) if namespaces take turns.
    ``reread``: resources that were last listed under other rules or another configuration.
    ``unwanted``: how many record sets the configuration, or the rules, do not want any more. The reconciler sets it, and ``hold``.
    ``hold``: True: these record sets are kept. False: a person forces their deletion. None: those that are kept already, and no others.
    ``why_held``: by resource, why deletions are held back.
    ``missed``: keys with an object whose change a watch should have reported, but only the list shows it.
    ``identity_actions``: writes that remember the identity of the cluster (``_identify``). They go with the last transaction.

    Args:
        content: the window of the lists.
        observed: their objects, and the events that followed them.
        epoch: the time now.
        forced: a person lets held deletions through.
    """

    def __init__(
        self, states: KeyStates, content: WindowContent, observed: Observations, epoch: float, *, forced: bool
    ) -> None:
        self._states = states
        self._epoch = epoch
        self._forced = forced
        self.observed = observed
        self._snapshots = content.snapshots
        views, in_scope = states.listeners, states.config.scope.holds
        self._found = {r: Absences(listed, views[r].generation, in_scope) for r, listed in self._snapshots.items()}
        self.reread = {resource for resource in self._snapshots if states.outdated(resource)}
        self.unwanted = 0
        self.hold: bool | None = False if forced else None
        self.why_held: dict[Resource, str] = {}
        self.identity_actions: tuple[Action, ...] = ()
        self.missed: set[ObjectKey] = set()
        self.names: Mapping[ObjectKey, AbstractSet[str]] = {}

    def compare(self, probed: str | None) -> Steps[None]:
        """Read everything that is stored once (I7), and compare it with the lists. Called once, before the first key is merged.

        It finds out for each stored part what the lists lack, and decides whether that is believed. It orders the keys by age (``names``). On the
        way it counts the names of each namespace again (``NameCounts.tally``), and notes in ``observed`` which places of objects go.

        ``probed``: the identity of the cluster, if it was asked for (``probe_if_needed``).
        """
        observed = self.observed
        created, names = dict[ObjectKey, str](), dict[ObjectKey, AbstractSet[str]]()
        generations, rules = self._states.generations(), self._states.rules
        fair = namespaces_apart(rules)

        def note_age_and_names(state: KeyState) -> None:
            seen = with_observations(state, observed.of(state.key), generations)
            created[state.key] = created_at(seen)
            names[state.key] = names_asked(state, seen, rules) if fair else EMPTY_SET

        sets_kept = 0  # record sets that are kept although the configuration does not want them
        # Resources that the configuration no longer reads, and whose objects have stored places (``Observations``): these places go.
        unused, parts_of_unused = MOVING - self._states.listeners.keys(), list[StoredPart]()
        self._states.counts.begin()
        for bucket in range(BUCKETS):
            for state in self._states.tables.state.load_bucket(self._states.config.name, bucket):
                sets_kept += len(state.kept)
                for part_id, part in state.parts.items():
                    if part_id.resource in self._found:
                        self._found[part_id.resource].see(state.key, part_id, part)
                    elif part_id.resource in unused and not part.deleted:
                        parts_of_unused.append((state.key, part_id))
                self._states.remember(state)
                note_age_and_names(state)
                self._states.counts.tally(state)
            yield 0.0
        for key in observed.by_key.keys() - created.keys():
            note_age_and_names(KeyState(key))  # new: nothing is stored
        services = self._snapshots.get(IDENTITY[0])  # the list of Services shows which cluster this is
        self._judge_absences_of_lists(sets_kept, self._identify(services, probed))
        for resource in MOVING & self._found.keys():
            self._forget_places(self._found[resource].gone | self._found[resource].left)
        self._forget_places(parts_of_unused)  # ``_without_unused_sources`` drops the parts
        self.names = {key: names[key] for key in sorted(created, key=lambda key: (created[key], key))}

    @property
    def believed(self) -> Mapping[Resource, Believed]:
        """By resource, the deletions to remember as believed. They must be stored before anything of the lists is recorded."""
        return {resource: found.believed for resource, found in self._found.items()}

    def merged(self, before: KeyState) -> KeyState:
        """Merge a stored key with the lists and with the events that followed them: the ``see`` of the ``Change`` that records the lists.

        Adds the key to ``missed`` if a watch missed a change.
        """
        # Absences first, observations last: an object that the list lacks may be created again by an event after the list.
        after, key = before, before.key
        aside = key in self._states.aside  # then only its main object is merged, and its endpoints stay as they are
        main = KINDS[key.kind].main
        # The main object first: for the others it matters whether it lives.
        for resource, snapshot in sorted(self._snapshots.items(), key=lambda listed: listed[0] is not main):
            if aside and resource is not main:
                continue
            after = self._without_absent(before, after, snapshot)
        observed = self._states.taken_in(key, self.observed.of(key))
        if any(self._missed_by_watch(before, seen) for seen in observed):
            self.missed.add(key)
        after = with_observations(after, observed, self._states.generations(), self.reread)
        return without_tombstones(self._without_unused_sources(after), self._states.floors())

    def _without_absent(self, before: KeyState, after: KeyState, snapshot: Snapshot) -> KeyState:
        """Take from a key the parts that one list lacks, or mark them as held, as ``_judge_absences_of_lists`` has decided.

        ``before``: the key as stored. ``after``: as the lists before this one leave it; the list of its main object comes first.
        """
        key, resource, generation = before.key, snapshot.resource, self._states.generations()[snapshot.resource]
        found = self._found[resource]
        # An earlier try may have deleted some of these parts already.
        live = {(key, part_id) for part_id, part in before.parts.items() if not part.deleted}
        gone, held, left = ([p for _, p in parts & live] for parts in (found.gone, found.held, found.left))
        after = without_parts(after, gone, snapshot, generation, hold=False)
        after = without_parts(after, held, snapshot, generation, hold=True)
        # Parts that the configuration leaves out go. But the endpoints in a namespace that is out of scope stay as long as their Service lives:
        # its deletion is held back, or its resource is not listed yet.
        if resource is KINDS[key.kind].main or self._states.config.scope.holds(key.namespace) or not lives(after):
            after = without_parts(after, left, snapshot, generation, hold=bool(self.hold))
        return without_disproved(after, self.observed.by_key.get(key, ()), snapshot, generation)

    def _missed_by_watch(self, before: KeyState, seen: Observation) -> bool:
        """Whether a watch should have reported what is seen here: the object changed before the checkpoint, and is stored as it was before.

        A full resync counts such keys for an alarm: a watch must not lose changes. Objects that an earlier list lacked (``Part.held``) do not
        count. Missed deletions are not found: a list does not say when an object was deleted.
        """
        part, view = before.parts.get(PartId(seen.resource, seen.name)), self._states.listeners[seen.resource]
        recorded = view.checkpoint  # everything up to this version was recorded by watches (I1)
        if recorded is None or (recorded.basis, recorded.generation) != (self._states.basis, view.generation):
            return False
        late = seen.resource_version <= recorded.resource_version and not (part is not None and part.held)
        return late and observe(part, seen, view.generation) is not None

    def _judge_absences_of_lists(self, sets_kept: int, uid: str | None) -> None:
        """Decide for each part that a list lacks whether it is deleted, held back or left out. Sets ``why_held``, and fills ``Absences``.

        a part that a list lacks                                         what happens
        ------------------------                                         ------------
        out of scope, or absent after a change of the label selector     left out; stays held if it was held back before
        in scope; the absences are believed (``judge_absences``)         deleted; stays held if too much was held back earlier
        in scope; the absences are not believed                          held back
        a part that the list shows at another key                        deleted at the old key

        An object that a changed configuration put out of scope is not missing, because it was not listed. After a change of the label
        selector only the API server knows which objects these are. So then all are left out, if it is the same cluster.

        Args:
            sets_kept: how many record sets are kept although the configuration does not want them.
            uid: see ``_identify``.
        """
        for resource, found in self._found.items():
            # 1. The parts that the list lacks, although they are in scope (``missing``) or because they are not (``unlisted``).
            missing, unlisted = found.missing, found.unlisted
            same = not missing or self._same_cluster(uid)
            if same and self._states.reselected(resource):
                missing, unlisted = {}, missing | unlisted
            # 2. Whether the absences are believed. ``earlier``: which ones of earlier lists were.
            checkpoint = self._states.listeners[resource].checkpoint
            earlier = Believed() if checkpoint is None else checkpoint.believed
            # How many deletions of a list are recorded, if a session died while it recorded that list.
            done = earlier.done(found.tombstones)
            believed = earlier.within_the_hour(self._epoch, self._states.pause_seconds) + done
            why = judge_absences(found.live, len(missing), believed, same_cluster=same, forced=self._forced)
            # Deletions that were too many once stay held, also if the cluster is larger by now, or an hour has passed.
            stays = earlier.holding and not self._forced
            # 3. What becomes of each part. ``kept``: those that are out of scope, and were held back before.
            held = {part for part, was_held in missing.items() if why or (stays and was_held)}
            gone = missing.keys() - held
            kept = {part for part, was_held in unlisted.items() if was_held and not self._forced}
            found.gone, found.held, found.left = gone | found.moved, held | kept, unlisted.keys() - kept
            # 4. What is remembered, so that the deletions of several lists within an hour count together.
            more = 0 if self._forced else len(gone)  # deletions that a person forces do not count as believed
            version = self._snapshots[resource].resource_version
            memory = earlier.begin(self._epoch, version, done, more, self._states.pause_seconds)
            holds = bool(held) and (same or stays)
            found.believed = replace(memory, holding=holds, limit=most_believed(found.live, believed))
            # 5. What is reported. Sets that a configuration no longer wants are reported with the main objects only.
            if held:
                self.note_why_held(resource, why or f"earlier lists lacked {len(held)} objects, too many at once")
            elif (kept or sets_kept) and resource in _MAIN and not self._forced:
                self.note_why_held(
                    resource,
                    f"a configuration or release would have deleted {sets_kept or len(kept)}, too many at once",
                )

    def note_why_held(self, resource: Resource, why: str) -> None:
        """Note for reports why deletions of a resource are held back."""
        release = f"kubesync resync --cluster {self._states.config.name} --force"
        self.why_held[resource] = f"{why}; `{release}` lets the deletions through"

    def asked_by_configuration(self, before: KeyState, seen: KeyState) -> bool:
        """Whether a key's deletions come from the configuration or the rules, and not from a list or an event that shows its object deleted.

        Only such deletions are counted when it is decided whether the configuration asks for too many (``Reconciler._judge_configuration``).
        True if the object lives still, or did not live before; if its kind is no longer read; or if it is out of the scope of its list
        (``Absences.left``).
        """
        main = KINDS[seen.key.kind].main
        if lives(seen) or not lives(before) or main not in self._states.listeners:
            return True
        return main in self._found and (seen.key, main_id(seen.key)) in self._found[main].left

    def _forget_places(self, gone: Iterable[StoredPart]) -> None:
        """Have the stored places of these objects deleted with the keys that lose them. A *place* says to which key an object belongs
        (``Observations``). Objects that the lists show keep theirs: they were created again, or belong to another key by now."""
        for key, part_id in sorted(gone):
            if (key.namespace, part_id.name) not in self.observed.places:
                forget = self._states.tables.state.remember_slice(key.cluster, key.namespace, part_id.name, None)
                self.observed.ordered.late[key].append(forget)

    def _without_unused_sources(self, state: KeyState) -> KeyState:
        """Drop parts of resources that are no longer read: for example Endpoints, if the cluster reads EndpointSlices now. Only ``merged``
        calls it: lists follow every change of the configuration. Until the new resource is listed, endpoints count as unknown, so what depends
        on them stays (``Planner._desired``)."""
        views = self._states.listeners
        parts = {part_id: part for part_id, part in state.parts.items() if part_id.resource in views}
        return state if len(parts) == len(state.parts) else replace(state, parts=parts)

    # --- whose cluster is this (I5) ---

    def _identify(self, services: Snapshot | None, probed: str | None) -> str | None:
        """Find out which cluster answers: the uid of its Service default/kubernetes, for ``_same_cluster``.

            the window                                              returns
            ----------                                              -------
            its list of Services shows the Service                  its uid
            that list should show it (``shows_identity``), and      "": it differs from any remembered uid, so absences are held back
              does not
            no such list, or namespace default is out of scope      ``probed``: the uid, NOT_ANSWERED, or None (unknown: taken for the same)

        Remembers the uid unless another one is remembered. A forced resync remembers any.
        """
        if services is None or not self._states.config.shows_identity:
            uid = probed
        else:
            uid = next((i.uid for i in services.items if (i.namespace, i.name) == IDENTITY[1:]), "")
        # Where the cluster lists services, only such a list may make kubesync remember an identity.
        remembers = services is not None or not self._states.config.lists_services
        known = uid if remembers and uid != NOT_ANSWERED else None
        if known and (self._states.identity is None or self._forced or known == self._states.identity):
            self._states.identity = known
            self.identity_actions = (ListenerTable.put_identity(self._states.config.name, known),)
        return uid

    def _same_cluster(self, uid: str | None) -> bool:
        """Whether this may be the remembered cluster: its uid is the remembered one, or one of the two uids is unknown."""
        return self._states.identity is None or uid is None or uid == self._states.identity


def probe_if_needed(
    states: KeyStates, content: WindowContent, ask: Callable[[], Answer[str | None]]
) -> Steps[str | None]:
    """Ask the cluster for its identity, the uid of Service default/kubernetes, if its lists do not show it. Waits for the answer.

    Returns None if the identity is not needed or cannot be known, and NOT_ANSWERED if the cluster did not answer.
    """
    listed, config = IDENTITY[0] in content.snapshots, states.config
    # Whether this window may remember the identity. If the cluster lists services, only a window with such a list may.
    remembers = listed or not config.lists_services
    # Not needed: nothing is listed; or the list itself shows the identity; or this window may only compare it, and there is none to compare with.
    if not content.snapshots or (config.shows_identity if remembers else states.identity is None):
        return None
    for left in reversed(range(_PROBES)):
        answer = ask()
        while not answer.done():
            yield _PROBE_POLL_SECONDS
        try:
            return answer.result()
        except ListenerError as error:
            logger.info("the cluster's identity cannot be read", error=error.message)
        if left:
            yield _PROBE_PAUSE_SECONDS
    return NOT_ANSWERED
