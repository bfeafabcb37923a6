"""The outside world of a session, and the master as operations see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubesync.actors.directory import Directory
from kubesync.actors.scheduler import Scheduler
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.of_clusters import Tables
from kubesync.clock import Clock
from kubesync.cluster.keys.reconciler import Reconciler
from kubesync.cluster.ports import Connector
from kubesync.kubernetes.list_room import ListRoom
from kubesync.operations.term import Term
from kubesync.settings import Settings
from kubesync.zone.actor import ZoneActor
from kubesync.zone.progress import ZoneFigures


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
    """The running master. ``session.master`` implements it.

    ``configs``: of the clusters that are served now, also of those that are being deleted. The session's thread replaces it.
    ``zones``: made when they are first needed. ``session``: its id.
    """

    parts: MasterParts
    tables: Tables
    inflight: InflightTable
    fenced_writer: FencedWriter
    zones: Directory[ZoneActor, ZoneFigures]
    room: ListRoom
    term: Term

    @property
    def session(self) -> str: ...

    @property
    def clusters(self) -> ClusterTable: ...

    @property
    def configs(self) -> Mapping[str, ClusterConfig]: ...

    def send(self, cluster: str, message: object) -> bool:
        """Send to a cluster's actor. False: the cluster is not served here."""

    def ask_named(self, message: object) -> None:
        """Send to the actor of named upstreams, which starts when it is first needed."""

    def previewer(self, config: ClusterConfig) -> Reconciler:
        """A reconciler with key states of its own, read from the tables, for a preview."""


class Recovering(Protocol):
    """A recovery that has read the zones' journals. ``newest_epoch``: the newest of this deployment there; 0: none."""

    dry_run: bool
    newest_epoch: int

    def run(self, master: Master) -> dict[str, Any]:
        """Recover, in the session's thread. Returns the report."""


class Recovery(Protocol):
    """A person's request to recover lost or restored tables. The command implements it."""

    def begin(self, parts: MasterParts) -> Recovering:
        """Read the zones' journals. Writes nothing."""


def unpaused(configs: Mapping[str, ClusterConfig]) -> list[str]:
    """The clusters that are not disabled, those that are being deleted included."""
    return sorted(name for name, config in configs.items() if not config.paused)
