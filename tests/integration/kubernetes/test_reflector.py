"""The reflector's table of cases, each against a server that behaves so. client-go's reflector_test.go was the checklist."""

import socket
import threading
from dataclasses import replace

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.reflecting import (
    POLICY,
    RecordedPauses,
    RecordingSink,
    a_reflector,
    bookmark,
    error_event,
    event,
    list_answer,
    reflecting,
)
from harness.fakes.wide_room import unlimited_reservation
from harness.wire.scripted_server import (
    GENEROUS_SECONDS,
    Answer,
    Connection,
    answer,
    cut,
    reset,
    silence,
    status_answer,
    watch_answer,
)
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.errors import BodyError
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess

WATCHING = watch_answer(then=silence)  # accepted, then quiet until the client goes away


def test_first_run_lists_then_watches_from_the_version_of_the_list() -> None:
    with reflecting([list_answer(7, "a", "b"), watch_answer(event("ADDED", "c", 9), then=silence)]) as running:
        running.sink.wait_until_told(("event", "ADDED", "c", 9))
        assert running.sink.told == [("snapshot", 7, ["a", "b"]), ("resumed",), ("event", "ADDED", "c", 9)]
        assert running.asked == ["list", "watch 7"]


def test_resume_watches_from_the_checkpoint_without_a_list_i7() -> None:
    with reflecting([watch_answer(event("MODIFIED", "a", 8), then=silence)], resume_from=7) as running:
        running.sink.wait_until_told(("event", "MODIFIED", "a", 8))
        assert running.asked == ["watch 7"]


def test_watch_asks_for_bookmarks_and_for_an_end_before_the_deadline() -> None:
    with reflecting([WATCHING], resume_from=7, deadline_seconds=100.5) as running:
        running.sink.wait_until_told(("resumed",))
        assert running.server.requests[0].params == {
            "watch": "1",
            "resourceVersion": "7",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "100",
        }


def test_list_in_pages_is_one_snapshot() -> None:
    script = [list_answer(7, "a", token="T1"), list_answer(7, "b", token="T2", compress=True), list_answer(7), WATCHING]
    with reflecting(script) as running:
        running.sink.wait_until_told(("resumed",))
        assert running.sink.told == [("snapshot", 7, ["a", "b"]), ("resumed",)]
        assert running.sink.pages == [(1, None), (2, None)]
        assert running.asked == ["list", "list from T1", "list from T2", "watch 7"]


@pytest.mark.parametrize(
    "second_page",
    [
        status_answer(500, "etcd is away"),
        status_answer(403, "forbidden"),
        answer('{"kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{'),
        answer('{"kind":"ServiceList","metadata":{"resourceVersion":"7"}}'),
        answer('{"kind":"EndpointsList","metadata":{"resourceVersion":"7"},"items":[]}'),
        answer("<html>log in</html>"),
        cut,
    ],
)
def test_list_whose_second_page_fails_is_no_snapshot_i5(second_page: Answer) -> None:
    script = [list_answer(7, "a", token="T"), second_page, list_answer(8, "a", "b"), WATCHING]
    with reflecting(script) as running:
        running.sink.wait_until_told(("resumed",))
        told = [call for call in running.sink.told if call[0] != "error"]
        assert told == [("snapshot", 8, ["a", "b"]), ("resumed",)]
        assert len(running.sink.errors) == 1
        assert running.waited == [0.8]


def test_list_with_an_object_without_a_name_proves_nothing_i5() -> None:
    nameless = answer({"kind": "ServiceList", "metadata": {"resourceVersion": "7"}, "items": [{"spec": {}}]})
    with reflecting([nameless, list_answer(8, "a"), WATCHING]) as running:
        running.sink.wait_until_told(("resumed",))
        assert running.sink.told == [("error", 12, 1), ("snapshot", 8, ["a"]), ("resumed",)]


