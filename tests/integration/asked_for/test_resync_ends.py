"""A resync ends with its session, whatever the API server does, and holds up nothing else meanwhile."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.hurried import a_hurried_stack
from harness.seen.resync_requests import a_request, collected, leave, the_error, wait_for_answer
from harness.stack import RunningSession, Stack, a_stack
from harness.waiting import PATIENCE_SECONDS, wait_until
from harness.wire.silent_proxy import SilentProxy
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.domain.errors import ErrorCode
from kubesync.domain.report import SessionReport
from kubesync.session.session import Session
from kubesync_local.standins.apiserver.objects.resources import SERVICES, Target
from kubesync_local.standins.apiserver.transport.faults import Answer
from kubesync_local.workplace.registry import ClusterRegistry

ENDED = "the session ended before the resync was done: run it again"
EAGER = {"lease_renew_seconds": 0.05}
# No timeout of a request ends anything here: what ends was ended.
NO_TIMEOUTS = {"connect_timeout_seconds": 7200.0, "read_timeout_seconds": 7200.0}
# The clock can be put forward to the deadline: the lease lasts longer.
LONG = {"max_runtime_seconds": 80_000.0, "lease_seconds": 90_000.0, "lease_write_seconds": 90_000.0}


@contextmanager
def a_stack_with_a_silent_cluster() -> Iterator[tuple[Stack, SilentProxy]]:
    """Cluster ``prod`` answers; ``stuck`` is behind a proxy that can go silent."""
    with a_stack() as stack:
        host, _, port = stack.api.url.removeprefix("http://").partition(":")
        with SilentProxy(host, int(port)) as proxy:
            stack.add_cluster("prod")
            stack.add_cluster("stuck", server=proxy.url)
            try:
                yield stack, proxy
            finally:
                stack.close()


def begin(session: Session, *, dry_run: bool, cluster: str = "stuck") -> tuple[threading.Thread, list[SessionReport]]:
    """A session of its own for a resync, in a thread."""
    reports: list[SessionReport] = []
    request = a_request(cluster, dry_run=dry_run)
    thread = threading.Thread(target=lambda: reports.append(session.run(resync=request)), daemon=True)
    thread.start()
    return thread, reports


def both_watched(stack: Stack, **settings: Any) -> RunningSession:
    running = stack.start(**{**EAGER, **NO_TIMEOUTS, **settings})
    names = {f"kubernetes.default.svc.{name}.example.com A" for name in ("prod", "stuck")}
    running.wait_for(lambda: names <= stack.records().keys())
    return running


@pytest.mark.parametrize("dry_run", [True, False])
def test_signal_ends_a_resync_of_a_silent_cluster(dry_run: bool) -> None:
    with a_stack_with_a_silent_cluster() as (stack, proxy):
        proxy.swallow(new_ones=True)
        session = stack.application(**NO_TIMEOUTS).new_session()
        thread, reports = begin(session, dry_run=dry_run)
        wait_until(lambda: proxy.accepted > 0)
        session.stop(ErrorCode.WORKER_EXITING, "SIGTERM")
        thread.join(PATIENCE_SECONDS)
        assert the_error(reports[0].resyncs[0], "stuck").startswith(ENDED)
        assert (reports[0].ended, reports[0].clean) == ("ERR_WORKER_EXITING", True)


@pytest.mark.parametrize("kind", ["dry run", "forced", "normal"])
@pytest.mark.parametrize("way", ["signal", "deadline"])
def test_master_that_ends_answers_who_waits_unless_the_next_one_goes_on(kind: str, way: str) -> None:
    with a_stack_with_a_silent_cluster() as (stack, proxy):
        running = both_watched(stack, **LONG)
        proxy.swallow(new_ones=True)
        accepted = proxy.accepted
        request = leave(stack, dry_run=kind == "dry run", force=kind == "forced")
        running.wait_for(lambda: proxy.accepted > accepted)
        if way == "deadline":
            stack.clock.advance(LONG["max_runtime_seconds"])
        report = running.end() if way == "signal" else running.join()
        assert report.clean
        assert report.ended == ("ERR_WORKER_EXITING" if way == "signal" else "ERR_MAX_RUNTIME")
        answer = collected(stack, request)
        if kind == "normal":
            assert answer is None, "the next session answers"
        else:
            assert the_error(answer, "stuck").startswith(ENDED)


def test_lost_lease_ends_a_resync_and_the_next_master_does_it() -> None:
    with a_stack_with_a_silent_cluster() as (stack, proxy):
        running = both_watched(stack)
        proxy.swallow(new_ones=True)
        accepted = proxy.accepted
        request = leave(stack, dry_run=True)
        running.wait_for(lambda: proxy.accepted > accepted)
        table = LeaseTable(stack.store, "0")
        other = table.take(
            table.read(), "another", table.draw_epoch(), int(stack.clock.epoch_seconds() * 1000) + 60_000
        )
        report = running.join()
        assert (report.ended, collected(stack, request)) == ("ERR_NOT_MASTER", None)
        proxy.forward()
        table.release(other, clean=False)
        second = stack.start(**EAGER)
        answer = wait_for_answer(stack, second, request)
        assert [cluster["changes"] for cluster in answer["clusters"]] == [[], []]
        assert second.end().clean


@pytest.mark.parametrize("dry_run", [True, False])
def test_configurations_are_taken_up_while_a_resync_hangs(dry_run: bool) -> None:
    """Control is the main loop's: a resync, however long it takes, is done beside it."""
    with a_stack_with_a_silent_cluster() as (stack, proxy):
        running = both_watched(stack)
        proxy.swallow(new_ones=True)
        accepted = proxy.accepted
        slow = leave(stack, "stuck", dry_run=dry_run)
        running.wait_for(lambda: proxy.accepted > accepted)
        waiting = leave(stack, "prod", dry_run=True)
        stack.add_cluster("late")
        LeaseTable(stack.store, "0").signal()
        running.wait_for(lambda: "kubernetes.default.svc.late.example.com A" in stack.records())
        assert (collected(stack, slow), collected(stack, waiting)) == (None, None)
        clusters = ClusterRegistry(stack.application().store())
        config = clusters.get("stuck")
        assert config is not None
        clusters.put(config.model_copy(update={"deleting": True}))
        LeaseTable(stack.store, "0").signal()
        said = the_error(wait_for_answer(stack, running, slow), "stuck")
        assert said.startswith("the configuration of cluster stuck was changed meanwhile: run it again")
        (prod,) = wait_for_answer(stack, running, waiting)["clusters"]
        assert (prod["cluster"], prod["changes"], prod["drift"]) == ("prod", [], [])
        running.wait_for(lambda: running.saw("removed", cluster="stuck"))
        assert running.end().clean


