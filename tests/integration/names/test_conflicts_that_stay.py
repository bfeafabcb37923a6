"""Names where somebody else's sets stand and stay: hundreds of them cost next to nothing, and heal when a person mends them (I3, I6)."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from harness.by_hand.conflict_bench import ConflictBench, name_of
from harness.by_hand.zone_bench import ZONE
from harness.fakes.memory_store import Call, NoFaults
from harness.seen.builders import a_config, saw
from harness.stack import Stack, a_stack
from kubesync.aws.dynamodb.store import STATE, Delete, Update
from kubesync.aws.tables.audit import Span
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.state import StateTable, state_key
from kubesync.cluster.keys.outcomes import Outcome
from kubesync.domain.batches import Unit, units_of
from kubesync.domain.errors import StoreBusyError, ZoneThrottledError
from kubesync.domain.plan import changes_of
from kubesync.domain.state import KeyState, Name

SESSION_SECONDS = 840.0
HOUR = 3600.0


def sessions(bench: ConflictBench, seconds: float) -> None:
    """Sessions one after the other, for so long."""
    while seconds > 0:
        bench.run(min(seconds, SESSION_SECONDS))
        bench.hand_over()
        seconds -= SESSION_SECONDS


def audited(bench: ConflictBench, service: str) -> list[str]:
    """What was refused of a service's names, the oldest first."""
    now = bench.world.clock.epoch()
    rows = list(bench.desk.audit.read_changes("prod", now, Span(now - 86_400, now)))
    return [row["message"] for row in reversed(rows) if row["kind"] == "refused" and row["service"].endswith(service)]


@pytest.fixture(scope="module")
def settled() -> ConflictBench:
    """320 names that have been in conflict for three hours."""
    bench = ConflictBench(320)
    sessions(bench, 3 * HOUR)
    bench.counts()
    return bench


@pytest.mark.thorough
def test_i6_conflicts_that_stay_are_looked_at_every_hour_with_few_requests_and_written_once(
    settled: ConflictBench,
) -> None:
    sessions(settled, 5 * SESSION_SECONDS)  # 4,200 s
    counts = settled.counts()
    assert len(settled.conflicts()) == 320
    assert 2 <= counts["lists"] <= 4, "a walk of 323 sets is 2 pages"
    assert counts["batches"] == 0
    assert counts["transact_write_items"] <= 2, "since when all were looked at"
    # By the two looks there can be: 320 claims. By each of five hand-overs: 320 states with their marks, and again by the queue.
    assert counts["batch_get_item"] <= 2 * 4 + 5 * 2 * 8
    assert audited(settled, "web-0007") == [
        (
            "web-0007.shop.svc.prod.example.com A stands there and is not ours (192.0.2.1): "
            "take it over (`kubesync recover`), remove it, or choose another name"
        )
    ]


@pytest.mark.thorough
def test_name_that_a_person_has_freed_is_published_within_two_hours_by_whatever_session(settled: ConflictBench) -> None:
    settled.free("web-0100", "web-0200")
    sessions(settled, 2 * HOUR)
    assert {"web-0100.shop.svc.prod A", "web-0200.shop.svc.prod A"} == {
        place for place, values in settled.zone.sets().items() if values == ("10.0.0.1",)
    }
    assert settled.conflicts() == {*settled.names} - {"web-0100", "web-0200"}


def test_sessions_that_run_now_and_then_look_as_well() -> None:
    bench = ConflictBench(3)
    sessions(bench, 3 * HOUR)
    bench.free("web-0001")
    for _ in range(5):  # a minute of every 35
        bench.world.clock.advance(2_040)
        bench.hand_over()
        bench.run(60.0)
    assert bench.conflicts() == {"web-0000", "web-0002"}


def test_clock_that_ran_ahead_puts_off_looks_for_two_hours_at_most() -> None:
    bench = ConflictBench(2)
    sessions(bench, 3 * HOUR)
    look = bench.means.problems.put_check(ZONE.id, bench.world.clock.epoch() + 24 * HOUR, "of a clock that ran ahead")
    bench.world.store.write(look)
    bench.free("web-0001")
    sessions(bench, 2 * HOUR)
    assert bench.conflicts() == {"web-0000"}


def test_news_of_a_key_and_a_person_who_asks_do_not_wait_for_the_hour() -> None:
    bench = ConflictBench(3)
    sessions(bench, 3 * HOUR)
    bench.free(*bench.names)
    bench.publish("web-0000", "10.0.0.9", 900)
    bench.run(2.0)
    assert bench.conflicts() == {"web-0001", "web-0002"}
    bench.writer.look_again([bench.key("web-0001")])
    bench.run(2.0)
    assert bench.conflicts() == {"web-0002"}


