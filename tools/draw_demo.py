"""Draws ``docs/pictures/demo.svg``: what ``make demo`` shows on a terminal, taken from a real run just before its end.

The picture has the colours of a dark terminal, and a background of its own: it can be read on light and on dark pages. Times are left out,
so that two runs differ only in what the sessions really did: how they merged events into windows.
"""

from __future__ import annotations

import io
import re
import threading
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from kubesync_local.demo.board import Board
from kubesync_local.demo.play import USUAL, Play
from kubesync_local.demo.screen import picture
from kubesync_local.demo.stack import demo_stack
from kubesync_local.terminal.logs import set_up_logs

PICTURE: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "demo.svg"
COLUMNS: Final = 112
_POLL_SECONDS: Final = 0.05
_TITLE: Final = "make demo"
_REMOTE_FONT: Final = re.compile(r"\s*@font-face \{\{.*?\}\}", re.DOTALL)


def form() -> str:
    """Rich's frame without its fonts: a page must not load anything from elsewhere."""
    return _REMOTE_FONT.sub("", CONSOLE_SVG_FORMAT).replace(
        "Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace"
    )


def svg_of(board: Board) -> str:
    """The board as a picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(picture(board, timed=False))
    drawn = console.export_svg(title=_TITLE, code_format=form(), unique_id="demo")
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines())


def ready(board: Board) -> bool:
    """Whether the story is told and the second session, which took over, still works."""
    return (
        board.step == len(board.titles)
        and board.hand_over_seconds is not None
        and board.sessions[-1].state == "is master"
    )


def drawn() -> str:
    """Play the demo; the last picture before the second session ends.

    Raises:
        RuntimeError: the run did not come to its end.
    """
    found = ""
    with demo_stack() as stack:
        play = Play(stack, USUAL)
        playing = threading.Thread(target=play.run, name="demo", daemon=True)
        playing.start()
        while playing.is_alive():
            playing.join(_POLL_SECONDS)
            if ready(play.board):
                found = svg_of(play.board)
    if not found:
        raise RuntimeError("the demo ended before its second session had taken over: run `kubesync demo`")
    return found


if __name__ == "__main__":
    set_up_logs()
    PICTURE.write_text(drawn())
