"""What has happened so far in the demo. Written by the play and the sessions' threads, read by the screen."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kubesync_local.terminal.escaping import visible

_REMEMBERED: Final = 400


@dataclass(slots=True)
class SessionView:
    """One session: ``state`` is what it does now, ``until`` the monotonic time of its end while it is master."""

    name: str
    runtime_seconds: float
    state: str = "not started"
    epoch: int = 0
    until: float = 0.0
    windows: int = 0
    events: int = 0


@dataclass(slots=True)
class Board:
    """Counts since the start. ``news`` are lines for people, newest last; ``listener`` gets each of them."""

    titles: list[str]
    started: float = field(default_factory=time.monotonic)
    step: int = -1
    sessions: list[SessionView] = field(default_factory=list)
    batches: int = 0
    changes: int = 0
    record_sets: int = 0
    upstreams: int = 0
    nodes: int = 0
    hand_over_seconds: float | None = None
    finished: bool = False
    news: deque[tuple[float, str, str]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    listener: Callable[[float, str, str], None] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def say(self, kind: str, text: str) -> None:
        """Add a line. ``kind``: step, session, seen, dns or error."""
        with self._lock:
            line = (self.elapsed, kind, visible(text))
            self.news.append(line)
            if self.listener is not None:
                self.listener(*line)

    def lines(self, count: int) -> list[tuple[float, str, str]]:
        """The newest lines."""
        with self._lock:
            return list(self.news)[-count:]
