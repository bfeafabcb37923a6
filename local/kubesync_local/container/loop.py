"""Sessions one after the other, until the process is told to end.

how a session ended                                         what follows
-------------------                                         ------------
its time was up                                             the next one, at once
the lease was lost                                          the next one after a pause; it stands by
DynamoDB, credentials or tables cannot be used              the next one after a pause, which doubles up to half a minute
settings are wrong                                          the loop ends: nobody but a person can help
"""

import math
from collections.abc import Callable
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from kubesync.actors.backoff import Backoff
from kubesync.actors.scheduler import Scheduler
from kubesync.domain.errors import ErrorCode, KubesyncError, UsageError
from kubesync.domain.report import SessionReport
from kubesync.log import logger
from kubesync.session.health import harmless
from kubesync.session.session import Session
from kubesync.telemetry.metrics import MetricsPublisher

PAUSES: Final = Backoff(initial=1, cap=30, least=0.5, most=1)
_TICK_SECONDS: Final = 0.2


class SessionLoop:
    """Call ``run`` in the main thread. A signal handler may call ``end``.

    Args:
        new_session: makes a session that stands by for as long as it takes.
        publisher: makes what writes the metrics of one session.
        scheduler: time, and random numbers.
    """

    def __init__(
        self, new_session: Callable[[], Session], publisher: Callable[[], MetricsPublisher], scheduler: Scheduler
    ) -> None:
        self._new_session = new_session
        self._publisher = publisher
        self._scheduler = scheduler
        self._session: Session | None = None
        self._ending = ""
        self._failures = 0
        self._moved_at = scheduler.monotonic()
        self.on_ended: Callable[[], None] = lambda: None
        self.failed_sessions = 0

    @property
    def seconds_without_a_step(self) -> float:
        """For how long neither a session nor the loop has done anything. A session steps each second, also while it stands by."""
        return self._scheduler.monotonic() - self._moved_at

    def end(self, reason: str) -> None:
        """Let the session end in order, and start no other."""
        self._ending = reason
        if self._session is not None:
            self._session.stop(ErrorCode.WORKER_EXITING, reason)

    def run(self) -> None:
        """Run until ``end``.

        Raises:
            UsageError: settings are wrong, or the tables belong to another deployment.
        """
        while not self._ending:
            why = ""
            try:
                report = self._run_one()
                if report is not None and report.code == ErrorCode.NOT_MASTER:
                    why = report.message or report.ended
            except UsageError:
                raise
            except (KubesyncError, BotoCoreError, ClientError) as error:
                self.failed_sessions += 1
                why = str(error)
            self._failures = self._failures + 1 if why else 0
            if why and not self._ending:
                pause = PAUSES.delay(self._failures, self._scheduler.random())
                logger.error("a session failed", error=why, next_in_seconds=round(pause, 1))
                self._pause(pause)

    def _run_one(self) -> SessionReport | None:
        self._moved_at = self._scheduler.monotonic()
        session, metrics = self._new_session(), self._publisher()
        session.on_beat, session.on_resync = metrics.beat, metrics.resync_ended
        self._session = session
        if self._ending:  # the signal came before the session could hear of it
            return None
        try:
            report = session.run(self._remaining_seconds)
        finally:
            self._session = None
            self.on_ended()
        with harmless("metrics of the session's end cannot be written"):
            metrics.ended(report)
        return report

    def _remaining_seconds(self) -> float:
        """A session asks it at each of its steps."""
        self._moved_at = self._scheduler.monotonic()
        return math.inf

    def _pause(self, seconds: float) -> None:
        until = self._scheduler.monotonic() + seconds
        while not self._ending and (left := until - self._scheduler.monotonic()) > 0:
            self._moved_at = self._scheduler.monotonic()
            self._scheduler.sleep(min(_TICK_SECONDS, left))
