"""Every error code from 6 to 12, each by a real cause."""

import socket
import ssl
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from harness.fakes.certificates import Authority, make_authority, make_leaf
from harness.wire.scripted_server import (
    GENEROUS_SECONDS,
    Connection,
    ScriptedServer,
    answer,
    cut,
    reset,
    silence,
    status_answer,
    watch_answer,
)
from kubesync.domain.errors import ErrorCode, ListenerError, TooOldError
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess
from kubesync.kubernetes.transport.urls import ApiRequest
from kubesync_local.workplace.file_tokens import StaticToken

REQUEST = ApiRequest("/api/v1/services")
POLICY = ReflectorPolicy(connect_timeout=GENEROUS_SECONDS, read_timeout=GENEROUS_SECONDS)
# Where nothing comes, however long one waits.
HASTY = replace(POLICY, connect_timeout=0.2, read_timeout=0.2)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return make_authority()


def failure(access: ClusterAccess, *, stream: bool = False) -> ListenerError:
    client = ApiClient(access)
    with closing(client), pytest.raises(ListenerError) as caught:
        read_to_the_end(client, access.policy) if stream else client.fetch(REQUEST)
    assert "\n" not in caught.value.message
    return caught.value


def read_to_the_end(client: ApiClient, policy: ReflectorPolicy) -> None:
    with client.stream(REQUEST) as lines:
        while lines.read(policy.read_timeout) is not None:
            pass


def test_code_6_for_a_name_that_does_not_resolve() -> None:
    error = failure(ClusterAccess("https://no-such-host.invalid", policy=POLICY))
    assert error.code is ErrorCode.PARSE_DOMAIN
    assert error.message.startswith("no-such-host.invalid:443: the name does not resolve")


@pytest.mark.parametrize("server", ["", "ftp://k8s", "https://", "https://a b", "https://h:port", "http://10.0.0.1"])
def test_code_6_for_an_address_that_is_not_valid(server: str) -> None:
    assert failure(ClusterAccess(server)).code is ErrorCode.PARSE_DOMAIN


def test_code_7_when_the_connection_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = failure(ClusterAccess(f"http://127.0.0.1:{port}", policy=POLICY))
    assert error.code is ErrorCode.CONNECT_FAILED
    assert error.message == f"127.0.0.1:{port}: connection refused"


def test_code_7_when_no_connection_comes_about_in_time() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(8)]  # a full backlog lets further connections hang
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        error = failure(ClusterAccess(f"http://127.0.0.1:{port}", policy=HASTY))
        for filler in fillers:
            filler.close()
    assert error.code is ErrorCode.CONNECT_FAILED
    assert "no connection in time" in error.message


def test_code_7_when_the_tls_handshake_gets_no_answer(authority: Authority) -> None:
    def say_nothing(sock: socket.socket) -> None:
        while sock.recv(65536):
            pass

    with ScriptedServer(on_accept=say_nothing) as server:
        error = failure(ClusterAccess(f"https://127.0.0.1:{server.port}", ca_pem=authority.pem, policy=HASTY))
    assert error.code is ErrorCode.CONNECT_FAILED


@pytest.mark.parametrize(
    ("names", "expired", "own_authority", "says"),
    [
        (("127.0.0.1",), False, False, "unable to get local issuer certificate"),
        (("other.example.com",), False, True, "IP address mismatch"),
        (("127.0.0.1",), True, True, "certificate has expired"),
    ],
)
def test_code_8_for_a_certificate_that_is_not_accepted(
    tmp_path: Path, authority: Authority, names: tuple[str, ...], expired: bool, own_authority: bool, says: str
) -> None:
    issuer = authority if own_authority else make_authority("someone else")
    leaf = make_leaf(tmp_path, issuer, names=names, expired=expired)
    with ScriptedServer([answer("{}")], tls=leaf.server_context()) as server:
        error = failure(ClusterAccess(server.url, ca_pem=authority.pem, policy=POLICY))
        assert server.requests == []
    assert error.code is ErrorCode.SSL_HANDSHAKE
    assert says in error.message


