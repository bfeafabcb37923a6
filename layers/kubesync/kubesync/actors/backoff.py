"""How long to wait before the next try: the delay doubles with each failure, up to a cap. Pure: the caller draws the jitter."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds: ``initial`` after the first failure in a row, then twice as long each time, at most ``cap``.

    Jitter keeps those that failed together from coming back together: a delay is drawn between ``least`` and ``most`` times
    the doubled one. Without it (both 1) they come back together, as where one request serves all of them.
    """

    initial: float
    cap: float
    least: float = 1.0
    most: float = 1.0

    def without_jitter(self, failures: int) -> float:
        """The delay without jitter, after so many failures in a row (from 1)."""
        return min(self.cap, self.initial * 2.0 ** min(failures - 1, 60))

    def delay(self, failures: int, fraction: float = 0.0) -> float:
        """The delay after so many failures in a row (from 1); ``fraction``: a random number in [0, 1)."""
        return self.without_jitter(failures) * (self.least + (self.most - self.least) * fraction)
