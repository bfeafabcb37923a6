"""boto3 as kubesync loads it: less of botocore's models in memory, the same requests."""

from collections.abc import Iterator
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.config import Config

from kubesync.aws.sessions import aws_session

# Of sessions, then of commands.
CALLS = {
    "dynamodb": "list_tables",
    "route53": "list_hosted_zones",
    "secretsmanager": "list_secrets",
    "ssm": "describe_parameters",
    "sts": "get_caller_identity",
    "cloudwatch": "list_metrics",
    "dynamodbstreams": "list_streams",
    "eks": "list_clusters",
    "lambda": "list_functions",
    "scheduler": "list_schedules",
}
REGIONS = ("us-east-1", "eu-central-1", "cn-north-1", "us-gov-west-1", "mars-north-1")


class SentError(Exception):
    """Instead of sending a request."""


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


def _sent(session: boto3.Session, service: str, region: str) -> tuple[str, str]:
    """Where a request goes, and for which day, region and service it is signed."""
    sent: list[AWSPreparedRequest] = []

    def keep(request: AWSPreparedRequest, **_: Any) -> None:
        sent.append(request)
        raise SentError

    client: Any = session.client(service, region_name=region, config=Config(retries={"total_max_attempts": 1}))  # type: ignore[call-overload]  # boto3-stubs want a literal name
    client.meta.events.register("before-send", keep)
    with pytest.raises(SentError):
        getattr(client, CALLS[service])()
    (request,) = sent
    return request.url, str(request.headers["Authorization"]).partition("Credential=")[2].partition(",")[0]


@pytest.mark.parametrize("service", CALLS)
def test_requests_go_where_boto3_sends_them(service: str) -> None:
    lean, whole = aws_session(), boto3.Session()
    for region in REGIONS:
        assert _sent(lean, service, region) == _sent(whole, service, region)


def test_session_has_the_region_that_other_sdks_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert aws_session().region_name == "eu-west-1"
    monkeypatch.delenv("AWS_REGION")
    assert aws_session().region_name == "us-east-1"


def test_models_are_read_without_texts_and_without_endpoints_of_other_services(monkeypatch: pytest.MonkeyPatch) -> None:
    core = botocore.session.Session()
    monkeypatch.setattr(botocore.session, "Session", lambda: core)
    aws_session()
    loader = core.get_component("data_loader")
    assert list(_texts(loader.load_service_model("dynamodb", "service-2"))) == []
    model = loader.load_service_model("route53", "service-2")
    assert list(_texts(model)) == []
    assert model["operations"]["ChangeResourceRecordSets"]["http"]["requestUri"] == "/2013-04-01/hostedzone/{Id}/rrset/"
    first, *_ = loader.load_data("endpoints")["partitions"]
    assert first["services"].keys() == {"dynamodb", "route53", "secretsmanager", "ssm", "sts"}
    assert loader.load_service_model("dynamodb", "waiters-2")["waiters"]["TableExists"]["operation"] == "DescribeTable"


def _texts(model: Any) -> Iterator[str]:
    for name, value in model.items() if isinstance(model, dict) else enumerate(model):
        if name == "documentation" and isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            yield from _texts(value)
