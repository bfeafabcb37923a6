"""Records a closed window: merge with the parts, plan, and one transaction or several; checkpoints in the last (I1).

every key that changed, whole ── chunk ── chunk ── chunk + checkpoints
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import batched, chain
from typing import Final

from kubesync.aws.audit import AuditTable, Entry
from kubesync.aws.listeners import Basis, Checkpoint, ListenerTable
from kubesync.aws.store import UPSTREAMS, Action
from kubesync.clock import Clock
from kubesync.domain.merge import with_observations, without_tombstones
from kubesync.domain.objects import Observation, RawEvent, Resource, ServiceKey
from kubesync.domain.state import KeyState, Name
from kubesync.domain.window import WindowContent
from kubesync.session.key_writes import Chunk, Closing, KeyWrite, chunks_of
from kubesync.session.ledger import Ledger
from kubesync.session.list_merge import KEYS_AT_A_TIME, ListMerge
from kubesync.session.planner import Planner, Tables
from kubesync.session.sightings import Sightings, sort_sightings
from kubesync.session.transactor import StaleStateError, Transactor

# Windows without effect move their checkpoint at most so often (I6).
IDLE_CHECKPOINT_SECONDS: Final = 30.0
_ATTEMPTS: Final = 8
# Fence checks of other clusters whose keys inherit a name.
_FOREIGN_FENCES: Final = 4


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a window came to: keys that are open now, heirs to be planned, how many keys changed, what was held back."""

    opened: tuple[ServiceKey, ...] = ()
    heirs: tuple[ServiceKey, ...] = ()
    changed: int = 0
    held: Mapping[Resource, str] | None = None


@dataclass(frozen=True, slots=True)
class Means:
    """What recording needs besides the ledger.

    ``observe`` parses an event; ``probe_identity`` asks the cluster for the uid of Service default/kubernetes (None: cannot be known).
    """

    transactor: Transactor
    tables: Tables
    listeners: ListenerTable
    audit: AuditTable
    clock: Clock
    fenced_here: AbstractSet[str]
    observe: Callable[[RawEvent], Observation]
    probe_identity: Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class Mode:
    """How a list is taken: ``forced`` lets held deletions through; ``distrust_upstreams`` looks at what stands in the table."""

    forced: bool = False
    distrust_upstreams: bool = False


