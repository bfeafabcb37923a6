"""The table of DynamoDB's errors covers every error that botocore knows for the operations we use."""

import inspect
import re

import botocore.session
import pytest
from botocore import exceptions as aws
from botocore.model import ServiceModel

from kubesync.aws.dynamodb.errors import OUTCOME_BY_CODE, OUTCOME_BY_REASON, Outcome, failure_of

OPERATIONS = (
    "GetItem",
    "BatchGetItem",
    "Query",
    "Scan",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "TransactWriteItems",
    "CreateTable",
    "DescribeTable",
    "DescribeContinuousBackups",
    "UpdateContinuousBackups",
    "DescribeTimeToLive",
    "UpdateTimeToLive",
)


@pytest.fixture(scope="module")
def model() -> ServiceModel:
    return botocore.session.get_session().get_service_model("dynamodb")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_modeled_error_has_an_outcome(model: ServiceModel, operation: str) -> None:
    modeled = {shape.name for shape in model.operation_model(operation).error_shapes}
    assert modeled  # an empty list would prove nothing
    assert modeled - OUTCOME_BY_CODE.keys() <= {"TransactionCanceledException"}  # has reasons of its own


def test_every_documented_cancellation_reason_has_an_outcome(model: ServiceModel) -> None:
    documented = re.findall(r"Code: <code>(\w+)</code>", model.shape_for("TransactionCanceledException").documentation)
    assert len(documented) >= 7
    assert set(documented) == OUTCOME_BY_REASON.keys()


def test_every_network_error_of_botocore_is_unsent_or_lost() -> None:
    network = [
        error
        for _, error in inspect.getmembers(aws, inspect.isclass)
        if issubclass(error, aws.HTTPClientError | aws.ConnectionError)
    ]
    assert len(network) >= 8
    unsent = set()
    for error in network:
        outcome = failure_of(error(endpoint_url="x", proxy_url="x", error=OSError("x")), ["t"]).outcome
        assert outcome in {Outcome.UNSENT, Outcome.LOST}
        if outcome is Outcome.UNSENT:
            unsent.add(error.__name__)
    assert unsent == {"EndpointConnectionError", "ConnectTimeoutError", "ProxyConnectionError"}


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (aws.NoCredentialsError(), "set AWS_PROFILE or AWS_ACCESS_KEY_ID"),
        (aws.PartialCredentialsError(provider="env", cred_var="x"), "set AWS_PROFILE or AWS_ACCESS_KEY_ID"),
        (aws.SSLError(endpoint_url="x", error=OSError("CERTIFICATE_VERIFY_FAILED")), "AWS_CA_BUNDLE"),
        (aws.ParamValidationError(report="x"), "table t failed: ParamValidationError"),
    ],
)
def test_what_fails_before_anything_is_sent_is_a_fault_with_advice(error: Exception, advice: str) -> None:
    failure = failure_of(error, ["t"])
    assert failure.outcome is Outcome.FAULT
    assert advice in failure.advice
    assert "\n" not in failure.advice


@pytest.mark.parametrize(
    ("code", "status", "outcome"),
    [
        ("NeverHeardOf", 400, Outcome.FAULT),
        ("NeverHeardOf", 500, Outcome.LOST),
        ("503", 503, Outcome.LOST),
        ("429", 429, Outcome.BUSY),
        ("{strange}", 400, Outcome.FAULT),
    ],
)
def test_code_that_is_not_listed_goes_by_its_status(code: str, status: int, outcome: Outcome) -> None:
    response = {"Error": {"Code": code, "Message": "{x}"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    failure = failure_of(aws.ClientError(response, "PutItem"), ["t"])  # type: ignore[arg-type]
    assert (failure.outcome, failure.name) == (outcome, code)
