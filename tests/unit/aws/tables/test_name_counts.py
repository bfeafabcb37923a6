"""Who is planned again when a namespace has fewer record sets, and what is read to find that out."""

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_key
from kubesync.aws.dynamodb.store import STATE, Delete, Key
from kubesync.aws.tables.items import put
from kubesync.aws.tables.name_counts import SETS, NameCounts, NameCountTable
from kubesync.domain.dns.permissions import NameRules
from kubesync.domain.dns.records import Problem
from kubesync.domain.state import KeyState

RULES = NameRules("{service}.{domain}", "prod.example.com", "prod", frozenset(), ("example.com",))
FEWER = {(SETS, "shop"): -1}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(clock=ManualClock())


def counts_of(store: MemoryStore) -> NameCounts:
    """As a session has them at its beginning."""
    counts = NameCounts(NameCountTable(store))
    counts.configure("prod", RULES)
    return counts


def waits(store: MemoryStore, name: str, code: str, option: str) -> KeyState:
    """A key that a limit of its namespace keeps out, as it is stored."""
    state = KeyState(a_key(name), problems=(Problem(code, "www", f"no room (--max-{option}-per-namespace)"),))
    store.transact([NameCountTable.mark_over(state)], name)
    return state


def again(counts: NameCounts, *states: KeyState) -> list[str]:
    """Keys that are planned again because a transaction takes a record set away. ``states``: what it writes."""
    keys = counts.keys_with_room(FEWER, states)
    counts.written(FEWER, states)
    return [key.name for key in keys]


def test_i7_who_waits_for_record_sets_is_read_once_and_then_known(store: MemoryStore) -> None:
    earlier = waits(store, "earlier", "TooManyRecordSets", "record-sets")
    waits(store, "names", "TooManyNames", "names")
    counts = counts_of(store)
    store.calls.clear()
    assert again(counts) == ["earlier", "names"], "the session before may have died before it told them"
    assert again(counts) == ["earlier"], "it may not have fitted; who waits for names has no more room for these"
    assert again(counts, waits(store, "new", "TooManyRecordSets", "record-sets")) == ["earlier", "new"]
    assert again(counts, KeyState(earlier.key)) == ["earlier", "new"], "its state is not written yet"
    assert again(counts) == ["new"]
    assert [call.partition for call in store.calls if call.operation == "query"] == ["prod#over"]


def test_i7_nobody_is_asked_for_again_in_a_namespace_where_nobody_waits(store: MemoryStore) -> None:
    counts = counts_of(store)
    store.calls.clear()
    assert [again(counts) for _ in range(10)] == [[]] * 10
    assert [call.partition for call in store.calls if call.operation == "query"] == ["prod#over"]


def test_i9_mark_of_the_release_before_is_found_as_there(store: MemoryStore) -> None:
    store.write(put(Key(STATE, "prod#over", "shop/old")))
    counts = counts_of(store)
    assert [again(counts), again(counts)] == [["old"], ["old"]], "it does not say what it waits for"


def test_i4_text_of_an_object_that_ends_as_a_limit_does_is_no_limit() -> None:
    text = Problem("InvalidTtl", "ttl", "not a duration: x-per-namespace)")
    assert isinstance(NameCountTable.mark_over(KeyState(a_key("evil"), problems=(text,))), Delete)
