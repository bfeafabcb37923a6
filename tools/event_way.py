"""Writes the way of one MODIFIED event into ``docs/architecture.md``: the functions that it passes, from the window to the closed key.

A whole session runs in the simulation. A Service that is published already gets another address. Listed are functions of the rooms between
adapters and session, in the order in which they are entered, where one file calls another.
"""

from __future__ import annotations

import sys
import threading
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Final

from harness.deployment import Deployment

_TRIVIAL: Final = ("clock", "on_bookmark", "__init__", "closes_at", "throttled", "problem", "check")
ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "architecture.md"
BEGIN: Final = "<!-- way of an event -->"
END: Final = "<!-- end -->"
PACKAGE: Final = f"{ROOT}/layers/kubesync/kubesync/"
ROOMS: Final = ("cluster", "zone", "upstreams")


def way() -> list[tuple[str, str]]:
    """File and function of every entry into a file that is not left out, from outside that file."""
    passed: list[tuple[str, str]] = []
    deployment = Deployment()
    deployment.start()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(5.0)

    def entered(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(PACKAGE) or frame.f_code.co_name.startswith("<"):
            return
        file = name.removeprefix(PACKAGE)
        caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
        if file.partition("/")[0] in ROOMS and caller != name:
            passed.append((file, frame.f_code.co_name))

    deployment.want("web", "10.0.0.2")
    threading.setprofile_all_threads(entered)
    try:
        deployment.pass_time(2.0)
    finally:
        threading.setprofile_all_threads(None)
    assert deployment.sets() == {"web A": ("10.0.0.2",)}
    deployment.end()
    deployment.close()
    return passed


def rows() -> list[tuple[str, str]]:
    """The same by rooms: each time that a room is entered, and the functions that are passed there."""
    passed = [(file, function) for file, function in way() if function not in _TRIVIAL]
    last = max(number for number, (_, function) in enumerate(passed) if function == "landed")
    found: list[tuple[str, str]] = []
    for room, entries in groupby(passed[: last + 1], key=lambda entry: entry[0].partition("/")[0]):
        named = (f"{Path(file).stem}.{function}" for file, function in entries)
        found.append((room, ", ".join(dict.fromkeys(named))))
    return found


def table() -> str:
    """The rows as Markdown."""
    listed = [f"| {number} | `{room}/` | {functions} |" for number, (room, functions) in enumerate(rows(), 1)]
    return "\n".join(["| | room | functions |", "|---|---|---|", *listed])


def page_with(text: str, found: str) -> str:
    """The page's text with this table in its place."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{found}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    PAGE.write_text(page_with(PAGE.read_text(), table()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
