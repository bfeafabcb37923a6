"""The upstreams table: versions, slices in one transaction, marks of removed ones; what a proxy reads."""

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.dynamodb.store import Absent, Delete, Equals, Key, Put
from kubesync.aws.tables.upstreams import UpstreamTable, timestamp
from kubesync.domain.dns.records import Node
from kubesync.domain.errors import TransactionRefusedError
from kubesync.domain.state import UpstreamState

WEB = "prod/shop/web/80/TCP"
NOW = 1_800_000_000.25
FEW = [Node("10.1.0.1", 8080, ready=True), Node("10.1.0.2", 8080, ready=False, zone="a")]
MANY = [Node(f"10.2.{n // 256}.{n % 256}", 8080, ready=True, pod="p" * 50) for n in range(2500)]
# sha256 of the canonical JSON of FEW and of [], made with sha256sum.
DIGEST = "023d3322861282f401cb831c65dde49135ffb7eda23541abea5b08ed9a42a891"
NO_NODES = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(clock=ManualClock())


def put(store: MemoryStore, stands: UpstreamState | None, nodes: list[Node]) -> UpstreamState:
    state, actions = UpstreamTable.put(WEB, stands, nodes, NOW)
    store.transact(actions, f"v{state.version}")
    return state


def test_upstream_has_the_shape_that_proxies_read(store: MemoryStore) -> None:
    put(store, None, FEW)
    item = dict(store.get(Key("upstreams", WEB, 0)) or {})
    assert item == {
        "upstream": WEB,
        "slice": 0,
        "v": 1,
        "version": 1,
        "slices": 1,
        "node_count": 2,
        "digest": DIGEST,
        "updated_at": "2027-01-15T08:00:00.250Z",
        "nodes": [
            {"ip": "10.1.0.1", "port": 8080, "ready": True},
            {"ip": "10.1.0.2", "port": 8080, "ready": False, "zone": "a"},
        ],
    }


def test_no_endpoints_is_an_empty_upstream_not_a_missing_one(store: MemoryStore) -> None:
    put(store, None, [])
    item = store.get(Key("upstreams", WEB, 0))
    assert item is not None
    assert (item["nodes"], item["node_count"], item["digest"]) == ([], 0, NO_NODES)
    assert "deleted" not in item


def test_slices_grow_and_shrink_with_every_slice_at_the_new_version(store: MemoryStore) -> None:
    first = put(store, None, FEW)
    second = put(store, first, MANY)
    assert (second.version, second.slices) == (2, 3)
    items = list(store.query("upstreams", WEB))
    assert [(item["slice"], item["version"]) for item in items] == [(0, 2), (1, 2), (2, 2)]
    stored = UpstreamTable(store).read(WEB)
    assert stored is not None
    assert stored.holds(MANY)
    assert not stored.holds(FEW)
    third = put(store, second, FEW)
    assert [item["slice"] for item in store.query("upstreams", WEB)] == [0]
    assert third == UpstreamState(3, first.digest, 1)


def test_another_version_in_the_table_refuses_the_write(store: MemoryStore) -> None:
    first = put(store, None, FEW)
    put(store, first, MANY)
    with pytest.raises(TransactionRefusedError):
        store.transact(UpstreamTable.put(WEB, first, [], NOW)[1], "stale")
    assert UpstreamTable.put(WEB, None, FEW, NOW)[1][0].conditions == (Absent(),)
    assert UpstreamTable.put(WEB, first, FEW, NOW)[1][0].conditions == (Equals("version", 1),)


def test_removed_upstream_is_marked_for_a_week_without_its_other_slices(store: MemoryStore) -> None:
    state = put(store, None, MANY)
    actions = UpstreamTable.put(WEB, state, None, NOW)[1]
    mark = actions[0]
    assert isinstance(mark, Put)
    assert mark.item == {
        "v": 1,
        "version": 2,
        "slices": 1,
        "node_count": 0,
        "nodes": [],
        "deleted": True,
        "digest": NO_NODES,
        "updated_at": "2027-01-15T08:00:00.250Z",
        "expires_at": 1_800_604_800,
    }
    assert actions[1:] == [Delete(Key("upstreams", WEB, 1)), Delete(Key("upstreams", WEB, 2))]
    store.transact(actions, "gone")
    assert UpstreamTable(store).current([WEB, "missing"]) == {WEB: UpstreamState(2, "", 1)}
    stored = UpstreamTable(store).read(WEB)
    assert stored is not None
    assert stored.deleted
    assert not stored.holds([])


def test_mark_is_left_even_where_nothing_stood() -> None:
    (mark,) = UpstreamTable.put(WEB, None, None, NOW)[1]
    assert isinstance(mark, Put)
    assert (mark.item["version"], mark.conditions) == (1, (Absent(),))


def test_reader_notices_slices_of_different_versions_or_missing_ones(store: MemoryStore) -> None:
    state = put(store, None, MANY)
    store.write(Put(Key("upstreams", WEB, 1), {"v": 1, "version": 7, "nodes": []}))
    torn = UpstreamTable(store).read(WEB)
    assert torn is not None
    assert not torn.complete
    store.write(Delete(Key("upstreams", WEB, 1)))
    missing = UpstreamTable(store).read(WEB)
    assert missing is not None
    assert not missing.complete
    assert UpstreamTable(store).current([WEB])[WEB].slices == state.slices


def test_all_of_a_cluster_are_listed_in_order(store: MemoryStore) -> None:
    for name in ("test/a/b/1/TCP", "prod/b/a/1/TCP", "prod/a/a/1/TCP"):
        store.transact(UpstreamTable.put(name, None, FEW, NOW)[1], name)
    table = UpstreamTable(store)
    assert [u.upstream for u in table.read_all()] == ["prod/a/a/1/TCP", "prod/b/a/1/TCP", "test/a/b/1/TCP"]
    assert [u.upstream for u in table.read_all(lambda name: name.startswith("test/"))] == ["test/a/b/1/TCP"]
    assert table.read("missing") is None


def test_time_is_utc_with_milliseconds() -> None:
    assert timestamp(0.0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(1_800_000_000.5) == "2027-01-15T08:00:00.500Z"
