"""Watches that filter, resume and break, and when faults strike; what each fault does, ``integration/kubernetes`` meets."""

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.wire.raw_http import Stream, ask
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.apiserver.transport import faults as f

LIST = "/api/v1/services"
WATCH = "/api/v1/services?watch=1&resourceVersion=203"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(clock: ManualClock) -> Iterator[ApiServer]:
    with ApiServer(clock=clock) as running:
        yield running


def expose(server: ApiServer, name: str, namespace: str = "shop", **labels: str) -> None:
    server.cluster.expose(namespace, name, {"ports": [{"port": 80}]}, labels=labels)


def told(line: str) -> tuple[str, str, str]:
    event = json.loads(line)
    metadata = event["object"]["metadata"]
    return event["type"], metadata["name"], metadata["resourceVersion"]


def test_watch_resumes_from_any_version_of_its_history(server: ApiServer) -> None:
    for name in "abc":
        expose(server, name)
    with Stream(server.address, f"{LIST}?watch=true&resourceVersion=205") as stream:
        assert told(stream.line()) == ("ADDED", "c", "206")
        server.cluster.delete_service("shop", "a")
        assert told(stream.line()) == ("DELETED", "a", "207")


def test_object_that_leaves_or_enters_the_selection_is_told_as_deleted_or_added(server: ApiServer) -> None:
    expose(server, "a", tier="front")
    with Stream(server.address, f"{WATCH}&labelSelector=tier%3Dfront") as stream:
        assert told(stream.line()) == ("ADDED", "a", "204")
        for tier in ("back", "back2", "front"):
            server.cluster.change_service("shop", "a", {"metadata": {"labels": {"tier": tier}}})
        gone, back = (json.loads(stream.line()) for _ in range(2))
        assert [told(json.dumps(each)) for each in (gone, back)] == [
            ("DELETED", "a", "205"),
            ("ADDED", "a", "207"),
        ]
        # The state that matched, with the version of the change that took it away.
        assert gone["object"]["metadata"]["labels"] == {"tier": "front"}


def test_excluded_namespaces_and_sets_of_labels_select_events(server: ApiServer) -> None:
    query = "fieldSelector=metadata.namespace!%3Dother,metadata.namespace!%3Dtest&labelSelector=tier+in+(front,back)"
    for namespace, name, tier in (("other", "a", "front"), ("shop", "b", "side"), ("shop", "c", "back")):
        expose(server, name, namespace, tier=tier)
    with Stream(server.address, f"{WATCH}&{query}") as stream:
        assert told(stream.line()) == ("ADDED", "c", "206")
        server.cluster.change_service("shop", "b", {"metadata": {"labels": {"tier": "front"}}})
        assert told(stream.line()) == ("ADDED", "b", "207")


def test_namespaced_and_single_object_watches_see_nothing_else(server: ApiServer) -> None:
    for namespace, name in (("other", "a"), ("shop", "a"), ("shop", "b")):
        expose(server, name, namespace)
    with Stream(server.address, "/api/v1/namespaces/shop/services?watch=1&resourceVersion=203") as stream:
        assert [told(stream.line()) for _ in range(2)] == [("ADDED", "a", "205"), ("ADDED", "b", "206")]
    with Stream(server.address, "/api/v1/watch/namespaces/shop/services/b") as stream:
        assert told(stream.line()) == ("ADDED", "b", "206")
    with Stream(server.address, f"{WATCH}&fieldSelector=metadata.name%3Db") as stream:
        assert told(stream.line()) == ("ADDED", "b", "206")


def test_bookmarks_go_only_to_those_who_asked(server: ApiServer) -> None:
    expose(server, "a")
    with (
        Stream(server.address, f"{WATCH}&allowWatchBookmarks=true") as marked,
        Stream(server.address, WATCH) as plain,
    ):
        assert marked.line() == plain.line()
        server.bookmark()
        expose(server, "b")
        assert json.loads(marked.line())["type"] == "BOOKMARK"
        assert told(plain.line()) == ("ADDED", "b", "205")


def test_connection_of_a_client_that_left_is_given_up(server: ApiServer) -> None:
    with Stream(server.address, WATCH):
        (watch,) = server.requests.wait_for_count(1, verb="watch")
    server.requests.wait_for(lambda _: watch.ended)
    assert watch.status == 200


def test_sever_breaks_watches_and_lets_new_ones_in(server: ApiServer) -> None:
    expose(server, "a")
    with Stream(server.address, WATCH) as stream:
        stream.line()
        server.sever()
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            stream.response.read()
    with Stream(server.address, WATCH) as again:
        assert told(again.line()) == ("ADDED", "a", "204")


def test_fault_strikes_from_the_nth_matching_request_as_often_as_asked(server: ApiServer) -> None:
    rule = server.faults.add(f.Answer(503, "ServiceUnavailable"), resource="services", verb="list", nth=2, times=2)
    statuses = [ask(server.address, target).status for target in (LIST, "/api/v1/endpoints", LIST, LIST, LIST)]
    assert statuses == [200, 200, 503, 503, 200]
    assert rule.hits == 2


def test_fault_can_be_bound_to_a_condition_and_cleared(server: ApiServer) -> None:
    server.faults.add(f.Answer(500), times=None, where=lambda request: "continue" in request.params)
    assert [ask(server.address, f"{LIST}{query}").status for query in ("", "?continue=x")] == [200, 500]
    server.faults.clear()
    assert ask(server.address, f"{LIST}?continue=x").status == 400


def test_played_controllers_are_never_disturbed(server: ApiServer) -> None:
    server.faults.add(f.Answer(500), times=None)
    expose(server, "a")
    assert ask(server.address, LIST).status == 500


def test_watch_ends_early_and_clean(server: ApiServer) -> None:
    server.faults.add(f.EndEarly(events=1))
    expose(server, "a")
    with Stream(server.address, WATCH) as stream:
        assert [told(stream.line()), stream.line()] == [("ADDED", "a", "204"), ""]


@pytest.mark.parametrize("fault", [f.SlowBytes(), f.SlowBytes(3, 0.0001), f.Delay(0.05)])
def test_slow_answer_is_the_same_answer(server: ApiServer, fault: f.Fault) -> None:
    expected = ask(server.address, LIST).body
    server.faults.add(fault)
    started = time.monotonic()
    assert ask(server.address, LIST).body == expected
    assert time.monotonic() - started >= (0.05 if isinstance(fault, f.Delay) else 0.0)


def test_pace_of_one_answer_does_not_stick_to_the_connection(server: ApiServer) -> None:
    server.faults.add(f.SlowBytes(1, 0.001))
    connection = http.client.HTTPConnection(*server.address, timeout=120)
    bodies: list[Any] = []
    durations = []
    for _ in range(21):
        started = time.monotonic()
        connection.request("GET", "/api/v1/namespaces/shop/services/no")
        bodies.append(connection.getresponse().read())
        durations.append(time.monotonic() - started)
    connection.close()
    assert bodies == bodies[:1] * 21
    # A busy machine may be slow as well, but not all the time.
    assert durations[0] > len(bodies[0]) * 0.001 > min(durations[1:])
