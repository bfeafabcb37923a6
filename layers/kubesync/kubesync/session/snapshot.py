"""Collects the counts of listening runs and zones in a report: at the session's end, and for metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from kubesync.cluster.run import ListeningRun
from kubesync.domain.report import SessionReport, percentiles
from kubesync.upstreams.composer import NamedReport
from kubesync.zone.actor import ZoneActor


def fill(
    report: SessionReport, runs: Iterable[ListeningRun], zones: Mapping[str, ZoneActor], named: NamedReport
) -> None:
    """Complete the report of a session that has ended."""
    for run in runs:
        report.clusters.append(run.report)
        report.listeners += [listener.report for listener in run.listeners]
    _fill_zones(report, zones, named, [lag for zone in zones.values() for lag in zone.report.lags])


def snapshot(
    report: SessionReport,
    runs: Iterable[tuple[ListeningRun, bool]],
    zones: Mapping[str, ZoneActor],
    named: NamedReport,
    conflicts: Callable[[str], int],
) -> SessionReport:
    """Make a separate report of the current counts. They cover the whole session; lags cover the time since the last call.

    Args:
        runs: every run, and whether it goes on. The counts of an ended run remain; its current states do not.
        conflicts: the number of a cluster's names that somebody else holds.
    """
    found = SessionReport(report.session, epoch=report.epoch, hand_over_seconds=report.hand_over_seconds)
    found.dynamodb = dict(report.dynamodb)
    for run, goes_on in runs:
        counts = run.report
        found.clusters.append(
            replace(counts, conflicts=conflicts(counts.cluster))
            if goes_on
            else replace(counts, holding={}, credential_days={})
        )
        found.listeners += [listener.report for listener in run.all_listeners]
    fresh = [zone.report.fresh_lags for zone in zones.values()]
    # The zone's thread may add lags at the same time.
    _fill_zones(found, zones, named, [lags.popleft() for lags in fresh for _ in range(len(lags))])
    return found


def _fill_zones(
    report: SessionReport, zones: Mapping[str, ZoneActor], named: NamedReport, lags: Sequence[float]
) -> None:
    report.zones += [_zone(zone_id, zone) for zone_id, zone in zones.items()]
    report.lag = percentiles(lags)
    report.named_upstreams = asdict(named)


def _zone(zone_id: str, zone: ZoneActor) -> dict[str, Any]:
    counted = zone.report
    return {
        "zone": zone_id,
        "batches": counted.batches,
        "changes": counted.changes,
        "refused": counted.refused,
        "throttled": counted.throttled,
        "unknown": counted.unknown,
        "blocked": zone.blocked,
        "problem": counted.problem,
        "remark": counted.remark,
        "reasons": dict(counted.reasons),
    }
