"""Token buckets: how long to wait before the next request, so that Route 53 does not refuse it.

Route 53 allows an account 10 requests a second with a burst of 50, shared with everything else in the account, and has
a second bucket for changes (Developer Guide, "Throttling for Amazon Route 53 API requests"). Our limits are lower.
"""

import threading
from dataclasses import dataclass

from kubesync.actors.scheduler import Clock


class TokenBucket:
    """Holds at most ``burst`` tokens and gains ``rate`` a second. Thread-safe.

    Tokens are taken in the order of calls. If there are too few, the bucket goes into debt and the caller waits until its
    tokens exist. So a request for more than ``burst`` tokens succeeds too, and delays later ones.
    """

    def __init__(self, rate: float, burst: float, clock: Clock) -> None:
        """Start full. ``rate``: tokens a second, above 0. ``burst``: the most tokens that accumulate, at least 1."""
        if rate <= 0 or burst < 1:
            raise ValueError("a token bucket needs a rate above 0 and a burst of at least 1")
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens = float(burst)
        self._filled_at = clock.monotonic()

    def take(self, tokens: float = 1) -> float:
        """Take tokens. Returns the seconds to wait before using them; 0 if there are enough."""
        with self._lock:
            now = self._clock.monotonic()
            gained = max(0.0, now - self._filled_at) * self._rate
            self._tokens, self._filled_at = min(self._burst, self._tokens + gained) - tokens, now
            return max(0.0, -self._tokens / self._rate)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Our share of one account's limits: of requests, and of changes besides."""

    requests: TokenBucket
    changes: TokenBucket
