"""How commands answer: tables for people, JSON for programs; answers on standard output, remarks on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

# A pipe has no width: wide enough that a program's lines are not broken for a screen that is not there.
_PIPE_WIDTH: Final = 100_000


def new_console(*, stderr: bool = False) -> Console:
    """A console that shows text as it is: no markup, no emoji, nothing guessed."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else _PIPE_WIDTH
    return Console(file=stream, markup=False, emoji=False, highlight=False, width=width)


def print_json(document: object) -> None:
    """One JSON document."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def print_line(text: str) -> None:
    """A line of an answer that is being given bit by bit."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], output: str, empty: str) -> None:
    """A list: a flat JSON array of whole rows, or a table of some of their columns.

    Args:
        columns: fields shown in the table, in order.
        empty: what the table form says on standard error when there are no rows.
    """
    if output == "json":
        print_json(list(rows))
    elif not rows:
        remark(empty)
    else:
        new_console().print(table(rows, columns))


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str | None = None) -> Table:
    """Rows as a table; columns without any value are left out."""
    shown = [column for column in columns if any(row.get(column) not in (None, "", []) for row in rows)]
    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for column in shown:
        made.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        made.add_row(*(_text(row.get(column)) for column in shown))
    return made


def counted(number: int, what: str) -> str:
    """``1 problem``, ``2 problems``; of several words the first is counted: ``2 keys changed``."""
    noun, space, rest = what.partition(" ")
    return f"{number} {noun}{'' if number == 1 else 's'}{space}{rest}"


def remark(text: str) -> None:
    """A line for a person that is no part of the answer."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return "\n".join(_text(each) for each in value)
        case dict():
            return json.dumps(value, ensure_ascii=False)
    return str(value)
