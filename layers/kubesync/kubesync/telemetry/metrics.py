"""A session's CloudWatch metrics in the embedded metric format: lines in the log, no calls.

To add one: a row below, its value in ``session.health`` or ``domain.report``, and its name in ``_counts``, ``_states`` or a method here. If it
is in seconds: ``IN_SECONDS``, else it is cut to a whole number. If an alarm or the dashboard uses it: ``ALARMED``, ``template.yaml``,
``docs/runbook.md`` and `make terraform reference`.

Namespace ``kubesync``. ``service`` is ``kubesync-<deployment>``, which separates the deployments of one account.

metric                       dimensions                       unit     written
------                       ----------                       ----     -------
MasterHeartbeat              service                          Count    1 a minute, written by a master that has held its fences
                                                                       for a minute, or to its deadline
  and                        service, shard                   Count    instead, by a master of the shards 1 to 15
SessionsCutShort             service                          Count    1 for a session that was the master and was ended before;
                                                                       nothing for others
Windows, Events,             service                          Count    each minute, how many since the last one
  EventsMerged, KeysChanged
RecordingTime                service                          Seconds  how long recording windows took, over all clusters;
                                                                       only in minutes in which there were any
Relists                      service                          Count    complete lists that were read
TablesThrottled              service                          Count    requests that DynamoDB refused for now, of all kinds
Batches, Changes,            service                          Count    over all hosted zones
  BatchesRefused, Throttles
RecordSetsDeleted            service                          Count    each minute, over all hosted zones: record sets at names at which
                                                                       nothing took their place; only if there were any
LagMedian, LagP99            service                          Seconds  from a window's first event to the accepted batch;
                                                                       only in minutes in which batches landed
Conflicts                    service                          Count    names that somebody else holds, as far as known
ZonesBlocked                 service                          Count    zones that cannot be written now
OldestOpenSeconds            service                          Seconds  age of the oldest change that should get through by itself: an
                                                                       open key, or events that cannot be recorded
TurnWaitSeconds              service                          Seconds  for how long the oldest event of a namespace waits until it is
                                                                       recorded; only if it is a second or more. It begins with each
                                                                       session, which reads again what the last one left
OpenKeys                     service                          Count    such keys
ListenersFailing             service                          Count    listeners of enabled clusters that have not worked for 3
                                                                       minutes; also where no listener could be made
ZonesStuck                   service                          Count    zones that have something to do, and for 3 minutes nothing
                                                                       landed; those of ZonesBlocked are not among them
WaitingForPerson             service                          Count    keys that only a person can mend, as far as known
KeysSetAside                 service                          Count    Services whose endpoints are not taken in, because sessions
                                                                       died while they planned them
HeldDeletions                service                          Count    listeners whose deletions are held back; only if a list
                                                                       in this session holds some, or all say that there are none
InferredDeletions            service                          Count    objects that went within the last hour because lists lacked
                                                                       them; only if there are any
NamedUpstreamsWritten        service                          Count    each minute, if there are named upstreams
NamedUpstreamsStuck          service                          Count    1 while a problem prevents composing them, else 0
ResyncErrors                 service                          Count    when a resync of all clusters ends: clusters that could not
                                                                       be resynchronised; 0 for a good one
ResyncDifferences            service                          Count    when a scheduled resync of all ends, or another one that found
                                                                       none: differences that were no changes under way
HoursSinceResync             service                          Count    whole hours since a full resync of all ended without an error
RegistrationsLost            service                          Count    clusters that are not registered, and were not removed
CredentialDaysLeft           service                          Count    whole days until the first certificate or token of a
  and                        service, cluster                          connection ends; negative after it; only where one is known
HandOverGap                  service                          Seconds  once a session: how long nobody watched before it
ListenerErrors               service, code, key               Count    codes 6 to 12, each minute
  and                        service, code, key, cluster
ListenersEnded               the same                         Count    codes 1 to 5: how each listener ended
Sessions                     service, ended                   Count    one per session; ``ended`` is the key of its code

OldestOpenSeconds and OpenKeys to KeysSetAside are left out as long as a session cannot know them: see ``session.health``. HoursSinceResync and
RegistrationsLost are left out in the same cases.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from kubesync.aws.dynamodb.store_calls import KINDS
from kubesync.domain.errors import ErrorCode
from kubesync.domain.report import ResyncEnded, SessionReport
from kubesync.settings import Settings

NAMESPACE: Final = "kubesync"
# The codes of a session that was ended before its time. A session for one resync ends early too, when it is done: with the code 0.
_CUT_SHORT: Final = (ErrorCode.NOT_MASTER, ErrorCode.WORKER_EXITING)
_CODES: Final = {code.key: code for code in ErrorCode}
IN_SECONDS: Final = ("RecordingTime", "LagMedian", "LagP99", "OldestOpenSeconds", "TurnWaitSeconds", "HandOverGap")

ALARMED: Final = frozenset(
    [
        "MasterHeartbeat",
        "SessionsCutShort",
        "LagP99",
        "ListenerErrors",
        "ZonesBlocked",
        "OldestOpenSeconds",
        "OpenKeys",
        "TurnWaitSeconds",
        "ListenersFailing",
        "ZonesStuck",
        "HeldDeletions",
        "InferredDeletions",
        "RecordSetsDeleted",
        "KeysSetAside",
        "ResyncErrors",
        "HoursSinceResync",
        "ResyncDifferences",
        "RegistrationsLost",
        "NamedUpstreamsStuck",
        "CredentialDaysLeft",
    ]
)
"""What the template has alarms on. A dashboard shows more."""

type _ByListener = Counter[tuple[str, str]]
"""Counts by the key of an error code and the cluster."""


type Write = Callable[[Mapping[str, float], tuple[Mapping[str, str], ...]], None]
"""Takes figures by name, and the sets of dimensions under which they appear."""


class MetricsPublisher:
    """Writes one session's metrics, to standard output unless ``write`` is given. Only the session's own thread calls it.

    Args:
        shard: whose master this is, if the deployment has several: each has an alarm of its own. Empty: shard 0.
    """

    def __init__(self, deployment: str, write: Write | None = None, *, shard: str = "") -> None:
        # The dimension of the heartbeat's own shard, as a set of dimensions; empty for shard 0, whose heartbeat has no such dimension.
        self._of_shard: tuple[Mapping[str, str], ...] = ({"shard": shard},) if shard not in ("", "0") else ()
        self._write_line = write or partial(write_embedded, f"kubesync-{deployment}")
        self._failed: _ByListener = Counter()  # errors up to the last beat
        self._last: dict[str, float] = {}  # by metric, the count of the session at its last ``_grow``
        self._gap_written = False

    def beat(self, snapshot: SessionReport) -> None:
        """Write a minute's metrics. The session calls it once a minute, and at its end.

        ``snapshot`` counts from the session's start, so most figures are how much a count has grown since the last beat. Its lags are those
        since the last beat.
        """
        counted = _counts(snapshot)
        # 1. The heartbeat: of shard 0 with the other counts, of another shard under its own dimension.
        heartbeat = {"MasterHeartbeat": 1} if snapshot.steady else {}
        if heartbeat and self._of_shard:
            self._write(heartbeat, *self._of_shard)
            heartbeat = {}
        self._write(heartbeat | {name: self._grow(name, count) for name, count in counted.items()})
        # 2. Errors by code, and what is written only if there is some.
        failed = _failures(snapshot)
        self._by_code("ListenerErrors", failed - self._failed)
        self._failed = failed
        recording = sum(each.recording_seconds for each in snapshot.clusters)
        deleted = sum(zone["deleted"] for zone in snapshot.zones)
        for name, total in (("RecordingTime", recording), ("RecordSetsDeleted", deleted)):
            if (grown := self._grow(name, total)) > 0:
                self._write({name: grown})
        # 3. States as they are now; then named upstreams, credentials, the gap before this session (once), and lags.
        self._write(_states(snapshot))
        if snapshot.health:
            self._write(snapshot.health)
        self._write_named(snapshot.named_upstreams)
        # By cluster, the days until the first of its credentials ends. The smallest of all clusters is written without a cluster.
        days = {each.cluster: min(each.credential_days.values()) for each in snapshot.clusters if each.credential_days}
        for cluster, left in sorted(days.items()):
            self._write({"CredentialDaysLeft": left}, {"cluster": cluster})
        if days:
            self._write({"CredentialDaysLeft": min(days.values())})
        if snapshot.hand_over_seconds is not None and not self._gap_written:
            self._gap_written = True
            self._write({"HandOverGap": snapshot.hand_over_seconds})
        if snapshot.lag:
            self._write({"LagMedian": snapshot.lag["p50"], "LagP99": snapshot.lag["p99"]})

    def resync_ended(self, ended: ResyncEnded) -> None:
        """Write what a resync of all clusters has found.

        Differences of a resync that a person requested are written only if there are none, which ends an alarm: the person sees the others.
        """
        self._write({"ResyncErrors": ended.errors})
        if ended.scheduled or not ended.differences:
            self._write({"ResyncDifferences": ended.differences})

    def ended(self, report: SessionReport) -> None:
        """Write how the session and each of its listeners ended. Called once, when ``Session.run`` has returned.

        A session was cut short if it was the master (``epoch``), and was ended before its time and before its first minute was over
        (``steady``).
        """
        self._write({"Sessions": 1}, {"ended": report.ended})
        if report.epoch and report.code in _CUT_SHORT and not report.steady:
            self._write({"SessionsCutShort": 1})
        ends = Counter((each.ended, each.cluster) for each in report.listeners if each.ended in _CODES)
        self._by_code("ListenersEnded", ends)

    def _write_named(self, named: Mapping[str, Any]) -> None:
        """Write the figures of named upstreams, if any are registered, or this minute has something to say about them."""
        written, stuck = self._grow("NamedUpstreamsWritten", named.get("written", 0)), bool(named.get("problem"))
        if named.get("registered") or written or stuck:
            self._write({"NamedUpstreamsWritten": written, "NamedUpstreamsStuck": int(stuck)})

    def _grow(self, name: str, count: float) -> float:
        """Return how much a count of the whole session has grown since the last call for this name, and remember it."""
        before, self._last[name] = self._last.get(name, 0), count
        return count - before

    def _by_code(self, name: str, counts: _ByListener) -> None:
        """Write counts under the code alone, and under code and cluster."""
        for (key, cluster), count in sorted(counts.items()):
            dimensions = {"code": str(int(_CODES[key])), "key": key}
            self._write({name: count}, dimensions, {**dimensions, "cluster": cluster})

    def _write(self, values: Mapping[str, float], *dimension_sets: Mapping[str, str]) -> None:
        """Write these metrics under each set of dimensions, besides ``service``; without a set, under ``service`` alone."""
        self._write_line(values, dimension_sets)


def embedded(settings: Settings) -> Write:
    """Return a function that writes metrics to standard output: those that the settings ask for, because CloudWatch charges for each metric.

    All, or only those of alarms (``dashboard_metrics``); of single clusters only with ``cluster_metrics``.
    """

    def write(values: Mapping[str, float], dimension_sets: tuple[Mapping[str, str], ...]) -> None:
        wanted = values if settings.dashboard_metrics else {name: values[name] for name in values if name in ALARMED}
        sets = tuple(each for each in dimension_sets if settings.cluster_metrics or "cluster" not in each)
        # Not if all sets were left out: without one the line would be for ``service`` alone.
        if wanted and (sets or not dimension_sets):
            write_embedded(f"kubesync-{settings.deployment}", wanted, sets)

    return write


def write_embedded(service: str, values: Mapping[str, float], dimension_sets: tuple[Mapping[str, str], ...]) -> None:
    """Write one line of the embedded metric format; the metrics appear under each set of dimensions."""
    # A new provider for each line: Powertools' Metrics keeps values in the class.
    line = AmazonCloudWatchEMFProvider(namespace=NAMESPACE, default_dimensions={"service": service})
    for at, dimensions in enumerate(dimension_sets):
        if at:  # a further set
            line.add_dimensions(**dimensions)
            continue
        # The first set extends the provider's own.
        for dimension, value in dimensions.items():
            line.add_dimension(dimension, value)
    for name, figure in values.items():
        if name in IN_SECONDS:
            line.add_metric(name, MetricUnit.Seconds, figure)
        else:
            line.add_metric(name, MetricUnit.Count, int(figure))
    line.flush_metrics()


def _counts(report: SessionReport) -> dict[str, int]:
    """Return counts that grow over the session, by the names of metrics."""
    clusters, zones = report.clusters, report.zones
    return {
        "Windows": sum(each.windows for each in clusters),
        "Events": sum(each.events for each in clusters),
        "EventsMerged": sum(each.merged for each in clusters),
        "KeysChanged": sum(each.changed_keys for each in clusters),
        "Relists": sum(each.lists for each in report.listeners),
        "Batches": sum(int(zone["batches"]) for zone in zones),
        "Changes": sum(int(zone["changes"]) for zone in zones),
        "BatchesRefused": sum(int(zone["refused"]) for zone in zones),
        "Throttles": sum(int(zone["throttled"]) for zone in zones),
        "TablesThrottled": sum(report.dynamodb.get(f"refused_{kind}", 0) for kind in KINDS),
    }


def _states(report: SessionReport) -> dict[str, int]:
    """Return current states, by the names of metrics. Leaves out held deletions if the session has only resumed: it cannot know them."""
    found = {
        "Conflicts": sum(each.conflicts for each in report.clusters),
        "ZonesBlocked": sum(bool(zone["blocked"]) for zone in report.zones),
    }
    # Every listener that listed in this session says whether its deletions are held. Their number is known if all listeners have said so.
    holding = {(each.cluster, resource): held for each in report.clusters for resource, held in each.holding.items()}
    listeners = {(each.cluster, each.resource) for each in report.listeners if not each.ended}
    if any(holding.values()) or (listeners and listeners <= holding.keys()):
        found["HeldDeletions"] = sum(holding.values())
    return found


def _failures(report: SessionReport) -> _ByListener:
    """Count the errors of all listeners over the session, by code and cluster."""
    found: _ByListener = Counter()
    for listener in report.listeners:
        for key, count in listener.errors.items():
            found[key, listener.cluster] += count
    return found