def test_expired_continue_starts_over_and_in_the_end_lists_in_one_piece() -> None:
    expired = status_answer(410, "The provided continue parameter is too old", "Expired")
    page = list_answer(7, "a", token="T")
    with reflecting([page, expired, page, expired, list_answer(9, "a", "b"), WATCHING]) as running:
        running.sink.wait_until_told(("resumed",))
        assert running.sink.told == [("error", 11, 1), ("snapshot", 9, ["a", "b"]), ("resumed",)]
        assert running.asked == ["list", "list from T", "list", "list from T", "list in one piece", "watch 9"]
        assert running.waited == [0.8]


def test_pages_of_different_versions_are_no_list_i5() -> None:
    script = [list_answer(7, "a", token="T"), list_answer(8, "b"), list_answer(9, "a", "b"), WATCHING]
    with reflecting(script) as running:
        running.sink.wait_until_told(("resumed",))
        assert running.sink.told == [("snapshot", 9, ["a", "b"]), ("resumed",)]


def test_watch_resumes_from_the_last_event_or_bookmark() -> None:
    script = [watch_answer(event("ADDED", "a", 9)), watch_answer(bookmark(15)), WATCHING]
    with reflecting(script, resume_from=7) as running:
        running.sink.wait_until_told(("resumed",), times=3)
        assert running.asked == ["watch 7", "watch 9", "watch 15"]
        assert running.waited == []
        assert running.sink.errors == []


@pytest.mark.parametrize("end", [cut, reset])
def test_watch_that_breaks_off_is_reported_and_resumed_at_once(end: Answer) -> None:
    with reflecting([watch_answer(event("ADDED", "a", 9), then=end), WATCHING], resume_from=7) as running:
        running.sink.wait_until_told(("resumed",), times=2)
        # A reset may overtake what was sent before it; then the event comes again, as the first watch had not seen it.
        assert running.asked in (["watch 7", "watch 9"], ["watch 7", "watch 7"])
        assert [call for call in running.sink.told if call[0] == "error"] == [("error", 12, 1)]
        assert running.waited == []


def test_watch_that_breaks_off_again_and_again_backs_off_and_does_not_list() -> None:
    broken = watch_answer(then=cut)
    with reflecting([broken, broken, broken, WATCHING], resume_from=7) as running:
        running.sink.wait_until_told(("resumed",), times=4)
        assert running.asked == ["watch 7"] * 4
        assert running.waited == [0.8, 1.6]
        assert [error.code for error in running.sink.errors] == [12, 12, 12]


def test_unterminated_last_line_is_dropped_and_comes_again() -> None:
    line = event("ADDED", "a", 9).encode()

    def unterminated(connection: Connection) -> None:
        connection.stream_head()
        connection.chunk(bookmark(8).encode() + b"\n" + line[:-20])
        connection.end()

    with reflecting([unterminated, watch_answer(line, then=silence)], resume_from=7) as running:
        running.sink.wait_until_told(("event", "ADDED", "a", 9))
        assert running.asked == ["watch 7", "watch 8"]


@pytest.mark.parametrize(
    "too_old", [watch_answer(error_event(410, "Expired")), status_answer(410, "too old resource version", "Gone")]
)
def test_too_old_in_either_form_lists_again(too_old: Answer) -> None:
    with reflecting([too_old, list_answer(20, "a"), WATCHING], resume_from=7) as running:
        running.sink.wait_until_told(("snapshot", 20, ["a"]))
        running.server.wait_for_requests(3)
        assert running.asked == ["watch 7", "list", "watch 20"]
        assert [call for call in running.sink.told if call != ("resumed",)] == [("stale",), ("snapshot", 20, ["a"])]
        assert running.waited == []


def test_versions_that_are_too_old_at_once_again_do_not_spin() -> None:
    too_old = watch_answer(error_event(410, "Expired"))
    script = [too_old, list_answer(20), too_old, list_answer(21), too_old, list_answer(22), WATCHING]
    with reflecting(script, resume_from=7) as running:
        running.server.wait_for_requests(7)
        assert running.waited == [0.8, 1.6]


