"""Turns the port's writes and conditions into DynamoDB requests: pure values, no client.

Every attribute name goes through ExpressionAttributeNames, so that none collides with DynamoDB's 573 reserved
words (``status``, ``name``, ``ttl``, ...).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubesync.aws.dynamodb.store import (
    KEY_ATTRIBUTES,
    MAX_TRANSACTION_ACTIONS,
    Absent,
    AbsentOrBelow,
    Action,
    Check,
    Condition,
    Equals,
    Exists,
    Key,
    Put,
    QueryOptions,
    Update,
    Value,
    Write,
)
from kubesync.aws.dynamodb.values import AttributeValue, to_attribute, to_attributes
from kubesync.domain.errors import StoreUnavailableError

type Request = dict[str, Any]
type TableNames = Mapping[str, str]

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
MAX_TOKEN_CHARACTERS = 36


class Placeholders:
    """The names (``#n0``) and values (``:v0``) of one request's expressions. Each name gets one placeholder."""

    def __init__(self) -> None:
        self._name_by_attribute: dict[str, str] = {}
        self._values: dict[str, AttributeValue] = {}

    def name(self, attribute: str) -> str:
        return self._name_by_attribute.setdefault(attribute, f"#n{len(self._name_by_attribute)}")

    def value(self, value: Value) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = to_attribute(value)
        return placeholder

    def as_request(self) -> Request:
        """The two parameters, each only if it is not empty: DynamoDB refuses empty ones."""
        request: Request = {}
        if self._name_by_attribute:
            request["ExpressionAttributeNames"] = {name: attr for attr, name in self._name_by_attribute.items()}
        if self._values:
            request["ExpressionAttributeValues"] = self._values
        return request


# | condition      | item missing | attribute missing | other type | equal | below | above |
# | -------------- | ------------ | ----------------- | ---------- | ----- | ----- | ----- |
# | Absent         | holds        | fails             | fails      | fails | fails | fails |
# | Exists         | fails        | holds             | holds      | holds | holds | holds |
# | Equals         | fails        | fails             | fails      | holds | fails | fails |
# | AbsentOrBelow  | holds        | holds             | fails      | fails | holds | fails |
def _condition(condition: Condition, table: str, placeholders: Placeholders) -> str:
    partition, _ = KEY_ATTRIBUTES[table]
    match condition:
        case Absent():
            return f"attribute_not_exists({placeholders.name(partition)})"
        case Exists():
            return f"attribute_exists({placeholders.name(partition)})"
        case Equals(attribute, value):
            return f"{placeholders.name(attribute)} = {placeholders.value(value)}"
        case AbsentOrBelow(attribute, below):
            name = placeholders.name(attribute)
            return f"(attribute_not_exists({name}) OR {name} < {placeholders.value(below)})"


def _changes(update: Update, placeholders: Placeholders) -> str:
    """The UpdateExpression: ``SET #n0 = :v0, ... ADD #n1 :v1, ... REMOVE #n2, ...``."""
    name, value = placeholders.name, placeholders.value
    clauses = (
        ("SET", [f"{name(attribute)} = {value(new)}" for attribute, new in update.set.items()]),
        ("ADD", [f"{name(attribute)} {value(number)}" for attribute, number in update.add.items()]),
        ("REMOVE", [name(attribute) for attribute in update.remove]),
    )
    text = " ".join(f"{verb} {', '.join(parts)}" for verb, parts in clauses if parts)
    if not text:
        raise StoreUnavailableError(f"an update of table {update.key.table} changes nothing")
    return text


def action_request(action: Action, table_names: TableNames) -> tuple[str, Request]:
    """The kind of TransactItem for an action, and its parameters.

    A Put, Update or Delete has the same parameters in PutItem, UpdateItem and DeleteItem.

    Raises:
        StoreUnavailableError: an update without a change, or a check without a condition; DynamoDB would refuse them.
        TypeError: a value that cannot be stored.
    """
    placeholders = Placeholders()
    request: Request = {"TableName": table_names[action.key.table], "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    if isinstance(action, Put):
        request["Item"] = to_attributes({**action.item, **action.key.attributes()})
    else:
        request["Key"] = to_attributes(action.key.attributes())
    if isinstance(action, Update):
        request["UpdateExpression"] = _changes(action, placeholders)
    if action.conditions:
        parts = (_condition(condition, action.key.table, placeholders) for condition in action.conditions)
        request["ConditionExpression"] = " AND ".join(parts)
    elif isinstance(action, Check):
        raise StoreUnavailableError(f"a check in table {action.key.table} has no condition")
    # TransactItems has our names, but for this one.
    member = "ConditionCheck" if isinstance(action, Check) else type(action).__name__
    return member, request | placeholders.as_request()


def write_request(action: Write, table_names: TableNames) -> tuple[str, Request]:
    """The client's method and the parameters of a single write. Raises like ``action_request``."""
    member, request = action_request(action, table_names)
    if isinstance(action, Update):
        request["ReturnValues"] = "ALL_NEW"
    return f"{member.lower()}_item", request


def transact_request(actions: Sequence[Action], token: str, table_names: TableNames) -> Request:
    """The parameters of TransactWriteItems.

    Raises:
        StoreUnavailableError: no action, over 100 actions, or a token that is empty or too long; also like ``action_request``.
    """
    if not 1 <= len(actions) <= MAX_TRANSACTION_ACTIONS:
        raise StoreUnavailableError(f"a transaction takes 1 to {MAX_TRANSACTION_ACTIONS} actions, not {len(actions)}")
    if not 1 <= len(token) <= MAX_TOKEN_CHARACTERS:
        raise StoreUnavailableError(
            f"a transaction's token has 1 to {MAX_TOKEN_CHARACTERS} characters, not {len(token)}"
        )
    members = (action_request(action, table_names) for action in actions)
    return {"TransactItems": [{member: request} for member, request in members], "ClientRequestToken": token}


def key_request(key: Key, table_names: TableNames) -> Request:
    """The parameters of a strongly consistent GetItem."""
    return {"TableName": table_names[key.table], "Key": to_attributes(key.attributes()), "ConsistentRead": True}


def query_request(table: str, partition: str, table_names: TableNames, wanted: QueryOptions) -> Request:
    """The parameters of a strongly consistent Query, without the limit of its pages.

    Raises:
        ValueError: both ``prefix`` and ``between``: DynamoDB accepts one condition on the sort key.
    """
    if "prefix" in wanted and "between" in wanted:
        raise ValueError("a query takes a prefix or a range, not both")
    partition_name, sort_name = KEY_ATTRIBUTES[table]
    placeholders = Placeholders()
    parts = [f"{placeholders.name(partition_name)} = {placeholders.value(partition)}"]
    if "prefix" in wanted:
        parts.append(f"begins_with({placeholders.name(sort_name)}, {placeholders.value(wanted['prefix'])})")
    if "between" in wanted:
        low, high = map(placeholders.value, wanted["between"])
        parts.append(f"{placeholders.name(sort_name)} BETWEEN {low} AND {high}")
    return {
        "TableName": table_names[table],
        "KeyConditionExpression": " AND ".join(parts),
        "ScanIndexForward": not wanted.get("newest_first", False),
        "ConsistentRead": True,
        **placeholders.as_request(),
    }