def test_person_who_asks_is_not_answered_from_what_was_read_before() -> None:
    bench = ConflictBench(40)  # more than are read by themselves: the zone is walked, and that believed for a minute
    bench.run(6.0)
    bench.counts()
    bench.free("web-0003")
    bench.writer.look_again([bench.key(name) for name in bench.names])
    bench.run(2.0)
    assert bench.conflicts() == {*bench.names} - {"web-0003"}


def test_other_foreign_set_is_a_change_and_is_audited() -> None:
    bench = ConflictBench(2)
    sessions(bench, 3 * HOUR)
    bench.free("web-0001")
    bench.zone.by_hand("CREATE", name_of("web-0001"), "CNAME", "elsewhere.example.net.")
    sessions(bench, 2 * HOUR)
    assert [message.split(" stands")[0] for message in audited(bench, "web-0001")] == [
        "web-0001.shop.svc.prod.example.com A",
        "web-0001.shop.svc.prod.example.com CNAME",
    ]
    assert len(audited(bench, "web-0000")) == 1


@pytest.mark.thorough
def test_lag_of_other_keys_is_that_of_a_zone_without_conflicts(settled: ConflictBench) -> None:
    for number in range(200):
        settled.publish("other", f"10.2.0.{number + 1}", 5_000 + number, settled.world.clock.monotonic())
        settled.run(30.0)
    assert len(settled.lags()) == 200
    # A batch takes 0.2 s, the walk of two pages that may be before it as much.
    assert max(settled.lags()) <= 0.6


# --- under faults ---


@pytest.mark.parametrize("names", [2, 40], ids=["one by one", "by a walk"])
def test_changes_go_out_while_route53_lets_nobody_read_what_is_in_conflict(names: int) -> None:
    bench = ConflictBench(names)
    bench.run(3.0)
    tries = count()

    def throttled(*_: str) -> Any:
        next(tries)
        raise ZoneThrottledError("Rate exceeded")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench.zone, "walk", throttled)
        patch.setattr(bench.zone, "read", throttled)
        bench.run(120.0)
        bench.publish("other", "10.2.0.1", 5_000, bench.world.clock.monotonic())
        bench.run(1.0)
        assert len(bench.lags()) == 1
        asked = next(tries)
        assert 4 <= asked <= 6, "every 30 seconds"
        assert bench.writer.report.throttled == asked
    bench.free(*bench.names)
    bench.run(60.0)
    assert bench.conflicts() == set()
    assert bench.zone.sets()["other.shop.svc.prod A"] == ("10.2.0.1",)


def test_key_that_somebody_else_wrote_holds_up_none_of_the_others_that_are_closed_with_it() -> None:
    bench = ConflictBench(120)
    bench.run(4.0)
    before = {state.key.name: state.opened for state in bench.desk.tables.state.load_all("prod")}
    # Another item than the one that was read: the transaction that holds it is refused.
    bench.world.store.write(Update(state_key(bench.key("web-0060")), add={"version": 1}))
    bench.run(12.0)
    after = {state.key.name: state.opened for state in bench.desk.tables.state.load_all("prod")}
    for name in bench.names:
        (was, now) = (before[name], after[name])
        assert was is not None
        assert now is not None
        assert now.attempts > was.attempts, name


@pytest.mark.parametrize("transaction", range(1, 5))
def test_i1_session_that_dies_between_two_transactions_of_a_look_loses_nothing(transaction: int) -> None:
    bench = ConflictBench(120)
    bench.run(4.0)
    bench.free("web-0001", "web-0119")

    class Busy(NoFaults):
        left = transaction

        def before(self, call: Call) -> None:
            if call.operation == "transact_write_items":
                self.left -= 1
                if self.left <= 0:
                    raise StoreBusyError("dies")

    bench.world.store.faults = Busy()
    bench.desk.fenced_writer.until_monotonic = 0.0
    bench.run(3.0)
    bench.world.store.faults = NoFaults()
    bench.hand_over(clean=False)
    bench.run(60.0)
    assert bench.conflicts() == {*bench.names} - {"web-0001", "web-0119"}
    assert len(bench.zone.sets()) == 120


