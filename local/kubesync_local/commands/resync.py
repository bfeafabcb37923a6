"""``kubesync resync``: a full resync or a dry run of it, by the running master or by this process."""

from __future__ import annotations

import argparse
from typing import Any

from kubesync.domain.errors import UsageError
from kubesync.session.resync_invocation import ResyncEvent, has_errors
from kubesync.session.session import Session
from kubesync_local.commands.ending import ended_by_signals
from kubesync_local.commands.progress import ProgressLines
from kubesync_local.commands.workplace import Workplace
from kubesync_local.output import counted, new_console, print_json, remark, table


def run(arguments: argparse.Namespace) -> int:
    """Have it done, say what came of it. 1 where some cluster could not be resynchronised."""
    work = Workplace()
    if not work.chosen(arguments.cluster):
        raise UsageError("no cluster is registered: see `kubesync cluster add --help`")
    own: list[Session] = []
    clock = work.application.clock
    until = clock.monotonic() + arguments.timeout
    invocation = work.application.resync_invocation(
        ResyncEvent(cluster=arguments.cluster, dry_run=arguments.dry_run, force=arguments.force),
        lambda: until - clock.monotonic(),
        ProgressLines(),
        own.append,
    )
    with ended_by_signals(lambda: own[-1] if own else None):
        report = invocation.run()
    for cluster in report["clusters"]:
        remark(_summary(cluster, dry_run=report["dry_run"]))
    if arguments.output == "json":
        print_json(report)
    elif rows := _rows(report):
        new_console().print(table(rows, ("cluster", "what", "from", "to")))
    return 1 if has_errors(report) else 0


def _summary(cluster: dict[str, Any], *, dry_run: bool) -> str:
    name = cluster["cluster"]
    if "error" in cluster:
        return f"{name}: failed: {cluster['error']}"
    changed = counted(len(cluster["changes"]), "change") if dry_run else counted(cluster["changed_keys"], "key changed")
    parts = [
        changed,
        f"{len(cluster['drift'])} record set{'' if len(cluster['drift']) == 1 else 's'} drifted",
        counted(len(cluster["conflicts"]), "conflict"),
    ]
    for resource, reason in cluster["held"].items():
        held = sum(each["listener"] == resource for each in cluster["held_deletions"])
        parts.append(f"{counted(held, 'deletion')} of {resource} held back ({reason})")
    return f"{name}: {'would be: ' if dry_run else ''}{', '.join(parts)}"


def _rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for cluster in report["clusters"]:
        name = cluster["cluster"]
        if "error" in cluster:
            rows.append({"cluster": name, "what": f"failed: {cluster['error']}"})
            continue
        rows += [{"cluster": name, **change} for change in cluster.get("changes", [])]
        rows += [
            {
                "cluster": name,
                "what": f"{drift['drift']} {drift['name']} {drift['type']}",
                "from": drift["stands"],
                "to": drift["known"],
            }
            for drift in cluster["drift"]
        ]
        rows += [
            {"cluster": name, "what": f"conflict {each['name']}: {each['reason']}"} for each in cluster["conflicts"]
        ]
        rows += [
            {
                "cluster": name,
                "what": f"held back: the deletion of {each['listener']}/{each['object']} ({each['service']})",
            }
            for each in cluster["held_deletions"]
        ]
    return rows
