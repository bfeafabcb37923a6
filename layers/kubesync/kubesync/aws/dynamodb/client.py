"""The store on DynamoDB, through boto3's low-level client.

botocore's own retries are off (``build_dynamodb_client``). It would repeat a write that timed out and then report the second
attempt's refusal, so a caller could not distinguish its own write from another's. All repeats follow this table:

    | outcome of an attempt  | read             | single write   | transaction                  |
    | ---------------------- | ---------------- | -------------- | ---------------------------- |
    | BUSY: nothing written  | repeat, then Busy | the same      | repeat, same token, then Busy |
    | UNSENT: nothing sent   | repeat, then Unavailable | the same | repeat, then Unavailable   |
    | LOST: may have landed  | repeat, then Unavailable | OutcomeUnknown | repeat, same token, then OutcomeUnknown |
    | FAULT                  | Unavailable      | Unavailable    | Unavailable                  |
    | REFUSED                |                  | ConditionFailed | TransactionRefused          |

Once an answer to a transaction was lost, its outcome stays unknown if the attempts end with BUSY, UNSENT or FAULT. A refusal
is definite: for ten minutes DynamoDB answers a repeat of a landed transaction with success (moto does not).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Unpack

from botocore.config import Config

from kubesync.actors.backoff import Backoff
from kubesync.actors.scheduler import Scheduler
from kubesync.aws.dynamodb import wire
from kubesync.aws.dynamodb.errors import CAUGHT, Failure, Outcome, failure_of
from kubesync.aws.dynamodb.store import KEY_ATTRIBUTES, Action, Delete, Item, Key, Put, QueryOptions, Value, Write
from kubesync.aws.dynamodb.store_calls import Kind, StoreCalls
from kubesync.domain.errors import (
    ConditionFailedError,
    StoreBusyError,
    StoreError,
    StoreOutcomeUnknownError,
    StoreUnavailableError,
    TransactionRefusedError,
)

if TYPE_CHECKING:
    from boto3.session import Session
    from mypy_boto3_dynamodb import DynamoDBClient

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
MAX_BATCH_GET_KEYS: Final = 100
_MOST_CONNECTIONS: Final = 25  # each is made when it is first needed
_BACKOFF: Final = Backoff(initial=0.1, cap=2.0, least=0.5, most=1.0)
_KINDS: Final[Mapping[str, Kind]] = {
    # All other methods are reads.
    "put_item": "writes", "update_item": "writes", "delete_item": "writes", "transact_write_items": "transactions"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how soon a call is made again. The default gives up after about 1.5 s of sleeping; a lease wants fewer attempts."""

    attempts: int = 5
    backoff: Backoff = _BACKOFF


def build_dynamodb_client(
    session: Session, *, connect_timeout: float, read_timeout: float, endpoint_url: str | None = None
) -> DynamoDBClient:
    """A client without retries of its own, for ``DynamoStore``. Timeouts in seconds; the lease uses 1 and 2.

    Without ``endpoint_url``, AWS_ENDPOINT_URL_DYNAMODB and the region decide.

    Raises:
        StoreUnavailableError: no region is configured.
    """
    config = Config(
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        max_pool_connections=_MOST_CONNECTIONS,
        tcp_keepalive=True,
        # ``wire`` makes every request, and tests validate them: it would be 40 % of the time of a large transaction.
        parameter_validation=False,
        # "legacy", because only it raises an answer with a wrong CRC when no attempts are left. "standard" returns the
        # damaged answer (botocore.retries.special), and a damaged answer to a get looks like "no such item".
        retries={"total_max_attempts": 1, "mode": "legacy"},
    )
    try:
        return session.client("dynamodb", config=config, endpoint_url=endpoint_url)
    except CAUGHT as error:
        raise StoreUnavailableError(f"no DynamoDB client: {error} Set AWS_REGION.") from None


