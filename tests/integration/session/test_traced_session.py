"""A session that is traced does what one does that is not, and its lists, windows and batches are seen."""

from __future__ import annotations

from kubesync.aws.xray import Step
from kubesync.clock import SystemClock
from kubesync.session.trace import SessionTrace
from support.stack import a_stack


class Steps:
    def __init__(self) -> None:
        self.written: list[Step] = []

    def write(self, step: Step) -> None:
        self.written.append(step)


def test_traced_session_lists_and_writes_as_any_other() -> None:
    steps = Steps()
    trace = SessionTrace(steps, SystemClock())
    with a_stack() as stack:
        stack.add_cluster()
        stack.api.cluster.expose("shop", "web", {"ports": [{"port": 80}]})
        application = stack.application(max_runtime_seconds=60)
        application.around = trace.around
        running = stack.start_application(application)
        running.session.on_beat = trace.beat(lambda _so_far: None)
        running.wait_for(lambda: "web.shop.svc.prod.example.com A" in stack.records())
        report = running.end()
        written = [step.name for step in steps.written]

    assert report.clean is True
    assert {"list prod/services", f"batch {stack.zone_id}"} <= set(written)
    for step in steps.written:
        assert 0 <= step.ended - step.began < 30
        assert step.failure == ""
