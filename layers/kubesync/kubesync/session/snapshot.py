"""What runners and zone writers have counted, as a report: at the session's end, and while it goes on for its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kubesync.cluster.runner import ClusterRunner
from kubesync.domain.report import SessionReport, percentiles
from kubesync.zone.writer import ZoneWriter


def fill(report: SessionReport, runners: Sequence[ClusterRunner], writers: Mapping[str, ZoneWriter]) -> None:
    """Complete the report of a session that is over."""
    report.clusters += [runner.report for runner in runners]
    report.listeners += [listener.report for runner in runners for listener in runner.listeners]
    report.zones += [_zone(zone_id, writer) for zone_id, writer in writers.items()]
    report.lag = percentiles([lag for writer in writers.values() for lag in writer.report.lags])


def snapshot(
    report: SessionReport,
    ended: Sequence[ClusterRunner],
    running: Mapping[str, ClusterRunner],
    writers: Mapping[str, ZoneWriter],
    conflicts: Callable[[str], int],
) -> SessionReport:
    """A report of its own on what there is by now. Counts are of the whole session; lags of the time since the last call.

    Args:
        ended: runners that a changed configuration ended: they have counted, but nothing is so any more because of them.
        conflicts: how many names of a cluster somebody else holds.
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
        # The writer's thread may add to it meanwhile.
        lags += [fresh.popleft() for _ in range(len(fresh))]
    found.lag = percentiles(lags)
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
