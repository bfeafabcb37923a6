"""Sessions in this process, with stand-ins in other processes."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.child_cluster import TOKEN
from bench.child_route53 import Route53
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.dynamodb.store_calls import StoreCalls
from kubesync.aws.route53.client import Route53ZoneClient, build_route53_client
from kubesync.aws.route53.rate import Buckets, TokenBucket
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.sessions import aws_session
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.bootstrap.application import Application
from kubesync.domain.errors import ErrorCode
from kubesync.domain.report import SessionReport
from kubesync.session.session import Session
from kubesync.settings import Settings
from kubesync_local.workplace.registry import ClusterRegistry

ZONE = "example.com"
_TOKEN_VARIABLE = "KUBESYNC_BENCH_TOKEN"
_END_SECONDS = 120.0


class BenchApplication(Application):
    """An application with the settings of a deployment, whose store and Route 53 are stand-ins."""

    def __init__(self, settings: Settings, store: Store, zone_url: str) -> None:
        os.environ |= {"AWS_ACCESS_KEY_ID": "AKIABENCH", "AWS_SECRET_ACCESS_KEY": "none", "AWS_REGION": "eu-west-1"}
        super().__init__(settings, local=True, session=aws_session())
        self._store = store
        self._zone_url = zone_url

    def store(self, counted: StoreCalls | None = None) -> Store:  # noqa: ARG002 - no stand-in refuses a call
        return self._store

    def lease_store(self, counted: StoreCalls | None = None) -> Store:  # noqa: ARG002 - likewise
        return self._store

    def zones(self) -> ZoneClient:
        settings, clock = self.settings, self.scheduler
        return Route53ZoneClient(
            build_route53_client(self.session, self._zone_url),
            clock,
            Buckets(
                TokenBucket(settings.route53_requests_per_second, settings.route53_request_burst, clock),
                TokenBucket(settings.route53_changes_per_second, settings.route53_changes_per_second, clock),
            ),
        )


class RunningSession:
    """A session in a thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reports: list[SessionReport] = []
        self._thread = threading.Thread(target=lambda: self._reports.append(session.run()), daemon=True)
        self._thread.start()

    def join(self, seconds: float = _END_SECONDS) -> SessionReport:
        """Wait for its end. Returns its report."""
        self._thread.join(seconds)
        if not self._reports:
            raise RuntimeError("the session did not end, or ended with an exception")
        return self._reports[0]

    def end(self) -> SessionReport:
        """Stop it. Returns its report."""
        self._session.stop(ErrorCode.WORKER_EXITING)
        return self.join()


class System:
    """Clusters of one API server, one zone, and the sessions that synchronise them."""

    def __init__(
        self,
        cluster_url: str,
        zone_url: str,
        zone_id: str,
        store: Store,
        clusters: Sequence[str] = ("prod",),
        **settings: Any,
    ) -> None:
        os.environ[_TOKEN_VARIABLE] = TOKEN
        self.settings = Settings(deployment="bench", **settings)
        self.store = store
        self._zone_url = zone_url
        self.application = BenchApplication(self.settings, store, zone_url)
        for name in clusters:
            self.register(name, cluster_url, zone_id)

    def register(self, name: str, cluster_url: str, zone_id: str, **options: Any) -> None:
        """Register a cluster, unless it is, and tell the session that runs. ``options``: as in ``ClusterConfig``."""
        table = ClusterRegistry(self.application.store())
        if table.get(name) is None:
            table.put(
                ClusterConfig(
                    name=name,
                    server=cluster_url,
                    domain=f"{name}.{ZONE}",
                    zones=(ZoneReference(id=zone_id, name=ZONE),),
                    token=f"env:{_TOKEN_VARIABLE}",
                    **options,
                )
            )
            LeaseTable(self.application.store(), self.settings.shard).signal()

    def start(self, **settings: Any) -> RunningSession:
        """Run a session in a thread. ``settings`` replace the defaults."""
        changed = self.settings.model_copy(update=settings)
        return RunningSession(BenchApplication(changed, self.store, self._zone_url).new_session())


def wait_for_sets(zone: Route53, count: int) -> None:
    """Wait until this many A sets were created in the zone since the beginning."""
    wait_until(lambda: len(zone.created()) >= count, 600, f"{count} record sets in the zone")


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Check every 50 ms. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
