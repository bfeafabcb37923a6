"""Everything outside of a session: tables, zones, clusters and a clock; cheap to copy, and comparable in one normal form.

Sessions run as processes on one machine (``simulation.machine``), assembled by ``bootstrap`` as everywhere else. Whoever calls a method
here is the world itself: ``clock`` is its process, and while it sleeps, the others run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from harness.fakes.memory_store import Call, MemoryStore, NoFaults, _Partition
from kubesync.actors.actor import Host
from kubesync.aws.dynamodb.store import CONTROL, KEY_ATTRIBUTES, Action, Item, Key, Store
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.items import SchemaGuard
from kubesync.bootstrap.application import Application
from kubesync.cluster.ports import Connector
from kubesync.domain.errors import ErrorCode, KubesyncError
from kubesync.domain.report import SessionReport
from kubesync.settings import Settings
from kubesync_local.recovery.recovery import RecoveryRequest
from kubesync_local.workplace.registry import ClusterRegistry
from simulation.cluster import ScriptedCluster, ScriptedConnector
from simulation.gate import Gate
from simulation.machine import Machine
from simulation.normal_form import normal_form
from simulation.post import Delay, deliver_late
from simulation.process import Process
from simulation.writes import kind_of
from simulation.zones import GatedZones, MemoryRoute53

if TYPE_CHECKING:
    import boto3

    from kubesync.actors.scheduler import Thread

_ALL_DELETIONS = 1_000_000
# The lease is renewed often, so that it does not take long until a session knows what somebody asks for.
SETTINGS = Settings(
    deployment="test",
    window_seconds=1.0,
    max_runtime_seconds=86_400,
    batch_elements=40,
    lease_renew_seconds=2.0,
    stand_by_seconds=0.0,
)


class Outside(Process):
    """The world's own process: people, and what happens by itself. Its one thread is that of the test."""

    def advance(self, seconds: float) -> None:
        """Let time pass; whatever runs goes on meanwhile."""
        self.sleep(seconds)


class SharedStore(MemoryStore):
    """One store for all processes of a machine; each has its own counts, and its calls pass its own gate.

    ``had_landed``: the last transaction was a repetition of one that had landed before, so it had no effect.
    """

    def __init__(self, machine: Machine, clock: Outside) -> None:
        self._machine = machine
        self.by_process: dict[Process, StoreCalls] = {}
        self.had_landed = False
        super().__init__(clock=clock, faults=_Gated(machine))

    def forget(self) -> None:
        """What only tests look at: calls, and tokens of transactions that are long done."""
        self.calls.clear()
        self._landed.clear()
        self.by_process.clear()

    def _apply_transaction(self, actions: tuple[Action, ...], token: str) -> None:
        self.had_landed = token in self._landed
        super()._apply_transaction(actions, token)

    def peek(self, key: Key) -> Item | None:
        """An item as it stands, without a call."""
        return self._find(key)

    def replace(self, key: Key, item: Item | None) -> None:
        """As a person does at the console, past all conditions; None: delete it."""
        self._put(key, None if item is None else dict(item))

    def expire(self, table: str) -> None:
        """As if everything in a table had expired."""
        self._tables[table].clear()

    @property
    def counted(self) -> StoreCalls:
        """Of the process that runs now."""
        return self.by_process.setdefault(self._machine.current.process, StoreCalls())

    @counted.setter
    def counted(self, counted: StoreCalls) -> None:
        """Each process has its own."""

    def _log(self, call: Call) -> None:
        self.counted.count("requests")


