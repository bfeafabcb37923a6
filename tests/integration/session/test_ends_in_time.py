"""A session ends within its margin, whatever hangs: an invocation that is killed releases nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from kubesync.aws.tables.control.fences import fence_key
from kubesync.bootstrap import Application
from kubesync.clock import SystemClock
from kubesync.domain.errors import StoreBusyError
from kubesync.domain.objects import Resource
from kubesync.kubernetes.ports import Reflector, WatchSink
from kubesync.session.session import Session
from support.memory_store import Call, MemoryStore
from support.stack import Stack, a_stack
from support.store_faults import StoreFaults

MARGIN_SECONDS = 2.0
ENOUGH_SECONDS = MARGIN_SECONDS + 8.0
# Enough to list and to see an event, on a machine that has much else to do.
RUNTIME_SECONDS = 3.0


def checks_fence(cluster: str) -> Callable[[Call], bool]:
    key = fence_key(cluster)
    return lambda call: call.operation == "transact_write_items" and any(a.key == key for a in call.actions)


def seconds_to_end(stack: Stack, session: Session) -> float:
    begun = monotonic()
    thread = threading.Thread(target=session.run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    del stack
    return monotonic() - begun


def test_session_ends_while_the_tables_are_throttled_for_one_cluster() -> None:
    faults = StoreFaults()
    store = MemoryStore(clock=SystemClock(), faults=faults)
    with a_stack(store=store) as stack:
        stack.add_cluster("prod")
        first = stack.start()
        first.wait_for(stack.at_rest)
        assert first.end().clean
        stack.api.requests.clear()
        running = stack.start(max_runtime_seconds=RUNTIME_SECONDS, drain_margin_seconds=MARGIN_SECONDS)
        stack.api.requests.wait_for_count(2, verb="watch")
        faults.fail(checks_fence("prod"), StoreBusyError("throttled"), times=None)
        stack.api.cluster.expose("shop", "late", {"ports": [{"port": 80}]})
        begun = monotonic()
        report = running.join(60)
        assert monotonic() - begun < RUNTIME_SECONDS + ENOUGH_SECONDS
        assert not report.clean
        faults.clear()
        last = stack.start()
        last.wait_for(lambda: "late.shop.svc.prod.example.com A" in stack.records())
        assert last.end().clean


class Hanging:
    """A reflector that nothing can cut off, as one that is looking up a name."""

    def __init__(self, released: threading.Event) -> None:
        self._released = released

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None:
        del sink, resume_from, deadline_monotonic
        self._released.wait(60)

    def stop(self) -> None:
        """It does not listen."""


def test_listener_that_hangs_costs_the_other_clusters_nothing() -> None:
    released = threading.Event()
    with a_stack() as stack:
        stack.add_cluster("prod")
        stack.add_cluster("stuck", domain="stuck.example.com")
        application = stack.application(max_runtime_seconds=RUNTIME_SECONDS, drain_margin_seconds=30)
        session = _with_hanging(application, "stuck", released)
        seconds = seconds_to_end(stack, session)
        released.set()
        assert seconds < RUNTIME_SECONDS + 8.0  # far below the margin
        assert session.report.clean
        assert "kubernetes.default.svc.prod.example.com A" in stack.records()


def _with_hanging(application: Application, cluster: str, released: threading.Event) -> Session:
    session = application.new_session()
    connector = session._parts.connector
    really = connector.reflector

    def reflector(config: object, resource: Resource) -> Reflector:
        name = getattr(config, "name", "")
        return Hanging(released) if name == cluster else really(config, resource)  # type: ignore[arg-type] # as given

    connector.reflector = reflector  # type: ignore[method-assign] # the connector of this session only
    return session
