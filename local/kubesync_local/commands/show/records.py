"""``kubesync records``: the record sets in the zones, the Service of each, and what is still to be written."""

import argparse
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.plan import changes_of
from kubesync.domain.state import KeyState, Name, turning
from kubesync.operations.record_rows import side
from kubesync_local.commands.show.chosen_objects import is_chosen
from kubesync_local.commands.show.current import current_at
from kubesync_local.commands.show.filters import name_filter, zones_meant
from kubesync_local.documents.outlook import why_not_turned
from kubesync_local.plans.plan import zone_titles
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.output import (
    counted,
    new_console,
    print_folded,
    print_rows,
    remark,
    screen_width,
    side_in_words,
    with_policy,
)
from kubesync_local.terminal.sorting import sorted_by
from kubesync_local.terminal.states import state_in_words
from kubesync_local.terminal.tables import lines_of
from kubesync_local.workplace.workplace import Workplace

LIVE = "in_the_zone"
_NOT_KNOWN = "not known"
COLUMNS = ("name", "type", "identifier", "routing", "ttl", "values", "alias", "zone", "service", "state", "reason")


def run(arguments: argparse.Namespace) -> int:
    """Show all record sets, sorted by zone and name. Returns 1 if a zone that ``--live`` asks for cannot be read."""
    fits = name_filter(arguments.name)
    work = Workplace()
    state, claims = StateTable(work.store), ClaimTable(work.store)
    rows: list[dict[str, Any]] = []
    configs = work.chosen(arguments.cluster)
    zones = zones_meant(arguments.zone, configs)
    chosen = is_chosen(arguments, work, configs)
    for config in configs:
        for key_state in filter(lambda found: chosen(found.key), state.load_all(config.name)):
            rows += rows_of(key_state, config)
            rows += _waiting(key_state, claims)
    rows.sort(
        key=lambda row: (
            row["zone"],
            row["name"].split(".")[::-1],
            row["type"] or "",
            row.get("identifier", ""),
            row["service"],
        )
    )
    shown = [row for row in rows if _asked_for(row, arguments.type, zones) and fits(row["name"])]
    none_chosen = not rows and not arguments.namespace and not arguments.selector
    empty = (
        "no records yet: is a session running? See `kubesync status`" if none_chosen else "no record fits these options"
    )
    if not none_chosen and arguments.name and not set(arguments.name) & set("*?["):
        empty += f": `kubesync explain {arguments.name}` says why"
    unread: Mapping[str, str] = {}
    if arguments.live:
        shown, unread = _with_live(shown, work)
    for zone, why in unread.items():
        remark(f"zone {zone} cannot be read: {why}")
    status = 1 if unread else 0
    title = None
    if arguments.output == "table":
        shown = [
            {**row, "state": state_in_words(row["state"]), "reason": in_the_way_for_people(row["reason"] or "")}
            for row in map(with_policy, shown)
        ]
        shown = [{**row, LIVE: _NOT_KNOWN} if row["zone"] in unread else row for row in shown]
        if screen_width(new_console()) is not None:
            shown, title = _with_names_of_zones(shown, zone_titles(configs))
    columns = (*COLUMNS, LIVE) if arguments.live else COLUMNS
    if title is not None and shown and not _fits(shown, columns):
        _print_compact(sorted_by(shown, arguments.sort), title)
        return status
    print_rows(shown, columns, arguments.output, empty, names=2, sort=arguments.sort, title=title)
    return status


def _fits(rows: list[dict[str, Any]], columns: Sequence[str]) -> bool:
    """Whether a table with a line for each row fits the screen."""
    width = screen_width(new_console())
    return len(lines_of(rows, columns, width, 2)) <= 2 + sum(max(1, len(row["values"])) for row in rows)


