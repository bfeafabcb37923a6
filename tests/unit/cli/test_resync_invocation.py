"""Who does a resync that a person asks for, told by the state of the lease."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.tables.control.lease import Lease, LeaseTable
from kubesync.aws.tables.control.resync_requests import RequestTable, ResyncRequest
from kubesync.domain.errors import ErrorCode
from kubesync.domain.report import SessionReport
from kubesync.operations.asking import ResyncError
from kubesync.operations.resync_invocation import InvocationParts, ResyncEvent, ResyncInvocation, has_errors

REPORT = {"dry_run": True, "forced": False, "clusters": [{"cluster": "prod", "changes": []}]}


class Scene:
    """A mailbox, a lease and a clock; whenever the clock is slept on, what was arranged for then happens."""

    def __init__(self) -> None:
        self.clock = _EventfulClock()
        self.store = MemoryStore(clock=self.clock)
        self.lease = LeaseTable(self.store, "0")
        self.requests = RequestTable(self.store, "0")
        self.ran: list[ResyncRequest] = []
        self.session_report: Callable[[], SessionReport] = lambda: SessionReport("own", epoch=9, resyncs=[dict(REPORT)])
        self.until = self.clock.monotonic() + 600

    def hold(self, holder: str = "master", seconds: float = 3600) -> Lease:
        now_ms = int(self.clock.epoch() * 1000)
        return self.lease.take(self.lease.read(), holder, self.lease.draw_epoch(), now_ms + int(seconds * 1000))

    def answer(self) -> None:
        for request in self.requests.pending(self.clock.epoch()):
            self.store.transact(self.requests.answer(request, REPORT, "token"), "token")

    def invoke(self, *, dry_run: bool = True, cluster: str = "") -> dict[str, object]:
        def run_session(request: ResyncRequest) -> SessionReport:
            self.ran.append(request)
            return self.session_report()

        parts = InvocationParts(
            self.lease, self.requests, run_session, self.clock, lambda: self.until - self.clock.monotonic()
        )
        return ResyncInvocation(parts, ResyncEvent(cluster=cluster, dry_run=dry_run)).run()

    @property
    def mailbox(self) -> list[ResyncRequest]:
        return self.requests.pending(self.clock.epoch())


class _EventfulClock(ManualClock):
    def __init__(self) -> None:
        super().__init__()
        self.after: dict[int, Callable[[], None]] = {}

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.after.get(len(self.slept), lambda: None)()


def test_without_a_master_a_session_of_its_own_does_it() -> None:
    scene = Scene()

    assert scene.invoke(cluster="prod") == {**REPORT, "by": "own"}
    assert [(each.cluster, each.dry_run, each.force) for each in scene.ran] == [("prod", True, False)]
    assert scene.mailbox == []


def test_running_master_is_asked_and_told_by_the_signal() -> None:
    scene = Scene()
    before = scene.hold().signal
    scene.clock.after[3] = scene.answer

    assert scene.invoke() == {**REPORT, "by": "master"}
    assert scene.ran == []
    assert scene.lease.read().signal == before + 1
    assert scene.clock.slept == [0.5, 0.5, 0.5]
    assert scene.mailbox == []


def test_hand_over_while_waiting_is_waited_for() -> None:
    scene = Scene()
    first = scene.hold("first")
    scene.clock.after[1] = lambda: scene.lease.release(first, clean=True)
    scene.clock.after[2] = lambda: (scene.hold("second"), None)[1]
    scene.clock.after[5] = scene.answer

    assert scene.invoke() == {**REPORT, "by": "second"}
    assert scene.ran == []


def test_master_that_goes_away_is_replaced() -> None:
    scene = Scene()
    first = scene.hold("first")
    scene.clock.after[1] = lambda: scene.lease.release(first, clean=True)

    assert scene.invoke() == {**REPORT, "by": "own"}
    assert sum(scene.clock.slept) == 2.5  # a poll, and two seconds in which nobody takes the lease
    assert scene.mailbox == []


def test_master_that_never_answers_is_given_up() -> None:
    scene = Scene()
    scene.hold("deaf")
    scene.until = scene.clock.monotonic() + 10

    with pytest.raises(ResyncError, match="session deaf did not answer in time; the request was withdrawn: try again"):
        scene.invoke()
    assert scene.mailbox == []


def test_lease_taken_by_another_first_means_asking_that_one() -> None:
    scene = Scene()

    def too_late() -> SessionReport:
        scene.hold("quicker")
        scene.clock.after[1] = scene.answer
        return SessionReport("own", code=int(ErrorCode.NOT_MASTER), ended="ERR_NOT_MASTER")

    scene.session_report = too_late

    assert scene.invoke() == {**REPORT, "by": "quicker"}
    assert len(scene.ran) == 1


def test_session_of_its_own_that_was_ended_leaves_an_error() -> None:
    scene = Scene()
    scene.session_report = lambda: SessionReport("own", epoch=3, code=1, ended="ERR_WORKER_EXITING", message="SIGINT")

    with pytest.raises(ResyncError, match="the session ended without a report: ERR_WORKER_EXITING SIGINT"):
        scene.invoke()


@pytest.mark.parametrize(
    ("clusters", "failed"),
    [([], False), ([{"cluster": "a", "drift": []}], False), ([{"cluster": "a"}, {"cluster": "b", "error": "x"}], True)],
)
def test_one_failed_cluster_fails_the_whole(clusters: list[dict[str, object]], failed: bool) -> None:
    assert has_errors({"clusters": clusters}) is failed
