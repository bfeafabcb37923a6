"""A batch of several clusters: each closes its own keys, and the inflight item is cleared with the last of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from harness.by_hand.zone_bench import EPOCH, ZONE, ZoneBench
from harness.fakes.fencing import raise_fence, raise_shard_fence
from harness.fakes.memory_store import Call
from harness.fakes.store_faults import writes_to
from kubesync.actors.parallel import ParallelMap
from kubesync.aws.dynamodb.store import Check, Key, Put
from kubesync.aws.tables.control.fences import fence_key
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.outcomes import Outcome, Outcomes
from kubesync.domain.batches import units_of
from kubesync.domain.errors import StoreBusyError
from kubesync.domain.plan import Policy, changes_of
from kubesync.domain.state import KeyState
from kubesync.zone.writer import ZoneWriter

CLUSTERS = ("a", "b", "c")


def a_batch(bench: ZoneBench) -> list[KeyState]:
    """One open key of each cluster, queued."""
    states = [bench.serve(name) for name in CLUSTERS]
    bench.writer.add(state.key for state in states)
    bench.store.calls.clear()
    return states


def place_of(bench: ZoneBench, state: KeyState) -> Key:
    """Where a key is stored."""
    _, actions = bench.state_table.put(state, state, "t")
    return next(action.key for action in actions if isinstance(action, Put) and "#open#" not in str(action.key.sort))


def closings(bench: ZoneBench, states: Sequence[KeyState]) -> list[Call]:
    """Transactions that write keys."""
    places = {place_of(bench, state) for state in states}
    return [call for call in bench.store.calls if any(action.key in places for action in call.actions)]


def fences(call: Call) -> set[Key]:
    return {action.key for action in call.actions if isinstance(action, Check)}


def names_inflight(call: Call) -> bool:
    return any(action.key.partition.startswith("inflight#") for action in call.actions)


def take_over(bench: ZoneBench) -> None:
    """The next master begins, and knows nothing of its predecessor but what is stored."""
    bench.fenced_writer.epoch = EPOCH + 1
    raise_shard_fence(bench.store, EPOCH + 1)
    for name, ledger in bench.ledgers.items():
        raise_fence(bench.store, name, EPOCH + 1)
        ledger.forget()


def open_clusters(bench: ZoneBench) -> list[str]:
    return [name for name in CLUSTERS if list(bench.state_table.open_keys(name))]


def test_each_cluster_closes_under_its_own_fence_and_the_last_one_clears_the_inflight_item() -> None:
    bench = ZoneBench()
    states = a_batch(bench)
    bench.run()
    closed = closings(bench, states)
    assert [fences(call) for call in closed] == [{fence_key(name)} for name in CLUSTERS]
    assert [names_inflight(call) for call in closed] == [False, False, True]
    assert (open_clusters(bench), bench.announced()) == ([], "")


def test_i1_crash_between_the_closings_of_two_clusters_is_settled_by_the_next_session() -> None:
    bench = ZoneBench()
    states = a_batch(bench)
    bench.faults.fail(writes_to(place_of(bench, states[1])), StoreBusyError("throttled"), times=None)
    bench.fenced_writer.until_monotonic = bench.clock.monotonic()
    with pytest.raises(StoreBusyError):
        bench.writer.step()
    assert len(bench.zone.sets()) == 3
    assert open_clusters(bench) == ["b", "c"]
    assert bench.announced() != "", "what is not closed yet is still under way"
    bench.faults.clear()
    bench.fenced_writer.until_monotonic = float("inf")
    take_over(bench)
    bench.writer = ZoneWriter(ZONE.id, bench.means, settled=False, zone=ZONE)
    bench.writer.add(state.key for state in states)
    bench.run()
    assert (open_clusters(bench), bench.announced()) == ([], "")
    assert (bench.writer.report.batches, bench.writer.report.refused) == (0, 0)
    assert len(bench.zone.sets()) == 3


def test_refusal_that_one_cluster_has_recorded_waits_while_another_cluster_is_busy() -> None:
    bench = ZoneBench()
    states = [bench.serve(name, "not an address") for name in ("a", "b")]
    bench.writer.add(state.key for state in states)
    bench.faults.fail(writes_to(place_of(bench, states[1])), StoreBusyError("throttled"), times=None)
    bench.fenced_writer.until_monotonic = bench.clock.monotonic()
    with pytest.raises(StoreBusyError):
        bench.writer.step()
    bench.faults.clear()
    bench.fenced_writer.until_monotonic = float("inf")
    for _ in range(4):
        bench.writer.step()
    marks = [bench.state_table.load([state.key])[state.key].opened for state in states]
    assert [mark.attempts for mark in marks if mark is not None] == [1, 1]


def test_what_lands_of_clusters_that_nobody_may_close_here_is_under_way_no_more() -> None:
    bench = ZoneBench()
    state = bench.serve("a")
    bench.writer.add([state.key])
    bench.faults.do(
        lambda call: call.operation == "transact_write_items" and names_inflight(call),
        lambda _call: bench.ledgers.clear(),
        after=True,
    )
    bench.run()
    assert bench.announced() == ""
    assert len(bench.zone.sets()) == 1


def test_busy_cluster_does_not_hold_up_the_closing_of_the_others() -> None:
    bench = ZoneBench()
    states = a_batch(bench)

    def committer(name: str) -> Committer:
        return Committer(bench.ledgers[name], bench.tables, bench.fenced_writer, bench.clock, set(CLUSTERS))

    at_once = ParallelMap(bench.clock, 4)
    outcomes = Outcomes(committer, bench.clock.random, lambda _keys: None, at_once)
    landed = [
        Outcome(unit, landed=True) for state in states for unit in units_of(state.key, changes_of(state, Policy.SYNC))
    ]
    closing = threading.Thread(target=outcomes.close, args=(landed, "settled"))
    closed = threading.Event()
    bench.faults.do(writes_to(place_of(bench, states[1])), lambda _call: closed.set(), after=True)
    with bench.ledgers["a"].lock:
        closing.start()
        assert closed.wait(20), "b waits for a"
        assert open_clusters(bench) == ["a", "c"]
    closing.join(20)
    assert open_clusters(bench) == []
