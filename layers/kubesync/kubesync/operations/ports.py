"""The ports of a session, and the master as operations see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kubesync.actors.answer import Answer
from kubesync.actors.scheduler import Scheduler, Thread
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.control.clusters import ClusterTable
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.clock import Clock
from kubesync.cluster.keys.key_states import Ledger
from kubesync.cluster.keys.planner import Tables
from kubesync.cluster.keys.reconciler import Mode, Reconciler, Recorded
from kubesync.cluster.ports import Connector, Progress
from kubesync.cluster.runner import ClusterRunner
from kubesync.domain.errors import NotMasterError
from kubesync.settings import Settings
from kubesync.upstreams.composer import Composer
from kubesync.zone.pool import ZonePool


@dataclass(frozen=True, slots=True)
class MasterParts:
    """The outside world of a session. ``bootstrap`` builds it."""

    store: Store
    zones: ZoneClient
    connector: Connector
    settings: Settings
    scheduler: Scheduler
    counted: StoreCalls = field(default_factory=StoreCalls)

    @property
    def clock(self) -> Clock:
        return self.scheduler


class Master(Protocol):
    """The running master. ``session.master`` implements it."""

    parts: MasterParts
    clusters: ClusterTable
    tables: Tables
    inflight: InflightTable
    fenced_writer: FencedWriter
    composer: Composer
    ledgers: dict[str, Ledger]
    reconcilers: dict[str, Reconciler]
    runners: dict[str, ClusterRunner]
    pool: ZonePool | None
    progress: Progress
    ending: Callable[[], bool]
    deadline: float
    """Monotonic seconds. The session reads nothing after it."""

    def reconciler(self, ledger: Ledger, fenced_writer: FencedWriter | None = None) -> Reconciler: ...
    def start_cluster(self, name: str, relist: Mode | None = None) -> ClusterRunner: ...
    def follow_up(self, cluster: str, recorded: Recorded) -> None: ...
    def batches_ended(self, cluster: str) -> list[Answer[None]]: ...
    def not_master(self, error: NotMasterError) -> None: ...
    def start_thread(self, name: str, run: Callable[[], None]) -> Thread: ...
