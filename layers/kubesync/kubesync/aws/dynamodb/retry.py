"""Retries while DynamoDB throttles, for reads without which a session cannot begin, so that throttling does not end it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from kubesync.actors.backoff import Backoff
from kubesync.actors.scheduler import Scheduler
from kubesync.domain.errors import StoreBusyError

_BACKOFF: Final = Backoff(initial=0.2, cap=5.0, least=0.5, most=1.5)


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
    for failures in count(1):
        check()
        try:
            return call()
        except StoreBusyError:
            if scheduler.monotonic() + _BACKOFF.without_jitter(failures) >= deadline_monotonic:
                raise
        scheduler.sleep(_BACKOFF.delay(failures, scheduler.random()))
    raise AssertionError
