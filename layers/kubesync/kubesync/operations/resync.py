"""Full resync: compares clusters, state, zones and upstream table, and corrects every difference. One pass for all clusters:

cluster with state     each cluster's listeners list again. The lists are recorded like any other, with the same guard (I5)
state with upstreams   the upstreams table is scanned once for all clusters; each key compared its own upstreams when it was listed
state with zone        each zone is walked once for all clusters, while batches continue, and again if many of the keys that differ were
                       written meanwhile. Differences are checked between two batches, a few keys at a time. If somebody changed or
                       deleted a set of ours by hand, its current value becomes the known value, and a normal commit corrects it (I3)
zone with claims       a resync of all reports sets at names that a key owns and has no state for (``record_rows.lost_sets``)

``cluster_resync`` says how often states are read. What is done is kept, cluster by cluster and zone by zone (``resync_progress``).

A dry run in a session of its own writes to no zone: what is open stays open, and no zone is settled.

It may run in its own thread (``requests``). A cluster whose configuration changes meanwhile drops out. In a resync of
all clusters it is tried once more; one that is disabled or removed by then is left out.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import batched
from typing import Any, Final

from kubesync.actors.answer import Answer
from kubesync.aws.tables.control.clusters import ClusterTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import KubesyncError, NewerSchemaError, NotMasterError
from kubesync.domain.state import Name, UpstreamState
from kubesync.domain.upstreams.named import is_named
from kubesync.messages import CompareNamed, Reach
from kubesync.operations.cluster_resync import ClusterResync
from kubesync.operations.ports import Master, ResyncError, SessionEndsError, ask_zone, check_time, unpaused, wait_for
from kubesync.operations.record_rows import as_the_last_batch_left, lost_sets
from kubesync.operations.resync_progress import NotKeptError, ResyncProgress

_SETS_AT_A_TIME: Final = 100
_WALKS: Final = 3
"""A zone is walked at most so often, if many keys are written meanwhile."""
_FEW_KEYS: Final = 30
"""Of so many keys the names are read one by one, which takes a request of Route 53 each. 300 sets of a walk take one."""


class Resync:
    """One request, for all its clusters. Call ``run`` once."""

    def __init__(self, master: Master, progress: ResyncProgress) -> None:
        self._master = master
        self._progress = progress
        self._request = progress.request
        self._under_way: dict[str, ClusterResync] = {}  # the clusters that are listed and not done

    def run(self) -> dict[str, Any]:
        """Do the resync, or a dry run. An error of one cluster goes into the report.

        Raises:
            SessionEndsError: the session ends first, and the next one goes on. Otherwise the report says so of each cluster.
            NotKeptError: what is done cannot be kept, or nobody waits for it any more.
            NotMasterError: another session holds the lease.
        """
        only, progress = self._request.cluster, self._progress
        # A cluster that a person named may be disabled or unknown: then its error says so (``ClusterResync``).
        names = [only] if only else [name for name in unpaused(self._master.configs) if self._is_active(name)]
        progress.begin(names)
        self._resync_clusters(name for name in names if not progress.part(name).done)
        # Once more those that failed because a person changed their configuration meanwhile.
        self._resync_clusters(name for name in names if self._was_reconfigured(name))
        named = self._compare_named()
        if not only:  # a cluster that failed because it was disabled or removed meanwhile is no failure of the resync
            progress.names = [name for name in names if self._is_active(name) or not progress.part(name).failed]
        return progress.report(named)

    def _is_active(self, name: str) -> bool:
        """Whether a cluster is configured, and neither disabled nor being removed."""
        config = self._master.configs.get(name)
        return config is not None and not config.deleting and not config.paused

    def _was_reconfigured(self, name: str) -> bool:
        """Whether to try a cluster once more: in a resync of all clusters it failed, and has another configuration by now."""
        part = self._progress.part(name)
        tries = not self._request.cluster and part.failed and self._is_active(name)
        return tries and self._master.configs[name].revision != part.revision

    def _resync_clusters(self, names: Iterable[str]) -> None:
        """List these clusters, remove orphaned upstreams, and compare all their zones. Clusters that are done or fail leave ``_under_way``."""
        for name in names:
            with self._errors_reported(name):
                self._under_way[name] = self._list_cluster(name)
        self._remove_orphans()
        for zone_id in sorted({zone_id for cluster in self._under_way.values() for zone_id in cluster.zones}):
            self._compare_with_zone(zone_id)

    def _list_cluster(self, name: str) -> ClusterResync:
        """Begin the resync of a cluster. Let it be listed, and store that, unless an earlier session has. Raises what ``ClusterResync`` raises."""
        cluster = ClusterResync(self._master, name, self._progress)
        if not cluster.listed:
            cluster.compare_with_lists()
            cluster.keep()
        return cluster

    def _remove_orphans(self) -> None:
        """Remove upstreams that no key knows, in one scan of the table for all clusters. An upstream's name begins with that of its cluster."""
        self._each(ClusterResync.read_upstreams)
        # By cluster, name and state of each orphan. Clusters whose orphans an earlier session has removed are not in it, and not scanned for.
        found: dict[str, list[tuple[str, UpstreamState]]] = {
            name: [] for name, cluster in self._under_way.items() if not cluster.orphans_removed
        }

        def is_orphan(upstream: str) -> bool:
            self._check()  # the scan calls this for each upstream, so a long scan ends in time
            name = upstream.partition("/")[0]
            return not is_named(upstream) and name in found and not self._under_way[name].knows(upstream)

        def remove(cluster: ClusterResync) -> None:
            cluster.remove_orphans(found[cluster.name])
            if found[cluster.name]:
                cluster.keep()

        try:
            for stored in self._master.tables.upstreams.read_all(is_orphan, nodes=False) if found else ():
                if not stored.deleted:
                    found[stored.upstream.partition("/")[0]].append((stored.upstream, stored.state))
        except KubesyncError as error:
            self._fail(found, error, str(error))
        self._each(remove, found)

    def _compare_named(self) -> list[dict[str, str]]:
        """Compare named upstreams, once the clusters are listed. Returns the named upstreams that drifted."""
        request = self._request
        answer: Answer[list[dict[str, str]]] = Answer(self._master.parts.scheduler)
        try:
            check_time(self._master)
            self._master.named.ask(CompareNamed(request.cluster, request.dry_run, request.force, answer))
            return wait_for(answer, self._check)
        except KubesyncError as error:
            # No cluster failed. But some errors end the whole resync: then this raises. Else the row below reports the error.
            self._fail([], error, "")
            return [{"upstream": "named/*", "drift": "unknown", "error": str(error)}]

    def _each(self, act: Callable[[ClusterResync], None], names: Collection[str] | None = None) -> None:
        """Do this for each cluster that is under way and in ``names`` (None: for all). An error ends the resync of its cluster alone (I4)."""
        # A copy: a cluster that fails, or is done, leaves the dict meanwhile.
        for name, cluster in list(self._under_way.items()):
            if names is None or name in names:
                with self._errors_reported(name):
                    act(cluster)

    @contextmanager
    def _errors_reported(self, name: str) -> Iterator[None]:
        """Report an error within the block as the error of one cluster, so that other clusters go on. See ``_fail``."""
        try:
            yield
        except KubesyncError as error:
            self._fail([name], error, str(error))

    def _fail(self, names: Iterable[str], error: KubesyncError, said: str) -> None:
        """End the resync of these clusters with an error, or the whole resync.

            the error                                         what happens
            ---------                                         ------------
            NotMasterError, NotKeptError                      it is raised: the resync ends
            any, and a resync that goes on is out of time     SessionEndsError: the next session goes on
            any other                                         goes into the reports of ``names``

        Args:
            said: the error for the reports.
        """
        if isinstance(error, NotMasterError | NotKeptError):
            raise error
        if self._progress.goes_on and self._master.term.time_is_up:
            # Whatever it says, the session's end may be its cause: the next session goes on.
            raise SessionEndsError(str(error)) from error
        for name in names:
            self._under_way.pop(name, None)
            self._progress.fail(name, said)

    def _compare_with_zone(self, zone_id: str) -> None:
        """Compare a zone with its clusters, and store that. An error of the zone ends the resync of all of them."""
        names = [name for name, cluster in self._under_way.items() if zone_id in cluster.zones]
        try:
            check_time(self._master)
            self._compare(zone_id, names)
        except KubesyncError as error:
            said = str(error) if isinstance(error, ResyncError) else f"zone {zone_id} could not be compared: {error}"
            # Clusters that failed by themselves meanwhile keep their own errors.
            self._fail([name for name in names if name in self._under_way], error, said)

    def _compare(self, zone_id: str, names: Collection[str]) -> None:
        """Read states and walk the zone in this thread, while batches continue. Only suspected drift is compared between two batches.

        The table in the head of ``cluster_resync`` says why states are read before the walk, and what the zone decides.
        """

        def compare(cluster: ClusterResync) -> None:
            cluster.compare(zone_id, actual, unsettled)

        def finish(cluster: ClusterResync) -> None:
            cluster.finish(zone_id)
            if not cluster.zones:
                del self._under_way[cluster.name]

        # 1. Wait until the zone is settled and has no batch under way. Then read what each cluster knows of the zone.
        if not self._progress.zones_held:
            ask_zone(self._master, zone_id, Reach, self._check)
        self._each(lambda cluster: cluster.remember(zone_id), names)
        # 2. Walk, and compare. If many keys were written meanwhile, once more, with these keys only.
        for walks_left in reversed(range(_WALKS)):
            here = [cluster for name, cluster in self._under_way.items() if name in names]
            if not here:
                return
            actual = self._walk(zone_id)
            first_walk = walks_left == _WALKS - 1
            if first_walk and not self._request.cluster:
                self._find_forgotten(actual, here)
            # With zone actors the zone was settled in step 1. Without them, the last batch of an earlier session may still be unsettled.
            inflight = self._master.parts.inflight.read(zone_id) if self._progress.zones_held else None
            unsettled = as_the_last_batch_left(inflight, actual)
            self._each(compare, names)
            if not walks_left or sum(len(cluster.moved) for cluster in here) <= _FEW_KEYS:
                break
            self._each(lambda cluster: cluster.remember_moved(zone_id), names)
        # 3. Compare the few keys that were written meanwhile, one by one.
        self._each(finish, names)

    def _find_forgotten(self, actual: Mapping[RecordKey, RecordSet], clusters: Sequence[ClusterResync]) -> None:
        """Report sets that a key owns by its claim, but that its state does not know (``lost_sets``): its item was deleted or restored.

        Done in a resync of all clusters, after the first walk of a zone: ``known_names`` is empty later. The owner may be a key of any cluster
        of this shard, also of one that is not registered any more. So no cluster is the right one to report it: the first one does.

        Args:
            actual: all sets of the zone, also those of other people.
        """
        known = set[Name]().union(*(cluster.known_names() for cluster in clusters))
        others = ClusterTable(self._master.parts.store).read().keys() - self._master.configs.keys()
        for some in batched((item for item in actual.items() if Name.of(item[0]) not in known), _SETS_AT_A_TIME):
            self._check()
            clusters[0].report_forgotten(self._forgotten_rows(dict(some), others))

    def _forgotten_rows(self, actual: Mapping[RecordKey, RecordSet], others: Collection[str]) -> list[dict[str, Any]]:
        """Call ``lost_sets``. If a newer release wrote one of the items, ask for each set alone, and leave out those that fail (I4).

        ``others``: registered clusters that this session does not serve. Their keys are not read.
        """
        try:
            return lost_sets(self._master.tables, actual, others)
        except NewerSchemaError:
            alone = ({key: found} for key, found in actual.items()) if len(actual) > 1 else ()
            # Of one set alone, which fails, there are none.
            return [row for each in alone for row in self._forgotten_rows(each, others)]

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