class _Gated:
    """Store hooks: every call passes the gate of the process that runs now."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def before(self, call: Call) -> None:
        gate = _gate_of(self._machine)
        if gate is not None:
            gate.before("dynamodb", _describe(call), writes=bool(call.actions), kind=kind_of(call.actions))

    def after(self, call: Call) -> None:
        gate = _gate_of(self._machine)
        if gate is not None:
            gate.after(gate.under_way(self._machine.current))


def _gate_of(machine: Machine) -> Gate | None:
    process = machine.current.process
    return process.gate if isinstance(process, SessionProcess) else None


def _describe(call: Call) -> str:
    keys = [f"{a.key.partition}/{a.key.sort}" for a in call.actions] or [f"{k.partition}/{k.sort}" for k in call.keys]
    shown = ", ".join(keys[:4]) + (f", ... ({len(keys)})" if len(keys) > 4 else "")
    return f"{call.operation} {'+'.join(call.tables)} {shown or call.partition}"


class SessionProcess(Process):
    """A process in which one session runs. ``delay``: of messages to its actors; None: they are there at once."""

    def __init__(self, machine: Machine, gate: Gate, seed: object, delay: Delay | None = None) -> None:
        super().__init__(machine, gate.name, seed)
        self.gate = gate
        self.delay = delay
        gate.process = self

    def thread(self, name: str, run: Callable[[], object]) -> Thread:
        host = getattr(run, "__self__", None)
        if self.delay is not None and isinstance(host, Host):
            deliver_late(host, name, self, self.delay)
        return super().thread(name, run)


class SimulatedApplication(Application):
    """Production's own assembly, on a world."""

    def __init__(self, world: World, process: SessionProcess) -> None:
        super().__init__(
            world.settings,
            scheduler=process,
            session=cast("boto3.Session", None),
            access_for=_nowhere,
        )
        self._world = world
        self._process = process

    def store(self, counted: StoreCalls | None = None) -> Store:
        if counted is not None:
            self._world.store.by_process[self._process] = counted
        return SchemaGuard(self._world.store, self.schema)

    def lease_store(self, counted: StoreCalls | None = None) -> Store:
        return self.store(counted)

    def zones(self) -> ZoneClient:
        return GatedZones(self._world.route53, self._process.gate)

    def connector(self) -> Connector:
        connector = self._world.connector_type(self._world.clusters, self._process.gate)
        connector.drip = self._world.drip
        self._world.connectors[self._process.name] = connector
        return connector


def _nowhere(*_: object) -> Any:
    raise AssertionError("a scripted cluster is reached without a connection")


class Running:
    """A session in a process of its own. ``report`` is there once it has ended by itself; ``error`` likewise."""

    def __init__(
        self, world: World, gate: Gate, recovery: RecoveryRequest | None, resync: ResyncRequest | None = None
    ) -> None:
        self.gate = gate
        self.process = SessionProcess(world.machine, gate, f"{world.seed} {world.sessions}", world.delay)
        self.session = SimulatedApplication(world, self.process).new_session()
        self.report: SessionReport | None = None
        self.error: KubesyncError | None = None
        self._world = world
        self._recovery, self._resync = recovery, resync
        self._thread = self.process.thread("session", self._run)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def end(self, code: ErrorCode = ErrorCode.MAX_RUNTIME) -> SessionReport | None:
        """Its time is up: it hands over. Returns once its process has ended; None: it was killed, or ended by an error."""
        if self.alive:
            self.session.stop(code)
        return self.wait()

    def wait(self, seconds: float = 600.0) -> SessionReport | None:
        """The same, for one that ends by itself."""
        if self.alive:
            self._thread.join(seconds)
        if self.alive and not self.process.paused:
            raise AssertionError(f"{self.gate.name} does not end:\n{self._world.machine.waiting()}")
        return self.report

    def kill(self) -> None:
        self.gate.kill()

    def _run(self) -> None:
        try:
            self.report = self.session.run(recovery=self._recovery, resync=self._resync)
        except KubesyncError as error:  # an error that its caller sees: the next one goes on
            self.error = error
        finally:
            # The process ends, and with it all threads that it has left behind.
            self.process.machine.kill(self.process)


