"""Collects what clusters and zones have published in a report: at the session's end, and for metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from kubesync.cluster.serving import ClusterFigures
from kubesync.domain.report import SessionReport, percentiles
from kubesync.upstreams.composer import NamedReport
from kubesync.zone.progress import ZoneFigures


def fill(
    report: SessionReport,
    clusters: Iterable[ClusterFigures],
    zones: Mapping[str, ZoneFigures],
    named: NamedReport,
) -> None:
    """Complete the report of a session that has ended."""
    runs = [run for cluster in clusters for run in cluster.runs]
    report.clusters += [run.report for run in runs]
    report.listeners += [listener.report for run in runs for listener in run.listeners]
    _fill_zones(report, zones, named, [lag for zone in zones.values() for lag in zone.lags])


def snapshot(
    report: SessionReport,
    clusters: Iterable[ClusterFigures],
    zones: Mapping[str, ZoneFigures],
    named: NamedReport,
    lags_told: dict[str, int],
) -> SessionReport:
    """Make a separate report of the current counts. They cover the whole session; lags cover the time since the last call.

    The counts of an ended run remain; its current states do not.

    Args:
        lags_told: how many lags of each zone earlier calls have told; brought up to date.
    """
    found = SessionReport(report.session, epoch=report.epoch, hand_over_seconds=report.hand_over_seconds)
    found.dynamodb = dict(report.dynamodb)
    for cluster in clusters:
        for run in cluster.runs:
            ended: dict[str, Any] = {"holding": {}, "credential_days": {}}
            now = {"conflicts": cluster.conflicts} if run is cluster.running else ended
            found.clusters.append(replace(run.report, **now))
            found.listeners += [listener.report for listener in (*run.past, *run.listeners)]
    lags: list[float] = []
    for zone_id, zone in zones.items():
        fresh = zone.lags_counted - lags_told.get(zone_id, 0)
        lags += zone.lags[max(0, len(zone.lags) - fresh) :]
        lags_told[zone_id] = zone.lags_counted
    _fill_zones(found, zones, named, lags)
    return found


def _fill_zones(
    report: SessionReport, zones: Mapping[str, ZoneFigures], named: NamedReport, lags: Sequence[float]
) -> None:
    report.zones += [asdict(zone.report) for zone in zones.values()]
    report.lag = percentiles(lags)
    report.named_upstreams = asdict(named)
