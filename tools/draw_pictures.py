"""Draws the pictures of ``docs/`` from their text: ``docs/pictures/NAME.txt`` becomes ``NAME.svg`` beside it.

A text of **lanes** is read from top to bottom, as time goes:

    title: A hand-over
    lanes: one session | tables | next session
    one session -> tables: releases the lease
    tables --> next session: an answer, dashed
    next session: a note in its lane
    == a line across, with a caption

A text of **boxes** places them on a grid, by column and row from 1. A third number makes a box so many columns wide, a fourth so many rows
high. What is ``outside`` is not a part of kubesync. Before the boxes, ``grid`` can set the width of a column and the height of a row:

    title: Parts
    grid: 290 130
    box zone 3 2: zone | one thread for each hosted zone
    outside tables 2 3 3: DynamoDB | first line | second line
    outside cluster 1 1 1 3: API servers
    zone -> tables: batches

Readers who prefer dark pages get light lines: the picture has no background of its own.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final

PICTURES: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"

_STYLE: Final = """
text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.small { font-size: 11.5px; fill: #59636e } .head { font-weight: 600 }
.box { fill: #ddf4ff; stroke: #0969da } .note { fill: #fff8c5; stroke: #9a6700 }
.line { stroke: #59636e; fill: none } .thin { stroke: #afb8c1; stroke-dasharray: 2 4 } .dashed { stroke-dasharray: 6 4 }
.tip { fill: #59636e } .halo { stroke: #ffffff; stroke-width: 4px; paint-order: stroke; stroke-linejoin: round }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 }
.box { fill: #121d2f; stroke: #4493f8 } .note { fill: #272115; stroke: #d29922 }
.line { stroke: #9198a1 } .thin { stroke: #3d444d } .tip { fill: #9198a1 } .halo { stroke: #0d1117 }
}"""
_CHARACTER: Final = 6.7  # wide, on average
_LINE: Final = 16
_MARGIN: Final = 20


@dataclass(slots=True)
class Drawing:
    """Elements of an SVG, and how much room they take."""

    width: float
    height: float = 0.0
    elements: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "middle") -> None:
        self.elements.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>')

    def lines(self, x: float, y: float, lines: list[str], kind: str = "", anchor: str = "middle") -> None:
        """Several lines, the first one at ``y``."""
        for number, line in enumerate(lines):
            self.text(x, y + number * _LINE, line, kind, anchor)

    def rectangle(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        self.elements.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" class="{kind}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "line", *, tip: bool = False) -> None:
        end = ' marker-end="url(#tip)"' if tip else ""
        self.elements.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"{end}/>')

    def svg(self, title: str) -> str:
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        tip = (
            '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0L10 5L0 10z" class="tip"/></marker>'
        )
        head = f"<title>{escape(title)}</title>\n<style>{_STYLE}\n</style>\n<defs>{tip}</defs>"
        body = "\n".join(self.elements)
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{head}\n{body}\n</svg>\n'


def drawn(source: str) -> str:
    """The SVG of a picture's text. Raises ValueError for a line that says nothing."""
    lines = [line.strip() for line in source.splitlines() if line.strip() and not line.startswith("#")]
    title = _after("title:", lines.pop(0))
    if lines[0].startswith("lanes:"):
        return _lanes([name.strip() for name in _after("lanes:", lines[0]).split("|")], lines[1:]).svg(title)
    return _boxes(lines).svg(title)


def _after(word: str, line: str) -> str:
    if not line.startswith(word):
        raise ValueError(f"expected {word!r}: {line}")
    return line.removeprefix(word).strip()


_ARROW: Final = re.compile(r"(?P<start>[^:]+?) (?P<arrow>-->|->) (?P<end>[^:]+?): (?P<text>.+)")


def _wrapped(text: str, width: float) -> list[str]:
    return textwrap.wrap(text, max(8, int(width / _CHARACTER)), break_long_words=False)


# --- lanes ---

_LANE: Final = 168.0
_HEAD: Final = 34.0


def _lanes(names: list[str], lines: list[str]) -> Drawing:
    drawing = Drawing(_LANE * len(names) + 2 * _MARGIN)
    middle = {name: _MARGIN + _LANE * (number + 0.5) for number, name in enumerate(names)}
    y = _MARGIN + _HEAD + 14
    for line in lines:
        y = _happening(drawing, middle, line, y)
    drawing.height = y + _MARGIN
    below: list[str] = []
    drawing.elements, below = below, drawing.elements
    for name, x in middle.items():
        drawing.line(x, _MARGIN + _HEAD, x, y + 6, "thin")
        drawing.rectangle(x - _LANE / 2 + 6, _MARGIN, _LANE - 12, _HEAD, "box")
        drawing.text(x, _MARGIN + 22, name, "head")
    drawing.elements += below
    return drawing


def _happening(drawing: Drawing, middle: Mapping[str, float], line: str, y: float) -> float:
    if line.startswith("=="):
        drawing.line(_MARGIN, y + 12, drawing.width - _MARGIN, y + 12, "thin")
        drawing.text(_MARGIN + 4, y + 8, _after("==", line), "small", "start")
        return y + 28
    if arrow := _ARROW.fullmatch(line):
        start, end = middle[arrow["start"]], middle[arrow["end"]]
        said = _wrapped(arrow["text"], abs(end - start) - 24)
        drawing.lines((start + end) / 2, y + 12, said, "halo")
        y += 12 + _LINE * (len(said) - 1) + 8
        drawing.line(start, y, end, y, "line dashed" if arrow["arrow"] == "-->" else "line", tip=True)
        return y + 14
    lane, _, text = line.partition(": ")
    if lane not in middle or not text:
        raise ValueError(f"no lane, or nothing said: {line}")
    said = _wrapped(text, _LANE - 22)
    height = _LINE * len(said) + 10
    drawing.rectangle(middle[lane] - _LANE / 2 + 4, y, _LANE - 8, height, "note")
    drawing.lines(middle[lane], y + 17, said)
    return y + height + 10


# --- boxes ---

_GRID: Final = "250 140"
_BOX: Final = (172.0, 80.0)


@dataclass(frozen=True, slots=True)
class _Box:
    x: float
    y: float
    width: float
    height: float

    def edge(self, other: _Box, shift: float) -> tuple[float, float]:
        """Where a line to another box leaves this one: at the side that faces it."""
        left, right = max(self.x, other.x), min(self.x + self.width, other.x + other.width)
        if left < right:  # above or below
            return (left + right) / 2 + shift, self.y if other.y < self.y else self.y + self.height
        top, bottom = max(self.y, other.y), min(self.y + self.height, other.y + other.height)
        y = (top + bottom) / 2 if top < bottom else self.y + self.height / 2
        return (self.x if other.x < self.x else self.x + self.width), y + shift


def _boxes(lines: list[str]) -> Drawing:
    drawing = Drawing(0)
    boxes: dict[str, _Box] = {}
    arrows: list[re.Match[str]] = []
    grid = _after("grid:", lines.pop(0)) if lines[0].startswith("grid:") else _GRID
    across, down = map(float, grid.split())
    for line in lines:
        if arrow := _ARROW.fullmatch(line):
            arrows.append(arrow)
            continue
        place, _, label = line.partition(": ")
        kind, name, *numbers = place.split()
        column, row, columns, rows = [*map(int, numbers), 1, 1][:4]
        width, height = _BOX[0] + across * (columns - 1), _BOX[1] + down * (rows - 1)
        boxes[name] = box = _Box(_MARGIN + across * (column - 1), _MARGIN + down * (row - 1), width, height)
        heading, *below = label.split(" | ")
        drawing.rectangle(box.x, box.y, width, height, "note" if kind == "outside" else "box")
        small = [part for line in below for part in _wrapped(line, (width - 12) * 1.12) or [""]]
        y = box.y + height / 2 + 4 - 8 * len(small)
        drawing.text(box.x + width / 2, y, heading, "head")
        drawing.lines(box.x + width / 2, y + 18, small, "small")
        drawing.width = max(drawing.width, box.x + width + _MARGIN)
        drawing.height = max(drawing.height, box.y + box.height + _MARGIN)
    both = {(arrow["start"], arrow["end"]) for arrow in arrows}
    for arrow in arrows:
        _arrow(drawing, boxes, arrow, shift=12.0 if (arrow["end"], arrow["start"]) in both else 0.0, column=across)
    return drawing


def _arrow(drawing: Drawing, boxes: Mapping[str, _Box], arrow: re.Match[str], *, shift: float, column: float) -> None:
    start, end = boxes[arrow["start"]], boxes[arrow["end"]]
    shift = shift if arrow["start"] < arrow["end"] else -shift
    (x1, y1), (x2, y2) = start.edge(end, shift), end.edge(start, shift)
    drawing.line(x1, y1, x2, y2, "line dashed" if arrow["arrow"] == "-->" else "line", tip=True)
    across = abs(x2 - x1) > abs(y2 - y1)
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    beside = min(column * 0.62, drawing.width - x - 12)
    said = _wrapped(arrow["text"], (abs(x2 - x1) - 6) * 1.15 if across else beside)
    y = y - 6 - (len(said) - 1) * _LINE if across and shift <= 0 else y + 14 if across else y + 4 - (len(said) - 1) * 8
    drawing.lines(x if across else x + 8, y, said, "small halo", "middle" if across else "start")


def pictures() -> Iterator[tuple[Path, str]]:
    """Every picture that is to be there: its file and its text."""
    for source in sorted(PICTURES.glob("*.txt")):
        yield source.with_suffix(".svg"), drawn(source.read_text())


def main() -> int:
    for path, svg in pictures():
        path.write_text(svg)
        print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
