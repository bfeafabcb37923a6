"""Maps the answers of Route 53, and failures on the way to it, to what the caller does next.

answer                                            a change becomes            a read becomes, after repeats
------                                            ----------------            -----------------------------
InvalidChangeBatch, InvalidInput and the like     BatchRefusedError           ZoneUnavailableError
Throttling, PriorRequestNotComplete               ZoneThrottledError          ZoneThrottledError
no connection: nothing was sent                   ZoneThrottledError          ZoneThrottledError
sent, and no complete answer; status 5xx          ZoneOutcomeUnknownError     ZoneThrottledError
no permission                                     ZoneDeniedError             ZoneDeniedError
no such zone, no credentials                      ZoneUnavailableError        ZoneUnavailableError
any other status 4xx: nothing was applied         ZoneUnavailableError        ZoneUnavailableError
"""

import re
from collections.abc import Mapping
from typing import Final

from botocore import exceptions as botocore_errors

from kubesync.domain import errors

_SERVER_ERROR: Final = 500

# Codes of ChangeResourceRecordSets in botocore's service model (a test compares this table with it), and the codes that AWS
# can return for any operation: https://docs.aws.amazon.com/Route53/latest/APIReference/CommonErrors.html
ERROR_BY_CODE: Final[Mapping[str, type[errors.ZoneError]]] = {
    "InvalidChangeBatch": errors.BatchRefusedError,
    "InvalidInput": errors.BatchRefusedError,
    "MalformedInput": errors.BatchRefusedError,
    "NoSuchHealthCheck": errors.BatchRefusedError,
    "ValidationError": errors.BatchRefusedError,
    "PriorRequestNotComplete": errors.ZoneThrottledError,
    "RequestLimitExceeded": errors.ZoneThrottledError,
    "Throttling": errors.ZoneThrottledError,
    "ThrottlingException": errors.ZoneThrottledError,
    "TooManyRequestsException": errors.ZoneThrottledError,
    "AccessDenied": errors.ZoneDeniedError,
    "AccessDeniedException": errors.ZoneDeniedError,
    "ExpiredToken": errors.ZoneUnavailableError,
    "ExpiredTokenException": errors.ZoneUnavailableError,
    "IncompleteSignature": errors.ZoneUnavailableError,
    "InvalidClientTokenId": errors.ZoneUnavailableError,
    "InvalidSignatureException": errors.ZoneUnavailableError,
    "MissingAuthenticationToken": errors.ZoneUnavailableError,
    "NoSuchHostedZone": errors.ZoneGoneError,
    "NotAuthorized": errors.ZoneDeniedError,
    "OptInRequired": errors.ZoneUnavailableError,
    "SignatureDoesNotMatch": errors.ZoneUnavailableError,
    "UnrecognizedClientException": errors.ZoneUnavailableError,
}

_NOTHING_WAS_SENT: Final = (
    botocore_errors.EndpointConnectionError,
    botocore_errors.ConnectTimeoutError,
    botocore_errors.ProxyConnectionError,
)
_NO_CREDENTIALS: Final = (
    botocore_errors.NoCredentialsError,
    botocore_errors.PartialCredentialsError,
    botocore_errors.CredentialRetrievalError,
    botocore_errors.TokenRetrievalError,
    botocore_errors.SSOError,
    botocore_errors.ProfileNotFound,
)

# The messages of a refused batch begin like this. Route 53 joins them with ", ", which they also contain.
_BEGINNINGS: Final = (
    "A HostedZone must contain ",
    "Cannot have more than ",
    "Duplicate Resource Record",
    "Exceeded limit ",
    "FATAL problem: ",
    "Invalid Resource Record: ",
    "Number of records limit ",
    "RDATA character limit ",
    "RRSet of type ",
    "RRSet with DNS name ",
    "The request contains an invalid set of changes",
    "Tried to create ",
    "Tried to delete ",
)
_BETWEEN: Final = re.compile(",\\s+(?=" + "|".join(map(re.escape, _BEGINNINGS)) + ")")
_TRUNCATED: Final = re.compile(r"^Message was too long, it was truncated\.\s*")


def of_change(error: Exception) -> errors.ZoneError:
    """The error for a change that was sent once."""
    if isinstance(error, botocore_errors.ClientError):
        return _of_answer(error)
    if isinstance(error, botocore_errors.ParamValidationError):
        return errors.BatchRefusedError((_one_line(error),))
    if isinstance(error, _NOTHING_WAS_SENT):
        return errors.ZoneThrottledError(f"Route 53 could not be reached, nothing was sent: {_one_line(error)}")
    if isinstance(error, _NO_CREDENTIALS):
        return errors.ZoneUnavailableError(
            "no AWS credentials for Route 53: give the function a role, or set AWS_PROFILE or AWS_ACCESS_KEY_ID "
            f"({_one_line(error)})"
        )
    if isinstance(error, botocore_errors.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return errors.ZoneUnavailableError(f"Route 53's certificate is not trusted: {_one_line(error)}")
    return errors.ZoneOutcomeUnknownError(f"no complete answer from Route 53: {_one_line(error)}")


def of_read(error: Exception) -> errors.ZoneError:
    """The error for a read. A read changes nothing, so its outcome is never unknown."""
    mapped = of_change(error)
    if isinstance(mapped, errors.ZoneOutcomeUnknownError):
        return errors.ZoneThrottledError(str(mapped))
    if isinstance(mapped, errors.BatchRefusedError):
        return errors.ZoneUnavailableError(f"Route 53 refused a read: {mapped}")
    return mapped


def _of_answer(error: botocore_errors.ClientError) -> errors.ZoneError:
    """The error for an answer of Route 53 that is not a success."""
    answer: Mapping[str, object] = {**error.response}
    details = error.response.get("Error", {})
    code, message = details.get("Code", ""), details.get("Message", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if not code and "Messages" in answer:
        # The older form of InvalidChangeBatch has no Error element, so botocore finds no code in it.
        return errors.BatchRefusedError(_listed(answer["Messages"]))
    kind = ERROR_BY_CODE.get(code)
    if kind is errors.BatchRefusedError:
        return errors.BatchRefusedError(split_messages(message))
    if kind is not None:
        return kind(f"{code}: {message}")
    if status >= _SERVER_ERROR or not code:
        return errors.ZoneOutcomeUnknownError(f"Route 53 answered with status {status}: {code} {message}")
    return errors.ZoneUnavailableError(f"Route 53 refused with status {status}: {code}: {message}")


def _listed(messages: object) -> tuple[str, ...]:
    """The messages of the older form. botocore keeps a single one but loses several: then there are none, and the caller has to bisect."""
    found = messages.get("Message") if isinstance(messages, Mapping) else None
    return (found,) if isinstance(found, str) else ()


def split_messages(text: str) -> tuple[str, ...]:
    """Split the messages of a refused batch, which Route 53 writes as one text: ``[first, second]``.

    As a rule, each message is about one change of the batch: the zone finds with them which changes it must leave out.
    """
    inside = _TRUNCATED.sub("", text).strip()
    if inside.startswith("["):
        # A truncated list has lost its closing bracket; a bracket at the end then belongs to a message.
        inside = inside[1:].removesuffix("]") if inside.count("[") == inside.count("]") else inside[1:]
    return tuple(message for message in _BETWEEN.split(inside) if message)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
