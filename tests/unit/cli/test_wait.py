"""``kubesync wait``: what it waits for, and how often it looks."""

from typing import Any, Final

import pytest

from harness.fakes.manual_clock import ManualClock
from kubesync.domain.dns.records import Problem
from kubesync.domain.errors import NewerSchemaError, StoreBusyError, StoreError, StoreUnavailableError
from kubesync.domain.objects import ObjectKey, Resource, Service
from kubesync.domain.reasons import ADVICE
from kubesync.domain.state import KeyState, Name, OpenMark, Part, PartId
from kubesync_local.commands.show.wait import NOTHING_LEFT_OUT, NotPublishedError, await_published, why_not

KEY: Final = ObjectKey("prod", "shop", "web")
PART: Final = {PartId(Resource.SERVICES, "web"): Part("u", 7, 1, Service("ClusterIP"))}
GONE: Final = {PartId(Resource.SERVICES, "web"): Part("u", 8, 1, None, deleted=True)}
PAY: Final = Name("Z1", "pay.example.com")


def a_state(**fields: Any) -> KeyState:
    return KeyState(KEY, 1, **{"parts": PART, **fields})


def no_failure(error: StoreError) -> None:
    raise AssertionError(error)


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
        (
            a_state(problems=(Problem("OutsideDomains", "www.example.org", "outside"), Problem("InvalidTtl", "ttl", "no"))),
            "OutsideDomains www.example.org: outside",
        ),
        (
            a_state(problems=(Problem("RoutingNotPossible", "a A", "bad"), Problem("RoutingNotPossible", "b A", "bad"))),
            "RoutingNotPossible a A: bad (and 1 more)",
        ),
        (a_state(problems=(Problem("InvalidTtl", "ttl", "no"), Problem("UnknownAnnotation", "x/y", "no"))), ""),
    ],
    ids=[
        "published", "unknown", "deleted", "not sent", "refused", "conflict", "name of another", "name refused", "withheld",
        "a default instead",
    ],
)  # fmt: skip
def test_what_is_missing(state: KeyState, missing: str) -> None:
    assert why_not(state) == missing


def test_it_looks_each_second_at_first_and_then_less_often() -> None:
    clock, looks = ManualClock(), 0

    def look() -> tuple[KeyState, int]:
        nonlocal looks
        looks += 1
        return (a_state() if looks == 15 else KeyState(KEY)), 7

    assert await_published(look, 0, 600, clock, no_failure).parts == PART
    assert [round(pause, 2) for pause in clock.slept[:4]] == [1.0, 1.2, 1.44, 1.73]
    assert clock.slept[-1] == 5.0
    assert len(clock.slept) == 14


def test_time_that_is_over_says_what_is_missing() -> None:
    clock = ManualClock()

    with pytest.raises(NotPublishedError, match="it is open: the zone is full"):
        await_published(lambda: (a_state(opened=OpenMark(1, 0.0, "the zone is full")), 7), 0, 10, clock, no_failure)
    assert sum(clock.slept) == pytest.approx(10)


def test_older_version_of_the_service_does_not_count() -> None:
    clock, versions = ManualClock(), iter((7, 7, 9))

    assert await_published(lambda: (a_state(), next(versions)), 9, 10, clock, no_failure) == a_state()
    with pytest.raises(NotPublishedError, match="kubesync has seen version 7 of it, not yet 9"):
        await_published(lambda: (a_state(), 7), 9, 1, clock, no_failure)


def test_look_that_fails_is_followed_by_the_next() -> None:
    clock, said = ManualClock(), list[str]()
    looks = iter(
        (KeyState(KEY), StoreBusyError("throttled"), StoreUnavailableError("unreachable"), KeyState(KEY),
         StoreBusyError("again"), a_state())
    )  # fmt: skip

    def look() -> tuple[KeyState, int]:
        found = next(looks)
        if isinstance(found, StoreError):
            raise found
        return found, 7

    assert await_published(look, 0, 600, clock, lambda error: said.append(str(error))) == a_state()
    assert said == ["throttled", "again"]  # the first of each outage


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (a_state(opened=OpenMark()), "the last look failed: unreachable; before that: it is open: it waits for the next batch"),
        (None, "the last look failed: unreachable"),
    ],
)  # fmt: skip
def test_time_that_is_over_says_what_was_seen_and_why_the_last_look_failed(
    first: KeyState | None, message: str
) -> None:
    clock, looks = ManualClock(), iter((first,))

    def look() -> tuple[KeyState, int]:
        found = next(looks, None)
        if found is None:
            raise StoreUnavailableError("unreachable")
        return found, 7

    with pytest.raises(NotPublishedError) as caught:
        await_published(look, 0, 60, clock, lambda _: None)
    assert str(caught.value) == message
    assert sum(clock.slept) == pytest.approx(60)


def test_state_of_a_newer_release_ends_the_waiting() -> None:
    clock = ManualClock()

    def look() -> tuple[KeyState, int]:
        raise NewerSchemaError("key prod/shop/web", "key#shop/web", 99, 2)

    with pytest.raises(NewerSchemaError):
        await_published(look, 0, 600, clock, no_failure)
    assert clock.slept == []


def test_remarks_that_leave_nothing_out_are_reasons_of_the_list() -> None:
    assert sorted(NOTHING_LEFT_OUT - ADVICE.keys()) == []
