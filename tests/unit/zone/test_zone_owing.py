"""The actor of one zone, alone: a batch has landed, and clusters owe the closing of their keys."""

from concurrent.futures import Future

import pytest

from harness.sessions.zone_alone import World, a_key
from kubesync.domain.batches import BatchLimits
from kubesync.domain.errors import ZoneOutcomeUnknownError, ZoneUnavailableError
from kubesync.messages import Compared, CompareZone
from kubesync.zone import conversations


def test_batch_lands_is_closed_and_its_item_is_cleared_before_the_end() -> None:
    world = World("prod", "test")
    world.prod.publish("web", "10.0.0.1")
    world.clusters["test"].publish("api", "10.0.0.2")
    world.pass_time()
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.2"}
    assert len(world.zone.batches) == 1
    assert world.prod.applied == world.prod.intended
    assert world.item().batch
    assert len(world.actor.figures().lags) == 2
    assert world.end()
    assert not world.item().batch


def test_zone_starts_nothing_for_5_s_before_all_clusters_have_closed_then_goes_on_without_the_late_one() -> None:
    world = World("prod", "test")
    test = world.clusters["test"]
    test.silent = True
    world.prod.publish("web", "10.0.0.1")
    test.publish("api", "10.0.0.2")
    world.pass_time()
    world.prod.publish("more", "10.0.0.3")
    test.publish("other", "10.0.0.4")
    world.pass_time(3)
    assert "more" not in world.zone.ours
    world.pass_time(2)
    assert world.zone.ours == {"web": "10.0.0.1", "api": "10.0.0.2", "more": "10.0.0.3"}
    assert {name: unclosed.units[0].name for name, unclosed in world.item().unclosed.items()} == {
        "test": "api.example.com"
    }
    assert not world.actor.figures().clean
    test.silent = False
    test.answer(test.asked[-1])
    world.pass_time()
    assert world.zone.ours["other"] == "10.0.0.4"
    assert world.end()
    assert not world.item().unclosed


def test_zone_waits_for_clusters_that_owe_more_than_its_item_can_hold_beside_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversations, "_MOST_UNCLOSED_ELEMENTS", 4)
    world = World("prod", "one", "two", "three", limits=BatchLimits(elements=4, characters=32_000))
    for name in ("one", "two", "three"):
        world.clusters[name].silent = True
        world.clusters[name].publish(f"{name}-a", "10.0.0.2")
        world.clusters[name].publish(f"{name}-b", "10.0.0.2")
        world.pass_time(10)
    world.prod.publish("web", "10.0.0.1")
    world.pass_time(100)
    assert len(world.zone.ours) == 6
    assert {name: len(unclosed.units) for name, unclosed in world.item().unclosed.items()} == {"one": 2, "two": 2}
    world.clusters["two"].silent = False
    world.clusters["two"].answer(world.clusters["two"].asked[-1])
    world.pass_time(10)
    assert world.zone.ours["web"] == "10.0.0.1"
    assert set(world.item().unclosed) == {"one", "three"}
    assert not world.end()


def test_i4_cluster_that_owes_holds_up_no_comparison_of_another() -> None:
    world = World("prod", "test")
    test = world.clusters["test"]
    test.silent = True
    world.prod.publish("web", "10.0.0.1")
    test.publish("api", "10.0.0.2")
    world.pass_time(6)
    others: Future[Compared] = Future()
    own: Future[Compared] = Future()
    world.actor.receive(CompareZone("test", own, keys=(a_key("api", "test"),), names=frozenset({"api.example.com"})))
    world.actor.receive(CompareZone("prod", others, keys=(a_key("web"),), names=frozenset({"web.example.com"})))
    world.pass_time(10)
    assert others.done()
    assert not own.done()
    assert set(world.item().unclosed) == {"test"}, "the clearing before the comparison carries what is not closed"
    test.silent = False
    test.answer(test.asked[-1])
    world.pass_time()
    assert own.done()


def test_zone_that_is_denied_and_whose_item_owes_ends_at_once() -> None:
    world = World("prod", "test")
    world.clusters["test"].silent = True
    world.prod.publish("web", "10.0.0.1")
    world.clusters["test"].publish("api", "10.0.0.2")
    world.pass_time(6)
    world.prod.publish("more", "10.0.0.3")
    world.pass_time()
    assert world.item().unclosed
    world.begin(clean=False)
    world.zone.unreadable = ZoneUnavailableError("denied")
    world.pass_time(60)
    before = world.clock.monotonic()
    assert not world.end()
    assert world.clock.monotonic() - before < 1.0


def test_i1_zone_that_swaps_its_journal_has_said_before_who_owes_what() -> None:
    world = World("prod", "test")
    test = world.clusters["test"]
    test.silent = True
    world.prod.publish("web", "10.0.0.1")
    test.publish("api", "10.0.0.2")
    world.pass_time()
    world.actor.handle_error(RuntimeError("a fault of ours"))
    world.zone.trouble = [(ZoneOutcomeUnknownError("no answer to the swap"), True)]
    world.pass_time(10.2)
    assert world.actor.report.unknown == 1
    test.silent = False
    world.begin(clean=False)
    world.pass_time()
    assert test.applied == test.intended
    assert world.end()


def test_i2_zone_whose_cluster_has_not_closed_is_left_unsettled_and_the_next_session_closes() -> None:
    world = World()
    world.prod.silent = True
    world.prod.publish("web", "10.0.0.1")
    assert not world.end()
    world.prod.silent = False
    world.begin(clean=False)
    world.pass_time()
    assert world.prod.applied == world.prod.intended
    assert not world.item().batch
    assert world.end()
