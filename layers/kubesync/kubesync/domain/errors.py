"""The twelve persisted error codes, and the tree of errors that layers raise.

What the caller does next decides the class of an error:

    KubesyncError
    ├── UsageError                  a person gave wrong input: one line, exit status 2
    ├── ChangedMeanwhileError       somebody else wrote first: a person reads again, decides again
    ├── ListenerError               a listener stopped or retries; carries an ErrorCode (6 to 12)
    │   ├── DomainNameError         6   address not valid, or its name does not resolve
    │   ├── ConnectError            7   refused, unreachable, no connection in time
    │   ├── HandshakeError          8   TLS: not trusted, wrong name, expired, protocol mismatch
    │   ├── RequestError            9   connection failed before a status line came
    │   ├── DeniedError            10   401 after one fresh token, or 403
    │   ├── StatusError            11   any other status that is not 200
    │   │   └── TooOldError            410: list again
    │   └── BodyError              12   body broke off, went silent, or could not be decoded
    ├── NotMasterError              stop writing, end the session with code 4
    │   └── FencedOutError          a fence is above its epoch: if the lease is its own, take it again above the fence
    ├── StoreError                  DynamoDB
    │   ├── ConditionFailedError    read again, decide again
    │   ├── TransactionRefusedError read the named items again, decide again
    │   ├── StoreBusyError          throttled, or transactions collided: repeat the same call later
    │   ├── StoreOutcomeUnknownError  the write may have happened: read before deciding
    │   ├── StoreUnavailableError   unreachable or forbidden: report, try later
    │   └── NewerSchemaError        a newer release wrote it: leave it alone, report, go on with others
    └── ZoneError                   Route 53
        ├── BatchRefusedError       read the journal, then find the culprit
        ├── ZoneThrottledError      send the same batch later
        ├── ZoneOutcomeUnknownError send the same batch, unchanged, before anything else
        └── ZoneUnavailableError    wrongly configured: report on the zone, go on with others
            ├── ZoneDeniedError     forbidden: the same; of a batch, find out whether the zone or one of its names is denied
            └── ZoneGoneError       the zone does not exist: the same; a batch just sent has not landed
"""

from collections.abc import Mapping
from enum import IntEnum
from http import HTTPStatus
from typing import Final


class ErrorCode(IntEnum):
    """Why a listener or session stopped. Stored with the listener, shown by ``kubesync errors``, and a metric dimension."""

    WORKER_EXITING = 1
    """SIGTERM or SIGINT came, or Lambda's timeout came before the end of the session."""
    CONFIG_DELETE = 2
    """Somebody removed the cluster."""
    CONFIG_UPDATE = 3
    """Somebody changed the cluster's configuration."""
    NOT_MASTER = 4
    """Another session holds the lease, or this session lost it."""
    MAX_RUNTIME = 5
    """The session reached its maximum runtime."""
    PARSE_DOMAIN = 6
    """The server's address is not valid, or its name does not resolve."""
    CONNECT_FAILED = 7
    """The connection was refused, the server was unreachable, or there was no connection in time."""
    SSL_HANDSHAKE = 8
    """The certificate is not trusted, has another name or has expired, or TLS versions do not match."""
    REQUEST_URI = 9
    """The connection was made, but it broke before the answer began."""
    REQUEST_DENIED = 10
    """The server answered 403. Or it answered 401, kubesync read the token again, and the server answered 401 a second time."""
    REQUEST_STATUS = 11
    """The server answered with a status other than 200 (410 means: list again)."""
    READ_BODY = 12
    """The answer broke off, went silent, was too long, or could not be decoded."""

    @property
    def key(self) -> str:
        """The code's public name, such as ``ERR_NOT_MASTER``."""
        return f"ERR_{self.name}"


class KubesyncError(Exception):
    """Root of every error that kubesync raises on purpose."""


class UsageError(KubesyncError):
    """A person gave wrong input. The message is one line that says what to do."""


class ChangedMeanwhileError(KubesyncError):
    """Somebody else changed what a person's change was decided with. The write was refused: a person looks again, then decides."""


