"""An API server that never finishes an answer: whatever it drips, each request ends by a time, with its code."""

from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path

import pytest

from harness.fakes.certificates import make_authority, make_leaf
from harness.fakes.paced_clock import PacedClock
from harness.fakes.reflecting import list_answer, reflecting
from harness.wire.scripted_server import Answer, Connection, ScriptedServer, silence, status_answer, watch_answer
from kubesync.domain.errors import DeniedError, ErrorCode, ListenerError, StatusError
from kubesync.kubernetes.lister import cluster_identity
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess
from kubesync.kubernetes.transport.urls import ApiRequest
from kubesync_local.registration.endpoints_source import choose_endpoints_source

REQUEST = ApiRequest("/api/v1/services")
# A real silence would last for a minute. Whatever ends sooner was ended by the test's clock: a header after 90 s, an answer after 120 s.
POLICY = ReflectorPolicy(connect_timeout=30.0, read_timeout=60.0)
# More than any limit lets through. Then the answer is right, so that a client without a limit gets it.
DRIPS = 2_000


def of_continue() -> Iterable[bytes]:
    return repeat(b"HTTP/1.1 100 Continue\r\n\r\n", DRIPS)


def of_status_line() -> Iterable[bytes]:
    return chain([b"HTTP/1.1 200 "], repeat(b"O", DRIPS), [b"\r\n"])


def of_one_line() -> Iterable[bytes]:
    return chain([b"HTTP/1.1 200 OK\r\nX-Slow: "], repeat(b"o", DRIPS), [b"\r\n"])


def of_lines_after_continue() -> Iterable[bytes]:
    return chain([b"HTTP/1.1 100 Continue\r\nX-Slow: "], repeat(b"o", DRIPS), [b"\r\n\r\nHTTP/1.1 200 OK\r\n"])


def rest(pieces: Callable[[], Iterable[bytes]]) -> Answer:
    """What makes the dripped header, or the answers before it, a right answer."""

    def play(connection: Connection) -> None:
        if pieces is of_continue:
            connection.send(b"HTTP/1.1 200 OK\r\n")
        connection.send(b"Content-Length: 3\r\n\r\n{}\n")

    return play


HEADERS = [of_continue, of_status_line, of_one_line, of_lines_after_continue]


def failure(
    server: ScriptedServer, clock: PacedClock, *, stream: bool = False, ca_pem: str | None = None
) -> ListenerError:
    client = ApiClient(ClusterAccess(server.url, ca_pem=ca_pem, policy=POLICY), clock)
    try:
        with pytest.raises(ListenerError) as caught:
            read_to_the_end(client) if stream else client.fetch(REQUEST)
    finally:
        client.close()
        clock.give_up()
    return caught.value


def read_to_the_end(client: ApiClient) -> None:
    with client.stream(REQUEST) as lines:
        while lines.read(60.0) is not None:
            pass


@pytest.mark.parametrize("pieces", HEADERS)
@pytest.mark.parametrize("stream", [False, True], ids=["fetch", "stream"])
def test_code_9_for_a_header_that_never_ends(pieces: Callable[[], Iterable[bytes]], stream: bool) -> None:
    clock = PacedClock()
    with ScriptedServer([clock.dripping(pieces, then=rest(pieces))]) as server:
        began = clock.monotonic()
        error = failure(server, clock, stream=stream)
        assert (error.code, error.message) == (
            ErrorCode.REQUEST_URI,
            f"127.0.0.1:{server.port}: no complete header in time",
        )
        assert 90 <= clock.monotonic() - began <= 95


def test_code_9_for_a_header_that_never_ends_behind_tls(tmp_path: Path) -> None:
    clock, authority = PacedClock(), make_authority()
    script = [clock.dripping(of_one_line, then=rest(of_one_line))]
    with ScriptedServer(script, tls=make_leaf(tmp_path, authority).server_context()) as server:
        assert failure(server, clock, ca_pem=authority.pem).code is ErrorCode.REQUEST_URI


def with_length() -> Iterable[bytes]:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {DRIPS}\r\n\r\n".encode()
    return chain([head], repeat(b" ", DRIPS))


def in_chunks() -> Iterable[bytes]:
    return chain(
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"], repeat(b"1\r\n \r\n", DRIPS), [b"0\r\n\r\n"]
    )


def in_a_chunk_extension() -> Iterable[bytes]:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0;"
    return chain([head], repeat(b"x", DRIPS), [b"\r\n\r\n"])


def in_trailers() -> Iterable[bytes]:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    return chain([head], repeat(b"X-Slow: yes\r\n", DRIPS), [b"\r\n"])


