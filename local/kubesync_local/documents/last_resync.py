"""The last full resync, and those that are under way: when, who asked, how far, what it found."""

from itertools import islice
from typing import Any, Final, cast

from kubesync.aws.dynamodb.store import CONTROL, Item, Store
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.resync_requests import REQUEST_LIFETIME_SECONDS, UNDERWAY
from kubesync.aws.tables.items import place_of, read_slices, readable
from kubesync.aws.tables.upstreams import timestamp

OVERDUE_HOURS: Final = 50
_FIGURES: Final = (
    "by",
    "at",
    "ended_at",
    "seconds",
    "cluster",
    "forced",
    "clusters",
    "errors",
    "differences",
    "session",
)
_WHO = {"schedule": "the schedule", "person": "a person"}


def resyncs_document(store: Store, shard: str, now: float) -> dict[str, Any]:
    """``last``: the last one that ended, or None. ``under_way``: those that are not done, oldest first. ``none_since``: since when none of all
    clusters has ended without an error, if that is longer than the alarm waits by default.

    ``late``: nobody goes on with it, because its hour is over; the next session keeps that as its result.
    """
    last = last_resyncs(store, shard)
    since = LeaseTable(store, shard).read().resynced_at_ms / 1000
    under_way = [_under_way(item, now) for item in resyncs_under_way(store, shard)]
    overdue = bool(since) and now - since >= OVERDUE_HOURS * 3600
    return {
        "last": last[0] if last else None,
        "under_way": under_way,
        "none_since": timestamp(since) if overdue else None,
    }


def last_resyncs(store: Store, shard: str, limit: int = 1) -> list[dict[str, Any]]:
    """The results of the last resyncs, newest first: the figures, ``id``, and ``report``."""
    items = readable(iter(store.query(CONTROL, f"resynced#{shard}", newest_first=True)), lambda _newer: None)
    heads = islice((item for item in items if "by" in item), limit)  # others are further slices
    return [
        {
            "id": item["sk"],
            **{name: item[name] for name in _FIGURES},
            "report": read_slices(store, place_of(CONTROL, item), item),
        }
        for item in heads
    ]


def resyncs_under_way(store: Store, shard: str) -> list[Item]:
    """The progress of every resync that is under way, or was cut off, oldest first; and requests that nobody has begun."""
    items = list(readable(iter(store.query(CONTROL, f"resync#{shard}")), lambda _newer: None))
    begun = {str(item["sk"]).removesuffix(UNDERWAY) for item in items if _is_progress(item)}
    return [
        item for item in items if _is_progress(item) or (item.get("status") == "asked" and str(item["sk"]) not in begun)
    ]


def _is_progress(item: Item) -> bool:
    return str(item["sk"]).endswith(UNDERWAY)


def _under_way(item: Item, now: float) -> dict[str, Any]:
    at = cast(int, item["at_ms"]) / 1000
    return {
        "id": cast(str, item["sk"]).removesuffix(UNDERWAY),
        "by": "schedule" if item.get("scheduled") else "person",
        "at": timestamp(at),
        "cluster": item["cluster"],
        "dry_run": bool(item.get("dry_run", False)),
        "forced": bool(item.get("force", False)),
        "session": item.get("session"),
        "clusters": item.get("clusters"),
        "done": item.get("done"),
        "late": now >= at + REQUEST_LIFETIME_SECONDS,
    }


def resync_lines(resyncs: dict[str, Any]) -> list[tuple[str, bool]]:
    """For people: lines, and whether each is about something wrong."""
    lines = [(_in_words(each), bool(each["late"])) for each in resyncs["under_way"]]
    if resyncs["none_since"]:
        lines.append((f"no full resync of all clusters has ended without an error since {resyncs['none_since']}", True))
    last = resyncs["last"]
    if last is None:
        return lines
    kind = "forced resync" if last["forced"] else "resync"
    of = f" of {last['cluster']}" if last["cluster"] else ""
    found = f"{last['differences']} difference{'' if last['differences'] == 1 else 's'}"
    clusters = f"{last['clusters']} cluster{'' if last['clusters'] == 1 else 's'}"
    told = f"last {kind}{of}: {last['ended_at']}, {_WHO[last['by']]} asked, {last['seconds']} s, {clusters}, {found}"
    lines.append((f"{told}, {last['errors']} failed" if last["errors"] else told, bool(last["errors"])))
    failed = [each for each in last["report"]["clusters"] if "error" in each]
    lines += [(f"  {each['cluster'] or 'all'}: {each['error']}", True) for each in failed]
    forgotten = [row for each in last["report"]["clusters"] for row in each.get("forgotten", ())]
    return lines + [(_of_forgotten(row), True) for row in forgotten]


def _of_forgotten(row: dict[str, Any]) -> str:
    identifier = f" [{row['identifier']}]" if "identifier" in row else ""
    what = f"{row['name']} {row['type']}{identifier} in {row['zone']}"
    return f"  {what} may be of {row['service']}, which no longer knows of it: see the runbook, By hand"


def _in_words(each: dict[str, Any]) -> str:
    kind = "dry run" if each["dry_run"] else "forced resync" if each["forced"] else "resync"
    of = f" of {each['cluster']}" if each["cluster"] else ""
    head = f"{kind}{of} under way since {each['at']}, {_WHO[each['by']]} asked"
    if each["late"]:
        return f"{head}: nobody finished it within an hour"
    return (
        f"{head}: not begun"
        if each["clusters"] is None
        else f"{head}: {each['done']} of {each['clusters']} clusters done"
    )
