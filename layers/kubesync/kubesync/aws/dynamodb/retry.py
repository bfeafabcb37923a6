"""Reads that a session cannot begin without: repeated while DynamoDB throttles, so that a storm does not end it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from kubesync.clock import Clock
from kubesync.domain.errors import StoreBusyError

_BACKOFF_INITIAL_SECONDS: Final = 0.2
_BACKOFF_CAP_SECONDS: Final = 5.0


def patiently[T](call: Callable[[], T], check: Callable[[], None], clock: Clock, deadline_monotonic: float) -> T:
    """Call until it is answered, with growing pauses and jitter.

    Args:
        call: may be repeated without harm.
        check: raises where it makes no sense to go on (NotMasterError).

    Raises:
        StoreBusyError: still throttled at the deadline.
    """
    delay = _BACKOFF_INITIAL_SECONDS
    while True:
        check()
        try:
            return call()
        except StoreBusyError:
            if clock.monotonic() + delay >= deadline_monotonic:
                raise
        clock.sleep(delay * (0.5 + random.random()))  # noqa: S311 - jitter
        delay = min(delay * 2, _BACKOFF_CAP_SECONDS)
