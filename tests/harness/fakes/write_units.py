"""Counts the write units of a store in memory, by kind of item.

A unit is what DynamoDB bills on demand for each 1 KB that is written, of an item before or after, whichever is larger; two in transactions.
A condition check costs as much as a write: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
"""

import math
from collections import Counter
from collections.abc import Mapping

from harness.fakes.memory_store import Call, Faults, MemoryStore
from harness.golden.item_kinds import kind_of_item
from kubesync.aws.dynamodb.store import Action, Check, Put, Update
from kubesync.aws.dynamodb.wire import item_bytes


class WriteUnits:
    """Hooks of a store, around those that it has. Renewals of the lease are counted apart: ``renewals``."""

    def __init__(self, store: MemoryStore) -> None:
        self.renewals = 0
        self._by_kind: Counter[str] = Counter()
        self._store = store
        self._inner: Faults = store.faults
        self._before: dict[int, list[int]] = {}
        store.faults = self

    def take(self) -> Mapping[str, int]:
        """The units since the last call, by kind of item."""
        taken, self._by_kind = dict(self._by_kind), Counter()
        return taken

    def before(self, call: Call) -> None:
        self._inner.before(call)
        self._before[id(call)] = [self._size(action) for action in call.actions]

    def after(self, call: Call) -> None:
        for size, action in zip(self._before.pop(id(call)), call.actions, strict=True):
            units = max(1, math.ceil(max(size, self._size(action)) / 1024))
            kind = kind_of_item(action.key)
            if kind == "lease" and _renews(action):
                self.renewals += units
            else:
                self._by_kind[f"{kind}, checked" if isinstance(action, Check) else kind] += units * (
                    2 if call.token else 1
                )
        self._inner.after(call)

    def _size(self, action: Action) -> int:
        item = self._store._find(action.key)
        written = item_bytes({**action.item, **action.key.attributes()}) if isinstance(action, Put) else 0
        return max(written, item_bytes(item) if item is not None else 0)


def _renews(action: Action) -> bool:
    """Taking the lease sets its holder, and releasing it sets `released`; a renewal sets neither."""
    return isinstance(action, Update) and not action.set.keys() & {"holder", "released"}
