"""The picture of lag by minute."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubesync_local.documents.lag import LagMinute

MINUTES: Final = 60
_STEPS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)


@dataclass(frozen=True, slots=True)
class Bar:
    """A minute in the picture: percent of its width and height, from the top left."""

    x: float
    width: float
    p99_height: float
    median_height: float


@dataclass(frozen=True, slots=True)
class LagPicture:
    """Bars, the seconds at the top of the scale, and the highest and the middle figure in words."""

    bars: tuple[Bar, ...]
    top_seconds: float
    minutes: tuple[LagMinute, ...]
    worst: LagMinute
    usual_seconds: float


def picture(found: Sequence[LagMinute], until: float, minutes: int = MINUTES) -> LagPicture | None:
    """The last minutes as bars; None: there is none with a figure."""
    first = (int(until) // 60 - minutes + 1) * 60
    shown = tuple(each for each in found if first <= each.minute < first + minutes * 60)
    if not shown:
        return None
    worst = max(shown, key=lambda each: each.p99_seconds)
    top = next((step for step in _STEPS if step >= worst.p99_seconds), worst.p99_seconds)
    width = 100 / minutes
    bars = tuple(
        Bar(
            x=round((each.minute - first) / 60 * width, 3),
            width=round(width * 0.7, 3),
            p99_height=round(100 * each.p99_seconds / top, 2),
            median_height=round(100 * each.median_seconds / top, 2),
        )
        for each in shown
    )
    usual = sorted(each.median_seconds for each in shown)[len(shown) // 2]
    return LagPicture(bars, top, shown, worst, usual)