def _print_compact(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """A line for each row where no table fits, as in a zone file: name, type, ttl and values, then the Service and the state.

    A state that all of them have is said once, in the title.
    """
    console, states = new_console(), {row["state"] for row in rows}
    all_of_them = f": all {state_in_words(rows[0]['state'])}" if len(states) == 1 else ""
    print_folded(console, Text(visible(f"{title}{all_of_them}"), style="italic"), 2)
    for row in rows:
        identifier = f"[{row['identifier']}]" if row.get("identifier") else ""
        ttl = "" if row["ttl"] is None else str(row["ttl"])
        values = f"alias {row['alias']}" if row.get("alias") else ", ".join(row["values"])
        record = " ".join(filter(None, (row["type"], identifier, row.get("routing"), ttl, values)))
        in_the_zone = f"in the zone: {row[LIVE]}" if row.get(LIVE) not in (None, "the same") else ""
        why = "; ".join(filter(None, (row["reason"], in_the_zone)))
        line = Text().append(visible(row["name"]), style="bold").append(" ").append(visible(record))
        line.append("  ").append(visible(row["service"]), style="dim")
        if len(states) > 1:
            line.append("  ").append(
                visible(state_in_words(row["state"])),
                style="" if row["state"] == state_in_words("applied") else "yellow",
            )
        print_folded(console, line.append("  ").append(visible(f"({why})")) if why else line, 4)


def _with_live(rows: list[dict[str, Any]], work: Workplace) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Rows with what Route 53 has there now: ``the same``, ``nothing``, another value, or why it cannot be read; and the unreadable zones."""
    names = {Name(row["zone"], row["name"]) for row in rows}
    current, unread = current_at(work.application.zones(), names)
    return [{**row, LIVE: _live(row, current, unread) if row["type"] else None} for row in rows], unread


def _live(row: Mapping[str, Any], current: Mapping[RecordKey, RecordSet], unread: Mapping[str, str]) -> str:
    if row["zone"] in unread:
        return f"{_NOT_KNOWN}: {unread[row['zone']]}"
    found = current.get(RecordKey(row["zone"], row["name"], row["type"] or "", row.get("identifier", "")))
    if found is None:
        return "nothing"
    now = _value(found)
    return "the same" if all(row.get(name) == value for name, value in now.items()) else side_in_words(side(found))


def _with_names_of_zones(
    rows: list[dict[str, Any]], titles: Mapping[str, str]
) -> tuple[list[dict[str, Any]], str | None]:
    """Rows for a screen: zones by their names, and a zone that all of them have only once, as the title."""
    zones = {row["zone"] for row in rows}
    if len(zones) == 1:
        (zone,) = zones
        return [{**row, "zone": None} for row in rows], f"zone {titles.get(zone, zone)}"
    names = {zone: titles.get(zone, zone) for zone in zones}
    short = {zone: name.partition(" (")[0] for zone, name in names.items()}
    alike = Counter(short.values())  # a public and a private zone may have one name
    shown = {zone: short[zone] if alike[short[zone]] == 1 else names[zone] for zone in zones}
    return [{**row, "zone": shown[row["zone"]]} for row in rows], None


def _asked_for(row: Mapping[str, Any], type_: str, zones: Container[str] | None) -> bool:
    return type_ in ("", row["type"]) and (zones is None or row["zone"] in zones)


# | in conflict | applied and intended | policy lets it change | a part is held | state    |
# | ----------- | -------------------- | --------------------- | -------------- | -------- |
# | yes         |                      |                       |                | conflict |  none of ours exists there
# | no          | equal                |                       | no             | applied  |
# | no          | equal                |                       | yes            | held     |  would be deleted, waits for a person
# | no          | different            | yes                   |                | open     |  values are the current ones, if any
# | no          | different            | no                    |                | kept     |
def rows_of(state: KeyState, config: ClusterConfig) -> Iterator[dict[str, Any]]:
    """The record sets of one key."""
    pending = {change.key for change in changes_of(state, config.policy)}
    held = any(part.held for part in state.parts.values())
    for key in sorted(state.intended.keys() | state.applied.keys()):
        intended, applied = state.intended.get(key), state.applied.get(key)
        conflict = state.conflicts.get(Name.of(key))
        reason = ""
        if conflict is not None:
            word, reason = "conflict", conflict
        elif intended == applied:
            release = f"a list lacks its object: `kubesync resync --cluster {config.name} --force` deletes it"
            word, reason = ("held", release) if held else ("applied", "")
        elif key in pending:
            word, reason = "open", why_not_turned(state, key) or _why(state, intended)
        else:
            word, reason = "kept", f"policy {config.policy}"
        yield _row(state, key, applied or intended, intended if intended != applied else applied, word, reason)


def _row(
    state: KeyState, key: RecordKey, current: RecordSet | None, intended: RecordSet | None, word: str, reason: str
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "zone": key.zone_id,
        "name": key.name,
        "type": key.type,
        **({"identifier": key.identifier} if key.identifier else {}),
        **_value(current),
        "service": str(state.key),
        "kind": state.key.kind,
        "state": word,
        "reason": reason,
    }
    if intended != current:
        row["intended"] = None if intended is None else _value(intended)
    return row


def _value(record_set: RecordSet | None) -> dict[str, Any]:
    if record_set is None:
        return {"ttl": None, "values": []}
    value: dict[str, Any] = {"ttl": record_set.ttl, "values": list(record_set.values)}
    if record_set.alias is not None:
        value["alias"] = record_set.alias.name
    value |= record_set.routing.report_fields
    return value


def _why(state: KeyState, intended: RecordSet | None) -> str:
    tried = ""
    if state.opened is not None and state.opened.attempts:
        tried = f"tried {counted(state.opened.attempts, 'time')}: {state.opened.reason}"
    return tried or ("to be deleted" if intended is None else "to be written")


def _waiting(state: KeyState, claims: ClaimTable) -> Iterator[dict[str, Any]]:
    waits = state.waits - turning(state)  # those say so on their own row
    owners = claims.read(waits) if waits else {}
    for name in sorted(waits):
        owner = f"{owners[name].owner} has the name" if name in owners else "another Service has the name"
        yield {
            "zone": name.zone_id,
            "name": name.name,
            "type": None,
            **({"identifier": name.identifier} if name.identifier else {}),
            "ttl": None,
            "values": [],
            "service": str(state.key),
            "kind": state.key.kind,
            "state": "waiting",
            "reason": owner,
        }
