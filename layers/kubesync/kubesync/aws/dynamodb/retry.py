"""Reads that a session cannot begin without: repeated while DynamoDB throttles, so that a storm does not end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesync.actors.scheduler import Scheduler
from kubesync.domain.errors import StoreBusyError

_BACKOFF_INITIAL_SECONDS: Final = 0.2
_BACKOFF_CAP_SECONDS: Final = 5.0


def patiently[T](
    call: Callable[[], T], check: Callable[[], None], scheduler: Scheduler, deadline_monotonic: float
) -> T:
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
            if scheduler.monotonic() + delay >= deadline_monotonic:
                raise
        scheduler.sleep(delay * (0.5 + scheduler.random()))
        delay = min(delay * 2, _BACKOFF_CAP_SECONDS)
