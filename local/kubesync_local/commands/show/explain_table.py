"""``kubesync explain`` for people: one block for each record set and upstream, readable at any width."""

from collections.abc import Iterator
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from kubesync_local.documents.explanation import sharers
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.escaping import readable, with_spelled_subjects
from kubesync_local.terminal.output import counted, new_console, print_folded
from kubesync_local.terminal.states import state_in_words

_STYLES: Final = {"closed": "green", "conflict": "bold red", "blocked": "bold red", "drifted": "bold red"}
_VALUES_SHOWN: Final = 6
_WAITING_SHOWN: Final = 3
_LABELS: Final = 9


def show_explanation(found: dict[str, Any]) -> None:
    """Print it, from the whole to the parts."""
    console = new_console()
    raw, found = found, readable({**found, "problems": with_spelled_subjects(found["problems"])})
    _show_service(console, found)
    for record, known in zip(found["records"], raw["records"], strict=True):
        title = f"{record['name']} {record['type']}"
        if "identifier" in record:
            title += f" [{record['identifier']}]"
        place = f"in {record['zone_name'] or 'a zone that the cluster no longer has'} ({record['zone']})"
        _block(console, title, place, record, _of_record(record, known, found["kind"]))
    for upstream in found["upstreams"]:
        _block(console, f"upstream {upstream['upstream']}", "", upstream, _of_upstream(upstream))
    if not found["records"] and not found["upstreams"]:
        console.print()
        console.print("  no record set and no upstream")
    _show_problems(console, found)


def _show_service(console: Console, found: dict[str, Any]) -> None:
    # A key with nothing to write is closed, also where its record sets are withheld or held.
    of_records = sorted({record["state"] for record in found["records"]}) if found["state"] == "closed" else []
    words = ", ".join(map(state_in_words, of_records or [found["state"]]))
    state = (words, "green" if words == state_in_words("closed") else "yellow")
    kind = f"  {found['type']}" if found["type"] else ""
    parts = [
        f"{len(found['records'])} record set{'' if len(found['records']) == 1 else 's'}",
        counted(len(found["upstreams"]), "upstream"),
        counted(len(found["problems"]), "problem"),
    ]
    head = Text.assemble((found["service"], "bold"), kind, "  ", state, f"  {', '.join(parts)}")
    print_folded(console, head, 2)
    rows: list[tuple[str, Text]] = []
    if found["objects"]:
        rows.append(("seen", Text(", ".join(_object(each) for each in found["objects"]))))
    if found["ttl"]:
        rows.append(("ttl", Text(f"{found['ttl']['seconds']} s: {found['ttl']['rule']}")))
    if found["routing"]:
        of = found["routing"]
        rows.append(("routing", Text(f"{of['policy']} [{of['identifier']}]: {of['rule']}")))
    if found["cause"]:
        rows.append(("opened by", Text(found["cause"])))
    rows += [("note", Text(remark, style="yellow")) for remark in found["remarks"]]
    for zone in found["zones"]:
        if zone["problem"]:
            rows.append(("zone", Text(f"{zone['zone']}: {zone['problem']} ({zone['code']})", style="red")))
        if zone["unread"]:
            rows.append(("zone", Text(f"{zone['zone']} cannot be read: {zone['unread']}", style="red")))
    _show_rows(console, rows)


def _object(each: dict[str, Any]) -> str:
    word = "" if each["state"] == "seen" else f" ({each['state']})"
    return f"{each['object']}@{each['resource_version']}{word}"


def _block(console: Console, title: str, place: str, found: dict[str, Any], rows: Iterator[tuple[str, Text]]) -> None:
    style = _STYLES.get(found["state"], "yellow")
    console.print()
    head = Text.assemble(
        ("● ", style), (title, "bold"), f"  {place}" if place else "", "  ", (state_in_words(found["state"]), style)
    )
    print_folded(console, head, 2)
    then = Text(found["next"] + (f" ({found['retry_at']})" if found["retry_at"] else ""))
    reason = [("reason", Text(found["reason"], style=style))] if found["reason"] else []
    _show_rows(console, [*rows, *reason, ("next", then)])


