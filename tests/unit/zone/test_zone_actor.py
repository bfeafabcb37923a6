"""The actor of one zone, alone: batches that land, are refused or stay unknown, and faults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.fakes.fencing import raise_fence
from harness.sessions.zone_alone import LISTED, ZONE, World, a_key, a_set, asked, record
from harness.waiting import wait_until
from kubesync.actors.actor import AT_ONCE, Activity
from kubesync.actors.directory import Directory
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.batches import units_of
from kubesync.domain.dns.records import RecordSet, Zone
from kubesync.domain.errors import BatchRefusedError, ZoneOutcomeUnknownError
from kubesync.messages import CheckConflicts, Drain, Landed, Publish, Refused, Standing
from kubesync.zone.actor import ZoneActor
from kubesync.zone.progress import ZoneFigures


def test_unknown_outcome_is_repeated_unchanged_and_may_have_landed() -> None:
    world = World()
    world.zone.trouble = [(ZoneOutcomeUnknownError("no answer"), True)]
    world.prod.publish("web", "10.0.0.1")
    world.pass_time(10)
    assert world.zone.ours == {"web": "10.0.0.1"}
    assert world.prod.applied == world.prod.intended
    assert (world.actor.report.unknown, len(world.zone.batches)) == (1, 1)


def test_i4_foreign_set_is_judged_by_its_cluster_and_checked_again() -> None:
    world = World()
    world.zone.sets[record("web")] = a_set("10.9.9.9")
    for name in ("web", "api"):
        world.prod.publish(name, "10.0.0.1")
    world.pass_time()
    assert world.zone.ours == {"web": "10.9.9.9", "api": "10.0.0.1"}
    assert world.actor.report.reasons == {"Conflict": 1}
    world.pass_time(60)
    assert 2 <= len(asked(world.prod, Standing)) <= 5
    del world.zone.sets[record("web")]
    world.actor.receive(CheckConflicts((a_key("web"),)))
    world.pass_time()
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.1"}


def test_refused_unit_waits_as_its_cluster_says_i4() -> None:
    world = World()
    refusal = BatchRefusedError(("[name='web.example.com.', type='A'] is not permitted",))
    world.zone.trouble = [(refusal, False)]
    for name in ("web", "api"):
        world.prod.publish(name, "10.0.0.1")
    world.pass_time(1)
    assert world.zone.ours == {"api": "10.0.0.1"}
    world.pass_time(6)
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


def test_full_zone_lets_deletions_through_and_probes() -> None:
    world = World()
    full = BatchRefusedError(("MAX_RRSETS_BY_ZONE: limit of 10000 record sets",))
    world.zone.trouble = [(full, False), (full, False), (full, False)]
    names = [world.prod.want(f"s{n}", "10.0.0.1") for n in range(5)]
    world.actor.receive(Publish("prod", names=tuple(names), listed=LISTED))
    world.pass_time(1)
    assert "the zone is full" in world.actor.report.problem
    world.pass_time(60)
    assert len(world.zone.ours) == 5


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
    world.actor.failed(RuntimeError("a fault"))
    world.prod.silent = False
    world.pass_time(10)
    assert world.prod.applied == world.prod.intended
    assert world.end()


def test_i2_fenced_out_zone_ends() -> None:
    world = World()
    raise_fence(world.store, "prod", 7)
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    assert world.ended
    assert world.not_master
    assert world.zone.ours == {}


def test_i1_item_that_moved_is_settled_not_overwritten() -> None:
    world = World()
    world.prod.publish("web", "10.0.0.1")
    world.pass_time()
    item = world.item()
    _, actions = world.inflight.put(ZONE, item, replace(item, batch=item.batch), "x")
    world.store.transact(actions, "x")
    world.prod.publish("other", "10.0.0.2")
    world.pass_time(20)
    assert len(world.zone.ours) == 2
    assert len(asked(world.prod, Landed)) == 2, "the first was closed already"


def test_unit_larger_than_a_batch_is_refused_and_holds_up_no_other() -> None:
    world = World()
    key = a_key("big")
    values = tuple(f"10.0.{n // 250}.{n % 250}" for n in range(1001))
    world.prod.intended[key] = {record("big"): RecordSet(60, values)}
    world.actor.receive(Publish("prod", (world.prod.wish(key),), listed=LISTED))
    world.prod.publish("web", "10.0.0.1")
    world.pass_time(3)
    assert world.zone.ours == {"web": "10.0.0.1"}
    assert world.actor.report.reasons == {"TooLargeForBatch": 1}
    assert units_of(key, world.prod.wish(key).changes)


def test_zones_are_made_when_they_are_needed_and_drained() -> None:
    world = World()
    scheduler = ThreadScheduler()
    ports = replace(world.ports, scheduler=scheduler)
    zones: Directory[ZoneActor, ZoneFigures] = Directory(
        lambda zone_id: ZoneActor(zone_id, ports, settled=True, zone=Zone(zone_id, "example.com")),
        "zone {}",
        scheduler,
        Activity(scheduler),
        on_demand=True,
    )

    def to_zone(message: object) -> None:
        zones.send(ZONE, message)

    world.to_zone = to_zone
    key = world.prod.want("web", "10.0.0.1")
    zones.send(ZONE, Publish("prod", (world.prod.wish(key),), listed=LISTED))
    wait_until(lambda: world.prod.applied == world.prod.intended)
    until = scheduler.monotonic() + 5.0
    zones.end(Drain(until), until)
    assert zones.failed(lambda figures: figures.clean) == frozenset()
    assert not world.item().batch
    assert {zone_id: figures.report.batches for zone_id, figures in zones.figures.items()} == {ZONE: 1}