class Recorder:
    """Records windows of one cluster. Every method takes the ledger's lock."""

    def __init__(self, ledger: Ledger, means: Means) -> None:
        self._ledger = ledger
        self._means = means
        self._held: dict[Resource, str] = {}
        self._doubted: set[str] = set()

    def record(self, content: WindowContent, mode: Mode = Mode(), *, flush: bool = False) -> Recorded:
        """Make a window durable.

        Args:
            flush: write checkpoints now, however recent the last ones are (the session ends).

        Raises:
            NotMasterError: another master writes by now.
            StaleStateError: the table kept changing under us: try again later.
        """
        return self._until_fresh(lambda: self._record(content, mode, flush=flush))

    def replan(self, keys: Iterable[ServiceKey], why: str) -> Recorded:
        """Plan keys anew without news about them: heirs of a name."""
        wanted = list(keys)

        def attempt() -> Recorded:
            notes = {key: self._means.tables.state.unmark_heir(key) for key in wanted}
            return self._commit(((s, s) for s in self._ledger.states(wanted).values()), why, _nothing, notes)

        return self._until_fresh(attempt)

    def transform(self, pairs: Callable[[], Iterable[tuple[KeyState, KeyState]]], why: str) -> Recorded:
        """Plan given pairs of states (as stored, as they are to be seen); asked for again when they turn out stale."""
        return self._until_fresh(lambda: self._commit(pairs(), why, _nothing))

    def without_conflicts(self, key: ServiceKey, free: AbstractSet[Name]) -> Recorded:
        """Plan a key anew after the foreign sets at some of its names have gone."""

        def attempt() -> Recorded:
            state = self._ledger.states([key])[key]
            left = {name: reason for name, reason in state.conflicts.items() if name not in free}
            return self._commit([(state, replace(state, conflicts=left))], "the name is free again", _nothing)

        return self._until_fresh(attempt)

    def preview(self, content: WindowContent, mode: Mode) -> tuple[list[Entry], dict[Resource, str]]:
        """What recording these lists would change, and what would be held back. Writes nothing; spoils the ledger."""
        with self._ledger.lock:
            sightings, pairs, _ = self._listed(content, mode)
            planner = self._planner(mode)
            entries: list[Entry] = []
            for batch in batched(pairs, KEYS_AT_A_TIME):
                for write in planner.plan(batch, "resync", sightings.extras).writes:
                    entries += write.entries
        return entries, dict(self._held)

    def sweep(self) -> None:
        """Drop tombstones that no event can contradict any more (everything before the checkpoints is durable)."""
        keys = tuple(self._ledger.tombstoned)[:KEYS_AT_A_TIME]
        if keys:
            self._until_fresh(lambda: self._sweep(keys))

    def _until_fresh(self, attempt: Callable[[], Recorded]) -> Recorded:
        with self._ledger.lock:
            for left in reversed(range(_ATTEMPTS)):
                try:
                    recorded = attempt()
                except StaleStateError as stale:
                    # The answer to an earlier transaction was lost, or somebody wrote by hand: read anew, plan anew.
                    self._ledger.forget()
                    self._doubted |= {place.partition for place in stale.places if place.table == UPSTREAMS}
                    self._reload_checkpoints()
                    if not left:
                        raise
                else:
                    self._doubted.clear()
                    return recorded
        raise AssertionError

    # --- one window ---

    def _record(self, content: WindowContent, mode: Mode, *, flush: bool) -> Recorded:
        self._held = {}
        views = self._ledger.listeners
        if content.snapshots:
            sightings, pairs, identity = self._listed(content, mode)
            return self._commit(
                pairs, "list", lambda token: self._closing(token, identity), sightings.extras, mode, flush=True
            )
        for resource, version in content.checkpoints.items():
            views[resource].seen_version = version
        observations = [self._means.observe(event) for event in content.events]
        if not observations:
            return self._idle(flush=flush)
        sightings = self._sort(observations, whole=False)
        states = self._ledger.states(sightings.by_key)
        merged = self._merged(sightings, states)
        return self._commit(merged, "watch", self._closing, sightings.extras, mode, flush=flush)

    def _listed(
        self, content: WindowContent, mode: Mode
    ) -> tuple[Sightings, Iterator[tuple[KeyState, KeyState]], tuple[Action, ...]]:
        """Take complete lists, and the events after them, against everything that is stored."""
        self._held = {}
        views = self._ledger.listeners
        for resource, snapshot in content.snapshots.items():
            stored = views[resource].checkpoint
            known = stored.generation if stored is not None else 0
            elsewhere = stored is not None and stored.basis.server != self._ledger.config.server
            views[resource].generation = known + 1 if snapshot.store_went_back or elsewhere else max(known, 1)
            views[resource].whole = True
        for resource, version in content.checkpoints.items():
            views[resource].seen_version = version
        observations = [self._means.observe(event) for event in content.events]
        listed = chain.from_iterable(snapshot.items for snapshot in content.snapshots.values())
        sightings = self._sort([*listed, *observations], whole=True)
        merge = ListMerge(self._ledger, self._means.tables.state, self._means.probe_identity, forced=mode.forced)
        pairs = merge.pairs(sightings, content.snapshots)
        self._held = merge.held
        return sightings, pairs, merge.identity_actions

    def _sort(self, observations: Sequence[Observation], *, whole: bool) -> Sightings:
        cluster, table = self._ledger.config.name, self._means.tables.state
        slices = [(o.namespace, o.name) for o in observations if o.resource is Resource.ENDPOINTSLICES]
        if not slices:
            earlier: Mapping[tuple[str, str], str] = {}
        else:
            earlier = table.all_slices(cluster) if whole else table.services_of_slices(cluster, slices)
        return sort_sightings(cluster, observations, earlier)

    def _merged(
        self, sightings: Sightings, states: Mapping[ServiceKey, KeyState]
    ) -> Iterator[tuple[KeyState, KeyState]]:
        generations = self._ledger.generations()
        for key in sorted(sightings.by_key, key=lambda k: (sightings.created_at(k), k)):
            before = states[key]
            yield before, with_observations(before, sightings.by_key[key], generations)

    # --- transactions ---

    def _commit(
        self,
        pairs: Iterable[tuple[KeyState, KeyState]],
        why: str,
        closing: Callable[[str], Closing],
        extras: Mapping[ServiceKey, Sequence[Action]] | None = None,
        mode: Mode = Mode(),
        *,
        flush: bool = False,
    ) -> Recorded:
        planner = self._planner(mode)
        heirs: list[ServiceKey] = []

        def planned() -> Iterator[KeyWrite]:
            for batch in batched(pairs, KEYS_AT_A_TIME):
                plan = planner.plan(batch, why, extras or {})
                heirs.extend(plan.heirs)
                yield from plan.writes

        writes = planned()
        first = next(writes, None)
        if first is None:
            idle = self._idle(flush=flush)
            return replace(idle, heirs=tuple(dict.fromkeys(heirs)), held=dict(self._held))
        opened: dict[ServiceKey, None] = {}
        changed: set[ServiceKey] = set()
        room = self._means.transactor.room(1 + _FOREIGN_FENCES)
        tokens = self._means.transactor.token
        for chunk in chunks_of(chain([first], writes), self._means.tables.state, tokens, room, closing):
            self._run(chunk)
            changed |= {state.key for state in chunk.states}
            opened |= {state.key: None for state in chunk.states if state.opened is not None}
        return Recorded(tuple(opened), tuple(dict.fromkeys(heirs)), len(changed), dict(self._held))

    def _planner(self, mode: Mode) -> Planner:
        return Planner(
            self._ledger,
            self._means.tables,
            self._means.clock.epoch,
            self._means.fenced_here,
            removing=self._ledger.config.deleting,
            distrust_upstreams=mode.distrust_upstreams,
            doubted=frozenset(self._doubted),
        )

    def _run(self, chunk: Chunk) -> None:
        transactor = self._means.transactor
        actions = list(chunk.actions)
        if chunk.entries:
            entries = [entry for _, entry in chunk.entries]
            now = self._means.clock.epoch()
            name = self._ledger.config.name
            actions.append(self._means.audit.changes(name, entries, transactor.epoch, now, chunk.token))
        transactor.run({self._ledger.config.name, *chunk.clusters}, actions, chunk.token)
        for state in chunk.states:
            self._ledger.store(state)
        for committed in chunk.committed:
            committed()

    def _idle(self, *, flush: bool) -> Recorded:
        """Nothing changed: move checkpoints, if it is time."""
        now = self._means.clock.monotonic()
        due = flush or any(
            view.whole and now - view.written_at >= IDLE_CHECKPOINT_SECONDS for view in self._ledger.listeners.values()
        )
        if due:
            chunk = Chunk(self._means.transactor.token())
            closing = self._closing(chunk.token)
            if closing.actions:
                chunk.actions += closing.actions
                chunk.committed.append(closing.committed)
                self._run(chunk)
        return Recorded(held=dict(self._held))

    def _closing(self, token: str, extra: Iterable[Action] = ()) -> Closing:
        """Checkpoints of all listeners, where they have moved; broken ones are taken back (I5)."""
        moved: dict[Resource, Checkpoint] = {}
        for resource, view in self._ledger.listeners.items():
            stored = view.checkpoint
            version = 1 if stored is None else stored.version + 1
            if view.whole and view.seen_version:
                new = Checkpoint(view.seen_version, max(1, view.generation), self._ledger.basis, version)
            elif stored is not None and not view.whole:
                new = Checkpoint(stored.resource_version, stored.generation, Basis(0, stored.basis.server, 0), version)
            else:
                continue
            if stored is None or replace(new, version=stored.version) != stored:
                moved[resource] = new
        name, table = self._ledger.config.name, self._means.listeners
        actions = [table.put_checkpoint(name, resource, new, token) for resource, new in moved.items()]

        def committed() -> None:
            for resource, new in moved.items():
                self._ledger.listeners[resource].checkpoint = new
                self._ledger.listeners[resource].written_at = self._means.clock.monotonic()

        return Closing((*extra, *actions), committed)

    def _sweep(self, keys: Iterable[ServiceKey]) -> Recorded:
        states = self._ledger.states(keys)
        floors = self._ledger.floors()
        swept = [(state, without_tombstones(state, floors)) for state in states.values()]
        writes = [KeyWrite(before, after) for before, after in swept if before is not after]
        room = self._means.transactor.room(1)
        for chunk in chunks_of(writes, self._means.tables.state, self._means.transactor.token, room):
            self._run(chunk)
        return Recorded()

    def _reload_checkpoints(self) -> None:
        stored = self._means.listeners.checkpoints(self._ledger.config.name)
        for resource, view in self._ledger.listeners.items():
            view.checkpoint = stored.get(resource)


def _nothing(_token: str) -> Closing:
    return Closing()
