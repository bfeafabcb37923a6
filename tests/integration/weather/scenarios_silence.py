"""A connection that dies without a word is noticed within two bookmark intervals, and nothing is lost for longer (code 12)."""

from __future__ import annotations

import time
from typing import Final

from kubesync_local.standins.apiserver import ServerOptions
from kubesync_local.standins.apiserver.requests.watching import WatchPolicy
from support.raw_objects import put_raw, raw_service
from support.silent_proxy import SilentProxy
from support.stack import RunningSession, a_stack

INTERVAL_SECONDS: Final = 0.8
# What a machine under load takes on top: threads have to be woken, a window closed, a batch sent.
_MARGIN_SECONDS: Final = 1.5


def record(name: str) -> str:
    return f"{name}.shop.svc.prod.example.com A"


def play_silence(how: str, rounds: int = 1) -> None:
    """All connections go silent; what happens meanwhile is published within two bookmark intervals.

    ``how``: ``old`` connections only, or ``all``, also new ones, for one more interval.
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
            began = time.monotonic()
            put_raw(stack.api, raw_service(name))
            allowed = 2 * INTERVAL_SECONDS + _MARGIN_SECONDS
            if how == "all":
                noticed(running, number + 1)
                assert time.monotonic() - began < allowed
                proxy.forward()
                # A request without an answer, and the first backoff of a listener, with its jitter.
                allowed += INTERVAL_SECONDS + 4 * 1.6
            running.wait_for(lambda name=name: record(name) in stack.records(), allowed)  # type: ignore[misc]
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

    running.wait_for(reported, 10)


def play_quiet_is_not_silence() -> None:
    """Bookmarks keep a quiet watch alive: no error, no list, no second watch."""
    options = ServerOptions(watch=WatchPolicy(bookmark_interval=INTERVAL_SECONDS / 4))
    with a_stack(options) as stack:
        stack.add_cluster()
        running = stack.start(bookmark_interval_seconds=INTERVAL_SECONDS)
        stack.api.requests.wait_for_count(2, verb="watch")
        running.wait_for(lambda: running.saw("window"))
        ends = time.monotonic() + 3 * INTERVAL_SECONDS
        running.wait_for(lambda: time.monotonic() > ends, 10)
        report = running.end()
        assert [(each.errors, each.lists) for each in report.listeners] == [({}, 1), ({}, 1)]
        assert len(stack.api.requests.all(verb="watch")) == 2
        assert all(each.bookmarks >= 3 for each in report.listeners)
