"""A plan on a screen or in a pipe.

    example.com (Z0123456789ABCDEFGHIJ)
      + web.prod.example.com A 10.0.0.1 ttl 30  (prod/shop/web appeared)
      ~ api.prod.example.com A 10.0.0.2 ttl 30 -> 10.0.0.2 ttl 600  (prod/shop/api changed)

    1 to add, 1 to change, 0 to delete, 0 held back

A line that is too long goes on between values, and with what it becomes on a line of its own. A value stays whole if the screen is
wide enough for it.
The signs say everything: colours only help, and only those are used that can be read on black and on white.
"""

import sys
from collections.abc import Sequence, Set as AbstractSet
from dataclasses import replace
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kubesync_local.plans.plan import TTL, Group, Line, Plan, Sign
from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.output import counted, new_console, print_folded, remark, screen_width

_STYLES: Final = {Sign.ADD: "green", Sign.CHANGE: "magenta", Sign.DELETE: "red", Sign.STAYS: "bold"}
_INDENT: Final = 2
_UNDER: Final = 6
_GAP: Final = 2
_VALUES_SHOWN: Final = 6
_LINES_BEFORE_A_QUESTION: Final = 100
"""Of one group. `--dry-run` and `plan` show all."""


def show_plan(plan: Plan) -> None:
    """Print a plan as the answer of a command. What failed is also said on standard error if the answer goes elsewhere."""
    console = new_console()
    if console.is_terminal:
        console.print()  # below the progress of what made it
    _show(plan, console)
    if not console.is_terminal:
        sys.stdout.flush()
        for error in plan.errors:
            remark(error)


def show_for_question(plan: Plan) -> None:
    """Print a plan on standard error, where the question follows: of long groups the first lines, deletions before others."""
    _show(replace(plan, groups=tuple(map(_shortened, plan.groups))), new_console(stderr=True))


def _shortened(group: Group) -> Group:
    hidden = len(group.lines) - _LINES_BEFORE_A_QUESTION
    if hidden <= 0:
        return group
    lines = sorted(group.lines, key=lambda line: line.sign is not Sign.DELETE)[:_LINES_BEFORE_A_QUESTION]
    return replace(group, lines=tuple(lines), left_out=group.left_out + hidden)


def _show(plan: Plan, console: Console) -> None:
    """The errors come before the last line, which has the numbers."""
    for group in plan.groups:
        console.print(Text(visible(group.title), style="bold"), soft_wrap=True)
        for line in group.lines:
            _show_line(line, console)
        if group.left_out:
            console.print(Text(f"{' ' * _INDENT}... and {group.left_out:,} more"), soft_wrap=True)
        console.print()
    for note in (*plan.notes, *plan.exposes):
        print_folded(console, Text(visible(note)), _INDENT)
    for error in plan.errors:
        print_folded(console, Text(visible(error), style="bold red"), _INDENT)
    if plan.errors:
        text = f"{counted(len(plan.errors), 'comparison')} failed: the numbers do not hold what was not compared"
        print_folded(console, Text(text, style="bold"), _INDENT)
    console.print(Text(plan.last_line, style="bold"), soft_wrap=True)


def _show_line(line: Line, console: Console) -> None:
    """The reason stands on the same line if it fits there as a whole."""
    rows, why = _rows(line), Text()
    if line.why:  # of what stays undone it is what a person has to read
        why = Text(f"({visible(line.why)})", style="" if line.sign is Sign.STAYS else "dim")
    width = screen_width(console)
    whole = Text(" ").join(piece for row in rows for piece in row)
    if width is None or cell_len(whole.plain) <= width:
        if why and (width is None or cell_len(whole.plain) + _GAP + cell_len(why.plain) <= width):
            whole.append(" " * _GAP).append_text(why)
            why = Text()
        rows = [[whole]]
    for number, row in enumerate(rows):
        for text in _filled([Text(" " * _UNDER) + row[0], *row[1:]] if number else row, width):
            print_folded(console, text, _UNDER + _INDENT)
    if why:
        print_folded(console, Text(" " * _UNDER).append_text(why), _UNDER)


def _filled(pieces: Sequence[Text], width: int | None) -> list[Text]:
    """Lines with as many pieces as fit. Only a piece that is too wide by itself makes a line that is too wide."""
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if width is None or cell_len(lines[-1].plain) + 1 + cell_len(piece.plain) <= width:
            lines[-1] = Text(" ").join([lines[-1], piece])
        else:
            lines.append(Text(" " * _UNDER) + piece)
    return lines


def _rows(line: Line) -> list[list[Text]]:
    """The pieces of a line: its head with the only or the first side, and what that becomes."""
    style = _STYLES[line.sign]
    head = Text(" " * _INDENT).append(f"{line.sign} ", style=f"bold {style}").append(visible(line.subject))
    if line.before is not None and line.after is not None:
        old, new = set(line.before), set(line.after)
        first, *more = _side(line.after, old, "green")
        return [[head, *_side(line.before, new, "red")], [Text("-> ") + first, *more]]
    only = line.after or line.before
    return [[head, *(_side(only, None, style) if only is not None else ())]]


def _side(parts: Sequence[str], other: AbstractSet[str] | None, style: str) -> list[Text]:
    """The pieces of a side: its values, then what else it has. What the other side does not have is emphasised.

    Of many values, those that differ are shown and the rest is counted.
    """
    begin = next((number for number, part in enumerate(parts) if part.startswith(TTL)), 1)
    values, details = parts[:begin], parts[begin:]
    shown = values
    if len(values) > _VALUES_SHOWN:
        differing = values if other is None else [part for part in values if part not in other]
        shown = differing[:_VALUES_SHOWN]
    pieces = _pieces(shown, other, style)
    same = 0 if other is None else sum(part in other for part in values)
    if len(values) > len(shown):
        more = len(values) - len(shown) - same
        counts = ([f"{more:,} more"] if more else []) + ([f"{same:,} the same"] if same else [])
        pieces.append(Text(f"({', '.join(counts)})"))
    return [*pieces, *_pieces(details, other, style)]


def _pieces(parts: Sequence[str], other: AbstractSet[str] | None, style: str) -> list[Text]:
    pieces = []
    for number, part in enumerate(parts, 1):
        differs = other is not None and part not in other
        pieces.append(Text().append(visible(part), style=f"bold {style}" if differs else ""))
        if number < len(parts):
            pieces[-1].append(",")
    return pieces
