"""One cluster's reconciler on a DynamoDB in memory, without sockets, threads or time of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.fakes.fencing import raise_fence, raise_shard_fence
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import Call, MemoryStore, NoFaults
from harness.seen.stored import StoredItems
from kubesync.aws.dynamodb.store import AUDIT, CONTROL, STATE, Item, Key
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.state_codec import unpack
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.key_states import Ledger
from kubesync.cluster.keys.outcomes import Outcome, Outcomes
from kubesync.cluster.keys.planner import Tables
from kubesync.cluster.keys.reconciler import Mode, Reconciler, Recorded
from kubesync.domain.batches import units_of
from kubesync.domain.errors import ListenerError
from kubesync.domain.objects import (
    EndpointsObject,
    Observation,
    RawEvent,
    Resource,
    Service,
    ServiceKey,
    Snapshot,
)
from kubesync.domain.plan import changes_of
from kubesync.domain.state import KeyState
from kubesync.domain.window import Window, WindowContent

SERVICES, SLICES, ENDPOINTS = Resource.SERVICES, Resource.ENDPOINTSLICES, Resource.ENDPOINTS
USUAL = Mode()
IDENTITY = "uid-of-default-kubernetes"


class CrashError(Exception):
    """The process dies here."""


class DiesAt:
    """Faults for ``MemoryStore``: the process dies at its n-th transaction (from 1), before or after its effect."""

    def __init__(self, transaction: int, *, after: bool) -> None:
        self._left = transaction
        self._after = after

    def before(self, call: Call) -> None:
        if call.operation == "transact_write_items":
            self._left -= 1
            if self._left == 0 and not self._after:
                raise CrashError

    def after(self, call: Call) -> None:
        if call.operation == "transact_write_items" and self._left == 0 and self._after:
            raise CrashError


def a_config(**changes: Any) -> ClusterConfig:
    """Cluster ``prod``, domain ``prod.example.com``, zone ``Z1`` = ``example.com``, TTL 60."""
    fields: dict[str, Any] = {
        "name": "prod",
        "server": "https://prod.test:6443",
        "domain": f"{changes.get('name', 'prod')}.example.com",
        "zones": (ZoneReference(id="Z1", name="example.com"),),
        "ttl": 60,
        "revision": 1,
    }
    return ClusterConfig(**{**fields, **changes})


def saw(
    value: Service | EndpointsObject | None,
    version: int,
    name: str = "web",
    *,
    uid: str = "",
    deleted: bool = False,
    problem: str | None = None,
    namespace: str = "shop",
    resource: Resource | None = None,
) -> Observation:
    """An object of namespace ``shop`` as seen at a version; its uid is ``u-<name>`` unless told otherwise."""
    if resource is None:
        resource = SLICES if isinstance(value, EndpointsObject) else SERVICES
    return Observation(resource, namespace, name, uid or f"u-{name}", version, deleted, value, problem)


def identity(version: int = 1, uid: str = IDENTITY) -> Observation:
    """Service default/kubernetes, excluded from publication."""
    service = Service("ClusterIP", ("10.96.0.1",), annotations=(("kubesync.io/exclude", "true"),))
    return saw(service, version, "kubernetes", uid=uid, namespace="default")


def a_list(version: int, *items: Observation, resource: Resource = SERVICES, went_back: bool = False) -> Snapshot:
    return Snapshot(resource, version, items, went_back)


def runs_that_die(
    play: Callable[[World], object], config: ClusterConfig | None = None, *, prepare: Callable[[World], object]
) -> Iterator[tuple[str, World]]:
    """Every world in which ``play`` died at one of its transactions and was then played again by a fresh session (I1)."""
    for after in (False, True):
        for transaction in range(1, 1000):
            world = World(config)
            prepare(world)
            world.store.faults = DiesAt(transaction, after=after)
            try:
                play(world)
            except CrashError:
                world.store.faults = NoFaults()
                play(world)
                yield f"{'after' if after else 'before'} transaction {transaction}", world
            else:
                break


def unpacked_state(items: Mapping[Key, Item]) -> dict[Key, dict[str, object]]:
    """Items in a form that two runs agree about: bodies unpacked, versions, tokens and times left out."""
    found: dict[Key, dict[str, object]] = {}
    for key, item in items.items():
        if key.table == CONTROL and key.sort == "fence":
            continue
        if str(key.sort).endswith("#gone"):  # a note of tombstones, see below
            continue
        left_out = {"tx", "updated_at"}
        if key.table == CONTROL or (key.table == STATE and "body" in item):
            left_out.add("version")
        found[key] = {name: value for name, value in item.items() if name not in left_out}
        if isinstance(body := item.get("body"), str) and str(key.sort).startswith("key#"):
            document = unpack(body)
            # A list sweeps tombstones, events leave them for later: they mean the same.
            document["parts"] = [part for part in document["parts"] if "D" not in part[5]]
            if any(document.values()):
                found[key]["body"] = document
            else:
                del found[key]
    return found


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
