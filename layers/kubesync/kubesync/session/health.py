"""Makes a session's reports. Once a minute they also say what does not get through although it should (I10).

    figures of actors ── cluster_health, for each cluster ── health_figures ── ``SessionReport.health`` ── metrics with alarms
    RegisteredClusters: which clusters there are, and which of them the session can serve

A figure is left out as long as the session cannot know it: alarms keep their state then. A false 0 would end an alarm at each hand-over,
and a false 1 would raise one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, cast

from kubesync.actors.actor import Activity
from kubesync.actors.scheduler import Scheduler
from kubesync.aws.dynamodb.store import Item, Store
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable, lost_clusters, served_at_once
from kubesync.cluster.serving import ClusterFigures
from kubesync.domain.report import SessionReport, percentiles
from kubesync.log import logger
from kubesync.session.clusters import ACTOR_OF_CLUSTER, Clusters
from kubesync.session.lease_keeper import LeaseKeeper
from kubesync.upstreams.composer import NamedReport
from kubesync.zone.progress import STUCK_SECONDS, ZoneFigures, ZoneState

ACTOR_OF_ZONE: Final = "zone {}"
"""The name of the actor's thread."""
KNOWN_AFTER_SECONDS: Final = 30.0
"""So long after a session began, a listener or zone that can work does work."""
FAILING_SECONDS: Final = 180.0
"""A listener counts as failing once it has not worked for so long."""
_LATE_SECONDS: Final = 180.0  # the alarm's threshold: below it, a session cannot say that nothing is late
_LISTENERS: Final = 2  # counted for a cluster that cannot be served: what it reads may not be known
_STUCK_SECONDS: Final = 30.0  # an actor that is in one step for so long shows in the report (``SessionReport.stuck``)


@contextmanager
def harmless(failed: str) -> Iterator[None]:
    """Log and drop any error within the block, because figures must not end a session. ``failed``: the log's message."""
    try:
        yield
    except Exception:
        logger.exception(failed)


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """What does not get through in one cluster that is served.

    ``failing``: for each listener, how many seconds it has not worked; 0: it works.
    ``oldest_open``: age in seconds of the oldest open key that needs no person; 0: there is none.
    ``waiting``: how many keys wait for a person, also with deletions that are held back.
    ``set_aside``: how many keys are set aside (``domain.large_keys``).
    ``unrecorded``: age in seconds of the oldest event that is read and not recorded.
    ``inferred``: how many deletions of the last hour were inferred from lists.
    ``turn``: for how many seconds the oldest event waits until it is its namespace's turn to be recorded, and "cluster/namespace".
    """

    failing: tuple[float, ...] = ()
    open_keys: int = 0
    oldest_open: float = 0.0
    unrecorded: float = 0.0
    waiting: int = 0
    set_aside: int = 0
    inferred: int = 0
    turn: tuple[float, str] = (0.0, "")


def cluster_health(
    name: str, found: ClusterFigures, steps: Mapping[str, float], epoch: float, now: float
) -> ClusterHealth:
    """Return the health of one cluster. If its actor hangs in a call, its listeners count as failing for as long, and nothing is recorded.

    Args:
        found: what the cluster's actor has published last.
        steps: see ``health_figures``.
        epoch: now, in seconds since 1970. ``now``: now, in monotonic seconds.
    """
    hangs = steps.get(ACTOR_OF_CLUSTER.format(name), 0.0)
    unrecorded_since = None if found.running is None else found.running.unrecorded_since
    # Of the event that waits longest for its namespace's turn: since when, and its namespace. None waits: for 0 seconds.
    since, namespace = (found.running and found.running.turn) or (now, "")
    # Seconds for each listener; 0: it works. The actor of a new cluster has not read ``failing_since`` yet: that counts as one second, not as 0.
    failing = [
        0.0 if view.absent or view.works(epoch) else epoch - (view.failing_since or epoch - 1.0) for view in found.views
    ]
    return ClusterHealth(
        failing=tuple(max(seconds, hangs) for seconds in failing),
        open_keys=found.open.open_keys,
        oldest_open=0.0 if found.open.oldest_open is None else max(0.0, epoch - found.open.oldest_open),
        unrecorded=max(hangs, 0.0 if unrecorded_since is None else now - unrecorded_since),
        waiting=found.open.waiting,
        set_aside=found.open.set_aside,
        inferred=sum(
            view.checkpoint.believed.within_the_hour(epoch) for view in found.views if view.checkpoint is not None
        ),
        turn=(now - since, f"{name}/{namespace}"),
    )


