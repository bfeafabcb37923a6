"""Who does a resync that a person asks for, told by the state of the lease."""

from collections.abc import Callable

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.tables.control.lease import Lease, LeaseTable
from kubesync.aws.tables.control.resync_requests import ResyncRequest, ResyncTable
from kubesync.domain.errors import ErrorCode
from kubesync.domain.report import SessionReport
from kubesync.operations.ports import ResyncError
from kubesync.operations.resync_invocation import ResyncEvent, ResyncInvocation
from kubesync_local.commands.run.resync import has_errors

REPORT = {"dry_run": True, "forced": False, "clusters": [{"cluster": "prod", "changes": []}]}


class Scene:
    """A mailbox, a lease and a clock; whenever the clock is slept on, what was arranged for then happens."""

    def __init__(self) -> None:
        self.clock = _EventfulClock()
        self.store = MemoryStore(clock=self.clock)
        self.lease = LeaseTable(self.store, "0")
        self.requests = self.results = ResyncTable(self.store, "0", 90 * 86_400)
        self.awaited: list[str] = []
        self.said: list[str] = []
        self.ran: list[ResyncRequest] = []
        self.session_report: Callable[[], SessionReport] = lambda: SessionReport("own", epoch=9, resyncs=[dict(REPORT)])
        self.until = self.clock.monotonic() + 600

    def hold(self, holder: str = "master", seconds: float = 3600) -> Lease:
        now_ms = int(self.clock.epoch_seconds() * 1000)
        return self.lease.take(self.lease.read(), holder, self.lease.draw_epoch(), now_ms + int(seconds * 1000))

    def answer(self) -> None:
        for request in self.requests.clean_up_and_list(self.clock.epoch_seconds()):
            self.store.transact(self.requests.answer(request, REPORT, "token"), "token")

    def keep(self, cluster: str) -> None:
        """A master has done this cluster, and keeps that."""
        (request,) = self.mailbox
        part = {"revision": 1, "document": {"cluster": cluster}, "zones": [], "done": True}
        actions = [
            *self.results.put_progress(request, "s1", 2, 1, self.clock.epoch_seconds(), "t"),
            *self.results.put_part(request, cluster, part, "t"),
        ]
        self.store.transact(actions, f"keep {cluster} {self.clock.epoch_seconds()}")

    def invoke(self, *, dry_run: bool = True, cluster: str = "", by_person: bool = True) -> dict[str, object]:
        def run_session(request: ResyncRequest) -> SessionReport:
            self.ran.append(request)
            return self.session_report()

        invocation = ResyncInvocation(
            ResyncEvent(cluster=cluster, dry_run=dry_run),
            self.lease,
            self.requests,
            run_session,
            self.clock,
            lambda: self.until - self.clock.monotonic(),
            by_person=by_person,
            progress=self.hear,
        )
        return invocation.run()

    def hear(self, what: str, details: dict[str, object]) -> None:
        if what == "waiting":
            self.awaited.append(str(details["session"]))
        if what == "resync":
            self.said.append(str(details["text"]))

    @property
    def mailbox(self) -> list[ResyncRequest]:
        return self.requests.clean_up_and_list(self.clock.epoch_seconds())


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


@pytest.mark.parametrize(
    ("dry_run", "does"), [(True, "takes the lease, and only compares"), (False, "does the resync")]
)
def test_it_says_what_it_does_where_no_master_runs(*, dry_run: bool, does: str) -> None:
    scene = Scene()
    scene.invoke(dry_run=dry_run)
    assert scene.said == [f"no master is running: this process {does}"]


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
    assert scene.awaited == ["first", "", "second"]


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


# --- a normal resync goes on in the next session ---


def cut_off(scene: Scene, code: ErrorCode = ErrorCode.MAX_RUNTIME) -> Callable[[], SessionReport]:
    """A session of its own that did one cluster in 100 s and then ended."""

    def run() -> SessionReport:
        scene.clock.advance(100)
        scene.keep("a")
        return SessionReport("own", epoch=3, code=int(code), ended=code.key)

    return run


