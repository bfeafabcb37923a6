"""The DynamoDB stream of the upstreams table: which shards there are, and what they hold since ``start``.

    a shard is open     read from its newest record on
    a shard ends        its children are read from their oldest record on; they may appear a little later
    an iterator expired, or records were trimmed       StreamBrokenError: something was missed; scan, and start again
    the table has another stream: it was made again    the same; the old stream stays readable for a day, and silent

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html: at most two processes should read a shard.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Protocol

from botocore.exceptions import ClientError

from kubesync.aws.dynamodb.errors import CAUGHT, failure_of
from kubesync.domain.errors import StoreUnavailableError
from kubesync_local.proxies.table.retrying import Retries

# Shards split without a word, and tables get other streams: both are looked for this often, and whenever a shard ended.
SHARDS_EVERY_SECONDS: Final = 60.0
# A child is listed a moment after its parent ended. So long it is looked for with every call.
CHILDREN_WITHIN_SECONDS: Final = 60.0
_NEW_SHARDS: Final = "new shards"
_MOST_PAGES: Final = 50
_MISSED: Final = frozenset({"ExpiredIteratorException", "TrimmedDataAccessException", "ResourceNotFoundException"})
_TOO_MANY: Final = frozenset(
    {"LimitExceededException", "ProvisionedThroughputExceededException", "ThrottlingException"}
)


class StreamBrokenError(StoreUnavailableError):
    """Records may have been missed: scan the table and start again."""


class StreamClient(Protocol):
    """What is used of boto3's ``dynamodbstreams`` client."""

    def describe_stream(self, **request: Any) -> Any: ...
    def get_shard_iterator(self, **request: Any) -> Any: ...
    def get_records(self, **request: Any) -> Any: ...


class TableStream:
    """Reads all shards. ``start`` raises StoreUnavailableError if the stream cannot be read now.

    Args:
        arn: asks for the stream's ARN; None: the table has none.
    """

    def __init__(self, client: StreamClient, arn: Callable[[], str | None], now: Callable[[], float]) -> None:
        self._client = client
        self._arn_of = arn
        self._now = now
        self._arn = ""
        self._seen: set[str] = set()
        self._iterators: dict[str, str] = {}
        # Read, and not returned yet: an iterator does not go back when another shard cannot be read.
        self._found: list[dict[str, Any]] = []
        self._listed_at = -math.inf
        # Shards that ended, and when: none that was listed names them as its parent.
        self._ended: dict[str, float] = {}
        self._retries = Retries(now)

    @property
    def shards(self) -> int:
        """How many are read now."""
        return len(self._iterators)

    @property
    def problem(self) -> str:
        """Why some of the shards, or new ones, cannot be read now; empty: all can."""
        return self._retries.problem

    def start(self) -> None:
        """Read from now on."""
        arn = self._call(self._arn_of)
        if not arn:
            raise StoreUnavailableError("the upstreams table has no stream: run `kubesync setup`, or update the stack")
        self._arn = arn
        shards = list(self._list())
        parents = {shard.get("ParentShardId") for shard in shards}
        is_open = [shard["ShardId"] for shard in shards if "EndingSequenceNumber" not in shard["SequenceNumberRange"]]
        self._iterators = {shard: self._iterator(shard, "LATEST") for shard in is_open}
        self._seen = {shard["ShardId"] for shard in shards}
        self._ended = {shard: self._now() for shard in self._seen - parents - self._iterators.keys()}
        self._listed_at = self._now()
        self._retries = Retries(self._now)

    def records(self) -> list[dict[str, Any]]:
        """What came since the last call that returned: ``dynamodb`` parts of records, those of one upstream in their order.

        A shard that cannot be read now is a ``problem``. It is read later; the others go on.

        Raises:
            StreamBrokenError: records may have been missed.
        """
        for shard in list(self._iterators):
            self._try(shard, partial(self._read, shard))
        now = self._now()
        self._ended = {shard: at for shard, at in self._ended.items() if now - at < CHILDREN_WITHIN_SECONDS}
        if not self._iterators or self._ended or now - self._listed_at >= SHARDS_EVERY_SECONDS:
            self._try(_NEW_SHARDS, self._find_shards)
        found, self._found = self._found, []
        return found

    def _try(self, what: str, step: Callable[[], None]) -> None:
        """Take a step, unless it failed a moment ago."""
        if not self._retries.due(what):
            return
        try:
            step()
        except StreamBrokenError:
            raise
        except StoreUnavailableError as error:
            self._retries.failed(what, str(error))
        else:
            self._retries.worked(what)

    def _find_shards(self) -> None:
        """Read shards that were not there before."""
        listed_at = self._now()
        self._listed_at = -math.inf  # until each has an iterator
        if self._call(self._arn_of) != self._arn:
            raise StreamBrokenError("the upstreams table has another stream than before: was it made again?")
        found = []
        for shard in self._list():
            name, parent = shard["ShardId"], shard.get("ParentShardId", "")
            # What a parent still holds is older than what its children hold.
            if name not in self._seen and parent not in self._iterators:
                self._iterators[name] = self._iterator(name, "TRIM_HORIZON")
                self._seen.add(name)
                self._ended.pop(parent, None)
                found.append(name)
        self._listed_at = listed_at
        for name in found:
            self._try(name, partial(self._read, name))

    def _read(self, shard: str) -> None:
        """Read a shard up to its newest record. If it has ended, its children are looked for."""
        for _ in range(_MOST_PAGES):
            iterator = self._iterators[shard]
            answer = self._call(partial(self._client.get_records, ShardIterator=iterator, Limit=1000))
            self._found += [record["dynamodb"] for record in answer["Records"]]
            following = answer.get("NextShardIterator")
            if not following:
                del self._iterators[shard]
                self._ended[shard] = self._now()
                self._listed_at = -math.inf
                return
            self._iterators[shard] = following
            if not answer["Records"]:
                break

    def _list(self) -> Iterator[dict[str, Any]]:
        start: dict[str, str] = {}
        while True:
            answer = self._call(partial(self._client.describe_stream, StreamArn=self._arn, **start))
            stream = answer["StreamDescription"]
            yield from stream["Shards"]
            if not stream.get("LastEvaluatedShardId"):
                return
            start = {"ExclusiveStartShardId": stream["LastEvaluatedShardId"]}

    def _iterator(self, shard: str, kind: str) -> str:
        answer = self._call(
            partial(self._client.get_shard_iterator, StreamArn=self._arn, ShardId=shard, ShardIteratorType=kind)
        )
        iterator: str = answer["ShardIterator"]
        return iterator

    def _call[Answer](self, request: Callable[[], Answer]) -> Answer:
        try:
            return request()
        except CAUGHT as error:
            code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
            if code in _MISSED:
                raise StreamBrokenError(f"the stream of the upstreams table was interrupted ({code})") from None
            if code in _TOO_MANY:
                raise StoreUnavailableError(
                    f"DynamoDB throttles the stream ({code}): at most two programs may read it; let one `render json "
                    "--watch` feed the other proxies"
                ) from None
            advice = failure_of(error, ["upstreams"]).advice
            raise StoreUnavailableError(f"the stream of the upstreams table: {advice}") from None
