"""A DynamoDB stream as AWS has it: shards that split and end, iterators that expire, records that are trimmed."""

from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from kubesync.aws.dynamodb.wire import to_attributes


@dataclass(slots=True)
class _Shard:
    parent: str | None = None
    records: list[dict[str, Any]] = field(default_factory=list)
    ended: bool = False


class FakeStream:
    """Implements ``stream.StreamClient``. ``fail``: the next call raises this error code; with ``fail_shard`` or ``fail_operation``
    the next of this shard or operation. Two shards on each page of a description."""

    def __init__(self) -> None:
        self.shards: dict[str, _Shard] = {"shard-0": _Shard()}
        self.fail = self.fail_shard = self.fail_operation = ""
        #: So many of a shard's newest records come later.
        self.late = 0
        self.calls: list[str] = []

    def add(self, shard: str, item: dict[str, Any]) -> None:
        """An item of the upstreams table was written."""
        self._add(shard, item, "NewImage")

    def remove(self, shard: str, item: dict[str, Any]) -> None:
        """An item of the upstreams table was removed."""
        self._add(shard, item, "OldImage")

    def _add(self, shard: str, item: dict[str, Any], image: str) -> None:
        assert not self.shards[shard].ended
        keys = {"upstream": item["upstream"], "slice": item["slice"]}
        self.shards[shard].records.append({"dynamodb": {"Keys": to_attributes(keys), image: to_attributes(item)}})

    def split(self, shard: str, *children: str) -> None:
        """End a shard; its children go on."""
        self.shards[shard].ended = True
        for child in children:
            self.shards[child] = _Shard(parent=shard)

    def describe_stream(self, **request: Any) -> Any:
        self._called("describe_stream")
        names = list(self.shards)
        start = names.index(request["ExclusiveStartShardId"]) + 1 if "ExclusiveStartShardId" in request else 0
        page = names[start : start + 2]
        shards = []
        for name in page:
            shard = self.shards[name]
            numbers = {"StartingSequenceNumber": "1", **({"EndingSequenceNumber": "9"} if shard.ended else {})}
            parent = {} if shard.parent is None else {"ParentShardId": shard.parent}
            shards.append({"ShardId": name, "SequenceNumberRange": numbers, **parent})
        last = {"LastEvaluatedShardId": page[-1]} if start + 2 < len(names) else {}
        return {"StreamDescription": {"Shards": shards, **last}}

    def get_shard_iterator(self, **request: Any) -> Any:
        self._called("get_shard_iterator")
        shard = request["ShardId"]
        at = 0 if request["ShardIteratorType"] == "TRIM_HORIZON" else len(self.shards[shard].records)
        return {"ShardIterator": f"{shard}@{at}"}

    def get_records(self, **request: Any) -> Any:
        name, _, at = request["ShardIterator"].rpartition("@")
        self._called("get_records", name)
        shard = self.shards[name]
        found = shard.records[: len(shard.records) - self.late][int(at) : int(at) + min(request["Limit"], 2)]
        position = int(at) + len(found)
        if shard.ended and position == len(shard.records):
            return {"Records": found}
        return {"Records": found, "NextShardIterator": f"{name}@{position}"}

    def _called(self, operation: str, shard: str = "") -> None:
        self.calls.append(operation)
        if self.fail and self.fail_shard in ("", shard) and self.fail_operation in ("", operation):
            code, self.fail = self.fail, ""
            error: Any = {"Error": {"Code": code, "Message": "said"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
            raise ClientError(error, operation)
