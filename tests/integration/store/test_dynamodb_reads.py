"""Batches and pages that DynamoDB answers in part, over a real socket."""

from typing import Any

import boto3
import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.scripted_dynamodb import Answer, ScriptedDynamoDB
from kubesync.aws.dynamodb.client import DynamoStore, RetryPolicy, build_dynamodb_client
from kubesync.aws.dynamodb.store import CONTROL, Key, table_names
from kubesync.domain.errors import StoreBusyError

A, B, C = (Key(CONTROL, "p", sort) for sort in "abc")


def attributes(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key.partition}, "sk": {"S": key.sort}}


def a_part(found: list[Key], unprocessed: list[Key]) -> Answer:
    left = {"kubesync-control": {"Keys": [attributes(key) for key in unprocessed], "ConsistentRead": True}}
    return Answer(
        {
            "Responses": {"kubesync-control": [attributes(key) for key in found]},
            "UnprocessedKeys": left if unprocessed else {},
        }
    )


def a_store(server: ScriptedDynamoDB, clock: ManualClock) -> DynamoStore:
    session = boto3.session.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="eu-west-1")
    client = build_dynamodb_client(session, connect_timeout=5, read_timeout=5, endpoint_url=server.url)
    return DynamoStore(client, table_names("kubesync"), clock, retry=RetryPolicy(attempts=3))


def asked(server: ScriptedDynamoDB) -> list[list[str]]:
    """The sort keys of each BatchGetItem."""
    requests = [request.body["RequestItems"]["kubesync-control"] for request in server.received]
    assert all(request["ConsistentRead"] is True for request in requests)
    return [[key["sk"]["S"] for key in request["Keys"]] for request in requests]


def test_unprocessed_keys_are_asked_for_again_after_a_pause() -> None:
    clock = ManualClock(jitter=0.0)
    with ScriptedDynamoDB(a_part([A], [C, B]), a_part([], [C, B]), a_part([C], [B]), a_part([B], [])) as server:
        store = a_store(server, clock)
        found = store.batch_get([A, B, C])
    assert set(found) == {A, B, C}
    assert (store.counted.counts["requests"], store.counted.counts["refused_reads"]) == (4, 3)
    assert asked(server) == [["a", "b", "c"], ["c", "b"], ["c", "b"], ["b"]]
    assert clock.slept == [0.05, 0.05, 0.05]


def test_key_that_does_not_exist_is_not_asked_for_again() -> None:
    with ScriptedDynamoDB(a_part([A], [])) as server:
        assert set(a_store(server, ManualClock(jitter=0.0)).batch_get([A, B])) == {A}


def test_batch_that_brings_nothing_at_all_is_busy_in_the_end() -> None:
    clock = ManualClock(jitter=0.0)
    with ScriptedDynamoDB(a_part([A], [B]), a_part([], [B]), a_part([], [B]), a_part([], [B])) as server:
        store = a_store(server, clock)
        with pytest.raises(StoreBusyError, match="1 keys"):
            store.batch_get([A, B])
    assert clock.slept == [0.05, 0.05, 0.1]


def test_unprocessed_keys_join_those_not_asked_for_yet() -> None:
    keys = [Key(CONTROL, "p", f"{number:03}") for number in range(120)]
    with ScriptedDynamoDB(a_part(keys[:90], keys[90:100]), a_part(keys[90:], [])) as server:
        assert set(a_store(server, ManualClock(jitter=0.0)).batch_get(keys)) == set(keys)
    assert [len(request) for request in asked(server)] == [100, 30]


def test_empty_page_is_not_the_end_of_a_query() -> None:
    last = attributes(A)
    with ScriptedDynamoDB(
        Answer({"Items": [attributes(A)], "LastEvaluatedKey": last}),
        Answer({"Items": [], "LastEvaluatedKey": last}),
        Answer({"Items": [attributes(B)]}),
    ) as server:
        found = list(a_store(server, ManualClock(jitter=0.0)).query(CONTROL, "p"))
    assert [item["sk"] for item in found] == ["a", "b"]
    assert [request.body.get("ExclusiveStartKey") for request in server.received] == [None, last, last]


def test_limit_shrinks_from_page_to_page_and_asks_no_page_too_many() -> None:
    with ScriptedDynamoDB(
        Answer({"Items": [attributes(A)], "LastEvaluatedKey": attributes(A)}),
        Answer({"Items": [attributes(B), attributes(C)], "LastEvaluatedKey": attributes(C)}),
    ) as server:
        found = list(a_store(server, ManualClock(jitter=0.0)).query(CONTROL, "p", limit=3))
    assert len(found) == 3
    assert [request.body["Limit"] for request in server.received] == [3, 2]


def test_next_page_is_asked_for_only_when_it_is_wanted() -> None:
    with ScriptedDynamoDB(Answer({"Items": [attributes(A)], "LastEvaluatedKey": attributes(A)})) as server:
        items = a_store(server, ManualClock(jitter=0.0)).query(CONTROL, "p")
        assert next(items)["sk"] == "a"
        assert len(server.received) == 1
