"""What a session shows in the trace of its invocation: how it came to be master, lists, windows, batches, how it ended.

step                   from                          to                              traced
----                   ----                          --                              ------
stand-by               waiting began                 the lease is ours               always
take-over              the lease is ours             fences, state and zones ready   always
list CLUSTER/RESOURCE  the first page was asked for  the list is complete            slower than all before it
window CLUSTER         recording began               it is durable                   slower than all before it
batch ZONE             it was sent                   it was answered                 slower than all before it; failed
hand-over              reading ended                 the lease is released           always
session                it was started                its end                         always; with what can be searched for

A trace that lasts for minutes takes little: 100 KB where its segments come one by one
(https://repost.aws/knowledge-center/x-ray-trace-quota-error), and 14 KB were measured for one of more than six minutes. So only
what says something new is traced, and no more than ``MOST_STEPS``. Every one of them is counted in the metrics.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Self

from aws_lambda_powertools import Logger

from kubesync.aws.xray import Step, StepWriter, Value, steps_of_this_invocation
from kubesync.clock import Clock, SystemClock
from kubesync.domain.errors import (
    BatchRefusedError,
    ErrorCode,
    ZoneOutcomeUnknownError,
    ZoneThrottledError,
    ZoneUnavailableError,
)
from kubesync.domain.report import SessionReport
from kubesync.operations.ports import MasterParts
from kubesync.session.traced_ports import TracedConnector, TracedZones

logger = Logger(service="kubesync", child=True)

MOST_STEPS: Final = 40
"""About 14 KB, at 350 bytes each."""
_FOR_THE_END: Final = 2

_FAILURES: Final[Mapping[type[Exception], str]] = {
    BatchRefusedError: "error",
    ZoneThrottledError: "throttle",
    ZoneOutcomeUnknownError: "fault",
    ZoneUnavailableError: "fault",
}


class SessionTrace:
    """One session's. Whatever goes wrong with the trace ends the trace, and nothing else. Methods may be called from any thread.

    Args:
        writer: None: this invocation is not traced; then nothing here does anything.
    """

    def __init__(self, writer: StepWriter | None, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._lock = threading.Lock()
        self._left = MOST_STEPS - _FOR_THE_END
        self._left_out = 0
        self._slowest: dict[str, float] = {}
        self._began = clock.epoch()
        self._standing_by: float | None = None
        self._master: float | None = None
        self._ending: float | None = None

    @classmethod
    def of_this_invocation(cls, deployment: str) -> Self:
        """The trace that Lambda keeps, if it does."""
        try:
            writer = steps_of_this_invocation(f"kubesync-{deployment}")
        except Exception as error:  # noqa: BLE001 - a session without a trace is better than none
            logger.warning("no trace", error=f"{type(error).__name__}: {error}")
            writer = None
        return cls(writer, SystemClock())

    # --- where it looks from ---

    def around(self, parts: MasterParts) -> MasterParts:
        """The outside world of a session, with an eye on lists and batches."""
        if self._writer is None:
            return parts
        return replace(parts, connector=TracedConnector(parts.connector, self), zones=TracedZones(parts.zones, self))

    def progress(self, what: str, details: Mapping[str, object]) -> None:
        """Implements ``session.ports.Progress``."""
        if self._writer is None:
            return
        now = self._clock.epoch()
        if what == "stand-by":
            self._standing_by = now
        elif what == "master":
            self._master = now
            if self._standing_by is not None:
                self._always("stand-by", self._standing_by, now)
        elif what == "window" and (details["changed"] or details["listed"]):
            facts = {name: int(str(details[name])) for name in ("events", "merged", "listed", "changed")}
            self.took("window", str(details["cluster"]), float(str(details["seconds"])), facts)
        elif what == "ending":
            self._ending = now

    def beat(self, on_beat: Callable[[SessionReport], None]) -> Callable[[SessionReport], None]:
        """A session's ``on_beat``, which also tells the end of the take-over: it is first called then."""
        if self._writer is None:
            return on_beat

        def told(so_far: SessionReport) -> None:
            if self._master is not None:
                self._always("take-over", self._master, self._clock.epoch(), {"after": so_far.took_over})
                self._master = None
            on_beat(so_far)

        return told

    def ended(self, report: SessionReport) -> None:
        """The session is over."""
        if self._writer is None:
            return
        now = self._clock.epoch()
        if self._ending is not None:
            self._write(Step("hand-over", self._ending, now, {"clean": report.clean}))
        facts: dict[str, Value] = {"session": report.session, "left_out": self._left_out}
        if report.hand_over_seconds is not None:
            facts["nobody_watched_seconds"] = round(report.hand_over_seconds, 3)
        failed = report.code == int(ErrorCode.WORKER_EXITING)
        indexed: dict[str, Value] = {"ended": report.ended, "epoch": report.epoch}
        self._write(Step("session", self._began, now, facts, indexed, "error" if failed else ""))

    def took(
        self, kind: str, what: str, seconds: float, facts: Mapping[str, Value], failure: type[Exception] | None = None
    ) -> None:
        """Something ended just now. Traced where it failed, or was slower than all of its kind before it."""
        now = self._clock.epoch()
        with self._lock:
            worth = failure is not None or seconds > self._slowest.get(kind, -1.0)
            if worth and failure is None:
                self._slowest[kind] = seconds
            if not worth or self._left <= 0:
                self._left_out += 1
                return
            self._left -= 1
        told = "" if failure is None else _FAILURES.get(failure, "fault")
        why: dict[str, Value] = {} if failure is None else {"failure": failure.__name__}
        self._write(Step(f"{kind} {what}", now - seconds, now, {**facts, **why}, {}, told))

    def monotonic(self) -> float:
        """For those that measure."""
        return self._clock.monotonic()

    def _always(self, name: str, began: float, ended: float, facts: Mapping[str, Value] | None = None) -> None:
        with self._lock:
            self._left -= 1
        self._write(Step(name, began, ended, facts or {}))

    def _write(self, step: Step) -> None:
        writer = self._writer
        if writer is None:
            return
        try:
            writer.write(step)
        except Exception as error:  # noqa: BLE001 - likewise
            self._writer = None
            logger.warning("the trace ends here", step=step.name, error=f"{type(error).__name__}: {error}")
