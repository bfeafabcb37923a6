"""Records a closed window: merge with the parts, plan, and one transaction or several; checkpoints in the last (I1).

every key that changed, oldest first ── section ── section ── section + checkpoints (``commit``)
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set as AbstractSet
from functools import partial
from itertools import batched, chain
from typing import Final

from kubesync.actors.actor import Steps
from kubesync.actors.answer import Answer
from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.control.listeners import Basis
from kubesync.cluster.claims.allowed_names import names_asked, namespaces_apart
from kubesync.cluster.keys.committer import Change, Committer, Pair
from kubesync.cluster.keys.key_states import KEYS_AT_A_TIME, size_of
from kubesync.cluster.keys.key_writes import NO_WRITES, Ending, KeyWrite, OrderedWrites, Planned, Preview, Recorded
from kubesync.cluster.keys.list_diff import ListMerge, probe_if_needed
from kubesync.cluster.keys.observations import Following, Observations, sort_observations
from kubesync.cluster.keys.planner import Planner
from kubesync.cluster.ports import Connector
from kubesync.domain.dns.records import RecordKey
from kubesync.domain.large_keys import LARGE
from kubesync.domain.merge import GUARD_SHARE, too_many, with_observations, without_tombstones
from kubesync.domain.objects import ObjectKey, Observation, Resource
from kubesync.domain.plan import Policy, remaining_sets
from kubesync.domain.sources.registry import SOURCES, created_at
from kubesync.domain.state import KeyState
from kubesync.domain.window import Mode, Turns, WindowContent

# How far apart checkpoints are. After a crash, the events since the last one are read again, and change nothing (I1, I6).
CHECKPOINT_SECONDS: Final = 30.0
# The same while only bookmarks come: an API server forgets old versions only if something happens.
_QUIET_CHECKPOINT_SECONDS: Final = 120.0
_PARSED_AT_A_TIME: Final = 500
_SWEPT_AT_A_TIME: Final = 200
_USUAL: Final = Mode()


class Reconciler:
    """Records what happens to the keys of one cluster, under its configuration of the moment. Its methods are steps of the cluster's actor."""

    def __init__(self, committer: Committer, connector: Connector) -> None:
        self._committer = committer
        self._states = committer.states
        self._clock = clock = committer.clock
        self._connector = connector
        # Makes a planner. Each section gets a new one, because what a planner has read is not valid for longer.
        self._planner = partial(
            Planner,
            committer.states,
            clock.epoch_seconds,
            untrusted=committer.untrusted,
            dependents=committer.dependents,
        )
        # How many record sets lists of this session took away because the configuration, or the rules, do not want them. Checkpoints count
        # this too (``KeyStates.unwanted``), but they can be made invalid.
        self._gone = Counter[Basis]()
        self._checkpoints_at = 0.0  # when (monotonic) checkpoints were written last
        self._quiet = False  # only bookmarks have come since then

    def record(
        self,
        content: WindowContent,
        mode: Mode = _USUAL,
        *,
        flush: bool = False,
        following: Following | None = None,
    ) -> Steps[Recorded]:
        """Make a window durable, and the windows that close while this takes long.

        Args:
            flush: write checkpoints now, however recent the last ones are, because the session ends.
            following: takes in the next windows, and is told what is written.

        Raises:
            NotMasterError: another master writes by now.
            StaleStateError: the table kept changing: try again later.
        """
        following = following or Following()  # takes in nothing
        if content.snapshots:
            return (yield from self._record_lists(content, mode, following))
        self._note_versions(content)
        self._quiet = self._quiet and not content.events
        observed = self._sort((yield from self._parsed(content)), {})
        generations = self._states.generations()

        def see(state: KeyState) -> KeyState:
            return with_observations(state, self._states.taken_in(state.key, observed.of(state.key)), generations)

        self._line_up(following.turns, observed, see, content.opened_at)
        planner = partial(self._planner, reread_upstreams=mode.reread_upstreams)
        plan = partial(_plan, planner, "watch", observed.ordered)
        ending = partial(self._ending, observed, flush=flush)
        more = partial(self._take_in_next, following, observed, see)
        change = Change(
            following.turns.keys, see, plan, ending, frozenset(), observed.of, more=more, written=following.written
        )
        recorded = Recorded()
        yield from self._committer.commit(change, recorded)
        return recorded

    def replan(self, keys: Iterable[ObjectKey], why: str, recorded: Recorded) -> Steps[None]:
        """Plan keys again although nothing new was seen of them, for example because they were given a name. Then remove their durable marks, which
        say "plan this key".

        Adds what was written to ``recorded``, also if this raises.
        """
        wanted = self._by_age(keys)
        # Marks are read before claims: a key that is given a name from now on gets a new mark, which is not removed here.
        marks = OrderedWrites(unmark=self._states.tables.state.unmark_to_plan(self._states.config.name, wanted))
        plan = partial(_plan, self._planner, why, marks)
        yield from self._committer.commit(Change(wanted, lambda state: state, plan), recorded)

    def transform(
        self, keys: Iterable[ObjectKey], see: Callable[[KeyState], KeyState | None], why: str, recorded: Recorded
    ) -> Steps[None]:
        """Change stored states by ``see``, and plan the keys: after a comparison with the zone, a check of conflicts or a recovery, or to empty a
        cluster that is removed. ``see`` returns None for a key to leave alone. ``recorded``: see ``replan``."""
        plan = partial(_plan, self._planner, why, NO_WRITES)
        yield from self._committer.commit(Change(self._by_age(keys), see, plan), recorded)

    def preview(self, content: WindowContent, mode: Mode, go_on: Callable[[], None] = lambda: None) -> Preview:
        """Find out what recording these lists would change. Writes nothing, but changes the key states: use these for nothing else.

        Args:
            go_on: called between two steps. Raises to stop the preview.
        """
        preview = Preview()
        for pause in self._preview(content, mode, preview):
            go_on()
            if pause:
                self._clock.sleep(pause)
        return preview

    def _preview(self, content: WindowContent, mode: Mode, preview: Preview) -> Steps[None]:
        merge = yield from self._compare_lists(content, mode)
        yield from self._judge_configuration(merge, content.snapshots.keys(), note=False)
        self._states.counts.corrections()  # counts as the keys say; they are not written
        listed = content.snapshots.keys()
        # One planner for all sections: nothing is written, so each section needs to know what those before it would have written.
        planner = self._planner(reread_upstreams=mode.reread_upstreams, listed=listed, hold=merge.hold)
        plan = partial(planner.plan, why="resync", ordered=merge.observed.ordered)
        change = Change([*merge.names], merge.merged, plan, listed=listed, observations=merge.observed.of)
        yield from self._committer.foresee(change, preview.add)
        preview.held = dict(merge.why_held)

    def sweep(self) -> Steps[None]:
        """Drop tombstones that no event can contradict any more: those not newer than the checkpoints. Of at most _SWEPT_AT_A_TIME keys.

        The keys are not planned: what they want does not depend on tombstones.
        """
        swept = tuple(self._states.tombstoned)[:_SWEPT_AT_A_TIME]
        change = Change(swept, lambda state: without_tombstones(state, self._states.floors()), _as_seen, outputs=False)
        yield from self._committer.commit(change, Recorded())

    # --- one window ---

    def _record_lists(self, content: WindowContent, mode: Mode, following: Following) -> Steps[Recorded]:
        """Record complete lists and the events after them.

        compare with everything that is stored ── hold back deletions that are too many ── note the believed deletions ── correct the counts
        of names ── commit all keys ── the views are complete
        """
        merge = yield from self._compare_lists(content, mode)
        yield from self._judge_configuration(merge, content.snapshots.keys(), note=True)
        # How many sets go because the configuration does not want them. If ``hold`` is True they are kept, if it is False a person forces their
        # deletion: neither counts towards "too many".
        gone = merge.unwanted if merge.hold is None else 0
        # The number is of all lists together, so only one listener has it.
        for at, resource in enumerate(content.snapshots):
            self._states.listeners[resource].unwanted = 0 if at else gone
        # Before any key is written: the next session must find what this one believes, also if this one dies meanwhile.
        yield from self._committer.begin_lists(merge.believed)
        yield from self._committer.write_counts(self._states.counts.corrections)
        self._states.counts.done()
        # All keys are committed, because any of them may miss an object in the lists.
        resources, why = content.snapshots.keys(), "resync" if mode.reread_upstreams else "list"
        planner = partial(self._planner, reread_upstreams=mode.reread_upstreams, listed=resources, hold=merge.hold)
        plan = partial(_plan, planner, why, merge.observed.ordered)
        ending = partial(self._ending, merge.observed, listed=resources, extra=merge.identity_actions)
        fair = namespaces_apart(self._states.rules)  # then namespaces take turns
        # ``merge.names`` gives the keys, the oldest first, and the names that each asks for.
        following.turns.add(merge.names, merge.names, content.opened_at or 0.0, fair=fair)
        more, written = partial(self._take_in_next, following, merge.observed, merge.merged), following.written
        change = Change(
            following.turns.keys, merge.merged, plan, ending, resources, merge.observed.of, more=more, written=written
        )
        recorded = Recorded(held=merge.why_held, missed=merge.missed)
        yield from self._committer.commit(change, recorded)
        for resource in resources:  # only now, after every key is merged with the lists (I5)
            view = self._states.listeners[resource]
            view.complete = not view.expired
        self._gone[self._states.basis] += gone
        return recorded

    def _judge_configuration(self, merge: ListMerge, resources: AbstractSet[Resource], *, note: bool) -> Steps[None]:
        """Hold back deletions that a changed configuration, or new rules, ask for, if they are too many and nobody has confirmed them (I5).

        Sets ``merge.hold`` and ``merge.unwanted``. Plans all keys to count the deletions, and writes nothing. ``note``: see ``Committer.foresee``.
        """
        config = self._states.config
        # Nothing to judge: a person forces the deletions, the configuration is as it was for the last lists, or the policy deletes nothing.
        if merge.hold is not None or not merge.reread or config.policy is not Policy.SYNC:
            return
        # By key, because keys may be planned again, the numbers of its record sets: all; those that the configuration, or the rules, do not want
        # any more; and of these, those that are not held back already.
        counts: dict[ObjectKey, tuple[int, int, int]] = {}
        planner = self._planner(listed=resources)

        def count(pairs: Sequence[Pair]) -> Planned:
            for (before, seen), surplus in zip(pairs, planner.unwanted(pairs), strict=True):
                asked = surplus if merge.asked_by_configuration(before, seen) else frozenset[RecordKey]()
                counts[seen.key] = len(remaining_sets(seen)), len(asked), len(asked - seen.kept)
            return Planned(())

        change = Change([*merge.names], merge.merged, count, listed=resources, observations=merge.observed.of)
        yield from self._committer.foresee(change, lambda _pairs, _planned: None, note=note)
        # The sums over all keys, 0 without keys.
        sets, unwanted, merge.unwanted = map(sum, zip((0, 0, 0), *counts.values(), strict=True))
        # Earlier lists under this configuration count, too: else each of several lists could delete just less than too many.
        gone = max(self._states.unwanted, self._gone[self._states.basis])
        # A person has confirmed so many.
        allowed = self._states.allowed_deletions(resources)
        if merge.unwanted and merge.unwanted + gone > allowed and too_many(sets, unwanted, gone):
            merge.hold = True
            why = f"the configuration, or a new release, would delete {unwanted} of {sets} record sets, more than {GUARD_SHARE:.0%}"
            for resource in resources:
                merge.note_why_held(resource, why)

    def _compare_lists(self, content: WindowContent, mode: Mode) -> Steps[ListMerge]:
        """Compare complete lists with everything that is stored. Writes nothing.

        First asks the cluster who it is, if the lists do not say so: another cluster at the same address lacks all objects (I5).
        """
        probed = yield from probe_if_needed(self._states, content, self._ask_identity)
        self._states.begin_generations(content)
        self._note_versions(content)
        observations = yield from self._parsed(content)
        items = chain.from_iterable(snapshot.items for snapshot in content.snapshots.values())
        observed = self._sort([*items, *observations], {}, every_slice=True)
        merge = ListMerge(self._states, content, observed, self._clock.epoch_seconds(), forced=mode.forced)
        yield from merge.compare(probed)
        return merge

    def _ask_identity(self) -> Answer[str | None]:
        """Ask the cluster for the uid of Service default/kubernetes, which tells clusters apart. Asks in a thread of its own, because a cluster that
        does not answer would block the actor. The answer None: it cannot be known.
        """
        config, answer = self._states.config, Answer[str | None](self._clock)
        identify = partial(answer.fulfil, partial(self._connector.identity, config))
        self._clock.thread(f"{config.name}/identity", identify).start()
        return answer

    def _parsed(self, content: WindowContent) -> Steps[list[Observation]]:
        """Parse the events of a window, some at a time: between two times the actor can answer messages."""
        observations: list[Observation] = []
        for some in batched(content.events, _PARSED_AT_A_TIME):
            if observations:
                yield 0.0
            observations += map(partial(self._connector.observe, self._states.config), some)
        return observations

    def _note_versions(self, content: WindowContent) -> None:
        """Note up to which version this window has taken the events of each listener."""
        for resource, version in content.checkpoints.items():
            self._states.listeners[resource].seen_version = version

    def _take_in_next(
        self, following: Following, observed: Observations, see: Callable[[KeyState], KeyState], recorded: int
    ) -> Steps[None]:
        """Run other tasks between two sections, and take in the next window if it is due and holds no list.

        Keys of that window are recorded after those that wait. ``recorded``: how many keys of ``following.turns`` are recorded.
        """
        following.turns.recorded = recorded
        yield from following.run_other_tasks()
        if (content := following.take_next_window()) is not None:
            later = self._sort((yield from self._parsed(content)), observed.places)
            self._note_versions(content)
            observed.add(later)
            self._line_up(following.turns, later, see, content.opened_at)

    def _line_up(
        self, turns: Turns, observed: Observations, see: Callable[[KeyState], KeyState], since: float | None
    ) -> None:
        """Add keys to those that wait, the oldest first.

        Namespaces take turns if the keys fill more than one section. In a window of one section, age alone decides the order.
        """
        states, fair = self._states, namespaces_apart(self._states.rules)
        # By key: its age, which sorts, and the names for which it matters who is planned first.
        ages: dict[ObjectKey, tuple[str, ObjectKey]] = {}
        names: dict[ObjectKey, AbstractSet[str]] = {}
        size = 0
        for state in states.each(observed.by_key):
            seen = see(state)
            ages[state.key] = _age(seen)
            names[state.key] = names_asked(state, seen, states.rules) if fair else frozenset()
            size += max(states.size(state.key), size_of(part.value for part in seen.parts.values()))
        # Too many keys for one section, too large together, or behind keys that still wait.
        long = len(ages) > KEYS_AT_A_TIME or size > LARGE or len(turns.keys) > turns.recorded
        turns.add(sorted(ages, key=ages.__getitem__), names, since or 0.0, fair=fair and long)

    def _sort(
        self, observations: Sequence[Observation], places: Mapping[tuple[str, str], str], *, every_slice: bool = False
    ) -> Observations:
        """Group observations by key. The key of most objects has their name. An EndpointSlice names its Service itself, and may move to another one:
        so this reads to which Service each such object belonged before.

        Args:
            places: these objects as earlier observations of the same window left them (``Observations``). They are newer than the tables.
            every_slice: read the stored Services of all slices at once, for a complete list.
        """
        cluster, table = self._states.config.name, self._states.tables.state
        # Of a resource with ``Source.owner``, objects may move.
        moving = [(o.namespace, o.name) for o in observations if SOURCES[o.resource].owner is not None]
        if not moving:
            earlier: Mapping[tuple[str, str], str] = {}
        else:
            earlier = dict(table.all_slices(cluster)) if every_slice else table.services_of_slices(cluster, moving)
        return sort_observations(cluster, observations, {**earlier, **places})

    def _by_age(self, keys: Iterable[ObjectKey]) -> list[ObjectKey]:
        """These keys, the oldest first: the first of several keys that want a free name gets it."""
        ages = {state.key: _age(state) for state in self._states.each(keys)}
        return sorted(ages, key=ages.__getitem__)

    # --- transactions ---

    def _checkpoints_due(self) -> bool:
        """Whether checkpoints have to be written: one is wrong, or the last ones are old."""
        # An API server forgets old versions only while objects change. So while all is quiet, an older checkpoint is good enough. A listener
        # of some namespaces does not see changes in the others, so it cannot know.
        quiet = self._quiet and self._states.config.scope.everything
        wrong = any(view.checkpoint_is_wrong for view in self._states.listeners.values())
        return wrong or self._old(_QUIET_CHECKPOINT_SECONDS if quiet else CHECKPOINT_SECONDS)

    def _old(self, seconds: float) -> bool:
        """Whether the last checkpoints were written so many seconds ago, or earlier."""
        listening = any(view.complete for view in self._states.listeners.values())
        return listening and self._checkpoints_at <= self._clock.monotonic() - seconds

    def _ending(
        self,
        observed: Observations,
        token: str,
        left: Sequence[ObjectKey],
        *,
        listed: Collection[Resource] = (),
        extra: Iterable[Action] = (),
        flush: bool = False,
    ) -> Ending:
        """Make the actions that write changed checkpoints, and what to do once they are written. Called at the end of each section.

        the transaction        when                      the checkpoint of a listener                  also
        ---------------        ----                      ----------------------------                  ----
        is the last one        they are due; of a list   its newest version                            ``extra``
                                 or ``flush``: always
        is followed by others  every CHECKPOINT_SECONDS  below the oldest unrecorded event; none if    -
                                                           its list is being recorded (``listed``)

        Args:
            left: the keys that are not recorded with this transaction. Empty: it is the last one.
            listed: resources whose complete lists are being recorded. Empty: a window of events.
            extra: actions that belong to the end of the lists.
        """
        # The column "when" of the table.
        due = self._old(CHECKPOINT_SECONDS) if left else listed or flush or self._checkpoints_due()
        if not due:
            return Ending()
        # By resource, the version of the oldest unrecorded event: its checkpoint stays below. 0: its list is not recorded yet, so it stays where
        # it is.
        below = dict.fromkeys(listed if left else (), 0)
        for seen in chain.from_iterable(map(observed.of, left)):
            below[seen.resource] = min(below.get(seen.resource, seen.resource_version), seen.resource_version)
        # The lists are recorded with the last transaction, and not before.
        complete, extra = (frozenset[Resource](), ()) if left else (frozenset(listed), extra)
        moved = self._states.checkpoints(complete, below, self._clock.epoch_seconds())
        name, table = self._states.config.name, self._states.tables.listeners
        actions = [table.put_checkpoint(name, resource, new, token) for resource, new in moved.items()]

        def committed() -> None:
            for resource, new in moved.items():
                self._states.listeners[resource].checkpoint = new
            # Also if no checkpoint has moved: else every window without news would look for one that has (I6).
            self._quiet, self._checkpoints_at = True, self._clock.monotonic()

        return Ending((*extra, *actions), committed, frozenset({name}))


def _plan(planner: Callable[[], Planner], why: str, ordered: OrderedWrites, pairs: Sequence[Pair]) -> Planned:
    """Plan the keys of a section. ``why``, ``ordered``: see ``Planner.plan``."""
    return planner().plan(pairs, why, ordered)


def _as_seen(pairs: Sequence[Pair]) -> Planned:
    """Plan to write keys as they are seen, without planning their outputs."""
    return Planned(tuple(KeyWrite(before, after) for before, after in pairs if before is not after))


def _age(state: KeyState) -> tuple[str, ObjectKey]:
    return created_at(state), state.key
