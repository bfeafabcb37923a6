"""A session that only looks: it plans on the tables, the zones and the clusters as they are, and changes none of them.

    DynamoDB        reads as ever; what it writes stays in this process (``overlay``), its lease included
    Route 53        reads as ever; a change is refused
    API servers     lists as ever

So it runs beside a master, also for clusters that are disabled or not registered.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubesync.aws.dynamodb.store import Item, Store, Update
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.route53.zones import BatchChange, ZoneClient
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import lease_key
from kubesync.aws.tables.control.resync_requests import new_request
from kubesync.aws.tables.control.zone_access import ZoneAccess
from kubesync.bootstrap.application import Application
from kubesync.cluster.ports import Progress
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone
from kubesync.domain.errors import KubesyncError
from kubesync.session.session import Session
from kubesync_local.workplace.overlay import OverlayStore
from kubesync_local.workplace.registry import ClusterRegistry, ZoneRoles
from kubesync_local.workplace.workplace import Workplace

_OF_THE_LEASE = ("master", "stand-by", "ending", "waiting")
"""What a session says of itself, and what would be wrong of one that only looks."""


class LookError(KubesyncError):
    """Nothing could be compared. The message says why."""


class OnlyRead:
    """Route 53 without changes. Implements ``ZoneClient``."""

    def __init__(self, zones: ZoneClient) -> None:
        self._zones = zones

    def zone(self, zone_id: str) -> Zone:
        return self._zones.zone(zone_id)

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        raise AssertionError(f"zone {zone_id}: who only looks sends no {len(changes)} changes ({comment})")

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        return self._zones.read(zone_id, name)

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        return self._zones.walk(zone_id)


@dataclass(slots=True)
class _Looking(Application):
    overlay: Store | None = None

    def store(self, counted: StoreCalls | None = None) -> Store:  # noqa: ARG002 - its requests are no session's
        assert self.overlay is not None
        return self.overlay

    def lease_store(self, counted: StoreCalls | None = None) -> Store:
        return self.store(counted)

    def zones(self) -> ZoneClient:
        return OnlyRead(Application.zones(self))


class Look:
    """Tables that only this process changes, and sessions on them."""

    def __init__(self, work: Workplace) -> None:
        known = work.application
        self.store = OverlayStore(known.store())
        self._application = _Looking(
            known.settings, known.local, known.access_for, known.scheduler, known.session, overlay=self.store
        )
        # Nobody holds the lease that this session takes, and nothing of it is to settle.
        free: Item = {"released": True, "clean": True, "holder": "", "expires_at_ms": 0}
        self.store.write(Update(lease_key(known.settings.shard), set=free))

    @property
    def clusters(self) -> ClusterRegistry:
        """As the session will see them."""
        return ClusterRegistry(self.store)

    def enable(self, config: ClusterConfig, access: Mapping[str, ZoneAccess | None]) -> None:
        """Let sessions on these tables serve a cluster that is disabled, or not registered. ``access``: the role of each of its zones."""
        roles = ZoneRoles(self.store)
        for zone_id, role in access.items():
            roles.put(zone_id, role)
        known = self.clusters.get(config.name)
        revision = 0 if known is None else known.revision
        self.clusters.put(config.model_copy(update={"disabled": False, "revision": revision}))

    def session(self, progress: Progress) -> Session:
        """A session on these tables."""

        def said(what: str, details: dict[str, object]) -> None:
            if what not in _OF_THE_LEASE:
                progress(what, details)

        return self._application.new_session(said)

    def compared(self, session: Session, cluster: str, *, force: bool = False) -> dict[str, Any]:
        """The report of a dry run of one cluster, or of all (empty), as ``resync --dry-run`` gives it.

        Raises:
            LookError: there is none.
        """
        scheduler = self._application.scheduler
        wanted = new_request(
            scheduler.token_hex(4), cluster, scheduler.epoch_seconds(), dry_run=True, force=force, scheduled=False
        )
        report = session.run(resync=wanted)
        if not report.resyncs:
            raise LookError(f"nothing was compared: {report.ended} {report.message}".rstrip())
        found: dict[str, Any] = {**report.resyncs[0], "by": report.session}
        return found
