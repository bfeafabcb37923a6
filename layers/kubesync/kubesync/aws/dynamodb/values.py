"""Plain values to DynamoDB's AttributeValues and back, and the size of an item as DynamoDB counts it.

    str S    int N    bool BOOL    bytes B    list L    dict M    None NULL

Sets and fractions are never written. They are refused in both directions, so that no value changes silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubesync.aws.dynamodb.store import Item, Value
from kubesync.domain.errors import StoreUnavailableError

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_NUMBER_DIGITS: Final = 38
_NUMBER_LIMIT: Final = 10**MAX_NUMBER_DIGITS

type AttributeValue = dict[str, Any]


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
        return value  # type: ignore[no-any-return]
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
    """An item as plain values. Raises like ``to_attribute``."""
    return {name: from_attribute(attribute) for name, attribute in attributes.items()}


def item_bytes(item: Item) -> int:
    """The size of an item in bytes, key attributes included, as DynamoDB counts it; never less.

    An item may have 400 KB, a transaction 4 MB. A number counts one byte for every two digits, and two more; see
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(_text_bytes(name) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Value) -> int:
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
