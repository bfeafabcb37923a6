"""A session's report as CloudWatch metrics, in the embedded metric format: lines of the log, no calls.

metric           dimensions                    unit
------           ----------                    ----
Sessions         service, ended                Count     one per session; ``ended`` is the key of its code
ListenerStopped  service, code, key, cluster   Count     errors of listeners (6 to 12), and how each ended (1 to 5)
Windows, Events, EventsMerged, KeysChanged     Count
Batches, Changes, BatchesRefused, ...          Count     of all hosted zones together
LagMedian, LagP99                              Seconds   from a window's first event to the accepted batch
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from aws_lambda_powertools import Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from kubesync.domain.errors import ErrorCode
from kubesync.session.report import SessionReport

_CODES: Final = {code.key: code for code in ErrorCode}


def publish(metrics: Metrics, report: SessionReport) -> None:
    """Write the session's figures to standard output."""
    _one(metrics, "Sessions", 1, {"ended": report.ended})
    for (key, cluster), count in sorted(_stops(report).items()):
        _one(metrics, "ListenerStopped", count, {"code": str(int(_CODES[key])), "key": key, "cluster": cluster})
    clusters, zones = report.clusters, report.zones
    for name, value in (
        ("Windows", sum(each.windows for each in clusters)),
        ("Events", sum(each.events for each in clusters)),
        ("EventsMerged", sum(each.merged for each in clusters)),
        ("KeysChanged", sum(each.changed_keys for each in clusters)),
        ("Batches", sum(int(zone["batches"]) for zone in zones)),
        ("Changes", sum(int(zone["changes"]) for zone in zones)),
        ("BatchesRefused", sum(int(zone["refused"]) for zone in zones)),
        ("BatchesThrottled", sum(int(zone["throttled"]) for zone in zones)),
    ):
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
    if report.lag:
        metrics.add_metric(name="LagMedian", unit=MetricUnit.Seconds, value=report.lag["p50"])
        metrics.add_metric(name="LagP99", unit=MetricUnit.Seconds, value=report.lag["p99"])
    metrics.flush_metrics()


def _stops(report: SessionReport) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for listener in report.listeners:
        for key, count in listener.errors.items():
            found[key, listener.cluster] += count
        if listener.ended in _CODES:
            found[listener.ended, listener.cluster] += 1
    return found


def _one(metrics: Metrics, name: str, value: int, dimensions: dict[str, str]) -> None:
    with single_metric(
        name=name,
        unit=MetricUnit.Count,
        value=value,
        namespace=metrics.namespace,
        default_dimensions={"service": metrics.service or "kubesync"},
    ) as metric:
        for dimension, text in dimensions.items():
            metric.add_dimension(dimension, text)
