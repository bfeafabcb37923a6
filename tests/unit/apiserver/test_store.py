import pytest

from kubesync_local.standins.apiserver.objects.resources import ENDPOINTS, SERVICES
from kubesync_local.standins.apiserver.objects.status import JsonObject
from kubesync_local.standins.apiserver.objects.store import Store, StoredObject, VersionGoneError


def put(store: Store, name: str, change_type: str = "MODIFIED", **more: str) -> int:
    version = store.next_version()
    item: JsonObject = {"metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version), **more}}
    store.commit(SERVICES, change_type, StoredObject.of(item))
    return version


def keys(store: Store, version: int) -> list[tuple[str, int]]:
    return [(each.key, each.version) for each in store.snapshot(SERVICES, version)]


def history(store: Store, version: int) -> list[tuple[str, int]]:
    return [(change.type, change.version) for change in store.changes_after_version(SERVICES, version)]


def test_versions_are_one_counter_for_all_resources() -> None:
    store = Store(first_version=100)
    put(store, "a", "ADDED")
    assert (store.version(SERVICES), store.version(ENDPOINTS)) == (101, 101)


def test_snapshot_undoes_what_came_later() -> None:
    store = Store(first_version=100)
    put(store, "a", "ADDED")
    put(store, "b", "ADDED")
    put(store, "a")
    put(store, "b", "DELETED")
    assert keys(store, 100) == []
    assert keys(store, 102) == [("ns/a", 101), ("ns/b", 102)]
    assert keys(store, 103) == [("ns/a", 103), ("ns/b", 102)]
    assert keys(store, 104) == [("ns/a", 103)]


def test_kept_snapshot_is_not_served_for_a_later_state() -> None:
    store = Store(first_version=100)
    put(store, "a", "ADDED")
    assert keys(store, 999) == [("ns/a", 101)]
    put(store, "b", "ADDED")
    assert keys(store, 999) == [("ns/a", 101), ("ns/b", 102)]
    assert keys(store, 101) == [("ns/a", 101)]


def test_keys_are_ordered_as_bytes_of_namespace_slash_name() -> None:
    store = Store(first_version=0)
    for namespace in ("a", "a-b", "a0"):
        put(store, "x", "ADDED", namespace=namespace)
    # "-" (0x2d) sorts before "/" (0x2f), "0" (0x30) after it: as etcd's keys do.
    assert [each.key for each in store.objects(SERVICES)] == ["a-b/x", "a/x", "a0/x"]


def test_history_is_kept_from_the_compacted_version_on() -> None:
    store = Store(first_version=100)
    for name in "abc":
        put(store, name, "ADDED")
    store.compact(102)
    assert history(store, 102) == [("ADDED", 103)]
    with pytest.raises(VersionGoneError) as error:
        store.changes_after_version(SERVICES, 101)
    assert error.value.oldest == 102
    with pytest.raises(VersionGoneError):
        store.snapshot(SERVICES, 101)


def test_history_limit_compacts_the_oldest() -> None:
    store = Store(first_version=100, history_limit=2)
    for name in "abc":
        put(store, name, "ADDED")
    assert store.compacted(SERVICES) == 101
    assert history(store, 101) == [("ADDED", 102), ("ADDED", 103)]


def test_restore_takes_versions_back_and_gives_them_out_again() -> None:
    store = Store(first_version=100)
    put(store, "a", "ADDED")
    put(store, "b", "ADDED")
    put(store, "a", "DELETED")
    sequence = store.sequence
    store.restore(101)
    assert (store.revision, keys(store, 101)) == (101, [("ns/a", 101)])
    assert put(store, "c", "ADDED") == 102
    assert history(store, 100) == [("ADDED", 101), ("ADDED", 102)]
    assert store.sequence == sequence + 1


def test_bookmark_is_no_history() -> None:
    store = Store(first_version=100)
    put(store, "a", "ADDED")
    store.bookmark(SERVICES)
    assert history(store, 100) == [("ADDED", 101)]
    assert [change.type for change in store.changes_after_sequence(SERVICES, 1)] == ["BOOKMARK"]


def test_replayed_resource_stands_at_its_own_version_until_a_write() -> None:
    store = Store(first_version=100)
    store.install(SERVICES, [], 100)
    store.install(ENDPOINTS, [], 100)
    item: JsonObject = {"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "150"}}
    store.replay(ENDPOINTS, "ADDED", StoredObject.of(item))
    assert (store.version(ENDPOINTS), store.version(SERVICES), store.revision) == (150, 100, 150)
    assert put(store, "b", "ADDED") == 151
    assert (store.version(ENDPOINTS), store.version(SERVICES)) == (151, 151)


def test_writes_elsewhere_move_the_version_but_not_that_of_a_recording() -> None:
    store = Store(first_version=10)
    store.write_elsewhere()
    assert (store.revision, store.version(SERVICES)) == (11, 11)

    store.install(SERVICES, [], 20)
    store.write_elsewhere()
    assert (store.revision, store.version(SERVICES)) == (20, 20)