@dataclass
class World:
    """The outside of all sessions. ``drip``: see ``ScriptedReflector``. ``seed``: of the machine; None: the fixed schedule.

    ``delay``: of messages to actors of sessions that begin from now on; a copy has none.
    """

    clusters: dict[str, ScriptedCluster]
    route53: MemoryRoute53
    now: float = 1000.0
    sessions: int = 0
    seed: object = None
    settings: Settings = SETTINGS
    drip: bool = False
    delay: Delay | None = None
    connectors: dict[str, ScriptedConnector] = field(default_factory=dict)
    connector_type: ClassVar[type[ScriptedConnector]] = ScriptedConnector

    def __post_init__(self) -> None:
        self.machine = Machine(self.seed, now=self.now)
        self.clock = Outside(self.machine, "world")
        self.machine.begin(self.clock)
        self.store = SharedStore(self.machine, self.clock)

    def copy(self, seed: object = None) -> World:
        """A world of its own that stands as this one does now. No session runs in it."""
        clusters = {name: cluster.copy() for name, cluster in self.clusters.items()}
        made = type(self)(
            clusters, self.route53.copy(), self.machine.now, self.sessions, seed, self.settings, drip=self.drip
        )
        copy_tables(self.store, made.store)
        return made

    def new_session(
        self, gate: Gate, recovery: RecoveryRequest | None = None, resync: ResyncRequest | None = None
    ) -> Running:
        """A process of its own behind a gate, not started yet."""
        self.sessions += 1
        return Running(self, gate, recovery, resync)

    def new_gate(self) -> Gate:
        """Of the next session."""
        return Gate(f"session-{self.sessions + 1}")

    def start(self, gate: Gate | None = None, recovery: RecoveryRequest | None = None) -> Running:
        """A session that has begun."""
        running = self.new_session(gate or self.new_gate(), recovery)
        running.start()
        return running

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Look at the tables without a call that anybody notices, also in a session's thread."""
        faults, self.store.faults = self.store.faults, NoFaults()
        try:
            yield
        finally:
            self.store.faults = faults

    def close(self) -> None:
        """End whatever still runs."""
        self.machine.close()

    def configure(self, name: str, **changes: Any) -> None:
        """Register a cluster, or change its configuration, and tell the master.

        Whoever does it confirms all deletions that follow, unless ``allowed_deletions`` says how many.
        """
        allowed = changes.pop("allowed_deletions", _ALL_DELETIONS)
        table = ClusterRegistry(self.store)
        known = table.get(name)
        if known is None:
            table.put(ClusterConfig(name=name, **changes))
        else:
            table.put(known.model_copy(update=changes), allowed_deletions=allowed)
        LeaseTable(self.store, SETTINGS.shard).signal()

    def configured(self) -> list[ClusterConfig]:
        """The clusters that are registered."""
        return list(ClusterRegistry(self.store).all())

    def epoch(self) -> int:
        """The last one that was drawn, as the tables know it."""
        item = self.store.dump().get(Key(CONTROL, "lease", "epoch"))
        return 0 if item is None else int(str(item["value"]))

    def register(self, config: ClusterConfig) -> None:
        """Register a cluster as it was, in tables that do not know it."""
        fields = ClusterConfig.model_fields.keys() - {"name", "revision", "allowed_deletions"}
        self.configure(config.name, **{field: getattr(config, field) for field in sorted(fields)})

    def normal(self) -> dict[str, object]:
        """What stands, as ``normal_form`` says it."""
        return normal_form(self.store, self.route53, self.clusters)


def copy_tables(source: MemoryStore, target: MemoryStore, tables: Collection[str] = tuple(KEY_ATTRIBUTES)) -> None:
    """Make tables of a store what they are in another one. Stored items are never changed in place, so they are shared."""
    target._tables |= {
        table: {partition: _Partition(dict(rows.items), list(rows.order)) for partition, rows in partitions.items()}
        for table, partitions in source._tables.items()
        if table in tables
    }
    target._landed = dict(source._landed)
    target.in_flight = list(source.in_flight)
