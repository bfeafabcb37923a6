"""Namespaces take turns in a zone's queue: one that wants much does not hold up another (I9)."""

from types import SimpleNamespace
from typing import Any, cast

from harness.fakes.manual_clock import ManualClock
from kubesync.domain.batches import BatchLimits, by_turns
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Intent
from kubesync.messages import Publish
from kubesync.zone.ports import ZonePorts
from kubesync.zone.queue import Due, ZoneQueue
from kubesync.zone.waits import MOST_INTENTS

ROOM = BatchLimits(elements=20)


def a_queue(clock: ManualClock | None = None) -> ZoneQueue:
    ports = SimpleNamespace(scheduler=clock or ManualClock(), limits=ROOM, client=None)
    return ZoneQueue("Z1", cast(ZonePorts, cast(Any, ports)), lambda: ROOM)


def due(queue: ZoneQueue) -> Due:
    found = queue.due()
    assert found is not None
    return found


def an_intent(name: str, namespace: str, sets: int = 1, values: int = 1) -> Intent:
    one = RecordSet(60, tuple(f"10.0.0.{n}" for n in range(values)))
    keys = (RecordKey("Z1", f"{name}-{n:02d}.example.com", "A") for n in range(sets))
    return Intent(ObjectKey("prod", namespace, name), tuple(RecordChange(key, None, one) for key in keys))


def services(found: Due) -> list[str]:
    return [unit.key.name for unit in found.units]


def test_namespaces_take_turns_and_keep_their_own_order() -> None:
    keys = [ObjectKey("prod", *text.split("/")) for text in ["a/1", "a/2", "a/3", "b/4", "a/5", "c/6", "b/7"]]
    assert [key.name for key in by_turns(keys, lambda key: key)] == ["1", "4", "6", "2", "7", "3", "5"]
    assert list(by_turns(keys[:3], lambda key: key)) == keys[:3]
    assert list(by_turns((), lambda key: key)) == []


def test_i9_namespace_with_more_than_a_batch_leaves_others_their_share() -> None:
    queue = a_queue()
    queue.publish(Publish("prod", (an_intent("a", "evil", 50), *(an_intent(f"b{n}", "evil", 5) for n in range(300)))))
    queue.publish(Publish("prod", (an_intent("zoe", "shop", 2),)))
    found = due(queue)
    assert services(found) == [*["a"] * 18, "zoe", "zoe"]


def test_i9_zone_asks_for_a_namespace_of_which_it_knows_names_only() -> None:
    """Though it knows enough for a batch already."""
    queue = a_queue()
    queue.publish(Publish("prod", tuple(an_intent(f"b{n}", "evil", 5) for n in range(MOST_INTENTS))))
    zoe = an_intent("zoe", "shop")
    queue.publish(Publish("prod", (*(an_intent(f"c{n}", "evil") for n in range(300)), zoe)))
    assert due(queue).unknown == [zoe.key]
    queue.learn((zoe,), asked=True)
    found = due(queue)
    assert "zoe" in services(found)
    assert len(found.units) == 20


def test_i9_key_that_still_wants_more_goes_behind_others_of_its_namespace() -> None:
    queue = a_queue()
    queue.publish(Publish("prod", (an_intent("a", "shop", 50), an_intent("b", "shop", 20))))
    first = due(queue)
    assert set(services(first)) == {"a"}
    queue.record_landed(first.units)
    queue.learn((an_intent("a", "shop", 50), an_intent("b", "shop", 20)))
    assert set(services(due(queue))) == {"b"}


def test_i9_unit_that_does_not_fit_leaves_the_rest_of_the_batch_to_others() -> None:
    queue = a_queue()
    for namespace in ("evil", "evil-too"):
        queue.publish(Publish("prod", tuple(an_intent(f"{namespace}-{n}", namespace, values=12) for n in range(3))))
    queue.publish(Publish("prod", (an_intent("zoe", "shop", 4),)))
    assert sorted(services(due(queue))) == ["evil-0", *["zoe"] * 4]


def test_i9_more_namespaces_than_fit_a_batch_take_turns_from_batch_to_batch() -> None:
    queue = a_queue()
    for n in range(30):
        queue.publish(Publish("prod", tuple(an_intent(f"s{n:02d}-{k}", f"ns{n:02d}") for k in range(3))))
    landed: list[str] = []
    for _ in range(3):
        found = due(queue)
        landed += (name.removesuffix("-0") for name in services(found) if name.endswith("-0"))
        queue.record_landed(found.units)
        queue.learn([Intent(unit.key, ()) for unit in found.units])
    assert sorted(landed) == [f"s{n:02d}" for n in range(30)]
    assert len(found.units) == 20


def test_i9_namespaces_take_turns_at_the_room_in_a_full_zone() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    first, later = ([an_intent(f"{of}-{n}", of) for n in range(count)] for of, count in (("evil", 5), ("shop", 2)))
    queue.publish(Publish("prod", tuple(first)))
    queue.record_full_zone(due(queue).units, "full")
    assert due(queue).unknown == [first[0].key]
    queue.publish(Publish("prod", tuple(later)))
    tried: list[str] = []
    for _ in range(5):
        while (found := due(queue)).unknown:
            queue.learn([intent for intent in (*first, *later) if intent.key in found.unknown], asked=True)
        tried += services(found)
        queue.record_full_zone(found.units, "full")
        clock.advance(400.0)
    assert tried == ["shop-0", "evil-0", "shop-1", "evil-1", "shop-0"]


LARGE_ROOM = BatchLimits(elements=1000)


def a_queue_of_a_list(count: int, clock: ManualClock) -> ZoneQueue:
    """As many Services as a list led to, in twenty namespaces."""
    ports = SimpleNamespace(scheduler=clock, limits=LARGE_ROOM, client=None)
    queue = ZoneQueue("Z1", cast(ZonePorts, cast(Any, ports)), lambda: LARGE_ROOM)
    intents = tuple(an_intent(f"l{n:03d}", f"n{n % 20}") for n in range(count))
    queue.publish(Publish("prod", intents, since=clock.monotonic(), of_list=True))
    return queue


def test_list_fills_batches_while_no_events_come() -> None:
    queue = a_queue_of_a_list(900, ManualClock())
    assert len(due(queue).units) == 900


def test_list_gives_way_while_events_come_and_goes_on_in_small_batches() -> None:
    """A batch of many keys takes long to close. A change that comes meanwhile would wait for all of them."""
    clock = ManualClock()
    queue = a_queue_of_a_list(900, clock)
    queue.publish(Publish("prod", tuple(an_intent(f"e{n}", "shop") for n in range(60)), since=clock.monotonic()))
    found = due(queue)
    assert sum(name.startswith("e") for name in services(found)) == 60
    assert 50 <= sum(name.startswith("l") for name in services(found)) < 100
    queue.learn(tuple(Intent(unit.key) for unit in found.units))
    assert 50 <= len(due(queue).units) < 100, "the list does not wait for a pause"
    clock.advance(6.0)
    assert len(due(queue).units) > 800


def test_key_that_an_event_changes_does_not_give_way_any_more_and_a_list_does_not_put_it_back() -> None:
    clock = ManualClock()
    queue = a_queue_of_a_list(900, clock)
    last = an_intent("l899", "n19")
    queue.publish(Publish("prod", (last,), since=clock.monotonic()))
    queue.publish(Publish("prod", (last,), since=clock.monotonic(), of_list=True))
    assert "l899-00.example.com" in [unit.name for unit in due(queue).units]
