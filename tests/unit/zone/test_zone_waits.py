"""What waits in a zone: not before when, and why; who sleeps until then."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.fakes.manual_clock import ManualClock
from kubesync.domain.batches import BatchLimits, Unit
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Intent
from kubesync.messages import Decision, Publish
from kubesync.zone.ports import ZonePorts
from kubesync.zone.queue import Due, ZoneQueue
from kubesync.zone.waits import QueuedKey

KEY = ObjectKey("prod", "default", "web")
NOW = 1_000.0
ROOM = BatchLimits()
NOTHING = Due()


def a_change(name: str) -> RecordChange:
    return RecordChange(RecordKey("Z1", f"{name}.example.com", "A"), None, RecordSet(60, ("10.0.0.1",)))


def a_unit(name: str) -> Unit:
    return Unit(KEY, (a_change(name),))


def a_queue(clock: ManualClock) -> ZoneQueue:
    ports = SimpleNamespace(scheduler=clock, limits=ROOM, client=None)
    return ZoneQueue("Z1", cast(ZonePorts, cast(Any, ports)), lambda: ROOM)


def refuse(queue: ZoneQueue, unit: Unit, until: float) -> None:
    queue.apply_decision(unit, Decision(unit, "Rejected", until))


def due(queue: ZoneQueue) -> Due:
    return queue.due() or NOTHING


def test_check_that_is_put_off_waits_and_no_longer_than_that() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    intent = Intent(KEY, (a_change("a"),), frozenset({"a.example.com"}))
    queue.publish(Publish("prod", (intent,)))
    queue.checks.put_off()
    assert due(queue) is NOTHING
    assert queue.next_retry() == 30.0
    clock.advance(30)
    assert list(due(queue).unknown) == [KEY]
    queue.learn((intent,), asked=True)
    assert [intent.key for intent in due(queue).checks] == [KEY]


def test_i4_refused_unit_waits_and_no_other_of_its_key() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    intent = Intent(KEY, (a_change("a"), a_change("b")))
    queue.publish(Publish("prod", (intent,)))
    refuse(queue, a_unit("a"), clock.epoch_seconds() + 5)
    assert list(due(queue).units) == [a_unit("b")]
    clock.advance(5)
    assert list(due(queue).units) == [a_unit("a"), a_unit("b")]
    refuse(queue, a_unit("a"), clock.epoch_seconds() + 5)
    queue.apply_decision(a_unit("a"))
    assert list(due(queue).units) == [a_unit("a"), a_unit("b")]


@pytest.mark.parametrize(
    ("inherited", "check", "unit", "wakes_at"),
    [
        (0.0, None, None, NOW + 1),
        (NOW + 40, None, None, NOW + 40),
        (NOW + 40, NOW + 20, None, NOW + 40),  # until then nothing of the key goes
        (NOW + 40, NOW + 20, NOW + 10, NOW + 40),
        (0.0, NOW - 1, NOW + 10, NOW - 1),  # its wait is over: it had no turn yet
        (0.0, NOW + 20, NOW - 1, NOW + 20),  # such a unit is wanted no more: otherwise it would have gone
    ],
)
def test_key_sleeps_until_the_first_of_its_waits_is_over(
    inherited: float, check: float | None, unit: float | None, wakes_at: float
) -> None:
    known = QueuedKey(KEY, not_before=inherited, refused_units={} if unit is None else {a_unit("a"): unit})
    known.sleep(NOW, check)
    assert known.wakes_at == wakes_at
    assert (known.is_awake(wakes_at - 0.1), known.is_awake(wakes_at)) == (False, True)
    known.wake()
    assert known.wakes_at is None


def test_next_is_the_first_that_wakes_or_the_next_try_of_a_full_zone() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    assert queue.next_retry() is None
    queue.publish(Publish("prod", (Intent(KEY, (a_change("a"),)),)))
    assert queue.next_retry() == 1.0, "one that is awake is seen again soon"
    refuse(queue, a_unit("a"), clock.epoch_seconds() + 40)
    assert due(queue) is NOTHING
    assert queue.next_retry() == 40.0
    queue.record_full_zone([a_unit("b")], "full")
    assert queue.next_retry() == 5.0


def test_key_that_is_open_no_more_waits_for_nothing() -> None:
    clock = ManualClock()
    queue = a_queue(clock)
    queue.publish(Publish("prod", (Intent(KEY, (a_change("a"),)),)))
    refuse(queue, a_unit("a"), clock.epoch_seconds() + 40)
    assert due(queue) is NOTHING
    queue.learn((Intent(KEY),))
    assert queue.next_retry() is None
    queue.learn((Intent(KEY, (a_change("a"),)),))
    assert list(due(queue).units) == [a_unit("a")]


def test_work_after_a_batch_grows_with_its_units_and_not_with_their_square(monkeypatch: pytest.MonkeyPatch) -> None:
    """A headless Service has a unit for each host name of its endpoints. To hash a unit takes long: it holds whole record sets."""
    hashed: list[Unit] = []
    of_unit: Any = Unit.__hash__

    def counted(unit: Unit) -> int:
        hashed.append(unit)
        return cast(int, of_unit(unit))

    monkeypatch.setattr(Unit, "__hash__", counted)
    queue = a_queue(ManualClock())
    intent = Intent(KEY, tuple(a_change(f"pod-{n}") for n in range(400)))
    units = [a_unit(f"pod-{n}") for n in range(400)]
    queue.publish(Publish("prod", (intent,), since=1.0))
    queue.record_landed(units[:200])
    assert [queue.keys.since(units[at]) for at in (0, 399)] == [None, 1.0]
    for unit in units:
        refuse(queue, unit, 900.0)
    for unit in units:
        queue.apply_decision(unit)
    assert len(hashed) < 20 * len(units)
    queue.learn((intent,))
    assert len(due(queue).units) == 400
