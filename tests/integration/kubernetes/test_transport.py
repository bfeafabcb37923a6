"""What a client sends, what it accepts, and how it stops."""

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.fakes.certificates import Authority, make_authority, make_leaf
from harness.wire.scripted_server import (
    GENEROUS_SECONDS,
    Answer,
    Connection,
    ScriptedServer,
    answer,
    silence,
    status_answer,
    watch_answer,
)
from kubesync.domain.errors import DeniedError, HandshakeError, StatusError
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess
from kubesync.kubernetes.transport.connections import StoppedError
from kubesync.kubernetes.transport.streams import Block
from kubesync.kubernetes.transport.urls import ApiRequest
from kubesync_local.workplace.file_tokens import StaticToken

REQUEST = ApiRequest("/api/v1/services", (("limit", "1"),))
POLICY = ReflectorPolicy(connect_timeout=GENEROUS_SECONDS, read_timeout=GENEROUS_SECONDS)
LINE = '{"annotation": "one\u2028line\u0085still\\u0000"}\n'.encode()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return make_authority()


class RotatingToken:
    def __init__(self) -> None:
        self.asked: list[bool] = []

    def token(self, *, fresh: bool = False) -> str:
        self.asked.append(fresh)
        return "new-token" if fresh else "old-token"


def fetch(access: ClusterAccess) -> bytes:
    client = ApiClient(access)
    try:
        return client.fetch(REQUEST)
    finally:
        client.close()


def read_lines(access: ClusterAccess) -> list[bytes]:
    client = ApiClient(access)
    found: list[bytes] = []
    try:
        with client.stream(REQUEST) as stream:
            while (block := stream.read(GENEROUS_SECONDS)) is not None:
                found += block.before + block.after
    finally:
        client.close()
    return found


def test_request_carries_token_user_agent_and_parameters_under_the_prefix() -> None:
    with ScriptedServer([answer("{}")]) as server:
        fetch(ClusterAccess(f"{server.url}/k8s/clusters/c-1/", token_source=StaticToken("secret"), policy=POLICY))
        (received,) = server.requests
    assert received.path == "/k8s/clusters/c-1/api/v1/services"
    assert received.params == {"limit": "1"}
    assert received.headers["authorization"] == "Bearer secret"
    assert received.headers["user-agent"] == "kubesync/0.1.0"
    assert received.headers["accept-encoding"] == "gzip"


def test_watch_asks_for_no_compression() -> None:
    with ScriptedServer([watch_answer()]) as server:
        assert read_lines(ClusterAccess(server.url, policy=POLICY)) == []
        assert server.requests[0].headers["accept-encoding"] == "identity"


def test_compressed_list_is_decompressed() -> None:
    with ScriptedServer([answer("a list" * 50_000, compress=True)]) as server:
        assert fetch(ClusterAccess(server.url, policy=POLICY)) == b"a list" * 50_000


def test_pages_of_a_list_share_a_connection() -> None:
    with ScriptedServer([answer("{}"), answer("{}"), watch_answer(LINE)]) as server:
        client = ApiClient(ClusterAccess(server.url, policy=POLICY))
        client.fetch(REQUEST)
        client.fetch(REQUEST)
        with client.stream(REQUEST) as stream:
            assert stream.read(GENEROUS_SECONDS) == Block([], [], [LINE])
        client.close()
        assert server.connections == 1


def test_connection_close_from_the_server_is_respected() -> None:
    with ScriptedServer([answer("{}", Connection="close"), answer("[]")]) as server:
        client = ApiClient(ClusterAccess(server.url, policy=POLICY))
        assert (client.fetch(REQUEST), client.fetch(REQUEST)) == (b"{}", b"[]")
        client.close()


def test_401_gets_one_fresh_token_and_goes_on() -> None:
    tokens = RotatingToken()
    with ScriptedServer([status_answer(401, "Unauthorized"), answer("{}")]) as server:
        assert fetch(ClusterAccess(server.url, token_source=tokens, policy=POLICY)) == b"{}"
        sent = [received.headers["authorization"] for received in server.requests]
    assert sent == ["Bearer old-token", "Bearer new-token"]
    assert tokens.asked == [False, True]


def test_answer_after_interim_ones_is_the_answer() -> None:
    """A proxy may send 102 and 103 before the answer, a server 100 (RFC 9110 15.2)."""

    def early(connection: Connection) -> None:
        connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        connection.send(b"HTTP/1.1 102 Processing\r\n\r\n")
        answer(LINE)(connection)

    with ScriptedServer([early, early]) as server:
        access = ClusterAccess(server.url, policy=POLICY)
        assert [read_lines(access) for _ in range(2)] == [[LINE], [LINE]]


