"""``--aws-identity``: tokens that STS issues, over HTTP from a stand-in of STS to a stand-in API server."""

from collections.abc import Iterator

import boto3
import pytest

from harness.cli_stack import CliStack, a_cli_stack, environment_of
from harness.fakes.manual_clock import ManualClock
from harness.fakes.shifted_clock import ShiftedClock
from harness.fakes.sts import StsStandIn
from harness.secrets_watch import AWS_SECRET, TOKEN
from kubesync.aws.secrets.issued_tokens import IssuedToken, web_identity_token
from kubesync.domain.errors import DeniedError

AUDIENCE = "https://prod.example.com/kubesync"


@pytest.fixture
def sts() -> Iterator[StsStandIn]:
    with StsStandIn(ShiftedClock(), {}) as made:
        made.web_tokens[AUDIENCE] = TOKEN
        yield made


@pytest.fixture
def stack(sts: StsStandIn) -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.environment["AWS_ENDPOINT_URL_STS"] = sts.url
        yield made


def add(stack: CliStack, *options: str) -> tuple[int, str]:
    ran = stack.call("cluster", "add", "prod", "--template", "default", "--server", stack.api.url, "--domain", "prod.example.com",
                     "--zone", stack.zone_id, *options)  # fmt: skip
    return ran.status, ran.err


def test_cluster_that_trusts_sts_is_synchronised(stack: CliStack, sts: StsStandIn) -> None:
    status, said = add(stack, "--aws-identity", AUDIENCE)
    assert status == 0, said

    assert stack.session().json["clean"]

    assert stack.zone_records()["kubernetes.default.svc.prod.example.com A"] == ["10.68.0.1"]
    asked = {(*form["Audience.member.1"], *form["SigningAlgorithm"], *form["DurationSeconds"]) for form in sts.issued}
    assert asked == {(AUDIENCE, "RS256", "900")}
    shown = stack.call("cluster", "show", "prod", "--output", "json").json
    assert (shown["aws_identity"], shown["token"]) == (AUDIENCE, None)
    steps = {step["step"]: step for step in stack.call("cluster", "check", "prod", "--output", "json").json["steps"]}
    assert steps["credentials"]["details"] == f"token from AWS STS, for audience {AUDIENCE}"
    assert steps["authentication"]["result"] == "ok"


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("AccessDenied", "allow sts:GetWebIdentityToken for this audience (parameter AwsIdentityAudiences)"),
        (
            "OutboundWebIdentityFederationDisabledException",
            "switch it on: aws iam enable-outbound-web-identity-federation",
        ),
    ],
)
def test_token_that_sts_refuses_is_a_denial_that_says_what_to_do(
    stack: CliStack, sts: StsStandIn, code: str, hint: str
) -> None:
    assert add(stack, "--aws-identity", AUDIENCE, "--endpoints-source", "endpointslices")[0] == 0
    sts.web_tokens[AUDIENCE] = f"[{code}]"
    stack.api.requests.clear()

    stack.session(lambda: {each["key"] for each in stack.last_errors("prod")} == {"ERR_REQUEST_DENIED"})

    assert {each["message"] for each in stack.last_errors("prod")} == {
        f"no token for audience {AUDIENCE} from STS ({code}): {hint}"
    }
    assert stack.api.requests.all() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--token", "env:T"), "--aws-identity signs in by itself: leave out --token"),
        (("--client-certificate", "ssm:/c"), "--aws-identity signs in by itself: leave out --client-certificate"),
        (("--eks", "e"), "--aws-identity signs in by itself: leave out --eks"),
        (("--role-arn", "arn:aws:iam::222222222222:role/x"), "--role-arn needs --eks"),
    ],
)
def test_other_sign_in_beside_it_is_wrong_use(stack: CliStack, options: tuple[str, ...], said: str) -> None:
    status, err = add(stack, "--aws-identity", AUDIENCE, *options)

    assert status == 2
    assert said in err
    assert add(stack, "--aws-identity", "not an audience")[1] == (
        "kubesync: --aws-identity is an audience of at most 1,000 letters, digits and : / . _ ~ -\n"
    )


def test_token_is_fetched_again_after_13_minutes_or_when_refused(sts: StsStandIn) -> None:
    clock = ManualClock()
    with environment_of({"AWS_ENDPOINT_URL_STS": sts.url}):
        session = boto3.Session("AKIATEST", AWS_SECRET, region_name="eu-west-1")
        source = IssuedToken(lambda _fresh: web_identity_token(session, AUDIENCE), clock)
        assert source.token() == source.token() == TOKEN
        clock.advance(779.0)
        source.token()
        assert len(sts.issued) == 1
        clock.advance(1.0)
        source.token()
        assert len(sts.issued) == 2
        source.token(fresh=True)
        assert len(sts.issued) == 3


def test_token_without_a_region_is_a_denial(monkeypatch: pytest.MonkeyPatch) -> None:
    with environment_of({"AWS_CONFIG_FILE": "/dev/null"}), pytest.raises(DeniedError) as denied:
        web_identity_token(boto3.Session("AKIATEST", AWS_SECRET), AUDIENCE)
    assert "eyJ" not in str(denied.value)
