"""Checkpoints, the cluster's identity, and errors as people see them."""

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.dynamodb.store import Key, Put, Update
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.domain.errors import ErrorCode, TransactionRefusedError
from kubesync.domain.merge import Believed, Pending
from kubesync.domain.objects import Resource
from kubesync.domain.sources import services
from kubesync_local.workplace.readings import ListenerReadings

BASIS = Basis(3, "https://prod.test", 1)
SERVICES, SLICES = Resource.SERVICES, Resource.ENDPOINTSLICES


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(clock=ManualClock())


def count(store: MemoryStore, code: ErrorCode, at: str) -> None:
    fields = {"code": int(code), "key": code.key, "message": f"because {at}"}
    action = ListenerReadings(store).count_error("prod", SERVICES, code, fields, at, "s1")
    store.transact([action], f"{code}-{at}")


def test_checkpoints_come_back_as_they_were(store: MemoryStore) -> None:
    table = ListenerReadings(store)
    assert table.checkpoints("prod") == {}
    wanted = {SERVICES: Checkpoint(2**62, 2, BASIS, 1), SLICES: Checkpoint(7, 1, BASIS, 1)}
    store.transact([table.put_checkpoint("prod", r, c, "tok") for r, c in wanted.items()], "t")
    assert table.checkpoints("prod") == wanted
    assert table.checkpoints("other") == {}
    item = store.get(Key("control", "cluster#prod", "checkpoint#services"))
    assert item is not None
    assert item["tx"] == "tok"


def test_memory_of_the_guard_is_stored_only_where_a_list_lacked_objects_i5(store: MemoryStore) -> None:
    table = ListenerReadings(store)
    full = Believed({29_000_000: 3, 29_000_010: 4}, Pending(29_000_011, 90, 2), holding=True, limit=30)
    wanted = {
        SERVICES: Checkpoint(8, 1, BASIS, 1, believed=full),
        SLICES: Checkpoint(7, 1, BASIS, 1),
    }
    store.transact([table.put_checkpoint("prod", r, c, "tok") for r, c in wanted.items()], "t")
    assert table.checkpoints("prod") == wanted
    items = {r: store.get(Key("control", "cluster#prod", f"checkpoint#{r}")) or {} for r in (SERVICES, SLICES)}
    assert items[SERVICES]["believed"] == [[29_000_000, 3], [29_000_010, 4]]
    assert items[SERVICES]["pending"] == [29_000_011, 90, 2]
    assert items[SERVICES]["holding"] is True
    assert items[SERVICES]["limit"] == table.checkpoints("prod")[SERVICES].believed.limit == 30
    assert {"believed", "limit", "pending", "holding"}.isdisjoint(items[SLICES])


def test_checkpoint_follows_the_one_that_was_read(store: MemoryStore) -> None:
    table = ListenerReadings(store)
    store.transact([table.put_checkpoint("prod", SERVICES, Checkpoint(5, 1, BASIS, 1), "a")], "a")
    for version in (1, 3):
        with pytest.raises(TransactionRefusedError):
            store.transact(
                [table.put_checkpoint("prod", SERVICES, Checkpoint(9, 1, BASIS, version), "b")], f"b{version}"
            )
    store.transact([table.put_checkpoint("prod", SERVICES, Checkpoint(9, 1, BASIS, 2), "c")], "c")
    assert table.checkpoints("prod")[SERVICES].resource_version == 9


def test_identity_of_the_cluster_is_remembered(store: MemoryStore) -> None:
    table = ListenerReadings(store)
    assert table.remembered({"prod": services.KIND.resources})["prod"].identity is None
    action = table.put_identity("prod", "uid")
    assert isinstance(action, Put)
    store.write(action)
    assert table.remembered({"prod": services.KIND.resources})["prod"].identity == "uid"


def test_errors_are_counted_by_code_and_how_it_ended_never_hides_the_last_one(store: MemoryStore) -> None:
    count(store, ErrorCode.CONNECT_FAILED, "t1")
    count(store, ErrorCode.CONNECT_FAILED, "t2")
    count(store, ErrorCode.REQUEST_DENIED, "t3")
    count(store, ErrorCode.MAX_RUNTIME, "t4")
    found = ListenerReadings(store).errors("prod")
    assert found.keys() == {SERVICES}
    errors = found[SERVICES]
    assert errors.counts == {"ERR_CONNECT_FAILED": 2, "ERR_REQUEST_DENIED": 1, "ERR_MAX_RUNTIME": 1}
    assert errors.last is not None
    assert errors.ended is not None
    said = {"code": 10, "key": "ERR_REQUEST_DENIED", "message": "because t3", "at": "t3", "session": "s1"}
    assert said.items() <= dict(errors.last).items()
    assert (errors.ended["key"], errors.ended["at"]) == ("ERR_MAX_RUNTIME", "t4")


@pytest.mark.parametrize("code", ErrorCode)
def test_codes_one_to_five_are_ends_the_others_are_errors(store: MemoryStore, code: ErrorCode) -> None:
    count(store, code, "t")
    errors = ListenerReadings(store).errors("prod")[SERVICES]
    assert (errors.ended is not None, errors.last is not None) == (code <= 5, code > 5)


def test_forgetting_a_cluster_leaves_its_fence(store: MemoryStore) -> None:
    table = ListenerReadings(store)
    store.write(Update(Key("control", "cluster#prod", "fence"), set={"epoch": 4}))
    count(store, ErrorCode.MAX_RUNTIME, "t")
    store.transact([table.put_identity("prod", "uid")], "i")
    store.transact(table.delete_all("prod"), "gone")
    assert [item["sk"] for item in store.scan("control")] == ["fence"]
