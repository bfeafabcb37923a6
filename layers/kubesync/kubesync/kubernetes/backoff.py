"""How long to wait before trying again."""

from __future__ import annotations

from collections.abc import Callable

from kubesync.actors.backoff import Backoff
from kubesync.clock import Clock
from kubesync.kubernetes.ports import ReflectorPolicy


class ReflectorBackoff:
    """Exponential waits with jitter, as client-go's reflector has them.

    Jitter factor 1: a wait is drawn between once and twice the doubled one. Starts over when none was needed for
    ``backoff_reset`` seconds.

    Args:
        policy: initial, cap and reset, in seconds.
        clock: shows when a wait was last needed.
        jitter: a number in [0, 1) at each call, such as ``random.random``.
    """

    def __init__(self, policy: ReflectorPolicy, clock: Clock, jitter: Callable[[], float]) -> None:
        self._policy = policy
        self._clock = clock
        self._jitter = jitter
        self._backoff = Backoff(policy.backoff_initial, policy.backoff_cap, least=1.0, most=2.0)
        self._failures = 0
        self._quiet_since: float | None = None

    def next_delay(self, retry_after_seconds: float | None = None) -> float:
        """Seconds to wait now: at least what the server asked for, of which at most ``backoff_reset`` seconds count."""
        now = self._clock.monotonic()
        if self._quiet_since is not None and now - self._quiet_since >= self._policy.backoff_reset:
            self._failures = 0
        self._failures += 1
        delay = self._backoff.delay(self._failures, self._jitter())
        if retry_after_seconds is not None:
            delay = max(delay, min(retry_after_seconds, self._policy.backoff_reset))
        self._quiet_since = now + delay
        return delay