def in_the_name_of_a_gzip_file() -> Iterable[bytes]:
    """Decompressed it is nothing, however long it goes on (RFC 1952, section 2.3: FNAME)."""
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {DRIPS + 21}\r\n\r\n".encode()
    empty = b"\x03\x00" + b"\x00" * 8
    return chain([head + b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03"], repeat(b"n", DRIPS), [b"\x00" + empty])


BODIES = [with_length, in_chunks, in_a_chunk_extension, in_trailers, in_the_name_of_a_gzip_file]


@pytest.mark.parametrize("pieces", BODIES)
def test_code_12_for_a_body_that_never_ends(pieces: Callable[[], Iterable[bytes]]) -> None:
    clock = PacedClock()
    with ScriptedServer([clock.dripping(pieces)]) as server:
        began = clock.monotonic()
        error = failure(server, clock)
        assert (error.code, error.message) == (
            ErrorCode.READ_BODY,
            f"127.0.0.1:{server.port}: the body did not end before the deadline",
        )
        assert 120 <= clock.monotonic() - began <= 125


def test_refusal_whose_body_never_ends_is_a_refusal() -> None:
    clock = PacedClock()

    def forbidden() -> Iterable[bytes]:
        return chain([b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2000\r\n\r\n"], repeat(b" ", DRIPS))

    with ScriptedServer([clock.dripping(forbidden)]) as server:
        began = clock.monotonic()
        error = failure(server, clock)
        assert isinstance(error, DeniedError)
        assert error.message == f"127.0.0.1:{server.port}: HTTP 403: Forbidden"
        assert clock.monotonic() - began <= 10


@pytest.mark.parametrize("status", [301, 302, 307])
def test_body_of_a_redirect_is_not_read_to_its_end(status: int) -> None:
    sent = []

    def endless(connection: Connection) -> None:
        connection.head(status, "Elsewhere", Location="/elsewhere", Transfer_Encoding="chunked")
        for _ in range(1_000):
            connection.chunk(b" " * 65_536)
            sent.append(65_536)
        connection.end()

    clock = PacedClock()
    with ScriptedServer([endless]) as server:
        error = failure(server, clock)
        assert isinstance(error, StatusError)
        assert error.status == status
    assert sum(sent) < 32 * 1024 * 1024


@pytest.mark.parametrize("pieces", [of_continue, in_the_name_of_a_gzip_file])
def test_deadline_of_the_caller_counts_for_all_of_an_answer(pieces: Callable[[], Iterable[bytes]]) -> None:
    clock = PacedClock()
    with (
        ScriptedServer([clock.dripping(pieces)]) as server,
        closing(ApiClient(ClusterAccess(server.url, policy=POLICY), clock)) as api,
    ):
        began = clock.monotonic()
        with pytest.raises(ListenerError):
            cluster_identity(api, began + 3.0)
        assert clock.monotonic() - began <= 5
        clock.give_up()


@pytest.mark.parametrize("pieces", [*HEADERS, *BODIES])
def test_registration_asks_a_server_that_drips_for_a_limited_time(pieces: Callable[[], Iterable[bytes]]) -> None:
    clock = PacedClock()
    with (
        ScriptedServer([clock.dripping(pieces)]) as server,
        closing(ApiClient(ClusterAccess(server.url, policy=POLICY), clock)) as api,
    ):
        began = clock.monotonic()
        with pytest.raises(ListenerError):
            choose_endpoints_source(api)
        assert clock.monotonic() - began <= 125
        clock.give_up()


def test_line_of_a_watch_that_never_ends_is_silence() -> None:
    clock = PacedClock()

    def half_an_event() -> Iterable[bytes]:
        head = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{"type":"\r\n'
        return chain([head], repeat(b"1\r\nA\r\n", DRIPS))

    script = [clock.dripping(half_an_event), watch_answer(then=silence)]
    with reflecting(script, resume_from=7, policy=POLICY, clock=clock) as running:
        running.sink.wait_until_told(("resumed",), times=2)
        clock.give_up()
        assert running.sink.told == [("resumed",), ("error", 12, 1), ("resumed",)]
        assert running.asked == ["watch 7", "watch 7"]
        assert "the body" in running.sink.errors[0].message


def test_page_of_a_list_that_drips_is_given_up_soon_enough_to_be_seen_i10() -> None:
    """Who fails for three minutes is in an alarm (ListenersFailing), and all of it may take five."""
    assert ReflectorPolicy().answer_seconds == 60.0
    assert ReflectorPolicy().header_seconds == 35.0
    clock = PacedClock()
    script = [clock.dripping(with_length), list_answer(7, "a"), watch_answer(then=silence)]
    with reflecting(script, policy=POLICY, clock=clock) as running:
        began = clock.monotonic()
        running.sink.wait_until_told(("resumed",))
        clock.give_up()
        assert running.sink.told == [("error", 12, 1), ("snapshot", 7, ["a"]), ("resumed",)]
        assert 120 <= clock.monotonic() - began <= 125


def test_list_in_one_piece_that_drips_is_given_up_after_five_minutes() -> None:
    clock = PacedClock()
    gone = status_answer(410, "too old", "Expired")
    script = [list_answer(7, "a", token="more"), gone, list_answer(7, "a", token="more"), gone]
    script += [clock.dripping(with_length), list_answer(7, "a"), watch_answer(then=silence)]
    with reflecting(script, policy=POLICY, clock=clock) as running:
        began = clock.monotonic()
        running.sink.wait_until_told(("resumed",))
        clock.give_up()
        assert running.asked[4] == "list in one piece"
        assert running.sink.told[-3:] == [("error", 12, 2), ("snapshot", 7, ["a"]), ("resumed",)]
        assert 300 <= clock.monotonic() - began <= 305
