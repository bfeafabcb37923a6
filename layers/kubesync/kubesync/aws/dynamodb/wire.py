"""DynamoDB's form of items, writes and conditions: pure values, no client.

Plain values and AttributeValues. Sets and fractions are never written. They are refused in both directions, so that no value changes silently.

    str S    int N    bool BOOL    bytes B    list L    dict M    None NULL

In requests every attribute name goes through ExpressionAttributeNames, so that none collides with DynamoDB's 573 reserved
words (``status``, ``name``, ``ttl``, ...).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubesync.aws.dynamodb.store import (
    KEY_ATTRIBUTES,
    MAX_TRANSACTION_ACTIONS,
    Absent,
    AbsentOrBelow,
    Action,
    Check,
    Condition,
    Equals,
    Item,
    Key,
    Put,
    QueryOptions,
    Update,
    Value,
    Write,
)
from kubesync.domain.errors import StoreUnavailableError

type AttributeValue = dict[str, Any]
type Request = dict[str, Any]
type TableNames = Mapping[str, str]

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_NUMBER_DIGITS: Final = 38
_NUMBER_LIMIT: Final = 10**MAX_NUMBER_DIGITS
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
MAX_TOKEN_CHARACTERS = 36


def to_attribute(value: Value) -> AttributeValue:
    """One value as an AttributeValue.

    Raises:
        TypeError: the value is not a ``Value`` (a float, a set, a tuple), which is a bug in the caller.
        StoreUnavailableError: an int of more than 38 digits, which DynamoDB cannot store.
    """
    # Exact types, not isinstance: a bool is an int, and an IntEnum would come back as an int. Any other type
    # reaches the error below.
    kind = type(value)
    if kind is str:
        return {"S": value}
    if kind is int:
        return {"N": str(_checked_number(value))}  # type: ignore[arg-type]  # `kind` implies the type; mypy cannot see it
    if kind is bool:
        return {"BOOL": value}
    if value is None:
        return {"NULL": True}
    if kind is bytes:
        return {"B": value}
    if isinstance(value, dict) and kind is dict:
        return {"M": to_attributes(value)}
    if isinstance(value, list) and kind is list:
        return {"L": [to_attribute(element) for element in value]}
    raise TypeError(f"{kind.__name__} cannot be stored: only str, int, bool, bytes, list, dict and None can")


def _checked_number(number: int) -> int:
    if -_NUMBER_LIMIT < number < _NUMBER_LIMIT:
        return number
    raise StoreUnavailableError(f"a number of more than {MAX_NUMBER_DIGITS} digits cannot be stored")


def to_attributes(item: Mapping[str, Value]) -> dict[str, AttributeValue]:
    """An item, or a map in one, as AttributeValues. Raises like ``to_attribute``."""
    return {name: to_attribute(value) for name, value in item.items()}


def from_attribute(attribute: Mapping[str, Any]) -> Value:
    """One AttributeValue as a plain value.

    Raises:
        StoreUnavailableError: a type that kubesync never writes, so somebody else did. The caller reports it.
    """
    ((tag, value),) = attribute.items()
    if tag == "S" or tag == "B" or tag == "BOOL":  # the hot path: no tuple, no hashing
        return value  # type: ignore[no-any-return]  # the tag says its type
    if tag == "N":
        try:
            return int(value)
        except ValueError:
            raise StoreUnavailableError("an item holds a fraction, which kubesync never writes") from None
    if tag == "M":
        return {name: from_attribute(element) for name, element in value.items()}
    if tag == "L":
        return [from_attribute(element) for element in value]
    if tag == "NULL":
        return None
    raise StoreUnavailableError(f"an item holds an attribute of type {tag}, which kubesync never writes")


def from_attributes(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, Value]:
    """An item as plain values. Raises like ``from_attribute``."""
    return {name: from_attribute(attribute) for name, attribute in attributes.items()}


def item_bytes(item: Item) -> int:
    """The size of an item in bytes, key attributes included, as DynamoDB counts it; never less.

    An item may have 400 KB, a transaction 4 MB. A number counts one byte for every two digits, and two more; see
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(_text_bytes(name) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Value) -> int:
    """The size of one value. A list or map counts 3 bytes, and 1 more for each element."""
    if isinstance(value, str):
        return _text_bytes(value)
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, int):
        return len(str(abs(value))) // 2 + 3
    if isinstance(value, bytes):
        return len(value)
    # Half of the time that planning a large Service takes is spent here: no generators, and texts without a call.
    size = 3
    if isinstance(value, dict):
        for name, element in value.items():
            size += 1 + (len(name) if name.isascii() else _text_bytes(name))
            if type(element) is str and element.isascii():
                size += len(element)
            else:
                size += 1 if element is True else _value_bytes(element)
        return size
    for element in value:
        size += 1 + _value_bytes(element)
    return size


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Placeholders:
    """The names (``#n0``) and values (``:v0``) of one request's expressions. Each name gets one placeholder."""

    def __init__(self) -> None:
        self._name_by_attribute: dict[str, str] = {}
        self._values: dict[str, AttributeValue] = {}

    def name(self, attribute: str) -> str:
        """Return the placeholder of an attribute's name, for an expression."""
        return self._name_by_attribute.setdefault(attribute, f"#n{len(self._name_by_attribute)}")

    def value(self, value: Value) -> str:
        """Return a new placeholder that stands for this value."""
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
# | Equals         | fails        | fails             | fails      | holds | fails | fails |
# | AbsentOrBelow  | holds        | holds             | fails      | fails | holds | fails |
def _condition(condition: Condition, table: str, placeholders: Placeholders) -> str:
    """One condition as a part of a ConditionExpression. An item exists if it has its partition key."""
    partition, _ = KEY_ATTRIBUTES[table]
    match condition:
        case Absent():
            return f"attribute_not_exists({placeholders.name(partition)})"
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
    # DynamoDB calls the kinds as our classes are called, except for Check.
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
