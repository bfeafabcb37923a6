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
from kubesync.aws.store import Action
from kubesync.clock import Clock
from kubesync.domain.merge import AbsenceVerdict, judge_absences, with_observations, without_parts, without_tombstones
from kubesync.domain.objects import Observation, RawEvent, Resource, ServiceKey, Snapshot
from kubesync.domain.state import KeyState, Name, PartId
from kubesync.domain.window import WindowContent
from kubesync.session.key_writes import Chunk, Closing, KeyWrite, chunks_of
from kubesync.session.ledger import Ledger
from kubesync.session.planner import Planner, Tables
from kubesync.session.sightings import LivePart, Sightings, absent_from, live_parts, sort_sightings
from kubesync.session.transactor import StaleStateError, Transactor

# Keys planned at a time: bounds memory on a first list; claims and states are read in batches of it.
_KEYS_AT_A_TIME: Final = 200
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
        return self._until_fresh(
            lambda: self._commit(((s, s) for s in self._ledger.states(wanted).values()), why, _nothing)
        )

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
            for batch in batched(pairs, _KEYS_AT_A_TIME):
                for write in planner.plan(batch, "resync", sightings.extras).writes:
                    entries += write.entries
        return entries, dict(self._held)

    def sweep(self) -> None:
        """Drop tombstones that no event can contradict any more (everything before the checkpoints is durable)."""
        keys = tuple(self._ledger.tombstoned)[:_KEYS_AT_A_TIME]
        if keys:
            self._until_fresh(lambda: self._sweep(keys))

    def _until_fresh(self, attempt: Callable[[], Recorded]) -> Recorded:
        with self._ledger.lock:
            for left in reversed(range(_ATTEMPTS)):
                try:
                    return attempt()
                except StaleStateError:
                    # The answer to an earlier transaction was lost, or somebody wrote by hand: read anew, plan anew.
                    self._ledger.forget()
                    self._reload_checkpoints()
                    if not left:
                        raise
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
    ) -> tuple[Sightings, Iterator[tuple[KeyState, KeyState]], list[Action]]:
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
        pairs, identity = self._against_lists(sightings, content.snapshots, mode)
        return sightings, pairs, identity

    def _sort(self, observations: Sequence[Observation], *, whole: bool) -> Sightings:
        cluster, table = self._ledger.config.name, self._means.tables.state
        slices = [(o.namespace, o.name) for o in observations if o.resource is Resource.ENDPOINTSLICES]
        if not slices:
            earlier: Mapping[tuple[str, str], str] = {}
        else:
            earlier = table.all_slices(cluster) if whole else table.services_of_slices(cluster, slices)
        return sort_sightings(cluster, observations, earlier)

    def _generations(self) -> dict[Resource, int]:
        return {resource: max(1, view.generation) for resource, view in self._ledger.listeners.items()}

    def _merged(
        self, sightings: Sightings, states: Mapping[ServiceKey, KeyState]
    ) -> Iterator[tuple[KeyState, KeyState]]:
        generations = self._generations()
        for key in sorted(sightings.by_key, key=lambda k: (sightings.created_at(k), k)):
            before = states[key]
            yield before, with_observations(before, sightings.by_key[key], generations)

    def _against_lists(
        self, sightings: Sightings, snapshots: Mapping[Resource, Snapshot], mode: Mode
    ) -> tuple[Iterator[tuple[KeyState, KeyState]], list[Action]]:
        """Pairs of all keys of the cluster, absences judged; and what to remember of the cluster's identity."""
        created: dict[ServiceKey, str] = {}
        parts: list[LivePart] = []
        for state in self._means.tables.state.load_all(self._ledger.config.name):
            created[state.key] = state.service.created_at if state.service is not None else ""
            parts += live_parts(state, snapshots)
            self._ledger.remember(state)
        for key in sightings.by_key:
            created[key] = sightings.created_at(key) or created.get(key, "")
        absent: dict[Resource, dict[ServiceKey, list[PartId]]] = {}
        verdicts: dict[Resource, AbsenceVerdict] = {}
        uid, identity = self._identity(snapshots, mode)
        for resource, snapshot in snapshots.items():
            generation = self._ledger.listeners[resource].generation
            missing = absent_from(snapshot, parts, generation)
            live = sum(1 for part in parts if part.part_id.resource is resource)
            same = not missing or self._same_cluster(uid, resource)
            verdicts[resource] = judge_absences(live, len(missing), same_cluster=same, forced=mode.forced)
            if not verdicts[resource].believed:
                self._held[resource] = verdicts[resource].reason
            by_key: dict[ServiceKey, list[PartId]] = {}
            for part in missing:
                by_key.setdefault(part.key, []).append(part.part_id)
                if resource is Resource.ENDPOINTSLICES and verdicts[resource].believed:
                    forget = self._means.tables.state.remember_slice(
                        part.key.cluster, part.key.namespace, part.part_id.name, None
                    )
                    sightings.extras[part.key].append(forget)
            absent[resource] = by_key
        order = sorted(created, key=lambda key: (created[key], key))

        def pairs() -> Iterator[tuple[KeyState, KeyState]]:
            generations = self._generations()
            for keys in batched(order, _KEYS_AT_A_TIME):
                for key, before in self._ledger.states(keys).items():
                    after = with_observations(before, sightings.by_key.get(key, ()), generations)
                    for resource, snapshot in snapshots.items():
                        gone = absent[resource].get(key, ())
                        hold = not verdicts[resource].believed
                        after = without_parts(after, gone, snapshot, generations[resource], hold=hold)
                    after = self._of_one_source(after)
                    yield before, without_tombstones(after, self._ledger.floors())

        return pairs(), identity

    def _of_one_source(self, state: KeyState) -> KeyState:
        """Parts of an endpoints source that is not used any more are dropped once the new one has listed."""
        views = self._ledger.listeners
        parts = {part_id: part for part_id, part in state.parts.items() if part_id.resource in views}
        return state if len(parts) == len(state.parts) else replace(state, parts=parts)

    # --- whose cluster is this (I5) ---

    def _identity(self, snapshots: Mapping[Resource, Snapshot], mode: Mode) -> tuple[str | None, list[Action]]:
        services = snapshots.get(Resource.SERVICES)
        if services is None or self._ledger.config.namespace not in (None, "default"):
            return None, []
        uid = next((i.uid for i in services.items if (i.namespace, i.name) == ("default", "kubernetes")), "")
        if uid and (self._ledger.identity is None or (mode.forced and uid != self._ledger.identity)):
            self._ledger.identity = uid
            return uid, [self._means.listeners.put_identity(self._ledger.config.name, uid)]
        return uid, []

    def _same_cluster(self, uid: str | None, resource: Resource) -> bool:
        remembered = self._ledger.identity
        if remembered is None or self._ledger.config.namespace not in (None, "default"):
            return True
        if uid is None and resource is not Resource.SERVICES:
            probed = self._means.probe_identity()
            return probed is None or probed == remembered
        return uid == remembered

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
            for batch in batched(pairs, _KEYS_AT_A_TIME):
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
