"""Records a closed window: merge with the parts, plan, and one transaction or several; checkpoints in the last (I1).

every key that changed, whole ── chunk ── chunk ── chunk + checkpoints
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import batched, chain
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.aws.audit import AuditTable, Entry
from kubesync.aws.listeners import Basis, Checkpoint, ListenerTable
from kubesync.aws.store import UPSTREAMS, Action
from kubesync.clock import Clock
from kubesync.domain.errors import ListenerError
from kubesync.domain.merge import with_observations, without_tombstones
from kubesync.domain.objects import Observation, RawEvent, Resource, ServiceKey
from kubesync.domain.state import KeyState, Name
from kubesync.domain.window import WindowContent
from kubesync.session.key_writes import MAX_CLUSTERS, NO_NOTES, Chunk, Closing, KeyWrite, Notes, chunks_of
from kubesync.session.ledger import Ledger
from kubesync.session.list_merge import KEYS_AT_A_TIME, ListMerge
from kubesync.session.planner import Planner, Tables
from kubesync.session.sightings import Sightings, sort_sightings
from kubesync.session.transactor import StaleStateError, Transactor

logger = Logger(service="kubesync", child=True)

# Windows without effect move their checkpoint at most so often (I6).
IDLE_CHECKPOINT_SECONDS: Final = 30.0
_ATTEMPTS: Final = 8
_PROBES: Final = 3
_PROBE_PAUSE_SECONDS: Final = 1.0
_NOT_ANSWERED: Final = "not answered"  # the uid of no object: what is not known is not taken for the same cluster (I5)


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

    ``observe`` parses an event; ``probe_identity`` asks the cluster for the uid of Service default/kubernetes (None: cannot
    be known; ListenerError: not now).
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


@dataclass(slots=True)
class Preview:
    """What recording would come to: states as they would be, changes, and deletions that would be held back."""

    states: dict[ServiceKey, KeyState] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    held: dict[Resource, str] = field(default_factory=dict)


class Recorder:
    """Records windows of one cluster. Every method takes the ledger's lock."""

    def __init__(self, ledger: Ledger, means: Means) -> None:
        self._ledger = ledger
        self._means = means
        self._held: dict[Resource, str] = {}
        self._probed: str | None = None
        self._doubted: set[str] = set()
        # Kept over attempts: what an attempt wrote before it failed is not seen as a change by the next one.
        self._opened: dict[ServiceKey, None] = {}
        self._heirs: dict[ServiceKey, None] = {}
        self._changed: set[ServiceKey] = set()

    def record(self, content: WindowContent, mode: Mode = Mode(), *, flush: bool = False) -> Recorded:
        """Make a window durable.

        Args:
            flush: write checkpoints now, however recent the last ones are (the session ends).

        Raises:
            NotMasterError: another master writes by now.
            StaleStateError: the table kept changing under us: try again later.
        """
        self._probed = self._probe(content)
        return self._until_fresh(lambda: self._record(content, mode, flush=flush))

    def _probe(self, content: WindowContent) -> str | None:
        """Whose cluster it is that listed endpoints alone. Asked before the lock is taken: an API server that answers slowly
        must not hold up a zone that other clusters share.
        """
        asked = content.snapshots and Resource.SERVICES not in content.snapshots and self._ledger.default_in_scope
        if not asked or self._ledger.identity is None:
            return None
        for left in reversed(range(_PROBES)):
            try:
                return self._means.probe_identity()
            except ListenerError as error:
                logger.info("the cluster's identity cannot be asked for", error=error.message)
            if left:
                self._means.clock.sleep(_PROBE_PAUSE_SECONDS)
        return _NOT_ANSWERED

    def replan(self, keys: Iterable[ServiceKey], why: str) -> Recorded:
        """Plan keys anew without news about them: heirs of a name."""
        wanted = list(keys)

        def attempt() -> Recorded:
            # The oldest first: where a name has been let go meanwhile, it is theirs.
            states = sorted(self._ledger.states(wanted).values(), key=_age)
            # As long as nothing can be planned, the notes stay: they are what a successor would find.
            known = self._ledger.listeners[Resource.SERVICES].whole
            notes = (
                Notes(late={key: self._means.tables.state.unmark_heir(key) for key in wanted}) if known else NO_NOTES
            )
            return self._commit(((s, s) for s in states), why, notes=notes)

        return self._until_fresh(attempt)

    def transform(self, pairs: Callable[[], Iterable[tuple[KeyState, KeyState]]], why: str) -> Recorded:
        """Plan given pairs of states (as stored, as they are to be seen); asked for again when they turn out stale."""
        return self._until_fresh(lambda: self._commit(pairs(), why))

    def without_conflicts(self, key: ServiceKey, free: AbstractSet[Name]) -> Recorded:
        """Plan a key anew after the foreign sets at some of its names have gone."""

        def attempt() -> Recorded:
            state = self._ledger.states([key])[key]
            left = {name: reason for name, reason in state.conflicts.items() if name not in free}
            return self._commit([(state, replace(state, conflicts=left))], "the name is free again")

        return self._until_fresh(attempt)

    def preview(self, content: WindowContent, mode: Mode) -> Preview:
        """What recording these lists would come to. Writes nothing; spoils the ledger."""
        preview = Preview()
        self._probed = self._probe(content)
        with self._ledger.lock:
            sightings, pairs, _ = self._listed(content, mode)
            planner = self._planner(mode)
            for batch in batched(pairs, KEYS_AT_A_TIME):
                preview.states |= {before.key: before for before, _ in batch}
                for write in planner.plan(batch, "resync", sightings.notes).writes:
                    preview.states[write.after.key] = write.after
                    preview.entries += write.entries
            preview.held = dict(self._held)
        return preview

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
            closing = partial(self._closing, extra=identity)
            return self._commit(pairs, "list", closing, sightings.notes, mode, flush=True)
        for resource, version in content.checkpoints.items():
            views[resource].seen_version = version
        observations = [self._means.observe(event) for event in content.events]
        if not observations:
            return self._idle(self._closing, flush=flush)
        sightings = self._sort(observations, whole=False)
        states = self._ledger.states(sightings.by_key)
        merged = self._merged(sightings, states)
        return self._commit(merged, "watch", self._closing, sightings.notes, mode, flush=flush)

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
            # Nobody saw it go back where nothing was being watched. Not so when this very list was recorded already.
            below = stored is not None and snapshot.resource_version < stored.resource_version
            again = stored is not None and stored.resource_version == content.checkpoints.get(resource)
            anew = snapshot.store_went_back or elsewhere or (below and not again)
            views[resource].generation = known + 1 if anew else max(known, 1)
            views[resource].whole, views[resource].broken = True, False
        for resource, version in content.checkpoints.items():
            views[resource].seen_version = version
        observations = [self._means.observe(event) for event in content.events]
        listed = chain.from_iterable(snapshot.items for snapshot in content.snapshots.values())
        sightings = self._sort([*listed, *observations], whole=True)
        merge = ListMerge(self._ledger, self._means.tables.state, self._probed, forced=mode.forced)
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
        afters = [with_observations(states[key], seen, generations) for key, seen in sightings.by_key.items()]
        for after in sorted(afters, key=_age):
            yield states[after.key], after

    # --- transactions ---

    def _commit(
        self,
        pairs: Iterable[tuple[KeyState, KeyState]],
        why: str,
        closing: Callable[[str], Closing] | None = None,
        notes: Notes = NO_NOTES,
        mode: Mode = Mode(),
        *,
        flush: bool = False,
    ) -> Recorded:
        planner = self._planner(mode)

        def planned() -> Iterator[KeyWrite]:
            for batch in batched(pairs, KEYS_AT_A_TIME):
                plan = planner.plan(batch, why, notes)
                # Open already, by a transaction whose answer was lost perhaps: the zones have to hear of it.
                written = {write.before.key for write in plan.writes}
                still = (before for before, _ in batch if before.opened is not None and before.key not in written)
                self._opened |= {before.key: None for before in still}
                self._heirs |= dict.fromkeys(plan.heirs)
                yield from plan.writes

        writes = planned()
        first = next(writes, None)
        if first is None:
            return self._idle(closing, flush=flush)
        room = self._means.transactor.room(MAX_CLUSTERS)
        tokens = self._means.transactor.token
        last = closing or _nothing
        for chunk in chunks_of(chain([first], writes), self._means.tables.state, tokens, room, last):
            self._run(chunk)
            self._changed |= {state.key for state in chunk.states}
            self._opened |= {state.key: None for state in chunk.states if state.opened is not None}
        return self._came_to()

    def _came_to(self) -> Recorded:
        """What has been written since the last success: transactions before a failure count as well."""
        recorded = Recorded(tuple(self._opened), tuple(self._heirs), len(self._changed), dict(self._held))
        self._opened, self._heirs, self._changed = {}, {}, set()
        return recorded

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
            self._ledger.remember(state)
        for committed in chunk.committed:
            committed()

    def _idle(self, closing: Callable[[str], Closing] | None, *, flush: bool) -> Recorded:
        """Nothing changed: move checkpoints, if it is time."""
        now = self._means.clock.monotonic()
        due = flush or any(
            view.whole and now - view.written_at >= IDLE_CHECKPOINT_SECONDS for view in self._ledger.listeners.values()
        )
        if due and closing is not None:
            chunk = Chunk(self._means.transactor.token())
            last = closing(chunk.token)
            if last.actions:
                chunk.add(last.actions, ())
                chunk.committed.append(last.committed)
                self._run(chunk)
        return self._came_to()

    def _closing(self, token: str, extra: Iterable[Action] = ()) -> Closing:
        """Checkpoints of all listeners, where they have moved; those that are not to be believed are taken back (I5)."""
        moved: dict[Resource, Checkpoint] = {}
        for resource, view in self._ledger.listeners.items():
            stored = view.checkpoint
            version = 1 if stored is None else stored.version + 1
            if view.whole and view.seen_version and not view.unsure:
                new = Checkpoint(view.seen_version, max(1, view.generation), self._ledger.basis, version)
            elif stored is not None and (view.broken or view.unsure):
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
            # Of all listeners: one that stands still must not make every window of the other write (I6).
            for view in self._ledger.listeners.values():
                view.written_at = self._means.clock.monotonic()

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


def _age(state: KeyState) -> tuple[str, ServiceKey]:
    return state.service.created_at if state.service is not None else "", state.key


def _nothing(_token: str) -> Closing:
    return Closing()
