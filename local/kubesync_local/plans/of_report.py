"""The plan that the report of a dry run describes (``resync --dry-run``)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from kubesync_local.plans.plan import UPSTREAMS, Group, Line, Numbers, Plan, Sign, in_order, line_of, sign_of
from kubesync_local.recovery.conflict_words import in_the_way_for_people

_FORGOTTEN: Final = "kubesync has lost track of it, and leaves it alone (docs/runbook.md, By hand)"
_HELD: Final = "held back (counted in objects, not in record sets)"
_SET_ASIDE: Final = (
    "set aside: sessions died of so many endpoints, so these are not looked at, and what they lead to stays"
)
_WHY: Final = {
    "appeared": "{service} appeared",
    "disappeared": "{service} is gone",
    "changed": "{service} changed",
    "endpoints": "endpoints of {service} changed",
    "rules": "{service}: by the cluster's options",
    "waiting": "{service}: planned earlier, not written yet",
    "changed by hand": "{service}: changed by hand",
    "deleted by hand": "{service}: deleted by hand",
    "replaced by hand": "{service}: replaced by hand",
}
# What the reports of older releases hold: "intended NAME TYPE in ZONE", also with a set identifier.
_INTENDED: Final = re.compile(r"intended (?P<name>.+?) (?P<type>[A-Z]+)(?: \[(?P<identifier>.+)\])? in (?P<zone>Z\w+)")
_BY_HAND: Final = {"changed": "changed by hand", "missing": "deleted by hand", "foreign": "replaced by hand"}


def plan_of_report(report: Mapping[str, Any], titles: Mapping[str, str]) -> Plan:
    """The plan of a dry run.

    Args:
        report: of ``resync --dry-run``, also one of an older release.
        titles: of hosted zones, by their ids.
    """
    errors = [f"{each['cluster']}: FAILED: {each['error']}" for each in report["clusters"] if "error" in each]
    clusters = [each for each in report["clusters"] if "error" not in each]
    zones: dict[str, list[Line]] = defaultdict(list)
    upstreams: list[Line] = []
    held: list[Line] = []
    notes: list[str] = []
    records = of_upstreams = Numbers()
    left_out = hidden_upstreams = hidden_held = 0
    for cluster in clusters:
        rows = cluster["records"] if "records" in cluster else list(_rows_of_older(cluster))
        for row in rows:
            zones[row["zone"]].append(line_of(row, row.get("conflict") or _why(row)))
        for row in cluster.get("forgotten", ()):
            line = line_of({**row, "from": row["stands"], "to": None}, f"{row['service']}: {_FORGOTTEN}")
            zones[row["zone"]].append(replace(line, sign=Sign.STAYS))
        for row in _conflicts_besides(cluster, rows):
            zones[row["zone"]].append(Line(Sign.STAYS, row["name"], why=in_the_way_for_people(row["reason"])))
        shown = [_upstream(row) for row in cluster["changes"] if row["what"].startswith("upstream ")]
        upstreams += shown
        numbers = cluster.get("plan")
        records += Numbers(**numbers["records"]) if numbers else Numbers.of(map(_plain, rows))
        of_cluster = Numbers(**numbers["upstreams"]) if numbers else Numbers.of(shown)
        of_upstreams += of_cluster
        hidden_upstreams += of_cluster.add + of_cluster.change + of_cluster.delete - len(shown)
        cut = cluster.get("left_out", {})
        left_out += cut.get("records", 0 if "records" in cluster else cut.get("changes", 0))
        held += [_held(row) for row in cluster["held_deletions"]]
        hidden_held += cut.get("held_deletions", 0)
        # One reason can hold back the deletions of several listeners.
        notes += [f"{cluster['cluster']}: {reason}" for reason in dict.fromkeys(cluster["held"].values())]
        notes += [f"{key}: {_SET_ASIDE}" for key in cluster.get("set_aside", ())]
        if hidden := cut.get("set_aside", 0):
            notes.append(f"{cluster['cluster']}: {hidden:,} more keys are set aside")
    for named in report.get("named_upstreams", []):
        if "error" in named:
            errors.append(f"{named['upstream']}: FAILED: {named['error']}")
        elif (line := _named(named, forced=report["forced"])).why:
            (held if line.sign is Sign.STAYS and named["drift"] == "stray" else upstreams).append(line)
            of_upstreams += Numbers.of([line])
    groups = [Group(titles.get(zone, zone), in_order(lines), of_zone=True) for zone, lines in _by_title(zones, titles)]
    if left_out:
        groups.append(Group("record sets that the report has no room for", (), left_out))
    if upstreams or hidden_upstreams:
        groups.append(Group(UPSTREAMS, in_order(upstreams), hidden_upstreams))
    if held or hidden_held:
        groups.append(Group(_HELD, in_order(held), hidden_held))
    return Plan(
        groups=tuple(groups),
        records=records,
        upstreams=of_upstreams,
        held=len(held) + hidden_held,
        in_conflict=sum(cluster["counts"]["conflicts"] for cluster in clusters),
        notes=tuple(notes),
        errors=tuple(errors),
    )


def _by_title(zones: Mapping[str, list[Line]], titles: Mapping[str, str]) -> list[tuple[str, list[Line]]]:
    return sorted(zones.items(), key=lambda each: titles.get(each[0], each[0]))


def _why(row: Mapping[str, Any]) -> str:
    why = str(row.get("why", ""))
    return _WHY.get(why, "{service}" + (f": {why}" if why else "")).format(service=row["service"])


def _plain(row: Mapping[str, Any]) -> Line:
    return line_of(row, "")


def _upstream(row: Mapping[str, Any]) -> Line:
    name = row["what"].removeprefix("upstream ")
    service = "/".join(name.split("/")[:3])
    before, after = (
        (str(side).replace(", 1 nodes", ", 1 node"),) if side is not None else None for side in (row["from"], row["to"])
    )
    sign = sign_of(before, after)
    why = row.get("why") or ("the table holds other nodes" if sign is Sign.CHANGE else "")
    return Line(sign, name, before, after, _WHY.get(why, why).format(service=service))


def _held(row: Mapping[str, Any]) -> Line:
    return Line(
        Sign.STAYS, f"{row['listener']}/{row['object']}", why=f"a list lacks it; {row['service']} stays as it is"
    )


def _named(row: Mapping[str, str], *, forced: bool) -> Line:
    match row["drift"]:
        case "stray" if forced:
            return Line(Sign.DELETE, row["upstream"], why="it is not registered")
        case "stray":
            return Line(Sign.STAYS, row["upstream"], why="it is not registered: `kubesync resync --force` removes it")
        case "unknown":
            return Line(Sign.STAYS, row["upstream"], why="cannot be composed: one of its members cannot be read")
        case "missing":
            return Line(Sign.ADD, row["upstream"], why="it is missing from the table")
    return Line(Sign.CHANGE, row["upstream"], why="the table holds other nodes")


def _conflicts_besides(cluster: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Conflicts over names of which no row is shown."""
    shown = {(row["zone"], row["name"], row["service"]) for row in rows if row.get("conflict")}
    return [each for each in cluster["conflicts"] if (each["zone"], each["name"], each["service"]) not in shown]


def _rows_of_older(cluster: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows from what a master of an older release answers."""
    for change in cluster["changes"]:
        if found := _INTENDED.fullmatch(change["what"]):
            yield {**found.groupdict(""), "service": cluster["cluster"], "from": change["from"], "to": change["to"]}
    for drift in cluster["drift"]:
        why = _BY_HAND.get(drift["drift"], drift["drift"])
        yield {**drift, "from": drift["stands"], "to": drift["known"], "why": why}
