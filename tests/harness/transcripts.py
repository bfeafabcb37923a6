"""Shell blocks of pages for people: which are run by a test, what they must print, and which are not run.

A comment before an indented block says it; it is not shown to readers:

    <!-- run -->                    a test runs it, in one shell with the other blocks of its page
    <!-- not run: kind -->          no test runs it, and why

A fenced block of the language ``text`` after a block is what it prints, standard error included. ``...`` stands for anything: alone on a line, for
lines that are left out; within a line, for text that differs. Spaces count as one, because tables fit the width of the screen.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_BLOCK: Final = re.compile(
    r"(?:^<!-- (?P<mark>run|not run: [^>]+?) -->\n\n)?(?P<code>(?:^(?: {4}[^\n]*)?\n)*^ {4}[^\n]*\n)(?:\n```text\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One block. ``why_not`` is empty if a test runs it; None: the page does not say."""

    code: str
    shown: tuple[str, ...]
    why_not: str | None

    @property
    def first(self) -> str:
        """The first line, for messages."""
        return self.code.splitlines()[0]


def blocks_of(page: Path) -> list[Block]:
    """The indented blocks of a page, in order."""
    return [_block(found) for found in _BLOCK.finditer(_outside_lists(page.read_text()))]


def _outside_lists(text: str) -> str:
    """The text without fenced code of other languages, which may be indented too."""
    return re.sub(r"^```(?!text\n)\w+\n.*?^```\n", "", text, flags=re.MULTILINE | re.DOTALL)


def _block(found: re.Match[str]) -> Block:
    mark = found["mark"]
    why_not = None if mark is None else mark.partition(": ")[2]
    code = "".join(f"{line[4:]}\n" for line in found["code"].strip("\n").splitlines())
    return Block(code, tuple((found["shown"] or "").splitlines()), why_not)


def missing_from(output: str, shown: tuple[str, ...]) -> list[str]:
    """Lines that a page shows and the output lacks, in order; lines that nothing else stands between must follow one another."""
    lines = [squeezed(line) for line in output.splitlines()]
    at, anywhere = 0, True
    for line in shown:
        if line == "...":
            anywhere = True
            continue
        pattern = re.compile(".*".join(map(re.escape, squeezed(line).split("..."))))
        candidates = range(at, len(lines)) if anywhere else range(at, min(at + 1, len(lines)))
        found = next((number for number in candidates if pattern.fullmatch(lines[number])), None)
        if found is None:
            return [line]
        at, anywhere = found + 1, False
    return []


def squeezed(line: str) -> str:
    """With single spaces, and none at the ends."""
    return " ".join(line.split())
