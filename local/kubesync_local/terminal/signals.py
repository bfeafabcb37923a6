"""Signals that end a command."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn


@contextmanager
def handled(handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals) -> Iterator[None]:
    """Within the block these signals call the handler. One that the caller ignores (``nohup``) stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    before = {number: signal.getsignal(number) for number in numbers}
    for number in [number for number, handling in before.items() if handling is not signal.SIG_IGN]:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handling in before.items():
            signal.signal(number, handling)


@contextmanager
def held_back() -> Iterator[None]:
    """Within the block, which is short, signals that end a command wait for its end."""
    came: list[int] = []
    with handled(lambda number, _frame: came.append(number), signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield
    for number in came:
        signal.raise_signal(number)


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Within the block, which only imports modules, a signal ends the process: nothing is to be cleaned up yet.

    Python drops an exception that a handler raises while an import lock is taken away, and the command would run on.
    """
    with handled(_end, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        yield


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    if number == signal.SIGINT:
        with suppress(OSError):
            os.write(2, b"kubesync: interrupted\n")
    os._exit(128 + number)