class DynamoStore:
    """Implements ``kubesync.aws.dynamodb.store.Store``. Threads may share one.

    Args:
        client: from ``build_dynamodb_client``.
        table_names: real name by logical name.
        counted: counts each request; may be replaced while no call is under way.
        decoded: makes an item of DynamoDB's form, for batches, queries and scans. ``kubesync render`` has a faster one.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        table_names: Mapping[str, str],
        scheduler: Scheduler,
        *,
        retry: RetryPolicy = RetryPolicy(),
        counted: StoreCalls | None = None,
        decoded: Callable[[Mapping[str, Mapping[str, Any]]], dict[str, Value]] = wire.from_attributes,
    ) -> None:
        self.counted = counted or StoreCalls()
        self._client = client
        self._table_names = dict(table_names)
        self._scheduler = scheduler
        self._retry = retry
        self._decoded = decoded

    def get(self, key: Key) -> Item | None:
        answer = self._read("get_item", wire.key_request(key, self._table_names), [key.table])
        return wire.from_attributes(answer["Item"]) if "Item" in answer else None

    def batch_get(self, keys: Sequence[Key]) -> dict[Key, Item]:
        found: dict[Key, Item] = {}
        waiting = deque(dict.fromkeys(keys))  # DynamoDB refuses a request that names a key twice
        fruitless = 0  # rounds in a row that returned nothing at all: only these count as failures
        while waiting:
            asked = [waiting.popleft() for _ in range(min(MAX_BATCH_GET_KEYS, len(waiting)))]
            answered, unprocessed = self._batch_get_once(asked)
            found.update(answered)
            if not unprocessed:
                fruitless = 0
                continue
            self.counted.count("refused_reads")
            # Throttled, or over 16 MB of answer: asked again, before the other keys.
            waiting.extendleft(reversed(unprocessed))
            fruitless = fruitless + 1 if len(unprocessed) == len(asked) else 0
            if fruitless >= self._retry.attempts:
                raise StoreBusyError(f"DynamoDB throttles: {len(waiting)} keys of a batch were not read")
            self._sleep(fruitless or 1)  # a round that returned something is no failure: the pause is the shortest one
        return found

    def _batch_get_once(self, keys: Sequence[Key]) -> tuple[dict[Key, Item], list[Key]]:
        """Read up to one request's keys. Returns the items found, and the keys that DynamoDB left unprocessed."""
        by_table: dict[str, list[Key]] = {}
        for key in keys:
            by_table.setdefault(key.table, []).append(key)
        request = {
            self._table_names[table]: {
                "Keys": [wire.to_attributes(key.attributes()) for key in table_keys],
                "ConsistentRead": True,
            }
            for table, table_keys in by_table.items()
        }
        answer = self._read("batch_get_item", {"RequestItems": request}, by_table)
        responses, unprocessed = answer.get("Responses", {}), answer.get("UnprocessedKeys", {})
        found: dict[Key, Item] = {}
        left: list[Key] = []
        for table in by_table:
            real_name = self._table_names[table]
            for attributes in responses.get(real_name, ()):
                item = self._decoded(attributes)
                found[_key_of(table, item)] = item
            left += [
                _key_of(table, wire.from_attributes(key)) for key in unprocessed.get(real_name, {}).get("Keys", ())
            ]
        return found, left

    def query(self, table: str, partition: str, **wanted: Unpack[QueryOptions]) -> Iterator[Item]:
        request = wire.query_request(table, partition, self._table_names, wanted)
        return self._pages("query", request, table, wanted.get("limit"))

    def scan(self, table: str, limit: int | None = None) -> Iterator[Item]:
        request = {"TableName": self._table_names[table], "ConsistentRead": True}
        return self._pages("scan", request, table, limit)

    def _pages(self, method: str, request: dict[str, Any], table: str, limit: int | None) -> Iterator[Item]:
        """Read items page after page, at most ``limit`` of them."""
        left = limit
        while left is None or left > 0:
            answer = self._read(method, request if left is None else {**request, "Limit": left}, [table])
            for attributes in answer["Items"]:
                yield self._decoded(attributes)
            # A page can be empty without being the last: only LastEvaluatedKey shows the end.
            if "LastEvaluatedKey" not in answer:
                return
            request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}
            if left is not None:
                left -= len(answer["Items"])

    def write(self, action: Write) -> Item:
        method, request = wire.write_request(action, self._table_names)
        result = self._attempts(method, request, [action.key.table], repeat_lost=False)
        if isinstance(result, Failure):
            raise _write_error(result)
        if isinstance(action, Put):
            return {**action.item, **action.key.attributes()}
        return {} if isinstance(action, Delete) else wire.from_attributes(result["Attributes"])

    def transact(self, actions: Sequence[Action], token: str) -> None:
        request = wire.transact_request(actions, token, self._table_names)
        result = self._attempts(
            "transact_write_items", request, {action.key.table for action in actions}, repeat_lost=True
        )
        if isinstance(result, Failure):
            raise _write_error(result)

    def _read(self, method: str, request: dict[str, Any], tables: Iterable[str]) -> dict[str, Any]:
        """Call a read, with retries. Raises StoreBusyError or StoreUnavailableError."""
        result = self._attempts(method, request, tables, repeat_lost=True)
        if isinstance(result, Failure):
            busy = result.outcome is Outcome.BUSY
            raise StoreBusyError(_busy(result)) if busy else StoreUnavailableError(result.advice)
        return result

    def _attempts(
        self, method: str, request: dict[str, Any], tables: Iterable[str], *, repeat_lost: bool
    ) -> dict[str, Any] | Failure:
        """Call until there is an answer or a final failure, or no attempt is left. Returns the answer or the failure.

        See the table at the head of this file. If the answer to any attempt was lost, that failure is returned and not a later one: nobody
        knows what the attempt did. Only a success or a refusal says it.

        Args:
            repeat_lost: repeat a call whose answer was lost. False for single writes, which have no token.
        """
        again = {Outcome.BUSY, Outcome.UNSENT} | ({Outcome.LOST} if repeat_lost else set())
        real_names = [self._table_names[table] for table in tables]
        lost: Failure | None = None
        for attempt in range(1, self._retry.attempts + 1):
            self.counted.count("requests")
            result = self._call(method, request, real_names)
            if isinstance(result, Failure) and result.outcome is Outcome.BUSY:
                self.counted.count(f"refused_{_KINDS.get(method, 'reads')}")
            if not isinstance(result, Failure) or result.outcome is Outcome.REFUSED:
                return result
            if result.outcome is Outcome.LOST:
                lost = result
            if result.outcome not in again:
                break
            if attempt < self._retry.attempts:
                self._sleep(attempt)
        return lost or result

    def _call(self, method: str, request: dict[str, Any], real_names: Sequence[str]) -> dict[str, Any] | Failure:
        """Call once. An answer that does not come from DynamoDB counts as lost."""
        try:
            answer: dict[str, Any] = getattr(self._client, method)(**request)
        except CAUGHT as error:
            return failure_of(error, real_names)
        # botocore accepts any 200 as an answer, even a proxy's HTML page, which then looks like "nothing found" (I5).
        headers = answer["ResponseMetadata"]["HTTPHeaders"]
        if "x-amz-crc32" in headers or headers.get("content-type", "").startswith("application/x-amz-json"):
            return answer
        return Failure(
            Outcome.LOST, "NotDynamoDB", "an answer did not come from DynamoDB: check AWS_ENDPOINT_URL_DYNAMODB"
        )

    def _sleep(self, failures: int) -> None:
        self._scheduler.sleep(self._retry.backoff.delay(failures, self._scheduler.random()))


