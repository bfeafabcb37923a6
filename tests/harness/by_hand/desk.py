"""One cluster's reconciler on a DynamoDB in memory, without sockets, threads or time of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from harness.fakes.fencing import raise_fence, raise_shard_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import Call, MemoryStore
from harness.seen.builders import a_config, a_list, identity
from harness.seen.stored import StoredItems, unpacked_state
from kubesync.aws.dynamodb.store import AUDIT, Key
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.key_states import Ledger
from kubesync.cluster.keys.outcomes import Outcome, Outcomes
from kubesync.cluster.keys.planner import Tables
from kubesync.cluster.keys.reconciler import Mode, Reconciler, Recorded
from kubesync.domain.batches import units_of
from kubesync.domain.errors import ListenerError
from kubesync.domain.objects import (
    Observation,
    RawEvent,
    Resource,
    ServiceKey,
    Snapshot,
)
from kubesync.domain.plan import changes_of
from kubesync.domain.state import KeyState
from kubesync.domain.window import Window, WindowContent

USUAL = Mode()


class World(StoredItems):
    """A store and a clock that outlive sessions; ``session`` begins the next one, as a new master with a fresh ledger."""

    def __init__(self, config: ClusterConfig | None = None, *others: ClusterConfig) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(clock=self.clock)
        self.configs = [config or a_config(), *others]
        self.epoch = 0

    def session(self) -> Desk:
        self.epoch += 1
        return Desk(self)

    def writes(self) -> list[Call]:
        """Transactions and single writes so far."""
        return [call for call in self.store.calls if call.actions]

    def settled(self) -> dict[Key, dict[str, object]]:
        """What two runs have to agree about: everything but audit, and how often an item was written on the way."""
        return unpacked_state({key: item for key, item in self.store.dump().items() if key.table != AUDIT})


class Desk:
    """One session's reconcilers, one for each cluster of the world; the first is meant where none is named."""

    def __init__(self, world: World) -> None:
        self.world = world
        store, clock = world.store, world.clock
        self.listeners = ListenerTable(store)
        self.audit = AuditTable(store, f"session{world.epoch}")
        self.tables = Tables(StateTable(store), ClaimTable(store), UpstreamTable(store), self.listeners, self.audit)
        self.fenced_writer = FencedWriter(store, world.epoch, lambda: None, clock)
        self.fenced: set[str] = set()
        self.ledgers: dict[str, Ledger] = {}
        self.reconcilers: dict[str, Reconciler] = {}
        self.probed: str | ListenerError | None = None
        self._observations: list[Observation] = []
        raise_shard_fence(store, world.epoch)
        for config in world.configs:
            raise_fence(store, config.name, world.epoch)
            self.fenced.add(config.name)
            self.configure(config)
        self.outcomes = Outcomes(self.committer, clock.random, lambda keys: None)

    def configure(self, config: ClusterConfig) -> None:
        """Take a (changed) configuration, as the master does."""
        ledger = self.ledgers.setdefault(config.name, Ledger(config, self.tables.state, self.world.clock))
        ledger.identity = self.listeners.remembered([config.name])[config.name].identity
        ledger.configure(config, self.listeners.checkpoints(config.name))
        for view in ledger.listeners.values():
            view.whole = view.checkpoint is not None and view.checkpoint.basis == ledger.basis
        self.reconcilers[config.name] = self.reconciler_of(ledger)

    def committer(self, cluster: str, fenced_writer: FencedWriter | None = None) -> Committer | None:
        """Of a cluster that is known here."""
        ledger = self.ledgers.get(cluster)
        return None if ledger is None else self._committer(ledger, fenced_writer)

    def _committer(self, ledger: Ledger, fenced_writer: FencedWriter | None) -> Committer:
        return Committer(ledger, self.tables, fenced_writer or self.fenced_writer, self.world.clock, self.fenced)

    def reconciler_of(self, ledger: Ledger, fenced_writer: FencedWriter | None = None) -> Reconciler:
        """As the master makes it."""
        committer = self._committer(ledger, fenced_writer)
        return Reconciler(committer, lambda event: self._observations[int(event.line)], self._probe)

    def _probe(self) -> str | None:
        if isinstance(self.probed, ListenerError):
            raise self.probed
        return self.probed

    @property
    def ledger(self) -> Ledger:
        return self.ledgers[self.world.configs[0].name]

    @property
    def reconciler(self) -> Reconciler:
        return self.reconcilers[self.world.configs[0].name]

    def window(
        self,
        *seen: Observation,
        lists: Sequence[Snapshot] = (),
        bookmarks: Mapping[Resource, int] | None = None,
    ) -> WindowContent:
        """A closed window: lists first, then events, then bookmarks."""
        window = Window(1.0)
        for snapshot in lists:
            window.add_snapshot(snapshot, self.world.clock.monotonic())
        for observation in seen:
            window.add_events([self._raw(observation)], self.world.clock.monotonic())
        for resource, version in (bookmarks or {}).items():
            window.add_bookmark(resource, version)
        return window.close()

    def _raw(self, seen: Observation) -> RawEvent:
        self._observations.append(seen)
        line = str(len(self._observations) - 1).encode()
        kind = "DELETED" if seen.deleted else "MODIFIED"
        return RawEvent(kind, seen.resource, seen.namespace, seen.name, seen.uid, seen.resource_version, line)

    def record(
        self,
        *seen: Observation,
        lists: Sequence[Snapshot] = (),
        bookmarks: Mapping[Resource, int] | None = None,
        cluster: str = "",
        mode: Mode = USUAL,
        flush: bool = False,
    ) -> Recorded:
        reconciler = self.reconcilers[cluster] if cluster else self.reconciler
        return reconciler.record(self.window(*seen, lists=lists, bookmarks=bookmarks), mode, flush=flush)

    def begin(self, *items: Observation, slices: Sequence[Observation] = (), version: int = 10) -> Recorded:
        """The first lists of both listeners, default/kubernetes among the services."""
        return self.record(
            lists=(a_list(version, identity(), *items), a_list(version, *slices, resource=self.ledger.sources[1]))
        )

    def state(self, name: str = "web", *, cluster: str = "", namespace: str = "shop") -> KeyState:
        """As stored, read past every cache."""
        key = ServiceKey(cluster or self.world.configs[0].name, namespace, name)
        return self.tables.state.load([key])[key]

    def intended(self, name: str = "web", **where: str) -> dict[str, list[str]]:
        return {f"{k.name} {k.type}": list(s.values) for k, s in self.state(name, **where).intended.items()}

    def land(self, keys: Iterable[ServiceKey] = ()) -> None:
        """Play Route 53: whatever is open lands at once; those that were given a name are planned anew."""
        for _ in range(20):
            outcomes: list[Outcome] = []
            for cluster, ledger in self.ledgers.items():
                wanted = [key for key in keys if key.cluster == cluster] or [
                    key for key, _mark in self.tables.state.open_keys(cluster)
                ]
                for key, state in ledger.states(wanted).items():
                    changes = changes_of(state, ledger.config.policy)
                    outcomes += [Outcome(unit, landed=True) for unit in units_of(key, changes)]
            if outcomes:
                self.outcomes.close(outcomes, "landed")
            if not self.replan_heirs() and not outcomes:
                return
        raise AssertionError("it does not come to rest")

    def replan_heirs(self) -> bool:
        """Plan whoever was given a name, as a take-over does; whether there was anybody."""
        found = False
        for cluster in self.ledgers:
            heirs = self.tables.state.queued(cluster).promoted
            if heirs:
                found = True
                self.reconcilers[cluster].replan(heirs, "a name was let go")
        return found
