"""Everything outside of a session: tables, zones, clusters and a clock; cheap to copy, and comparable in one normal form."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from chaos.cluster import ScriptedCluster, ScriptedConnector
from chaos.gate import Gate, Killed
from chaos.sync_session import Drive, SyncKeeper, SyncSession
from chaos.writes import kind_of
from chaos.zones import GatedZones, MemoryRoute53
from kubesync.aws.dynamodb.store import CONTROL, KEY_ATTRIBUTES, STATE, Item, Key
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.errors import KubesyncError
from kubesync.domain.report import SessionReport
from kubesync.operations.ports import MasterParts
from kubesync.operations.recovery import RecoveryRequest
from kubesync.session.lease_keeper import LeaseTimes
from kubesync.settings import Settings
from support.manual_clock import ManualClock
from support.memory_store import Call, MemoryStore, NoFaults, _Partition

LEASE = LeaseTimes(stand_by=0.0)
SETTINGS = Settings(deployment="test", window_seconds=1.0, max_runtime_seconds=86_400, batch_elements=40)


class _Gated:
    """Store hooks: every call passes the gate of the process that runs now."""

    def __init__(self, world: World) -> None:
        self._world = world

    def before(self, call: Call) -> None:
        kind = kind_of(call.actions)
        self._world.gate.before("dynamodb", _describe(call), writes=bool(call.actions), kind=kind)

    def after(self, call: Call) -> None:
        gate = self._world.gate
        gate.after(gate.calls[-1])


def _describe(call: Call) -> str:
    keys = [f"{a.key.partition}/{a.key.sort}" for a in call.actions] or [f"{k.partition}/{k.sort}" for k in call.keys]
    shown = ", ".join(keys[:4]) + (f", ... ({len(keys)})" if len(keys) > 4 else "")
    return f"{call.operation} {'+'.join(call.tables)} {shown or call.partition}"


@dataclass
class World:
    """The outside of all sessions. ``gate`` belongs to the process that runs now. ``drip``: see ``ScriptedReflector``."""

    clusters: dict[str, ScriptedCluster]
    route53: MemoryRoute53
    clock: ManualClock = field(default_factory=ManualClock)
    sessions: int = 0
    gate: Gate = field(default_factory=lambda: Gate("nobody"))
    drip: bool = False
    session_type: ClassVar[type[SyncSession]] = SyncSession
    connector_type: ClassVar[type[ScriptedConnector]] = ScriptedConnector

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.clock)

    def copy(self) -> World:
        """A world of its own that stands as this one does now."""
        clock = ManualClock(monotonic=self.clock.monotonic(), epoch=self.clock.epoch())
        clusters = {name: cluster.copy() for name, cluster in self.clusters.items()}
        made = World(clusters, self.route53.copy(), clock, self.sessions, drip=self.drip)
        copy_tables(self.store, made.store)
        return made

    def new_session(self, gate: Gate, drive: Drive, clock: ManualClock | None = None) -> SyncSession:
        """A process of its own behind a gate."""
        self.sessions += 1
        random.seed(self.sessions)  # jitter, so that the same faults meet the same calls
        own = clock or self.clock
        session_id = f"session-{self.sessions}"
        keeper = SyncKeeper(LeaseTable(self.store, SETTINGS.shard), session_id, LEASE, own)
        connector = self.connector_type(self.clusters, gate)
        connector.drip = self.drip
        parts = MasterParts(self.store, GatedZones(self.route53, gate), connector, SETTINGS, own, StoreCalls())
        session = self.session_type(parts, keeper, session_id)
        session.drive = drive
        return session

    def run(self, session: SyncSession, gate: Gate, recovery: RecoveryRequest | None = None) -> SessionReport | None:
        """Run a process to its end. None: it was killed."""
        self.gate = gate
        self.store.faults = _Gated(self)
        self.store.counted = session._parts.counted
        try:
            return session.run(recovery=recovery)
        except (Killed, KubesyncError):  # killed, or ended by an error that its caller sees: the next one goes on
            return None
        finally:
            self.outside()

    def enter(self, gate: Gate) -> None:
        """From now on calls are of this process."""
        self.gate = gate
        self.store.faults = _Gated(self)

    def outside(self) -> None:
        """From now on calls are those of a person or a test: they pass no gate."""
        self.store.faults = NoFaults()

    def configure(self, name: str, **changes: Any) -> None:
        """Register a cluster, or change its configuration, and tell the master."""
        table = ClusterTable(self.store)
        known = table.get(name)
        if known is None:
            table.put(ClusterConfig(name=name, **changes))
        else:
            table.put(known.model_copy(update=changes))
        LeaseTable(self.store, SETTINGS.shard).signal()

    def configured(self) -> list[ClusterConfig]:
        """The clusters that are registered."""
        return list(ClusterTable(self.store).all())

    def epoch(self) -> int:
        """The last one that was drawn, as the tables know it."""
        item = self.store.dump().get(Key(CONTROL, "lease", "epoch"))
        return 0 if item is None else int(str(item["value"]))

    def register(self, config: ClusterConfig) -> None:
        """Register a cluster as it was, in tables that do not know it."""
        fields = ClusterConfig.model_fields.keys() - {"name", "revision"}
        self.configure(config.name, **{field: getattr(config, field) for field in sorted(fields)})

    # --- what stands ---

    def normal(self) -> dict[str, object]:
        """All that decides about the future, in one form: item versions, tokens and times left out."""
        found: dict[str, object] = {}
        for zone_id in self.route53.ids:
            for key, record_set in self.route53.records(zone_id).items():
                journal = key.name.startswith("_kubesync-")
                found[f"zone {zone_id} {key.name} {key.type}"] = "journal" if journal else record_set
        found |= self._states()
        for upstream in UpstreamTable(self.store).read_all():
            assert upstream.whole, f"upstream {upstream.upstream} is torn"
            nodes = tuple(tuple(sorted(node.items())) for node in upstream.nodes)
            found[f"upstream {upstream.upstream}"] = "deleted" if upstream.deleted else nodes
        for place, item in self.store.dump().items():
            if place.table == STATE:
                found |= _of_state(place, item)
            elif place.table == CONTROL:
                found |= _of_control(place, item)
        return found

    def _states(self) -> dict[str, object]:
        found: dict[str, object] = {}
        table = StateTable(self.store)
        for name in self.clusters:
            for state in table.load_all(name):
                upstreams = {upstream: known.digest for upstream, known in state.upstreams.items()}
                plain = replace(state, version=0, slices=0, upstreams={}, opened=None)
                found[f"key {state.key}"] = (plain, upstreams, state.opened is not None)
        return found


def _of_state(key: Key, item: Item) -> dict[str, object]:
    sort = str(key.sort)
    if sort.startswith("key#"):
        return {}
    if key.partition.startswith("names#"):
        value: object = item.get("key", (item.get("owner"), item.get("waiting")))
        return {f"claim {key.partition} {sort}": value}
    if "#open#" in key.partition:
        return {f"mark {key.partition} {sort}": "heir" if "#heir#" in sort else "open"}
    return {f"slice {key.partition} {sort}": item.get("service")}


def _of_control(key: Key, item: Item) -> dict[str, object]:
    sort = str(key.sort)
    if sort.startswith("checkpoint#"):
        return {f"{key.partition} {sort}": (item["resource_version"], item["generation"], item["revision"])}
    if sort == "identity":
        return {f"{key.partition} identity": item["uid"]}
    if key.partition.startswith("zones#") and item["problem"]:
        return {f"problem noted of zone {sort}": item["problem"]}
    if key.partition.startswith("named-marks#"):
        return {f"note {sort}": "to be composed"}
    if key.partition.startswith("inflight#"):
        return {f"inflight {sort}": item.get("batch", "a slice that was left behind")}
    return {}


def differences(found: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    """What is not as it should be, one line each."""
    return [
        f"{place}: {_short(found.get(place))} instead of {_short(wanted.get(place))}"
        for place in sorted(found.keys() | wanted.keys())
        if found.get(place) != wanted.get(place)
    ]


def _short(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 1500 else text[:1500] + "…"


def copy_tables(source: MemoryStore, target: MemoryStore, tables: Collection[str] = tuple(KEY_ATTRIBUTES)) -> None:
    """Make tables of a store what they are in another one. Stored items are never changed in place, so they are shared."""
    target._tables |= {
        table: {partition: _Partition(dict(rows.items), list(rows.order)) for partition, rows in partitions.items()}
        for table, partitions in source._tables.items()
        if table in tables
    }
    target._landed = dict(source._landed)
    target.in_flight = list(source.in_flight)
