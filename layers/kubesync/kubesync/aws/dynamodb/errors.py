"""What botocore's errors mean for a call to DynamoDB: one table maps them all to what the caller can do next."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from botocore import exceptions as aws
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from kubesync.aws.dynamodb.store import Item
from kubesync.aws.dynamodb.wire import from_attributes


class Outcome(Enum):
    """What a failed call did, and so whether it may be repeated."""

    REFUSED = auto()  # a condition failed, nothing was written: the caller decides
    BUSY = auto()  # throttled or collided, nothing was written: repeat
    UNSENT = auto()  # no connection, nothing was sent: repeat
    LOST = auto()  # no answer, or one that proves nothing: repeat if that is harmless
    FAULT = auto()  # would fail again: report what to do


# Error codes: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html and the errors of
# each operation; those common to all services:
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/CommonErrors.html
# A code that is not listed is LOST if the status is 500 or more ("might have succeeded"), else FAULT.
OUTCOME_BY_CODE: Final[Mapping[str, Outcome]] = {
    "ConditionalCheckFailedException": Outcome.REFUSED,
    "TransactionConflictException": Outcome.BUSY,
    "ReplicatedWriteConflictException": Outcome.BUSY,
    "ProvisionedThroughputExceededException": Outcome.BUSY,
    "RequestLimitExceeded": Outcome.BUSY,
    "ThrottlingException": Outcome.BUSY,
    "Throttling": Outcome.BUSY,
    "TransactionInProgressException": Outcome.LOST,  # our own first attempt is still under way
    "InternalServerError": Outcome.LOST,
    "InternalFailure": Outcome.LOST,
    "ServiceUnavailable": Outcome.LOST,
    "ItemCollectionSizeLimitExceededException": Outcome.FAULT,
    "IdempotentParameterMismatchException": Outcome.FAULT,
    "ResourceNotFoundException": Outcome.FAULT,
    "TableNotFoundException": Outcome.FAULT,
    "ResourceInUseException": Outcome.FAULT,
    "LimitExceededException": Outcome.FAULT,
    "ContinuousBackupsUnavailableException": Outcome.FAULT,
    "ValidationException": Outcome.FAULT,
    "AccessDeniedException": Outcome.FAULT,
    "UnrecognizedClientException": Outcome.FAULT,
    "MissingAuthenticationTokenException": Outcome.FAULT,
    "ExpiredTokenException": Outcome.FAULT,
    "InvalidSignatureException": Outcome.FAULT,
}

# CancellationReasons of TransactionCanceledException; None: that action had no fault.
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
OUTCOME_BY_REASON: Final[Mapping[str, Outcome | None]] = {
    "None": None,
    "ConditionalCheckFailed": Outcome.REFUSED,
    "TransactionConflict": Outcome.BUSY,
    "ProvisionedThroughputExceeded": Outcome.BUSY,
    "ThrottlingError": Outcome.BUSY,
    "ItemCollectionSizeLimitExceeded": Outcome.FAULT,
    "ValidationError": Outcome.FAULT,
}

# The class's nearest base decides. An error before the connection exists means that nothing was sent.
OUTCOME_BY_CLASS: Final[Mapping[type[Exception], Outcome]] = {
    aws.EndpointConnectionError: Outcome.UNSENT,
    aws.ConnectTimeoutError: Outcome.UNSENT,
    aws.ProxyConnectionError: Outcome.UNSENT,
    aws.SSLError: Outcome.LOST,  # at the handshake or during an answer: it does not say
    aws.ConnectionError: Outcome.LOST,
    aws.HTTPClientError: Outcome.LOST,  # ReadTimeoutError, ConnectionClosedError, and errors unknown to botocore
    aws.ChecksumError: Outcome.LOST,
    aws.IncompleteReadError: Outcome.LOST,
    ResponseParserError: Outcome.LOST,
    BotoCoreError: Outcome.FAULT,  # credentials, region, parameters: found before anything is sent
}

CAUGHT: Final = (ClientError, BotoCoreError, ResponseParserError)

_CREDENTIALS: Final = "AWS refuses the credentials: renew them, or set AWS_PROFILE"
_NO_CREDENTIALS: Final = "no AWS credentials: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or run with a role"

# What a person does about a FAULT, by error code or class name. {tables}: the tables of the call. {said}: DynamoDB's own
# message, shown only here: an InvalidSignatureException quotes signed headers, including the session token (I8).
_ADVICE: Final[Mapping[str, str]] = {
    "ResourceNotFoundException": "table {tables} does not exist: run `kubesync setup`, or check the prefix and the region",
    "TableNotFoundException": "table {tables} does not exist: run `kubesync setup`, or check the prefix and the region",
    "AccessDeniedException": "access to table {tables} is denied: {said}",
    "ValidationException": "DynamoDB refuses the request to table {tables}: {said}",
    "ValidationError": "DynamoDB refuses a transaction on table {tables}: {said}",
    "IdempotentParameterMismatchException": "the token of one transaction was used for another: make a new token",
    "LimitExceededException": "the account's limit on tables or table operations is reached: {said}",
    "UnrecognizedClientException": _CREDENTIALS,
    "MissingAuthenticationTokenException": _CREDENTIALS,
    "ExpiredTokenException": _CREDENTIALS,
    "InvalidSignatureException": f"{_CREDENTIALS}; check this machine's clock",
    "NoCredentialsError": _NO_CREDENTIALS,
    "PartialCredentialsError": _NO_CREDENTIALS,
    "CredentialRetrievalError": _NO_CREDENTIALS,
    "EndpointConnectionError": "DynamoDB cannot be reached: check the network, the region and AWS_ENDPOINT_URL_DYNAMODB",
    "ConnectTimeoutError": "DynamoDB cannot be reached: check the network, the region and AWS_ENDPOINT_URL_DYNAMODB",
    "ProxyConnectionError": "the proxy to DynamoDB cannot be reached: check HTTPS_PROXY and NO_PROXY",
    "SSLError": "the TLS connection to DynamoDB failed: check the certificates (AWS_CA_BUNDLE) and AWS_ENDPOINT_URL_DYNAMODB",
}
_MAX_SAID_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed call.

    ``name`` is the error code or class; ``advice`` is one line for a person. ``item`` is the item that refused a single write.
    ``failed`` holds the items that refused a transaction, by the action's index.
    """

    outcome: Outcome
    name: str
    advice: str
    item: Item | None = None
    failed: Mapping[int, Item | None] = field(default_factory=dict)


