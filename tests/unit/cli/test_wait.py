"""``kubesync wait``: what it waits for, and how often it looks."""

from __future__ import annotations

from typing import Any, Final

import pytest

from harness.fakes.route53 import FakeClock
from kubesync.domain.objects import Resource, Service, ServiceKey
from kubesync.domain.state import KeyState, Name, OpenMark, Part, PartId
from kubesync_local.commands.show.wait import NotPublishedError, await_published, why_not

KEY: Final = ServiceKey("prod", "shop", "web")
PART: Final = {PartId(Resource.SERVICES, "web"): Part("u", 7, 1, Service("ClusterIP"))}
GONE: Final = {PartId(Resource.SERVICES, "web"): Part("u", 8, 1, None, deleted=True)}
PAY: Final = Name("Z1", "pay.example.com")


def a_state(**fields: Any) -> KeyState:
    return KeyState(KEY, 1, **{"parts": PART, **fields})


@pytest.mark.parametrize(
    ("state", "missing"),
    [
        (a_state(), ""),
        (KeyState(KEY), "kubesync has seen no such Service"),
        (a_state(parts=GONE), "kubesync has seen no such Service"),
        (a_state(opened=OpenMark()), "it is open: it waits for the next batch"),
        (a_state(opened=OpenMark(3, 9.0, "the zone is full")), "it is open: the zone is full"),
        (
            a_state(opened=OpenMark(3, 9.0, "x"), conflicts={PAY: "a foreign record set"}),
            "conflict: pay.example.com in Z1: a foreign record set",
        ),
        (
            a_state(waits=frozenset({PAY})),
            "another Service has pay.example.com in Z1: `kubesync explain prod/shop/web` shows whose turn it is",
        ),
    ],
    ids=["published", "unknown", "deleted", "not sent", "refused", "conflict", "name of another"],
)
def test_what_is_missing(state: KeyState, missing: str) -> None:
    assert why_not(state) == missing


def test_it_looks_each_second_at_first_and_then_less_often() -> None:
    clock, looks = FakeClock(), 0

    def look() -> tuple[KeyState, int]:
        nonlocal looks
        looks += 1
        return (a_state() if looks == 15 else KeyState(KEY)), 7

    assert await_published(look, 0, 600, clock).parts == PART
    assert [round(pause, 2) for pause in clock.slept[:4]] == [1.0, 1.2, 1.44, 1.73]
    assert clock.slept[-1] == 5.0
    assert len(clock.slept) == 14


def test_time_that_is_over_says_what_is_missing() -> None:
    clock = FakeClock()

    with pytest.raises(NotPublishedError, match="it is open: the zone is full"):
        await_published(lambda: (a_state(opened=OpenMark(1, 0.0, "the zone is full")), 7), 0, 10, clock)
    assert sum(clock.slept) == pytest.approx(10)


def test_older_version_of_the_service_does_not_count() -> None:
    clock, versions = FakeClock(), iter((7, 7, 9))

    assert await_published(lambda: (a_state(), next(versions)), 9, 10, clock) == a_state()
    with pytest.raises(NotPublishedError, match="kubesync has seen version 7 of it, not yet 9"):
        await_published(lambda: (a_state(), 7), 9, 1, clock)
