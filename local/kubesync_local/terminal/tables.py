"""Lists: for people a table if it fits the screen, or a block for each row if that takes fewer lines; for programs one line for each
row. No value is ever cut.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.text import Text

from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.folding import fold, widest_piece

_GAP: Final = 2
_INDENT: Final = 2
_SEPARATOR: Final = " · "
# In a pipe: columns are aligned up to this width; a longer value shifts only its own row.
_LINED_UP: Final = 60

type _Cell = Sequence[str]
"""Its values: one below the other in a table, joined by commas elsewhere."""


def lines_of(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], width: int | None, names: int = 1
) -> list[Text]:
    """Rows as lines, without empty columns.

    Args:
        columns: fields that are shown, in order.
        width: cells of the screen; None: no screen, each row is one line.
        names: how many of the first columns name a row; they are the head of its block.
    """
    shown = [column for column in columns if any(row.get(column) not in (None, "", []) for row in rows)]
    headings = [column.replace("_", " ") for column in shown]
    cells = [[_cell(row.get(column)) for column in shown] for row in rows]
    if width is None:
        return _plain(headings, cells)
    widths = _widths(headings, cells, width)
    named = sum(column in columns[:names] for column in shown)
    blocks = [line for row in cells for line in _block(headings, row, named, width)]
    if widths is None:
        return blocks
    table = _table(headings, cells, widths)
    return table if widths == _natural(headings, cells) or len(table) <= len(blocks) else blocks


def _cell(value: object) -> _Cell:
    match value:
        case None:
            return ("",)
        case bool():
            return ("yes" if value else "no",)
        case list() | tuple():
            return [text for each in value for text in _cell(each)] or ("",)
        case dict():
            return (visible(json.dumps(value, ensure_ascii=False)),)
    return (visible(str(value)),)


def _plain(headings: Sequence[str], cells: Sequence[Sequence[_Cell]]) -> list[Text]:
    lines = [list(headings), *([", ".join(cell) for cell in row] for row in cells)]
    widths = [min(_LINED_UP, max(map(cell_len, column))) for column in zip(*lines, strict=True)]
    return [Text(_joined(line, widths)) for line in lines]


def _joined(parts: Sequence[str], widths: Sequence[int]) -> str:
    gap = " " * _GAP
    padded = (part + " " * (width - cell_len(part)) for part, width in zip(parts, widths, strict=True))
    return gap.join(padded).rstrip()


def _columns(headings: Sequence[str], cells: Sequence[Sequence[_Cell]]) -> list[list[str]]:
    return [[heading, *(text for row in cells for text in row[i])] for i, heading in enumerate(headings)]


def _natural(headings: Sequence[str], cells: Sequence[Sequence[_Cell]]) -> list[int]:
    return [max(map(cell_len, column)) for column in _columns(headings, cells)]


def _widths(headings: Sequence[str], cells: Sequence[Sequence[_Cell]], width: int) -> list[int] | None:
    """A width for each column, the widest narrowed first; None if words had to be broken."""
    natural = _natural(headings, cells)
    least = [max(map(widest_piece, column)) for column in _columns(headings, cells)]
    room = width - _GAP * (len(headings) - 1)
    if sum(least) > room:
        return None
    cap = max(natural, default=0)
    while sum(found := [max(low, min(high, cap)) for low, high in zip(least, natural, strict=True)]) > room:
        cap -= 1
    return found


def _table(headings: Sequence[str], cells: Sequence[Sequence[_Cell]], widths: Sequence[int]) -> list[Text]:
    lines = [Text(line, style="bold") for line in _row([[heading] for heading in headings], widths)]
    lines.append(Text((" " * _GAP).join("─" * width for width in widths), style="dim"))
    return lines + [Text(line) for row in cells for line in _row(row, widths)]


def _row(row: Sequence[_Cell], widths: Sequence[int]) -> list[str]:
    folded = [[line for text in cell for line in fold(text, width)] for cell, width in zip(row, widths, strict=True)]
    height = max(map(len, folded), default=0)
    return [_joined([lines[i] if i < len(lines) else "" for lines in folded], widths) for i in range(height)]


def _block(headings: Sequence[str], row: Sequence[_Cell], names: int, width: int) -> list[Text]:
    head = "  ".join(filter(None, (", ".join(cell) for cell in row[:names])))
    lines = [Text(line, style="bold") for line in fold(head, width)]
    begun: Text | None = None  # the last line, if it may have room for more
    for heading, cell in zip(headings[names:], row[names:], strict=True):
        pair = f"{heading} {', '.join(cell)}"
        if cell == ("",):
            continue
        if begun is not None and cell_len(begun.plain + _SEPARATOR + pair) <= width:
            begun.append(_SEPARATOR, style="dim").append(heading, style="dim").append(pair[len(heading) :])
            continue
        entry = _entry(heading, cell, width)
        begun = entry[0] if len(entry) == 1 else None
        lines += entry
    return lines


def _entry(heading: str, cell: _Cell, width: int) -> list[Text]:
    """A heading and its values: on one line, or each of them on its own."""
    under = " " * (_INDENT + len(heading) + 1)
    room = width - len(under)
    together = ", ".join(cell)
    values = [together] if cell_len(together) <= room else cell
    first, *more = [line for value in values for line in fold(value, room)]
    return [
        Text(" " * _INDENT).append(heading, style="dim").append(f" {first}"),
        *(Text(under + line) for line in more),
    ]
