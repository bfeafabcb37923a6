"""The twelve persisted error codes, and the tree of errors that travel between layers.

Errors are classed by what the caller does next:

    KubesyncError
    ├── UsageError                  wrong input of a person: one line, exit status 2
    ├── ListenerError               why a listener stopped or retries; carries an ErrorCode (6 to 12)
    │   ├── DomainNameError         6   address not valid, or its name does not resolve
    │   ├── ConnectError            7   refused, unreachable, no connection in time
    │   ├── HandshakeError          8   TLS: not trusted, wrong name, expired, protocol mismatch
    │   ├── RequestError            9   connection failed before a status line came
    │   ├── DeniedError            10   401 after one fresh token, or 403
    │   ├── StatusError            11   any other status that is not 200
    │   └── BodyError              12   body broke off, went silent, or could not be decoded
    ├── NotMasterError              stop writing, end the session with code 4
    ├── StoreError                  DynamoDB
    │   ├── ConditionFailedError    re-read, decide again
    │   ├── TransactionRefusedError re-read the named items, decide again
    │   ├── StoreBusyError          throttled, or a transaction collided: the same again, later
    │   ├── StoreOutcomeUnknownError  the write may have happened: read before judging
    │   ├── StoreUnavailableError   not reached or not allowed: report, try later
    │   └── NewerSchemaError        written by a newer release: leave it alone, report, go on with others
    └── ZoneError                   Route 53
        ├── BatchRefusedError       read the journal, then find the culprit
        ├── ZoneThrottledError      the same batch later
        ├── ZoneOutcomeUnknownError the same batch, unchanged, before anything else
        └── ZoneUnavailableError    no permission, or ill configured: report on the zone, go on with others
            └── ZoneGoneError       no such zone: the same; what was sent just now has not happened
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class ErrorCode(IntEnum):
    """Why a listener or session stopped; persisted, shown by ``kubesync errors``, a metric dimension."""

    WORKER_EXITING = 1
    CONFIG_DELETE = 2
    CONFIG_UPDATE = 3
    NOT_MASTER = 4
    MAX_RUNTIME = 5
    PARSE_DOMAIN = 6
    CONNECT_FAILED = 7
    SSL_HANDSHAKE = 8
    REQUEST_URI = 9
    REQUEST_DENIED = 10
    REQUEST_STATUS = 11
    READ_BODY = 12

    @property
    def key(self) -> str:
        """The code's public name, such as ``ERR_NOT_MASTER``."""
        return f"ERR_{self.name}"


class KubesyncError(Exception):
    """Root of every error that kubesync raises on purpose."""


class UsageError(KubesyncError):
    """A person gave wrong input. The message is one line that says what to do."""


class ListenerError(KubesyncError):
    """A list or watch failed. The listener persists ``code`` and ``message`` and decides about a retry.

    Args:
        message: one line without secrets.
        status: HTTP status, where there was one.
        retry_after_seconds: what the server asked for, where it did.
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


class NotMasterError(KubesyncError):
    """The lease or a fence belongs to another master: stop writing at once, end with code 4."""


class StoreError(KubesyncError):
    """Root of what DynamoDB refuses or fails to answer."""


class ConditionFailedError(StoreError):
    """A single conditional write was refused. ``item`` is what stands there now (None: nothing)."""

    def __init__(self, message: str, item: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.item = item


class TransactionRefusedError(StoreError):
    """Conditions of a transaction failed; nothing of it was written.

    ``failed`` maps the index of each refused action to the item that stands there now (None: nothing).
    """

    def __init__(self, message: str, failed: Mapping[int, Mapping[str, object] | None]) -> None:
        super().__init__(message)
        self.failed = failed


class StoreBusyError(StoreError):
    """Throttled, or collided with another transaction; nothing was written. The same again, later."""


class StoreOutcomeUnknownError(StoreError):
    """No answer to a write, after repeats with the same token: it may have happened."""


class StoreUnavailableError(StoreError):
    """The table cannot be reached, does not exist, or access is denied."""


class NewerSchemaError(StoreError):
    """A newer release wrote this in a form that we do not know: it is neither read nor written. Upgrading helps, nothing else.

    Args:
        what: the item, or the tables.
        sort: the item's sort key; empty where it is about the tables.
        found: its schema version.
        known: the highest that this release understands.
    """

    def __init__(self, what: str, sort: str, found: int, known: int) -> None:
        were = "were" if not sort else "was"
        super().__init__(f"{what} {were} written by a newer release (schema {found}), this one knows {known}: upgrade")
        self.sort = sort


class ZoneError(KubesyncError):
    """Root of what Route 53 refuses or fails to answer."""


class BatchRefusedError(ZoneError):
    """InvalidChangeBatch: nothing was applied. ``messages`` has one entry per bad change, as far as Route 53 says."""

    def __init__(self, messages: tuple[str, ...]) -> None:
        super().__init__("; ".join(messages) or "change batch refused")
        self.messages = messages


class ZoneThrottledError(ZoneError):
    """Throttling or PriorRequestNotComplete: nothing was applied. The same batch, later."""


class ZoneOutcomeUnknownError(ZoneError):
    """Timeout or lost connection: the batch may have been, or may yet be, applied."""


class ZoneUnavailableError(ZoneError):
    """No such hosted zone, or access is denied. Report on the zone; other zones go on."""


class ZoneGoneError(ZoneUnavailableError):
    """Route 53 says that there is no such hosted zone: as definite as a refusal, a batch sent just now has not landed."""
