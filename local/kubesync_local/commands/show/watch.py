"""``kubesync status --watch``: the status as a screen that is drawn anew every few seconds, until Ctrl-C."""

from __future__ import annotations

import sys
import time
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from typing import Final

from rich.console import Group
from rich.live import Live
from rich.text import Text

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.errors import KubesyncError, UsageError
from kubesync_local.commands.show.status import lease_document
from kubesync_local.commands.show.watch_screen import MINUTES, ClusterView, View, screen
from kubesync_local.documents.audit_log import AuditLog, Span
from kubesync_local.documents.lag import lag_by_minute
from kubesync_local.documents.listener_rows import listener_rows
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.output import new_console
from kubesync_local.workplace.workplace import Workplace

_EVERY_SECONDS: Final = 5.0
_DRAW_SECONDS: Final = 1.0
_CHANGES: Final = 40
_CHANGES_SECONDS: Final = 3600.0


def watch(work: Workplace, cluster: str) -> int:
    """Draw until Ctrl-C, which returns 0, or until another signal ends the command.

    It reads what is open and what changed, never whole states, so its cost does not grow with the clusters.

    Raises:
        UsageError: standard output is not a terminal.
    """
    if not sys.stdout.isatty():
        raise UsageError("--watch needs a terminal: leave it out, or repeat `kubesync status --output json`")
    console = new_console()
    view, trouble = gathered(work, cluster), ""
    read_at = time.monotonic()
    with suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            lines = screen(view, console.width, console.height - 1)
            last = trouble or "read every 5 s; Ctrl-C ends it; `kubesync status` shows problems of Services"
            live.update(Group(*lines, Text(last, "red" if trouble else "dim", no_wrap=True)), refresh=True)
            time.sleep(_DRAW_SECONDS)
            if time.monotonic() - read_at >= _EVERY_SECONDS:
                try:
                    view, trouble = gathered(work, cluster), ""
                except KubesyncError as error:  # what was read stays on the screen
                    trouble = f"not read: {error}"
                read_at = time.monotonic()
    return 0


def gathered(work: Workplace, cluster: str) -> View:
    """Read what the screen shows."""
    now, shard = work.now(), work.settings.shard
    configs = work.chosen(cluster)
    audit = AuditLog(work.store)
    span = Span(now - _CHANGES_SECONDS, now)
    rows = (row for config in configs for row in islice(audit.read_changes(config.name, now, span), _CHANGES))
    changes = sorted((row for row in rows if row["kind"] != "intended"), key=lambda row: str(row["at"]), reverse=True)
    names = {zone.id: zone.name for config in configs for zone in config.zones}
    problems = ZoneProblemTable(work.store, shard, "").current()
    return View(
        place=work.settings.deployment if shard == "0" else f"{work.settings.deployment}, shard {shard}",
        now=now,
        lease=lease_document(work.lease.read(), int(now * 1000)),
        clusters=[_cluster(config, work, {each.zone_id for each in problems}) for config in configs],
        zone_problems=[f"zone {names.get(each.zone_id, each.zone_id)}: {each.problem}" for each in problems],
        lag=lag_by_minute(audit, now - 60 * MINUTES, now),
        changes=changes[:_CHANGES],
    )


def _cluster(config: ClusterConfig, work: Workplace, blocked: AbstractSet[str]) -> ClusterView:
    waits_for = ", ".join(zone.name for zone in config.zones if zone.id in blocked)
    marks = StateTable(work.store).open_keys(config.name)
    opened = [
        (
            str(key),
            mark.since,
            in_the_way_for_people(mark.reason)
            or (f"waits for zone {waits_for}" if waits_for else mark.cause or "not tried yet"),
        )
        for key, mark in marks
    ]
    return ClusterView(config.name, config.state, listener_rows(config.name, ListenerTable(work.store)), opened)
