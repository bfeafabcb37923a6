"""When each of several things is tried again after it failed. One that fails delays no other."""

import math
from collections.abc import Callable
from typing import Final

from kubesync.actors.backoff import Backoff

_BACKOFF: Final = Backoff(initial=1.0, cap=30.0)


class Retries:
    """What failed, and since when it rests: after the first failure not at all, then 2 to 30 s.

    Args:
        now: monotonic seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._failures: dict[str, int] = {}
        self._due_at: dict[str, float] = {}
        self._problems: dict[str, str] = {}

    @property
    def problem(self) -> str:
        """What does not work, of the first that has something to say; empty: nothing."""
        return next(filter(None, self._problems.values()), "")

    def due(self, what: str) -> bool:
        """Whether it may be tried now."""
        return self._now() >= self._due_at.get(what, -math.inf)

    def failed(self, what: str, problem: str = "") -> None:
        """It was tried and did not work."""
        failures = self._failures[what] = self._failures.get(what, 0) + 1
        self._due_at[what] = self._now() + (_BACKOFF.delay(failures) if failures > 1 else 0.0)
        self._problems[what] = problem

    def worked(self, what: str) -> None:
        """It was tried and worked, or is no longer needed."""
        for each in (self._failures, self._due_at, self._problems):
            each.pop(what, None)
