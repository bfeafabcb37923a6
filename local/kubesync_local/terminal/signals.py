"""Signals that end a command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


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
