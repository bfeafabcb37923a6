"""References to tokens, and the token behind one."""

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from harness.fakes.manual_clock import ManualClock
from kubesync.aws.secrets.references import SecretKind, SecretReference, SecretToken, parse_secret_reference
from kubesync.domain.errors import DeniedError, UsageError

SERVER = "https://api.example.com:6443"
ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/token-AbCdEf"


class FakeAws:
    """Both services at once; the values are answered in turn, the last one for ever. An exception is raised."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, object]] = []

    def client_for(self, service: str) -> Any:
        return self

    def _answer(self, request: dict[str, object]) -> object:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def get_secret_value(self, **request: object) -> dict[str, object]:
        answer = self._answer(request)
        return {"SecretBinary" if isinstance(answer, bytes) else "SecretString": answer}

    def get_parameter(self, **request: object) -> dict[str, object]:
        return {"Parameter": {"Value": self._answer(request)}}


def a_token(text: str, aws: FakeAws, clock: ManualClock | None = None) -> SecretToken:
    return SecretToken(parse_secret_reference(text, local=True), aws.client_for, clock or ManualClock(), server=SERVER)


def an_aws_error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "tok-1 must not\nbe shown"}}, "GetSecretValue")


@pytest.mark.parametrize(
    ("text", "kind", "name", "json_key"),
    [
        ("secretsmanager:prod/token", SecretKind.SECRETS_MANAGER, "prod/token", ""),
        (f"secretsmanager:{ARN}", SecretKind.SECRETS_MANAGER, ARN, ""),
        (f"secretsmanager:{ARN}#bearer", SecretKind.SECRETS_MANAGER, ARN, "bearer"),
        ("ssm:/prod/token", SecretKind.PARAMETER, "/prod/token", ""),
        ("ssm:/prod/token:3", SecretKind.PARAMETER, "/prod/token:3", ""),
        ("file:~/token#1", SecretKind.FILE, "~/token#1", ""),
        ("env:PROD_TOKEN", SecretKind.ENVIRONMENT, "PROD_TOKEN", ""),
    ],
)
def test_reference_is_parsed_and_written_back(text: str, kind: SecretKind, name: str, json_key: str) -> None:
    reference = parse_secret_reference(text, local=True)
    assert reference == SecretReference(kind, name, json_key)
    assert str(reference) == text


@pytest.mark.parametrize("text", ["", "secretsmanager:", "secretsmanager:#key", "secretsmanager:a#", "ssm:", "vault:x"])
def test_what_is_not_a_reference_is_wrong_use(text: str) -> None:
    with pytest.raises(UsageError):
        parse_secret_reference(text, local=True)


def test_token_in_place_of_a_reference_is_not_quoted_i8() -> None:
    for text in ("eyJhbGciOiJSUzI1NiJ9.e30.c2ln", "eyJhbGci:OiJSUzI1NiJ9"):
        with pytest.raises(UsageError) as wrong:
            parse_secret_reference(text, local=True)
        assert "eyJ" not in str(wrong.value)


@pytest.mark.parametrize("text", ["file:/etc/passwd", "env:AWS_SECRET_ACCESS_KEY"])
def test_local_reference_is_refused_where_it_is_deployed(text: str) -> None:
    with pytest.raises(UsageError, match="works only on your own machine"):
        parse_secret_reference(text, local=False)


@pytest.mark.parametrize(
    ("text", "answer", "request_sent"),
    [
        ("secretsmanager:a", "tok-1\n", {"SecretId": "a"}),
        ("secretsmanager:a", b"tok-1", {"SecretId": "a"}),
        ("secretsmanager:a#k", '{"k": "tok-1"}', {"SecretId": "a"}),
        ("ssm:/a", "tok-1", {"Name": "/a", "WithDecryption": True}),
    ],
)
def test_token_is_read_from_aws(text: str, answer: object, request_sent: dict[str, object]) -> None:
    aws = FakeAws(answer)
    assert a_token(text, aws).token() == "tok-1"
    assert aws.asked == [request_sent]


def test_token_is_read_from_a_file_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    path.write_text(" tok-1\n")
    clock = ManualClock()
    assert a_token(f"file:{path}", FakeAws("")).token() == "tok-1"
    variable = parse_secret_reference("env:T", local=True)
    monkeypatch.setenv("T", "tok-2")
    assert SecretToken(variable, FakeAws("").client_for, clock, server=SERVER).token() == "tok-2"


def test_token_is_kept_for_five_minutes() -> None:
    aws, clock = FakeAws("tok-1", "tok-2"), ManualClock()
    token = a_token("ssm:/a", aws, clock)
    assert token.token() == "tok-1"
    clock.advance(299)
    assert token.token() == "tok-1"
    assert len(aws.asked) == 1
    clock.advance(1)
    assert token.token() == "tok-2"


def test_fresh_token_is_read_at_once() -> None:
    aws = FakeAws("tok-1", "tok-2")
    token = a_token("ssm:/a", aws)
    assert [token.token(), token.token(fresh=True), token.token()] == ["tok-1", "tok-2", "tok-2"]


def test_known_token_outlives_an_outage_of_its_source() -> None:
    aws, clock = FakeAws("tok-1", EndpointConnectionError(endpoint_url="x"), "tok-2"), ManualClock()
    token = a_token("ssm:/a", aws, clock)
    token.token()
    clock.advance(300)
    assert [token.token(), token.token()] == ["tok-1", "tok-1"]
    assert len(aws.asked) == 2
    clock.advance(30)
    assert token.token() == "tok-2"


def test_fresh_token_that_cannot_be_read_is_denied() -> None:
    token = a_token("ssm:/a", FakeAws("tok-1", an_aws_error("ThrottlingException")))
    token.token()
    with pytest.raises(DeniedError, match="no token from ssm:/a: AWS answers ThrottlingException"):
        token.token(fresh=True)


@pytest.mark.parametrize(
    ("text", "answer", "why"),
    [
        ("secretsmanager:a", an_aws_error("ResourceNotFoundException"), "no such secret"),
        ("ssm:/a", an_aws_error("ParameterNotFound"), "no such parameter"),
        ("ssm:/a", an_aws_error("AccessDeniedException"), "access is denied"),
        ("secretsmanager:a", "tok-1\ntok-2", "not a token on one line"),
        ("secretsmanager:a", " \n", "not a token on one line"),
        ("secretsmanager:a", "tök-1", "not a token on one line"),
        ("secretsmanager:a", b"\xff", "not text"),
        ("secretsmanager:a#k", "tok-1", "not a JSON object"),
        ("secretsmanager:a#k", '{"other": "tok-1"}', "no text under the key k"),
        ("secretsmanager:a#k", '["tok-1"]', "not a JSON object"),
        ("secretsmanager:a#k", '{"k": 1}', "no text under the key k"),
        ("file:/nonexistent/token", "", "No such file"),
        ("file:/dev/zero", "", "it is not a regular file"),
        ("env:KUBESYNC_NOT_SET", "", "not set"),
    ],
)
def test_unreadable_token_is_one_line_without_it_i8(text: str, answer: object, why: str) -> None:
    token = a_token(text, FakeAws(answer))
    with pytest.raises(DeniedError, match=why) as denied:
        token.token()
    message = str(denied.value)
    assert message.startswith(f"no token from {text}: ")
    assert "\n" not in message
    assert "tok-" not in message
    assert denied.value.__cause__ is None


def test_token_is_not_in_its_representation_i8() -> None:
    token = a_token("ssm:/a", FakeAws("tok-1"))
    token.token()
    assert repr(token) == "SecretToken(ssm:/a)"


@pytest.mark.parametrize(
    ("said", "server", "same"),
    [
        ("https://api.example.com:6443", SERVER, True),
        ("https://API.example.com.:6443/", SERVER, True),
        ("api.example.com:6443", SERVER, True),
        ("api.example.com", SERVER, True),
        ("https://api.example.com", SERVER, False),
        ("https://api.example.com:443", "https://api.example.com", True),
        ("https://api.example.com", "https://api.example.com:443/", True),
        ("https://api.example.com:6444", SERVER, False),
        ("https://api.example.com.evil.example:6443", SERVER, False),
        ("https://api.example.com@evil.example:6443", SERVER, False),
        ("evil.example", SERVER, False),
        ("[2001:db8:0::1]:6443", "https://[2001:db8::1]:6443", True),
        ("https://[2001:db8::2]:6443", "https://[2001:db8::1]:6443", False),
        ("https://api.example.com:x", SERVER, False),
        ("", SERVER, False),
        (None, SERVER, False),
        (["https://api.example.com:6443"], SERVER, False),
    ],
)
@pytest.mark.parametrize("reference", ["secretsmanager:a", "secretsmanager:a#token", "ssm:/a"])
def test_token_of_a_secret_that_names_its_server_goes_to_no_other_i8(
    said: object, server: str, same: bool, reference: str
) -> None:
    aws = FakeAws(json.dumps({"server": said, "token": "tok-1"}, indent=1))
    token = SecretToken(parse_secret_reference(reference, local=False), aws.client_for, ManualClock(), server=server)

    if same:
        assert token.token() == "tok-1"
        assert token.bound
        return
    with pytest.raises(DeniedError) as refused:
        token.token()
    assert str(refused.value) == (
        f"no token from {reference}: it is for another API server: its `server` is not the one of this cluster"
    )


def test_json_secret_without_a_server_holds_a_token_for_any() -> None:
    token = a_token("ssm:/a", FakeAws('{"token": "tok-1"}'))

    assert (token.token(), token.bound) == ("tok-1", False)


def test_json_secret_without_a_token_is_refused() -> None:
    with pytest.raises(DeniedError, match="the secret has no text under the key token"):
        a_token("ssm:/a", FakeAws('{"server": "https://api.example.com:6443"}')).token()
