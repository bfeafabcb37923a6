"""Time as a port, so that tests can pass their own."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """``monotonic`` decides when to try; ``epoch`` (seconds since 1970, UTC) only labels what is stored and shown."""

    def monotonic(self) -> float: ...
    def epoch(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...
