"""The table form of ``kubesync status``."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from kubesync_local.commands.listener_rows import for_people
from kubesync_local.output import counted, new_console, remark, table

_PROBLEMS_SHOWN = 50


def show_status(status: dict[str, Any]) -> None:
    """Print what a person looks for, in the order in which it matters."""
    console = new_console()
    lease = status["lease"]
    style = "green" if lease["state"] == "held" else "yellow"
    who = f" by session {lease['holder']}, epoch {lease['epoch']}" if lease["holder"] else ""
    until = f", until {lease['session_ends_at']}" if lease["state"] == "held" and lease["session_ends_at"] else ""
    console.print(
        Text.assemble(f"deployment {status['deployment']}: the lease is ", (lease["state"], style), who, until)
    )
    if not status["clusters"]:
        remark("no cluster is registered: see `kubesync cluster add --help`")
    for cluster in status["clusters"]:
        _show_cluster(cluster)
    for zone in status["zones"]:
        if zone["problem"]:
            console.print(Text(f"zone {zone['name']} ({zone['zone']}): {zone['problem']}", style="red"), soft_wrap=True)


def _show_cluster(cluster: dict[str, Any]) -> None:
    console = new_console()
    sizes = ", ".join(
        (
            counted(cluster["services"], "service"),
            f"{cluster['record_sets']} record set{'' if cluster['record_sets'] == 1 else 's'}",
            counted(cluster["upstreams"], "upstream"),
        )
    )
    console.print()
    console.print(
        Text.assemble((cluster["cluster"], "bold"), f"  {cluster['domain']}  {cluster['server']}  {cluster['state']}"),
        soft_wrap=True,
    )
    console.print(f"  {sizes}; {len(cluster['open'])} open, {counted(len(cluster['problems']), 'problem')}")
    for held in cluster["held"]:
        text = f"  {held['deletions']} deletions of {held['listener']} are held back; {held['release']}"
        console.print(Text(f"{text} lets them through", style="yellow"), soft_wrap=True)
    if cluster["listeners"]:
        rows = [for_people(each) for each in cluster["listeners"]]
        console.print(table(rows, ("listener", "state", "checkpoint", "last_error", "ended")))
    else:
        console.print("  not listened to yet")
    if cluster["open"]:
        columns = ("service", "attempts", "retry_at", "code", "reason")
        console.print(table(cluster["open"][:_PROBLEMS_SHOWN], columns, "open"))
    if cluster["problems"]:
        shown = cluster["problems"][:_PROBLEMS_SHOWN]
        console.print(table(shown, ("service", "code", "subject", "message"), "problems"))
    if cluster["open"] or cluster["problems"]:
        console.print("  `kubesync explain SERVICE` says more of one; docs/reasons.md lists the codes", style="dim")