def test_i10_fault_of_ours_is_reported_and_only_a_list_gets_past_it() -> None:
    sink = RecordingSink()

    def fails() -> None:
        if sink.told[-1] == ("bookmark", 9):
            raise OverflowError("int too large")

    sink.on_told = fails
    bad = watch_answer(bookmark(9))
    with reflecting([bad, bad, bad, list_answer(9), WATCHING], resume_from=7, sink=sink) as running:
        running.server.wait_for_requests(5)
        assert running.asked == ["watch 7", "watch 7", "watch 7", "list", "watch 9"]
        assert [each for each in sink.told if each[0] == "error"] == [("error", 12, n) for n in (1, 2, 3)]
        assert "OverflowError" in sink.errors[0].message


def test_version_of_the_list_lower_than_the_last_seen_is_a_new_generation() -> None:
    too_old = status_answer(410, "too old")
    script = [watch_answer(event("ADDED", "a", 90)), too_old, list_answer(50, "a"), WATCHING]
    with reflecting(script, resume_from=7) as running:
        running.sink.wait_until_told(("snapshot", 50, ["a"], "went back"))
        running.server.wait_for_requests(4)
        assert running.asked[-1] == "watch 50"


@pytest.mark.parametrize(
    "busy",
    [
        status_answer(429, "too many requests", Retry_After="5"),
        watch_answer(error_event(429, "TooManyRequests", retryAfterSeconds=5)),
    ],
)
def test_429_waits_as_asked_and_watches_again_without_a_list(busy: Answer) -> None:
    with reflecting([busy, busy, busy, busy, WATCHING], resume_from=7) as running:
        running.server.wait_for_requests(5)
        assert running.asked == ["watch 7"] * 5
        assert running.waited == [5.0, 5.0, 5.0, 6.4]
        assert {error.code for error in running.sink.errors} == {11}


def test_429_on_a_list_waits_and_lists_again() -> None:
    with reflecting([status_answer(429, "busy", Retry_After="3"), list_answer(7), WATCHING]) as running:
        running.sink.wait_until_told(("resumed",))
        assert running.waited == [3.0]


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (status_answer(401, "Unauthorized"), 10),
        (status_answer(403, "forbidden"), 10),
        (status_answer(500, "internal"), 11),
        (status_answer(504, "Timeout: Too large resource version: 999999999, current: 657"), 11),
        (cut, 9),
    ],
)
def test_refused_watch_is_reported_and_tried_again_without_a_list(refusal: Answer, code: int) -> None:
    with reflecting([refusal, refusal, refusal, WATCHING], resume_from=7) as running:
        running.sink.wait_until_told(("resumed",))
        assert running.sink.told == [("error", code, 1), ("error", code, 2), ("error", code, 3), ("resumed",)]
        assert running.asked == ["watch 7"] * 4
        assert running.waited == [0.8, 1.6, 3.2]


def test_backoff_doubles_to_its_cap_with_jitter() -> None:
    refusals = [status_answer(503, "not ready")] * 8
    with reflecting([*refusals, WATCHING], resume_from=7, jitter=0.5) as running:
        running.sink.wait_until_told(("resumed",))
        assert running.waited == pytest.approx([1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 45.0, 45.0])


def test_api_that_is_not_served_is_looked_for_every_30_seconds() -> None:
    refusals = [status_answer(404, "not found")] * 8
    with reflecting([*refusals, WATCHING], resume_from=7, jitter=0.5) as running:
        running.sink.wait_until_told(("resumed",))
        assert running.waited == pytest.approx([1.2, 2.4, 4.8, 9.6, 19.2, 30.0, 30.0, 30.0])