def test_code_8_when_no_authority_is_given_and_the_public_ones_do_not_know_it(
    tmp_path: Path, authority: Authority
) -> None:
    with ScriptedServer([answer("{}")], tls=make_leaf(tmp_path, authority).server_context()) as server:
        assert failure(ClusterAccess(server.url, policy=POLICY)).code is ErrorCode.SSL_HANDSHAKE


def test_code_8_for_a_plain_http_server_behind_https(authority: Authority) -> None:
    def speak_http(sock: socket.socket) -> None:
        sock.recv(65536)
        sock.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")

    with ScriptedServer(on_accept=speak_http) as server:
        error = failure(ClusterAccess(f"https://127.0.0.1:{server.port}", ca_pem=authority.pem, policy=POLICY))
    assert error.code is ErrorCode.SSL_HANDSHAKE


def test_code_8_when_the_connection_ends_during_the_handshake(authority: Authority) -> None:
    def hang_up(sock: socket.socket) -> None:
        sock.recv(1)

    with ScriptedServer(on_accept=hang_up) as server:
        error = failure(ClusterAccess(f"https://127.0.0.1:{server.port}", ca_pem=authority.pem, policy=POLICY))
    assert error.code is ErrorCode.SSL_HANDSHAKE


def test_code_8_for_a_protocol_that_is_too_old(tmp_path: Path, authority: Authority) -> None:
    context = make_leaf(tmp_path, authority).server_context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1 is deprecated"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with ScriptedServer([answer("{}")], tls=context) as server:
        error = failure(ClusterAccess(server.url, ca_pem=authority.pem, policy=POLICY))
    assert error.code is ErrorCode.SSL_HANDSHAKE


def test_code_8_when_the_server_wants_a_client_certificate(tmp_path: Path, authority: Authority) -> None:
    context = make_leaf(tmp_path, authority).server_context(client_ca=authority)
    with ScriptedServer([answer("{}")], tls=context) as server:
        error = failure(ClusterAccess(server.url, ca_pem=authority.pem, policy=POLICY))
    assert error.code is ErrorCode.SSL_HANDSHAKE


def test_code_8_for_an_authority_that_is_no_certificate() -> None:
    error = failure(ClusterAccess("https://127.0.0.1:1", ca_pem="-----BEGIN nonsense", policy=POLICY))
    assert error.code is ErrorCode.SSL_HANDSHAKE


def garbage(connection: Connection) -> None:
    connection.send(b"this is not HTTP\r\n\r\n")
    connection.cut()


@pytest.mark.parametrize("before_the_status_line", [cut, reset, silence, garbage])
def test_code_9_when_no_status_line_comes(before_the_status_line: Callable[[Connection], None]) -> None:
    with ScriptedServer([before_the_status_line]) as server:
        error = failure(ClusterAccess(server.url, policy=HASTY))
    assert error.code is ErrorCode.REQUEST_URI


def test_code_9_when_tls_ends_before_a_status_line(tmp_path: Path, authority: Authority) -> None:
    with ScriptedServer([cut], tls=make_leaf(tmp_path, authority).server_context()) as server:
        error = failure(ClusterAccess(server.url, ca_pem=authority.pem, policy=POLICY))
    assert error.code is ErrorCode.REQUEST_URI


def test_code_10_for_403_with_what_the_status_says() -> None:
    with ScriptedServer([status_answer(403, 'services is forbidden: User "reader" cannot list')]) as server:
        error = failure(ClusterAccess(server.url, policy=POLICY))
        assert error.message == (f'127.0.0.1:{server.port}: HTTP 403: services is forbidden: User "reader" cannot list')
    assert (error.code, error.status) == (ErrorCode.REQUEST_DENIED, 403)


def test_code_10_for_401_after_one_fresh_token() -> None:
    with ScriptedServer([status_answer(401, "Unauthorized"), status_answer(401, "Unauthorized")]) as server:
        error = failure(ClusterAccess(server.url, token_source=StaticToken("t"), policy=POLICY))
        assert len(server.requests) == 2
    assert (error.code, error.status) == (ErrorCode.REQUEST_DENIED, 401)


@pytest.mark.parametrize("status", [204, 302, 404, 500, 503])
def test_code_11_for_other_statuses(status: int) -> None:
    with ScriptedServer([status_answer(status, "what went wrong")]) as server:
        error = failure(ClusterAccess(server.url, policy=POLICY))
    assert (error.code, error.status) == (ErrorCode.REQUEST_STATUS, status)


