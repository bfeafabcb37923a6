"""A connection that dies without a word is noticed and resumed, and nothing is lost (code 12).

How soon it is noticed is a matter of the clock: ``tests/unit/kubernetes/test_silence.py``.
"""

from typing import Final

from harness.seen.raw_objects import put_raw, raw_service
from harness.stack import RunningSession, a_stack
from harness.wire.silent_proxy import SilentProxy
from kubesync.domain.objects import Resource
from kubesync_local.standins.apiserver import ServerOptions
from kubesync_local.standins.apiserver.requests.watching import WatchPolicy

INTERVAL_SECONDS: Final = 0.8


def record(name: str) -> str:
    return f"{name}.shop.svc.prod.example.com A"


def play_silence(how: str, rounds: int = 1) -> None:
    """All connections go silent; what happens meanwhile is published all the same.

    ``how``: ``old`` connections only, or ``all``, also new ones, until the silence was noticed.
    """
    options = ServerOptions(watch=WatchPolicy(bookmark_interval=INTERVAL_SECONDS))
    with a_stack(options) as stack, SilentProxy(*stack.api.address) as proxy:
        stack.add_cluster(server=proxy.url)
        running = stack.start(
            bookmark_interval_seconds=INTERVAL_SECONDS, read_timeout_seconds=INTERVAL_SECONDS, connect_timeout_seconds=1
        )
        put_raw(stack.api, raw_service("first"))
        running.wait_for(lambda: record("first") in stack.records())
        for number in range(rounds):
            name = f"s{number}"
            proxy.swallow(new_ones=how == "all")
            put_raw(stack.api, raw_service(name))
            if how == "all":
                noticed(running, number + 1)
                proxy.forward()
            running.wait_for(lambda name=name: record(name) in stack.records())  # type: ignore[misc]
        report = running.end()
        assert report.clean
        services = next(each for each in report.listeners if each.resource == "services")
        assert services.errors.get("ERR_READ_BODY", 0) >= rounds
        assert services.lists == 1, "silence is no reason to list"


def noticed(running: RunningSession, times: int) -> None:
    """The listener of services has reported the silence so often."""

    def reported() -> bool:
        found = [d for what, d in list(running.events) if what == "error" and d["resource"] == "services"]
        return sum(1 for details in found if details["key"] == "ERR_READ_BODY") >= times

    running.wait_for(reported)


def play_quiet_is_not_silence() -> None:
    """Bookmarks keep a quiet watch alive: no error, no list, no second watch."""
    options = ServerOptions(watch=WatchPolicy(bookmark_interval=INTERVAL_SECONDS / 4))
    with a_stack(options) as stack:
        stack.add_cluster()
        running = stack.start(bookmark_interval_seconds=3600)
        stack.api.requests.wait_for_count(2, verb="watch")
        running.wait_for(lambda: running.saw("window"))
        for resource in (Resource.SERVICES, Resource.ENDPOINTSLICES):
            running.wait_for(lambda resource=resource: running.bookmarks(resource) >= 3)  # type: ignore[misc]
        report = running.end()
        assert [(each.errors, each.lists) for each in report.listeners] == [({}, 1), ({}, 1)]
        assert len(stack.api.requests.all(verb="watch")) == 2
        assert all(each.bookmarks >= 3 for each in report.listeners)
