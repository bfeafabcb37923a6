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

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kubesync.actors.answer import Answer
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import KubesyncError, NotMasterError, ZoneError
from kubesync.messages import CompareNamed, Reach
from kubesync.operations.asking import ResyncError, ask_zone, blocked, check_time, wait_for
from kubesync.operations.cluster_resync import ClusterResync
from kubesync.operations.drift import landed
from kubesync.operations.ports import Master, unpaused
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
        # Nothing may be written: no zone has an actor, so no batch is under way and no zone is settled.
        self._zones_held = own_session and request.dry_run
        self._errors: dict[str, str] = {}

    def run(self) -> dict[str, Any]:
        """Do the resync, or a dry run. An error of one cluster goes into the report. Raises NotMasterError."""
        request = self._request
        names = [request.cluster] if request.cluster else unpaused(self._master.configs)
        clusters: list[ClusterResync] = []
        for name in names:
            with self._reported(name):
                cluster = ClusterResync(
                    self._master, name, request, own_session=self._own_session, zones_held=self._zones_held
                )
                cluster.compare_with_lists()
                clusters.append(cluster)
        for zone_id in sorted({zone_id for cluster in clusters for zone_id in cluster.zones}):
            self._compare_with_zone(zone_id, [c for c in clusters if zone_id in c.zones])
        named = self._compare_named()
        documents: dict[str, dict[str, Any]] = {}
        for cluster in clusters:
            with self._reported(cluster.name):
                documents[cluster.name] = with_counts(cluster.document())
        documents |= {name: {"cluster": name, "error": error} for name, error in self._errors.items()}
        head = {"dry_run": request.dry_run, "forced": request.force, "named_upstreams": named}
        return within_limits({**head, "clusters": [documents[name] for name in names]})

    def _compare_named(self) -> list[dict[str, str]]:
        """Compare named upstreams, after the clusters' lists. Returns those that drifted."""
        request = self._request
        answer: Answer[list[dict[str, str]]] = Answer(self._master.parts.scheduler)
        try:
            check_time(self._master)
            self._master.ask_named(CompareNamed(request.cluster, request.dry_run, request.force, answer))
            return wait_for(answer, self._check)
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
        except KubesyncError as error:
            said = str(error) if isinstance(error, ResyncError) else f"zone {zone_id} could not be compared: {error}"
            self._errors |= {c.name: said for c in going_on if c.name not in self._errors}

    def _compare(self, zone_id: str, clusters: Sequence[ClusterResync]) -> None:
        """Read and walk in this thread, while batches continue. Only suspected drift is compared between two batches.

        Keys that were written meanwhile get another walk: each time they are fewer.
        """
        self._reach(zone_id)
        for cluster in clusters:
            with self._reported(cluster.name):
                cluster.remember_zone(zone_id)
        walks = _WALKS
        while going_on := [cluster for cluster in clusters if cluster.name not in self._errors]:
            standing = self._walk(zone_id)
            inflight = self._master.inflight.read(zone_id) if self._zones_held else None
            unsettled = landed(inflight, standing)
            for cluster in going_on:
                with self._reported(cluster.name):
                    cluster.compare_zone(zone_id, standing, unsettled)
            walks -= 1
            clusters = [cluster for cluster in going_on if cluster.moved]
            if not walks:
                break
            for cluster in clusters:
                with self._reported(cluster.name):
                    cluster.remember_moved(zone_id)
        for cluster in clusters:
            if cluster.name not in self._errors:
                with self._reported(cluster.name):
                    cluster.compare_moved(zone_id)

    def _reach(self, zone_id: str) -> None:
        """Wait until the zone is settled. Raises ResyncError where nothing may be written to it."""
        if self._zones_held:
            return
        try:
            answer: Answer[None] = Answer(self._master.parts.scheduler)
            ask_zone(self._master, zone_id, Reach(answer), answer, self._check)
        except ZoneError as error:
            raise blocked(zone_id, error) from error

    def _walk(self, zone_id: str) -> dict[RecordKey, RecordSet]:
        standing: dict[RecordKey, RecordSet] = {}
        for key, record_set in self._master.parts.zones.walk(zone_id):
            self._check()
            standing[key] = record_set
        return standing

    def _check(self) -> None:
        check_time(self._master)