def test_refused_connection_backs_off_until_the_deadline_and_does_not_raise() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    clock, sink = ManualClock(), RecordingSink()
    api = ApiClient(ClusterAccess(f"http://127.0.0.1:{port}", policy=POLICY), clock)
    reflector = a_reflector(api, RecordedPauses(clock), unlimited_reservation(clock))
    reflector.run(sink, 7, clock.monotonic() + 10.0)
    assert sink.told == [("error", 7, 1), ("error", 7, 2), ("error", 7, 3), ("error", 7, 4)]
    assert clock.monotonic() == 1010.0


def test_watch_that_ends_at_once_three_times_backs_off_and_lists() -> None:
    script = [watch_answer(), watch_answer(), watch_answer(), list_answer(9, "a"), WATCHING]
    with reflecting(script, resume_from=7) as running:
        running.sink.wait_until_told(("snapshot", 9, ["a"]))
        running.server.wait_for_requests(5)
        assert running.asked == ["watch 7", "watch 7", "watch 7", "list", "watch 9"]
        assert running.waited == [0.8]


def test_undecodable_line_is_left_behind_by_a_list_i4() -> None:
    broken = watch_answer(event("ADDED", "a", 8), b'{"type":"ADDED","object":{"kind":"Serv')
    again = watch_answer(b'{"type":"ADDED","object":{"kind":"Serv')
    with reflecting([broken, again, again, list_answer(9, "a"), WATCHING], resume_from=7) as running:
        running.sink.wait_until_told(("snapshot", 9, ["a"]))
        running.server.wait_for_requests(5)
        assert running.asked == ["watch 7", "watch 8", "watch 8", "list", "watch 9"]
        assert [error.code for error in running.sink.errors] == [12, 12, 12]


def test_event_of_an_object_without_a_name_stops_no_other_i4() -> None:
    nameless = '{"type":"ADDED","object":{"kind":"Service","metadata":{"resourceVersion":"8"}}}'
    with reflecting([watch_answer(nameless, event("ADDED", "a", 9), then=silence)], resume_from=7) as running:
        running.sink.wait_until_told(("event", "ADDED", "a", 9))
        assert running.sink.errors == []


def test_white_space_between_events_is_nothing() -> None:
    watch = watch_answer(b"\n", event("ADDED", "a", 8) + "\r\n", b" \n\n\t\r\n", event("ADDED", "b", 9), then=silence)
    with reflecting([watch], resume_from=7) as running:
        running.sink.wait_until_told(("event", "ADDED", "b", 9))
        assert running.sink.told.index(("event", "ADDED", "a", 8)) < running.sink.told.index(("event", "ADDED", "b", 9))
        assert (running.sink.errors, running.asked) == ([], ["watch 7"])


def test_other_error_in_the_stream_backs_off_and_watches_then_lists() -> None:
    broken = watch_answer(error_event(500, "InternalError"))
    with reflecting([broken, broken, broken, list_answer(9), WATCHING], resume_from=7) as running:
        running.sink.wait_until_told(("snapshot", 9, []))
        assert running.asked[:4] == ["watch 7", "watch 7", "watch 7", "list"]
        assert running.waited == [0.8, 1.6, 3.2]


def test_silence_is_reported_and_the_watch_resumed() -> None:
    # Silent after 0.2 s, doubtful only after a time that never passes here.
    policy = replace(POLICY, bookmark_interval=GENEROUS_SECONDS, silence_margin=0.2 - GENEROUS_SECONDS)
    with reflecting([WATCHING] * 9, resume_from=7, policy=policy, clock=ThreadScheduler()) as running:
        running.server.wait_for_requests(2)
        assert running.asked[:2] == ["watch 7", "watch 7"]
        assert isinstance(running.sink.errors[0], BodyError)
        assert "went silent" in running.sink.errors[0].message


def test_version_from_the_future_is_found_out_and_begins_a_new_generation() -> None:
    policy = replace(POLICY, bookmark_interval=0.1, silence_margin=GENEROUS_SECONDS)
    script = [WATCHING, list_answer(40, "a"), list_answer(40, "a"), WATCHING]
    with reflecting(script, resume_from=999, policy=policy, clock=ThreadScheduler()) as running:
        running.sink.wait_until_told(("snapshot", 40, ["a"], "went back"))
        running.server.wait_for_requests(4)
        assert running.asked[:4] == ["watch 999", "list limit=1", "list", "watch 40"]
        assert running.sink.told[:3] == [("resumed",), ("stale",), ("snapshot", 40, ["a"], "went back")]


