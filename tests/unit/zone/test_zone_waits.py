"""What waits in a zone: not before when, and why; who sleeps until then."""

from __future__ import annotations

import pytest

from kubesync.domain.batches import Unit
from kubesync.domain.dns.records import RecordChange, RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.zone.waits import Reason, Waits

KEY = ObjectKey("prod", "default", "web")
OTHER = ObjectKey("prod", "default", "api")
NOW = 1_000.0


def a_unit(name: str) -> Unit:
    return Unit(KEY, (RecordChange(RecordKey("Z1", f"{name}.example.com", "A"), None, RecordSet(60, ("10.0.0.1",))),))


def test_key_waits_for_each_reason_on_its_own() -> None:
    waits = Waits()
    waits.put(KEY, Reason.CONFLICT, NOW + 5)
    assert waits.not_before(KEY, Reason.CONFLICT) == NOW + 5
    assert waits.not_before(KEY, Reason.INHERITED) is None
    assert waits.not_before(OTHER, Reason.CONFLICT) is None
    waits.end(KEY, Reason.CONFLICT)
    assert waits.not_before(KEY, Reason.CONFLICT) is None


def test_reason_that_is_put_off_puts_off_all_that_wait_for_it() -> None:
    waits = Waits()
    waits.put(KEY, Reason.CONFLICT, NOW)
    waits.put(OTHER, Reason.CONFLICT, NOW + 60)
    waits.put_off(Reason.CONFLICT, NOW + 30)
    assert waits.not_before(KEY, Reason.CONFLICT) == NOW + 30
    assert waits.not_before(OTHER, Reason.CONFLICT) == NOW + 60


def test_i4_refused_unit_waits_and_no_other_of_its_key() -> None:
    waits = Waits()
    waits.put_unit(a_unit("a"), NOW + 5)
    assert waits.delays(a_unit("a"), NOW)
    assert not waits.delays(a_unit("b"), NOW)
    assert not waits.delays(a_unit("a"), NOW + 5)
    waits.end_unit(a_unit("a"))
    assert not waits.delays(a_unit("a"), NOW)


@pytest.mark.parametrize(
    ("inherited", "conflict", "unit", "wakes_at"),
    [
        (None, None, None, NOW + 1),
        (NOW + 40, None, None, NOW + 40),
        (NOW + 40, NOW + 20, None, NOW + 40),  # until then nothing of the key goes
        (NOW + 40, NOW + 20, NOW + 10, NOW + 40),
        (None, NOW - 1, NOW + 10, NOW - 1),  # its wait is over: it had no turn yet
        (None, NOW + 20, NOW - 1, NOW + 20),  # such a unit is wanted no more: otherwise it would have gone
    ],
)
def test_key_sleeps_until_the_first_of_its_waits_is_over(
    inherited: float | None, conflict: float | None, unit: float | None, wakes_at: float
) -> None:
    waits = Waits()
    if inherited is not None:
        waits.put(KEY, Reason.INHERITED, inherited)
    if conflict is not None:
        waits.put(KEY, Reason.CONFLICT, conflict)
    if unit is not None:
        waits.put_unit(a_unit("a"), unit)
    waits.sleep([KEY], NOW)
    assert waits.wakes_at(KEY) == wakes_at
    assert waits.has_slept(KEY)
    waits.wake(KEY)
    assert (waits.wakes_at(KEY), waits.has_slept(KEY)) == (0.0, False)


def test_next_is_the_first_that_wakes_or_the_next_try_of_a_full_zone() -> None:
    waits = Waits()
    assert waits.next_due([], NOW) is None
    waits.put(KEY, Reason.INHERITED, NOW + 40)
    waits.sleep([KEY], NOW)
    assert waits.next_due([KEY], NOW) == NOW + 40
    assert waits.next_due([KEY, OTHER], NOW) == NOW + 1, "one that is awake is seen again soon"
    waits.put(OTHER, Reason.FULL, NOW)
    waits.put_off(Reason.FULL, NOW + 20)
    assert waits.next_due([KEY], NOW) == NOW + 20


def test_key_that_is_open_no_more_waits_for_nothing() -> None:
    waits = Waits()
    waits.put(KEY, Reason.INHERITED, NOW + 40)
    waits.put(KEY, Reason.CONFLICT, NOW + 40)
    waits.sleep([KEY], NOW)
    waits.forget(KEY)
    assert waits.wakes_at(KEY) == 0.0
    assert all(waits.not_before(KEY, reason) is None for reason in Reason)