def test_cluster_that_refuses_connections_is_given_up_and_named() -> None:
    with a_hurried_stack() as stack:
        stack.add_cluster("away", server=f"http://127.0.0.1:{unused_port()}")
        errors = threading.Semaphore(0)

        def told(what: str, details: dict[str, object]) -> None:
            if what == "error" and details["resource"] == "services":
                errors.release()

        session = stack.application().new_session(told)
        thread, reports = begin(session, dry_run=False, cluster="away")
        for _ in range(3):
            assert errors.acquire(timeout=PATIENCE_SECONDS)
        stack.clock.advance(20)
        thread.join(PATIENCE_SECONDS)
        said = the_error(reports[0].resyncs[0], "away")
        assert "ERR_CONNECT_FAILED" in said
        tried = re.match(r"cluster away could not be listed: tried for (\d+)", said)
        assert tried is not None, said
        assert int(tried[1]) >= 15
        assert said.endswith(
            "check that the API server runs, its address, and the network in between, then run it again"
        )
        assert (reports[0].ended, reports[0].clean) == ("DONE", True)


def test_i5_forced_resync_that_was_given_up_forces_no_later_list() -> None:
    """I5: what a person decided was about the lists of then."""
    with a_hurried_stack() as stack:
        names = [f"web-{number}" for number in range(12)]
        for name in names:
            body = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}
            stack.api.writer.create(Target(SERVICES, "default"), body)
        stack.add_cluster()
        running = stack.start(lease_renew_seconds=0.5)
        running.wait_for(lambda: len(stack.upstreams()) == 13)
        stack.api.faults.add(Answer(503, "ServiceUnavailable", "starting"), times=None, verb="list")
        request = leave(stack, force=True)
        running.wait_for(lambda: [what for what, _ in list(running.events)].count("error") >= 6)
        stack.clock.advance(20)
        said = the_error(wait_for_answer(stack, running, request), "prod")
        assert "ERR_REQUEST_STATUS" in said
        for name in names[:8]:
            stack.api.writer.delete(Target(SERVICES, "default", name), {})
        stack.api.faults.clear()
        running.wait_for(lambda: len(stack.problems()) == 8)
        assert len(stack.upstreams()) == 13
        running.end()


def unused_port() -> int:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return int(closed.getsockname()[1])
