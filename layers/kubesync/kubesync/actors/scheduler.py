"""The port to threads, locks, time and chance.

Deployed code gets all of these from the scheduler that it is given. In production this is ``ThreadScheduler``. Tests use a
deterministic simulation instead: it decides which thread runs next, and its time is virtual.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol


class Lock(Protocol):
    """As ``threading.Lock``."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> bool: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Event(Protocol):
    """As ``threading.Event``."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Thread(Protocol):
    """Like a daemon ``threading.Thread``: it never keeps the process from ending."""

    def start(self) -> None: ...
    def join(self, timeout: float | None = None) -> None: ...
    def is_alive(self) -> bool: ...


class Wakeup(Protocol):
    """Wakes one thread. Unlike an event, a signal handler may set it while it interrupts this very thread's wait."""

    def set(self) -> None:
        """Wake the thread. If it is not waiting, its next wait returns at once."""

    def wait(self, seconds: float) -> None:
        """Wait until it is set, at most this long. One ``set`` ends one wait."""


class Clock(Protocol):
    """``monotonic`` decides when to try; ``epoch_seconds`` (seconds since 1970, UTC) only labels what is stored and shown."""

    def monotonic(self) -> float: ...
    def epoch_seconds(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


class Scheduler(Clock, Protocol):
    """Makes threads, and the objects with which they synchronise, and provides the time."""

    def thread(self, name: str, run: Callable[[], object]) -> Thread:
        """A daemon thread that is not started yet."""

    def lock(self) -> Lock:
        """A lock, free at first, not re-entrant."""

    def event(self) -> Event:
        """An event, not set at first."""

    def wakeup(self) -> Wakeup:
        """A wake-up, not set at first."""

    def random(self) -> float:
        """A number in [0, 1), for jitter."""

    def token_hex(self, size: int) -> str:
        """A random id of this many bytes, as hexadecimal digits."""
