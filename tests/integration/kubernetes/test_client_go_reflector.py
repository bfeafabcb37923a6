"""What client-go's reflector_test.go asks beyond ``test_reflector.py`` (tests/client-go-behaviours.md)."""

import threading

import pytest

from harness.fakes.reflecting import error_event, event, list_answer, reflecting
from harness.wire.scripted_server import GENEROUS_SECONDS, Answer, Connection, silence, status_answer, watch_answer

WATCHING = watch_answer(then=silence)


@pytest.mark.parametrize("code", [410, 429, 500])
def test_close_watch_channel_on_error_though_the_server_keeps_it_open(code: int) -> None:
    closed = threading.Event()

    def open_for_ever(connection: Connection) -> None:
        try:
            connection.wait_for_client_to_close()
        finally:
            closed.set()

    script: list[Answer] = [watch_answer(error_event(code), then=open_for_ever), list_answer(9), WATCHING]
    if code != 410:
        script.pop(1)
    with reflecting(script, resume_from=7) as running:
        running.server.wait_for_requests(len(script))
        assert closed.wait(GENEROUS_SECONDS / 2)  # the server itself gives up after GENEROUS_SECONDS only


def test_list_and_watch_with_errors_follow_each_other_and_nothing_is_told_twice() -> None:
    script = [
        list_answer(1),
        watch_answer(event("ADDED", "foo", 2), event("ADDED", "bar", 3)),
        status_answer(500, "etcdserver: no leader"),
        watch_answer(event("DELETED", "foo", 4), event("ADDED", "qux", 5)),
        watch_answer(error_event(410, "Expired")),
        status_answer(500, "etcdserver: no leader"),
        list_answer(9, "bar", "baz"),
        watch_answer(event("MODIFIED", "baz", 10), then=silence),
    ]
    with reflecting(script) as running:
        running.sink.wait_until_told(("event", "MODIFIED", "baz", 10))
        assert running.sink.told == [
            ("snapshot", 1, []),
            ("resumed",),
            ("event", "ADDED", "foo", 2),
            ("event", "ADDED", "bar", 3),
            ("error", 11, 1),
            ("resumed",),
            ("event", "DELETED", "foo", 4),
            ("event", "ADDED", "qux", 5),
            ("resumed",),
            ("stale",),
            ("error", 11, 1),
            ("snapshot", 9, ["bar", "baz"]),
            ("resumed",),
            ("event", "MODIFIED", "baz", 10),
        ]
        assert running.asked == ["list", "watch 1", "watch 3", "watch 3", "watch 5", "list", "list", "watch 9"]


def test_resync_with_resource_version_lists_are_consistent_ones_also_after_a_410() -> None:
    script = [watch_answer(error_event(410, "Expired")), list_answer(9, "a", token="T"), list_answer(9, "b"), WATCHING]
    with reflecting(script, resume_from=7) as running:
        running.sink.wait_until_told(("snapshot", 9, ["a", "b"]))
        lists = [request.params for request in running.server.requests if "watch" not in request.params]
        # No version at all: "0" could be older than what was seen, and deletions are inferred from lists.
        assert lists == [{"limit": "500"}, {"limit": "500", "continue": "T"}]
