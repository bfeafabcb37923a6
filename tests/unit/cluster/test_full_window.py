"""A merge window that is full: its listeners wait until it is recorded, and a long window takes no other one in (I9)."""

import math
from types import SimpleNamespace
from typing import Any

from harness.fakes.manual_clock import ManualClock
from harness.seen.builders import SERVICES
from harness.waiting import wait_until
from kubesync.actors.threads import ThreadScheduler
from kubesync.cluster.listener import Listener, SharedWindow
from kubesync.cluster.run import LongWindow
from kubesync.domain.objects import RawEvent
from kubesync.domain.window import WindowContent
from kubesync.kubernetes.ports import WatchSink


def event(version: int) -> RawEvent:
    return RawEvent("MODIFIED", SERVICES, "evil", f"s{version}", "u", version, b"x" * 1000)


class Sends:
    """A reflector that sends three events. ``sent``: how many the listener has taken."""

    def __init__(self) -> None:
        self.sent = 0

    def run(self, sink: WatchSink, _resume_from: int | None, _deadline_monotonic: float) -> None:
        for version in (1, 2, 3):
            sink.on_events([event(version)])
            self.sent += 1

    def stop(self) -> None:
        """It ends by itself."""


def begun() -> tuple[Sends, SharedWindow, Listener]:
    """A listener in front of a window that has room for one event."""
    scheduler, reflector = ThreadScheduler(), Sends()
    window = SharedWindow(1.0, scheduler, lambda: None, 1500)
    ports: Any = SimpleNamespace(scheduler=scheduler)
    listener = Listener("prod", 1, SERVICES, reflector, window, ports, lambda _seen: None)
    listener.start(None, math.inf)
    wait_until(window.full)
    return reflector, window, listener


def test_i9_listener_waits_while_the_window_is_full_and_goes_on_once_it_is_closed() -> None:
    reflector, window, listener = begun()
    assert reflector.sent == 1
    content, _ = window.close()
    assert [each.resource_version for each in content.events] == [1, 2]
    wait_until(lambda: reflector.sent == 3)
    wait_until(lambda: not listener.alive)


def test_listener_that_waits_ends_at_once() -> None:
    reflector, _, listener = begun()
    assert reflector.sent == 1
    listener.stop(None)
    wait_until(lambda: not listener.alive)


def test_i9_no_window_joins_a_long_one_that_is_full() -> None:
    def content(*versions: int) -> WindowContent:
        return WindowContent(tuple(map(event, versions)), {}, {SERVICES: versions[-1]}, 0.0, len(versions))

    def joined(most_bytes: int) -> int:
        ports = SimpleNamespace(scheduler=ManualClock(), window_bytes=most_bytes)
        served: Any = SimpleNamespace(ports=ports, commands=())
        shared: Any = SimpleNamespace(close=lambda: (content(1, 2), None), close_events=lambda: content(3))
        window = LongWindow(shared, served)
        window.take_next_window()
        return len(window.content.events)

    assert (joined(1999), joined(2000)) == (2, 3)