def test_quiet_watch_of_a_version_that_the_store_has_is_resumed() -> None:
    policy = replace(POLICY, bookmark_interval=0.1, silence_margin=GENEROUS_SECONDS)
    script = [WATCHING, list_answer(999), watch_answer(bookmark(1000), then=silence)]
    with reflecting(script, resume_from=999, policy=policy, clock=ThreadScheduler()) as running:
        running.sink.wait_until_told(("bookmark", 1000))
        assert running.asked[:3] == ["watch 999", "list limit=1", "watch 999"]
        assert ("stale",) not in running.sink.told


class StandsUntilStarted(ThreadScheduler):
    """Its time begins when a test says so: a machine that is slow to connect uses up nothing of it."""

    def __init__(self) -> None:
        self._started: float | None = None

    def start(self) -> None:
        if self._started is None:
            self._started = super().monotonic()

    def monotonic(self) -> float:
        return 0.0 if self._started is None else super().monotonic() - self._started


def test_deadline_ends_a_silent_watch() -> None:
    clock = StandsUntilStarted()
    sink = RecordingSink(on_told=clock.start)
    with reflecting([WATCHING], resume_from=7, clock=clock, deadline_seconds=0.3, sink=sink) as running:
        running.thread.join(GENEROUS_SECONDS / 2)
        assert not running.thread.is_alive()
        assert running.sink.told == [("resumed",)]


def test_deadline_ends_a_list_without_an_answer() -> None:
    with reflecting([silence], clock=ThreadScheduler(), deadline_seconds=0.3) as running:
        running.thread.join(GENEROUS_SECONDS / 2)
        assert not running.thread.is_alive()
        assert running.sink.told == []


@pytest.mark.parametrize("script", [[silence], [list_answer(7), WATCHING]], ids=["list", "watch"])
def test_stop_ends_a_blocking_read(script: list[Answer]) -> None:
    # Neither a timeout nor silence ends it: those take an hour.
    policy = replace(POLICY, connect_timeout=3600.0, read_timeout=3600.0, bookmark_interval=3600.0)
    with reflecting(script, policy=policy) as running:
        running.server.wait_for_requests(len(script))
        running.stop()
        assert running.sink.errors == []


def test_stop_ends_a_backoff_at_once() -> None:
    policy = replace(POLICY, backoff_initial=3600.0, backoff_cap=3600.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    sink, clock = RecordingSink(), ThreadScheduler()
    api = ApiClient(ClusterAccess(f"http://127.0.0.1:{port}", policy=policy), clock)
    reflector = a_reflector(api, clock)
    thread = threading.Thread(target=reflector.run, args=(sink, 7, clock.monotonic() + 7200.0))
    thread.start()
    sink.wait_until_told(("error", 7, 1))
    reflector.stop()
    thread.join(GENEROUS_SECONDS)
    assert not thread.is_alive()


def test_stop_before_run_asks_nothing() -> None:
    sink, clock = RecordingSink(), ManualClock()
    api = ApiClient(ClusterAccess("http://127.0.0.1:1", policy=POLICY), clock)
    reflector = a_reflector(api, clock)
    reflector.stop()
    reflector.run(sink, None, clock.monotonic() + 600.0)
    assert sink.told == []


def test_line_separators_inside_annotations_split_no_event() -> None:
    line = event("ADDED", "a", 9).replace('"spec"', '"note":"one\u2028line\u0085still","spec"')
    with reflecting([watch_answer(line, then=silence)], resume_from=7) as running:
        running.sink.wait_until_told(("event", "ADDED", "a", 9))
        assert running.sink.errors == []
