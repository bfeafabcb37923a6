import base64
import socket
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from harness.fakes.manual_clock import ManualClock
from kubesync.aws.secrets.issued_tokens import IssuedToken, eks_token
from kubesync.domain.errors import DeniedError
from kubesync.kubernetes.transport.client import without_secret
from kubesync_local.workplace.file_tokens import FileToken, StaticToken


def test_static_token_stays() -> None:
    assert StaticToken("t").token(fresh=True) == "t"


def test_file_token_is_read_again_after_a_minute_or_when_refused(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", ManualClock()
    path.write_text("one\n")
    source = FileToken(path, clock)
    assert source.token() == "one"
    path.write_text("two\n")
    clock.advance(59.0)
    assert source.token() == "one"
    assert source.token(fresh=True) == "two"
    path.write_text("three\n")
    clock.advance(60.0)
    assert source.token() == "three"


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_file_without_a_token_is_a_denial(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DeniedError, match="no token: "):
        FileToken(path, ManualClock()).token()


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("signing must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> boto3.Session:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return boto3.Session("AKIDEXAMPLE", "secret-key", "session-token", region_name="eu-west-1")


def token_for(session: boto3.Session, cluster_name: str, region: str | None = None) -> str:
    return eks_token(session, cluster_name, region, None, fresh=False)


def signed_url(token: str) -> str:
    encoded = token.removeprefix("k8s-aws-v1.")
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()


@pytest.mark.usefixtures("no_network")
def test_eks_token_is_a_signed_url_for_this_cluster(session: boto3.Session) -> None:
    token = token_for(session, "prod")
    assert token.startswith("k8s-aws-v1.")
    assert "=" not in token
    url = urlsplit(signed_url(token))
    query = parse_qs(url.query)
    assert (url.scheme, url.netloc, url.path) == ("https", "sts.eu-west-1.amazonaws.com", "/")
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["Version"] == ["2011-06-15"]
    assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
    assert query["X-Amz-Expires"] == ["60"]
    assert query["X-Amz-Security-Token"] == ["session-token"]
    assert "secret-key" not in signed_url(token)


@pytest.mark.usefixtures("no_network")
def test_eks_token_is_good_for_its_cluster_only(session: boto3.Session) -> None:
    signatures = {
        parse_qs(urlsplit(signed_url(token_for(session, name))).query)["X-Amz-Signature"][0] for name in ("one", "two")
    }
    assert len(signatures) == 2


@pytest.mark.usefixtures("no_network")
def test_eks_token_is_signed_in_the_region_of_the_cluster(session: boto3.Session) -> None:
    token = token_for(session, "prod", "cn-north-1")
    assert urlsplit(signed_url(token)).netloc == "sts.cn-north-1.amazonaws.com.cn"


def test_token_is_issued_again_after_13_minutes_or_when_refused() -> None:
    clock = ManualClock()
    issued: list[bool] = []

    def issue(fresh: bool) -> str:
        issued.append(fresh)
        return f"token-{len(issued)}"

    source = IssuedToken(issue, clock)
    assert source.token() == "token-1"
    clock.advance(779.0)
    assert source.token() == "token-1"
    clock.advance(1.0)
    assert source.token() == "token-2"
    assert source.token(fresh=True) == "token-3"
    assert issued == [False, False, True]


def test_eks_token_without_a_region_is_a_denial(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(DeniedError, match="no token for EKS cluster prod: "):
        token_for(boto3.Session(), "prod")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no token here", "no token here"),
        ("Bearer abcdefghijklmnopqrstuvwxyz is refused", "Bearer *** is refused"),
        ("abcdefghijklmnopqrstuvwxyz, abcdefghijklmnopqrstuvwxyz", "***, ***"),
        ("cut off: abcdefghijklmnop…", "cut off: ***…"),
        ("abcdefghijk", "abcdefghijk"),
    ],
)
def test_secret_is_hidden_wherever_it_stands_i8(text: str, shown: str) -> None:
    assert without_secret(text, "abcdefghijklmnopqrstuvwxyz") == shown
    assert without_secret(text, "") == text


@pytest.mark.parametrize(
    ("text", "secret", "shown"),
    [
        ('cannot list in API group "*" or "*"', "*", 'cannot list in API group "***" or "***"'),
        ("the token *** is refused", "***", "the token *** is refused"),
        ("ab**ab", "**", "ab***ab"),
    ],
)
def test_secret_that_looks_like_what_hides_it(text: str, secret: str, shown: str) -> None:
    """Somebody registers a redacted copy of a token."""
    assert without_secret(text, secret) == shown
