"""Configurations that change while DynamoDB is busy: the session's own thread waits for nobody long, and forgets nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.fakes.memory_store import Call, MemoryStore, NoFaults
from harness.fakes.store_faults import StoreFaults
from harness.stack import a_stack
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import CONTROL, STATE, Key
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable, ZoneReference
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.keys.key_states import Ledger
from kubesync.cluster.ports import Connector
from kubesync.domain.errors import ErrorCode, StoreBusyError, StoreError
from kubesync.domain.objects import ServiceKey
from kubesync.domain.report import SessionReport
from kubesync.domain.state import KeyState, OpenMark
from kubesync.operations.ports import MasterParts
from kubesync.session.control import Control
from kubesync.session.lease_keeper import LeaseKeeper, LeaseTimes
from kubesync.session.master import Master
from kubesync.settings import Settings


def test_session_ends_while_the_state_table_throttles_and_configurations_change() -> None:
    faults = StoreFaults()
    with a_stack(store=MemoryStore(clock=ThreadScheduler(), faults=faults)) as stack:
        configs = {name: stack.add_cluster(name) for name in ("prod", "gone")}
        first = stack.start()
        first.wait_for(lambda: all(stack.at_rest(name) for name in configs))
        assert first.end().clean
        stack.api.requests.clear()
        running = stack.start(drain_margin_seconds=2, lease_renew_seconds=0.05)
        stack.api.requests.wait_for_count(4, verb="watch")
        throttled: list[Call] = []

        def throttle(call: Call) -> None:
            throttled.append(call)
            raise StoreBusyError("throttled")

        faults.do(lambda call: bool(call.actions) and STATE in call.tables, throttle, times=None)
        stack.api.cluster.expose("shop", "late", {"ports": [{"port": 80}]})
        # Each worker holds its cluster's ledger while it tries again.
        running.wait_for(
            lambda: {"prod", "gone"} <= {a.key.partition.split("#")[0] for c in throttled for a in c.actions}
        )
        registry = stack.application().clusters()
        registry.put(configs["prod"].model_copy(update={"ttl": 77}))
        registry.put(configs["gone"].model_copy(update={"deleting": True}))
        LeaseTable(stack.store, "0").signal()
        running.wait_for(lambda: running.saw("configuration"))
        # The table throttles for good: only its margin ends it.
        report = running.end(ErrorCode.MAX_RUNTIME)
        assert (report.code, report.clean) == (ErrorCode.MAX_RUNTIME, False)
        faults.clear()
        last = stack.start()
        name = "late.shop.svc.prod.example.com A"
        last.wait_for(lambda: stack.records().get(name, {}).get("ttl") == 77)
        last.wait_for(lambda: not any("gone" in record for record in stack.records()))
        last.wait_for(lambda: registry.get("gone") is None)
        assert last.end().clean


class Runner:
    """Stands for a runner: told to start, to stop, to plan."""

    def __init__(self, ledger: Ledger, *_: object) -> None:
        self.ledger = ledger
        self.listeners: list[object] = []
        self.failed = False
        self.started = False
        self.replanned: set[ServiceKey] = set()

    def start(self, deadline: float, relist: object) -> None:
        self.started = True

    def replan(self, keys: list[ServiceKey]) -> None:
        self.replanned |= set(keys)

    def stop(self, code: ErrorCode) -> None: ...

    def wind_up(self, *_: float, abandon: bool) -> None: ...

    def join(self, deadline: float, *, abandon: bool = False) -> bool:
        return True


class Composer:
    """There are no named upstreams."""

    def __init__(self, _means: object) -> None: ...

    def load(self) -> None: ...

    def start(self) -> None: ...

    def wake(self) -> None: ...


class SteppedMaster(Master):
    runner_type = cast(Any, Runner)
    composer_type = cast(Any, Composer)


def a_config(**changes: Any) -> ClusterConfig:
    zones = (ZoneReference(id="Z1", name="example.com"),)
    return ClusterConfig(name="prod", server="https://prod.test", domain="prod.example.com", zones=zones, **changes)


class Desk:
    """A master of cluster ``prod``, with an open key that waits; its control is stepped."""

    def __init__(self, store: MemoryStore, master: Master) -> None:
        self.store = store
        self.master = master
        self.registry = ClusterTable(store)
        self.control = Control(master, master.parts)

    def change(self, **changes: Any) -> ClusterConfig:
        known = self.registry.get("prod")
        return self.registry.put((known or a_config()).model_copy(update=changes))

    def outcome(self) -> tuple[object, ...]:
        """Everything that an adoption leads to."""
        ledger = self.master.ledgers["prod"]
        runner = self.master.runners.get("prod")
        removal = self.control._removals.get("prod")
        return (
            ledger.config.revision,
            self.master.reconcilers["prod"]._configured == ledger.configured,
            "prod" in self.master.queues_taken,
            "prod" in self.master.fenced,
            None if runner is None else (runner.started, runner.ledger is ledger),  # type: ignore[attr-defined]
            None
            if removal is None
            else (removal._config.revision, removal._reconciler._configured == ledger.configured),
            "prod" in self.master.former.ledgers,
        )


@contextmanager
def a_desk(*registered: ClusterConfig) -> Iterator[Desk]:
    clock = ThreadScheduler()
    store = MemoryStore(clock=clock)
    for config in registered:
        ClusterTable(store).put(config)
    key = ServiceKey("prod", "default", "web")
    _, actions = StateTable(store).put(KeyState(key), KeyState(key, opened=OpenMark(1, 4e9, "later")), "t")
    store.transact(actions, "key")
    keeper = LeaseKeeper(LeaseTable(store, "0"), "session", LeaseTimes(), clock)
    _, lease = keeper.acquire(lambda: True)
    connector = cast(Connector, SimpleNamespace(observe=None))
    parts = MasterParts(store, cast(ZoneClient, None), connector, Settings(deployment="test"), clock)
    master = SteppedMaster(parts, keeper, lease.epoch, SessionReport("session"), lambda *_: None, lambda *_: None)
    master.deadline = clock.monotonic() + 60
    master.take_over(clean=True)
    master.start()
    try:
        yield Desk(store, master)
    finally:
        store.faults = NoFaults()
        if master.pool is not None:
            master.pool.drain(clock.monotonic())


class FailsAt(NoFaults):
    """The call of this number fails, from 0; ``calls`` counts them."""

    def __init__(self, number: int | None) -> None:
        self.calls = 0
        self._number = number
        self._thread = threading.get_ident()

    def before(self, call: Call) -> None:
        if threading.get_ident() != self._thread:
            return  # of a zone's writer
        self.calls += 1
        if self.calls - 1 == self._number:
            raise StoreBusyError("throttled")


STORIES: dict[str, tuple[tuple[ClusterConfig, ...], Callable[[Desk], object]]] = {
    "registered": ((), lambda desk: desk.change()),
    "changed": ((a_config(),), lambda desk: desk.change(ttl=77)),
    "to be removed": ((a_config(),), lambda desk: desk.change(deleting=True)),
    "removal changed": ((a_config(deleting=True),), lambda desk: desk.change(ttl=77)),
    "kept after all": ((a_config(deleting=True),), lambda desk: desk.change(deleting=False)),
    "disabled": ((a_config(),), lambda desk: desk.change(disabled=True)),
    "enabled": ((a_config(disabled=True),), lambda desk: desk.change(disabled=False)),
}


def played(story: str, fails_at: int | None) -> tuple[tuple[object, ...], int, bool]:
    """What comes of a story where this call of the control turn fails, how many calls that was, and whether it was due again."""
    registered, change = STORIES[story]
    with a_desk(*registered) as desk:
        change(desk)
        desk.store.faults = faults = FailsAt(fails_at)
        with suppress(StoreError):
            desk.control.run()
        due = desk.control.again_at < desk.master.deadline
        desk.store.faults = NoFaults()
        if due:
            desk.control.run()
            assert desk.control.again_at > desk.master.deadline
        return desk.outcome(), faults.calls, due


@pytest.mark.parametrize("story", STORIES)
def test_next_turn_completes_an_adoption_whichever_call_of_it_failed(story: str) -> None:
    whole, calls, due = played(story, None)
    assert not due
    assert calls >= 3
    for number in range(calls):
        outcome, _, due = played(story, number)
        assert due, number
        assert outcome == whole, number


def test_i5_removal_does_not_outlive_a_configuration_that_no_longer_asks_for_it() -> None:
    with a_desk(a_config(deleting=True)) as desk:
        desk.change(deleting=False)
        desk.store.faults = faults = StoreFaults()
        faults.fail(lambda call: "#open#" in call.partition, StoreBusyError("throttled"), times=None)
        desk.control.again_at = 0.0
        desk.master.queues_taken.clear()
        desk.control.run()
        assert desk.control.again_at < desk.master.deadline
        faults.clear()
        desk.control.finish_removals()
        assert StateTable(desk.store).any_key("prod")
        assert desk.control._removals == {}


def test_turn_does_not_wait_for_who_writes_a_cluster_and_comes_back_to_it() -> None:
    with a_desk(a_config()) as desk:
        ledger = desk.master.ledgers["prod"]
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            with ledger.lock:
                held.set()
                let_go.wait(120)

        holder = threading.Thread(target=hold)
        holder.start()
        assert held.wait(120)
        try:
            changed = desk.change(ttl=77)
            desk.control.run()
            assert (ledger.config.revision, desk.control.again_at < desk.master.deadline) == (1, True)
            desk.store.write(desk.registry.forget(changed))
            desk.control.run()
            assert desk.master.ledgers == {"prod": ledger}
        finally:
            let_go.set()
            holder.join(120)
        desk.control.run()
        assert desk.master.ledgers == {}
        assert desk.control.again_at > desk.master.deadline


def test_what_a_take_over_finds_being_written_is_taken_up_by_a_later_turn() -> None:
    with a_desk(a_config()) as desk:
        desk.master.queues_taken.clear()  # as where its lock was not to be had
        control = Control(desk.master, desk.master.parts)
        assert control.again_at <= desk.master.parts.clock.monotonic()
        runner = desk.master.runners["prod"]
        control.run()
        assert "prod" in desk.master.queues_taken
        assert desk.master.runners["prod"] is runner, "it goes on"


def test_turn_breaks_off_at_the_deadline_and_reads_nothing_of_other_clusters() -> None:
    with a_desk(a_config()) as desk:
        desk.change(ttl=77)
        desk.master.deadline = desk.master.parts.clock.monotonic()
        desk.store.calls.clear()
        desk.control.run()
        assert desk.master.ledgers["prod"].config.revision == 1
        assert [call.operation for call in desk.store.calls if Key(CONTROL, "cluster#prod", "fence") in call.keys] == []
        assert {call.operation for call in desk.store.calls} == {"query"}