def failure_of(error: Exception, tables: Iterable[str]) -> Failure:
    """Classify an error from ``CAUGHT``; ``tables`` are the real names of the call's tables."""
    shown = ", ".join(sorted(set(tables)))
    if isinstance(error, ClientError):
        return _failure_of_answer(error.response, shown)
    name = type(error).__name__
    outcome = next(OUTCOME_BY_CLASS[base] for base in type(error).__mro__ if base in OUTCOME_BY_CLASS)
    # botocore has one class for all errors of TLS. This one is of the handshake: nothing was sent, and a repeat would fail as well.
    if isinstance(error, aws.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        outcome = Outcome.FAULT
    return Failure(outcome, name, _advice(name, shown, ""))


def _failure_of_answer(response: Mapping[str, Any], tables: str) -> Failure:
    """Classify an answer with an error code. ``tables``: their names, for the advice."""
    error = response.get("Error", {})
    code, said = str(error.get("Code", "")), str(error.get("Message", ""))
    if code == "TransactionCanceledException":
        return _failure_of_reasons(response.get("CancellationReasons", []), tables, said)
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    unlisted = Outcome.LOST if status >= 500 else Outcome.BUSY if status == 429 else Outcome.FAULT
    outcome = OUTCOME_BY_CODE.get(code, unlisted)
    return Failure(outcome, code, _advice(code, tables, said), item=_item(response))


# | among the reasons                        | means   |
# | ---------------------------------------- | ------- |
# | any ConditionalCheckFailed               | REFUSED |  with those indices only
# | otherwise any FAULT, or one not listed   | FAULT   |
# | otherwise only conflicts and throttles   | BUSY    |
# | no reasons at all                        | FAULT   |
def _failure_of_reasons(reasons: list[Mapping[str, Any]], tables: str, said: str) -> Failure:
    """Classify a cancelled transaction. ``reasons`` has one for each action, in their order."""
    found: dict[Outcome, list[int]] = {}  # indices of actions
    for index, reason in enumerate(reasons):
        outcome = OUTCOME_BY_REASON.get(str(reason.get("Code", "None")), Outcome.FAULT)
        if outcome is not None:
            found.setdefault(outcome, []).append(index)
    for outcome in (Outcome.REFUSED, Outcome.FAULT, Outcome.BUSY):
        if outcome in found:
            indices = found[outcome]
            first = reasons[indices[0]]
            name = str(first["Code"])
            failed = {index: _item(reasons[index]) for index in indices} if outcome is Outcome.REFUSED else {}
            return Failure(outcome, name, _advice(name, tables, str(first.get("Message", ""))), failed=failed)
    return Failure(Outcome.FAULT, "TransactionCanceledException", _advice("ValidationError", tables, said))


def _item(holder: Mapping[str, Any]) -> Item | None:
    """The item that failed a condition, from an answer or a reason. None: there is no such item, or the failure is another one."""
    attributes = holder.get("Item")
    return from_attributes(attributes) if attributes else None


def _advice(name: str, tables: str, said: str) -> str:
    """One line for a person. ``said``, DynamoDB's own message, appears only where ``_ADVICE`` has a place for it (I8)."""
    said = " ".join(said.split())[:_MAX_SAID_CHARACTERS]
    template = _ADVICE.get(name)
    if template is None:
        return f"a DynamoDB call on table {tables} failed: {name}"
    return template.format(tables=tables, said=said or name)
