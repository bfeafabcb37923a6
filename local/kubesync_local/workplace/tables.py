"""The four tables as values, and code that creates them where no template does (``kubesync setup``, the demo, tests)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger

from kubesync.actors.scheduler import Clock
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.errors import CAUGHT, Outcome, failure_of
from kubesync.aws.dynamodb.store import AUDIT, CONTROL, KEY_ATTRIBUTES, STATE, UPSTREAMS, table_names
from kubesync.domain.errors import StoreUnavailableError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

logger = Logger(service="kubesync", child=True)

TTL_ATTRIBUTE: Final = "expires_at"
READY_WITHIN_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 1.0
# A person waits for this: a network that is down for longer will not come back soon.
UNREACHED_SECONDS: Final = 10.0
_UNREACHED: Final = frozenset({"EndpointConnectionError", "ConnectTimeoutError", "ProxyConnectionError"})
# The answer while a new table's backups are not ready yet. Every other FAULT is final.
_PASSING: Final = frozenset({"ContinuousBackupsUnavailableException"})


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """One table. ``sort_type`` is DynamoDB's S or N. ``expires``: items are deleted at ``expires_at``. ``streams``: it has a stream."""

    logical_name: str
    sort_type: str
    expires: bool = False
    streams: bool = False

    def create_request(self, name: str) -> dict[str, Any]:
        """The parameters of CreateTable: on demand, encrypted with a key of the account, with deletion protection."""
        partition, sort = KEY_ATTRIBUTES[self.logical_name]
        request: dict[str, Any] = {
            "TableName": name,
            "AttributeDefinitions": [
                {"AttributeName": partition, "AttributeType": "S"},
                {"AttributeName": sort, "AttributeType": self.sort_type},
            ],
            "KeySchema": [
                {"AttributeName": partition, "KeyType": "HASH"},
                {"AttributeName": sort, "KeyType": "RANGE"},
            ],
            "BillingMode": "PAY_PER_REQUEST",
            "SSESpecification": {"Enabled": True},
            "DeletionProtectionEnabled": True,
        }
        if self.streams:
            request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        return request


TABLES: Final = (
    TableDefinition(CONTROL, "S"),
    TableDefinition(STATE, "S"),
    TableDefinition(AUDIT, "S", expires=True),
    TableDefinition(UPSTREAMS, "N", expires=True, streams=True),  # streams: for consumers that want pushes
)


def create_tables(client: DynamoDBClient, prefix: str, clock: Clock | None = None) -> Mapping[str, bool]:
    """Create missing tables, and correct the settings that can be changed later. Safe to run again.

    An endpoint without backups is not an error: the log gets one warning.

    Returns:
        By real name, in the order of ``TABLES``: whether this call created the table (False: it existed).

    Raises:
        StoreUnavailableError: access is denied, DynamoDB was unreachable for 10 seconds, a table of that name has other keys, or a
            table is not ready within two minutes. The message is one line that says what to do.
    """
    setup = _Setup(client, clock or ThreadScheduler())
    names = table_names(prefix)
    named = [(table, names[table.logical_name]) for table in TABLES]
    made = {name: setup.create(table, name) for table, name in named}
    for table, name in named:
        setup.wait_until_active(table, name)
        if table.expires:
            setup.turn_on_expiry(name)
    try:  # last: the tables work without backups, and other implementations of DynamoDB may not have them
        for name in made:
            setup.turn_on_recovery(name)
    except _UnknownOperationError:
        logger.warning("this DynamoDB does not support backups: point-in-time recovery stays off")
    return made


class _Setup:
    """The calls to DynamoDB. Each is repeated for a while, which is harmless for all of them."""

    def __init__(self, client: DynamoDBClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._deadline_monotonic = clock.monotonic() + READY_WITHIN_SECONDS

    def create(self, table: TableDefinition, name: str) -> bool:
        try:
            self._call(name, lambda: self._client.create_table(**table.create_request(name)))
        except _AlreadyThereError:
            return False
        return True

    def wait_until_active(self, table: TableDefinition, name: str) -> None:
        while True:
            found = self._call(name, lambda: self._client.describe_table(TableName=name))["Table"]
            if found["TableStatus"] in {"ACTIVE", "UPDATING"}:
                break
            self._pause_or_give_up(f"table {name} is still {found['TableStatus']}: run `kubesync setup` again")
        wanted = table.create_request(name)
        if _keys(found) != _keys(wanted):
            raise StoreUnavailableError(f"table {name} exists with other keys: choose another prefix")

    def turn_on_recovery(self, name: str) -> None:
        answer = self._call(name, lambda: self._client.describe_continuous_backups(TableName=name))
        recovery = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
            self._call(
                name,
                lambda: self._client.update_continuous_backups(
                    TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
                ),
            )

    def turn_on_expiry(self, name: str) -> None:
        answer = self._call(name, lambda: self._client.describe_time_to_live(TableName=name))
        if answer["TimeToLiveDescription"].get("TimeToLiveStatus") not in {"ENABLED", "ENABLING"}:
            self._call(
                name,
                lambda: self._client.update_time_to_live(
                    TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": TTL_ATTRIBUTE}
                ),
            )

    def _call[Answer](self, name: str, request: Callable[[], Answer]) -> Answer:
        unreached_until = self._clock.monotonic() + UNREACHED_SECONDS
        while True:
            try:
                return request()
            except CAUGHT as error:
                failure = failure_of(error, [name])
            if failure.name == "ResourceInUseException":
                raise _AlreadyThereError(failure.advice)
            if failure.name == "UnknownOperationException":
                raise _UnknownOperationError(failure.advice)
            if failure.outcome is Outcome.FAULT and failure.name not in _PASSING:
                raise StoreUnavailableError(failure.advice)
            if failure.name in _UNREACHED and self._clock.monotonic() + _POLL_SECONDS > unreached_until:
                raise StoreUnavailableError(f"{failure.advice}; tried for {UNREACHED_SECONDS:.0f} s")
            self._pause_or_give_up(failure.advice)

    def _pause_or_give_up(self, why: str) -> None:
        if self._clock.monotonic() >= self._deadline_monotonic:
            raise StoreUnavailableError(why)
        self._clock.sleep(_POLL_SECONDS)


class _AlreadyThereError(StoreUnavailableError):
    """A table of that name exists, or is being changed right now."""


class _UnknownOperationError(StoreUnavailableError):
    """The endpoint does not know the request: it is not AWS."""


def _keys(description: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Role and type of each key attribute, from a request or a description of a table."""
    roles = {entry["AttributeName"]: entry["KeyType"] for entry in description["KeySchema"]}
    types = {entry["AttributeName"]: entry["AttributeType"] for entry in description["AttributeDefinitions"]}
    return roles, types
