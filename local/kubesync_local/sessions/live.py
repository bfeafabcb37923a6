"""Progress of a session on a terminal: changes scroll by, and below them stands what goes on now.

    4.31  + web.shop.svc.prod.example.com A 10.96.0.7 ttl 30
    4.31  ! conflict api.example.com A in zone Z1: a foreign record set stands there (prod/shop/api)
    prod/services        ━━━━━━━━━━━━━━━━━━━╸        12,500 of 40,000
    master for 12 s · 340 events · 25 changes · 1 listener failing

In a pipe only the lines are written.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from kubesync_local.sessions.change_lines import lines_of
from kubesync_local.sessions.progress import Line, ProgressLines
from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.output import counted, new_console, print_folded

_LINES_AT_A_TIME: Final = 20
_UNDER_CHANGES: Final = 11


@contextmanager
def showing_progress(*, compares: bool = False, verbose: bool = False) -> Iterator[ProgressLines]:
    """Show what a session does until the block ends: a live view on a terminal, lines elsewhere.

    Args:
        compares: the session only compares, and applies nothing.
        verbose: also the epoch of the session.
    """
    console = new_console(stderr=True)
    live = console.is_terminal and not console.is_dumb_terminal
    shown = (
        LiveProgress(console, compares=compares, verbose=verbose)
        if live
        else ProgressLines(compares=compares, verbose=verbose)
    )
    try:
        shown.begin()
        yield shown
    finally:
        shown.end()


class LiveProgress(ProgressLines):
    """Called from a session's threads."""

    def __init__(self, console: Console, *, compares: bool = False, verbose: bool = False) -> None:
        super().__init__(compares=compares, verbose=verbose)
        self._console = console
        self._lists = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(complete_style="cyan", finished_style="cyan"),
            TextColumn("{task.fields[far]}", markup=False),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}
        self._master_since: float | None = None
        self._state = "waiting for the lease"
        self._events = self._listed = self._changes = 0
        self._last_status = ""
        self._live = Live(console=console, auto_refresh=False, transient=True, get_renderable=self._footer)

    def begin(self) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more
            self._live.start()
        super().begin()

    def end(self) -> None:
        super().end()
        with suppress(OSError, ValueError):
            self._live.stop()
            self._console.show_cursor(True)

    def show(self, lines: Sequence[tuple[float, Line]]) -> None:
        """Print lines above the footer; of very many at once the first ones."""
        with suppress(OSError, ValueError):
            for seconds, (text, style) in lines[:_LINES_AT_A_TIME]:
                line = Text.assemble((f"{seconds:7.2f}  ", "dim"), (visible(text), style))
                print_folded(self._console, line, _UNDER_CHANGES)
            if left := len(lines[_LINES_AT_A_TIME:]):
                self._console.print(Text(f"{'':9}... and {left} more", style="dim"))
            if lines or self._tasks or self._status() != self._last_status:
                self._live.refresh()

    def lines(self, what: str, details: dict[str, Any], at: float) -> Iterator[Line]:
        """Count what happens for the footer. How far lists are is shown there only."""
        match what:
            case "stand-by":
                self._state = "standing by"
            case "master":
                self._master_since = at
            case "ending":
                self._state, self._master_since = "ending", None
            case "waiting":  # its answer is awaited
                session = details["session"]
                self._state, self._master_since = (
                    f"waiting for {f'session {session}' if session else 'the lease'}",
                    None,
                )
            case "window":
                self._events += details["events"]
                self._listed += details["listed"]
            case "changes":
                self._changes += sum(not line.startswith("!") for line in lines_of(details["entries"]))
            case "list":
                self._show_list(details)
                return iter(())
        return super().lines(what, details, at)

    def _show_list(self, details: dict[str, Any]) -> None:
        name, items, left = visible(f"{details['cluster']}/{details['resource']}"), details["items"], details["left"]
        if left == 0:
            if name in self._tasks:
                self._lists.remove_task(self._tasks.pop(name))
            return
        if name not in self._tasks:
            self._tasks[name] = self._lists.add_task(name, total=None, far="")
        total = None if left is None else items + left
        far = f"{items:,} objects" if total is None else f"{items:,} of {total:,} objects"
        self._lists.update(self._tasks[name], completed=items, total=total, far=far)

    def _footer(self) -> RenderableType:
        self._last_status = self._status()
        line = Text(self._last_status, style="dim", no_wrap=True, overflow="ellipsis")
        return Group(self._lists, line) if self._tasks else line

    def _status(self) -> str:
        since = self._master_since
        state = self._state if since is None else f"master for {self._now() - since:.0f} s"
        parts = [state, counted(self._events, "event")]
        if self._listed:
            parts.append(f"{counted(self._listed, 'object')} listed")
        parts.append(counted(self._changes, "change"))
        if self.failing:
            parts.append(f"{counted(len(self.failing), 'listener')} failing")
        return " · ".join(parts)
