"""``kubesync audit``: every change, newest first. What the words in ``what`` mean is said in ``kubesync.aws.audit``."""

from __future__ import annotations

import argparse
import heapq
from itertools import islice

from kubesync.aws.audit import AuditTable
from kubesync_local.commands.workplace import Workplace
from kubesync_local.output import print_rows

_COLUMNS = ("at", "cluster", "service", "what", "from", "to", "why", "session")


def run(arguments: argparse.Namespace) -> int:
    """Show the changes of the last days, of all clusters together."""
    work = Workplace()
    table = AuditTable(work.store, "")
    now = work.now()
    names = work.names(arguments.cluster, lambda name: any(True for _ in table.read_changes(name, now, arguments.days)))
    streams = [table.read_changes(name, now, arguments.days) for name in names]
    merged = heapq.merge(*streams, key=lambda row: str(row["at"]), reverse=True)
    rows = list(islice(merged, arguments.limit))
    print_rows(rows, _COLUMNS, arguments.output, f"no changes in the last {arguments.days} days")
    return 0
