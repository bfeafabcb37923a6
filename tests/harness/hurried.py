"""A stack whose sessions wait for a tenth of the time: for backoffs of seconds, which no test needs to sit through."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from harness.fakes.shifted_clock import ShiftedClock
from harness.stack import Stack, a_stack
from kubesync.actors.scheduler import Event, Wakeup
from kubesync.actors.threads import QueueWakeup

TIMES: Final = 10.0
# A busy machine is ten times as slow by this clock: no limit on how long something may last is to come near.
_UNLIMITED: Final[dict[str, Any]] = {
    "max_runtime_seconds": 80_000.0,
    "drain_margin_seconds": 8_000.0,
    "lease_seconds": 80_000.0,
    "lease_write_seconds": 80_000.0,
    "bookmark_interval_seconds": 80_000.0,
    "watch_timeout_seconds": 80_000,
    "read_timeout_seconds": 80_000.0,
}


@contextmanager
def a_hurried_stack(**options: Any) -> Iterator[Stack]:
    """A stack by such a clock. ``options``: see ``a_stack``. Hold what sessions do against ``stack.clock``."""
    with a_stack(**options) as stack:
        stack.usual = _UNLIMITED
        stack.clock = HurriedClock()
        yield stack


class HurriedClock(ShiftedClock):
    """Runs ten times as fast as the machine's own, and ends what waits by it ten times as early."""

    def __init__(self) -> None:
        super().__init__()
        self._began, self._began_epoch = super().monotonic(), super().running_epoch()

    def monotonic(self) -> float:
        return self._began + TIMES * (super().monotonic() - self._began)

    def running_epoch(self) -> float:
        return self._began_epoch + self.monotonic() - self._began

    def advance(self, seconds: float) -> None:
        super().advance(seconds / TIMES)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds / TIMES)

    def event(self) -> Event:
        return _HurriedEvent()

    def wakeup(self) -> Wakeup:
        return _HurriedWakeup()


def _hurried(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / TIMES


class _HurriedEvent(threading.Event):
    def wait(self, timeout: float | None = None) -> bool:
        return super().wait(_hurried(timeout))


class _HurriedWakeup(QueueWakeup):
    def wait(self, seconds: float) -> None:
        super().wait(seconds / TIMES)
