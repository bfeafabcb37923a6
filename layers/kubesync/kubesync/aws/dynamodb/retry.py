"""Retries while DynamoDB throttles, for reads without which a session cannot begin, so that throttling does not end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesync.actors.scheduler import Scheduler
from kubesync.domain.errors import StoreBusyError

_BACKOFF_INITIAL_SECONDS: Final = 0.2
_BACKOFF_CAP_SECONDS: Final = 5.0


def retry_while_throttled[T](
    call: Callable[[], T], check: Callable[[], None], scheduler: Scheduler, deadline_monotonic: float
) -> T:
    """Call until there is an answer, with growing pauses and jitter.

    Args:
        call: can be repeated without harm.
        check: raises if going on makes no sense (NotMasterError).

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
