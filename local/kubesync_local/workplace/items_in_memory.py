"""What DynamoDB does to one item, in memory: keys and values checked, conditions judged, writes applied. Pure."""

from collections.abc import Mapping

from kubesync.aws.dynamodb.store import (
    KEY_ATTRIBUTES,
    UPSTREAMS,
    Absent,
    AbsentOrBelow,
    Action,
    Check,
    Condition,
    Delete,
    Equals,
    Key,
    Put,
    Update,
    Value,
)
from kubesync.aws.dynamodb.wire import item_bytes
from kubesync.domain.errors import StoreUnavailableError

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_ITEM_BYTES = 400 * 1024
PARTITION_KEY_BYTES = 2048
SORT_KEY_BYTES = 1024
_NUMBER_LIMIT = 10**38

type StoredItem = dict[str, Value]


def invalid(message: str) -> StoreUnavailableError:
    """What the adapter makes of DynamoDB's ValidationException."""
    return StoreUnavailableError(f"DynamoDB refuses the request: {message}")


def copy_value(value: Value) -> Value:
    """A deep copy; refuses what the adapter refuses."""
    kind = type(value)
    if kind is str or kind is bool or kind is bytes or value is None:
        return value
    if kind is int:
        assert isinstance(value, int)
        if not -_NUMBER_LIMIT < value < _NUMBER_LIMIT:
            raise invalid("a number has more than 38 digits")
        return value
    if isinstance(value, dict) and kind is dict:
        return {name: copy_value(element) for name, element in value.items()}
    if isinstance(value, list) and kind is list:
        return [copy_value(element) for element in value]
    raise TypeError(f"{kind.__name__} cannot be stored")


def copy_item(item: Mapping[str, Value]) -> StoredItem:
    return {name: copy_value(value) for name, value in item.items()}


def check_partition(partition: str) -> None:
    if type(partition) is not str or not 1 <= len(partition.encode()) <= PARTITION_KEY_BYTES:
        raise invalid("a partition key is a string of 1 to 2048 bytes")


def check_key(key: Key) -> None:
    check_partition(key.partition)
    if key.table == UPSTREAMS:
        if type(key.sort) is not int:
            raise invalid("the sort key of the upstreams table is a number")
    elif type(key.sort) is not str or not 1 <= len(key.sort.encode()) <= SORT_KEY_BYTES:
        raise invalid("a sort key is a string of 1 to 1024 bytes")


def check_action(action: Action) -> None:
    """What DynamoDB refuses before it looks at any item."""
    check_key(action.key)
    if isinstance(action, Check) and not action.conditions:
        raise invalid("a check has no condition")
    if isinstance(action, Update):
        named = [*action.set, *action.add, *action.remove]
        if not named:
            raise invalid("an update changes nothing")
        if len(set(named)) < len(named):
            raise invalid("two document paths overlap")
        if not set(named).isdisjoint(KEY_ATTRIBUTES[action.key.table]):
            raise invalid("an update changes a key attribute")
        if any(type(number) is not int for number in action.add.values()):
            raise invalid("only numbers can be added")


def holds(condition: Condition, item: Mapping[str, Value] | None) -> bool:
    match condition:
        case Absent():
            return item is None
        case Equals(attribute, value):
            found = None if item is None else item.get(attribute)
            return type(found) is type(value) and found == value
        case AbsentOrBelow(attribute, below):
            if item is None or attribute not in item:
                return True
            number = item[attribute]
            return type(number) is int and number < below


def applied(action: Action, item: StoredItem | None) -> StoredItem | None:
    """The item after the action, its conditions not looked at; the stored one is not changed, values are copied."""
    match action:
        case Check():
            return item
        case Delete():
            return None
        case Put(key, new):
            after = copy_item({**new, **key.attributes()})
        case Update(key):
            after = dict(item) if item is not None else key.attributes()
            for name, value in action.set.items():
                after[name] = copy_value(value)
            for name, number in action.add.items():
                before = after.get(name, 0)
                if type(before) is not int:
                    raise invalid("an operand in the update expression has an incorrect data type")
                after[name] = copy_value(before + number)
            for name in action.remove:
                after.pop(name, None)
    if item_bytes(after) > MAX_ITEM_BYTES:
        raise invalid("item size has exceeded the maximum allowed size of 400 KB")
    return after
