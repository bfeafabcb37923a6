"""A take-over asks about many clusters at the same time, or in one request: what it takes does not grow with their number."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import cast

import pytest

from harness.fakes.memory_store import Call, MemoryStore, NoFaults
from harness.fakes.store_faults import StoreFaults
from harness.waiting import PATIENCE_SECONDS
from kubesync.actors.parallel import ParallelMap
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import CONTROL
from kubesync.aws.route53.zones import ZoneClient
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable, ZoneReference
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.listeners import Basis, Checkpoint, ListenerTable
from kubesync.aws.tables.state import OPEN_PARTITIONS, StateTable
from kubesync.cluster.ports import Connector
from kubesync.domain.errors import StoreBusyError, StoreUnavailableError
from kubesync.domain.objects import Resource, ServiceKey
from kubesync.domain.report import SessionReport
from kubesync.domain.state import KeyState, OpenMark
from kubesync.operations.ports import MasterParts
from kubesync.session.lease_keeper import LeaseKeeper, LeaseTimes
from kubesync.session.master import Master
from kubesync.settings import Settings

CLUSTERS = [f"c{n:02d}" for n in range(50)]


class EightAtOnce(NoFaults):
    """Reads of open keys take effect only once eight of them are under way; counts how many there are at a time."""

    def __init__(self) -> None:
        self.under_way = 0
        self.most = 0
        self._changed = threading.Condition()

    def before(self, call: Call) -> None:
        if "#open#" in call.partition:
            with self._changed:
                self.under_way += 1
                self.most = max(self.most, self.under_way)
                self._changed.notify_all()
                assert self._changed.wait_for(lambda: self.most >= 8, PATIENCE_SECONDS), self.most

    def after(self, call: Call) -> None:
        if "#open#" in call.partition:
            with self._changed:
                self.under_way -= 1


def a_store(clusters: list[str]) -> MemoryStore:
    """As a session has left it: checkpoints, identities, and one open key in every tenth cluster."""
    store = MemoryStore(clock=ThreadScheduler())
    registry, states = ClusterTable(store), StateTable(store)
    for number, name in enumerate(clusters):
        zones = (ZoneReference(id="Z1", name="example.com"),)
        server = f"https://{name}.example.org"
        registry.put(ClusterConfig(name=name, server=server, domain=f"{name}.example.com", zones=zones))
        basis = Basis(1, server, 2)
        for resource in (Resource.SERVICES, Resource.ENDPOINTSLICES):
            checkpoint = Checkpoint(100 + number, 1, basis, 1)
            store.transact([ListenerTable.put_checkpoint(name, resource, checkpoint, "t")], f"{name}-{resource.value}")
        store.transact([ListenerTable.put_identity(name, f"uid-{name}")], f"{name}-identity")
        if number % 10 == 0:
            key = ServiceKey(name, "default", "web")
            _, actions = states.put(KeyState(key), KeyState(key, opened=OpenMark(1, 4e9, "later")), "t")
            store.transact(actions, f"{name}-key")
    store.calls.clear()
    return store


@contextmanager
def a_master(store: MemoryStore) -> Iterator[Master]:
    clock = ThreadScheduler()
    keeper = LeaseKeeper(LeaseTable(store, "0"), "session", LeaseTimes(), clock)
    _, lease = keeper.acquire(lambda: True)
    parts = MasterParts(
        store,
        cast(ZoneClient, None),
        cast(Connector, SimpleNamespace(observe=None)),
        Settings(deployment="test"),
        clock,
    )
    master = Master(parts, keeper, lease.epoch, SessionReport("session"), lambda *_: None, lambda *_: None)
    master.deadline = clock.monotonic() + 60
    store.calls.clear()
    try:
        yield master
    finally:
        if master.pool is not None:
            master.pool.drain(clock.monotonic() + PATIENCE_SECONDS)


def test_reads_of_many_clusters_overlap_and_are_bounded() -> None:
    store = a_store(CLUSTERS)
    with a_master(store) as master:
        store.faults = abreast = EightAtOnce()
        master.take_over(clean=True)
        assert 8 <= abreast.most <= 16
        assert master.ledgers.keys() == set(CLUSTERS)


@pytest.mark.parametrize("count", [1, 25, 50])
def test_take_over_asks_for_one_transaction_and_few_reads(count: int) -> None:
    store = a_store(CLUSTERS[:count])
    with a_master(store) as master:
        master.take_over(clean=True)
        asked = list(store.calls)
    operations = [call.operation for call in asked]
    assert operations.count("transact_write_items") == 1
    # Checkpoints and identities of 25 clusters with each; and the states of open keys.
    assert operations.count("batch_get_item") == (count + 24) // 25 + (count + 9) // 10
    queues = [call for call in asked if "#open#" in call.partition]
    assert len(queues) == OPEN_PARTITIONS * count
    # The registry, and what there is one of, however many clusters there are.
    assert operations.count("query") - len(queues) <= 3
    assert operations.count("get_item") <= 3


def test_what_was_remembered_is_taken_over() -> None:
    store = a_store(CLUSTERS)
    with a_master(store) as master:
        master.take_over(clean=True)
        ledger = master.ledgers["c42"]
        assert ledger.identity == "uid-c42"
        found = {view.checkpoint.resource_version for view in ledger.listeners.values() if view.checkpoint is not None}
        assert found == {142}
        assert master.fenced == set(CLUSTERS)


def test_i2_no_state_is_read_before_all_fences_are_raised() -> None:
    store = a_store(CLUSTERS)
    with a_master(store) as master:
        master.take_over(clean=False)
        asked = list(store.calls)
    fenced = [n for n, call in enumerate(asked) if any(action.key.sort == "fence" for action in call.actions)]
    raised = {action.key.partition for n in fenced for action in asked[n].actions if action.key.sort == "fence"}
    assert raised == {"lease#0", *(f"cluster#{name}" for name in CLUSTERS)}
    before = asked[: fenced[-1]]
    assert {(call.operation, call.tables, call.partition) for call in before} == {("query", (CONTROL,), "clusters")}


def test_read_that_is_throttled_is_repeated_and_one_that_fails_ends_the_take_over() -> None:
    store = a_store(CLUSTERS)
    faults = StoreFaults()
    faults.fail(lambda call: call.partition == "c33#open#2", StoreBusyError("throttled"), times=2)
    with a_master(store) as master:
        store.faults = faults
        master.take_over(clean=True)
        assert master.queues_taken == set(CLUSTERS)
    faults.fail(lambda call: call.partition == "c33#open#2", StoreUnavailableError("no such table"))
    with a_master(a_store(CLUSTERS)) as master:
        cast(MemoryStore, master.parts.store).faults = faults
        with pytest.raises(StoreUnavailableError):
            master.take_over(clean=True)


def test_parallel_map_with_one_thread_does_everything_in_the_callers_own_and_in_order() -> None:
    threads: list[threading.Thread] = []

    def call(thing: int) -> int:
        threads.append(threading.current_thread())
        return thing * thing

    assert ParallelMap(ThreadScheduler(), 1)(call, [3, 1, 2]) == [9, 1, 4]
    assert threads == [threading.current_thread()] * 3
    assert ParallelMap(ThreadScheduler(), 2)(call, [3, 1, 2]) == [9, 1, 4]
    assert threading.current_thread() not in threads[3:]
