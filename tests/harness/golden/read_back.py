"""Golden tables in memory, and what the tests that read them back have in common."""

from typing import Final

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.golden.golden_stage import items_of, read_document
from kubesync.aws.dynamodb.store import Item, Key, Put, Store
from kubesync.aws.tables.items import SchemaGuard
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordSet
from kubesync.domain.objects import (
    ObjectKey,
)
from kubesync.domain.state import KeyState

AT: Final = "2027-01-15T08:00:00.000Z"
EMPTY: Final = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
TAKEN: Final = (
    "taken.example.com A stands there and is not ours (192.0.2.9): take it over (`kubesync recover`), remove it, "
    "or choose another name"
)


def tables(name: str) -> Store:
    store = MemoryStore(clock=ManualClock())
    for key, item in items_of(read_document(name)).items():
        store.write(Put(key, item))
    return SchemaGuard(store)


def with_items(*items: tuple[Key, Item]) -> Store:
    store = MemoryStore(clock=ManualClock())
    for key, item in items:
        store.write(Put(key, item))
    return SchemaGuard(store)


def key(name: str, cluster: str = "prod") -> ObjectKey:
    return ObjectKey(cluster, "shop", name)


def state(store: Store, name: str) -> KeyState:
    return StateTable(store).load([key(name)])[key(name)]


def a_set(*values: str) -> RecordSet:
    return RecordSet(60, values)
