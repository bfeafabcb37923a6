"""Token buckets: how long to wait before the next request, so that Route 53 does not have to refuse it.

Route 53 gives an account 10 requests a second with a burst of 50, shared with everything else that the account does, and
a second bucket of changes a second (Developer Guide, "Throttling for Amazon Route 53 API requests"). Ours are below it.
"""

from __future__ import annotations

import threading

from kubesync.clock import Clock


class TokenBucket:
    """``burst`` tokens at most, ``rate`` new ones a second. Safe to use from several threads.

    Tokens are taken in the order of calls, in advance where there are too few: the bucket goes into debt, and the caller
    waits until its tokens exist. So whoever asks for more than ``burst`` gets it too, and delays those who come after.
    """

    def __init__(self, rate: float, burst: float, clock: Clock) -> None:
        """Start full.

        Args:
            rate: tokens a second, above 0.
            burst: most tokens that pile up, at least 1.
        """
        if rate <= 0 or burst < 1:
            raise ValueError("a token bucket needs a rate above 0 and a burst of at least 1")
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens = float(burst)
        self._filled_at = clock.monotonic()

    def take(self, tokens: float = 1) -> float:
        """Take tokens; returns the seconds to wait before using them, 0 where there are enough."""
        with self._lock:
            self._fill()
            self._tokens -= tokens
            return max(0.0, -self._tokens / self._rate)

    def try_take(self, tokens: float = 1) -> bool:
        """Take tokens where there are enough of them now, else take none."""
        with self._lock:
            self._fill()
            # Sums of fractions of a second come out a hair short of the whole token that they are.
            if self._tokens + 1e-9 < tokens:
                return False
            self._tokens -= tokens
            return True

    def _fill(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._filled_at) * self._rate)
        self._filled_at = now
