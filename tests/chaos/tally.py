"""How sections went, and the table that a run ends with."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_MOST_ROWS: Final = 12


@dataclass
class Tally:
    """How a section went. ``faults``: how often each kind was tried, ``a: b`` being a row and a column."""

    number: int
    title: str
    invariants: str
    tried: int = 0
    violations: list[str] = field(default_factory=list)
    violated: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    figures: list[str] = field(default_factory=list)


def table(tallies: Sequence[Tally]) -> str:
    """What was tried and survived; what the cases tried; figures; the number of violations last."""
    width = max(len(tally.title) for tally in tallies)
    lines = [f"{'':>3}  {'fault':<{width}}  {'proves':<12} {'tried':>7} {'survived':>9} {'seconds':>8}"]
    lines += [
        f"{t.number:>3}  {t.title:<{width}}  {t.invariants:<12} {t.tried:>7} {t.tried - t.violated:>9} {t.seconds:>8.1f}"
        for t in tallies
    ]
    tried = sum(tally.tried for tally in tallies)
    violated = sum(tally.violated for tally in tallies)
    lines.append(f"{'':>3}  {'all':<{width}}  {'':<12} {tried:>7} {tried - violated:>9}")
    for tally in tallies:
        lines += _kinds(tally)
    return "\n".join([*lines, "", f"invariants violated: {violated}"])


def _kinds(tally: Tally) -> list[str]:
    """Rows and columns of the kinds of faults, where there are several."""
    cells = {tuple(fault.partition(": ")[::2]): count for fault, count in tally.faults.items()}
    rows = list(dict.fromkeys(row for row, _ in cells))
    columns = list(dict.fromkeys(column for _, column in cells))
    lines: list[str] = []
    if len(cells) > 1:
        width = max(len(row) for row in rows)
        widths = {column: max(len(column), 6) for column in columns}
        head = "  ".join(f"{column:>{widths[column]}}" for column in columns)
        lines = ["", f"section {tally.number}, tried:", *([f"     {'':<{width}}  {head}"] if any(columns) else [])]
        for row in rows:
            counts = (f"{cells.get((row, column)) or '-':>{widths[column]}}" for column in columns)
            lines.append(f"     {row:<{width}}  {'  '.join(counts)}")
    if tally.figures:
        shown = sorted(tally.figures, key=_by_number)[: _MOST_ROWS * 3]
        lines += ["", f"section {tally.number}, measured:", *(f"     {figure}" for figure in shown)]
    return lines


def _by_number(figure: str) -> tuple[object, ...]:
    return tuple(int(word) if word.isdigit() else 0 for word in figure.split())