def _of_record(record: dict[str, Any], raw: dict[str, Any], kind: str) -> Iterator[tuple[str, Text]]:
    """Args: ``raw`` is compared, not shown: other text may look the same once it is escaped."""
    for origin in record["origins"]:
        yield "by", Text.assemble(origin["rule"], (" ← ", "dim"), origin["source"])
    same = raw["wanted"] == raw["stands"]
    yield "wanted", _value(record["wanted"], "nothing")
    unread = "cannot be read now" if not record["read"] else "nothing"
    yield "current", Text("the same") if same and record["wanted"] else _value(record["stands"], unread)
    if raw["known"] != raw["stands"] and record["read"] and record["known"] is not None:
        yield "written", _value(record["known"], "nothing")
    for other in record["in_the_way"]:
        yield "in the way", Text.assemble(f"{other['type']} ", _value(other, "nothing"))
    claim = record["claim"]
    owner = f"this {kind}" if claim["own"] else claim["owner"] or "none"
    waiting = claim["waiting"][:_WAITING_SHOWN]
    more = len(claim["waiting"]) - len(waiting)
    queue = f"; waiting: {', '.join(waiting)}{f' and {more} more' if more else ''}" if waiting else ""
    if claim["own"] or claim["owner"] or not claim["others"]:  # else nobody has this set identifier
        yield "owner", Text(f"{owner}{queue}")
    if claim["others"]:
        yield "shared by", Text(sharers(claim["others"]))


def _value(value: dict[str, Any] | None, nothing: str) -> Text:
    if value is None:
        return Text(nothing, style="dim")
    shown = value["values"][:_VALUES_SHOWN]
    more = len(value["values"]) - len(shown)
    text = Text(f"alias {value['alias']}" if "alias" in value else ", ".join(shown))
    if more:
        text.append(f" and {more} more")
    details = [f"ttl {value['ttl']}"] if value["ttl"] is not None else []
    details += [value["routing"]] if "routing" in value else [f"weight {value['weight']}"] if "weight" in value else []
    details += [] if value.get("evaluate_health", True) else ["health not evaluated"]
    details += [f"with {value['foreign_form']}"] if "foreign_form" in value else []
    return text.append(f"  {', '.join(details)}", style="dim") if details else text


def _of_upstream(upstream: dict[str, Any]) -> Iterator[tuple[str, Text]]:
    if upstream["origin"]:
        yield "by", Text(upstream["origin"])
    for side, nodes in (("wanted", upstream["wanted"]), ("current", upstream["stands"])):
        if nodes is None:
            yield side, Text("nothing", style="dim")
            continue
        text = Text(f"{counted(nodes['nodes'], 'node')}, {nodes['ready']} ready")
        if "version" in nodes:
            text.append(f"  version {nodes['version']}, {nodes['updated_at']}", style="dim")
        yield side, text


def _show_problems(console: Console, found: dict[str, Any]) -> None:
    if not found["problems"]:
        return
    console.print()
    console.print(Text("What is wrong", style="bold"))
    for problem in found["problems"]:
        subject = f"{problem['subject']}: " if problem["subject"] else ""
        rows = [(problem["code"], Text(f"{subject}{in_the_way_for_people(problem['message'])}"))]
        rows += [("", Text(f"→ {problem['advice']}", style="dim"))] if problem["advice"] else []
        _show_rows(console, rows, style="red")


def _show_rows(console: Console, rows: list[tuple[str, Text]], style: str = "dim") -> None:
    labels = max((len(label) for label, _ in rows), default=0)
    column = max(_LABELS, labels) + 4
    for label, content in rows:
        print_folded(console, Text("  ").append(f"{label:{column - 2}}", style=style).append_text(content), column)
