"""Full resync: compares clusters, state, zones and upstream table, and corrects every difference.

cluster with state     both listeners list again. The lists are recorded like any other, with the same guard (I5)
state with upstreams   the upstreams in the table are read, key by key
state with zone        each zone is walked once for all clusters, while batches continue. Differences are checked between two
                       batches, a few keys at a time. If somebody changed or deleted a set of ours by hand, its current value
                       becomes the known value, and a normal commit corrects it (I3)

A dry run in a session of its own writes to no zone: what is open stays open, and no zone is settled.

It may run in its own thread (``requests``). A cluster whose configuration changes meanwhile drops out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kubesync.actors.answer import Answer
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.cluster.keys.key_states import unpaused
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import KubesyncError, NotMasterError
from kubesync.operations.cluster_resync import ClusterResync
from kubesync.operations.drift import landed
from kubesync.operations.listing import CHECK_SECONDS, LIST_SECONDS, ResyncError, check_time
from kubesync.operations.ports import Master
from kubesync.operations.resync_report import with_counts, within_limits

_WALKS: Final = 2


class Resync:
    """One request, for all its clusters. Call ``run`` once.

    Args:
        own_session: the session was started for this request, and watches no cluster yet.
    """

    def __init__(self, master: Master, request: ResyncRequest, *, own_session: bool) -> None:
        self._master = master
        self._request = request
        self._own_session = own_session
        # Nothing may be written: no zone has a writer, so no batch is under way and no zone is settled.
        self._zones_held = own_session and request.dry_run
        self._errors: dict[str, str] = {}
        self._over = False

    def run(self) -> dict[str, Any]:
        """Do the resync, or a dry run. An error of one cluster goes into the report.

        Raises:
            NotMasterError: stop everything.
        """
        names = [self._request.cluster] if self._request.cluster else unpaused(self._master.ledgers)
        clusters: list[ClusterResync] = []
        try:
            for name in names:
                with self._reported(name):
                    cluster = ClusterResync(self._master, name, self._request, own_session=self._own_session)
                    cluster.compare_with_lists()
                    clusters.append(cluster)
            for zone_id in sorted({zone_id for cluster in clusters for zone_id in cluster.zones}):
                self._compare_with_zone(zone_id, [c for c in clusters if zone_id in c.zones])
            named = self._compare_named()
        finally:
            self._over = True
        documents: dict[str, dict[str, Any]] = {}
        for cluster in clusters:
            with self._reported(cluster.name):
                documents[cluster.name] = with_counts(cluster.document())
        reports = [
            {"cluster": name, "error": self._errors[name]} if name in self._errors else documents[name]
            for name in names
        ]
        head = {"dry_run": self._request.dry_run, "forced": self._request.force, "named_upstreams": named}
        return within_limits({**head, "clusters": reports})

    def _compare_named(self) -> list[dict[str, Any]]:
        """Compare named upstreams, after the clusters' lists. Returns those that drifted."""
        try:
            return self._master.composer.compare(self._request, lambda: check_time(self._master))
        except NotMasterError:
            raise
        except KubesyncError as error:
            return [{"upstream": "named/*", "drift": "unknown", "error": str(error)}]

    @contextmanager
    def _reported(self, name: str) -> Iterator[None]:
        """Keep an error of one cluster from stopping the others."""
        try:
            yield
        except NotMasterError:
            raise
        except KubesyncError as error:
            self._errors.setdefault(name, str(error))

    def _compare_with_zone(self, zone_id: str, clusters: Sequence[ClusterResync]) -> None:
        going_on = [cluster for cluster in clusters if cluster.name not in self._errors]
        if not going_on:
            return
        try:
            check_time(self._master)
            self._compare(zone_id, going_on)
        except NotMasterError:
            raise
        except ResyncError as error:
            self._errors |= {c.name: str(error) for c in going_on if c.name not in self._errors}
        except KubesyncError as error:
            said = f"zone {zone_id} could not be compared: {error}"
            self._errors |= {c.name: said for c in going_on if c.name not in self._errors}

    def _compare(self, zone_id: str, clusters: Sequence[ClusterResync]) -> None:
        """Read and walk in this thread, while batches continue. Only suspected drift is checked between two batches.

        Keys that were written meanwhile get another walk: each time they are fewer.
        """
        self._between_batches(zone_id, self._go_on)  # now the zone is settled and may be written to
        for cluster in clusters:
            with self._reported(cluster.name):
                cluster.remember_zone(zone_id)
        walks = _WALKS
        while going_on := [cluster for cluster in clusters if cluster.name not in self._errors]:
            standing = self._walk(zone_id)
            unsettled = (
                landed(self._master.inflight.read(zone_id), standing) if self._zones_held else frozenset[RecordKey]()
            )
            for cluster in going_on:
                self._run_checks(zone_id, cluster, cluster.drift_checks(zone_id, standing, unsettled))
            walks -= 1
            clusters = [cluster for cluster in going_on if cluster.moved]
            if not walks:
                break
            for cluster in clusters:
                with self._reported(cluster.name):
                    cluster.remember_moved(zone_id)
        for cluster in clusters:
            self._run_checks(zone_id, cluster, cluster.final_checks(zone_id))

    def _run_checks(self, zone_id: str, cluster: ClusterResync, jobs: Iterator[Callable[[], None]]) -> None:
        for job in jobs:
            with self._reported(cluster.name):
                self._between_batches(zone_id, job)
            if cluster.name in self._errors:
                return

    def _between_batches(self, zone_id: str, job: Callable[[], None]) -> None:
        def unless_over() -> None:
            self._go_on()
            job()

        if self._zones_held:
            unless_over()
            return
        assert self._master.pool is not None
        self._wait(zone_id, self._master.pool.between_batches(zone_id, unless_over))

    def _wait(self, zone_id: str, compared: Answer[None]) -> None:
        clock = self._master.parts.clock
        assert self._master.pool is not None
        until = clock.monotonic() + LIST_SECONDS
        while not compared.wait(CHECK_SECONDS):
            check_time(self._master)
            writer = self._master.pool.writers[zone_id]
            if writer.blocked:
                said = f"{writer.report.problem}; run it again once that is mended"
                raise ResyncError(f"zone {zone_id} could not be compared: {said}")
            if clock.monotonic() >= until:
                raise ResyncError(f"zone {zone_id} could not be compared in time")
        compared.result()

    def _walk(self, zone_id: str) -> dict[RecordKey, RecordSet]:
        standing: dict[RecordKey, RecordSet] = {}
        for key, record_set in self._master.parts.zones.walk(zone_id):
            self._go_on()
            standing[key] = record_set
        return standing

    def _go_on(self) -> None:
        check_time(self._master)
        if self._over:
            raise ResyncError("the resync has ended")
