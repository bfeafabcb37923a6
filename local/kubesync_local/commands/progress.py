"""What happens in a session, one line per event on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from kubesync_local.output import counted, remark

type _Words = Callable[[dict[str, Any]], str]


def _window(details: dict[str, Any]) -> str:
    listed = f", {details['listed']} listed" if details["listed"] else ""
    events = f"{counted(details['events'], 'event')}{listed}, {details['merged']} merged"
    return f"{details['cluster']}: {events}, {counted(details['changed'], 'key changed')}"


_WORDS: Final[dict[str, _Words]] = {
    "stand-by": lambda _: "another session is the master and ends soon: standing by",
    "master": lambda d: f"session {d['session']} is the master, epoch {d['epoch']}, after: {d['after']}",
    "window": _window,
    "batch": lambda d: f"zone {d['zone']}: a batch of {counted(d['changes'], 'change')} landed",
    "ending": lambda _: "reading has ended: what was read is applied",
    "error": lambda d: f"{d['cluster']}/{d['resource']}: {d['key']} {d['message']}",
    "configuration": lambda d: f"{d['cluster']}: configuration {d['key']}",
    "removed": lambda d: f"{d['cluster']}: removed",
    "resync": lambda d: str(d["text"]),
}


class ProgressLines:
    """Called from a session's threads."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self, what: str, details: dict[str, object]) -> None:
        words = _WORDS.get(what)
        text = words(details) if words else f"{what} " + ", ".join(f"{key}={value}" for key, value in details.items())
        remark(f"{time.monotonic() - self._started:7.2f}  {' '.join(text.split())}")
