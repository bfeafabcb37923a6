"""The scheduler of production: the threads, locks, clock and random numbers of this machine."""

import random
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from kubesync.actors.scheduler import Event, Lock, Thread, Wakeup


class QueueWakeup:
    """Implements ``Wakeup`` with a queue: only the ``put`` of a ``SimpleQueue`` may interrupt its own ``get``."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        self._queue.put(None)

    def wait(self, seconds: float) -> None:
        with suppress(Empty):
            self._queue.get(timeout=max(0.0, seconds))


class ThreadScheduler:
    """Implements ``Scheduler``."""

    def monotonic(self) -> float:
        return time.monotonic()

    def epoch_seconds(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def thread(self, name: str, run: Callable[[], object]) -> Thread:
        return threading.Thread(target=run, name=name, daemon=True)

    def lock(self) -> Lock:
        return threading.Lock()

    def event(self) -> Event:
        return threading.Event()

    def wakeup(self) -> Wakeup:
        return QueueWakeup()

    def random(self) -> float:
        return random.random()  # noqa: S311 - jitter

    def token_hex(self, size: int) -> str:
        return secrets.token_hex(size)