def test_code_11_keeps_retry_after_of_header_and_of_status() -> None:
    body = {"kind": "Status", "message": "too many", "details": {"retryAfterSeconds": 7}, "code": 429}
    with ScriptedServer([status_answer(429, "too many", Retry_After="3"), answer(body, 429)]) as server:
        access = ClusterAccess(server.url, policy=POLICY)
        assert failure(access).retry_after_seconds == 3.0
        assert failure(access).retry_after_seconds == 7.0


def test_410_is_too_old_and_says_its_status_where_nobody_lists() -> None:
    with ScriptedServer([status_answer(410, "The provided continue parameter is too old", "Expired")]) as server:
        client = ApiClient(ClusterAccess(server.url, policy=POLICY))
        with pytest.raises(TooOldError, match="continue parameter is too old") as caught:
            client.fetch(REQUEST)
        assert isinstance(caught.value, ListenerError)
        assert (caught.value.code, caught.value.status) == (ErrorCode.REQUEST_STATUS, 410)
        client.close()


def body_cut(connection: Connection) -> None:
    connection.head(Content_Length="100")
    connection.send(b'{"kind":')
    connection.cut()


def chunk_cut(connection: Connection) -> None:
    connection.stream_head()
    connection.send(b"64\r\nonly a part")
    connection.cut()


def no_last_chunk(connection: Connection) -> None:
    connection.stream_head()
    connection.chunk(b"{}\n")
    connection.cut()


def no_chunk(connection: Connection) -> None:
    connection.stream_head()
    connection.send(b"not a size\r\n")
    connection.wait_for_client_to_close()


def body_reset(connection: Connection) -> None:
    connection.stream_head()
    connection.chunk(b"{}\n")
    connection.reset()


def no_gzip(connection: Connection) -> None:
    connection.head(Content_Length="9", Content_Encoding="gzip")
    connection.send(b"not gzip!")


@pytest.mark.parametrize("body", [body_cut, chunk_cut, no_last_chunk, no_chunk, body_reset, no_gzip])
@pytest.mark.parametrize("stream", [False, True], ids=["fetch", "stream"])
def test_code_12_when_the_body_breaks_off_or_makes_no_sense(body: Callable[[Connection], None], stream: bool) -> None:
    with ScriptedServer([body]) as server:
        error = failure(ClusterAccess(server.url, policy=POLICY), stream=stream)
        assert str(server.port) in error.message
    assert error.code is ErrorCode.READ_BODY


def hasty_once_the_body_is_read(client: ApiClient) -> None:
    with client.stream(REQUEST) as lines:
        while lines.read(HASTY.read_timeout) is not None:
            pass


@pytest.mark.parametrize("stream", [False, True], ids=["fetch", "stream"])
def test_code_12_when_the_body_goes_silent(stream: bool) -> None:
    with ScriptedServer([watch_answer(b'{"some": "line"}', then=silence)]) as server:
        # Enough for the head of the answer, which has to come.
        policy = POLICY if stream else replace(POLICY, read_timeout=3.0)
        with (
            closing(ApiClient(ClusterAccess(server.url, policy=policy))) as client,
            pytest.raises(ListenerError) as caught,
        ):
            hasty_once_the_body_is_read(client) if stream else client.fetch(REQUEST)
        error = caught.value
        assert error.message == f"127.0.0.1:{server.port}: the body went silent"
    assert error.code is ErrorCode.READ_BODY


def test_code_12_for_a_list_page_over_the_limit() -> None:
    policy = replace(POLICY, max_list_page_bytes=1000)
    with ScriptedServer([answer(b"x" * 100_000, compress=True)]) as server:
        error = failure(ClusterAccess(server.url, policy=policy))
    assert error.code is ErrorCode.READ_BODY
    assert "longer than 1000 bytes" in error.message


def test_code_12_for_a_line_over_the_limit() -> None:
    policy = replace(POLICY, max_line_bytes=1000)
    with ScriptedServer([watch_answer(b"x" * 2000)]) as server:
        error = failure(ClusterAccess(server.url, policy=policy), stream=True)
    assert error.code is ErrorCode.READ_BODY
    assert "longer than 1000 bytes" in error.message
