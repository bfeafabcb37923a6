"""The removal of a cluster: outputs go or stay, as was asked for; nothing that is kubesync's own stays behind."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.by_hand.desk import Desk, World
from harness.fakes.memory_store import NoFaults
from harness.fakes.store_faults import StoreFaults
from harness.seen.builders import SLICES, a_config, a_key, a_list, a_service, an_endpoints, identity, saw
from kubesync.aws.dynamodb.store import AUDIT
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable, OnDelete
from kubesync.cluster.keys.outcomes import Outcome
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import RecordChange
from kubesync.domain.errors import StoreBusyError
from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import Policy
from kubesync.operations.removal import Removal
from kubesync.session.master import Master

WAITED_FOR = "x.example.com"
SERVICE = a_service(annotations={"hostname": WAITED_FOR})


class RemovedCluster:
    """Cluster ``prod`` with one published service and two slices, marked as being deleted."""

    def __init__(self, **changes: Any) -> None:
        self.world = World(a_config(revision=0), a_config(name="other"))
        self.registry = ClusterTable(self.world.store)
        registered = self.registry.put(self.world.configs[0])
        desk = self.world.session()
        desk.configure(registered)
        desk.begin(saw(SERVICE, 5), slices=[saw(an_endpoints(f"10.1.0.{n}"), 6, f"web-{n}") for n in (1, 2)])
        desk.land()
        desk.record(saw(SERVICE, 8, "late"), cluster="prod")
        self.config = self.registry.put(registered.model_copy(update={"deleting": True, **changes}))
        self.desk = self.world.session()
        self.desk.configure(self.config)
        self.told: list[ServiceKey] = []
        self.under_way: list[Future[None]] = []

    def removal(self, config: ClusterConfig | None = None) -> Removal:
        desk: Desk = self.desk
        master = SimpleNamespace(
            reconcilers=desk.reconcilers,
            ledgers=desk.ledgers,
            tables=desk.tables,
            fenced_writer=desk.fenced_writer,
            clusters=self.registry,
            follow_up=lambda cluster, recorded: self.told.extend(recorded.opened),
            reconciler=desk.reconciler_of,
            parts=SimpleNamespace(clock=self.world.clock),
            batches_ended=lambda cluster: self.under_way,
        )
        return Removal(cast(Master, master), config or self.config)

    def step(self, removal: Removal) -> bool:
        """One step, however long it takes; a little later than the last one."""
        self.world.clock.advance(6)
        return removal.step(self.world.clock.monotonic() + 1)

    def untouched(self) -> int:
        """Keys whose objects are still remembered."""
        return sum(bool(state.parts) for state in self.desk.tables.state.load_all("prod"))

    def left(self) -> list[str]:
        """What is still stored for the cluster, audit, fences and removed upstreams aside."""
        return sorted(
            f"{key.table}/{key.partition}/{key.sort}"
            for key, item in self.world.store.dump().items()
            if key.table != AUDIT and key.sort != "fence" and not item.get("deleted")
        )


def test_outputs_go_first_and_then_everything_that_is_known_of_the_cluster() -> None:
    case = RemovedCluster()
    removal = case.removal()
    assert case.step(removal) is False, "its record sets still stand in the zone"
    assert case.told == [a_key()]
    assert case.world.upstreams() == {}
    assert case.step(removal) is False
    case.desk.land()
    assert case.step(removal) is True
    assert case.left() == []


def test_outputs_stay_where_that_was_asked_for_and_nothing_else_does() -> None:
    case = RemovedCluster(on_delete=OnDelete.RETAIN)
    removal = case.removal()
    assert case.step(removal) is True
    assert case.told == []
    assert case.world.upstreams() == {
        "prod/shop/late/80/TCP": [],
        "prod/shop/web/80/TCP": ["10.1.0.1:8080", "10.1.0.2:8080"],
    }
    assert [place for place in case.left() if not place.startswith("upstreams/")] == []


@pytest.mark.parametrize("policy", [Policy.UPSERT_ONLY, Policy.CREATE_ONLY])
def test_policy_that_forbids_deletions_forbids_them_here_too(policy: Policy) -> None:
    case = RemovedCluster(policy=policy)
    assert case.step(case.removal()) is True
    assert case.told == []
    assert case.world.upstreams()["prod/shop/web/80/TCP"] == ["10.1.0.1:8080", "10.1.0.2:8080"]


def test_next_session_goes_on_with_a_removal_that_was_not_finished() -> None:
    case = RemovedCluster()
    case.step(case.removal())
    case.desk = case.world.session()
    case.desk.configure(case.config)
    removal = case.removal()
    assert case.step(removal) is False
    case.desk.land()
    assert case.step(removal) is True
    assert case.left() == []


def test_configuration_that_was_registered_anew_meanwhile_is_not_forgotten() -> None:
    case = RemovedCluster(on_delete=OnDelete.RETAIN)
    anew = case.registry.put(case.config.model_copy(update={"deleting": False}))
    with pytest.raises(StaleStateError):
        case.step(case.removal())
    assert case.registry.get("prod") == anew


def test_name_that_a_key_of_another_cluster_waits_for_is_given_to_it() -> None:
    case = RemovedCluster()
    desk = case.desk
    desk.record(lists=(a_list(10, identity(), saw(SERVICE, 5)), a_list(10, resource=SLICES)), cluster="other")
    removal = case.removal()
    case.step(removal)
    desk.land()
    case.step(removal)
    assert case.world.claims()[WAITED_FOR] == "other/shop/web"


def test_steps_are_short_however_many_keys_there_are() -> None:
    case = RemovedCluster()
    desk = case.world.session()
    desk.configure(case.config.model_copy(update={"deleting": False}))
    for number in range(150):
        desk.record(saw(SERVICE, 20 + number, f"s{number}"), cluster="prod")
    case.desk = case.world.session()
    case.desk.configure(case.config)
    removal = case.removal()
    full = case.untouched()
    assert full > 150
    assert removal.step(case.world.clock.monotonic()) is False, "no time at all: some of the keys"
    assert full - 50 <= case.untouched() < full
    for _ in range(4):
        removal.step(case.world.clock.monotonic())
    assert case.untouched() == 0


def test_what_is_left_is_asked_for_with_one_small_query() -> None:
    case = RemovedCluster()
    removal = case.removal()
    case.step(removal)
    case.step(removal)
    before = len(case.world.store.calls)
    assert removal.step(case.world.clock.monotonic() + 1) is False
    # The buckets one after the other until one holds something; each query reads one item.
    calls = case.world.store.calls[before:]
    assert {call.operation for call in calls} == {"query"}
    assert len(calls) <= 16


def test_a_key_that_a_batch_brought_back_goes_before_the_cluster_is_forgotten() -> None:
    case = RemovedCluster()
    desk = case.desk
    key = a_key()
    state = desk.state()
    assert state.applied
    removal = case.removal()
    case.step(removal)
    desk.land()
    # A batch that was made before has landed only now: its set is ours, and has to go.
    under_way: Future[None] = Future()
    case.under_way.append(under_way)
    assert case.step(removal) is False
    assert case.step(removal) is False, "nothing is forgotten while a batch of the cluster is under way"
    assert case.registry.get("prod") is not None
    late = [Outcome(Unit(key, (RecordChange(k, None, s),)), landed=True) for k, s in state.applied.items()]
    desk.outcomes.close(late, "late")
    under_way.set_result(None)
    for _ in range(3):
        assert case.step(removal) is False
    desk.land()
    assert case.step(removal) is True
    assert case.left() == []


def test_step_does_not_wait_for_whoever_holds_the_cluster() -> None:
    case = RemovedCluster()
    removal = case.removal()
    lock = case.desk.ledgers["prod"].lock
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            let_go.wait(120)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(120)
    try:
        assert removal.step(case.world.clock.monotonic()) is False
        assert case.told == []
    finally:
        let_go.set()
        holder.join(120)
    assert case.step(removal) is False
    assert case.told == [a_key()]


def test_step_gives_up_while_the_table_is_busy_and_goes_on_with_the_next() -> None:
    case = RemovedCluster()
    removal = case.removal()
    case.world.store.faults = StoreFaults()
    case.world.store.faults.fail(
        lambda call: call.operation == "transact_write_items", StoreBusyError("busy"), times=None
    )
    with pytest.raises(StoreBusyError):
        case.step(removal)
    case.world.store.faults = NoFaults()
    assert case.step(removal) is False
    assert case.told == [a_key()]
    case.desk.land()
    assert case.step(removal) is True
