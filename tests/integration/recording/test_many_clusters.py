"""A zone in which more clusters publish than one transaction can check the fences of, and of which some are busy."""

from __future__ import annotations

import threading

import pytest

from harness.by_hand.zone_bench import EPOCH, ZONE, ZoneBench
from harness.fakes.memory_store import Call
from kubesync.aws.dynamodb.store import Check, Key
from kubesync.aws.tables.control.fences import fence_key, shard_fence_key
from kubesync.aws.tables.control.inflight import Inflight
from kubesync.domain.batches import Unit, units_of
from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import Policy, changes_of

CLUSTERS = [f"c{n:03d}" for n in range(150)]


def a_zone_of_many(*, settled: bool = True) -> ZoneBench:
    """Each cluster wants one record set in the zone."""
    bench = ZoneBench(settled=settled)
    for name in CLUSTERS:
        bench.serve(name)
    return bench


def queue_all(bench: ZoneBench) -> None:
    bench.writer.add(ServiceKey(name, "default", "web") for name in CLUSTERS)


def checked(call: Call) -> set[Key]:
    return {action.key for action in call.actions if isinstance(action, Check)}


def changing(bench: ZoneBench, prefix: str) -> list[Call]:
    """Transactions that change an item of the control table in a partition that begins so."""
    return [
        call
        for call in bench.store.calls
        if any(a.key.partition.startswith(prefix) and not isinstance(a, Check) for a in call.actions)
    ]


def test_keys_of_150_clusters_that_are_open_at_once_all_land() -> None:
    bench = a_zone_of_many()
    queue_all(bench)
    bench.run()
    assert len(bench.zone.sets()) == 150
    assert [key for name in CLUSTERS for key, _ in bench.state_table.open_keys(name)] == []
    assert bench.announced() == ""
    assert bench.writer.report.batches == 2
    # I2: the fences of all clusters whose keys they carry.
    announced = [call for call in changing(bench, "inflight#") if len(checked(call)) > 5]
    assert [checked(call) for call in announced] == [
        {fence_key(name) for name in CLUSTERS[:80]},
        {fence_key(name) for name in CLUSTERS[80:]},
    ]
    assert max(len(call.actions) for call in bench.store.calls) <= 100


def test_batch_of_150_clusters_that_was_in_flight_is_closed_after_an_unclean_end() -> None:
    """As an older release may have left it, or one with other limits."""
    bench = a_zone_of_many(settled=False)
    units: list[Unit] = []
    for name in CLUSTERS:
        key = ServiceKey(name, "default", "web")
        state = bench.state_table.load([key])[key]
        units += units_of(key, changes_of(state, Policy.SYNC))
        bench.zone.by_hand("CREATE", f"{name}.example.com", "A", "10.0.0.1")
    _, actions = bench.inflight.put(ZONE.id, None, Inflight("earlier", EPOCH - 1, tuple(units)), "t")
    bench.store.transact(actions, "t")
    bench.journal_of(batch="earlier")
    bench.run()
    assert [key for name in CLUSTERS for key, _ in bench.state_table.open_keys(name)] == []
    assert (bench.announced(), bench.writer.report.batches, len(bench.zone.sets())) == ("", 0, 150)


@pytest.mark.parametrize("what", ["a problem is noted", "a zone is settled"])
def test_what_belongs_to_the_zone_checks_one_fence_and_waits_for_no_cluster(what: str) -> None:
    bench = a_zone_of_many(settled=False)
    held, done = threading.Event(), threading.Event()

    def record_for_long() -> None:
        with bench.means.ledgers["c007"].lock:
            held.set()
            assert done.wait(120)

    busy = threading.Thread(target=record_for_long)
    busy.start()
    try:
        assert held.wait(120)
        if what == "a problem is noted":
            bench.journal_of(owner="somebody-else")
            bench.remember_inflight()
            bench.run()
            written, writes = changing(bench, "zones#"), 1
            assert [problem.zone_id for problem in bench.problems.current()] == [ZONE.id]
        else:
            bench.remember_inflight("never landed")
            bench.store.calls.clear()
            bench.run()
            written, writes = (
                changing(bench, "inflight#"),
                2,
            )  # the swap is announced, then what was in flight is cleared
            assert bench.announced() == ""
        assert [checked(call) for call in written] == [{shard_fence_key("0")}] * writes
    finally:
        done.set()
        busy.join(120)
