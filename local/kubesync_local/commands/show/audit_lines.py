"""``kubesync audit`` for people: a line for each change, folded where the screen is narrow."""

from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.escaping import readable
from kubesync_local.terminal.output import new_console, print_folded, side_in_words

_STYLES: Final = {"record": "green", "refused": "bold red", "upstream": "cyan", "settings": "magenta"}
_BATCH_SHOWN: Final = 8


def show_changes(rows: Sequence[dict[str, Any]]) -> None:
    """Print them in the order given."""
    console = new_console()
    for row in map(readable, rows):
        print_folded(console, Text("  ").join([_headline(row), *_details(row)]), 4)


def _headline(row: dict[str, Any]) -> Text:
    kind = row["kind"] or ""
    what = row["what"].removeprefix(f"{kind} ")
    if row["zone"]:
        what = what.removesuffix(f" in {row['zone']}")
    service = "" if row["upstream"] else f"  {row['service'] or row['cluster']}"
    return Text.assemble(
        (f"{row['at'][:19]}Z  ", "dim"), (f"{kind:8}  ", _STYLES.get(kind, "")), (what, "bold"), service
    )


def _details(row: dict[str, Any]) -> list[Text]:
    cause = f" {row['object']}@{row['resource_version']}" if row["object"] else ""
    why = [f"{row['why']}{cause}"] if row["why"] else []
    why += [f"batch {row['batch'][:_BATCH_SHOWN]}"] if row["batch"] else []
    change = Text.assemble(side_in_words(row["from"]), (" → ", "dim"), side_in_words(row["to"]))
    parts = [change]
    if row["reason"] or row["message"]:
        message = in_the_way_for_people(row["message"] or "")
        parts.append(Text.assemble((row["reason"] or "", "red"), ": " if row["reason"] else "", message))
    return [*parts, Text(f"({', '.join(why)})", style="dim")] if why else parts
