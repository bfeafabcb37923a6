"""Plays the story while two sessions follow it, one after the other: the second stands by and takes over."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubesync.domain.errors import ErrorCode, KubesyncError
from kubesync.domain.report import SessionReport
from kubesync.session.session import Session
from kubesync_local.demo import expected
from kubesync_local.demo.board import Board, SessionView
from kubesync_local.demo.outside import Records, Upstreams, read_upstreams, read_zone
from kubesync_local.demo.stack import DemoStack
from kubesync_local.standins.apiserver.workloads.story import Step, story
from kubesync_local.standins.route53 import Call
from kubesync_local.terminal.output import counted

_POLL_SECONDS: Final = 0.1
_LONG_SECONDS: Final = 600.0
_PATIENCE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. ``pause`` is before each step; the first session runs for ``first_session``, the second joins at ``join``."""

    pause: float
    window: float
    first_session: float
    join: float


USUAL: Final = Pace(pause=0.85, window=1.0, first_session=12.0, join=8.0)
FAST: Final = Pace(pause=0.12, window=0.1, first_session=1.8, join=1.0)


@dataclass(slots=True)
class Outcome:
    """The result as read from outside, and the sessions' reports."""

    records: Records
    upstreams: Upstreams
    reports: list[SessionReport]
    failures: list[str]


def before_the_story(stack: DemoStack) -> None:
    """What is there before the first session: an Ingress, with the address that its controller gave it."""
    cluster, rule = stack.api.cluster, {"host": "store.example.com"}
    cluster.expose_ingress("shop", "store", {"ingressClassName": "alb", "rules": [rule]})
    cluster.set_ingress("shop", "store", [{"hostname": "k8s-shop-store-1.eu-west-1.elb.amazonaws.com"}])


