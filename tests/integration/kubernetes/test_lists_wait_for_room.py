"""Lists over a real socket: how large a page may be, and what a list reads that has to wait for room."""

from dataclasses import replace

import pytest

from harness.fakes.reflecting import POLICY, list_answer, reflecting
from harness.waiting import wait_until
from harness.wire.scripted_server import Answer, silence, watch_answer
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.errors import ErrorCode
from kubesync.kubernetes.list_room import ListRoom

WATCHING = watch_answer(then=silence)
SMALL_PAGES = replace(POLICY, page_bytes=2_000, max_list_page_bytes=8_000)
LONG = "x" * 3_000


def test_page_that_is_too_large_is_read_again_with_half_as_many_objects() -> None:
    script = [
        list_answer(7, "a", "b", note=LONG),
        list_answer(7, "a", "b", "c", note=LONG),
        list_answer(7, "a", token="more"),
        list_answer(7, "b", "c", note=LONG),
        list_answer(7, "b", "c"),
        WATCHING,
    ]
    with reflecting(script, policy=SMALL_PAGES) as running:
        running.sink.wait_until_told(("resumed",))
        assert running.sink.told[0] == ("snapshot", 7, ["a", "b", "c"])
        limits = [request.params.get("limit") for request in running.server.requests]
        tokens = [request.params.get("continue") for request in running.server.requests]
        assert limits == ["500", "250", "125", "250", "125", None]
        assert tokens == [None, None, None, "more", "more", None]
        assert running.waited == [], "it is no failure"


def test_pages_that_are_small_again_have_as_many_objects_as_before() -> None:
    script = [
        list_answer(7, "a", "b", note=LONG),
        list_answer(7, "a", token="1"),
        list_answer(7, "b", token="2"),
        list_answer(7, "c"),
        WATCHING,
    ]
    with reflecting(script, policy=SMALL_PAGES) as running:
        running.sink.wait_until_told(("resumed",))
        limits = [request.params.get("limit") for request in running.server.requests]
        assert limits == ["500", "250", "500", "500", None]


def test_one_object_may_be_longer_than_a_page_and_not_longer_than_the_limit() -> None:
    policy = replace(SMALL_PAGES, page_limit=1)
    with reflecting([list_answer(7, "a", note=LONG), WATCHING], policy=policy) as running:
        running.sink.wait_until_told(("resumed",))
        assert running.sink.told[0] == ("snapshot", 7, ["a"])
    with reflecting([list_answer(7, "a", note=LONG * 3), WATCHING], policy=policy) as running:
        running.sink.wait_until_told(("error", 12, 1))
        (error,) = running.sink.errors
        assert error.code is ErrorCode.READ_BODY
        assert error.message == f"127.0.0.1:{running.server.port}: a body is longer than 8000 bytes"


def test_object_that_may_be_longer_than_a_page_waits_for_room_of_its_own() -> None:
    clock = ThreadScheduler()
    room = ListRoom(5_000, clock)
    other = room.for_cluster().for_list()
    assert other.take(50, 1e9)
    long = list_answer(7, "a", note=LONG)
    script = [long, long, long, WATCHING]
    policy, turn = replace(SMALL_PAGES, page_limit=2), room.for_cluster()
    with reflecting(script, policy=policy, reservation=turn.for_list(), clock=clock) as running:
        wait_until(lambda: bool(turn.waiting) and bool(running.asked))
        assert running.asked == ["list limit=2"]
        other.release()
        running.sink.wait_until_told(("resumed",))
        assert [request.params.get("limit") for request in running.server.requests] == ["2", "2", "1", None]


@pytest.mark.parametrize(
    "page",
    [
        list_answer(7, "a", token="more", remaining=9),
        list_answer(7, "a", token="more", remaining=10**30),
        list_answer(7, "a", token="more"),
        list_answer(7, "a", token="more", remaining="many"),
        list_answer(7, "a", token="more", remaining=-1),
    ],
    ids=["says how many", "lies", "does not say", "not a number", "less than none"],
)
def test_list_that_does_not_fit_is_read_again_once_there_is_room(page: Answer) -> None:
    clock = ThreadScheduler()
    room = ListRoom(2_100, clock)
    other = room.for_cluster()
    first = other.for_list()
    assert first.take(50, 1e9)
    reservation = room.for_cluster().for_list()
    script = [page, page, list_answer(7, "b"), WATCHING]
    with reflecting(script, policy=SMALL_PAGES, reservation=reservation, clock=clock) as running:
        wait_until(lambda: reservation.wanted > SMALL_PAGES.page_bytes)
        assert running.asked == ["list"]
        assert running.sink.told == []
        first.release(50)
        assert running.asked == ["list"], "the other list is not recorded yet"
        other.release_recorded(50)
        running.sink.wait_until_told(("resumed",))
        assert running.asked == ["list", "list", "list from more", "watch 7"]
        assert running.sink.told[0] == ("snapshot", 7, ["a", "b"])


def test_i10_list_that_waits_for_long_is_reported_and_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesync.kubernetes.list_room.LONG_SECONDS", 0.05)
    clock = ThreadScheduler()
    room = ListRoom(100, clock)
    first = room.for_cluster().for_list()
    assert first.take(500, 1e9)
    with reflecting([list_answer(7, "a"), WATCHING], reservation=room.for_cluster().for_list(), clock=clock) as running:
        running.sink.wait_until_told(("error", 12, 1), times=2)
        assert running.sink.errors[0].message == (
            "the list of services has waited 0 s for room: lists of other clusters are being read and recorded"
        )
        assert running.asked == []
        first.release()
        running.sink.wait_until_told(("resumed",))
        assert running.asked == ["list", "watch 7"]
        assert running.waited == [], "it is no failure"


def test_stop_ends_a_wait_for_room() -> None:
    clock = ThreadScheduler()
    room = ListRoom(100, clock)
    assert room.for_cluster().for_list().take(500, 1e9)
    with reflecting(
        [WATCHING], reservation=room.for_cluster().for_list(), clock=clock, deadline_seconds=3600.0
    ) as running:
        running.stop()
        assert running.asked == []
        assert running.sink.told == []
