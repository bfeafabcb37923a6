"""The tables of ``docs/annotations.md`` that are made from the table in the code.

Written by ``python -m harness.dns_cases.annotations_page``; a test fails where page and code differ.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from kubesync.domain.dns.annotations.known import HEADLESS, TABLE, KnownAnnotation, Use

PAGE: Final = Path(__file__).resolve().parents[3] / "docs/annotations.md"
_HEADS: Final = {
    Use.OBEYED: "| annotation | what it does |",
    Use.REFUSED: "| annotation | what it asks for | refused |",
    Use.IGNORED: "| annotation | whose it is |",
}


def made(page: str) -> str:
    """The page with each table made again. A table stands between two comments that name its use."""
    for use in Use:
        rows = [row for row in TABLE if row.use is use]
        columns = _HEADS[use].count("|") - 1
        table = "\n".join([_HEADS[use], "|" + "---|" * columns, *map(_line, rows)])
        marks = f"<!-- {use}: made from annotations/known.py -->", f"<!-- end of {use} -->"
        pattern = re.compile("(?<=" + re.escape(marks[0]) + r"\n\n).*?(?=\n*" + re.escape(marks[1]) + ")", re.DOTALL)
        page, found = pattern.subn(table.replace("\\", r"\\") + "\n\n", page)
        assert found == 1, f"{marks[0]} does not stand on the page once"
        page = re.sub(r"\n{3,}(?=<!-- end of)", "\n\n", page)
    return page


def _line(row: KnownAnnotation) -> str:
    cells = [f"`{row.name}`", row.text]
    if row.use is Use.REFUSED:
        kind = "headless Services" if row.kind == HEADLESS else f"Services of type {row.kind}"
        cells.append(f"at {kind}, if it has a value" if row.kind else "always")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(made(PAGE.read_text()))
