"""Prints what happens in a session, one line per event and per change, on standard error.

A repeated error of a listener is printed once a minute, with its count: a cluster that is down for an hour must not hide what
happens in the others. A line also says when the listener works again.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubesync_local.sessions.change_lines import MARKS, lines_of
from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.output import counted, remark
from kubesync_local.terminal.remarks import PATIENCE_SECONDS

type _Words = Callable[[dict[str, Any]], str]


def _window(details: dict[str, Any]) -> str:
    listed = f", {details['listed']} listed" if details["listed"] else ""
    return f"{details['cluster']}: {counted(details['events'], 'event')}{listed}, {counted(details['changed'], 'object')} changed"


_WORDS: Final[dict[str, _Words]] = {
    "stand-by": lambda _: "another session is the master and ends soon: standing by",
    "master": lambda d: f"session {d['session']} is the master ({d['after']})",
    "window": _window,
    "batch": lambda d: f"zone {d['zone']}: Route 53 accepted {counted(d['changes'], 'change')}",
    "ending": lambda _: "reading has ended; applying what was read",
    "configuration": lambda d: f"{d['cluster']}: configuration {d['key']}",
    "removed": lambda d: f"{d['cluster']}: removed",
    "resync": lambda d: str(d["text"]),
}


_AGAIN_SECONDS: Final = 60.0
_PAGES_SECONDS: Final = 5.0
_PRINT_SECONDS: Final = 0.1
_LAST_LINES_SECONDS: Final = 2.0
_KEPT: Final = 20_000
# Its own thread waits for a reader that rests, such as a pager.
_READ_SECONDS: Final = 3_600.0

type Line = tuple[str, str]
"""What is said, and its style on a terminal."""


@dataclass(slots=True)
class _Shown:
    at: float
    since: int = 0


class ProgressLines:
    """Called from a session's threads.

    Args:
        now: seconds of a clock that never goes back.
        compares: the session only compares, and applies nothing.
        verbose: also the epoch of the session.
    """

    def __init__(
        self, now: Callable[[], float] = time.monotonic, *, compares: bool = False, verbose: bool = False
    ) -> None:
        self._now = now
        self._compares = compares
        self._verbose = verbose
        self._started = now()
        self._lock = threading.Lock()
        self._shown: dict[tuple[str, str], dict[str, _Shown]] = {}
        self.failing: set[tuple[str, str]] = set()
        self._pages: dict[tuple[str, str], float] = {}
        self._kept: deque[tuple[float, Line]] = deque()
        self._left_out = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __call__(self, what: str, details: dict[str, object]) -> None:
        at = self._now()
        with self._lock:
            for line in self.lines(what, details, at):
                self._keep(at - self._started, line)
        if not self._thread.is_alive():
            self._print()

    def _keep(self, seconds: float, line: Line) -> None:
        if len(self._kept) < _KEPT:
            self._kept.append((seconds, line))
        else:
            self._left_out += 1

    def begin(self) -> None:
        """Print in a thread from now on: a reader that does not read must not hold up the session."""
        self._thread.start()

    def end(self) -> None:
        """Print what is left, if somebody reads it."""
        self._ended.set()
        self._thread.join(_LAST_LINES_SECONDS)

    def _run(self) -> None:
        while not self._ended.wait(_PRINT_SECONDS):
            self._print()
        self._print()

    def _print(self) -> None:
        with self._lock:
            lines = [self._kept.popleft() for _ in range(len(self._kept))]
            left_out, self._left_out = self._left_out, 0
        self.show(lines)
        if left_out:
            self.show(
                [(self._now() - self._started, (f"{left_out} lines were left out: nobody read them in time", ""))]
            )

    def show(self, lines: Sequence[tuple[float, Line]]) -> None:
        """Print lines, each with the seconds since the start."""
        patience = _READ_SECONDS if threading.current_thread() is self._thread else PATIENCE_SECONDS
        for seconds, (text, _) in lines:
            remark(f"{seconds:7.2f}  {visible(text)}", patience)

    def lines(self, what: str, details: dict[str, Any], at: float) -> Iterator[Line]:
        """What to say of one event."""
        if what in ("error", "listening"):
            text = self._of_listener(what, details, at)
            if text:
                yield text, MARKS["!"] if what == "error" else ""
        elif what == "changes":
            yield from ((text, MARKS[text[0]]) for text in lines_of(details["entries"]))
        elif what == "ending" and self._compares:
            yield "reading has ended; comparing", "bold"
        elif what == "master" and self._verbose:
            yield f"{_WORDS[what](details)}, epoch {details['epoch']}", "bold"
        elif what == "waiting":
            return  # a line says already who got the request; only a footer goes on saying it
        elif what == "list":
            yield from self._of_list(details, at)
        else:
            words = _WORDS.get(what)
            text = words(details) if words else f"{what} {', '.join(f'{key}={each}' for key, each in details.items())}"
            yield text, "dim" if what in ("window", "batch") else "bold"

    def _of_list(self, details: dict[str, Any], at: float) -> Iterator[Line]:
        """How far a long list is, every 5 seconds."""
        listener = details["cluster"], details["resource"]
        if details["left"] == 0:
            self._pages.pop(listener, None)
        elif at - self._pages.setdefault(listener, at) >= _PAGES_SECONDS:
            self._pages[listener] = at
            yield f"{'/'.join(listener)}: {how_far(details)}", ""

    def _of_listener(self, what: str, details: dict[str, object], at: float) -> str:
        listener = (str(details["cluster"]), str(details["resource"]))
        name = "/".join(listener)
        if what == "listening":
            works_again = listener in self.failing
            self.failing.discard(listener)
            return f"{name}: works again" if works_again else ""
        text = f"{details['key']} {details['message']}"
        shown = self._shown.setdefault(listener, {})
        for old in [each for each, entry in shown.items() if at - entry.at >= 2 * _AGAIN_SECONDS]:
            del shown[old]
        entry = shown.get(text)
        if entry is not None and at - entry.at < _AGAIN_SECONDS:
            entry.since += 1
            return ""
        self.failing.add(listener)
        shown[text] = _Shown(at)
        count = f" ({entry.since + 1} times in the last {at - entry.at:.0f} s)" if entry is not None else ""
        return f"{name}: {text}{count}"


def how_far(details: dict[str, Any]) -> str:
    """How much of a list is read."""
    items, left = details["items"], details["left"]
    return f"{items} objects read" if left is None else f"{items} of {items + left} objects read"
