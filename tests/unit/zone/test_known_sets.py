"""What the zone remembers of its own batches, so that it sends nothing that Route 53 would refuse (ADR 0076)."""

from dataclasses import replace
from typing import Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from harness.sessions.zone_alone import World
from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import SIMPLE, Latency, Routing, Weighted
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Intent
from kubesync.messages import Publish
from kubesync.zone.reader import KnownSets

WWW: Final = "www.example.com"
BLUE, GREEN = RecordKey(ZONE_ID, WWW, "A", "blue"), RecordKey(ZONE_ID, WWW, "A", "green")


def a_set(routing: Routing) -> RecordSet:
    return RecordSet(60, ("192.0.2.1",), routing=routing)


def unit(owner: str, key: RecordKey, before: Routing | None, after: Routing | None) -> Unit:
    sides = [None if each is None else a_set(each) for each in (before, after)]
    return Unit(ObjectKey("prod", "shop", owner), (RecordChange(key, *sides),))


def knows(*units: Unit) -> KnownSets:
    known = KnownSets()
    known.record_landed(units)
    return known


@pytest.mark.parametrize("other", [Latency("eu-west-1"), SIMPLE])
def test_set_with_another_policy_than_what_stands_there_is_blocked(other: Routing) -> None:
    known = knows(unit("a", BLUE, None, Weighted(1)))
    comes = unit("b", GREEN if other != SIMPLE else RecordKey(ZONE_ID, WWW, "A"), None, other)
    fits, elsewhere = (
        unit("c", GREEN, None, Weighted(2)),
        unit("d", RecordKey(ZONE_ID, "x.example.com", "A"), None, other),
    )
    assert known.blocked([comes, fits, elsewhere]) == {comes: True}
    assert known.blocked([fits, elsewhere]) == {}


def test_set_is_not_blocked_by_what_the_same_batch_takes_away() -> None:
    known = knows(unit("a", BLUE, None, Weighted(1)))
    comes = unit("b", GREEN, None, Latency("eu-west-1"))
    for goes in (unit("a", BLUE, Weighted(1), None), unit("a", BLUE, Weighted(1), Latency("us-east-1"))):
        assert known.blocked([goes, comes]) == {}


def test_i9_new_sets_of_a_blocked_key_at_the_name_wait_with_it() -> None:
    known = knows(unit("a", BLUE, None, Weighted(1)))
    six, mail = replace(GREEN, type="AAAA"), replace(GREEN, type="MX")
    comes, beside = unit("b", GREEN, None, Latency("eu-west-1")), unit("b", six, None, Latency("eu-west-1"))
    stays = unit("b", mail, Weighted(1), Weighted(2))
    others = [
        unit("c", replace(six, identifier="c"), None, Weighted(1)),
        unit("b", replace(six, name="x"), None, SIMPLE),
    ]
    units = [comes, beside, stays, *others]
    assert known.waiting_with(known.blocked(units), units) == {beside}
    assert known.waiting_with({}, [stays]) == set()


def test_i3_foreign_set_keeps_out_its_own_type_alone() -> None:
    known = KnownSets()
    known.record_read({WWW: {BLUE: a_set(Weighted(1))}})
    units = [unit("b", replace(GREEN, type=each), None, Latency("eu-west-1")) for each in ("A", "AAAA")]
    blocked = known.blocked(units)
    assert (blocked, known.waiting_with(blocked, units)) == ({units[0]: True}, set())
    known = knows(unit("a", BLUE, None, Weighted(1)))
    known.record_read({WWW: {BLUE: a_set(Weighted(3))}})
    assert known.waiting_with(blocked, units) == {units[1]}, "it is still ours"


def test_units_that_go_together_are_blocked_together() -> None:
    third = RecordKey(ZONE_ID, WWW, "A", "third")
    known = knows(
        unit("a", BLUE, None, Weighted(1)), unit("b", GREEN, None, Weighted(1)), unit("c", third, None, Weighted(1))
    )
    turn = [unit("a", BLUE, Weighted(1), Latency("eu-west-1")), unit("b", GREEN, Weighted(1), Latency("us-east-1"))]
    goes = unit("c", third, Weighted(1), None)
    assert known.blocked(turn) == dict.fromkeys(turn, True)
    assert known.blocked([*turn, goes]) == {}