@pytest.mark.parametrize("by_person", [True, False])
def test_who_has_no_time_left_gets_the_report_so_far_and_the_resync_goes_on(*, by_person: bool) -> None:
    scene = Scene()
    scene.hold("slow")
    scene.clock.after[2] = lambda: scene.keep("b")
    scene.until = scene.clock.monotonic() + 10

    report = scene.invoke(dry_run=False, by_person=by_person)

    (left,) = scene.mailbox
    assert report == {
        "dry_run": False,
        "forced": False,
        "named_upstreams": [],
        "clusters": [{"cluster": "b"}],
        "status": "running",
        "id": left.id,
        "by": "slow",
    }
    assert scene.ran == []


def test_next_master_answers_where_the_session_of_its_own_was_cut_off() -> None:
    scene = Scene()
    scene.session_report = cut_off(scene)
    scene.until = scene.clock.monotonic() + 125
    scene.clock.after[20] = lambda: (scene.hold("next"), None)[1]
    scene.clock.after[24] = scene.answer

    assert scene.invoke(dry_run=False) == {**REPORT, "by": "next"}
    assert len(scene.ran) == 1, "25 s are not enough for another one"
    assert scene.mailbox == []


def test_sessions_of_its_own_go_on_while_there_is_time() -> None:
    scene = Scene()
    done, cut = scene.session_report, cut_off(scene)
    scene.session_report = lambda: cut() if len(scene.ran) < 3 else done()

    assert scene.invoke(dry_run=False) == {**REPORT, "by": "own"}
    assert len({request.id for request in scene.ran}) == 1, "the same resync, which goes on"
    assert len(scene.ran) == 3
    assert sum(scene.clock.slept) == 4.0, "two seconds before each, in which a scheduled session could take it"


def test_session_of_its_own_goes_on_with_what_a_master_left() -> None:
    scene = Scene()
    first = scene.hold("first")
    scene.clock.after[1] = lambda: scene.keep("a")
    scene.clock.after[2] = lambda: scene.lease.release(first, clean=True)
    asked: list[ResyncRequest] = []
    done = scene.session_report

    def run() -> SessionReport:
        asked.extend(scene.mailbox)
        return done()

    scene.session_report = run

    assert scene.invoke(dry_run=False) == {**REPORT, "by": "own"}
    assert asked == scene.ran, "the same request, which any other session finds as well"


def test_person_who_interrupts_the_session_of_its_own_withdraws_the_resync() -> None:
    scene = Scene()
    scene.session_report = cut_off(scene, ErrorCode.WORKER_EXITING)

    report = scene.invoke(dry_run=False)

    assert (report["status"], report["clusters"], report["by"]) == ("withdrawn", [{"cluster": "a"}], "own")
    assert len(scene.ran) == 1
    assert (scene.mailbox, list(scene.store.query("control", "resync#0"))) == ([], [])


def test_function_that_is_told_to_end_leaves_the_resync_to_the_next_session() -> None:
    scene = Scene()
    scene.session_report = cut_off(scene, ErrorCode.WORKER_EXITING)

    report = scene.invoke(dry_run=False, by_person=False)

    assert len(scene.ran) == 1, "it was told to end"

    assert (report["status"], report["clusters"]) == ("running", [{"cluster": "a"}])
    assert len(scene.mailbox) == 1


def test_interrupt_while_a_master_works_withdraws_the_resync_and_its_progress() -> None:
    scene = Scene()
    scene.hold("slow")

    def interrupt() -> None:
        raise KeyboardInterrupt

    scene.clock.after[2] = lambda: scene.keep("a")
    scene.clock.after[3] = interrupt

    with pytest.raises(KeyboardInterrupt):
        scene.invoke(dry_run=False)
    assert (scene.mailbox, list(scene.store.query("control", "resync#0"))) == ([], [])


@pytest.mark.parametrize(
    ("clusters", "failed"),
    [([], False), ([{"cluster": "a", "drift": []}], False), ([{"cluster": "a"}, {"cluster": "b", "error": "x"}], True)],
)
def test_one_failed_cluster_fails_the_whole(clusters: list[dict[str, object]], failed: bool) -> None:
    assert has_errors({"clusters": clusters}) is failed
