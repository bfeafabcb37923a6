"""Requests as values: what is sent for each action, without a client."""

import pytest

from kubesync.aws.dynamodb.store import (
    CONTROL,
    UPSTREAMS,
    Absent,
    AbsentOrBelow,
    Check,
    Delete,
    Equals,
    Key,
    Put,
    Update,
)
from kubesync.aws.dynamodb.wire import (
    from_attribute,
    item_bytes,
    key_request,
    query_request,
    transact_request,
    write_request,
)
from kubesync.domain.errors import StoreUnavailableError

NAMES = {"control": "k-control", "state": "k-state", "audit": "k-audit", "upstreams": "k-upstreams"}
KEY = Key(CONTROL, "p", "s")


def test_update_request_names_every_attribute_by_placeholder() -> None:
    update = Update(
        KEY, set={"status": "ok"}, add={"n": 2}, remove=("ttl",), conditions=(Absent(), AbsentOrBelow("n", 9))
    )
    assert write_request(update, NAMES) == (
        "update_item",
        {
            "TableName": "k-control",
            "Key": {"pk": {"S": "p"}, "sk": {"S": "s"}},
            "UpdateExpression": "SET #n0 = :v0 ADD #n1 :v1 REMOVE #n2",
            "ConditionExpression": "attribute_not_exists(#n3) AND (attribute_not_exists(#n1) OR #n1 < :v2)",
            "ExpressionAttributeNames": {"#n0": "status", "#n1": "n", "#n2": "ttl", "#n3": "pk"},
            "ExpressionAttributeValues": {":v0": {"S": "ok"}, ":v1": {"N": "2"}, ":v2": {"N": "9"}},
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    )


def test_write_without_conditions_sends_no_empty_expressions() -> None:
    assert write_request(Delete(KEY), NAMES) == (
        "delete_item",
        {
            "TableName": "k-control",
            "Key": {"pk": {"S": "p"}, "sk": {"S": "s"}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    )


def test_every_action_of_a_transaction_asks_for_the_item_that_refuses_it() -> None:
    conditions = (Equals("epoch", 3),)
    actions = (
        Check(KEY, conditions),
        Put(Key(CONTROL, "p", "t"), {}, conditions),
        Update(Key(UPSTREAMS, "u", 0), add={"version": 1}, conditions=conditions),
        Delete(Key(UPSTREAMS, "u", 1), conditions),
    )
    request = transact_request(actions, "t" * 36, NAMES)
    assert request["ClientRequestToken"] == "t" * 36
    assert [next(iter(item)) for item in request["TransactItems"]] == ["ConditionCheck", "Put", "Update", "Delete"]
    for item in request["TransactItems"]:
        (parameters,) = item.values()
        assert parameters["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"
        assert "ReturnValues" not in parameters


def test_reads_are_strongly_consistent() -> None:
    assert key_request(KEY, NAMES)["ConsistentRead"] is True
    assert query_request(CONTROL, "p", NAMES, {})["ConsistentRead"] is True


@pytest.mark.parametrize("attribute", [{"SS": ["a"]}, {"NS": ["1"]}, {"N": "1.5"}])
def test_what_kubesync_never_writes_is_reported_when_read(attribute: dict[str, object]) -> None:
    with pytest.raises(StoreUnavailableError, match="never writes"):
        from_attribute(attribute)


def test_item_bytes_counts_names_and_values() -> None:
    assert item_bytes({"pk": "ab", "ä": "ö"}) == 2 + 2 + 2 + 2
    assert item_bytes({"b": b"abc", "t": True, "n": None}) == 4 + 2 + 2
    assert item_bytes({"l": ["a", {"k": "v"}]}) == 1 + 3 + (1 + 1) + (1 + 3 + 1 + 1 + 1)
