"""The table form of ``kubesync status``."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from rich.text import Text

from kubesync.domain.merge import GUARD_SHARE
from kubesync.domain.objects import SERVICE
from kubesync.domain.reasons import advice_for
from kubesync.domain.sources.registry import KINDS
from kubesync_local.check.advice import IDENTITY
from kubesync_local.documents.alarm_causes import too_many_in_words
from kubesync_local.documents.credential_rows import near_ends
from kubesync_local.documents.lag import LagMinute, lag_in_words
from kubesync_local.documents.last_resync import resync_lines
from kubesync_local.documents.listener_rows import for_people
from kubesync_local.documents.listener_words import words_of_cluster
from kubesync_local.documents.outlook import zone_code
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.registration.private_addresses import in_words
from kubesync_local.terminal.escaping import readable, with_spelled_subjects
from kubesync_local.terminal.output import counted, new_console, print_folded, print_table, remark

_PROBLEMS_SHOWN: Final = 50
_RELEASED: Final = "released clean"
_RELEASED_BUT: Final = f"{_RELEASED}, but for "
# Of a function. What runs longer after a pause was started after it.
_LONGEST_SESSION: Final = 900.0


def show_status(status: dict[str, Any], now: float, *, verbose: bool = False) -> None:
    """Print the status, the most important first. ``now``: epoch seconds. ``verbose``: also the epoch and the checkpoints."""
    clusters = [{**cluster, "problems": with_spelled_subjects(cluster["problems"])} for cluster in status["clusters"]]
    status = readable({**status, "clusters": clusters})
    console = new_console()
    lease = status["lease"]
    epoch = f", epoch {lease['epoch']}" if lease["holder"] and verbose else ""
    until = f", until {lease['session_ends_at']}" if lease["state"] == "held" and lease["session_ends_at"] else ""
    before, state = lease_in_words(lease["state"], lease["holder"])
    place = f"deployment {status['deployment']}, shard {status['shard']}"
    print_folded(console, Text.assemble(f"{place}: {before}", (state, lease_style(lease["state"])), epoch, until), 2)
    if lag := lag_in_words([LagMinute(**each) for each in status.get("lag", ())]):
        print_folded(console, Text(f"this session: {lag}" if lease["state"] == "held" else f"last session: {lag}"), 2)
    for other in status["other_shards"]:
        before, state = lease_in_words(other["lease"]["state"], other["lease"]["holder"])
        print_folded(
            console,
            Text.assemble(f"shard {other['shard']}: {before}", (state, lease_style(other["lease"]["state"]))),
            2,
        )
    if paused := paused_in_words(lease, now):
        print_folded(console, Text(paused, style="yellow"), 2)
    for each in status["too_many"]:
        print_folded(console, Text(f"shard {each['shard']}: {too_many_in_words(each)}", style="red"), 2)
    for each in status["lost"]:
        name = f"cluster {each['cluster']}: " if each["cluster"] else ""
        print_folded(console, Text(f"{name}{each['reason']}", style="red"), 2)
    if turn := status["turn"]:
        of = f"namespace {turn['namespace']} of " if turn["namespace"] else ""
        text = f"the oldest event of {of}cluster {turn['cluster']} has waited {turn['seconds']} s for its turn to be recorded"
        print_folded(console, Text(text, style="yellow"), 2)
    if not status["clusters"] and not status["lost"]:
        remark("no cluster is registered: see `kubesync cluster add --help`")
    # First: the problem of a zone is the cause of most rows in the clusters' tables.
    for zone in status["zones"]:
        if zone["problem"]:
            since = f" (since {zone['since']})"
            print_folded(
                console, Text(f"zone {zone['name']} ({zone['zone']}): {zone['problem']}{since}", style="red"), 2
            )
            print_folded(console, Text(f"  → {_zone_advice(zone['problem'])}"), 4)
    resyncs = [("", status["resyncs"]), *((f"shard {o['shard']}: ", o["resyncs"]) for o in status["other_shards"])]
    for of_shard, found in resyncs:
        for line, wrong in resync_lines(found):
            print_folded(console, Text(f"{of_shard}{line}", style="red" if wrong else ""), 2)
    leases = {status["shard"]: lease} | {other["shard"]: other["lease"] for other in status["other_shards"]}
    for each in status["unreadable"]:
        print_folded(console, Text(f"cluster {each['cluster']}: {each['reason']}", style="red"), 2)
    for cluster in status["clusters"]:
        running = leases[cluster["shard"]]["state"] == "held"
        _show_cluster(cluster, status["shard"], now, running=running, verbose=verbose)
    if waiting := status["named_upstreams_waiting"]:
        text = f"named upstreams: {counted(waiting, 'change')} not composed yet; the running session does it within seconds"
        print_folded(console, Text(text, style="yellow"), 2)
    if status["named_upstreams"]:
        _show_first(status["named_upstreams"], ("name", "code", "subject", "message"), "problems of named upstreams")


def lease_in_words(state: str, holder: str | None) -> tuple[str, str]:
    """The sentence up to the state, and the state, which gets a colour."""
    match state:
        case "held":
            return "the lease ", f"is held by session {holder}"
        case "expired":
            return f"the lease of session {holder} ", "has expired"
        case "released, not clean":
            return f"session {holder} ", "ended without a clean release"
        case _ if state == _RELEASED:
            return f"session {holder} ", "released the lease cleanly"
        case _ if state.startswith(_RELEASED_BUT):
            zones = state.removeprefix(_RELEASED_BUT)
            return (
                f"session {holder} ",
                f"released the lease; the next one first finds out which changes to {zones} landed",
            )
        case _:
            return "the lease ", "was never held"


def paused_in_words(lease: Mapping[str, Any], now: float) -> str:
    """Since when the deployment is paused, by whom, and what runs all the same; empty: it is not."""
    paused = lease.get("paused")
    if paused is None:
        return ""
    words = f"paused since {paused['since']} by {paused['by']}; `kubesync resume` starts it again"
    if lease["state"] != "held":
        return words
    if now - datetime.fromisoformat(paused["since"]).timestamp() > _LONGEST_SESSION:
        return f"{words}; yet session {lease['holder']} runs: something else starts sessions"
    until = f" until {lease['session_ends_at']}" if lease["session_ends_at"] else ""
    return f"{words}; session {lease['holder']} goes on{until}"


def lease_style(state: str) -> str:
    """The colour of the state: a session that has released the lease in order is no warning."""
    return "green" if state == "held" else "" if state == _RELEASED else "yellow"


def _zone_advice(problem: str) -> str:
    # The advice on a blocked zone is to read its problem, which is already printed.
    code = zone_code(problem)
    return "docs/runbook.md#zoneblocked says what to do" if code == "ZoneBlocked" else advice_for(code)


def _open_in_words(cluster: dict[str, Any]) -> str:
    """How much is pending, since when, and how much of it a person has to fix."""
    since = min((each["since"] for each in cluster["open"] if each["since"]), default=None)
    words = f"{len(cluster['open'])} pending" + (f" since {since}" if since else "")
    waiting = cluster["waiting_for_person"]
    return f"{words}, {waiting} wait{'s' if waiting == 1 else ''} for a person" if waiting else words


def _besides_open(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    """Problems that are shown nowhere else: a conflict is also open, and deletions that are held back have a line of their own."""
    known = {(row["service"], row["code"], row["reason"]) for row in cluster["open"]}
    others = [row for row in cluster["problems"] if (row["service"], row["code"], row["message"]) not in known]
    return [row for row in others if row["code"] != "DeletionHeld" or not cluster["held"]]


def _listener_rows(cluster: dict[str, Any], now: float, *, running: bool) -> list[dict[str, Any]]:
    """Each listener in words. An error that is over has a column, so that nobody takes it for a current one."""
    listeners = cluster["listeners"]
    words = words_of_cluster(listeners, now, running=running, disabled=cluster["state"] == "disabled")
    return [
        {
            "listener": row["listener"],
            "state": state,
            "checkpoint": row["checkpoint"],
            "failing_since": row["failing_since"],
            "last_error": None if row["state"] in ("failing", "absent") else for_people(row)["last_error"],
        }
        for row, state in zip(listeners, words, strict=True)
    ]


def _objects_in_words(objects: Mapping[str, int]) -> list[str]:
    """How many Services there are, and how many objects of each other kind."""
    others = [
        f"{count} {kind if count == 1 else KINDS[kind].main.value}"
        for kind, count in objects.items()
        if kind != SERVICE
    ]
    return [counted(objects.get(SERVICE, 0), "service"), *others]


def _show_cluster(cluster: dict[str, Any], own_shard: str, now: float, *, running: bool, verbose: bool) -> None:
    console = new_console()
    sizes = ", ".join(
        (
            *_objects_in_words(cluster["objects"]),
            f"{cluster['record_sets']} record set{'' if cluster['record_sets'] == 1 else 's'}",
            counted(cluster["upstreams"], "upstream"),
        )
    )
    console.print()
    head = Text.assemble(
        (cluster["cluster"], "bold"), f"  {cluster['domain']}  {cluster['server']}  {cluster['state']}"
    )
    if cluster["shard"] != own_shard:
        head.append(f", shard {cluster['shard']}")
    print_folded(console, head, 2)
    problems = _besides_open(cluster)
    others = "" if len(problems) == len(cluster["problems"]) else "other "
    text = f"  {sizes}; {_open_in_words(cluster)}, {len(problems)} {others}problem{'' if len(problems) == 1 else 's'}"
    print_folded(console, Text(text), 4)
    if cluster["problem"]:
        print_folded(console, Text(f"  {cluster['problem']}", style="red"), 4)
    if cluster["unguarded"]:
        print_folded(console, Text(f"  {cluster['unguarded']}; {IDENTITY}", style="yellow"), 4)
    for each in cluster.get("exposed", ()):
        text = in_words(each["zone_name"], each["record_sets"], each["example"])
        print_folded(console, Text(f"  {text}", style="yellow"), 4)
    for held in cluster["held"]:
        number = held["deletions"]
        are = "deletion" if number == 1 else "deletions"
        them = "it" if number == 1 else "them"
        text = f"  {number} {are} of {held['listener']} held back; `kubesync plan --cluster {cluster['cluster']}` shows {them}, "
        print_folded(console, Text(f"{text}`{held['release']}` makes {them}", style="yellow"), 4)
    for row in cluster["inferred"]:
        most = f"at most {row['limit']}" if row["limit"] else f"at most {GUARD_SHARE:.0%}"
        text = f"  {row['deletions']} of {most} {row['listener']} went by lists within the last hour; further ones would be held back"
        print_folded(console, Text(text), 4)
    for line, ended in near_ends(cluster["cluster"], cluster["credentials"], now):
        print_folded(console, Text(f"  {line}", style="red" if ended else "yellow"), 4)
    if cluster["listeners"]:
        rows = _listener_rows(cluster, now, running=running)
        checkpoint = ("checkpoint",) if verbose else ()
        print_table(rows, ("listener", "state", *checkpoint, "failing_since", "last_error", "ended"))
        if cluster["state"] != "disabled" and any(each["state"] == "failing" for each in cluster["listeners"]):
            text = f"  `kubesync cluster check {cluster['cluster']}` shows what is wrong, and what to do"
            print_folded(console, Text(text, style="yellow"), 4)
    else:
        console.print("  no session has watched it yet")
    if cluster["open"]:
        columns = ("service", "attempts", "retry_at", "code", "reason")
        rows = [{**row, "reason": in_the_way_for_people(row["reason"] or "")} for row in cluster["open"]]
        _show_first(rows, columns, "pending")
    if problems:
        rows = [{**row, "message": in_the_way_for_people(row["message"])} for row in problems]
        _show_first(rows, ("service", "code", "subject", "message"), "problems")
    if cluster["open"] or cluster["problems"]:
        text = "  `kubesync explain SERVICE` explains one of them; docs/reasons.md lists the codes"
        print_folded(console, Text(text, style="dim"), 4)


def _show_first(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str) -> None:
    """A table of at most ``_PROBLEMS_SHOWN`` rows, and how many more there are."""
    print_table(rows[:_PROBLEMS_SHOWN], columns, title)
    if (more := len(rows) - _PROBLEMS_SHOWN) > 0:
        new_console().print(Text(f"  and {more} more: `kubesync status -o json` has all", style="dim"))
