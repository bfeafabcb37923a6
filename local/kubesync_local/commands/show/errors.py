"""``kubesync errors``: the last error of each listener, how it ended, the history, and sessions that never held the lease."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from kubesync.aws.tables.control.listeners import ListenerErrors
from kubesync.domain.objects import Resource
from kubesync_local.documents.audit_log import AuditLog
from kubesync_local.documents.listener_rows import in_order
from kubesync_local.terminal.output import print_document, print_table, remark
from kubesync_local.workplace.readings import ListenerReadings
from kubesync_local.workplace.shards import problems_of_zones, shards_of
from kubesync_local.workplace.workplace import Workplace

_LISTENERS = ("cluster", "listener", "what", "code", "message", "at", "times")
_HISTORY = ("at", "what", "cluster", "listener", "code", "message", "session")
_KINDS = {"last": "last error", "ended": "last end", "count": "earlier", "history": "listener", "session": "session"}


def run(arguments: argparse.Namespace) -> int:
    """Show one row for each last error, end, count, history entry and session."""
    work = Workplace()
    listeners, audit = ListenerReadings(work.store), AuditLog(work.store)
    now: list[dict[str, Any]] = []
    past: list[dict[str, Any]] = []
    names = work.names(arguments.cluster, lambda name: any(True for _ in audit.read_errors(name, work.now(), 1)))
    for name in names:
        for resource, errors in sorted(listeners.errors(name).items()):
            now += _of_listener(name, resource, errors)
        history = audit.read_errors(name, work.now(), arguments.limit)
        past += [_row("history", name, str(item["resource"]), item) for item in history]
    if not arguments.cluster:
        past += [_row("session", None, None, item) for item in audit.read_sessions(work.now(), arguments.limit)]
    past.sort(key=lambda row: str(row["at"]), reverse=True)
    past = past[: arguments.limit]
    if arguments.output != "table":
        print_document([*now, *past], arguments.output)
        return 0
    if not now and not past:
        remark("no listener errors yet; only sessions that never held the lease are listed here")
        return 0
    for zone in problems_of_zones(work.store, shards_of(work.clusters.all(), work.settings.shard)).values():
        remark(f"zone {zone.zone_id}: {zone.problem}; `kubesync status` shows zones")
    if not any(in_order(row["key"], row["message"]) is None for row in (*now, *past)):
        remark("no listener errors: the rows show how listeners and sessions ended")
    if now:
        print_table([_for_people(row) for row in now], _LISTENERS, "listeners", names=3, first=True)
    if past:
        print_table([_for_people(row) for row in past], _HISTORY, "history, newest first", names=4, first=not now)
    return 0


def _for_people(row: Mapping[str, Any]) -> dict[str, Any]:
    """What ended in order is no error: it has words in place of a code."""
    if words := in_order(row["key"], row["message"]):
        return {**row, "what": _KINDS[row["kind"]], "code": None, "message": f"ended {words}", "times": row["count"]}
    return {**row, "what": _KINDS[row["kind"]], "code": row["key"], "times": row["count"]}


def _of_listener(cluster: str, resource: Resource, errors: ListenerErrors) -> Iterator[dict[str, Any]]:
    counts = dict(errors.counts)
    for kind, entry in (("last", errors.last), ("ended", errors.ended)):
        if entry is not None:
            yield {**_row(kind, cluster, resource.value, entry), "count": counts.pop(str(entry["key"]), None)}
    for key, count in sorted(counts.items()):
        yield {**_row("count", cluster, resource.value, {"key": key}), "count": count}


def _row(kind: str, cluster: str | None, listener: str | None, entry: Mapping[str, Any]) -> dict[str, Any]:
    row = {name: entry.get(name) for name in ("code", "key", "message", "at", "session")}
    return {"kind": kind, "cluster": cluster, "listener": listener, **row, "status": entry.get("status"), "count": None}
