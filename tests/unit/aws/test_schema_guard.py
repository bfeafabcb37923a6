"""Items of a newer release: not read, not replaced, not deleted; and the tables as a whole say who may be master."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import Call, MemoryStore
from harness.seen.builders import a_config
from kubesync.aws.dynamodb.store import CONTROL, Absent, Check, Delete, Equals, Key, Put, Update
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.items import SchemaGuard, readable
from kubesync.domain.errors import (
    ConditionFailedError,
    NewerSchemaError,
    StoreBusyError,
    StoreOutcomeUnknownError,
    TransactionRefusedError,
)
from kubesync.session.lease_keeper import LeaseKeeper, LeaseTimes
from kubesync_local.workplace.registry import ClusterRegistry

NEWER = Key(CONTROL, "p", "newer")
OWN = Key(CONTROL, "p", "own")
OLD = Key(CONTROL, "p", "without")
DEPLOYMENT = Key(CONTROL, "lease", "deployment")


@pytest.fixture
def memory() -> MemoryStore:
    made = MemoryStore(clock=ManualClock())
    made.write(Put(NEWER, {"v": 2, "value": 1}))
    made.write(Put(OWN, {"v": 1, "value": 1}))
    made.write(Put(OLD, {"value": 1}))
    return made


def test_items_up_to_ours_are_read(memory: MemoryStore) -> None:
    guard = SchemaGuard(memory, 1)
    assert sorted(guard.batch_get([OWN, OLD]), key=str) == [OWN, OLD]
    assert guard.get(OLD) == {"pk": "p", "sk": "without", "value": 1}
    assert guard.get(Key(CONTROL, "p", "missing")) is None
    assert len(list(SchemaGuard(memory, 2).query(CONTROL, "p"))) == 3


@pytest.mark.parametrize(
    "read",
    [
        lambda guard: guard.get(NEWER),
        lambda guard: guard.batch_get([OWN, NEWER]),
        lambda guard: list(guard.query(CONTROL, "p")),
        lambda guard: list(guard.scan(CONTROL)),
    ],
)
def test_newer_item_is_an_error_that_says_what_to_do(memory: MemoryStore, read: Callable[[SchemaGuard], Any]) -> None:
    with pytest.raises(NewerSchemaError) as refused:
        read(SchemaGuard(memory, 1))
    assert str(refused.value) == (
        "control item p/newer was written by a newer release (schema 2), this one knows 1: upgrade"
    )


def test_query_goes_on_with_the_next_item_i4(memory: MemoryStore) -> None:
    told: list[NewerSchemaError] = []
    found = [item["sk"] for item in readable(SchemaGuard(memory, 1).query(CONTROL, "p"), told.append)]
    assert found == ["own", "without"]
    assert [newer.sort for newer in told] == ["newer"]


@pytest.mark.parametrize(
    "write",
    [
        Put(NEWER, {"v": 1, "value": 2}),
        Put(NEWER, {"v": 1, "value": 2}, (Equals("value", 1),)),
        Update(NEWER, add={"value": 1}),
        Delete(NEWER),
        Delete(NEWER, (Equals("value", 1),)),
    ],
)
def test_newer_item_is_never_written_alone_or_in_a_transaction(
    memory: MemoryStore, write: Put | Update | Delete
) -> None:
    guard = SchemaGuard(memory, 1)
    before = memory.dump()
    with pytest.raises(NewerSchemaError, match="schema 2"):
        guard.write(write)
    with pytest.raises(NewerSchemaError, match="schema 2"):
        guard.transact([Put(OWN, {"v": 1, "value": 2}), write], "token")
    assert memory.dump() == before
    SchemaGuard(memory, 2).write(write)
    assert memory.dump() != before


def test_what_else_was_refused_comes_first(memory: MemoryStore) -> None:
    """A master that was fenced out has to hear that, whatever else is wrong."""
    guard = SchemaGuard(memory, 1)
    with pytest.raises(TransactionRefusedError) as refused:
        guard.transact([Check(OWN, (Equals("value", 7),)), Delete(NEWER)], "token")
    assert set(refused.value.failed) == {0, 1}
    with pytest.raises(ConditionFailedError):
        guard.write(Put(OWN, {"v": 1}, (Absent(),)))
    with pytest.raises(TransactionRefusedError):
        guard.transact([Put(Key(CONTROL, "p", "missing"), {"v": 1}, (Equals("value", 1),))], "token")


def test_newer_configuration_leaves_the_others_alone_i4() -> None:
    memory = MemoryStore(clock=ManualClock())
    table = ClusterRegistry(SchemaGuard(memory, 1))
    table.put(a_config(name="one", revision=0))
    kept = table.put(a_config(name="two", revision=0))
    memory.write(Put(Key(CONTROL, "clusters", "one"), {"v": 99, "revision": 2, "form": "unheard of"}))
    assert table.read() == {"one": None, "two": kept}
    assert table.all() == [kept]
    with pytest.raises(NewerSchemaError):
        table.get("one")
    with pytest.raises(NewerSchemaError):
        table.put(a_config(name="one", revision=2))


# --- the tables as a whole ---


def test_older_release_does_not_bind_tables_of_a_newer_one() -> None:
    memory = MemoryStore(clock=ManualClock())
    newer, older = LeaseTable(memory, "0", 2), LeaseTable(memory, "0", 1)
    newer.bind("main")
    older.bind("main")  # a command of a newer release changes nothing for the sessions that are deployed
    newer.raise_schema()
    before = memory.dump()
    calls: list[Callable[[], None]] = [lambda: older.bind("main"), older.raise_schema]
    for call in calls:
        with pytest.raises(NewerSchemaError) as refused:
            call()
        assert str(refused.value) == "the tables were written by a newer release (schema 2), this one knows 1: upgrade"
    assert memory.dump() == before
    newer.bind("main")
    newer.raise_schema()
    assert memory.dump() == before


def test_first_release_writes_no_schema_where_none_is_needed() -> None:
    memory = MemoryStore(clock=ManualClock())
    table = LeaseTable(memory, "0", 1)
    table.bind("main")
    table.raise_schema()
    assert memory.get(DEPLOYMENT) == {"pk": "lease", "sk": "deployment", "name": "main"}


class _AfterBind:
    """While the older release reads the lease, a session of the newer one comes and goes."""

    def __init__(self, memory: list[MemoryStore]) -> None:
        self.memory = memory
        self.done = False

    def before(self, call: Call) -> None:
        if not self.done and call.operation == "get_item" and call.keys[0].sort == "lease":
            self.done = True
            table = LeaseTable(self.memory[0], "0", 2)
            mine = table.take(table.read(), "newer", table.draw_epoch(), 10**15)
            table.raise_schema()
            table.release(mine, clean=True, at_ms=1_799_999_999_000, unsettled=["Z1"])

    def after(self, call: Call) -> None: ...


def test_newer_release_between_binding_and_the_lease_is_noticed_and_the_lease_given_back_as_it_was() -> None:
    clock = ManualClock()
    place: list[MemoryStore] = []
    memory = MemoryStore(clock=clock, faults=_AfterBind(place))
    place.append(memory)
    table = LeaseTable(SchemaGuard(memory, 1), "0", 1)
    keeper = LeaseKeeper(table, "older", LeaseTimes(stand_by=0.0), clock)
    with pytest.raises(NewerSchemaError):
        keeper.acquire(lambda: True, "main")
    lease = table.read()
    assert (lease.holder, lease.released, lease.to_settle) == ("older", True, ("Z1",))


class _LoseTheRaise:
    """The answer to raising the schema is lost; ``landed`` or not."""

    def __init__(self, *, landed: bool) -> None:
        self.landed = landed

    def before(self, call: Call) -> None:
        if self._is_raise(call) and not self.landed:
            raise StoreOutcomeUnknownError("lost")

    def after(self, call: Call) -> None:
        if self._is_raise(call):
            raise StoreOutcomeUnknownError("lost")

    @staticmethod
    def _is_raise(call: Call) -> bool:
        return call.operation == "update_item" and "schema" in str(call.actions)


@pytest.mark.parametrize("landed", [True, False])
def test_lost_answer_to_raising_the_schema_is_read(landed: bool) -> None:
    memory = MemoryStore(clock=ManualClock(), faults=_LoseTheRaise(landed=landed))
    table = LeaseTable(memory, "0", 2)
    table.bind("main")
    if landed:
        table.raise_schema()
    else:
        with pytest.raises(StoreBusyError):
            table.raise_schema()
    item = memory.get(DEPLOYMENT)
    assert item is not None
    assert item.get("schema") == (2 if landed else None)
