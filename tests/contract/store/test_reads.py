"""Queries, scans and batches of gets."""

from collections.abc import Iterable

import pytest

from kubesync.aws.dynamodb.store import AUDIT, CONTROL, STATE, UPSTREAMS, Item, Key, Put, Store
from kubesync.domain.errors import StoreUnavailableError


def sort_keys(items: Iterable[Item]) -> list[object]:
    return [item["sk"] for item in items]


@pytest.fixture
def listing(store: Store, partition: str) -> str:
    """A partition with the sort keys a#1, a#10, a#2, b#1, c, B and ä#1, written in another order."""
    for sort in ("c", "a#2", "ä#1", "a#1", "B", "b#1", "a#10"):
        store.write(Put(Key(STATE, partition, sort), {}))
    store.write(Put(Key(STATE, partition + "0", "a#3"), {}))
    return partition


def test_query_is_in_order_of_the_bytes(store: Store, listing: str) -> None:
    assert sort_keys(store.query(STATE, listing)) == ["B", "a#1", "a#10", "a#2", "b#1", "c", "ä#1"]


def test_query_newest_first(store: Store, listing: str) -> None:
    assert sort_keys(store.query(STATE, listing, newest_first=True)) == ["ä#1", "c", "b#1", "a#2", "a#10", "a#1", "B"]


@pytest.mark.parametrize(
    ("prefix", "expected"), [("a#", ["a#1", "a#10", "a#2"]), ("a#1", ["a#1", "a#10"]), ("ä", ["ä#1"]), ("x", [])]
)
def test_query_by_prefix(store: Store, listing: str, prefix: str, expected: list[str]) -> None:
    assert sort_keys(store.query(STATE, listing, prefix=prefix)) == expected


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("a#10", "b#1", ["a#10", "a#2", "b#1"]),
        ("B", "a#2", ["B", "a#1", "a#10", "a#2"]),
        ("a#11", "z", ["a#2", "b#1", "c"]),
        ("a#11", "a#11", []),
        ("a#2", "a#2", ["a#2"]),
    ],
)
@pytest.mark.parametrize("newest_first", [False, True])
def test_query_of_a_range(
    store: Store, listing: str, start: str, end: str, expected: list[str], newest_first: bool
) -> None:
    found = sort_keys(store.query(STATE, listing, between=(start, end), newest_first=newest_first))
    assert found == (expected[::-1] if newest_first else expected)


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (1, 1), (3, 3), (7, 7), (8, 7)])
def test_query_with_a_limit(store: Store, listing: str, limit: int, count: int) -> None:
    expected = ["B", "a#1", "a#10", "a#2", "b#1", "c", "ä#1"][:count]
    assert sort_keys(store.query(STATE, listing, limit=limit)) == expected


def test_query_newest_first_with_prefix_and_limit(store: Store, listing: str) -> None:
    assert sort_keys(store.query(STATE, listing, prefix="a", limit=2, newest_first=True)) == ["a#2", "a#10"]


def test_query_of_a_partition_that_is_not_there(store: Store, partition: str) -> None:
    assert list(store.query(STATE, partition)) == []


def test_query_with_prefix_and_range_is_refused(store: Store, partition: str) -> None:
    with pytest.raises(ValueError, match="not both"):
        list(store.query(STATE, partition, prefix="a", between=("a", "b")))


def test_query_of_number_sort_keys_is_in_order_of_numbers(store: Store, partition: str) -> None:
    for slice_number in (10, 0, 2, 1):
        store.write(Put(Key(UPSTREAMS, partition, slice_number), {"version": 3}))
    assert [item["slice"] for item in store.query(UPSTREAMS, partition)] == [0, 1, 2, 10]
    assert next(store.query(UPSTREAMS, partition)) == {"upstream": partition, "slice": 0, "version": 3}


def big_items(store: Store, partition: str) -> list[str]:
    """Nine items of 300 KB: three pages, as a page has at most 1 MB."""
    names = [f"item-{number}" for number in range(9)]
    for name in names:
        store.write(Put(Key(AUDIT, partition, name), {"big": "x" * (300 * 1024)}))
    return names


@pytest.mark.parametrize("limit", [None, 6])
@pytest.mark.parametrize("newest_first", [False, True])
def test_query_goes_on_from_page_to_page(store: Store, partition: str, limit: int | None, newest_first: bool) -> None:
    names = big_items(store, partition)
    found = sort_keys(store.query(AUDIT, partition, limit=limit, newest_first=newest_first))
    assert found == (names[::-1] if newest_first else names)[:limit]


def test_scan_goes_on_from_page_to_page(store: Store, partition: str) -> None:
    names = big_items(store, partition)
    assert sorted(str(item["sk"]) for item in store.scan(AUDIT) if item["pk"] == partition) == names


def test_batch_get_of_more_than_a_hundred_keys_of_two_tables(store: Store, partition: str) -> None:
    keys = [Key(UPSTREAMS, partition, number) for number in range(0, 230, 2)]
    keys += [Key(CONTROL, partition, f"item-{number}") for number in range(5)]
    for key in keys:
        store.write(Put(key, {"seen": True}))
    missing = [Key(UPSTREAMS, partition, number) for number in range(1, 230, 2)]
    missing.append(Key(STATE, partition, "item-0"))
    found = store.batch_get([*missing, *keys, *keys])
    assert found == {key: {**key.attributes(), "seen": True} for key in keys}


def test_batch_get_of_nothing(store: Store) -> None:
    assert store.batch_get([]) == {}


def test_batch_get_of_more_than_an_answer_holds(store: Store, partition: str) -> None:
    keys = [Key(AUDIT, partition, f"item-{number:02}") for number in range(45)]  # 17 MB; an answer has at most 16
    for key in keys:
        store.write(Put(key, {"big": "x" * (390 * 1024)}))
    assert set(store.batch_get(keys)) == set(keys)


@pytest.mark.parametrize("key", [Key(CONTROL, "", "s"), Key(CONTROL, "p", "")], ids=["partition", "sort"])
def test_get_of_an_empty_key_is_refused(store: Store, key: Key) -> None:
    with pytest.raises(StoreUnavailableError):
        store.get(key)
