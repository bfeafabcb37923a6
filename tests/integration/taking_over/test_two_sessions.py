"""Two sessions at once: one is the master, the other ends, or stands by and takes over without a gap."""

from harness.fakes.memory_store import Call, MemoryStore
from harness.fakes.store_faults import StoreFaults, writes_to
from harness.seen.persisted_errors import errors_of
from harness.stack import RunningSession, Stack, a_stack
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.tables.control.lease import LeaseTable, lease_key
from kubesync.domain.errors import ErrorCode
from kubesync_local.standins.apiserver.transport.request_log import RecordedRequest

STANDING_BY = {"stand_by_seconds": 3600.0}


def is_watching(stack: Stack, running: RunningSession) -> None:
    running.wait_for(lambda: running.saw("master"))
    for resource in ("services", "endpointslices"):
        stack.api.requests.wait_for_count(1, resource=resource, verb="watch")


def releases_of(store: MemoryStore) -> list[float]:
    """When leases were released: filled by a hook, in the monotonic time of this process."""
    faults, found = StoreFaults(), list[float]()
    store.faults = faults

    def note(call: Call) -> None:
        if any("released" in getattr(action, "set", {}) and action.set["released"] for action in call.actions):  # type: ignore[union-attr]
            found.append(ThreadScheduler().monotonic())

    faults.do(writes_to(lease_key("0")), note, after=True, times=None)
    return found


def _after(stack: Stack, monotonic: float) -> list[RecordedRequest]:
    return [request for request in stack.api.requests.all() if request.received_monotonic > monotonic]


def test_the_second_session_takes_over_when_the_first_releases_and_resumes_without_a_list() -> None:
    """How soon is measured by ``make bench``: hand-over."""
    with a_stack() as stack:
        assert isinstance(stack.store, MemoryStore)
        stack.add_cluster()
        stack.api.cluster.deploy("default", "web", 2)
        stack.api.cluster.expose("default", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
        released = releases_of(stack.store)
        first = stack.start()
        first.wait_for(stack.at_rest)
        assert "web.default.svc.prod.example.com A" in stack.records()
        second = stack.start(**STANDING_BY)
        second.wait_for(lambda: second.saw("stand-by"))
        assert first.end(ErrorCode.MAX_RUNTIME).clean
        (released_at,) = released
        second.wait_for(lambda: len(_after(stack, released_at)) >= 2)
        after = _after(stack, released_at)
        # It resumes, without a list.
        assert [r.verb for r in after] == ["watch", "watch"]
        assert sorted(r.resource for r in after) == ["endpointslices", "services"]
        assert len(stack.api.requests.all(verb="list")) == 2
        report = second.end()
        assert (report.took_over, report.epoch, report.clean) == ("clean hand-over", 2, True)
        assert [each.lists for each in report.listeners] == [0, 0]
        assert errors_of(stack.store).counts == {"ERR_MAX_RUNTIME": 1, "ERR_WORKER_EXITING": 1}


def test_nothing_is_lost_between_two_sessions() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        first = stack.start()
        is_watching(stack, first)
        second = stack.start(**STANDING_BY)
        second.wait_for(lambda: second.saw("stand-by"))
        exposed, after = 0, 0
        while after < 5:
            # Some before the hand-over, some while it happens, some after it.
            stack.api.cluster.expose("default", f"s{exposed}", {"ports": [{"port": 80}]})
            exposed += 1
            after += second.saw("master")
            if exposed == 5:
                first.session.stop(ErrorCode.MAX_RUNTIME)
        wanted = {f"s{n}.default.svc.prod.example.com A" for n in range(exposed)}
        second.wait_for(lambda: wanted <= stack.records().keys())
        assert first.join().clean
        assert second.end().clean


def test_the_deadline_of_a_session_that_stood_by_begins_when_it_takes_over() -> None:
    with a_stack() as stack:
        stack.add_cluster()
        long = {"lease_seconds": 90_000.0, "lease_write_seconds": 90_000.0}
        first = stack.start(max_runtime_seconds=80_000.0, **long)
        is_watching(stack, first)
        second = stack.start(max_runtime_seconds=500.0, stand_by_seconds=80_000.0, **long)
        second.wait_for(lambda: second.saw("stand-by"))
        stack.clock.advance(600)  # longer than its own time
        assert first.end(ErrorCode.MAX_RUNTIME).clean
        second.wait_for(lambda: second.saw("master"))
        stack.api.cluster.expose("default", "late", {"ports": [{"port": 80}]})
        second.wait_for(lambda: "late.default.svc.prod.example.com A" in stack.records())
        stack.clock.advance(500)
        report = second.join()
        assert report.code == 5
        assert report.seconds >= 1100
        lease = LeaseTable(stack.store, "0").read()
        assert (lease.holder, lease.epoch, lease.released, lease.clean) == (report.session, 2, True, True)
