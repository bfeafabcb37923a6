"""A long list is recorded in sections: whoever waits for the cluster has its turn in between, and nothing comes out differently."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from harness.fakes.memory_store import Call, NoFaults
from harness.seen.builders import a_key, a_service, an_endpoints
from harness.seen.recording import SERVICES, SLICES, Desk, World, a_config, a_list, identity, saw
from harness.waiting import wait_until
from kubesync.actors.fair_lock import FairLock
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import Key, Put
from kubesync.cluster.keys.key_states import SupersededError
from kubesync.cluster.ports import Connector, RunnerEvents
from kubesync.cluster.runner import ClusterRunner
from kubesync.domain.errors import KubesyncError
from kubesync.domain.objects import Observation, ServiceKey
from kubesync.domain.state import Name

COUNT = 230


class Interrupted(FairLock):
    """A ledger's lock that is never free for long: each time that it is let go of, another has its turn."""

    def __init__(self, other: Callable[[], object]) -> None:
        super().__init__(ThreadScheduler())
        self.turns = 0
        self._other = other
        self._in_turn = False

    def release(self) -> None:
        super().release()
        if self._depth or self._in_turn:
            return
        self._in_turn = True
        self.turns += 1
        try:
            self._other()
        finally:
            self._in_turn = False


def services(*, shared: bool = False, number: int = 1, count: int = COUNT) -> list[Observation]:
    """Services from the oldest to the youngest; every tenth wants a name that others want as well."""
    made: list[Observation] = []
    for n in range(count):
        wants = {"hostname": f"shared{n % 7}.example.com"} if shared and n % 10 == 0 else {}
        address, created_at = f"10.{number}.{n // 250}.{n % 250}", f"2026-01-01T00:{n // 60:02d}:{n % 60:02d}Z"
        service = a_service(cluster_ips=(address,), created_at=created_at, annotations=wants)
        made.append(saw(service, number * 1000 + n, f"s{n:03d}"))
    return made


def begin(desk: Desk, seen: list[Observation]) -> None:
    desk.begin(*seen, version=1_999)


def anew(desk: Desk, seen: list[Observation]) -> None:
    desk.record(lists=(a_list(3_000, identity(), *seen),))


STORIES: dict[str, tuple[Callable[[Desk], object], Callable[[Desk], object]]] = {
    "a first list": (lambda _d: None, lambda d: begin(d, services(shared=True))),
    "a list that changes every service": (
        lambda d: begin(d, services(shared=True)),
        lambda d: anew(d, services(shared=True, number=2)),
    ),
    "a list in which names change hands": (
        lambda d: begin(d, services(shared=True)),
        lambda d: anew(d, [*services(shared=False, number=2)[:100], *services(shared=True, number=2)[100:]]),
    ),
    "a list that lacks some": (
        lambda d: begin(d, services(shared=True)),
        lambda d: anew(d, [seen for n, seen in enumerate(services(shared=True, number=2)) if n % 10 or n % 20]),
    ),
    "events of all of them": (
        lambda d: begin(d, services(shared=True)),
        lambda d: d.record(*services(shared=True, number=2)),
    ),
}


def outcome(world: World) -> dict[Key, dict[str, object]]:
    """Everything but who owned a name when somebody came to wait for it: it may have changed hands once more since."""
    found = world.settled()
    for item in found.values():
        body = item.get("body")
        if isinstance(body, dict):
            item["body"] = {name: value for name, value in body.items() if name != "problems"}
    return found


SAMPLE = {"a first list", "a list in which names change hands"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SAMPLE else pytest.mark.thorough) for name in STORIES]
)
def test_i1_keys_that_are_closed_between_sections_come_to_the_same(name: str) -> None:
    before, window = STORIES[name]
    undisturbed, disturbed = World(), World()
    for world in (undisturbed, disturbed):
        desk = world.session()
        before(desk)
        desk.land()
    desk = undisturbed.session()
    window(desk)
    desk.land()

    desk = disturbed.session()
    desk.ledger.lock = lock = Interrupted(desk.land)
    repeated = desk.fenced_writer.repeated
    surprised: list[object] = []
    desk.ledger.forget = surprised.append  # type: ignore[method-assign,assignment]
    window(desk)
    assert lock.turns >= 4  # between any two sections, and some more
    desk.land()
    assert outcome(disturbed) == outcome(undisturbed)
    # Nobody was surprised by what the others had written: that is for the rare case, and costs everything that was read.
    assert (surprised, desk.fenced_writer.repeated) == ([], repeated)


def test_zones_writer_waits_for_few_transactions_of_a_long_list() -> None:
    world = World()
    desk = world.session()
    desk.begin(*services(count=1))
    key = ServiceKey("prod", "shop", "s000")
    lock = desk.ledger.lock
    errors: list[BaseException] = []

    def close() -> None:
        try:
            desk.land([key])
        except KubesyncError as error:
            errors.append(error)

    writer = threading.Thread(target=close)
    begun_at: list[int] = []

    class BeginsAtTheSecondTransaction(NoFaults):
        def before(self, call: Call) -> None:
            recording = threading.current_thread() is not writer and call.operation == "transact_write_items"
            if recording and not begun_at and len(transactions()) >= 2:
                begun_at.append(len(transactions()))
                writer.start()
                wait_until(lambda: lock._waiting, said="the writer does not wait for the ledger")

    def transactions() -> list[Call]:
        return [call for call in world.store.calls if call.operation == "transact_write_items"]

    world.store.calls.clear()
    world.store.faults = BeginsAtTheSecondTransaction()
    anew(desk, services(number=2))
    writer.join(120)
    assert not writer.is_alive()
    assert errors == []
    landed = next(n for n, call in enumerate(transactions()) if _closes(call, key))
    # What is left of one section, of about four transactions.
    assert landed - begun_at[0] <= 5
    assert len(transactions()) - landed >= 5