def health_figures(
    clusters: Iterable[ClusterHealth],
    unserved: int,
    pending: int,
    zones: Mapping[str, ZoneFigures],
    steps: Mapping[str, float],
    now: float,
) -> dict[str, float]:
    """Return the values of metrics, by their names. Leaves out those that cannot be known yet (see the head of this file).

        metric               left out
        ------               --------
        ListenersFailing     while none has failed for long, but one does not work, or a cluster is not served yet
        OldestOpenSeconds    while no key is known to be late, but an event has waited for KNOWN_AFTER_SECONDS to be recorded: its key may be late
                             already, and it is not known how late
        ZonesStuck           while none is stuck, but of one it is not known. Zones to which nothing may be written (``blocked``) do not count
        InferredDeletions    if there are none
        TurnWaitSeconds      if it is less than a second

    Args:
        unserved: how many registered clusters cannot be served.
        pending: how many registered clusters are not served yet.
        steps: by name, the seconds for which an actor has been in one step, or has taken no message. Only actors for which this is long.
        now: monotonic seconds.
    """
    served = list(clusters)
    found: dict[str, float] = {
        "OpenKeys": sum(each.open_keys for each in served),
        "WaitingForPerson": sum(each.waiting for each in served),
        "KeysSetAside": sum(each.set_aside for each in served),
    }
    if inferred := sum(each.inferred for each in served):
        found["InferredDeletions"] = inferred
    if (turn := max((each.turn[0] for each in served), default=0.0)) >= 1.0:
        found["TurnWaitSeconds"] = round(turn, 1)
    not_working = [seconds for each in served for seconds in each.failing]  # of each listener; 0: it works
    failing = _LISTENERS * unserved + sum(seconds >= FAILING_SECONDS for seconds in not_working)
    if failing or not (pending or any(not_working)):
        found["ListenersFailing"] = failing
    unrecorded = max((each.unrecorded for each in served), default=0.0)
    oldest = max([unrecorded, *(each.oldest_open for each in served)])
    if oldest > _LATE_SECONDS or unrecorded < KNOWN_AFTER_SECONDS:
        found["OldestOpenSeconds"] = round(oldest, 1)
    states = [
        _state_of(zone, steps.get(ACTOR_OF_ZONE.format(zone_id)), now)
        for zone_id, zone in zones.items()
        if not zone.report.blocked
    ]
    stuck = states.count(ZoneState.STUCK)
    if stuck or ZoneState.UNKNOWN not in states:
        found["ZonesStuck"] = stuck
    return found


def _state_of(zone: ZoneFigures, in_one_step: float | None, now: float) -> ZoneState:
    """Return the state of a zone as its actor knows it, unless the actor hangs in a call: then it cannot tell.

    ``in_one_step``: for how many seconds the actor hangs; None: it does not. UNKNOWN: it hangs, but not for long.
    """
    if in_one_step is None:
        return zone.progress.state(now)
    return ZoneState.STUCK if in_one_step >= STUCK_SECONDS else ZoneState.UNKNOWN


