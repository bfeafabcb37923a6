"""CA and client certificate by reference, against real TLS servers: rotated ones are picked up without a restart."""

import ssl
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.fakes.certificates import Authority, make_authority, make_leaf
from harness.wire.scripted_server import ScriptedServer, answer, status_answer
from kubesync.domain.errors import DeniedError, HandshakeError
from kubesync.kubernetes.ports import ReflectorPolicy
from kubesync.kubernetes.transport.client import ApiClient, ClusterAccess
from kubesync.kubernetes.transport.urls import ApiRequest

REQUEST = ApiRequest("/api/v1/services")
POLICY = ReflectorPolicy(connect_timeout=60.0, read_timeout=60.0)


@dataclass
class Rotating:
    """What the references lead to now; ``asked``: whether each reading had to be fresh."""

    ca: str | None = None
    client: str | None = None

    def __post_init__(self) -> None:
        self.kept = (self.ca, self.client)
        self.asked: list[bool] = []

    def ca_pem(self, *, fresh: bool = False) -> str | None:
        self.asked.append(fresh)
        if fresh:
            self.kept = (self.ca, self.client)
        return self.kept[0]

    def client_pem(self, *, fresh: bool = False) -> str | None:
        if fresh:
            self.kept = (self.ca, self.client)
        return self.kept[1]


@pytest.fixture
def authority() -> Authority:
    return make_authority()


def test_ca_that_was_rotated_is_read_again_when_the_server_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    source = Rotating(ca=make_authority("before").pem)
    with ScriptedServer(
        [answer({"kind": "ServiceList"})], tls=make_leaf(tmp_path, authority).server_context()
    ) as server:
        access = ClusterAccess(server.url, certificates=source, policy=POLICY)
        with closing(ApiClient(access)) as api:
            with pytest.raises(HandshakeError, match="the certificate is not accepted"):
                api.fetch(REQUEST)
            source.ca = authority.pem
            assert b"ServiceList" in api.fetch(REQUEST)
    assert source.asked == [False, True]


def test_client_certificate_signs_in(authority: Authority, tmp_path: Path) -> None:
    tls = make_leaf(tmp_path, authority).server_context(authority)
    with ScriptedServer([answer({"kind": "ServiceList"})] * 2, tls=tls) as server:
        source = Rotating(ca=authority.pem, client=make_leaf(tmp_path, authority).pem)
        with closing(ApiClient(ClusterAccess(server.url, certificates=source, policy=POLICY))) as api:
            assert b"ServiceList" in api.fetch(REQUEST)
        stranger = Rotating(ca=authority.pem, client=make_leaf(tmp_path, make_authority("stranger")).pem)
        with closing(ApiClient(ClusterAccess(server.url, certificates=stranger, policy=POLICY))) as api:
            with pytest.raises(HandshakeError):
                api.fetch(REQUEST)
            stranger.client = source.client
            assert b"ServiceList" in api.fetch(REQUEST)


def test_401_is_answered_with_a_fresh_client_certificate_once(authority: Authority, tmp_path: Path) -> None:
    tls = make_leaf(tmp_path, authority).server_context(authority)
    old, new = make_leaf(tmp_path, authority), make_leaf(tmp_path, authority)
    refused = status_answer(401, "Unauthorized", Connection="close")
    with ScriptedServer([refused, answer({"kind": "ServiceList"}), refused, refused], tls=tls) as server:
        source = Rotating(ca=authority.pem, client=old.pem)
        with closing(ApiClient(ClusterAccess(server.url, certificates=source, policy=POLICY))) as api:
            source.client = new.pem
            assert b"ServiceList" in api.fetch(REQUEST)
            assert source.asked == [False, True]
            with pytest.raises(DeniedError):
                api.fetch(REQUEST)
    assert source.asked == [False, True, True]


def test_key_with_a_passphrase_is_refused_and_nobody_is_asked_for_it(authority: Authority, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    leaf = make_leaf(tmp_path, authority)
    key = serialization.load_pem_private_key(Path(leaf.key_file).read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.BestAvailableEncryption(b"passphrase"),
    )
    source = Rotating(ca=authority.pem, client=Path(leaf.cert_file).read_text() + locked.decode())
    access = ClusterAccess("https://127.0.0.1:1", certificates=source, policy=POLICY)
    with closing(ApiClient(access)) as api, pytest.raises(HandshakeError, match="cannot be read as PEM"):
        api.fetch(REQUEST)


def test_no_file_with_a_key_is_left_behind_i8(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, str]] = []
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    load = ssl.SSLContext.load_cert_chain

    def noted(context: ssl.SSLContext, certfile: str, *args: object, **kwargs: object) -> None:
        seen.append((Path(certfile).stat().st_mode & 0o777, certfile))
        load(context, certfile, *args, **kwargs)  # type: ignore[arg-type]

    tls = make_leaf(tmp_path, authority).server_context(authority)
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", noted)
    with ScriptedServer([answer({"kind": "ServiceList"})], tls=tls) as server:
        source = Rotating(ca=authority.pem, client=make_leaf(tmp_path, authority).pem)
        with closing(ApiClient(ClusterAccess(server.url, certificates=source, policy=POLICY))) as api:
            api.fetch(REQUEST)
    assert [mode for mode, _ in seen] == [0o600]
    assert list(place.iterdir()) == []