def test_what_one_unit_deletes_and_another_makes_anew_stands() -> None:
    known = knows(unit("a", BLUE, None, Weighted(1)))
    known.record_landed([unit("b", BLUE, None, Latency("eu-west-1")), unit("a", BLUE, Weighted(1), None)])
    assert known.blocked([comes := unit("c", GREEN, None, Weighted(1))]) == {comes: True}


def test_what_is_read_counts_and_what_went_is_forgotten() -> None:
    known = knows(unit("a", BLUE, None, Weighted(1)))
    comes = unit("b", GREEN, None, Latency("eu-west-1"))
    known.record_read({WWW: {}})
    assert known.blocked([comes]) == {}
    known.record_read({WWW: {BLUE: a_set(Weighted(3))}})
    assert known.blocked([comes]) == {comes: True}
    known.record_landed([unit("a", BLUE, Weighted(3), None)])
    assert known.blocked([comes]) == {}


def test_only_names_that_get_a_policy_and_are_not_known_are_missing() -> None:
    known = knows(unit("a", BLUE, None, Weighted(1)))
    simple, weighted = RecordKey(ZONE_ID, "s.example.com", "A"), RecordKey(ZONE_ID, "w.example.com", "A", "x")
    units = [
        unit("a", BLUE, Weighted(1), Weighted(2)),
        unit("b", simple, None, SIMPLE),
        unit("c", weighted, None, Weighted(1)),
    ]
    assert known.names_to_read(units) == {"w.example.com"}
    assert known.names_to_read([unit("c", weighted, Weighted(1), None)]) == set()


def test_i7_only_the_names_that_changed_last_are_remembered() -> None:
    def at(number: int) -> Unit:
        return unit("a", RecordKey(ZONE_ID, f"n{number}.example.com", "A", "x"), None, Weighted(1))

    known = knows(*map(at, range(6000)))
    known.record_landed([at(1500)])
    known.record_landed(map(at, range(6000, 6500)))
    assert len(known.names_to_read(map(at, range(6500)))) == 1500
    assert known.names_to_read([at(1500)]) == set()


def test_i4_what_a_person_has_deleted_blocks_nobody() -> None:
    """The zone remembers the set of ``a``, reads the name, and finds nothing."""
    deployment = Deployment(domain_filter=("example.com",))
    deployment.start()
    for name, address in (("a", "10.9.0.1"), ("b", "10.9.0.2")):
        deployment.apply(name, a_service(cluster_ips=(address,), ports=(), annotations={"hostname": WWW}))
        deployment.pass_time()
    deployment.by_hand("DELETE", WWW, "A")
    deployment.delete("a")
    deployment.pass_time(20.0)
    assert deployment.sets()[f"{WWW} A"] == ("10.9.0.2",)
    assert deployment.open() == {}
    deployment.close()


@pytest.mark.parametrize(("since", "sent"), [(None, 0), (1.0, 1)])
def test_what_no_event_of_this_session_made_is_read_before_it_is_sent(since: float | None, sent: int) -> None:
    """An earlier session has planned it, and who leaves the name may be heard of later."""
    world = World()
    world.zone.sets[BLUE] = a_set(Weighted(1))
    change = RecordChange(GREEN, None, a_set(Latency("eu-west-1")))
    key = ObjectKey("prod", "default", "web")
    world.prod.intended[key] = {GREEN: a_set(Latency("eu-west-1"))}
    world.to_zone(Publish("prod", (Intent(key, (change,)),), since=since))
    world.pass_time(2.0)
    assert (len(world.zone.batches), bool(world.zone.reads[WWW])) == (sent, not sent)


@pytest.mark.parametrize("deleted", [True, False])
def test_i4_set_that_a_person_has_deleted_keeps_nothing_out(*, deleted: bool) -> None:
    """The zone remembers a weighted set of ours, and reads the name before it holds back one with another policy."""
    world = World()
    for owner, key, routing in (("a", BLUE, Weighted(1)), ("b", GREEN, Latency("eu-west-1"))):
        service = ObjectKey("prod", "default", owner)
        world.prod.intended[service] = {key: a_set(routing)}
        intent = Intent(service, (RecordChange(key, None, a_set(routing)),))
        world.to_zone(Publish("prod", (intent,), since=1.0))
        world.pass_time(2.0)
        if deleted:
            world.zone.sets.pop(BLUE, None)
    assert (GREEN in world.zone.sets, len(world.zone.batches)) == (deleted, 1 + deleted)