class RegisteredClusters:
    """The registered clusters of one shard, and which of them this session can serve.

    ``configs``: configurations as read last, by cluster; None: one that cannot be read. ``lost``: clusters that have lost their registration
    (``lost_clusters``). ``beyond_limit``: clusters beyond what one session can serve. They are left out; clusters that are served already stay.
    """

    def __init__(self, store: Store, shard: str, keeper: LeaseKeeper) -> None:
        self.table = ClusterTable(store)
        self.configs: Mapping[str, ClusterConfig | None] = {}
        self.lost: tuple[str, ...] = ()
        self.beyond_limit: frozenset[str] = frozenset()
        self._store = store
        self._shard = shard
        self._keeper = keeper

    def read(self) -> Mapping[str, ClusterConfig | None]:
        """Read all configurations. Returns those that this session can serve, and None for one that cannot be read.

        Also looks for lost registrations, and notes the number of clusters on the lease. The next session sees by this number that one is missing.
        """
        # First those that were served before: a new cluster must not push one of them out. ``served_at_once``: how many of them one session serves.
        served = self.configs.keys() - self.beyond_limit
        self.configs = self.table.read(self._shard)
        in_order = sorted(self.configs, key=lambda name: (name not in served, name))
        self.beyond_limit = frozenset(in_order[served_at_once([self.configs[name] for name in in_order]) :])
        if self.beyond_limit:
            logger.error("more clusters than one session serves", left_out=sorted(self.beyond_limit)[:10])
        with harmless("lost registrations could not be looked for"):
            self.lost = lost_clusters(self._store, self.configs, self._keeper.lease.clusters)
            self._keeper.note(clusters=len(self.configs) + len(self.lost))
        return {name: config for name, config in self.configs.items() if name not in self.beyond_limit}

    @property
    def watched(self) -> set[str]:
        """The names of all registered clusters that are not disabled, readable or not."""
        return {name for name, config in self.configs.items() if config is None or not config.paused}


class Reporter:
    """Makes the reports of one session from what its actors publish.

    ``report`` is the session's own, complete after ``fill``. Once a minute, ``snapshot`` makes another report of the counts so far, and ``health``
    the figures for alarms.

    ``watches_since`` (monotonic): None before clusters are watched. ``turn``: the longest of all clusters at the last call of ``health``, see
    ``ClusterHealth``.
    """

    def __init__(self, report: SessionReport, scheduler: Scheduler, activity: Activity) -> None:
        self.report = report
        self.watches_since: float | None = None
        self.turn = (0.0, "")
        self._scheduler = scheduler
        self._activity = activity
        self._lags_reported: dict[str, int] = {}  # by zone, how many lags the last snapshot had covered

    def fill(self, clusters: Iterable[ClusterFigures], zones: Mapping[str, ZoneFigures], named: NamedReport) -> None:
        """Complete the report of a session, once all its actors have ended. Call it once: it adds to the report.

        ``runs``: see ``snapshot``. A cluster has another report for each.
        """
        report, runs = self.report, [run for cluster in clusters for run in cluster.runs]
        report.clusters += [run.report for run in runs]
        report.listeners += [listener.report for run in runs for listener in run.listeners]
        _fill_zones(report, zones, named, [lag for zone in zones.values() for lag in zone.lags])

    def snapshot(
        self, clusters: Iterable[ClusterFigures], zones: Mapping[str, ZoneFigures], named: NamedReport
    ) -> SessionReport:
        """Make a separate report of the current counts. They cover the whole session; lags cover the time since the last call.

        A *run* is the time in which a cluster is watched with one configuration. The counts of an ended run remain; its current states
        (deletions that are held back, days of credentials, conflicts) do not.
        """
        report = self.report
        found = SessionReport(report.session, epoch=report.epoch, hand_over_seconds=report.hand_over_seconds)
        found.dynamodb = dict(report.dynamodb)
        for cluster in clusters:
            for run in cluster.runs:
                no_states: dict[str, Any] = {"holding": {}, "credential_days": {}}
                states = {"conflicts": cluster.open.conflicts} if run is cluster.running else no_states
                found.clusters.append(replace(run.report, **states))
                found.listeners += [listener.report for listener in (*run.past, *run.listeners)]
        _fill_zones(found, zones, named, self.fresh_lags(zones))
        self._lags_reported |= {zone_id: zone.lags_counted for zone_id, zone in zones.items()}
        found.stuck = self._activity.stuck(_STUCK_SECONDS)
        if found.stuck:
            logger.warning("a step takes long", seconds_by_actor=found.stuck)
        return found

    def fresh_lags(self, zones: Mapping[str, ZoneFigures]) -> list[float]:
        """Return the lags, in seconds, of all changes that have landed since the last snapshot. Changes nothing: ``snapshot`` notes what it covered.

        A zone keeps its last lags (``ZoneFigures.lags``) and counts all of them (``lags_counted``).
        """
        lags: list[float] = []
        for zone_id, zone in zones.items():
            fresh = zone.lags_counted - self._lags_reported.get(zone_id, 0)
            lags += zone.lags[max(0, len(zone.lags) - fresh) :]
        return lags

    def health(
        self,
        clusters: Clusters,
        zones: Mapping[str, ZoneFigures],
        steps: Mapping[str, float],
        registered: RegisteredClusters,
        details: Item,
    ) -> dict[str, float]:
        """Return what does not get through, see ``health_figures``. Empty while nothing is known.

            a registered cluster that is not disabled                   counts as
            -----------------------------------------                   ---------
            its configuration cannot be read, and it is not served      cannot be served: all its listeners fail
            is beyond what one session can serve                        the same
            became unreadable, and its listeners have not worked since  the same, also if it is served again
            is served                                                   served: its ``ClusterHealth``
            any other: it was added a moment ago                        pending

        Updates ``turn`` and ``Clusters.became_unreadable``.

        Args:
            steps: see ``health_figures``.
            details: what this session notes on the lease (``LeaseKeeper.note``).
        """
        epoch, now, figures = self._scheduler.epoch_seconds(), self._scheduler.monotonic(), clusters.actors.figures
        if self.watches_since is None or now - self.watches_since < KNOWN_AFTER_SECONDS:
            return {}
        watched = registered.watched
        served = {
            name: cluster_health(name, figures[name], steps, epoch, now) for name in watched & clusters.configs.keys()
        }
        # 1. Clusters that are served, and those of them that work again.
        self.turn = max((each.turn for each in served.values()), default=(0.0, ""))
        clusters.became_unreadable -= {name for name, each in served.items() if not any(each.failing)}
        # 2. Clusters that count as not served: the first three rows of the table.
        unreadable = {name for name in watched if registered.configs[name] is None} - clusters.configs.keys()
        unserved = unreadable | ((clusters.became_unreadable | registered.beyond_limit) & watched)
        # 3. All others are served, or pending.
        rest = [each for name, each in served.items() if name not in unserved]
        found = health_figures(rest, len(unserved), len(watched - served.keys() - unserved), zones, steps, now)
        found["RegistrationsLost"] = len(registered.lost)
        if since_ms := details.get("resynced_at_ms"):
            found["HoursSinceResync"] = (epoch - cast(int, since_ms) / 1000) // 3600
        return found


