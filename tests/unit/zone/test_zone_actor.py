"""The actor of one zone, alone: batches that land, are refused or stay unknown, and faults."""

from dataclasses import replace

import pytest

from harness.sessions.zone_alone import LISTED, ZONE, World, a_key, a_set, asked, record
from harness.waiting import wait_until
from kubesync.actors.actor import AT_ONCE, Activity, Host
from kubesync.actors.directory import Directory
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.dns.records import Zone
from kubesync.domain.errors import BatchRefusedError
from kubesync.messages import CheckConflicts, ConflictsChecked, Drain, Publish, Refused
from kubesync.zone.actor import ZoneActor
from kubesync.zone.progress import ZoneFigures


def test_i4_foreign_set_is_judged_by_its_cluster_and_checked_again() -> None:
    world = World()
    world.zone.sets[record("web")] = a_set("10.9.9.9")
    for name in ("web", "api"):
        world.prod.publish(name, "10.0.0.1")
    world.pass_time()
    assert world.zone.ours == {"web": "10.9.9.9", "api": "10.0.0.1"}
    assert world.actor.report.reasons == {"Conflict": 1}
    world.pass_time(60)
    assert 2 <= len(asked(world.prod, ConflictsChecked)) <= 5
    del world.zone.sets[record("web")]
    world.actor.receive(CheckConflicts((a_key("web"),)))
    world.pass_time()
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.1"}


def test_culprit_whose_cluster_is_late_goes_again_a_little_later() -> None:
    world = World()
    world.zone.sets[record("web")] = a_set("10.9.9.9")
    world.prod.publish("web", "10.0.0.1")
    world.prod.silent = True
    world.pass_time(4)
    assert len(asked(world.prod, Refused)) == 1
    world.pass_time(20)
    assert len(asked(world.prod, Refused)) == 1
    late = world.prod.asked[0]
    world.prod.silent = False
    world.prod.answer(late)
    world.pass_time(60)
    assert world.prod.conflicts
    assert world.zone.ours == {"web": "10.9.9.9"}


def test_unit_that_nobody_wants_any_more_does_not_go_again() -> None:
    world = World()
    world.zone.trouble = [(BatchRefusedError(("no idea",)), False)]
    world.prod.publish("web", "10.0.0.1")
    world.prod.publish("api", "10.0.0.1")
    for _ in range(2):  # announced, and refused: two halves go again
        assert world.actor.step() == AT_ONCE
    world.prod.publish("web")
    world.pass_time()
    assert world.zone.ours == {"api": "10.0.0.1"}
    assert {change.key for batch in world.zone.batches for change in batch if change.key.type == "A"} == {record("api")}


def test_fault_of_ours_settles_the_zone_and_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    with monkeypatch.context() as patch:
        patch.setattr(world.zone, "change", lambda *_: 1 / 0)
        world.prod.publish("api", "10.0.0.2")
        world.pass_time(4)
    assert not world.actor.figures().clean
    world.pass_time(10)
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.2"}
    assert world.end()


def test_fault_after_the_batch_has_landed_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.prod.silent = True
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    world.actor.handle_error(RuntimeError("a fault"))
    world.prod.silent = False
    world.pass_time(10)
    assert world.prod.applied == world.prod.intended
    assert world.end()


def test_zones_are_made_when_they_are_needed_and_drained() -> None:
    world = World()
    scheduler = ThreadScheduler()
    ports = replace(world.ports, scheduler=scheduler)

    def make(zone_id: str) -> Host[ZoneFigures]:
        actor = ZoneActor(zone_id, ports, settled=True, zone=Zone(zone_id, "example.com"))
        return Host(zone_id, actor, scheduler, Activity(scheduler))

    zones: Directory[ZoneFigures] = Directory(make, scheduler, on_demand=True)

    def to_zone(message: object) -> None:
        zones.send(ZONE, message)

    world.to_zone = to_zone
    key = world.prod.want("web", "10.0.0.1")
    zones.send(ZONE, Publish("prod", (world.prod.intent(key),), listed=LISTED))
    wait_until(lambda: world.prod.applied == world.prod.intended)
    until = scheduler.monotonic() + 5.0
    zones.end(Drain(until), until)
    assert zones.not_ended_well(lambda figures: figures.clean) == frozenset()
    assert not world.item().batch
    assert {zone_id: figures.report.batches for zone_id, figures in zones.figures.items()} == {ZONE: 1}
