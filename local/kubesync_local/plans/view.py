"""A plan on a screen or in a pipe.

    example.com (Z0123456789ABCDEFGHIJ)
      + web.prod.example.com A 30 10.0.0.1  (prod/shop/web appeared)
      ~ api.prod.example.com A 30 10.0.0.2 -> 600 10.0.0.2  (prod/shop/api changed)

    1 to add, 1 to change, 0 to delete, 0 held back

The signs say everything: colours only help, and only those are used that can be read on black and on white.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kubesync_local.plans.plan import Group, Line, Plan, Sign
from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.output import counted, new_console, print_folded, remark, screen_width

_STYLES: Final = {Sign.ADD: "green", Sign.CHANGE: "magenta", Sign.DELETE: "red", Sign.STAYS: "bold"}
_INDENT: Final = 2
_UNDER: Final = 6
_GAP: Final = 2
_PARTS_SHOWN: Final = 6
_LINES_BEFORE_A_QUESTION: Final = 100
"""Of one group. `--dry-run` and `plan` show all."""


def show_plan(plan: Plan) -> None:
    """Print a plan as the answer of a command. What failed is also said on standard error if the answer goes elsewhere."""
    console = new_console()
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
    for note in plan.notes:
        print_folded(console, Text(visible(note)), _INDENT)
    for error in plan.errors:
        print_folded(console, Text(visible(error), style="bold red"), _INDENT)
    if plan.errors:
        text = f"{counted(len(plan.errors), 'comparison')} failed: the numbers do not hold what was not compared"
        print_folded(console, Text(text, style="bold"), _INDENT)
    console.print(Text(plan.last_line, style="bold"), soft_wrap=True)


def _show_line(line: Line, console: Console) -> None:
    """The reason stands on the same line if it fits there as a whole."""
    text, why = _line(line), Text()
    if line.why:  # of what stays undone it is what a person has to read
        why = Text(f"({visible(line.why)})", style="" if line.sign is Sign.STAYS else "dim")
    width = screen_width(console)
    if why and (width is None or cell_len(text.plain) + _GAP + cell_len(why.plain) <= width):
        text.append(" " * _GAP).append_text(why)
        why = Text()
    print_folded(console, text, _UNDER)
    if why:
        print_folded(console, Text(" " * _UNDER).append_text(why), _UNDER)


def _line(line: Line) -> Text:
    style = _STYLES[line.sign]
    text = Text(" " * _INDENT).append(f"{line.sign} ", style=f"bold {style}").append(visible(line.subject))
    if line.before is not None and line.after is not None:
        old, new = set(line.before), set(line.after)
        text.append(" ").append_text(_side(line.before, new, "red"))
        text.append(" -> ").append_text(_side(line.after, old, "green"))
    elif (only := line.after or line.before) is not None:
        text.append(" ").append_text(_side(only, None, style))
    return text


def _side(parts: Sequence[str], other: AbstractSet[str] | None, style: str) -> Text:
    """The parts of a side: the first, then the others with commas. What the other side does not have is emphasised.

    Of many parts, those that differ are shown and the rest is counted.
    """
    first, *rest = parts
    differs = other is not None and first not in other
    text = Text().append(visible(first), style=f"bold {style}" if differs else "")
    shown = rest
    if len(rest) > _PARTS_SHOWN:
        shown = (rest if other is None else [part for part in rest if part not in other])[:_PARTS_SHOWN]
    for number, part in enumerate(shown):
        differs = other is not None and part not in other
        text.append(", " if number else " ").append(visible(part), style=f"bold {style}" if differs else "")
    same = 0 if other is None else sum(part in other for part in rest)
    if len(rest) > len(shown):
        more = len(rest) - len(shown) - same
        counts = ([f"{more:,} more"] if more else []) + ([f"{same:,} the same"] if same else [])
        text.append(f" ({', '.join(counts)})")
    return text
