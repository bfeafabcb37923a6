"""Values that AWS or a file gives, and that are kept for some time: secrets, tokens, credentials of roles."""

import threading
from collections.abc import Callable


class Kept[T]:
    """A value that is made again when it is due, or when a server has refused it (``fresh``). Threads may share one.

    Args:
        make: gets ``fresh`` and the time. Returns the value, when it is due, and how long it works at most, both by ``clock``.
        survived: if this error prevents a new value, the known one stays in use as long as it works, and ``make`` is called again after
            ``retry_seconds``.
    """

    def __init__(
        self,
        make: Callable[[bool, float], tuple[T, float, float]],
        clock: Callable[[], float],
        survived: type[Exception] | tuple[()] = (),
        retry_seconds: float = 0.0,
    ) -> None:
        self._make = make
        self._clock = clock
        self._survived = survived
        self._retry_seconds = retry_seconds
        self._lock = threading.Lock()
        self._known: tuple[T, float, float] | None = None

    def value(self, *, fresh: bool = False) -> T:
        """The value. Raises what ``make`` raises."""
        with self._lock:
            now = self._clock()
            if self._known is None or fresh or now >= self._known[1]:
                try:
                    self._known = self._make(fresh, now)
                except self._survived:
                    if self._known is None or fresh or now >= self._known[2]:
                        raise
                    self._known = self._known[0], now + self._retry_seconds, self._known[2]
            return self._known[0]
