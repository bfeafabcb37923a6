"""Collects the counts of runners and zone writers in a report: at the session's end, and for metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from kubesync.cluster.runner import ClusterRunner
from kubesync.domain.report import SessionReport, percentiles
from kubesync.upstreams.composer import ComposerReport
from kubesync.zone.writer import ZoneWriter


def fill(
    report: SessionReport,
    runners: Sequence[ClusterRunner],
    writers: Mapping[str, ZoneWriter],
    composing: ComposerReport,
) -> None:
    """Complete the report of a session that has ended."""
    report.clusters += [runner.report for runner in runners]
    report.listeners += [listener.report for runner in runners for listener in runner.listeners]
    report.zones += [_zone(zone_id, writer) for zone_id, writer in writers.items()]
    report.lag = percentiles([lag for writer in writers.values() for lag in writer.report.lags])
    report.named_upstreams = asdict(composing)


def snapshot(
    report: SessionReport,
    ended: Sequence[ClusterRunner],
    running: Mapping[str, ClusterRunner],
    writers: Mapping[str, ZoneWriter],
    composing: ComposerReport,
    conflicts: Callable[[str], int],
) -> SessionReport:
    """Make a separate report of the current counts. They cover the whole session; lags cover the time since the last call.

    Args:
        ended: runners that a changed configuration ended. Their counts remain; their current states do not.
        conflicts: the number of a cluster's names that somebody else holds.
    """
    found = SessionReport(report.session, epoch=report.epoch, hand_over_seconds=report.hand_over_seconds)
    found.dynamodb = dict(report.dynamodb)
    found.clusters += [replace(runner.report, holding={}) for runner in ended]
    found.clusters += [replace(runner.report, conflicts=conflicts(name)) for name, runner in running.items()]
    found.listeners += [each.report for runner in [*ended, *running.values()] for each in runner.all_listeners]
    found.zones += [_zone(zone_id, writer) for zone_id, writer in writers.items()]
    lags: list[float] = []
    for writer in writers.values():
        fresh = writer.report.fresh_lags
        # The writer's thread may add lags at the same time.
        lags += [fresh.popleft() for _ in range(len(fresh))]
    found.lag = percentiles(lags)
    found.named_upstreams = asdict(composing)
    return found


def _zone(zone_id: str, writer: ZoneWriter) -> dict[str, Any]:
    counted = writer.report
    return {
        "zone": zone_id,
        "batches": counted.batches,
        "changes": counted.changes,
        "refused": counted.refused,
        "throttled": counted.throttled,
        "unknown": counted.unknown,
        "blocked": writer.blocked,
        "problem": counted.problem,
        "remark": counted.remark,
        "reasons": dict(counted.reasons),
    }
