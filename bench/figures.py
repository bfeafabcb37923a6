"""A measured figure with its goal, and the table that shows them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Sense(StrEnum):
    """Which side of its goal a figure should be on. ``NOTE``: it has no goal and is shown for context."""

    AT_LEAST = "≥"
    AT_MOST = "≤"
    EXACTLY = "="
    NOTE = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number.

    Args:
        what: a few words, for a person.
        value: measured; NaN: it cannot be measured here (``note`` says why).
        unit: of value and goal.
        note: how it was measured.
    """

    what: str
    value: float
    unit: str = ""
    sense: Sense = Sense.NOTE
    goal: float = math.nan
    note: str = ""

    @property
    def missed(self) -> bool:
        """Whether it is on the wrong side of its goal. A figure that could not be measured is not missed."""
        if math.isnan(self.value):
            return False
        match self.sense:
            case Sense.AT_LEAST:
                return self.value < self.goal
            case Sense.AT_MOST:
                return self.value > self.goal
            case Sense.EXACTLY:
                return self.value != self.goal
            case Sense.NOTE:
                return False

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of its row."""
        goal = f"{self.sense} {_number(self.goal)}" if self.sense is not Sense.NOTE else ""
        verdict = "" if not goal else "not measured" if math.isnan(self.value) else "MISSED" if self.missed else "met"
        return (self.what, f"{_number(self.value)} {self.unit}".strip(), goal, verdict, self.note)


HEAD = ("figure", "measured", "goal", "", "note")


def table(figures: Iterable[Figure]) -> str:
    """The figures as text, columns aligned."""
    rows: list[Sequence[str]] = [HEAD, *(figure.row for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of the values do not exceed; NaN without values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"
