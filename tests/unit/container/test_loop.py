"""Sessions in a loop: what follows on which end."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from botocore.exceptions import NoCredentialsError

from harness.fakes.manual_clock import ManualClock
from kubesync.domain.errors import ErrorCode, KubesyncError, UsageError
from kubesync.domain.report import SessionReport
from kubesync.session.session import Session
from kubesync.telemetry.metrics import MetricsPublisher
from kubesync_local.container.loop import SessionLoop

type _End = ErrorCode | Exception


class FakeSession:
    """Ends as it is told to; its time is asked once, as by a session's steps."""

    def __init__(self, end: _End, during: Callable[[FakeSession], None]) -> None:
        self._end = end
        self._during = during
        self.stopped: list[tuple[ErrorCode, str]] = []
        self.on_beat = self.on_resync = lambda _told: None

    def stop(self, code: ErrorCode, message: str) -> None:
        self.stopped.append((code, message))

    def run(self, remaining_seconds: Callable[[], float]) -> SessionReport:
        assert remaining_seconds() == float("inf")
        self._during(self)
        if isinstance(self._end, Exception):
            raise self._end
        code = self.stopped[0][0] if self.stopped else self._end
        return SessionReport("s", code=int(code), ended=code.key)


class Bench:
    def __init__(self, *ends: _End, during: Callable[[FakeSession], None] = lambda _session: None) -> None:
        self.clock = ManualClock()
        self.clock.random = lambda: 1.0  # type: ignore[method-assign]
        self.lines: list[dict[str, float]] = []
        self.sessions: list[FakeSession] = []
        self._ends = list(ends)
        self._during = during
        self.loop = SessionLoop(
            lambda: cast(Session, self._next()),
            lambda: MetricsPublisher("main", lambda values, _sets: self.lines.append(dict(values))),
            self.clock,
        )

    def _next(self) -> FakeSession:
        session = FakeSession(self._ends.pop(0), self._during)
        self.sessions.append(session)
        if not self._ends:
            self.loop.end("the test is over")
        return session


def test_sessions_follow_one_another_without_a_pause() -> None:
    bench = Bench(*[ErrorCode.MAX_RUNTIME] * 3, ErrorCode.MAX_RUNTIME)
    bench.loop.run()
    assert (len(bench.sessions), bench.clock.slept) == (4, [])
    assert bench.lines == [{"Sessions": 1}] * 3


def test_pauses_double_while_sessions_fail_and_begin_again_after_a_good_one() -> None:
    failed = KubesyncError("DynamoDB does not answer")
    bench = Bench(failed, NoCredentialsError(), failed, ErrorCode.MAX_RUNTIME, failed, *[failed] * 7, failed)
    bench.loop.run()
    pauses = bench.clock.slept
    # 1, 2 and 4 s, then again, up to 30 s: in small steps, so that a signal is heard.
    assert round(sum(pauses), 6) == (1 + 2 + 4) + (1 + 2 + 4 + 8 + 16 + 30 + 30 + 30)
    assert max(pauses) <= 0.2
    assert bench.loop.failed_sessions == 11


def test_lost_lease_is_followed_by_a_pause_too() -> None:
    bench = Bench(ErrorCode.NOT_MASTER, ErrorCode.NOT_MASTER, ErrorCode.MAX_RUNTIME)
    bench.loop.run()
    assert (round(sum(bench.clock.slept), 6), bench.loop.failed_sessions) == (3.0, 0)


def test_wrong_settings_end_the_loop() -> None:
    bench = Bench(UsageError("these tables belong to deployment 'other'"), ErrorCode.MAX_RUNTIME)
    with pytest.raises(UsageError):
        bench.loop.run()
    assert bench.clock.slept == []


def test_signal_ends_the_session_in_order_and_no_other_follows() -> None:
    bench = Bench(
        *[ErrorCode.MAX_RUNTIME] * 5,
        during=lambda session: bench.loop.end("SIGTERM") if len(bench.sessions) == 2 else None,
    )
    bench.loop.run()
    assert len(bench.sessions) == 2
    assert bench.sessions[1].stopped == [(ErrorCode.WORKER_EXITING, "SIGTERM")]


def test_signal_in_a_pause_ends_the_loop_at_once() -> None:
    bench = Bench(*[KubesyncError("no")] * 9)
    bench.clock.sleep = lambda seconds: bench.loop.end("SIGTERM")  # type: ignore[method-assign]
    bench.loop.run()
    assert len(bench.sessions) == 1


def test_signal_while_a_session_is_made_starts_none() -> None:
    bench = Bench(ErrorCode.MAX_RUNTIME)
    bench.loop.run()
    assert bench.lines == []


def test_loop_that_hangs_is_told_from_one_whose_session_stands_by() -> None:
    ages = list[float]()

    def stand_by(_session: FakeSession) -> None:
        bench.clock.advance(400)
        ages.append(bench.loop.seconds_without_a_step)

    bench = Bench(ErrorCode.MAX_RUNTIME, ErrorCode.MAX_RUNTIME, during=stand_by)
    bench.loop.run()
    assert ages == [400]
