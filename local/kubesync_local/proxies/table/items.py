"""Items of the upstreams table as they come, and which of them can be read (docs/upstreams.md).

An item can have any shape: a newer kubesync, or a person, wrote it. An odd item makes one upstream unreadable, never the table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubesync.aws.dynamodb.store import Value
from kubesync.aws.dynamodb.wire import from_attribute, from_attributes
from kubesync.aws.tables.items import SCHEMA
from kubesync.domain.errors import StoreUnavailableError
from kubesync_local.proxies.servers import Snapshot


class UnreadableUpstreamError(StoreUnavailableError):
    """One upstream cannot be read. The table can."""


@dataclass(frozen=True, slots=True)
class UnreadUpstream(Snapshot):
    """An upstream that is in the table and was never read. Its servers in the file stay; without any it is left out."""

    version: int = -1

    @property
    def has_item(self) -> bool:
        return True


def decoded(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, Value]:
    """An item as plain values. An attribute of a type that kubesync never writes becomes None: readers ignore unknown attributes."""
    try:
        return from_attributes(attributes)
    except StoreUnavailableError:
        return {name: _or_none(attribute) for name, attribute in attributes.items()}


def _or_none(attribute: Mapping[str, Any]) -> Value:
    try:
        return from_attribute(attribute)
    except StoreUnavailableError:
        return None


def oddity(item: Mapping[str, Any]) -> str:
    """Why a slice cannot be read; empty: it can."""
    form = item.get("v")
    if type(form) is int and form > SCHEMA:
        return f"its form (v = {form}) is newer than the one that this kubesync reads ({SCHEMA}): update kubesync"
    needed = _OF_SLICE_0 if item.get("slice") == 0 else _OF_EVERY_SLICE
    wrong = [name for name, is_valid in needed.items() if not is_valid(item.get(name))]
    if wrong:
        return f"slice {item.get('slice')} has no valid {' and no valid '.join(wrong)}; only kubesync should write to the table"
    return ""


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _are_nodes(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(node, dict) for node in value)


_OF_EVERY_SLICE: Final[Mapping[str, Callable[[object], bool]]] = {
    "slice": lambda value: type(value) is int and value >= 0,
    "v": lambda value: type(value) is int and value == SCHEMA,
    "version": _is_count,
    "nodes": _are_nodes,
}
_OF_SLICE_0: Final[Mapping[str, Callable[[object], bool]]] = {
    **_OF_EVERY_SLICE,
    "slices": _is_count,
    "digest": lambda value: isinstance(value, str),
    "updated_at": lambda value: isinstance(value, str),
    "deleted": lambda value: value is None or isinstance(value, bool),
}
