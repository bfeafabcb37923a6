"""Writes the way of one MODIFIED event into ``docs/architecture.md``: the functions that it passes, from the window to the closed key.

A whole session runs in the simulation. A Service that is published already gets another address. Listed are functions of the actors' rooms,
in the order in which they are entered, where one file calls another. A row ends where another actor goes on.
"""

import sys
import threading
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Final

from harness.deployment import Deployment
from page_parts import with_part

_TRIVIAL: Final = ("clock", "on_bookmark", "__init__", "closes_at", "problem", "nothing")
_NOTHING_TO_DO: Final = ("step", "due_at", "turns", "run", "removal", "failed", "_next_work", "listed")
"""What an actor asks itself at every step."""
ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "architecture.md"
BEGIN: Final = "<!-- way of an event -->"
END: Final = "<!-- end -->"
PACKAGE: Final = f"{ROOT}/layers/kubesync/kubesync/"
# What an actor publishes for reports is no part of the way.
PUBLISHES: Final = (f"{PACKAGE}actors/actor.py", "publish")
GUARD: Final = "/simulation/ownership.py"
ROOMS: Final = ("cluster", "zone", "upstreams")
BEGINS, CLOSES, ENDS = "on_events", "outcomes.py", "take_intents"


def way() -> list[tuple[str, str]]:
    """File and function of every entry into a file of an actor's own room, from outside that file."""
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
        callers = _callers(frame)
        if PUBLISHES in callers:
            return
        caller = next((each for each, _ in callers if not each.endswith(GUARD)), "")
        room = file.partition("/")[0]
        if room in ROOMS and room == room_of(deployment.world.machine.current.name) and caller != name:
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


def _callers(frame: FrameType) -> list[tuple[str, str]]:
    """File and function of every caller, the nearest first."""
    found: list[tuple[str, str]] = []
    while (back := frame.f_back) is not None:
        frame = back
        found.append((frame.f_code.co_filename, frame.f_code.co_name))
    return found


def room_of(thread: str) -> str:
    """The room of the actor that a thread runs, or sends to: ``prod/services``, ``prod/cluster``, ``zone Z1``, ``composer``."""
    name = thread.partition("/")[2]
    return "zone" if name.startswith("zone ") else "upstreams" if name == "composer" else "cluster"


def rows() -> list[tuple[str, str]]:
    """The same by rooms: each time that a room is entered, and the functions that are passed there until the key is closed."""
    passed = [(file, function) for file, function in way() if function not in (*_TRIVIAL, *_NOTHING_TO_DO)]
    first = next(number for number, (_, function) in enumerate(passed) if function == BEGINS)
    closing = next(number for number, (file, _) in enumerate(passed) if file.endswith(CLOSES))
    last = next(number for number, (_, function) in enumerate(passed) if number > closing and function == ENDS)
    found: list[tuple[str, str]] = []
    for room, entries in groupby(passed[first : last + 1], key=lambda entry: entry[0].partition("/")[0]):
        named = (f"{Path(file).stem}.{function}" for file, function in entries)
        found.append((room, ", ".join(dict.fromkeys(named))))
    return found


def table() -> str:
    """The rows as Markdown."""
    listed = [f"| {number} | `{room}/` | {functions} |" for number, (room, functions) in enumerate(rows(), 1)]
    return "\n".join(["| | room | functions |", "|---|---|---|", *listed])


def page_with(text: str, found: str) -> str:
    """The page's text with this table in its place."""
    return with_part(text, BEGIN, END, found)


def main() -> int:
    PAGE.write_text(page_with(PAGE.read_text(), table()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