def _closes(call: Call, key: ServiceKey) -> bool:
    """Whether a call stores what landed, rather than what is intended: it takes the key out of the queue."""
    marks = [a for a in call.actions if "#open#" in a.key.partition and a.key.sort == f"{key.namespace}/{key.name}"]
    return any(not isinstance(action, Put) for action in marks)


def test_i5_endpoints_that_are_being_listed_are_not_taken_for_empty_in_between() -> None:
    seen = [saw(a_service(), n, f"s{n:03d}") for n in range(1, 131)]
    pods = [saw(an_endpoints(f"10.2.0.{n}", service=f"s{n:03d}"), 200 + n, f"s{n:03d}-x") for n in range(1, 131)]
    world = World()
    desk = world.session()
    desk.record(lists=(a_list(500, identity(), *seen),))
    assert world.upstreams() == {}
    last = a_key("s130")
    emptied: list[str] = []

    def plan_the_last() -> None:
        """What a zone's writer does where a foreign set has gone."""
        desk.reconciler.without_conflicts({last: frozenset({Name("Z1", "nobody.example.com")})})
        emptied.extend(name for name, nodes in world.upstreams().items() if not nodes)

    desk.ledger.lock = lock = Interrupted(plan_the_last)
    desk.record(lists=(a_list(500, *pods, resource=SLICES),))
    assert lock.turns >= 4
    assert emptied == []
    assert world.upstreams()["prod/shop/s130/80/TCP"] == ["10.2.0.130:8080"]
    # And what was planned meanwhile by others is no reason to doubt the list.
    checkpoints = desk.listeners.checkpoints("prod")
    assert {r: c.resource_version for r, c in checkpoints.items()} == {SERVICES: 500, SLICES: 500}
    assert all(checkpoint.basis == desk.ledger.basis for checkpoint in checkpoints.values())
    assert all(view.whole and not view.unsure for view in desk.ledger.listeners.values())


def test_i5_view_that_went_stale_while_its_list_was_recorded_is_not_whole_before_the_next_list() -> None:
    world = World()
    desk = world.session()
    told = RunnerEvents(
        opened=lambda _states, _since: None,
        promoted=lambda _keys: None,
        error=lambda *_: None,
        not_master=lambda _error: None,
        progress=lambda *_: None,
    )
    runner = ClusterRunner(desk.ledger, desk.reconciler, cast(Connector, None), told, world.clock, 1.0)
    runner._stale(SERVICES)  # its version is too old: it lists
    lock = desk.ledger.lock
    desk.ledger.lock = Interrupted(lambda: runner._stale(SERVICES))
    runner._record(desk.window(lists=(a_list(5_000, identity(), *services()),)), {}, flush=False)
    desk.ledger.lock = lock
    view = desk.ledger.listeners[SERVICES]
    assert (view.whole, view.checkpoint) == (False, None)
    runner._resumed(SERVICES)  # the watch that follows the second list, which nobody has recorded yet
    assert not view.whole
    runner._record(desk.window(lists=(a_list(6_000, identity(), *services()),)), {}, flush=False)
    runner._resumed(SERVICES)
    assert (view.whole, view.checkpoint is not None) == (True, True)


def test_few_changes_in_a_long_list_fill_few_transactions() -> None:
    world = World()
    desk = world.session()
    begin(desk, services(count=600))
    desk.land()
    world.store.calls.clear()
    seen = services(count=600)
    for n in range(0, 600, 20):
        seen[n] = replace(services(number=2, count=n + 1)[n], resource_version=2_000 + n)
    anew(desk, seen)
    sizes = [len(call.actions) for call in world.store.calls if call.operation == "transact_write_items"]
    # 30 keys and their marks, spread over 12 sections; a fence check, an audit item, identity and checkpoint.
    assert sum(sizes) <= 75
    assert len(sizes) == 1


def test_i1_list_of_an_old_configuration_is_not_recorded_under_the_new_one() -> None:
    """Its checkpoint would say that what the new configuration asks for has been listed: a successor would never list it."""
    world = World()
    desk = world.session()
    desk.begin(*services(count=3), version=1_999)
    changed: list[bool] = []

    def change() -> None:
        if not changed:
            changed.append(True)
            desk.configure(a_config(revision=2))

    reconciler, content = desk.reconciler, desk.window(lists=(a_list(3_000, identity(), *services(number=2)),))
    desk.ledger.lock = Interrupted(change)
    with pytest.raises(SupersededError):
        reconciler.record(content)
    assert changed
    stored = desk.listeners.checkpoints("prod")[SERVICES]
    assert (stored.resource_version, stored.basis.revision) == (1_999, 1)
    assert not any(view.whole for view in desk.ledger.listeners.values())
    with pytest.raises(SupersededError):
        reconciler.record(desk.window(services(number=3, count=1)[0]))
    assert desk.ledger.listeners[SERVICES].seen_version == 1_999
