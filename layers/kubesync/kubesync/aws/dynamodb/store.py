"""The port to DynamoDB: plain items, named conditions, transactions. Adapters: ``client``, and an in-memory one for tests.

Every read is strongly consistent. Items are plain values; numbers are int.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypedDict, Unpack

type Value = str | int | bool | bytes | list[Value] | dict[str, Value] | None
type Item = Mapping[str, Any]

CONTROL: Final = "control"
STATE: Final = "state"
UPSTREAMS: Final = "upstreams"
AUDIT: Final = "audit"

KEY_ATTRIBUTES: Final[Mapping[str, tuple[str, str]]] = {
    CONTROL: ("pk", "sk"),
    STATE: ("pk", "sk"),
    UPSTREAMS: ("upstream", "slice"),
    AUDIT: ("pk", "sk"),
}
"""By table, the names of its partition key and of its sort key."""


def table_names(prefix: str) -> dict[str, str]:
    """The real name of each table by its logical one: ``kubesync-control`` for the prefix ``kubesync``."""
    return {name: f"{prefix}-{name}" for name in KEY_ATTRIBUTES}


# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
MAX_TRANSACTION_ACTIONS: Final = 100


@dataclass(frozen=True, slots=True)
class Key:
    """An item's primary key; ``sort`` is an int in the upstreams table, a string elsewhere."""

    table: str
    partition: str
    sort: str | int

    def attributes(self) -> dict[str, Value]:
        """The key as attributes of an item."""
        partition, sort = KEY_ATTRIBUTES[self.table]
        return {partition: self.partition, sort: self.sort}


@dataclass(frozen=True, slots=True)
class Absent:
    """The item does not exist."""


@dataclass(frozen=True, slots=True)
class Equals:
    """The item exists and ``attribute`` has ``value``."""

    attribute: str
    value: str | int | bool


@dataclass(frozen=True, slots=True)
class AbsentOrBelow:
    """``attribute`` is a number below ``value``, or is missing, or the item is."""

    attribute: str
    value: int


type Condition = Absent | Equals | AbsentOrBelow


@dataclass(frozen=True, slots=True)
class Put:
    """Replace the whole item. ``item`` holds the non-key attributes. All conditions must hold."""

    key: Key
    item: Item
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """Set, add to (numbers) and remove single attributes. Creates a missing item. All conditions must hold."""

    key: Key
    set: Item = field(default_factory=dict)
    add: Mapping[str, int] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the item. Deleting a missing item succeeds unless a condition says otherwise."""

    key: Key
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """The conditions must hold. Only for transactions."""

    key: Key
    conditions: tuple[Condition, ...]


type Write = Put | Update | Delete
type Action = Put | Update | Delete | Check


class QueryOptions(TypedDict, total=False):
    """Which items of a partition a query returns. ``prefix`` and ``between`` exclude each other; upstreams have neither.

    Attributes:
        prefix: only sort keys that begin with it.
        between: only sort keys from the first to the second, both included.
        limit: at most this many items; None: all.
        newest_first: in descending order.
    """

    prefix: str
    between: tuple[str, str]
    limit: int | None
    newest_first: bool


class Store(Protocol):
    """Tables by their logical name. Errors are those of ``domain.errors`` under StoreError. Any call can raise
    StoreUnavailableError. Reads and writes raise StoreBusyError when the adapter's own retries are used up."""

    def get(self, key: Key) -> Item | None:
        """The item with its key attributes, or None."""

    def batch_get(self, keys: Sequence[Key]) -> dict[Key, Item]:
        """The items that exist, for any number of keys. Unprocessed keys are requested again."""

    def query(self, table: str, partition: str, **wanted: Unpack[QueryOptions]) -> Iterator[Item]:
        """Items of one partition in order of the sort key, page after page."""

    def scan(self, table: str, limit: int | None = None) -> Iterator[Item]:
        """Every item of the table, or at most so many. Only for commands of a person, full resyncs, and where items are lost."""

    def write(self, action: Write) -> Item:
        """One conditional write. Returns the item after the write (empty after a Delete).

        Raises:
            ConditionFailedError: refused; holds the item that is there now.
            StoreOutcomeUnknownError: no answer. The caller reads before deciding.
        """

    def transact(self, actions: Sequence[Action], token: str) -> None:
        """Write all actions or none, at most 100. If an answer is lost, repeats with the same ``token`` (at most 36 characters).

        Raises:
            TransactionRefusedError: conditions failed; holds index and item of each.
            StoreBusyError: collided or throttled; nothing was written.
            StoreOutcomeUnknownError: no answer, even after repeats.
        """
