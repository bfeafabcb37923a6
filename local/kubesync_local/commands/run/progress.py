"""Prints what happens in a session, one line per event, on standard error.

A repeated error of a listener is printed once a minute, with its count: a cluster that is down for an hour must not hide what
happens in the others. A line also says when the listener works again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.output import counted, remark

type _Words = Callable[[dict[str, Any]], str]


def _window(details: dict[str, Any]) -> str:
    listed = f", {details['listed']} listed" if details["listed"] else ""
    events = f"{counted(details['events'], 'event')}{listed}, {details['merged']} merged"
    return f"{details['cluster']}: {events}, {counted(details['changed'], 'key changed')}"


_WORDS: Final[dict[str, _Words]] = {
    "stand-by": lambda _: "another session is the master and ends soon: standing by",
    "master": lambda d: f"session {d['session']} is the master, epoch {d['epoch']} ({d['after']})",
    "window": _window,
    "batch": lambda d: f"zone {d['zone']}: a batch of {counted(d['changes'], 'change')} landed",
    "ending": lambda _: "reading has ended; applying what was read",
    "configuration": lambda d: f"{d['cluster']}: configuration {d['key']}",
    "removed": lambda d: f"{d['cluster']}: removed",
    "resync": lambda d: str(d["text"]),
}


_AGAIN_SECONDS: Final = 60.0


@dataclass(slots=True)
class _Shown:
    at: float
    since: int = 0


class ProgressLines:
    """Called from a session's threads.

    Args:
        now: seconds of a clock that never goes back.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._started = now()
        self._lock = threading.Lock()
        self._shown: dict[tuple[str, str], dict[str, _Shown]] = {}
        self._failing: set[tuple[str, str]] = set()

    def __call__(self, what: str, details: dict[str, object]) -> None:
        at = self._now()
        if what in ("error", "listening"):
            with self._lock:
                text = self._of_listener(what, details, at)
        else:
            words = _WORDS.get(what)
            text = (
                words(details) if words else f"{what} " + ", ".join(f"{key}={value}" for key, value in details.items())
            )
        if text:
            remark(f"{at - self._started:7.2f}  {visible(text)}")

    def _of_listener(self, what: str, details: dict[str, object], at: float) -> str:
        listener = (str(details["cluster"]), str(details["resource"]))
        name = "/".join(listener)
        if what == "listening":
            works_again = listener in self._failing
            self._failing.discard(listener)
            return f"{name}: works again" if works_again else ""
        text = f"{details['key']} {details['message']}"
        shown = self._shown.setdefault(listener, {})
        for old in [each for each, entry in shown.items() if at - entry.at >= 2 * _AGAIN_SECONDS]:
            del shown[old]
        entry = shown.get(text)
        if entry is not None and at - entry.at < _AGAIN_SECONDS:
            entry.since += 1
            return ""
        self._failing.add(listener)
        shown[text] = _Shown(at)
        count = f" ({entry.since + 1} times in the last {at - entry.at:.0f} s)" if entry is not None else ""
        return f"{name}: {text}{count}"
