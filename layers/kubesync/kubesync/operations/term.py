"""The time of a session: until when it works, what ends it sooner, and what is told of it meanwhile."""

from __future__ import annotations

from collections import deque

from kubesync.actors.scheduler import Scheduler
from kubesync.cluster.ports import Progress
from kubesync.domain.errors import ErrorCode, NotMasterError
from kubesync.domain.report import ResyncEnded


class Term:
    """Any thread may call all methods, and signal handlers.

    ``deadline`` (monotonic): nothing is read after it. ``code`` and ``message``: why the session ends; None: it goes on.
    ``resynced``: full resyncs of all clusters that have ended. ``progress``: for a person who watches.
    """

    def __init__(self, scheduler: Scheduler, progress: Progress) -> None:
        self.progress = progress
        self.resynced: deque[ResyncEnded] = deque()
        self._wakeup = scheduler.wakeup()
        self.deadline = 0.0
        self.code: ErrorCode | None = None
        self.message = ""

    def stop(self, code: ErrorCode, message: str = "") -> None:
        """End soon. The first reason counts, but a lost lease replaces any other."""
        if self.code is None or (code is ErrorCode.NOT_MASTER and self.code is not code):
            self.code, self.message = code, message
        self._wakeup.set()

    def not_master(self, error: NotMasterError) -> None:
        """End: another master writes."""
        self.stop(ErrorCode.NOT_MASTER, str(error))

    @property
    def over(self) -> bool:
        """Whether the session has to end."""
        return self.code is not None

    def wake(self) -> None:
        """End a wait."""
        self._wakeup.set()

    def wait(self, seconds: float) -> None:
        """Wait until somebody wakes or ends the session."""
        self._wakeup.wait(seconds)
