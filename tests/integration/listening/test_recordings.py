"""What a real API server once sent leads to exactly the expected record sets and upstreams, however the story is cut.

Lists and watches of tests/recordings come over HTTP from the stand-in; zone and table are read over the wire.
"""

from collections.abc import Iterator

import pytest

from harness.fakes.memory_store import MemoryStore
from harness.seen.recorded import RECORDINGS, recorded
from harness.stack import TOKEN, RunningSession, Stack, a_stack, token_in_environment
from kubesync.actors.threads import ThreadScheduler
from kubesync.domain.objects import Resource
from kubesync_local.standins.apiserver import ApiServer, ServerOptions
from kubesync_local.standins.apiserver.replay import Replay
from kubesync_local.standins.route53 import StrictRoute53

SOURCES = (Resource.ENDPOINTS, Resource.ENDPOINTSLICES)
MID_MS = 20_000
# Events and bookmarks of the three recorded watches; a cut may lie before each of them and after the last.
RELEASES = 21 + 3 + 52 + 3 + 78 + 4


def _often(cut: int) -> tuple[pytest.MarkDecorator, ...]:
    """``make test`` tries one cut in 40, and the last; ``make check`` one in 8."""
    if cut % 40 == 0 or cut == RELEASES:
        return ()
    return (pytest.mark.thorough,) if cut % 8 == 0 else (pytest.mark.thorough, pytest.mark.soak)


CUTS = [pytest.param(cut, marks=_often(cut)) for cut in range(RELEASES + 1)]


def events_among(replay: Replay, source: Resource, count: int) -> int:
    """How many of the next releases are events for a session that listens to this source."""
    heard = (Resource.SERVICES.value, source.value)
    return sum(1 for each in replay.pending[:count] if each.type != "BOOKMARK" and each.resource.plural in heard)


def release(replay: Replay, running: RunningSession, source: Resource, count: int) -> None:
    """Release so many and wait until the session has recorded them."""
    wanted = running.received() + events_among(replay, source, count)
    for _ in range(count):
        replay.release_next()
    running.wait_for(lambda: running.received() >= wanted)


def listed(running: RunningSession) -> None:
    """Wait until both listeners have listed the empty cluster."""
    running.wait_for(lambda: sum(int(str(d["listed"])) for w, d in running.events if w == "window") >= 2)


def assert_stands(stack: Stack, name: str, source: Resource) -> None:
    expected = recorded(name)[source.value]
    assert stack.records() == expected["records"]
    assert stack.upstreams() == expected["upstreams"]


@pytest.mark.parametrize(
    ("source", "moto"),
    [
        pytest.param(Resource.ENDPOINTS, False, id="endpoints-memory"),
        pytest.param(Resource.ENDPOINTSLICES, False, id="endpointslices-memory"),
        pytest.param(Resource.ENDPOINTS, True, id="endpoints-dynamodb", marks=pytest.mark.thorough),
        pytest.param(Resource.ENDPOINTSLICES, True, id="endpointslices-dynamodb"),
    ],
)
def test_story_leads_to_what_is_expected_on_the_way_and_at_its_end(source: Resource, moto: bool) -> None:
    with a_stack(ServerOptions(bootstrap=False, first_version=0), moto=moto) as stack:
        replay = Replay.of_story(stack.api, RECORDINGS)
        stack.add_cluster(endpoints_source=source)
        running = stack.start()
        listed(running)
        until_mid = sum(1 for each in replay.pending if each.milliseconds <= MID_MS)
        release(replay, running, source, until_mid)
        expected = recorded("expected-mid")[source.value]
        running.wait_for(lambda: stack.records() == expected["records"])
        assert_stands(stack, "expected-mid", source)
        release(replay, running, source, len(replay.pending))
        report = running.end()
        assert report.clean
        assert_stands(stack, "expected-final", source)


@pytest.mark.parametrize("source", SOURCES)
def test_story_delivered_byte_by_byte_leads_to_the_same(source: Resource) -> None:
    with a_stack(ServerOptions(bootstrap=False, first_version=0)) as stack:
        replay = Replay.of_story(stack.api, RECORDINGS)
        stack.api.deliver_in_pieces(1)
        stack.add_cluster(endpoints_source=source)
        running = stack.start()
        listed(running)
        release(replay, running, source, len(replay.pending))
        running.end()
        assert_stands(stack, "expected-final", source)


@pytest.mark.parametrize("source", SOURCES)
def test_story_that_is_over_is_listed_to_the_same(source: Resource) -> None:
    with a_stack(ServerOptions(bootstrap=False, first_version=0)) as stack:
        Replay.of_story(stack.api, RECORDINGS).release_all()
        stack.add_cluster(endpoints_source=source)
        running = stack.start()
        listed(running)
        running.end()
        assert_stands(stack, "expected-final", source)


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[ApiServer, StrictRoute53]]:
    """Started once for all cuts; each cut has a story, a zone and tables of its own."""
    options = ServerOptions(bootstrap=False, first_version=0)
    with token_in_environment(), ApiServer(options, tokens={TOKEN: "admin"}) as api, StrictRoute53() as r53:
        yield api, r53


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("source", SOURCES)
def test_story_cut_into_two_sessions_leads_to_the_same(
    servers: tuple[ApiServer, StrictRoute53], source: Resource, cut: int
) -> None:
    """I1: whatever the first session had read when it ended, the second one goes on behind it, without a list."""
    api, r53 = servers
    replay = Replay.of_story(api, RECORDINGS)
    stack = Stack(api, r53, MemoryStore(clock=ThreadScheduler()), None)
    try:
        stack.add_cluster(endpoints_source=source)
        first = stack.start(window_seconds=0.005)
        listed(first)
        release(replay, first, source, cut)
        assert first.end().clean
        api.requests.clear()
        second = stack.start(window_seconds=0.005)
        release(replay, second, source, RELEASES - cut)
        assert second.end().clean
        assert api.requests.all(verb="list") == []
        assert_stands(stack, "expected-final", source)
    finally:
        stack.close()
