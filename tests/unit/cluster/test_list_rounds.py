"""What a person asked for holds for the lists that were made for it: decided once for a window, whatever its tries meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from harness.seen.recording import SLICES, World
from kubesync.cluster.keys.reconciler import Mode, Reconciler, Recorded
from kubesync.cluster.ports import Connector, RunnerEvents
from kubesync.cluster.runner import ClusterRunner
from kubesync.domain.errors import StoreBusyError
from kubesync.domain.objects import RawEvent, Resource, Snapshot
from kubesync.domain.window import WindowContent
from kubesync.kubernetes.ports import Reflector, WatchSink

SERVICES = Resource.SERVICES
FORCED = Mode(forced=True, distrust_upstreams=True)


class Silent:
    """A reflector that has ended before it said anything; its sink speaks when the test says so."""

    def __init__(self, sinks: dict[Resource, list[WatchSink]], resource: Resource) -> None:
        self._sinks = sinks[resource]

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None:
        self._sinks.append(sink)

    def stop(self) -> None: ...


class FailingRecorder:
    """Notes how lists are taken. ``meanwhile`` happens at the first try of the next window, which then fails."""

    def __init__(self) -> None:
        self.taken: list[tuple[tuple[str, ...], Mode]] = []
        self.meanwhile: Callable[[], None] | None = None

    def record(self, content: WindowContent, mode: Mode, *, flush: bool) -> Recorded:
        self.taken.append((tuple(sorted(resource.value for resource in content.snapshots)), mode))
        if self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()
            raise StoreBusyError("throttled")
        return Recorded()

    def sweep(self) -> None: ...


class Stepped:
    """A runner without a worker; its listeners have listed once, and are at rest."""

    def __init__(self) -> None:
        self.world = World()
        self.sinks: dict[Resource, list[WatchSink]] = {SERVICES: [], SLICES: []}
        self.reconciler = FailingRecorder()
        made = cast(Any, type("Made", (), {"reflector": lambda _self, _config, resource: self._reflector(resource)})())
        told = RunnerEvents(
            opened=lambda *_: None,
            promoted=lambda *_: None,
            error=lambda *_: None,
            not_master=lambda *_: None,
            progress=lambda *_: None,
        )
        desk = self.world.session()
        self.runner = ClusterRunner(
            desk.ledger, cast(Reconciler, self.reconciler), cast(Connector, made), told, self.world.clock, 1.0
        )
        self.begin(None)

    def _reflector(self, resource: Resource) -> Reflector:
        return Silent(self.sinks, resource)

    def begin(self, mode: Mode | None) -> None:
        self.runner._begin(mode)
        for listener in self.runner.listeners:
            assert listener.join(120)

    def lists(self, resource: Resource, *, of: int = -1) -> None:
        """A complete list of a listener, the newest unless said otherwise."""
        self.sinks[resource][of].on_snapshot(Snapshot(resource, 10, ()))

    def turn(self) -> list[tuple[tuple[str, ...], Mode]]:
        """Record what is pending. Returns how its lists were taken, try by try."""
        self.reconciler.taken.clear()
        self.world.clock.advance(1)
        assert self.runner._turn()
        return list(self.reconciler.taken)


def test_i5_list_of_the_cluster_s_own_is_not_taken_as_one_that_is_forced_meanwhile() -> None:
    stepped = Stepped()
    stepped.lists(SERVICES)
    stepped.reconciler.meanwhile = lambda: stepped.begin(FORCED)
    assert stepped.turn() == [(("services",), Mode()), (("services",), Mode())]
    assert not stepped.runner.wait_relisted(0), "the lists that were asked for are still to come"
    stepped.lists(SERVICES)
    stepped.lists(SLICES)
    assert stepped.turn() == [(("endpointslices", "services"), FORCED)]
    assert stepped.runner.wait_relisted(0)


def test_i5_list_that_was_pending_when_another_was_asked_for_is_taken_like_any_other() -> None:
    stepped = Stepped()
    stepped.lists(SERVICES)
    stepped.begin(FORCED)
    assert stepped.turn() == [(("services",), Mode())]
    stepped.lists(SERVICES)
    assert stepped.turn() == [(("services",), FORCED)]
    assert not stepped.runner.wait_relisted(0)
    stepped.lists(SLICES)
    assert stepped.turn() == [(("endpointslices",), FORCED)]
    assert stepped.runner.wait_relisted(0)


def test_forced_list_that_is_being_recorded_stays_one_when_nobody_waits_any_more() -> None:
    stepped = Stepped()
    stepped.begin(FORCED)
    stepped.lists(SERVICES)
    stepped.reconciler.meanwhile = stepped.runner.withdraw_relist
    assert stepped.turn() == [(("services",), FORCED), (("services",), FORCED)]
    stepped.lists(SLICES)
    assert stepped.turn() == [(("endpointslices",), Mode())]


def test_i5_list_that_comes_after_the_request_was_withdrawn_is_not_forced() -> None:
    stepped = Stepped()
    stepped.begin(FORCED)
    stepped.lists(SERVICES)
    stepped.runner.withdraw_relist()
    assert stepped.turn() == [(("services",), Mode())]


def test_i5_later_lists_of_the_same_listeners_are_not_forced() -> None:
    stepped = Stepped()
    stepped.begin(FORCED)
    stepped.lists(SERVICES)
    stepped.lists(SLICES)
    assert stepped.turn() == [(("endpointslices", "services"), FORCED)]
    stepped.lists(SERVICES)
    assert stepped.turn() == [(("services",), Mode())]


def test_i5_forced_list_that_meets_one_of_a_listener_that_hung_is_not_forced() -> None:
    stepped = Stepped()
    stepped.begin(FORCED)
    stepped.lists(SERVICES, of=0)
    stepped.lists(SLICES)
    assert stepped.turn() == [(("endpointslices", "services"), Mode())]
    assert not stepped.runner.wait_relisted(0)


def test_events_besides_are_recorded_with_them() -> None:
    stepped = Stepped()
    stepped.begin(FORCED)
    stepped.sinks[SERVICES][-1].on_events([RawEvent("ADDED", SERVICES, "shop", "web", "u", 12, b"{}")])
    assert stepped.turn() == [((), Mode())]
