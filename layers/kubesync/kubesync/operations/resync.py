"""Full resync: compares clusters, state, zones and upstream table, and corrects every difference. One pass for all clusters:

cluster with state     each cluster's listeners list again. The lists are recorded like any other, with the same guard (I5)
state with upstreams   the upstreams table is scanned once for all clusters; each key compared its own upstreams when it was listed
state with zone        each zone is walked once for all clusters, while batches continue, and once more only for keys that were
                       written meanwhile. Differences are checked between two batches, a few keys at a time. If somebody changed or
                       deleted a set of ours by hand, its current value becomes the known value, and a normal commit corrects it (I3)
zone with claims       a resync of all reports sets at names that a key owns and has no state for (``record_rows.lost_sets``)

``cluster_resync`` says how often states are read. What is done is kept, cluster by cluster and zone by zone (``resync_progress``).

A dry run in a session of its own writes to no zone: what is open stays open, and no zone is settled.

It may run in its own thread (``requests``). A cluster whose configuration changes meanwhile drops out. In a resync of
all clusters it is tried once more; one that is disabled or removed by then is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import batched
from typing import Any, Final

from kubesync.actors.answer import Answer
from kubesync.aws.tables.control.clusters import ClusterTable
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import KubesyncError, NewerSchemaError, NotMasterError, ZoneError
from kubesync.domain.state import Name, UpstreamState
from kubesync.messages import CompareNamed, Reach
from kubesync.operations.asking import (
    ResyncError,
    SessionEndsError,
    ask_zone,
    check_time,
    time_is_up,
    wait_for,
    zone_blocked,
)
from kubesync.operations.cluster_resync import ClusterResync
from kubesync.operations.ports import Master, unpaused
from kubesync.operations.record_rows import as_the_last_batch_left, lost_sets
from kubesync.operations.resync_progress import NotKeptError, Part, ResyncProgress
from kubesync.operations.resync_report import within_limits
from kubesync.operations.zone_comparison import ZoneComparison

_WALKS: Final = 2
_SETS_AT_A_TIME: Final = 100


class Resync:
    """One request, for all its clusters. Call ``run`` once.

    Args:
        own_session: the session was started for this request, and watches no cluster yet.
    """

    def __init__(self, master: Master, request: ResyncRequest, progress: ResyncProgress, *, own_session: bool) -> None:
        self._master = master
        self._request = request
        self._progress = progress
        self._own_session = own_session
        # A dry run in a session of its own has no zone actors: no batch is under way, and no zone is settled.
        self._zones_held = own_session and request.dry_run
        self._names: list[str] = []
        self._began: dict[str, int] = {}  # the revision of each cluster's configuration at the begin
        self._parts: dict[str, Part] = {}

    def run(self) -> dict[str, Any]:
        """Do the resync, or a dry run. An error of one cluster goes into the report.

        Raises:
            SessionEndsError: the session ends first, and the next one goes on. Otherwise the report says so of each cluster.
            NotKeptError: what is done cannot be kept, or nobody waits for it any more.
            NotMasterError: another session holds the lease.
        """
        request = self._request
        present = [name for name in unpaused(self._master.configs) if self._is_active(name)]
        self._names = names = [request.cluster] if request.cluster else present
        earlier = self._progress.begin(len(names))
        self._parts = {name: part for name, part in earlier.items() if part.done}
        self._resync_clusters(names, earlier)
        if changed := [name for name in names if self._was_reconfigured(name)]:
            for name in changed:  # once more, with the new configuration
                del self._parts[name]
            self._resync_clusters(changed, {})
        named = self._compare_named()
        if not request.cluster:
            self._names = [name for name in names if self._is_active(name) or not self._failed(name)]
        return self._report(named)

    def _is_active(self, name: str) -> bool:
        """Whether a cluster is configured, and neither disabled nor being removed."""
        config = self._master.configs.get(name)
        return config is not None and not config.deleting and not config.paused

    def _failed(self, name: str) -> bool:
        """Whether the report of a cluster that is done is an error."""
        return "error" in self._parts[name].document

    def _was_reconfigured(self, name: str) -> bool:
        """Whether to try a cluster again: in a resync of all clusters it failed, and has another configuration by now."""
        began = self._began.get(name)
        if self._request.cluster or began is None or not self._failed(name) or not self._is_active(name):
            return False
        return self._master.configs[name].revision != began

    def _resync_clusters(self, names: Sequence[str], earlier: Mapping[str, Part]) -> None:
        """List these clusters, remove orphaned upstreams, and compare all their zones. ``earlier``: parts to go on with."""
        clusters: list[ClusterResync] = []
        for name in names:
            if not self._done(name):
                with self._errors_reported(name):
                    clusters.append(self._list_cluster(name, earlier.get(name, Part())))
        self._remove_orphans(self._not_done(clusters))
        for zone_id in sorted({zone_id for cluster in self._not_done(clusters) for zone_id in cluster.zones}):
            self._compare_with_zone(zone_id, [c for c in self._not_done(clusters) if zone_id in c.zones])

    def cut_off(self, error: str) -> dict[str, Any]:
        """Return the report of what was done, with this error for all clusters that are not done."""
        for name in self._names:
            self._parts.setdefault(name, Part(document={"cluster": name, "error": error}, done=True))
        return self._report(())

    def _report(self, named: Sequence[dict[str, str]]) -> dict[str, Any]:
        names = self._names
        head = {"dry_run": self._request.dry_run, "forced": self._request.force, "named_upstreams": list(named)}
        return within_limits({**head, "clusters": [dict(self._parts[name].document) for name in names]})

    def _done(self, name: str) -> bool:
        """Whether the report of a cluster is complete, or is an error."""
        return name in self._parts

    def _not_done(self, clusters: Sequence[ClusterResync]) -> list[ClusterResync]:
        """Return those of these clusters that are not done. A cluster that failed is done."""
        return [cluster for cluster in clusters if not self._done(cluster.name)]

    def _list_cluster(self, name: str, part: Part) -> ClusterResync:
        """Begin the resync of a cluster. List the cluster and store that, unless an earlier session has. Raises what ``ClusterResync`` raises."""
        config = self._master.configs.get(name)
        self._began[name] = config.revision if config else 0
        cluster = ClusterResync(
            self._master,
            name,
            self._request,
            own_session=self._own_session,
            part=part,
            check_waiting=self._progress.check,
        )
        if not cluster.listed:
            cluster.compare_with_lists()
            self._keep(name, cluster.part())
        return cluster

    def _remove_orphans(self, clusters: Sequence[ClusterResync]) -> None:
        """Remove upstreams that no key knows, in one scan of the table for all clusters."""
        left = {cluster.name: cluster for cluster in clusters if not cluster.orphans_removed}
        for cluster in left.values():
            with self._errors_reported(cluster.name):
                cluster.check()
                cluster.read_upstreams()
        reading = {cluster.name: cluster for cluster in self._not_done(list(left.values()))}
        found: dict[str, list[tuple[str, UpstreamState]]] = {name: [] for name in reading}

        def is_known(upstream: str) -> bool:
            self._check()
            cluster = reading.get(upstream.partition("/")[0])
            return cluster is None or cluster.knows(upstream)

        try:
            for upstream, state in self._master.tables.upstreams.orphans(is_known) if reading else ():
                found[upstream.partition("/")[0]].append((upstream, state))
        except KubesyncError as error:
            self._fail(reading, error, str(error))
        for cluster in self._not_done(list(reading.values())):
            with self._errors_reported(cluster.name):
                cluster.remove_orphans(found[cluster.name])
                if found[cluster.name]:
                    self._keep(cluster.name, cluster.part())

    def _compare_named(self) -> list[dict[str, str]]:
        """Compare named upstreams, once the clusters are listed. Returns the named upstreams that drifted."""
        request = self._request
        answer: Answer[list[dict[str, str]]] = Answer(self._master.parts.scheduler)
        try:
            check_time(self._master)
            self._master.ask_named(CompareNamed(request.cluster, request.dry_run, request.force, answer))
            return wait_for(answer, self._check)
        except KubesyncError as error:
            self._fail([], error, "")
            return [{"upstream": "named/*", "drift": "unknown", "error": str(error)}]

    @contextmanager
    def _errors_reported(self, name: str) -> Iterator[None]:
        """Report an error within the block as the error of one cluster, so that other clusters go on. See ``_fail``."""
        try:
            yield
        except KubesyncError as error:
            self._fail([name], error, str(error))

    def _fail(self, names: Iterable[str], error: KubesyncError, said: str) -> None:
        """End the resync of these clusters with an error. Raises instead, if the error concerns the whole session."""
        if isinstance(error, NotMasterError | NotKeptError):
            raise error
        if self._progress.goes_on and time_is_up(self._master):
            # Whatever it says, the session's end may be its cause: the next session goes on.
            raise SessionEndsError(str(error)) from error
        for name in names:
            if not self._done(name):
                self._keep(name, Part(document={"cluster": name, "error": said}, done=True))

    def _keep(self, name: str, part: Part) -> None:
        """Store what is done of a cluster. Raises NotKeptError."""
        if part.done:
            self._parts[name] = part
        self._progress.keep(name, part)

    def _compare_with_zone(self, zone_id: str, clusters: Sequence[ClusterResync]) -> None:
        """Compare a zone with these clusters, and store that it is done. An error of the zone ends the resync of all of them."""
        try:
            check_time(self._master)
            self._compare(zone_id, clusters)
        except KubesyncError as error:
            said = str(error) if isinstance(error, ResyncError) else f"zone {zone_id} could not be compared: {error}"
            self._fail([cluster.name for cluster in clusters], error, said)
        for cluster in self._not_done(clusters):
            with self._errors_reported(cluster.name):
                cluster.zones.discard(zone_id)
                part = cluster.part() if cluster.zones else cluster.final_part()
                self._keep(cluster.name, part)

    def _compare(self, zone_id: str, clusters: Sequence[ClusterResync]) -> None:
        """Read states and walk the zone in this thread, while batches continue. Only suspected drift is compared between two batches.

        Keys that were written meanwhile are compared with another walk. Keys that are still written after that: see ``compare_moved``.
        """
        self._reach(zone_id)
        comparisons = [ZoneComparison(cluster, zone_id) for cluster in clusters]
        for each in comparisons:
            with self._errors_reported(each.cluster.name):
                each.remember()
        walks = _WALKS
        while going_on := [each for each in comparisons if not self._done(each.cluster.name)]:
            actual = self._walk(zone_id)
            if walks == _WALKS and not self._request.cluster:
                self._find_forgotten(actual, going_on)
            inflight = self._master.inflight.read(zone_id) if self._zones_held else None
            unsettled = as_the_last_batch_left(inflight, actual)
            for each in going_on:
                with self._errors_reported(each.cluster.name):
                    each.compare(actual, unsettled)
            walks -= 1
            comparisons = [each for each in going_on if each.moved]
            if not walks:
                break
            for each in comparisons:
                with self._errors_reported(each.cluster.name):
                    each.remember_moved()
        for each in comparisons:
            if not self._done(each.cluster.name):
                with self._errors_reported(each.cluster.name):
                    each.compare_moved()

    def _find_forgotten(self, actual: Mapping[RecordKey, RecordSet], comparisons: Sequence[ZoneComparison]) -> None:
        """Look for sets that kubesync has lost track of, among those that no cluster knew before the walk."""
        known = {Name.of(key) for each in comparisons for key in each.known_sets()}
        others = ClusterTable(self._master.parts.store).read().keys() - self._master.configs.keys()
        for some in batched((item for item in actual.items() if Name.of(item[0]) not in known), _SETS_AT_A_TIME):
            self._check()
            comparisons[0].cluster.report_forgotten(self._forgotten_rows(dict(some), others))

    def _forgotten_rows(self, actual: Mapping[RecordKey, RecordSet], others: Collection[str]) -> list[dict[str, Any]]:
        """Call ``lost_sets``. If a newer release wrote one of the items, ask for each set alone, and leave out those that fail (I4)."""
        try:
            return lost_sets(self._master.tables, actual, others)
        except NewerSchemaError:
            alone = ({key: found} for key, found in actual.items()) if len(actual) > 1 else ()
            return [row for each in alone for row in self._forgotten_rows(each, others)]

    def _reach(self, zone_id: str) -> None:
        """Wait until the zone is settled and has no batch under way. Raises ResyncError if nothing may be written to it."""
        if self._zones_held:
            return
        try:
            ask_zone(self._master, zone_id, Reach, self._check)
        except ZoneError as error:
            raise zone_blocked(zone_id, error) from error

    def _walk(self, zone_id: str) -> dict[RecordKey, RecordSet]:
        """Read all record sets of a zone."""
        actual: dict[RecordKey, RecordSet] = {}
        for key, record_set in self._master.parts.zones.walk(zone_id):
            self._check()
            actual[key] = record_set
        return actual

    def _check(self) -> None:
        """Raise SessionEndsError if the session must end."""
        check_time(self._master)
