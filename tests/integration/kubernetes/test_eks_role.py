"""EKS clusters of other accounts: signed with an assumed role, whose credentials outlast every token."""

import base64
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.sts import StsStandIn
from harness.secrets_watch import AWS_SECRET
from kubesync.aws.secrets.issued_tokens import AssumedRole, IssuedToken, eks_token
from kubesync.domain.errors import DeniedError

ROLE = "arn:aws:iam::222222222222:role/kubesync"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def sts(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[StsStandIn]:
    with StsStandIn(clock, {ROLE: "shared"}) as made:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", made.url)
        yield made


def a_token(clock: ManualClock, external_id: str = "shared") -> IssuedToken:
    session = boto3.Session(aws_access_key_id="AKIATEST", aws_secret_access_key=AWS_SECRET, region_name="eu-west-1")
    role = AssumedRole(session, ROLE, external_id, clock, "us-east-1")
    return IssuedToken(lambda fresh: eks_token(session, "prod", "us-east-1", role, fresh=fresh), clock)


def signer_of(token: str) -> str:
    """Whose credentials have signed it."""
    encoded = token.removeprefix("k8s-aws-v1.")
    url = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    found = parse_qs(urlsplit(url).query)
    assert found["Action"] == ["GetCallerIdentity"]
    assert "x-k8s-aws-id" in found["X-Amz-SignedHeaders"][0]
    assert found["X-Amz-Security-Token"] == [AWS_SECRET]
    return found["X-Amz-Credential"][0].split("/")[0]


def test_token_is_signed_by_the_role(clock: ManualClock, sts: StsStandIn) -> None:
    token = a_token(clock)
    assert signer_of(token.token()) == "ASIA-222222222222-1"
    assert token.token() == token.token()
    assert sts.asked == [ROLE]


def test_token_is_renewed_before_14_minutes_and_its_credentials_before_they_could_end_it(
    clock: ManualClock, sts: StsStandIn
) -> None:
    token = a_token(clock)
    token.token()
    signers = []
    for _ in range(5):  # 13 minutes each; the role's credentials last for 60
        clock.advance(13 * 60)
        signers.append(signer_of(token.token()))
    assert signers == ["ASIA-222222222222-1"] * 3 + ["ASIA-222222222222-2"] * 2


def test_refused_token_is_signed_with_credentials_of_now(clock: ManualClock, sts: StsStandIn) -> None:
    token = a_token(clock)
    token.token()
    assert signer_of(token.token(fresh=True)) == "ASIA-222222222222-2"


@pytest.mark.parametrize("external_id", ["", "another"])
def test_role_that_may_not_be_assumed_is_one_line_without_a_secret(
    clock: ManualClock, sts: StsStandIn, external_id: str
) -> None:
    with pytest.raises(DeniedError) as refused:
        a_token(clock, external_id).token()
    said = "no token: role arn:aws:iam::222222222222:role/kubesync cannot be assumed (AccessDenied): allow sts:AssumeRole on it "
    assert refused.value.message.startswith(said)
    assert AWS_SECRET not in refused.value.message


def test_credentials_are_never_shown_i8(clock: ManualClock, sts: StsStandIn) -> None:
    session = boto3.Session(aws_access_key_id="AKIATEST", aws_secret_access_key=AWS_SECRET, region_name="eu-west-1")
    role = AssumedRole(session, ROLE, "shared", clock)
    assert AWS_SECRET not in repr(role.credentials()) + repr(role)
