"""A page's reading over tables in memory: clusters, Services, named upstreams and changes, and hooks around every request."""

import threading
from types import SimpleNamespace
from typing import Any

from harness.fakes.memory_store import Call, MemoryStore
from harness.waiting import PATIENCE_SECONDS
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.tables.audit import AuditTable, Entry
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import StoreUnavailableError
from kubesync.domain.objects import ObjectKey, Resource, Service
from kubesync.domain.state import KeyState, Part, PartId
from kubesync.domain.upstreams.named import Member, NamedUpstream, ServicePortOf
from kubesync_local.page.gathering import Gatherer
from kubesync_local.registration.named_upstreams import NamedRegistry
from kubesync_local.workplace.registry import ClusterRegistry


class HandClock(ThreadScheduler):
    """Real time, or an epoch that stands, and what a test adds to it."""

    def __init__(self) -> None:
        self.added = 0.0
        self.stands: float | None = None

    def epoch_seconds(self) -> float:
        return (super().epoch_seconds() if self.stands is None else self.stands) + self.added


class Place:
    """Clusters in tables in memory, and hooks around every request."""

    def __init__(self, clusters: int, services: int) -> None:
        self.clock = HandClock()
        self.store = MemoryStore(clock=self.clock, faults=self)
        self.denied = ""
        self.reading = self.most = 0
        self.gate: threading.Event | None = None
        self.upstreams: threading.Event | None = None
        self.audit: threading.Event | None = None
        self.audit_seconds = 0.0
        self._lock = threading.Lock()
        for number in range(clusters):
            zone = ZoneReference(id="Z1", name="example.com")
            name = f"c{number:03}"
            config = ClusterConfig(name=name, server="https://10.0.0.1", domain=f"{name}.example.com", zones=(zone,))
            ClusterRegistry(self.store).put(config)
            for service in range(services):
                self._put(name, f"s{service:04}", number)
        self.store.calls.clear()
        work: Any = SimpleNamespace(
            store=self.store,
            application=SimpleNamespace(scheduler=self.clock),
            settings=SimpleNamespace(shard="0", deployment="test"),
            lease=LeaseTable(self.store, "0"),
            clusters=ClusterRegistry(self.store),
        )
        self.gatherer = Gatherer(work)

    def _put(self, cluster: str, name: str, number: int) -> None:
        key = ObjectKey(cluster, "shop", name)
        record = {RecordKey("Z1", f"{name}.{cluster}.example.com", "A"): RecordSet(30, (f"10.{number}.0.1",))}
        part = Part("u", 1, 1, Service("ClusterIP", ("10.0.0.1",)))
        state = KeyState(key, parts={PartId(Resource.SERVICES, name): part}, intended=record, applied=record)
        for action in StateTable(self.store).put(KeyState(key), state, "t")[1]:
            self.store.write(action)  # type: ignore[arg-type]

    def put_named(self, name: str, *services: str) -> None:
        members = tuple(Member(ServicePortOf(ObjectKey("c000", "shop", each), 80)) for each in services)
        registry = NamedRegistry(self.store)
        registry.put(NamedUpstream(name, members, "0"), registry.read())

    def put_change(self, cluster: str, at: float, *names: str) -> None:
        """One item of the audit."""
        made = {"ttl": 30, "values": ["10.0.0.1"]}
        entries = [
            Entry(f"record {name}.example.com A in Z1", None, made, "watch", f"{cluster}/shop/s") for name in names
        ]
        self.store.write(AuditTable("s1").changes(cluster, entries, 1, at, "-".join(names)))

    @property
    def configs(self) -> list[ClusterConfig]:
        return self.gatherer.overview().clusters

    def asked(self, table: str) -> list[Call]:
        return [call for call in list(self.store.calls) if call.tables == (table,)]

    # -- hooks of the store

    def before(self, call: Call) -> None:
        if self.denied and self.denied in call.partition:
            raise StoreUnavailableError("access to table kubesync-test-state is denied: no right")
        if call.tables == ("audit",) and call.partition.startswith("changes#"):
            with self._lock:
                self.clock.added += self.audit_seconds
            assert self.audit is None or self.audit.wait(PATIENCE_SECONDS)
        if call.tables == ("upstreams",) and self.upstreams is not None:
            assert self.upstreams.wait(PATIENCE_SECONDS)
        if call.tables == ("state",) and "#open#" not in call.partition and self.gate is not None:
            with self._lock:
                self.reading += 1
                self.most = max(self.most, self.reading)
            assert self.gate.wait(PATIENCE_SECONDS)
            with self._lock:
                self.reading -= 1

    def after(self, call: Call) -> None: ...
