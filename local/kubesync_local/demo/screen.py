"""Shows the board: a live picture on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kubesync_local.demo.board import Board, SessionView

_STEPS_SHOWN: Final = 9
_NEWS_SHOWN: Final = 10
_REFRESHES_PER_SECOND: Final = 8
_STYLES: Final = {"step": "bold cyan", "session": "bold magenta", "seen": "yellow", "error": "bold red"}
_SESSION_STYLES: Final = {"is master": "bold green", "stands by": "yellow", "failed": "bold red", "ended": "dim"}


@contextmanager
def showing(board: Board, console: Console) -> Iterator[None]:
    """Show the board until the block ends."""
    if console.is_terminal:
        try:
            with Live(
                get_renderable=lambda: picture(board), console=console, refresh_per_second=_REFRESHES_PER_SECOND
            ) as live:
                yield
                live.refresh()
        finally:  # also where a signal comes before the picture has begun
            console.show_cursor(True)
    else:
        board.listener = lambda at, kind, text: console.print(
            f"{at:6.2f}  {kind:<8} {text}", markup=False, highlight=False, soft_wrap=True
        )
        yield


def picture(board: Board) -> Group:
    """The board as it is now."""
    top = Table.grid(expand=True, padding=(0, 0))
    top.add_column(ratio=1)
    top.add_column(ratio=1)
    top.add_row(
        Panel(_steps(board), title="in the cluster", border_style="cyan", height=_STEPS_SHOWN + 3),
        Panel(
            Group(_sessions(board), Text(), _figures(board)),
            title="kubesync: two sessions",
            border_style="magenta",
            height=_STEPS_SHOWN + 3,
        ),
    )
    return Group(top, Panel(_news(board), title="what it writes", border_style="green", height=_NEWS_SHOWN + 2))


def _steps(board: Board) -> Group:
    total = len(board.titles)
    done = max(0, min(board.step, total))
    first = max(0, min(done - _STEPS_SHOWN // 2, total - _STEPS_SHOWN))
    lines = []
    for number in range(first, min(first + _STEPS_SHOWN, total)):
        mark, style = ("✓", "green") if number < board.step else ("▸", "bold") if number == board.step else ("·", "dim")
        lines.append(Text(f"{mark} {board.titles[number]}", style=style, no_wrap=True, overflow="ellipsis", end="\n"))
    return Group(*lines, ProgressBar(total=total, completed=done, complete_style="cyan"))


def _sessions(board: Board) -> Table:
    table = Table.grid(expand=True, padding=(0, 1))
    for _ in range(3):
        table.add_column(no_wrap=True)
    for view in list(board.sessions):
        table.add_row(
            view.name,
            Text(view.state, style=_SESSION_STYLES.get(view.state, "")),
            _left(view),
        )
    if len(board.sessions) < 2:
        table.add_row(Text("second", style="dim"), Text("not yet", style="dim"), "")
    gap = board.hand_over_seconds
    took = "–" if gap is None else f"{gap:.2f} s"
    table.add_row("hand-over", Text(took, style="bold"), Text("to first watch", style="dim"))
    return table


def _left(view: SessionView) -> str:
    if view.state != "is master" or view.runtime_seconds > 60:
        return ""
    return f"{max(0.0, view.until - time.monotonic()):.0f} s left"


def _figures(board: Board) -> Table:
    events = sum(view.events for view in board.sessions)
    table = Table.grid(expand=True, padding=(0, 1))
    for _ in range(2):
        table.add_column(justify="right", style="bold", no_wrap=True)
        table.add_column(no_wrap=True)
    table.add_row(str(events), "events", str(board.batches), "batches")
    table.add_row(str(board.changes), "changes", str(board.record_sets), "record sets")
    table.add_row(str(board.upstreams), "upstreams", str(board.nodes), "nodes")
    table.add_row(f"{board.elapsed:.0f} s", "so far", "", "")
    return table


def _news(board: Board) -> Group:
    return Group(*(_line(*line) for line in board.lines(_NEWS_SHOWN)))


def _line(at: float, kind: str, text: str) -> Text:
    style = _STYLES.get(kind) or ("green" if text.startswith("+") else "red")
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{at:5.1f}  ", style="dim")
    line.append(text, style=style)
    return line
