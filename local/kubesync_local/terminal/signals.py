"""Signals that end a command."""

import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn


@contextmanager
def handled(handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals) -> Iterator[None]:
    """Within the block these signals call the handler. One that the caller ignores (``nohup``) stays ignored."""
    before = {number: signal.getsignal(number) for number in numbers}
    with suppress(ValueError):  # only the main thread can handle signals
        for number in [number for number, handling in before.items() if handling is not signal.SIG_IGN]:
            signal.signal(number, handler)
    try:
        yield
    finally:
        with suppress(ValueError):
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
def importing() -> Iterator[None]:
    """Within the block, which only imports modules, a signal ends the process: nothing is to be cleaned up yet.

    Python drops an exception that a handler raises while an import lock is taken away, and the command would run on. Python does
    not look for garbage meanwhile: modules stay.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with handled(_end, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            yield
    finally:
        if collects:
            gc.enable()


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    if number == signal.SIGINT:
        with suppress(OSError):
            os.write(2, b"kubesync: interrupted\n")
    os._exit(128 + number)
