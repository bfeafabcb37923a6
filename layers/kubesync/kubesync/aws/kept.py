"""Values that AWS or a file gives, and that are kept for some time: secrets, tokens, credentials of roles."""

import threading
from collections.abc import Callable
from typing import NamedTuple


class Made[T](NamedTuple):
    """A value that was made. It is made again at ``due_at``, and works until ``works_until`` at most. Both by the clock of ``Kept``."""

    value: T
    due_at: float
    works_until: float


class Kept[T]:
    """A value that is made again when it is due, or when a server has refused it (``fresh``). Threads may share one.

    what happens to the known value           ``make`` succeeds    ``make`` raises ``survived``
    -------------------------------           -----------------    ----------------------------
    it is due, and still works                the new value        the known value; made again after ``retry_seconds``
    it works no more, or there is none        the new value        the error is raised
    a server has refused it (``fresh``)       the new value        the error is raised

    Args:
        make: gets ``fresh`` and the time, by ``clock``.
        survived: errors that may go away by themselves. After one of these, a known value that still works stays in use.
    """

    def __init__(
        self,
        make: Callable[[bool, float], Made[T]],
        clock: Callable[[], float],
        survived: type[Exception] | tuple[()] = (),
        retry_seconds: float = 0.0,
    ) -> None:
        self._make = make
        self._clock = clock
        self._survived = survived
        self._retry_seconds = retry_seconds
        self._lock = threading.Lock()
        self._known: Made[T] | None = None

    def value(self, *, fresh: bool = False) -> T:
        """The value. ``fresh``: a server has refused the last one. Raises what ``make`` raises."""
        with self._lock:
            now = self._clock()
            if self._known is None or fresh or now >= self._known.due_at:
                try:
                    self._known = self._make(fresh, now)
                except self._survived:
                    if self._known is None or fresh or now >= self._known.works_until:
                        raise
                    self._known = self._known._replace(due_at=now + self._retry_seconds)
            return self._known.value
