"""Where keys, open marks, heirs and slices are stored, and under which conditions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_key
from kubesync.aws.dynamodb.store import STATE, Absent, Delete, Equals, Item, Key, Put, Store, Update
from kubesync.aws.tables.state import BUCKETS, Queued, StateTable, open_key, slice_key, state_key
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.errors import StoreBusyError, TransactionRefusedError
from kubesync.domain.state import KeyState, Name, OpenMark

SECOND_SLICE = Key(STATE, "prod#3", "key#shop/web#001")
HELD = {RecordKey("Z1", "a.example.com", "A"): RecordSet(60, ("10.0.0.1",))}


def a_table() -> tuple[MemoryStore, StateTable]:
    store = MemoryStore(clock=ManualClock())
    return store, StateTable(store)


def long(count: int, salt: int = 0) -> tuple[Problem, ...]:
    """Problems that do not deflate: some 35 bytes each."""
    return tuple(Problem("Test", "", sha256(b"%d %d" % (salt, n)).hexdigest()) for n in range(count))


def put(store: Store, table: StateTable, before: KeyState, after: KeyState, token: str = "t") -> KeyState:
    stored, actions = table.put(before, after, token)
    if actions:
        store.transact(actions, f"{token}-{before.version}-{before.key.name}")
    return stored


def test_key_that_was_never_stored_is_empty() -> None:
    _, table = a_table()
    assert table.load([a_key()]) == {a_key(): KeyState(a_key())}


def test_key_is_stored_under_its_version() -> None:
    store, table = a_table()
    first = put(store, table, KeyState(a_key()), KeyState(a_key(), intended=HELD))
    assert (first.version, first.slices) == (1, 1)
    second, actions = table.put(first, replace(first, problems=long(1)), "tok")
    assert second.version == 2
    (action,) = actions
    assert isinstance(action, Put)
    assert action.key == Key(STATE, "prod#3", "key#shop/web")
    assert action.conditions == (Equals("version", 1),)
    assert {name: value for name, value in action.item.items() if name != "body"} == {
        "v": 1,
        "version": 2,
        "tx": "tok",
        "slices": 1,
    }
    assert table.put(KeyState(a_key()), first, "t")[1][0].conditions == (Absent(),)


def test_i2_stale_version_is_refused() -> None:
    store, table = a_table()
    first = put(store, table, KeyState(a_key()), KeyState(a_key(), intended=HELD))
    put(store, table, first, replace(first, problems=long(1)))
    with pytest.raises(TransactionRefusedError):
        put(store, table, first, replace(first, problems=long(2)), "late")


def test_large_state_is_sliced_and_shrinks_again() -> None:
    store, table = a_table()
    state = KeyState(a_key(), intended=HELD)
    for count, slices in ((8000, 4), (4000, 2), (12000, 5), (1, 1)):
        after = replace(state, problems=long(count, salt=count))
        state = put(store, table, state, after)
        assert state.slices == slices
        assert table.load([a_key()])[a_key()] == state
        assert list(table.load_all("prod")) == [state]
        assert len(list(store.scan(STATE))) == slices
    assert put(store, table, state, KeyState(a_key())) == KeyState(a_key())
    assert list(store.scan(STATE)) == []


class ReplacedMeanwhile(MemoryStore):
    """Runs something right after the first answer to a batch of reads, or to a query."""

    def __init__(self) -> None:
        super().__init__(clock=ManualClock())
        self.then: list[Callable[[], object]] = []

    def batch_get(self, keys: Sequence[Key]) -> dict[Key, Item]:
        found = super().batch_get(keys)
        while self.then:
            self.then.pop()()
        return found

    def query(self, table: str, partition: str, **wanted: Any) -> Iterator[Item]:
        found = list(super().query(table, partition, **wanted))
        if len(found) > 1:
            # The page ended after the head; the next one shows the slices of a later version.
            yield found[0]
            while self.then:
                self.then.pop()()
            found = [found[0], *list(super().query(table, partition, **wanted))[1:]]
            yield from found[1:]
        else:
            yield from found


@pytest.mark.parametrize("whole_cluster", [False, True])
def test_key_that_is_replaced_while_it_is_read_is_read_again(whole_cluster: bool) -> None:
    store = ReplacedMeanwhile()
    table = StateTable(store)
    first = put(store, table, KeyState(a_key()), KeyState(a_key(), intended=HELD, problems=long(5_000)))
    assert first.slices > 1
    later = replace(first, problems=long(5_000, salt=1))
    store.then.append(lambda: put(store, table, first, later))
    (read,) = table.load_all("prod") if whole_cluster else table.load([a_key()]).values()
    assert read.version == 2
    assert read.problems == later.problems


def test_large_state_that_goes_takes_its_slices_with_it() -> None:
    store, table = a_table()
    state = put(store, table, KeyState(a_key()), KeyState(a_key(), intended=HELD, problems=long(8000)))
    put(store, table, state, KeyState(a_key()))
    assert list(store.scan(STATE)) == []


def test_empty_key_that_was_never_stored_writes_nothing() -> None:
    _, table = a_table()
    assert table.put(KeyState(a_key()), KeyState(a_key()), "t") == (KeyState(a_key()), [])


def test_every_key_of_a_cluster_is_found_in_its_buckets_with_its_mark() -> None:
    store, table = a_table()
    keys = [a_key(f"s{n}{'-' * (n % 2)}x", namespace) for n in range(60) for namespace in ("a", "a-b")]
    marks = {key: OpenMark(n, float(n), "why") for n, key in enumerate(keys) if n % 3 == 0}
    for key in keys:
        after = KeyState(key, intended=HELD, opened=marks.get(key), problems=long(4000 if key.name == "s3-x" else 1))
        put(store, table, KeyState(key), after, str(key)[:20])
    put(store, table, KeyState(a_key(cluster="other")), KeyState(a_key(cluster="other"), intended=HELD))
    found = {state.key: state for state in table.load_all("prod")}
    assert found.keys() == set(keys)
    assert {key: state.opened for key, state in found.items() if state.opened} == marks
    assert found == table.load(keys)
    assert len({state_key(key).partition for key in keys}) == BUCKETS
    assert dict(table.open_keys("prod")) == marks


def test_open_mark_comes_and_goes_with_the_state() -> None:
    store, table = a_table()
    mark = OpenMark(2, 1234.567, "Route 53 rejects it")
    opened = put(store, table, KeyState(a_key()), KeyState(a_key(), intended=HELD, opened=mark))
    assert table.load([a_key()])[a_key()].opened == mark
    same, actions = table.put(opened, replace(opened, problems=long(1)), "t")
    assert len(actions) == 1, "an unchanged mark is not written"
    assert same.opened == mark
    put(store, table, opened, replace(opened, opened=None))
    assert store.get(open_key(a_key())) is None


def test_queue_tells_open_keys_from_heirs() -> None:
    store, table = a_table()
    put(store, table, KeyState(a_key()), KeyState(a_key(), intended=HELD, opened=OpenMark()))
    store.transact([table.mark_to_plan(a_key("heir"), Name("Z1", f"{n}.example.com")) for n in "ab"], "t2")
    store.transact([table.mark_to_plan(a_key("heir2"), Name("Z1", "c.example.com"))], "t3")
    assert table.queued("prod") == Queued({a_key(): OpenMark()}, {a_key("heir"), a_key("heir2")}, set())
    assert dict(table.open_keys("prod")) == {a_key(): OpenMark()}
    gone = table.unmark_to_plan("prod", [a_key("heir")])
    assert list(gone) == [a_key("heir")]
    assert len(gone[a_key("heir")]) == 2, "not those of heir2, whose name begins alike"
    store.transact(gone[a_key("heir")], "t4")
    assert table.queued("prod").to_plan == {a_key("heir2")}


@pytest.mark.parametrize("count", [1, 4, 5, 300])
def test_notes_of_many_heirs_take_a_few_queries(count: int) -> None:
    store, table = a_table()
    keys = [a_key(f"heir-{number}") for number in range(count)]
    for key in keys:
        store.transact([table.mark_to_plan(key, Name("Z1", f"{n}.{key.name}.example.com")) for n in "ab"], key.name)
    store.transact([table.mark_to_plan(a_key("other"), Name("Z1", "o.example.com"))], "t2")
    put(store, table, KeyState(a_key("open")), KeyState(a_key("open"), intended=HELD, opened=OpenMark()))
    before = len(store.calls)

    notes = table.unmark_to_plan("prod", [*keys, a_key("none")])

    assert len(store.calls) - before <= 5
    assert {key: len(actions) for key, actions in notes.items()} == {**dict.fromkeys(keys, 2), a_key("none"): 0}
    for key in keys:
        store.transact(notes[key], f"{key.name} planned")
    assert table.queued("prod").to_plan == {a_key("other")}


def test_slices_are_remembered_and_forgotten() -> None:
    store, table = a_table()
    store.transact([table.remember_slice("prod", "shop", f"web-{n}", "web") for n in range(3)], "t1")
    forget = table.remember_slice("prod", "shop", "web-1", None)
    assert forget == Delete(slice_key("prod", "shop", "web-1"))
    store.transact([forget], "t2")
    assert dict(table.all_slices("prod")) == {("shop", "web-0"): "web", ("shop", "web-2"): "web"}
    asked = [("shop", "web-1"), ("shop", "web-2")]
    assert table.services_of_slices("prod", asked) == {("shop", "web-2"): "web"}
    assert dict(table.all_slices("other")) == {}


@pytest.mark.parametrize("restored", [False, True], ids=["deleted", "restored"])
def test_i4_key_of_which_one_item_is_deleted_or_restored_is_lost_and_hides_no_other(restored: bool) -> None:
    """Were it busy for ever, no list of its cluster could be recorded."""
    store, table = a_table()
    first = put(store, table, KeyState(a_key()), KeyState(a_key(), intended=HELD, problems=long(4000)))
    older = dict(store.dump()[SECOND_SLICE])
    second = put(store, table, first, replace(first, problems=long(4000, 1)))
    other = put(store, table, KeyState(a_key("other")), KeyState(a_key("other"), intended=HELD))
    store.write(
        Put(SECOND_SLICE, {k: v for k, v in older.items() if k not in ("pk", "sk")})
        if restored
        else Delete(SECOND_SLICE)
    )
    lost = KeyState(a_key(), version=2, slices=second.slices)
    assert second.slices == 2
    assert table.load([a_key()]) == {a_key(): lost}
    assert sorted(table.load_all("prod"), key=lambda state: state.key) == [other, lost]
    # What is written next stands whole again.
    third = put(store, table, lost, replace(lost, intended=HELD, applied=HELD))
    assert table.load([a_key()]) == {a_key(): third}
    assert [key for key in store.dump() if str(key.sort).startswith("key#shop/web#")] == []


def test_i4_slices_whose_head_is_deleted_are_no_key() -> None:
    store, table = a_table()
    gone = put(store, table, KeyState(a_key("other")), KeyState(a_key("other"), intended=HELD, problems=long(4000)))
    web = put(store, table, KeyState(a_key()), KeyState(a_key(), intended=HELD))
    assert (gone.slices, state_key(gone.key).partition) == (2, state_key(web.key).partition)
    store.write(Delete(state_key(gone.key)))
    assert list(table.load_all("prod")) == [web]
    assert table.load([gone.key]) == {gone.key: KeyState(gone.key)}


def test_key_that_is_written_while_it_is_read_is_busy() -> None:
    store, table = a_table()
    state = put(store, table, KeyState(a_key()), KeyState(a_key(), intended=HELD, problems=long(4000)))
    store.write(Delete(SECOND_SLICE))

    reads = store.batch_get

    def moved(keys: Sequence[Key]) -> dict[Key, Item]:
        store.write(Update(state_key(a_key()), add={"version": 1}))
        return reads(keys)

    store.batch_get = moved  # type: ignore[method-assign]
    with pytest.raises(StoreBusyError, match="keeps changing"):
        table.load([state.key])