class ListenerError(KubesyncError):
    """A list or watch failed. The listener stores ``code`` and ``message``, and decides whether to retry.

    ``message`` is one line without secrets, ``status`` the HTTP status, ``retry_after_seconds`` the wait that the server asked for.
    """

    code: ErrorCode

    def __init__(self, message: str, *, status: int | None = None, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.retry_after_seconds = retry_after_seconds


class DomainNameError(ListenerError):
    code = ErrorCode.PARSE_DOMAIN


class ConnectError(ListenerError):
    code = ErrorCode.CONNECT_FAILED


class HandshakeError(ListenerError):
    code = ErrorCode.SSL_HANDSHAKE


class RequestError(ListenerError):
    code = ErrorCode.REQUEST_URI


class DeniedError(ListenerError):
    code = ErrorCode.REQUEST_DENIED


class StatusError(ListenerError):
    code = ErrorCode.REQUEST_STATUS


class BodyError(ListenerError):
    code = ErrorCode.READ_BODY


class TooOldError(StatusError):
    """410: the version or the continue token has expired. Who lists or watches lists again, and does not report this error by itself."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=HTTPStatus.GONE)


TOO_LONG: Final = "is longer than"
"""In the message of a BodyError: the server sent more than kubesync reads."""
TOO_LONG_ADVICE: Final = "raise the function's memory (MemorySize), or find out why the server sends so much"


NOT_RENEWED: Final = "the lease could not be renewed"
"""The message of a NotMasterError begins with it if no other session has taken the lease: the table did not answer in time."""


class NotMasterError(KubesyncError):
    """Another master holds the lease or a fence. The caller stops writing at once and ends with code 4."""


class FencedOutError(NotMasterError):
    """A fence is above the master's epoch. ``epoch`` is the fence's. A session that takes over asks the table whose the lease is."""

    def __init__(self, message: str, epoch: int) -> None:
        super().__init__(message)
        self.epoch = epoch


class StoreError(KubesyncError):
    """Root of the errors of DynamoDB: refusals and missing answers."""


class ConditionFailedError(StoreError):
    """A single conditional write was refused. ``item`` is the item that is there now (None: there is none)."""

    def __init__(self, message: str, item: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.item = item


class TransactionRefusedError(StoreError):
    """Conditions of a transaction failed. Nothing was written.

    ``failed`` maps the index of each refused action to the item that is there now (None: there is none).
    """

    def __init__(self, message: str, failed: Mapping[int, Mapping[str, object] | None]) -> None:
        super().__init__(message)
        self.failed = failed


class StoreBusyError(StoreError):
    """Throttled, or the transaction collided with another. Nothing was written. The caller repeats the same call later."""


class StoreOutcomeUnknownError(StoreError):
    """A write got no answer, even after repeats with the same token. It may have happened. The caller reads before deciding."""


class StoreUnavailableError(StoreError):
    """The table cannot be reached, does not exist, or access is denied. The caller reports it and tries later."""


class NewerSchemaError(StoreError):
    """A newer release wrote this in a form that this release does not know. It neither reads nor writes it; only upgrading helps.

    ``what`` names the item, or the tables; ``sort`` is the item's sort key, empty for the tables; the rest are schema versions.
    """

    def __init__(self, what: str, sort: str, found: int, known: int) -> None:
        were = "were" if not sort else "was"
        super().__init__(f"{what} {were} written by a newer release (schema {found}), this one knows {known}: upgrade")
        self.sort = sort


class ZoneError(KubesyncError):
    """Root of the errors of Route 53: refusals and missing answers."""


class BatchRefusedError(ZoneError):
    """InvalidChangeBatch: nothing was applied. ``messages`` holds the messages of Route 53, as a rule one per bad change."""

    def __init__(self, messages: tuple[str, ...]) -> None:
        super().__init__("; ".join(messages) or "change batch refused")
        self.messages = messages


class ZoneThrottledError(ZoneError):
    """Throttling or PriorRequestNotComplete: nothing was applied. The caller sends the same batch later."""


class ZoneOutcomeUnknownError(ZoneError):
    """Timeout or lost connection: the batch may have been applied, or may still be. The caller repeats it unchanged."""


class ZoneUnavailableError(ZoneError):
    """The hosted zone does not exist, or access is denied. The caller reports it on the zone; other zones go on."""


class ZoneDeniedError(ZoneUnavailableError):
    """IAM denies the request as a whole: nothing was applied. It may deny the zone, or one of the names that the request changes."""


class ZoneGoneError(ZoneUnavailableError):
    """Route 53 says that the hosted zone does not exist. This is as definite as a refusal: a batch just sent has not landed."""
