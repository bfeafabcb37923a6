"""What of a session goes into the trace of its invocation, and that nothing about traces can hurt a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from kubesync.aws.route53.zones import BatchChange, ZoneClient
from kubesync.aws.xray import Step, XRaySteps, steps_of_this_invocation
from kubesync.domain.errors import BatchRefusedError, ZoneThrottledError
from kubesync.domain.report import SessionReport
from kubesync.operations.ports import MasterParts
from kubesync.session.trace import MOST_STEPS, SessionTrace
from kubesync.settings import Settings
from support.manual_clock import ManualClock
from support.memory_store import MemoryStore

T0 = 1_800_000_000.0


class Steps:
    """Implements ``StepWriter``."""

    def __init__(self) -> None:
        self.written: list[Step] = []

    def write(self, step: Step) -> None:
        self.written.append(step)

    @property
    def names(self) -> list[str]:
        return [step.name for step in self.written]


class BrokenSteps:
    calls = 0

    def write(self, step: Step) -> None:
        self.calls += 1
        raise RuntimeError("no daemon")


class Zones:
    """A zone client of which only batches are used; each takes so long, and may fail."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.seconds = 0.0
        self.failure: Exception | None = None

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        self.clock.advance(self.seconds)
        if self.failure is not None:
            raise self.failure


class Nothing:
    """A connector that nobody asks."""

    identity = event_poster = observe = None


class Traced:
    """A trace, and what it looks at."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.steps = Steps()
        self.trace = SessionTrace(self.steps, self.clock)
        self.zones = Zones(self.clock)
        parts = MasterParts(
            MemoryStore(clock=self.clock),
            cast("ZoneClient", self.zones),
            cast("Any", Nothing()),
            Settings(),
            self.clock,
        )
        self.parts = self.trace.around(parts)

    def window(self, seconds: float, *, changed: int = 1, listed: int = 0) -> None:
        details = {
            "cluster": "prod",
            "events": 3,
            "merged": 2,
            "listed": listed,
            "changed": changed,
            "seconds": seconds,
        }
        self.trace.progress("window", details)

    def batch(self, seconds: float, failure: Exception | None = None) -> None:
        self.zones.seconds, self.zones.failure = seconds, failure
        self.parts.zones.change("Z1", ())


@pytest.fixture
def traced() -> Traced:
    return Traced()


def a_report(**changes: Any) -> SessionReport:
    return replace(SessionReport("s1", epoch=7, code=5, ended="ERR_MAX_RUNTIME", clean=True), **changes)


def test_session_from_stand_by_to_hand_over(traced: Traced) -> None:
    beats: list[SessionReport] = []
    on_beat = traced.trace.beat(beats.append)
    traced.trace.progress("stand-by", {})
    traced.clock.advance(40.0)
    traced.trace.progress("master", {"epoch": 7})
    traced.clock.advance(0.5)
    on_beat(a_report(took_over="clean hand-over"))
    on_beat(a_report())
    traced.clock.advance(800.0)
    traced.trace.progress("ending", {"key": "ERR_MAX_RUNTIME"})
    traced.clock.advance(1.5)
    traced.trace.ended(a_report(hand_over_seconds=0.1234))

    assert traced.steps.written == [
        Step("stand-by", T0, T0 + 40.0),
        Step("take-over", T0 + 40.0, T0 + 40.5, {"after": "clean hand-over"}),
        Step("hand-over", T0 + 840.5, T0 + 842.0, {"clean": True}),
        Step(
            "session",
            T0,
            T0 + 842.0,
            {"session": "s1", "left_out": 0, "nobody_watched_seconds": 0.123},
            {"ended": "ERR_MAX_RUNTIME", "epoch": 7},
        ),
    ]
    assert len(beats) == 2


def test_only_windows_that_did_something_and_were_slower_than_all_before(traced: Traced) -> None:
    for seconds in (0.2, 0.1, 0.2, 0.3):
        traced.window(seconds)
    traced.window(5.0, changed=0)
    traced.window(6.0, changed=0, listed=9)

    assert [round(step.ended - step.began, 3) for step in traced.steps.written] == [0.2, 0.3, 6.0]
    assert traced.steps.written[0] == Step(
        "window prod", T0 - 0.2, T0, {"events": 3, "merged": 2, "listed": 0, "changed": 1}
    )


def test_batches_that_fail_are_shown_as_what_they_are(traced: Traced) -> None:
    traced.batch(1.0)
    failures: list[Exception] = [BatchRefusedError(("no",)), ZoneThrottledError("slow down")]
    for failure in failures:
        with pytest.raises(type(failure)):
            traced.batch(0.1, failure)

    assert [(step.name, step.failure, dict(step.facts)) for step in traced.steps.written] == [
        ("batch Z1", "", {"elements": 0}),
        ("batch Z1", "error", {"elements": 0, "failure": "BatchRefusedError"}),
        ("batch Z1", "throttle", {"elements": 0, "failure": "ZoneThrottledError"}),
    ]


def test_trace_stays_small_whatever_happens_and_still_tells_the_end(traced: Traced) -> None:
    traced.trace.progress("master", {})
    for number in range(1000):
        traced.window(0.001 * (number + 1))
    traced.trace.progress("ending", {})
    traced.trace.ended(a_report())

    assert len(traced.steps.written) == MOST_STEPS == 40
    assert traced.steps.names[-2:] == ["hand-over", "session"]
    assert traced.steps.written[-1].facts["left_out"] == 1000 - 38


def test_writer_that_fails_ends_the_trace_and_nothing_else() -> None:
    made = Traced()
    broken = BrokenSteps()
    trace = SessionTrace(broken, made.clock)
    parts = trace.around(replace(made.parts, zones=cast("ZoneClient", made.zones)))
    parts.zones.change("Z1", ())
    parts.zones.change("Z1", ())
    trace.ended(a_report())

    assert broken.calls == 1


def test_invocation_that_is_not_traced_is_left_as_it_is() -> None:
    made = Traced()
    trace = SessionTrace(None, made.clock)

    def on_beat(_so_far: SessionReport) -> None: ...

    assert trace.around(made.parts) is made.parts
    assert trace.beat(on_beat) is on_beat
    trace.progress("window", {})
    trace.ended(a_report())


class Recorder:
    """The SDK's part; ``told`` is what a subsegment heard, in order."""

    def __init__(self, *, sampled: bool = True) -> None:
        self.sampled = sampled
        self.told: list[tuple[Any, ...]] = []
        self.start_time = 0.0

    def begin_subsegment(self, name: str) -> Any:
        self.told.append(("begin", name))
        return self if self.sampled else None

    def end_subsegment(self, end_time: float) -> None:
        self.told.append(("end", self.start_time, end_time))

    def put_annotation(self, key: str, value: object) -> None:
        self.told.append(("annotation", key, value))

    def put_metadata(self, key: str, value: object, namespace: str) -> None:
        if value == "broken":
            raise ValueError(key)
        self.told.append(("metadata", key, value, namespace))

    def add_error_flag(self) -> None:
        self.told.append(("error",))

    def add_throttle_flag(self) -> None:
        self.told.append(("throttle",))

    def add_fault_flag(self) -> None:
        self.told.append(("fault",))


