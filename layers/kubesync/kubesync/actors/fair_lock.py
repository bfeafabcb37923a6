"""A re-entrant lock that threads get in the order in which they asked for it.

``threading.RLock`` lets the thread that has just released it take it again at once, however long others have waited: a
cluster that records one transaction after the other would keep a zone's writer waiting all the time.
"""

from __future__ import annotations

from collections import deque
from types import TracebackType

from kubesync.actors.scheduler import Lock, Scheduler


class _Turn:
    """A waiting thread. Its gate opens when the lock is handed to it."""

    def __init__(self, thread: int, gate: Lock) -> None:
        self.thread = thread
        self.gate = gate
        self.gate.acquire()


class FairLock:
    """Like ``threading.RLock``, but first come, first served."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._guard = scheduler.lock()
        self._waiting: deque[_Turn] = deque()
        self._owner = 0
        self._depth = 0

    def acquire(self, timeout: float = -1) -> bool:
        """Wait for the lock, at most ``timeout`` seconds (-1: for ever). False: another thread still holds it."""
        me = self._scheduler.thread_id()
        with self._guard:
            if not self._depth or self._owner == me:
                self._owner = me
                self._depth += 1
                return True
            turn = _Turn(me, self._scheduler.lock())
            self._waiting.append(turn)
        try:
            handed = turn.gate.acquire(timeout=timeout)
        except BaseException:
            if not self._withdraw(turn):
                self.release()
            raise
        return handed or not self._withdraw(turn)

    def _withdraw(self, turn: _Turn) -> bool:
        """Stop waiting. False: too late, the lock has just been handed over."""
        with self._guard:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return True
            return False

    def release(self) -> None:
        """Release the lock once. Raises RuntimeError if this thread does not hold it."""
        with self._guard:
            if not self._depth or self._owner != self._scheduler.thread_id():
                raise RuntimeError("released by a thread that does not hold it")
            self._depth -= 1
            if not self._depth and self._waiting:
                turn = self._waiting.popleft()
                self._owner, self._depth = turn.thread, 1
                turn.gate.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
