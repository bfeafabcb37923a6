import boto3
import pytest
from botocore import exceptions as botocore_errors

from kubesync.aws.route53.errors import ERROR_BY_CODE, of_change, of_read, split_messages
from kubesync.domain import errors


def test_every_error_that_the_service_model_lists_for_a_change_is_mapped() -> None:
    client = boto3.Session(region_name="us-east-1").client("route53")
    listed = {
        shape.name for shape in client.meta.service_model.operation_model("ChangeResourceRecordSets").error_shapes
    }
    client.close()
    assert listed >= {"InvalidChangeBatch", "NoSuchHostedZone", "PriorRequestNotComplete"}
    assert listed - ERROR_BY_CODE.keys() == set()


def _answer(code: str, status: int, message: str = "why") -> botocore_errors.ClientError:
    return botocore_errors.ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "ChangeResourceRecordSets",
    )


_URL = "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    ("error", "of_a_change", "of_a_read"),
    [
        (_answer("InvalidChangeBatch", 400), errors.BatchRefusedError, errors.ZoneUnavailableError),
        (_answer("InvalidInput", 400), errors.BatchRefusedError, errors.ZoneUnavailableError),
        (_answer("Throttling", 400), errors.ZoneThrottledError, errors.ZoneThrottledError),
        (_answer("PriorRequestNotComplete", 400), errors.ZoneThrottledError, errors.ZoneThrottledError),
        (_answer("NoSuchHostedZone", 404), errors.ZoneGoneError, errors.ZoneGoneError),
        (_answer("AccessDenied", 403), errors.ZoneDeniedError, errors.ZoneDeniedError),
        (_answer("NeverHeardOf", 400), errors.ZoneUnavailableError, errors.ZoneUnavailableError),
        (_answer("NeverHeardOf", 500), errors.ZoneOutcomeUnknownError, errors.ZoneThrottledError),
        (_answer("502", 502), errors.ZoneOutcomeUnknownError, errors.ZoneThrottledError),
        (_answer("", 0), errors.ZoneOutcomeUnknownError, errors.ZoneThrottledError),
        (
            botocore_errors.EndpointConnectionError(endpoint_url=_URL),
            errors.ZoneThrottledError,
            errors.ZoneThrottledError,
        ),
        (botocore_errors.ConnectTimeoutError(endpoint_url=_URL), errors.ZoneThrottledError, errors.ZoneThrottledError),
        (
            botocore_errors.ReadTimeoutError(endpoint_url=_URL),
            errors.ZoneOutcomeUnknownError,
            errors.ZoneThrottledError,
        ),
        (
            botocore_errors.ConnectionClosedError(endpoint_url=_URL),
            errors.ZoneOutcomeUnknownError,
            errors.ZoneThrottledError,
        ),
        (
            botocore_errors.SSLError(endpoint_url=_URL, error=OSError("EOF in violation of protocol")),
            errors.ZoneOutcomeUnknownError,
            errors.ZoneThrottledError,
        ),
        (
            botocore_errors.SSLError(endpoint_url=_URL, error=OSError("[SSL: CERTIFICATE_VERIFY_FAILED]")),
            errors.ZoneUnavailableError,
            errors.ZoneUnavailableError,
        ),
        (botocore_errors.NoCredentialsError(), errors.ZoneUnavailableError, errors.ZoneUnavailableError),
        (
            botocore_errors.CredentialRetrievalError(provider="x", error_msg="y"),
            errors.ZoneUnavailableError,
            errors.ZoneUnavailableError,
        ),
        (
            botocore_errors.ParamValidationError(report="bad"),
            errors.BatchRefusedError,
            errors.ZoneUnavailableError,
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None) or type(value).__name__ + str(value)[:60],
)
def test_error_is_classed_by_what_to_do_next(
    error: Exception, of_a_change: type[errors.ZoneError], of_a_read: type[errors.ZoneError]
) -> None:
    assert type(of_change(error)) is of_a_change
    assert type(of_read(error)) is of_a_read


def test_missing_credentials_are_one_line_that_says_what_to_do() -> None:
    message = str(of_change(botocore_errors.NoCredentialsError()))
    assert "\n" not in message
    assert "give the function a role, or set AWS_PROFILE" in message


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", ()),
        ("Invalid request", ("Invalid request",)),
        (
            "[Tried to create resource record set [name='a.example.com.', type='A'] but it already exists]",
            ("Tried to create resource record set [name='a.example.com.', type='A'] but it already exists",),
        ),
        (
            (
                "[Tried to delete resource record set [name='\\052.example.com.', type='A'] but the values provided do not "
                "match the current values, RRSet with DNS name b.example.org. is not permitted in zone example.com., "
                "Invalid Resource Record: 'FATAL problem: ARRDATAIllegalIPv4Address (Value is not a valid IPv4 address) "
                "encountered with 'x, y'', Duplicate Resource Record: '10.0.0.1']"
            ),
            (
                (
                    "Tried to delete resource record set [name='\\052.example.com.', type='A'] but the values provided do "
                    "not match the current values"
                ),
                "RRSet with DNS name b.example.org. is not permitted in zone example.com.",
                (
                    "Invalid Resource Record: 'FATAL problem: ARRDATAIllegalIPv4Address (Value is not a valid IPv4 address) "
                    "encountered with 'x, y''"
                ),
                "Duplicate Resource Record: '10.0.0.1'",
            ),
        ),
        (
            (
                "Message was too long, it was truncated. [Tried to create resource record set [name='a.', type='A'] but it "
                "already exists, Tried to create resource rec"
            ),
            (
                "Tried to create resource record set [name='a.', type='A'] but it already exists",
                "Tried to create resource rec",
            ),
        ),
    ],
)
def test_list_of_messages_is_taken_apart(text: str, messages: tuple[str, ...]) -> None:
    assert split_messages(text) == messages
