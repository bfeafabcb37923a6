"""How commands answer: tables for people, JSON and YAML for programs. Answers go to standard output, remarks to standard error.

Nothing from outside reaches a terminal as it is: see ``escaping``.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from kubesync_local.terminal.escaping import escaped, escaped_json, unescaped, visible
from kubesync_local.terminal.folding import fold_styled
from kubesync_local.terminal.remarks import one_line, remark as remark
from kubesync_local.terminal.sorting import sorted_by
from kubesync_local.terminal.tables import lines_of

# A pipe has no width: lines for programs are not folded.
_PIPE_WIDTH: Final = 100_000
_NARROWEST: Final = 40
_VALUES_SHOWN: Final = 6
_ONE_NODE: Final = re.compile(r"\b1 nodes\b")  # as tables have it


class EscapedConsole(Console):
    """A console that writes its own colours and movements, and no control character of any text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=escaped(segment.text))


def new_console(*, stderr: bool = False) -> Console:
    """A console that obeys nothing in a text: no markup, no emoji, no highlighting, no control characters."""
    stream = unescaped(sys.stderr if stderr else sys.stdout)
    return EscapedConsole(file=stream, markup=False, emoji=False, highlight=False, width=_width(stream))


def _width(stream: TextIO) -> int | None:
    """Cells of a line; None: the terminal's current width. COLUMNS wins if it is set."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit():
        # rich shows nothing on a screen of width 0.
        return int(given) or shutil.get_terminal_size().columns
    return None if stream.isatty() else _PIPE_WIDTH


def print_json(document: object) -> None:
    """One JSON document."""
    sys.stdout.write(escaped_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n")


def print_document(document: object, output: str) -> None:
    """One document for programs. ``output``: json or yaml."""
    if output == "yaml":
        from kubesync_local.terminal.yaml_form import as_yaml

        sys.stdout.write(as_yaml(document))
    else:
        print_json(document)


def print_line(text: str) -> None:
    """A line of an answer that comes bit by bit."""
    sys.stdout.write(one_line(text))
    sys.stdout.flush()


def print_rows(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    output: str,
    empty: str,
    names: int = 1,
    sort: str | None = None,
    title: str | None = None,
) -> None:
    """A list: a flat array of whole rows as JSON or YAML, or a table of some of their columns.

    Args:
        columns: fields shown in the table, in order; the first ``names`` of them name a row.
        empty: what the table form says on standard error when there are no rows.
        sort: the field to sort by; None: the rows' own order.
        title: what the table form says above the rows.
    """
    rows = sorted_by(rows, sort)
    if output != "table":
        print_document(list(rows), output)
    elif not rows:
        remark(empty)
    else:
        print_table(rows, columns, title, names=names, first=True)


def print_table(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    title: str | None = None,
    names: int = 1,
    console: Console | None = None,
    *,
    first: bool = False,
) -> None:
    """Rows for people, in the form that fits the screen; see ``tables``.

    Args:
        first: nothing stands above it. An empty line separates other titles from what stands above them.
    """
    console = console or new_console()
    lines = lines_of(rows, columns, screen_width(console), names)
    head = [] if title is None else [Text(visible(title), style="italic")]
    gap = [] if first or title is None else [Text()]
    for line in [*gap, *head, *lines]:
        console.print(line, soft_wrap=True)


def print_folded(console: Console, text: Text, indent: int) -> None:
    """Text for people, folded at good places; all lines but the first are indented by ``indent`` cells."""
    width = screen_width(console)
    lines = [text] if width is None else fold_styled(text, width, width - indent)
    for number, line in enumerate(lines):
        console.print(Text(" " * indent).append_text(line) if number else line, soft_wrap=True)


def screen_width(console: Console) -> int | None:
    """Cells in a line; None without a screen."""
    return None if console.width >= _PIPE_WIDTH else max(_NARROWEST, console.width)


def counted(number: int, what: str) -> str:
    """``1 problem``, ``2 problems``; only the first of several words gets the plural: ``2 keys changed``."""
    noun, space, rest = what.partition(" ")
    return f"{number} {noun}{'' if number == 1 else 's'}{space}{rest}"


def side_in_words(side: object) -> str:
    """A record set or an upstream of a change, as a person reads it."""
    match side:
        case None:
            return "nothing"
        case {"alias": name, **others}:
            return f"alias {name}{_policy(others)}"
        case {"ttl": ttl, "values": list(values), **others}:
            more = f" and {len(values) - _VALUES_SHOWN} more" if len(values) > _VALUES_SHOWN else ""
            return f"{', '.join(values[:_VALUES_SHOWN])}{more} ttl {ttl}{_policy(others)}"
    return _ONE_NODE.sub("1 node", str(side))


def with_policy(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row that says its routing policy in words. None: it has none."""
    words = row.get("routing") or (f"weighted {row['weight']}" if "weight" in row else None)
    return {**row, "routing": words}


def _policy(fields: Mapping[Any, Any]) -> str:
    """The routing policy of a record set with these fields, after what else is said of it."""
    words = with_policy(fields)["routing"]
    return f", {words}" if words else ""
