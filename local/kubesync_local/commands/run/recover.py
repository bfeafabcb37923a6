"""``kubesync recover``: takes over existing record sets, such as after tables were lost. A dry run unless --apply is given."""

from __future__ import annotations

import argparse
from typing import Any

from kubesync.domain.errors import ErrorCode, KubesyncError, UsageError
from kubesync_local.commands.run.ending import ended_by_signals
from kubesync_local.commands.run.progress import ProgressLines
from kubesync_local.recovery.recovery import RecoveryRequest
from kubesync_local.terminal.output import print_json, print_table, remark, side_in_words
from kubesync_local.workplace.workplace import NO_CLUSTERS, Workplace

_WHAT = {
    "claimed": "exists as wanted: taken over",
    "unproven": "exists as wanted, in a zone that kubesync has not written yet: not taken over",
    "differing": "exists in another form: you decide",
    "unwanted": "no cluster wants it: you decide",
}
_COUNTED = {
    "claimed": "to take over",
    "unproven": "as wanted in a zone that kubesync has not written yet",
    "differing": "in another form",
    "unwanted": "that no Service wants",
}
_CHECK = "check them with `kubesync resync --dry-run`"


class RecoverError(KubesyncError):
    """Nothing was recovered. The message says why."""


def run(arguments: argparse.Namespace) -> int:
    """Recover, or show what would be recovered. Returns 1 if a cluster could not be recovered."""
    work = Workplace()
    if not work.chosen(arguments.cluster):
        raise UsageError(NO_CLUSTERS)
    names = arguments.name.lower().rstrip(".")
    request = RecoveryRequest(arguments.cluster, dry_run=not arguments.apply, names=names)
    session = work.application.new_session(ProgressLines())
    with ended_by_signals(lambda: session):
        report = session.run(recovery=request)
    if not report.recoveries:
        hint = "; pause the schedule and try again" if report.code == ErrorCode.NOT_MASTER else ""
        raise RecoverError(f"nothing was recovered: {report.ended} {report.message}".rstrip() + hint)
    found: dict[str, Any] = report.recoveries[0]
    for cluster in found["clusters"]:
        remark(_summary(cluster))
        for resource, reason in cluster.get("held", {}).items():
            remark(f"{cluster['cluster']}: deletions of {resource} are held back: {reason}; {_CHECK}")
    if found["dry_run"]:
        remark("nothing was changed: this was a dry run; --apply recovers")
    if arguments.output == "json":
        print_json(found)
    elif rows := _rows(found):
        print_table(rows, ("name", "type", "what", "current", "wanted", "service", "cluster"), names=2)
    return 1 if any("error" in cluster for cluster in found["clusters"]) else 0


def _summary(cluster: dict[str, Any]) -> str:
    if "error" in cluster:
        return f"{cluster['cluster']}: failed: {cluster['error']}"
    # Zones that were never written are rare: shown only if there is one.
    counted = ", ".join(
        f"{len(cluster[kind])} {text}" for kind, text in _COUNTED.items() if cluster[kind] or kind != "unproven"
    )
    return f"{cluster['cluster']}: record sets: {counted}"


def _sides(row: dict[str, Any]) -> dict[str, str]:
    wanted_type = row.get("wanted_type", row["type"])
    named = f"{wanted_type} " if wanted_type != row["type"] else ""
    return {
        "current": side_in_words(row["stands"]),
        **({"wanted": f"{named}{side_in_words(row['wanted'])}"} if "wanted" in row else {}),
    }


def _rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"cluster": cluster["cluster"], "what": text, **row, **_sides(row)}
        for cluster in found["clusters"]
        for kind, text in _WHAT.items()
        for row in cluster.get(kind, [])
    ]
