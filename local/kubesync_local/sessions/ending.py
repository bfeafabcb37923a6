"""Signals: SIGINT, SIGTERM and SIGHUP end a session in order, however often they come."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kubesync.domain.errors import ErrorCode
from kubesync.session.session import Session
from kubesync_local.terminal.output import remark
from kubesync_local.terminal.signals import handled


@contextmanager
def ended_by_signals(session: Callable[[], Session | None]) -> Iterator[None]:
    """Within the block a signal ends the session; without a session it raises KeyboardInterrupt or SystemExit."""

    def stop(number: int, _frame: FrameType | None) -> None:
        running = session()
        if running is None:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            raise SystemExit(128 + number)
        name = signal.Signals(number).name
        running.stop(ErrorCode.WORKER_EXITING, name)
        remark(f"{name}: ending the session; what was read is applied, then the lease is released")

    with handled(stop, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield
