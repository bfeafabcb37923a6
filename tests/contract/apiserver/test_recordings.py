"""Every recorded request, sent to the stand-in in the state it was recorded in, is answered as it was recorded."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.wire.raw_http import RawAnswer, Stream, ask
from kubesync_local.standins.apiserver import ApiServer, ServerOptions, User, WatchPolicy
from kubesync_local.standins.apiserver.objects.resources import RESOURCES
from kubesync_local.standins.apiserver.replay import Recording, Replay, load_list

RECORDINGS = Path(__file__).parents[2] / "recordings"
# Where the lists of 03 and 04 were taken: after the story, by its last recorded event before 36 s.
STORY_END_MS = 36_000
STORY_END_VERSION = 653


def recording(name: str) -> Recording:
    return Recording.read(RECORDINGS / f"{name}.json")


def names(pattern: str) -> list[str]:
    return sorted(path.stem for path in RECORDINGS.glob(pattern))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(clock: ManualClock) -> Iterator[ApiServer]:
    with ApiServer(ServerOptions(bootstrap=False, first_version=0), clock=clock) as running:
        yield running


@pytest.fixture
def after_story(server: ApiServer) -> ApiServer:
    replay = Replay.of_story(server, RECORDINGS)
    replay.release_until(STORY_END_MS)
    replay.settle(STORY_END_VERSION)
    return server


def send(server: ApiServer, recorded: Recording, **headers: str) -> RawAnswer:
    return ask(server.address, recorded.target, method=recorded.method, headers=headers)


def assert_same(answer: RawAnswer, recorded: Recording) -> None:
    assert answer.status == recorded.status
    assert answer.headers == recorded.headers
    assert answer.body.decode() == recorded.body


@pytest.mark.parametrize("name", names("01-list-*"))
def test_list_of_an_empty_cluster_is_as_recorded(server: ApiServer, name: str) -> None:
    for resource in RESOURCES:
        load_list(server, recording(f"01-list-{resource.plural}-empty"))
    assert_same(send(server, recording(name)), recording(name))


@pytest.mark.parametrize("name", names("02-watch-*"))
def test_watch_of_the_whole_story_is_as_recorded_line_by_line(server: ApiServer, name: str) -> None:
    recorded = recording(name)
    replay = Replay.of_story(server, RECORDINGS)
    with Stream(server.address, recorded.target) as stream:
        assert replay.release_all() == 21 + 3 + 52 + 3 + 78 + 4
        assert stream.response.status == 200
        assert stream.headers == recorded.headers
        assert [text for _, text in recorded.lines] == stream.lines(len(recorded.lines))


@pytest.mark.parametrize("name", names("02-legacy-*"))
def test_deprecated_watch_path_is_as_recorded_line_by_line(server: ApiServer, name: str) -> None:
    recorded = recording(name)
    replay = Replay.of_story(server, RECORDINGS)
    with Stream(server.address, recorded.target) as stream:
        replay.release_all()
        assert stream.headers == recorded.headers
        assert [text for _, text in recorded.lines] == stream.lines(len(recorded.lines))


def test_watch_resumed_after_the_story_gets_its_history(server: ApiServer) -> None:
    recorded = recording("02-watch-services")
    Replay.of_story(server, RECORDINGS).release_all()
    with Stream(server.address, recorded.target) as stream:
        events = [text for _, text in recorded.lines if not text.startswith('{"type":"BOOKMARK"')]
        assert len(events) == 21
        assert stream.lines(21) == events


@pytest.mark.parametrize("name", names("03-list-*") + names("04-list-*"))
def test_list_and_its_pages_after_the_story_are_as_recorded(after_story: ApiServer, name: str) -> None:
    assert_same(send(after_story, recording(name)), recording(name))


def test_streaming_list_is_as_recorded_and_ends_at_its_timeout(after_story: ApiServer, clock: ManualClock) -> None:
    recorded = recording("05-watch-services-initial-events")
    with Stream(after_story.address, recorded.target) as stream:
        assert stream.lines(13) == [text for _, text in recorded.lines]
        clock.advance(3.0)
        # The bookmark that comes 2 s before the timeout was not recorded: the server's own timer was late by then.
        rest = [json.loads(line) for line in iter(stream.line, "")]
        assert [line["type"] for line in rest] in ([], ["BOOKMARK"])
        assert stream.headers == recorded.headers


def test_watch_from_version_0_begins_with_every_object(after_story: ApiServer, clock: ManualClock) -> None:
    recorded = recording("05-watch-services-rv0")
    with Stream(after_story.address, recorded.target) as stream:
        assert stream.lines(12) == [text for _, text in recorded.lines]
        clock.advance(2.0)
        assert stream.line() == ""


def test_quiet_watch_ends_cleanly_at_its_timeout(after_story: ApiServer, clock: ManualClock) -> None:
    recorded = recording("06-watch-timeout-clean-end")
    with Stream(after_story.address, recorded.target) as stream:
        clock.advance(2.0)
        assert stream.line() == ""
        assert stream.response.status == 200
        assert stream.headers == recorded.headers


def test_wrong_token_is_refused_as_recorded(server: ApiServer) -> None:
    server.authority.set_tokens({"right": "admin"})
    recorded = recording("07-401-bad-token")
    assert_same(send(server, recorded, Authorization="Bearer wrong"), recorded)


def test_missing_permission_is_refused_as_recorded(server: ApiServer) -> None:
    server.authority.set_tokens({"reader-token": User("reader", administrator=False)})
    server.authority.deny(verb="watch", resource="services", user="reader")
    recorded = recording("07-403-no-rbac")
    assert_same(send(server, recorded, Authorization="Bearer reader-token"), recorded)


@pytest.mark.parametrize("name", ["07-404-no-such-resource", "07-500-bad-version"])
def test_wrong_request_is_refused_as_recorded(server: ApiServer, name: str) -> None:
    assert_same(send(server, recording(name)), recording(name))


def test_list_at_a_future_version_times_out_as_recorded(clock: ManualClock) -> None:
    options = ServerOptions(bootstrap=False, first_version=657, future_version_wait=0.0)
    with ApiServer(options, clock=clock) as server:
        recorded = recording("07-future-version-list")
        assert_same(send(server, recorded), recorded)


def test_watch_from_a_future_version_is_silent_as_recorded(after_story: ApiServer, clock: ManualClock) -> None:
    recorded = recording("07-future-version-watch")
    with Stream(after_story.address, recorded.target) as stream:
        after_story.cluster.change_service("shop", "web", {"metadata": {"labels": {"more": "news"}}})
        clock.advance(5.0)
        assert stream.line() == ""
        assert stream.headers == recorded.headers


def test_watch_from_a_compacted_version_is_refused_as_recorded(after_story: ApiServer) -> None:
    after_story.store.advance(700)
    after_story.compact(684)
    recorded = recording("08-410-watch-expired")
    assert_same(send(after_story, recorded), recorded)


def test_continue_token_of_a_compacted_version_is_refused_as_recorded(after_story: ApiServer) -> None:
    after_story.store.advance(700)
    after_story.compact(684)
    recorded = recording("08-410-list-continue-expired")
    assert_same(send(after_story, recorded), recorded)


@pytest.mark.parametrize("name", names("09-list-*"))
def test_long_list_is_compressed_as_recorded(server: ApiServer, name: str) -> None:
    recorded = recording(name)
    load_list(server, recorded)
    answer = send(server, recorded, **{"Accept-Encoding": "gzip, deflate"})
    assert answer.status == 200
    assert answer.headers == recorded.headers
    assert gzip.decompress(answer.body).decode() == recorded.body


def test_long_list_is_not_compressed_for_a_client_that_does_not_accept_it(server: ApiServer) -> None:
    recorded = recording("09-list-endpoints-crowd")
    load_list(server, recorded)
    answer = send(server, recorded, **{"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in answer.headers
    assert answer.body.decode() == recorded.body


def test_every_recording_is_sent_by_a_test_above() -> None:
    sent = (
        "01-list-", "02-watch-", "02-legacy-", "03-list-", "04-list-", "05-watch-services-initial-events",
        "05-watch-services-rv0", "06-watch-timeout-clean-end", "07-401-bad-token", "07-403-no-rbac",
        "07-404-no-such-resource", "07-500-bad-version", "07-future-version-list", "07-future-version-watch",
        "08-410-list-continue-expired", "08-410-watch-expired", "09-list-",
    )  # fmt: skip
    assert [name for name in names("0*") if not name.startswith(sent)] == []


def test_replay_releases_what_had_come_by_a_time(server: ApiServer) -> None:
    replay = Replay.of_story(server, RECORDINGS)
    replay.release_until(20_000)
    web_lb = json.loads(ask(server.address, "/api/v1/namespaces/shop/services/web-lb").body)
    assert web_lb["metadata"]["resourceVersion"] == "493"
    assert web_lb["status"] == {
        "loadBalancer": {"ingress": [{"hostname": "a1b2c3-123456789.eu-west-1.elb.amazonaws.com"}]}
    }
    listed = json.loads(ask(server.address, "/api/v1/services").body)
    assert listed["metadata"]["resourceVersion"] == "494"
    following = replay.release_next()
    assert following is not None
    assert (following.milliseconds, following.resource.plural, following.version) == (21835, "endpointslices", 502)


def test_stream_delivered_byte_by_byte_carries_the_same_lines(server: ApiServer) -> None:
    recorded = recording("02-watch-services")
    Replay.of_story(server, RECORDINGS).release_until(13_400)
    server.deliver_in_pieces(1)
    with Stream(server.address, recorded.target) as stream:
        assert stream.lines(4) == [text for _, text in recorded.lines[:4]]


def test_writes_go_on_after_a_replay_from_the_last_version(after_story: ApiServer) -> None:
    changed = after_story.cluster.change_service("shop", "web", {"metadata": {"labels": {"more": "news"}}})
    assert changed["metadata"]["resourceVersion"] == "654"
    assert changed["metadata"]["uid"] == "40dfc750-e026-462b-a149-12a849ff44d1"


def test_bookmark_comes_at_each_interval_and_before_the_end(clock: ManualClock) -> None:
    policy = WatchPolicy(bookmark_interval=60.0, final_bookmark_lead=2.0)
    with (
        ApiServer(ServerOptions(watch=policy), clock=clock) as server,
        Stream(
            server.address, "/api/v1/services?watch=1&resourceVersion=203&allowWatchBookmarks=true&timeoutSeconds=100"
        ) as stream,
    ):
        # Nothing of this resource changed: the versions are the store's, which other writes move on.
        bookmark = '{"type":"BOOKMARK","object":{"kind":"Service","apiVersion":"v1","metadata":{"resourceVersion":'
        for seconds, version in ((60.0, '"204"'), (38.0, '"205"')):
            clock.advance(seconds)
            assert stream.line().startswith(bookmark + version)
        clock.advance(2.0)
        assert stream.line() == ""


def test_replay_follows_the_time_of_arrival_where_versions_do_not(server: ApiServer) -> None:
    replay = Replay.of_story(server, RECORDINGS)
    replay.release_until(60_300)
    following = replay.pending[0]
    assert (following.resource.plural, following.version) == ("services", 657)
    # The bookmark of endpoints at 658 had come before it.
    versions = {
        path: json.loads(ask(server.address, path).body)["metadata"]["resourceVersion"]
        for path in ("/api/v1/endpoints", "/api/v1/services")
    }
    assert versions == {"/api/v1/endpoints": "658", "/api/v1/services": "646"}