class Play:
    """One run. ``run`` blocks; another thread may show the board meanwhile."""

    def __init__(self, stack: DemoStack, pace: Pace) -> None:
        self._stack = stack
        self._pace = pace
        self._steps: tuple[Step, ...] = story(stack.api.cluster)
        self.board = Board([step.title for step in self._steps])
        self._sessions: list[Session] = []
        self._threads: list[threading.Thread] = []
        self._reports: list[SessionReport] = []
        self._failures: list[str] = []
        self._seen_batches = 0
        self._seen_windows = 0
        self._table = "kubesync-demo-upstreams"
        self._released = 0.0
        self._stop = threading.Event()

    def run(self) -> Outcome:
        """Play to the end, wait until everything has arrived (or time is up), and read the result."""
        watcher = threading.Thread(target=self._watch, name="demo watcher", daemon=True)
        watcher.start()
        try:
            self._start("first", self._pace.first_session)
            self._play_story()
            self._wait(lambda: self._arrived() or bool(self._failures), _PATIENCE_SECONDS)
        finally:
            self._end(watcher)
        return Outcome(*self._outside(), self._reports, self._failures)

    def stop(self) -> None:
        """Stop early."""
        self._stop.set()

    # --- the story ---

    def _play_story(self) -> None:
        for number, step in enumerate(self._steps):
            self._stop.wait(self._pace.pause)
            if self._stop.is_set():
                return
            if self.board.elapsed >= self._pace.join:
                self._join()
            self.board.step = number
            self.board.say("step", step.title)
            step.play()
        self.board.step = len(self._steps)
        self._join()
        self._wait(lambda: self.board.hand_over_seconds is not None or bool(self._failures), _PATIENCE_SECONDS)

    def _join(self) -> None:
        """Start the second session, but only when the first is master: on a busy machine the second could be faster."""
        if len(self._sessions) == 1 and self.board.sessions[0].epoch:
            self._start("second", _LONG_SECONDS)

    def _arrived(self) -> bool:
        return self._outside() == (expected.RECORDS, expected.UPSTREAMS)

    def _outside(self) -> tuple[Records, Upstreams]:
        boto = self._stack.boto
        return read_zone(boto, self._stack.zone_id), read_upstreams(boto, self._table)

    def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        until = time.monotonic() + seconds
        while not condition() and time.monotonic() < until and not self._stop.wait(2 * _POLL_SECONDS):
            pass

    # --- the sessions ---

    def _start(self, name: str, runtime_seconds: float) -> None:
        view = SessionView(name, runtime_seconds, "stands by" if self._sessions else "starts")
        self.board.sessions.append(view)
        self.board.say("session", f"the {name} session {view.state}")
        application = self._stack.application(runtime_seconds, self._pace.window)
        session = application.new_session(lambda what, details: self._progress(view, what, details))
        thread = threading.Thread(target=self._run, args=(view, session), name=f"{name} session", daemon=True)
        self._sessions.append(session)
        self._threads.append(thread)
        thread.start()

    def _run(self, view: SessionView, session: Session) -> None:
        try:
            report = session.run()
        except KubesyncError as error:
            view.state = "failed"
            self._failures.append(f"the {view.name} session failed: {error}")
            return
        self._released = time.monotonic()
        view.state = "ended"
        self._reports.append(report)
        self.board.say("session", f"the {view.name} session ended and released the lease")

    def _progress(self, view: SessionView, what: str, details: dict[str, object]) -> None:
        if what == "master":
            view.state, view.epoch = "is master", int(str(details["epoch"]))
            view.until = time.monotonic() + view.runtime_seconds
            self.board.say("session", f"the {view.name} session is master ({details['after']})")
        elif what == "window":
            view.windows += 1
            view.events += int(str(details["events"]))
            changed = f"{counted(int(str(details['changed'])), 'object')} changed"
            listed = f", {details['listed']} listed" if details["listed"] else ""
            self.board.say("seen", f"{counted(int(str(details['events'])), 'event')}{listed}: {changed}")
        elif what == "error":
            self.board.say("error", f"{details['key']} {details['message']}")

    def _end(self, watcher: threading.Thread) -> None:
        for session in self._sessions:
            session.stop(ErrorCode.WORKER_EXITING, "the demo is over")
        for thread in self._threads:
            thread.join(_PATIENCE_SECONDS)
        self._observe()
        self._stop.set()
        watcher.join(_PATIENCE_SECONDS)
        self.board.finished = True

    # --- observing from outside ---

    def _watch(self) -> None:
        while not self._stop.wait(_POLL_SECONDS):
            self._observe()

    def _observe(self) -> None:
        board, route53 = self.board, self._stack.route53
        batches = [call for call in route53.batches(self._stack.zone_id) if call.accepted]
        for call in batches[self._seen_batches :]:
            self._show_batch(call)
        self._seen_batches = board.batches = len(batches)
        board.record_sets = sum(
            key.type not in ("SOA", "NS") and not key.name.startswith("_kubesync-")
            for key in route53.records(self._stack.zone_id)
        )
        windows = sum(view.windows for view in board.sessions)
        if windows != self._seen_windows:  # nothing else writes upstreams
            self._seen_windows = windows
            upstreams = read_upstreams(self._stack.boto, self._table)
            board.upstreams, board.nodes = len(upstreams), sum(map(len, upstreams.values()))
        if board.hand_over_seconds is None and self._released and len(board.sessions) > 1:
            watches = [r.received_monotonic for r in self._stack.api.requests.all(verb="watch")]
            after = [at for at in watches if at >= self._released]
            if after:
                board.hand_over_seconds = after[0] - self._released
                board.say("session", f"watching again {board.hand_over_seconds:.2f} s after the release")

    def _show_batch(self, call: Call) -> None:
        ours = [c for c in call.changes if not c.record_set.key.name.startswith("_kubesync-")]
        self.board.changes += len(ours)
        for change in ours:
            sign = "+" if change.action == "CREATE" else "-"
            record_set = change.record_set
            values = " ".join(record_set.values)
            self.board.say("dns", f"{sign} {record_set.key.name.rstrip('.')} {record_set.key.type} {values}")
