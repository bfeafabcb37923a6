"""Whole sessions that compose named upstreams: Services with pods, what is registered, and what the proxies read."""

from collections.abc import Callable
from typing import Any

from harness.deployment import Deployment
from harness.seen.builders import a_service, an_endpoints
from harness.seen.named import named_item, named_nodes, register
from kubesync.aws.dynamodb.store import UPSTREAMS, Item, Key
from kubesync.aws.tables.audit import NAMED
from kubesync.aws.tables.upstreams import StoredUpstream, UpstreamTable
from kubesync.domain.errors import StoreBusyError
from kubesync.domain.report import SessionReport
from kubesync.domain.upstreams.named import Member
from kubesync_local.documents.audit_log import AuditLog, Span
from simulation.gate import Outward

WEB, API = "prod/shop/web/80/TCP", "prod/shop/api/80/TCP"
# The lease is renewed every 2 s, and tells that something was registered; composing follows 0.2 s later.
REGISTERED = 2.6
# A window of one second, and composing.
COMPOSED_BY = 1.6


class Composed(Deployment):
    """Cluster ``prod``; ``web`` stands for the upstream ``prod/shop/web/80/TCP``."""

    def __init__(self) -> None:
        super().__init__()
        self.busy: Callable[[Outward], bool] = lambda _call: False
        self.reads: list[Outward] = []

    def pods(self, name: str, *ips: str) -> None:
        """A Service with these pods."""
        if not any(place[2] == name for place in self.cluster.live):
            self.apply(name, a_service())
        self.apply(name, an_endpoints(*ips, service=name), slice_name=f"{name}-1")

    def register(self, name: str, *members: Member, shard: str = "0") -> None:
        """As a person does, also in the middle of a call of the session."""
        with self.world.unseen():
            register(self.store, name, *members, shard=shard)

    def _before(self, call: Outward) -> None:
        if not call.writes:
            self.reads.append(call)
            if self.busy(call):
                raise StoreBusyError("throttled")
        super()._before(call)

    # --- what the proxies read ---

    def ips(self, name: str) -> list[str] | None:
        nodes = named_nodes(self.store, name)
        return None if nodes is None else [node["ip"] for node in nodes]

    def upstream(self, name: str) -> StoredUpstream:
        """Of a Service."""
        stored = UpstreamTable(self.store).read(f"prod/shop/{name}/80/TCP")
        assert stored is not None
        return stored

    def version(self, name: str) -> int:
        stored = named_item(self.store, name)
        assert stored is not None
        return stored.version

    def stored(self) -> dict[Key, Item]:
        """All upstreams as they are stored."""
        return {key: item for key, item in self.store.dump().items() if key.table == UPSTREAMS}

    def composed(self) -> list[dict[str, Any]]:
        """What the audit says about named upstreams, the newest first."""
        now = self.world.clock.epoch_seconds()
        rows = AuditLog(self.store).read_changes(NAMED, now, Span(now - 3600, now + 3600))
        return [{name: row[name] for name in ("upstream", "from", "to", "why")} for row in rows]

    def problem(self, report: SessionReport) -> str:
        return str(report.named_upstreams["problem"])


def reads_marks(call: Outward) -> bool:
    """Whether a call reads the notes of what is to be composed."""
    return "named-marks#" in call.what
