"""A session ends within its margin, whatever hangs: an invocation that is killed releases nothing."""

import threading

from harness.stack import a_stack
from harness.waiting import PATIENCE_SECONDS, wait_until
from kubesync.bootstrap.application import Application
from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import Resource
from kubesync.kubernetes.list_room import ListReservation
from kubesync.kubernetes.ports import Reflector, WatchSink
from kubesync.session.session import Session


class Hanging:
    """A reflector that nothing can cut off, as one that is looking up a name."""

    def __init__(self, released: threading.Event) -> None:
        self._released = released

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None:
        del sink, resume_from, deadline_monotonic
        self._released.wait()

    def stop(self) -> None:
        """It does not listen."""


def test_listener_that_hangs_costs_the_other_clusters_nothing() -> None:
    released = threading.Event()
    with a_stack() as stack:
        stack.add_cluster("prod")
        stack.add_cluster("stuck", domain="stuck.example.com")
        # An hour of margin: it ends, although the listener hangs, without waiting for the margin to pass.
        session = _with_hanging(stack.application(drain_margin_seconds=3600), "stuck", released)
        thread = threading.Thread(target=session.run, daemon=True)
        thread.start()
        try:
            wait_until(lambda: "kubernetes.default.svc.prod.example.com A" in stack.records())
            wait_until(lambda: stack.at_rest("prod"))
            session.stop(ErrorCode.MAX_RUNTIME)
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive(), "it waits for the listener that hangs"
        finally:
            released.set()
        assert session.report.clean


def _with_hanging(application: Application, cluster: str, released: threading.Event) -> Session:
    session = application.new_session()
    connector = session._parts.connector
    really = connector.reflector

    def reflector(config: object, resource: Resource, reservation: ListReservation) -> Reflector:
        name = getattr(config, "name", "")
        return Hanging(released) if name == cluster else really(config, resource, reservation)  # type: ignore[arg-type] # as given

    connector.reflector = reflector  # type: ignore[method-assign] # the connector of this session only
    return session
