"""``kubesync resync``: a full resync or its dry run, by the running session or by this process."""

import argparse
import os
import sys
from typing import Any, Final

from kubesync.domain.errors import UsageError
from kubesync.operations.resync_invocation import ResyncEvent
from kubesync.operations.resync_progress import RUNNING, WITHDRAWN_REPORT
from kubesync.session.session import Session
from kubesync_local.commands.run.forcing import agree
from kubesync_local.plans.of_report import plan_of_report
from kubesync_local.plans.plan import zone_titles
from kubesync_local.plans.view import show_plan
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.sessions.ending import ended_by_signals
from kubesync_local.sessions.live import showing_progress
from kubesync_local.terminal.asking import can_ask
from kubesync_local.terminal.output import counted, print_document, print_table, remark, side_in_words
from kubesync_local.workplace.people import note
from kubesync_local.workplace.workplace import NO_CLUSTERS, Workplace

_PLURALS: Final = {
    "changes": "changes",
    "drift": "drifted record sets",
    "forgotten": "forgotten record sets",
    "conflicts": "conflicts",
    "held_deletions": "deletions held back",
}


def run(arguments: argparse.Namespace) -> int:
    """Run the resync and show its result. Returns 1 if a cluster could not be resynchronised, or if the resync is not done."""
    work = Workplace()
    if not work.chosen(arguments.cluster):
        raise UsageError(NO_CLUSTERS)
    wanted = ResyncEvent(cluster=arguments.cluster, dry_run=arguments.dry_run, force=arguments.force)
    if arguments.force and not arguments.dry_run and not arguments.yes and can_ask():
        agree(work, lambda: report_of(work, wanted.model_copy(update={"dry_run": True}), arguments.timeout))
    if arguments.force and not arguments.dry_run:
        for config in work.chosen(arguments.cluster):
            note(work, config.name, "resync --force", [("held deletions", "held back", "to be made")])
    report = report_of(work, wanted, arguments.timeout)
    remark_on(report)
    output = arguments.output or ("table" if sys.stdout.isatty() else "json")
    if output != "table":
        print_document(report, output)
    elif report["dry_run"]:
        show_plan(plan_of_report(report, zone_titles(work.clusters.all())))
    elif rows := _rows(report):
        print_table(rows, ("cluster", "what", "from", "to"), names=2)
    return 1 if "status" in report or has_errors(report) else 0


def report_of(work: Workplace, wanted: ResyncEvent, timeout: float) -> dict[str, Any]:
    """Get a resync done, by the running session or by this process; of all clusters, by those of all shards, one after the other.

    Args:
        timeout: seconds to wait for the running session of each shard.
    """
    shards = sorted({config.shard for config in work.clusters.all()}) or [work.settings.shard]
    if wanted.cluster or os.environ.get("KUBESYNC_SHARD") or shards == [work.settings.shard]:
        return _report(work, wanted, timeout)
    reports = [_report(work.in_shard(shard), wanted, timeout) for shard in shards]
    first = next((each for each in reports if "status" in each), reports[0])
    merged = {name: [row for each in reports for row in each.get(name, ())] for name in ("clusters", "named_upstreams")}
    return {**first, **{name: rows for name, rows in merged.items() if rows or name in first}}


def _report(work: Workplace, wanted: ResyncEvent, timeout: float) -> dict[str, Any]:
    own: list[Session] = []
    clock = work.application.scheduler
    until = clock.monotonic() + timeout
    with showing_progress(compares=wanted.dry_run) as progress:
        invocation = work.application.resync_invocation(wanted, lambda: until - clock.monotonic(), progress, own.append)
        # A session of our own that found another master has ended: a signal then ends the wait for that master.
        with ended_by_signals(lambda: own[-1] if own and not own[-1].report.ended else None):
            return invocation.run()


def remark_on(report: dict[str, Any]) -> None:
    """Say on standard error what came out, in a line for each cluster."""
    for cluster in report["clusters"]:
        remark(_summary(cluster, dry_run=report["dry_run"]))
    for each in report.get("named_upstreams", []):
        remark(f"{each['upstream']}: {_of_named(each, report)}")
    if report.get("status") == RUNNING:
        remark(
            f"the resync goes on in the next session: {report['id']}; `kubesync status` shows how far it is, and its result"
        )
    if report.get("status") == WITHDRAWN_REPORT:
        remark("the resync was interrupted: what was done stays, and no session goes on with it; run it again")


def _of_named(row: dict[str, Any], report: dict[str, Any]) -> str:
    if "error" in row:
        return f"failed: {row['error']}"
    if row["drift"] == "stray" and not report["forced"]:
        return "it is not registered: `kubesync resync --force` removes it"
    if row["drift"] == "unknown":
        return "cannot be composed: one of its members cannot be read"
    done = "would be written again" if report["dry_run"] else "written again"
    return f"{row['drift']}: {done}" if row["drift"] != "stray" else "it is not registered: removed"


def _summary(cluster: dict[str, Any], *, dry_run: bool) -> str:
    name = cluster["cluster"]
    if "error" in cluster:
        return f"{name}: failed: {cluster['error']}"
    counts = cluster["counts"]
    changed = counted(counts["changes"], "change") if dry_run else counted(cluster["changed_keys"], "key changed")
    parts = [
        changed,
        f"{counts['drift']} record set{'' if counts['drift'] == 1 else 's'} drifted",
        counted(counts["conflicts"], "conflict"),
    ]
    if lost := counts.get("forgotten"):
        parts.append(f"{lost} record set{'' if lost == 1 else 's'} forgotten: see the runbook, By hand")
    for resource, reason in cluster["held"].items():
        parts.append(
            f"{counted(cluster['held_counts'].get(resource, 0), 'deletion')} of {resource} held back ({reason})"
        )
    return f"{name}: {'dry run: ' if dry_run else ''}{', '.join(parts)}"


def _rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for cluster in report["clusters"]:
        name = cluster["cluster"]
        if "error" in cluster:
            rows.append({"cluster": name, "what": f"failed: {cluster['error']}"})
            continue
        rows += [
            {
                "cluster": name,
                "what": f"{drift['drift']} {drift['name']} {drift['type']}",
                "from": _side(drift["stands"]),
                "to": _side(drift["known"]),
            }
            for drift in cluster["drift"]
        ]
        rows += [
            {
                "cluster": name,
                "what": f"forgotten {e['name']} {e['type']} of {e['service']}",
                "from": _side(e["stands"]),
            }
            for e in cluster.get("forgotten", ())
        ]
        rows += [
            {"cluster": name, "what": f"conflict {each['name']}: {in_the_way_for_people(each['reason'])}"}
            for each in cluster["conflicts"]
        ]
        rows += [
            {
                "cluster": name,
                "what": f"held back: the deletion of {each['listener']}/{each['object']} ({each['service']})",
            }
            for each in cluster["held_deletions"]
        ]
        left_out = cluster.get("left_out", {})
        rows += [
            {"cluster": name, "what": f"... and {count} more {_PLURALS[kind]}"} for kind, count in left_out.items()
        ]
    return rows


def _side(value: object) -> str | None:
    """One side of a change in words; empty if there is nothing on it."""
    return None if value is None else side_in_words(value)


def has_errors(report: dict[str, Any]) -> bool:
    """Whether a cluster could not be compared."""
    return any("error" in cluster for cluster in report["clusters"])
