"""A full zone is one condition of the zone: deletions go, what would add sets waits, and a few try whether there is room."""

from harness.deployment import Deployment
from kubesync.aws.tables.state import StateTable
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.zone.waits import FullZone
from kubesync_local.standins.route53.zone.model import Limits

BESIDES = 2 + 1  # SOA and NS, and the journal
ONE = RecordSet(60, ("10.0.0.1",))


def a_full_zone(room: int, names: int) -> Deployment:
    """A zone with room for so many sets of ours, and so many that are wanted."""
    deployment = Deployment(limits=Limits(sets_of_zone=BESIDES + room), settings={"batch_elements": 1000})
    for number in range(names):
        deployment.want(f"s{number:03d}", "10.0.0.1")
    deployment.start()
    deployment.pass_time(4)
    return deployment


def a_unit(name: str, *, comes: bool = False, goes: bool = False) -> Unit:
    key = RecordKey("Z1", f"{name}.example.com", "A")
    change = RecordChange(key, ONE if not comes else None, ONE if not goes else None)
    return Unit(ObjectKey("prod", "default", name), (change,))


def test_i4_what_waits_for_room_is_no_failure_of_its_key() -> None:
    deployment = a_full_zone(0, 300)
    assert deployment.sets() == {}
    marks = dict(StateTable(deployment.store).open_keys("prod"))
    assert len(marks) == 300
    assert {(mark.attempts, mark.retry_at, mark.reason) for mark in marks.values()} == {(0, 0.0, "")}
    assert [row for row in deployment.audited("s000") if row["kind"] == "record"] == []
    (problem,) = deployment.problems()
    assert problem.startswith("the zone is full: ")


def test_a_full_zone_is_tried_with_one_creation_at_a_time_and_more_and_more_seldom() -> None:
    deployment = a_full_zone(0, 300)
    before = len(deployment.sent)
    deployment.pass_time(3600)
    probes = deployment.sent[before:]
    # After 5, 10, 20 .. seconds, at most 5 minutes: 16 within the hour, give or take what the first hour holds.
    assert 10 <= len(probes) <= 20
    assert {sum(change.action == "CREATE" for change in batch) for batch in probes} == {2}, "one, and the journal"


def test_room_that_is_left_is_filled_at_once() -> None:
    deployment = a_full_zone(21, 300)
    assert len(deployment.sets()) == 21
    # Refused whole, then 1, 2, 4, 8; 16 refused; 1, 2, then 4 refused, and so on.
    assert len(deployment.sent) <= 20


def test_all_go_once_there_is_room_again() -> None:
    deployment = Deployment(limits=Limits(sets_of_zone=BESIDES + 80), settings={"batch_elements": 1000})
    for number in range(80):
        deployment.by_hand("CREATE", f"f{number}.example.com", "A", "192.0.2.1")
    for number in range(80):
        deployment.want(f"s{number:03d}", "10.0.0.1")
    deployment.start()
    for number in range(80):
        deployment.by_hand("DELETE", f"f{number}.example.com", "A")
    before = len(deployment.sent)
    deployment.pass_time(60)
    assert len(deployment.sets()) == 80
    assert (deployment.open(), deployment.problems()) == ({}, [])
    assert len(deployment.sent) - before <= 12


def test_a_deletion_of_ours_makes_room_at_once() -> None:
    deployment = a_full_zone(3, 5)
    waiting = sorted(deployment.open())
    assert len(waiting) == 2
    (gone, *_) = sorted(deployment.sets())
    deployment.pass_time(1000)  # the next try is minutes away
    deployment.delete(gone.removesuffix(" A"))
    deployment.pass_time()
    assert len(deployment.sets()) == 3
    assert len(deployment.open()) == 1


def test_a_service_that_waited_for_room_and_went_is_not_created() -> None:
    deployment = a_full_zone(1, 3)
    for name in deployment.open():
        deployment.delete(name)
    deployment.pass_time()
    sent = len(deployment.sent)
    deployment.pass_time(1000)
    assert (len(deployment.sets()), len(deployment.sent)) == (1, sent)
    assert deployment.problems() == []


def test_a_problem_that_an_earlier_session_noted_is_taken_back() -> None:
    deployment = a_full_zone(0, 1)
    assert len(deployment.problems()) == 1
    deployment.kill()
    deployment.pass_time(20)
    deployment.delete("s000")
    deployment.start()
    deployment.pass_time(5)
    assert deployment.problems() == []


# --- how many may try ---


def test_share_doubles_while_sets_land_and_is_one_after_a_refusal() -> None:
    full = FullZone("limit")
    assert full.allowed_units(0.0) == 1
    full.record_landed([a_unit("a", comes=True)], 0.0)
    full.record_landed([a_unit("b", comes=True)], 0.0)
    assert full.allowed_units(0.0) == 4
    full.record_refused([a_unit(name, comes=True) for name in "cdef"], 0.0)
    assert full.allowed_units(0.0) == 1


def test_refused_probe_waits_longer_each_time_and_what_goes_ends_that() -> None:
    full = FullZone("limit")
    delays = []
    for _ in range(8):
        full.record_refused([a_unit("a", comes=True)], 100.0)
        assert full.allowed_units(100.0) == 0
        delays.append(full.next_try - 100.0)
    assert delays == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]
    full.record_landed([a_unit("b")], 100.0)
    assert full.allowed_units(100.0) == 0, "a change makes no room"
    full.record_landed([a_unit("b", goes=True)], 100.0)
    assert full.allowed_units(100.0) == 1
    full.record_refused([a_unit("a", comes=True)], 100.0)
    assert full.next_try == 105.0
