"""``kubesync audit``: every change, newest first. ``docs/audit.md`` explains its words."""

import argparse
import heapq
from collections.abc import Callable
from itertools import islice
from typing import Any

from kubesync.aws.tables.audit import NAMED
from kubesync.aws.tables.upstreams import timestamp
from kubesync.domain.errors import UsageError
from kubesync_local.commands.show.audit_lines import show_changes
from kubesync_local.commands.show.filters import name_filter
from kubesync_local.commands.show.service_keys import parse_service_key
from kubesync_local.documents.audit_log import AuditLog, Span
from kubesync_local.terminal.output import print_document, remark
from kubesync_local.workplace.people import DEPLOYMENT
from kubesync_local.workplace.workplace import Workplace


def run(arguments: argparse.Namespace) -> int:
    """Show the matching changes of all clusters together."""
    cluster, wanted = _cluster(arguments), matching(arguments.service, arguments.name, arguments.namespace)
    work = Workplace()
    log, now = AuditLog(work.store), work.now()
    # One query per day: go back no further than --days can.
    since = max(arguments.since.epoch(now), now - 3_660 * 86_400.0)
    span = Span(since, now if arguments.until is None else arguments.until.epoch(now))
    if span.since > span.until:
        raise UsageError(f"--since ({timestamp(span.since)}) is after --until ({timestamp(span.until)})")
    names = work.names(cluster, lambda name: any(True for _ in log.read_changes(name, now, span)))
    if not cluster:
        names = [*names, NAMED, DEPLOYMENT]
    # Each stream is read only as far as its rows are needed.
    merged = heapq.merge(
        *(log.read_changes(name, now, span) for name in names), key=lambda row: str(row["at"]), reverse=True
    )
    # What became of a decision stands beside it, once it has: for people the decision alone is left out.
    decisions = arguments.all or arguments.output != "table"
    found = (row for row in merged if wanted(row) and (decisions or row["kind"] != "intended"))
    rows = list(islice(found, arguments.limit))
    if arguments.output != "table":
        print_document(rows, arguments.output)
    elif rows:
        show_changes(rows)
        if len(rows) == arguments.limit and next(found, None) is not None:
            remark(f"only the newest {arguments.limit} are shown; --limit or --until shows older ones")
    else:
        more = "" if decisions else "; --all shows also what kubesync decided"
        remark(f"no matching changes from {timestamp(span.since)} to {timestamp(span.until)}{more}")
    return 0


def _cluster(arguments: argparse.Namespace) -> str:
    """The cluster to read; empty: all. The table is partitioned by cluster and day."""
    given = str(arguments.cluster)
    if not arguments.service:
        return given
    key = parse_service_key(arguments.service)
    if given not in ("", key.cluster):
        raise UsageError(f"--service {key} is not in cluster {given}")
    return key.cluster


def matching(service: str, name: str, namespace: str = "") -> Callable[[dict[str, Any]], bool]:
    """Whether a change is one of this Service or namespace, and of a name or upstream of this pattern; empty: any. Raises UsageError."""
    service = str(parse_service_key(service)) if service else ""
    # The upstream's PROTOCOL is upper case, a DNS name is not: both are compared in lower case.
    fits = name_filter(name)

    def wanted(row: dict[str, Any]) -> bool:
        if service and row["service"] != service:
            return False
        if namespace and row["service"].split("/")[1:2] != [namespace]:
            return False
        return fits(str(row["name"] or row["upstream"] or ""))

    return wanted