def _fill_zones(
    report: SessionReport, zones: Mapping[str, ZoneFigures], named: NamedReport, lags: Sequence[float]
) -> None:
    """Add zones, named upstreams and lags to a report."""
    report.zones += [asdict(zone.report) for zone in zones.values()]
    report.lag = percentiles(lags)
    report.named_upstreams = asdict(named)


_LEFT_OUT: Final = ("session", "stuck", "resyncs", "recoveries", "transactions", "dynamodb", "steady")

type Minute = Sequence[float]
"""One beat in which changes landed, in four numbers: seconds since the session began, how many changes, and their median and 99th percentile
lag in seconds."""


def session_in_short(report: SessionReport, minutes: Sequence[Minute]) -> dict[str, Any]:
    """Return the report of a session that has ended, as it is stored: without empty fields, so that a quiet session costs one write unit."""
    fields = {name: value for name, value in asdict(report).items() if name not in _LEFT_OUT}
    for cluster in fields["clusters"]:
        cluster["recording_seconds"] = round(cluster["recording_seconds"], 3)
        del cluster["holding"]
    found: dict[str, Any] = _without_empty({**fields, "minutes": [list(minute) for minute in minutes]})
    return found


def _without_empty(value: Any) -> Any:
    """Return a value without fields of dicts that are empty, zero or false, at any depth."""
    if isinstance(value, dict):
        kept = {name: _without_empty(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in (None, "", 0, False, [], {})}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value