def _key_of(table: str, item: Mapping[str, Value]) -> Key:
    """The key of an item, or of key attributes alone."""
    partition_name, sort_name = KEY_ATTRIBUTES[table]
    partition, sort = item[partition_name], item[sort_name]
    if not isinstance(partition, str) or not isinstance(sort, (str, int)):
        raise StoreUnavailableError(f"table {table} has a key of the wrong type: it was not made by `kubesync setup`")
    return Key(table, partition, sort)


def _write_error(failure: Failure) -> StoreError:
    """The error that the port raises for a failed write or transaction: see the table at the head of this file."""
    match failure.outcome:
        case Outcome.REFUSED if failure.failed:
            indices = ", ".join(map(str, failure.failed))
            return TransactionRefusedError(f"conditions of actions {indices} of a transaction failed", failure.failed)
        case Outcome.REFUSED:
            return ConditionFailedError("a condition of the write failed", failure.item)
        case Outcome.BUSY:
            return StoreBusyError(_busy(failure))
        case Outcome.LOST:
            return StoreOutcomeUnknownError(f"no answer to a write ({failure.name}): it may have happened")
        case Outcome.UNSENT | Outcome.FAULT:
            return StoreUnavailableError(failure.advice)


def _busy(failure: Failure) -> str:
    return f"DynamoDB is throttling, or another transaction holds an item ({failure.name}): nothing was written"