def test_cluster_that_is_configured_anew_while_its_names_are_read_is_looked_at_afterwards() -> None:
    """Its reconciler is of the old configuration, and refuses. No fault of the zone, where others go on."""
    bench = ConflictBench(2)
    bench.run(4.0)
    bench.free(*bench.names)
    old = bench.desk.reconcilers["prod"]
    bench.desk.configure(a_config(srv=False))
    bench.desk.reconcilers["prod"], new = old, bench.desk.reconcilers["prod"]
    state = bench.desk.state("web-0000")
    assert bench.reclaimer.reclaim("Z1", [state]) == {}
    bench.desk.reconcilers["prod"] = new
    bench.run(10.0)
    assert bench.conflicts() == set()


def test_cluster_that_is_gone_before_what_was_read_is_closed_gets_no_state() -> None:
    bench = ConflictBench(2)
    bench.run(4.0)
    states = [bench.desk.state(name) for name in bench.names]
    outcomes = [conflict_of(state) for state in states]
    forget(bench)
    bench.desk.ledger.forget()
    bench.desk.outcomes.close(outcomes, "still foreign")
    assert [key for key in bench.world.items(STATE) if key.partition.startswith("prod#")] == []


def test_name_that_is_not_wanted_any_more_is_in_no_conflict() -> None:
    """It was planned anew while the batch was under way, or the name was being read."""
    bench = ConflictBench(1)
    late = conflict_of(bench.desk.state("web-0000"))
    bench.desk.record(saw(None, 500, "web-0000", deleted=True))
    bench.desk.outcomes.close([late], "refused")
    state = bench.desk.state("web-0000")
    assert (state.conflicts, state.problems, state.opened) == ({}, (), None)


def test_name_in_conflict_that_another_shard_waits_for_is_let_go_to_it() -> None:
    """Its master finds it by its own means: no note of ours may be written for a cluster that is not ours."""
    bench = ConflictBench(1)
    state = bench.desk.state("web-0000")
    claims = bench.desk.tables.claims
    name = Name("Z1", name_of("web-0000"))
    (claim,) = claims.read([name]).values()
    heir = replace(bench.key("web"), cluster="elsewhere")
    bench.desk.fenced_writer.run(["prod"], claims.wait(claim, heir, ""), bench.desk.fenced_writer.token())
    bench.run(4.0)
    assert {c.owner for c in claims.read([name]).values()} == {heir}
    assert bench.world.heirs() == []
    # It has the name, so the key waits for it like for any other.
    bench.run(10.0)
    state = bench.desk.state("web-0000")
    assert state.conflicts == {}
    assert state.waits == {name}


def conflict_of(state: KeyState) -> Outcome:
    (unit,) = units_of(state.key, changes_of(state, a_config().policy))
    return Outcome(Unit(state.key, unit.changes), conflict=True, reason="stands there")


def forget(bench: ConflictBench) -> None:
    """What a removal leaves of a cluster's state: nothing."""
    for key in list(bench.world.items(STATE)):
        if key.partition.startswith("prod#"):
            bench.world.store.write(Delete(key))


# --- the whole system ---


def test_i4_conflict_in_one_of_two_zones_holds_up_nothing_in_the_other_and_a_resync_looks_at_once() -> None:
    with a_stack() as stack:
        private = stack.add_zone("example.com", private=True)
        stack.by_hand("CREATE", "www.example.com", "A", "192.0.2.1")
        public = ZoneReference(id=stack.zone_id, name="example.com")
        stack.add_cluster(zones=(public, ZoneReference(id=private, name="example.com", private=True)))
        spec = {"clusterIP": "10.68.0.10", "ports": [{"port": 80}], "ipFamilies": ["IPv4"]}
        annotations = {"external-dns.kubernetes.io/hostname": "www.example.com"}
        stack.api.cluster.expose("default", "web", spec, annotations=annotations)
        running = stack.start()
        running.wait_for(lambda: stack.problems() == {"default/web": {"Conflict"}})
        running.wait_for(lambda: "www.example.com A" in stack.records(private))
        assert stack.records()["www.example.com A"]["values"] == ["192.0.2.1"]
        assert running.end().clean
        age(stack)
        stack.by_hand("DELETE", "www.example.com", "A", "192.0.2.1")
        stack.resync(ResyncRequest("test", "", dry_run=False, force=False, at_ms=0))
        assert stack.records()["www.example.com A"]["values"] == ["10.68.0.10"]
        assert stack.problems() == {}


def age(stack: Stack) -> None:
    """The key has been refused so often that it would be looked at in an hour."""
    table = StateTable(stack.store)
    for key, mark in list(table.open_keys("prod")):
        later = replace(mark, attempts=10, retry_at=stack.clock.epoch() + 3_600)
        stack.store.transact([table.mark_open(key, later)], "aged")