@pytest.mark.parametrize("failure", ["error", "throttle", "fault"])
def test_step_becomes_a_subsegment(failure: str) -> None:
    recorder = Recorder()
    XRaySteps(recorder, "kubesync-main").write(Step("batch Z1", 1.5, 2.5, {"elements": 3}, {"epoch": 7}, failure))

    assert recorder.told == [
        ("begin", "batch Z1"),
        ("annotation", "epoch", 7),
        ("metadata", "elements", 3, "kubesync-main"),
        (failure,),
        ("end", 1.5, 2.5),
    ]


def test_step_that_breaks_leaves_no_subsegment_open() -> None:
    recorder = Recorder()
    with pytest.raises(ValueError, match="why"):
        XRaySteps(recorder, "kubesync-main").write(Step("batch Z1", 1.5, 2.5, {"why": "broken"}))

    assert recorder.told == [("begin", "batch Z1"), ("end", 1.5, 2.5)]


def test_step_that_the_sdk_does_not_take_is_left_out() -> None:
    recorder = Recorder(sampled=False)
    XRaySteps(recorder, "kubesync-main").write(Step("batch Z1", 1.5, 2.5))

    assert recorder.told == [("begin", "batch Z1")]


@pytest.mark.parametrize("header", ["", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0"])
def test_nothing_is_opened_for_a_trace_that_is_not_kept(header: str) -> None:
    assert steps_of_this_invocation("kubesync-main", {"_X_AMZN_TRACE_ID": header}) is None
