"""A full zone is one condition of the zone: deletions go, what would add sets waits, and a few try whether there is room."""

from __future__ import annotations

from kubesync.aws.dynamodb.store import AUDIT
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet
from kubesync.domain.objects import ServiceKey
from kubesync.zone.full_zone import FullZone
from kubesync.zone.waits import Reason, Waits
from kubesync_local.standins.route53.zone.model import Limits
from support.zone_bench import ZoneBench

BESIDES = 2 + 1  # SOA and NS, and the journal
ONE = RecordSet(60, ("10.0.0.1",))


def a_full_bench(room: int, names: int) -> ZoneBench:
    """A zone with room for so many sets of ours, and so many that are wanted."""
    bench = ZoneBench(limits=Limits(sets_of_zone=BESIDES + room))
    for number in range(names):
        bench.want(f"s{number:03d}", {f"s{number:03d} A": ["10.0.0.1"]})
    bench.run()
    return bench


def a_unit(name: str, *, comes: bool = False, goes: bool = False) -> Unit:
    key = RecordKey("Z1", f"{name}.example.com", "A")
    change = RecordChange(key, ONE if not comes else None, ONE if not goes else None)
    return Unit(ServiceKey("prod", "default", name), (change,))


def test_i4_what_waits_for_room_is_no_failure_of_its_key() -> None:
    bench = a_full_bench(0, 300)
    assert bench.zone.sets() == {}
    marks = dict(bench.state_table.open_keys("prod"))
    assert len(marks) == 300
    assert {(mark.attempts, mark.retry_at, mark.reason) for mark in marks.values()} == {(0, 0.0, "")}
    assert [key for key in bench.store.dump() if key.table == AUDIT] == []
    (problem,) = bench.problems.current()
    assert problem.problem.startswith("the zone is full: ")


def test_a_full_zone_is_tried_with_one_creation_at_a_time_and_more_and_more_seldom() -> None:
    bench = a_full_bench(0, 300)
    before = len(bench.zone.sent)
    bench.run(seconds=3600)
    probes = bench.zone.sent[before:]
    # After 5, 10, 20 .. seconds, at most 5 minutes: 16 within the hour, give or take what the first hour holds.
    assert 10 <= len(probes) <= 20
    assert {sum(change.action == "CREATE" for change in batch) for batch in probes} == {2}, "one, and the journal"


def test_room_that_is_left_is_filled_at_once() -> None:
    bench = a_full_bench(21, 300)
    assert len(bench.zone.sets()) == 21
    # Refused whole, then 1, 2, 4, 8; 16 refused; 1, 2, then 4 refused, and so on.
    assert len(bench.zone.sent) <= 20


def test_all_go_once_there_is_room_again() -> None:
    bench = ZoneBench(limits=Limits(sets_of_zone=BESIDES + 80))
    for number in range(80):
        bench.zone.by_hand("CREATE", f"f{number}.example.com", "A", "192.0.2.1")
    for number in range(80):
        bench.want(f"s{number:03d}", {f"s{number:03d} A": ["10.0.0.1"]})
    bench.run()
    for number in range(80):
        bench.zone.by_hand("DELETE", f"f{number}.example.com", "A", "192.0.2.1")
    before = len(bench.zone.sent)
    bench.run(seconds=60)
    assert len(bench.zone.sets()) == 80
    assert (bench.open(), bench.problems.current()) == ({}, [])
    assert len(bench.zone.sent) - before <= 12


def test_a_deletion_of_ours_makes_room_at_once() -> None:
    bench = a_full_bench(3, 5)
    waiting = sorted(bench.open())
    assert len(waiting) == 2
    (gone, *_) = sorted(bench.zone.sets())
    bench.run(seconds=1000)  # the next try is minutes away
    bench.want(gone.removesuffix(" A"), {})
    bench.run()
    assert len(bench.zone.sets()) == 3
    assert len(bench.open()) == 1


def test_a_service_that_waited_for_room_and_went_is_not_created() -> None:
    bench = a_full_bench(1, 3)
    for name in bench.open():
        bench.want(name, {})
    sent = len(bench.zone.sent)
    bench.run(seconds=1000)
    assert (len(bench.zone.sets()), len(bench.zone.sent)) == (1, sent)
    assert bench.problems.current() == []


def test_a_problem_that_an_earlier_session_noted_is_taken_back() -> None:
    bench = ZoneBench()
    bench.put(bench.problems.put("Z1", "the zone is full", 1.0, "t"))
    bench.want("a", {"a A": ["10.0.0.1"]})
    bench.run()
    assert bench.problems.current() == []


# --- how many may try ---


def test_share_doubles_while_sets_land_and_is_one_after_a_refusal() -> None:
    waits = Waits()
    full = FullZone("limit", waits)
    assert full.share(0.0) == 1
    full.landed([a_unit("a", comes=True)], 0.0)
    full.landed([a_unit("b", comes=True)], 0.0)
    assert full.share(0.0) == 4
    full.refused([a_unit(name, comes=True) for name in "cdef"], 0.0)
    assert full.share(0.0) == 1


def test_refused_probe_waits_longer_each_time_and_what_goes_ends_that() -> None:
    waits = Waits()
    full = FullZone("limit", waits)
    delays = []
    for _ in range(8):
        full.refused([a_unit("a", comes=True)], 100.0)
        assert full.share(100.0) == 0
        delays.append(waits.earliest(Reason.FULL) - 100.0)
    assert delays == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]
    full.landed([a_unit("b")], 100.0)
    assert full.share(100.0) == 0, "a change makes no room"
    full.landed([a_unit("b", goes=True)], 100.0)
    assert full.share(100.0) == 1
    full.refused([a_unit("a", comes=True)], 100.0)
    assert waits.earliest(Reason.FULL) == 105.0