def test_redirect_is_not_followed_and_the_token_goes_nowhere_else_i8() -> None:
    with (
        ScriptedServer([answer("{}")]) as elsewhere,
        ScriptedServer([status_answer(302, "Found", Location=elsewhere.url)]) as server,
    ):
        with pytest.raises(StatusError) as caught:
            fetch(ClusterAccess(server.url, token_source=StaticToken("secret"), policy=POLICY))
        assert elsewhere.connections == 0
    assert caught.value.status == 302


def test_environment_is_ignored_i8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: Authority) -> None:
    """``.netrc`` would replace the token, a proxy would see it, a CA bundle would let a stranger in."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login thief password thief\n")
    (tmp_path / "netrc").chmod(0o600)
    (tmp_path / "ca.pem").write_text(authority.pem)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "ca.pem"))
    with ScriptedServer([answer("{}")]) as proxy, ScriptedServer([answer("{}")]) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        fetch(ClusterAccess(server.url, token_source=StaticToken("secret"), policy=POLICY))
        assert server.requests[0].headers["authorization"] == "Bearer secret"
        assert proxy.connections == 0
    with ScriptedServer([answer("{}")], tls=make_leaf(tmp_path, authority).server_context()) as server:
        with pytest.raises(HandshakeError):
            fetch(ClusterAccess(server.url, token_source=StaticToken("secret"), policy=POLICY))
        assert server.requests == []


@pytest.mark.parametrize("token", ["", "two words", "a\r\nX-Injected: 1", "t\u00f6ken"])
def test_token_that_no_header_can_carry_is_refused_without_being_shown_i8(token: str) -> None:
    with ScriptedServer() as server:
        with pytest.raises(DeniedError) as caught:
            fetch(ClusterAccess(server.url, token_source=StaticToken(token), policy=POLICY))
        assert server.connections == 0
    assert not token or token not in caught.value.message


def test_token_that_a_server_repeats_is_not_in_the_error_i8() -> None:
    with (
        ScriptedServer([status_answer(500, "cannot parse 'Bearer s3cr3t-t0k3n'")]) as server,
        pytest.raises(StatusError) as caught,
    ):
        fetch(ClusterAccess(server.url, token_source=StaticToken("s3cr3t-t0k3n"), policy=POLICY))
    assert caught.value.message.endswith("HTTP 500: cannot parse 'Bearer ***'")


def test_token_source_that_breaks_is_a_denial_without_its_words_i8() -> None:
    class Broken:
        def token(self, *, fresh: bool = False) -> str:
            raise RuntimeError("s3cr3t")

    with ScriptedServer() as server, pytest.raises(DeniedError) as caught:
        fetch(ClusterAccess(server.url, token_source=Broken(), policy=POLICY))
    assert caught.value.message == "no token: RuntimeError"


def test_access_does_not_show_its_token_i8() -> None:
    access = ClusterAccess("https://k8s", token_source=StaticToken("s3cr3t"))
    assert "s3cr3t" not in repr(access)


def test_certificate_without_authority_key_identifier_is_accepted(tmp_path: Path, authority: Authority) -> None:
    leaf = make_leaf(tmp_path, authority, authority_key_identifier=False)
    with ScriptedServer([answer("{}")], tls=leaf.server_context()) as server:
        assert fetch(ClusterAccess(server.url, ca_pem=authority.pem, policy=POLICY)) == b"{}"


def test_public_authorities_are_not_trusted_beside_the_clusters_own_i8(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "public.pem").write_text(authority.pem)
    monkeypatch.setattr("requests.adapters.DEFAULT_CA_BUNDLE_PATH", str(tmp_path / "public.pem"))
    with ScriptedServer([answer("{}")], tls=make_leaf(tmp_path, authority).server_context()) as server:
        with pytest.raises(HandshakeError):
            fetch(ClusterAccess(server.url, ca_pem=make_authority("the cluster's own").pem, policy=POLICY))
        assert server.requests == []


def test_insecure_connects_and_says_so_once(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    leaf = make_leaf(tmp_path, authority, names=("other.example.com",), expired=True)
    with ScriptedServer([answer("{}"), answer("{}")], tls=leaf.server_context()) as server:
        client = ApiClient(ClusterAccess(server.url, insecure_skip_tls_verify=True, policy=POLICY))
        client.fetch(REQUEST)
        client.fetch(REQUEST)
        client.close()
    said = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.getMessage() for record in said] == ["TLS verification is switched off for a cluster"]


def test_client_certificate_is_shown_to_the_server(tmp_path: Path, authority: Authority) -> None:
    context = make_leaf(tmp_path, authority).server_context(client_ca=authority)
    mine = make_leaf(tmp_path, authority, names=("me",))
    with ScriptedServer([answer("{}")], tls=context) as server:
        access = ClusterAccess(
            server.url,
            ca_pem=authority.pem,
            client_pem=mine.pem,
            policy=POLICY,
        )
        assert fetch(access) == b"{}"


def byte_by_byte(connection: Connection) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (LINE + LINE[:7], LINE[7:])) + b"0\r\n\r\n"
    for at in range(len(head + body)):
        connection.send((head + body)[at : at + 1])


def test_lines_arrive_whole_when_bytes_are_delivered_one_by_one() -> None:
    with ScriptedServer([byte_by_byte]) as server:
        assert read_lines(ClusterAccess(server.url, policy=POLICY)) == [LINE, LINE]


def test_line_of_several_megabytes_arrives_whole() -> None:
    line = b'{"big": "' + b"x" * 3_000_000 + b'"}\n'
    with ScriptedServer([watch_answer(line, LINE)]) as server:
        assert read_lines(ClusterAccess(server.url, policy=POLICY)) == [line, LINE]


def test_unterminated_last_line_is_no_line() -> None:
    def unterminated(connection: Connection) -> None:
        connection.stream_head()
        connection.chunk(LINE + LINE[:-1])
        connection.end()

    with ScriptedServer([unterminated]) as server:
        assert read_lines(ClusterAccess(server.url, policy=POLICY)) == [LINE]


def test_body_without_chunks_is_read_to_its_end() -> None:
    def until_closed(connection: Connection) -> None:
        connection.head(Connection="close")
        connection.send(LINE + LINE)
        connection.cut()

    with ScriptedServer([answer(LINE), until_closed, answer(LINE + LINE, compress=True)]) as server:
        access = ClusterAccess(server.url, policy=POLICY)
        assert [read_lines(access) for _ in range(3)] == [[LINE], [LINE, LINE], [LINE, LINE]]


def test_first_line_of_an_unfinished_chunk_is_handed_on_at_once() -> None:
    def half_a_chunk(connection: Connection) -> None:
        connection.stream_head()
        connection.send(b"1000\r\n" + LINE)
        connection.wait_for_client_to_close()

    with ScriptedServer([half_a_chunk]) as server:
        client = ApiClient(ClusterAccess(server.url, policy=POLICY))
        with client.stream(REQUEST) as stream:
            assert stream.read(GENEROUS_SECONDS) == Block([], [], [LINE])
        client.close()


def in_headers(connection: Connection) -> None:
    connection.wait_for_client_to_close()


@pytest.mark.parametrize("where", [in_headers, watch_answer(LINE, then=silence)], ids=["status", "body"])
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_shutdown_ends_a_blocking_read_at_once(
    tmp_path: Path, authority: Authority, where: Answer, secure: bool
) -> None:
    context = make_leaf(tmp_path, authority).server_context() if secure else None
    with ScriptedServer([where], tls=context) as server:
        client = ApiClient(ClusterAccess(server.url, ca_pem=authority.pem, policy=POLICY))

        def read() -> None:
            with client.stream(REQUEST) as stream:
                while stream.read(GENEROUS_SECONDS) is not None:
                    pass

        stops(client, read, lambda: server.wait_for_requests(1))


def test_shutdown_ends_a_handshake_that_blocks(authority: Authority) -> None:
    greeted = threading.Event()

    def say_nothing(sock: socket.socket) -> None:
        sock.recv(1)
        greeted.set()
        while sock.recv(65536):
            pass

    with ScriptedServer(on_accept=say_nothing) as server:
        client = ApiClient(ClusterAccess(f"https://127.0.0.1:{server.port}", ca_pem=authority.pem, policy=POLICY))
        stops(client, lambda: client.fetch(REQUEST), lambda: greeted.wait(GENEROUS_SECONDS))


def test_shutdown_ends_a_connection_that_does_not_come_about() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(8)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        client = ApiClient(ClusterAccess(f"http://127.0.0.1:{port}", policy=POLICY))
        started = threading.Event()

        def connect() -> None:
            started.set()
            client.fetch(REQUEST)

        stops(client, connect, lambda: started.wait(GENEROUS_SECONDS))
        for filler in fillers:
            filler.close()


def test_shutdown_before_a_request_refuses_it_and_may_be_repeated() -> None:
    with ScriptedServer([answer("{}")]) as server:
        client = ApiClient(ClusterAccess(server.url, policy=POLICY))
        client.shutdown()
        client.shutdown()
        with pytest.raises(StoppedError):
            client.fetch(REQUEST)
        client.close()
        client.shutdown()
        assert server.connections == 0


def stops(client: ApiClient, work: Callable[[], object], wait_until_busy: Callable[[], object]) -> None:
    """What a client does ends when it is shut down, and not by a timeout: those are twice as long as this waits."""
    stopped: list[bool] = []

    def run() -> None:
        try:
            work()
        except StoppedError:
            stopped.append(True)
        finally:
            client.close()

    worker = threading.Thread(target=run)
    worker.start()
    wait_until_busy()
    client.shutdown()
    worker.join(GENEROUS_SECONDS / 2)
    assert stopped == [True]
