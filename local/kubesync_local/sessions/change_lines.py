"""Changes as a person reads them while they happen: one line for each record set and upstream."""

from collections.abc import Iterator, Sequence
from typing import Final

from kubesync.aws.tables.audit import Entry
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.output import side_in_words

MARKS: Final = {"+": "green", "-": "red", "~": "yellow", "!": "bold red"}
"""The first character of a line, and its style on a terminal."""


def lines_of(entries: Sequence[Entry]) -> Iterator[str]:
    """``+ name TYPE ...``, ``- ...``, ``~ ...`` for what has landed, ``! ...`` for what could not. Intentions are left out."""
    for entry in entries:
        kind, _, what = entry.what.partition(" ")
        name, _, zone = what.rpartition(" in ")
        match kind:
            case "record":
                yield f"{_mark(entry)} {name} {_sides(entry)}"
            case "upstream":
                yield f"{_mark(entry)} upstream {what} {_sides(entry)}"
            case "refused":
                yield f"! {_refused(entry.code)} {name} in zone {zone}: {in_the_way_for_people(entry.message)} ({entry.service})"


def _mark(entry: Entry) -> str:
    if entry.before is None:
        return "+"
    return "-" if entry.after is None else "~"


def _sides(entry: Entry) -> str:
    if entry.before is not None and entry.after is not None:
        return f"{side_in_words(entry.before)} → {side_in_words(entry.after)}"
    return side_in_words(entry.before if entry.after is None else entry.after)


def _refused(code: str) -> str:
    return "conflict" if code == "Conflict" else f"refused ({code})" if code else "refused"
