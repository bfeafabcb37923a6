"""Up to 100 upstreams, read by slice 0. The table is the real one in memory; each test writes to it as a session does."""

from __future__ import annotations

from typing import Any

import pytest

from harness.dynamodb import a_table_prefix
from harness.memory_tables import memory_tables
from kubesync.aws.dynamodb.store import UPSTREAMS, Delete, Item, Key, Put, Store
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.clock import SystemClock
from kubesync.domain.dns.records import Node
from kubesync.domain.errors import StoreUnavailableError
from kubesync.domain.state import UpstreamState
from kubesync_local.proxies.polling import PolledUpstreams
from kubesync_local.proxies.reading import UpstreamReader, selection

KEY = "prod/shop/web/80/TCP"
MANY = 1_500  # several slices


def nodes(count: int, third: int = 0) -> list[Node]:
    return [Node(f"10.{third}.{n // 250}.{n % 250 + 1}", 80, ready=True, pod=f"web-{n:060}") for n in range(count)]


class _Table:
    """Writes upstreams; ``stale``: what an eventually consistent read still answers for slice 0."""

    def __init__(self) -> None:
        self.store: Store = memory_tables(a_table_prefix())
        self.stale: dict[Key, Item] = {}
        self._states: dict[str, UpstreamState] = {}
        self.queries = 0

    def put(self, found: list[Node], key: str = KEY) -> None:
        state, actions = UpstreamTable.put(key, self._states.get(key), found, 0.0)
        self.store.transact(actions, f"{key}-{state.version}"[:36])
        self._states[key] = state

    def remove(self, key: str = KEY) -> None:
        self.store.transact(UpstreamTable.remove(key, self._states[key], 0.0), "remove")

    # The two stores of a reader.
    def batch_get(self, keys: list[Key]) -> dict[Key, Item]:
        return {**self.store.batch_get(keys), **self.stale}

    def query(self, table: str, partition: str, **wanted: Any) -> Any:
        self.queries += 1
        return self.store.query(table, partition, **wanted)

    def scan(self, table: str) -> Any:
        return self.store.scan(table)


@pytest.fixture
def table() -> _Table:
    return _Table()


def _polled(table: Any, *keys: str) -> PolledUpstreams:
    reader = UpstreamReader(table, _NoWait(), lambda _: None)
    return PolledUpstreams(reader, table, keys or (KEY,))


class _NoWait(SystemClock):
    def sleep(self, seconds: float) -> None:
        pass


def _ips(polled: PolledUpstreams, key: str = KEY) -> list[str]:
    return [node["ip"] for node in polled.read()[key].nodes]


def test_change_is_read_with_one_request(table: _Table) -> None:
    polled = _polled(table)
    table.put(nodes(1))
    assert _ips(polled) == ["10.0.0.1"]
    first = polled.read()
    assert polled.read() is first

    table.put(nodes(2))
    assert _ips(polled) == ["10.0.0.1", "10.0.0.2"]
    assert table.queries == 0


def test_upstream_of_several_slices_is_read_whole_and_only_when_it_changes(table: _Table) -> None:
    polled = _polled(table)
    table.put(nodes(MANY))

    assert len(_ips(polled)) == MANY
    assert len(_ips(polled)) == MANY
    assert table.queries == 1


def test_older_version_of_an_eventual_read_is_not_believed(table: _Table) -> None:
    polled = _polled(table)
    table.put(nodes(1))
    old = table.store.batch_get([Key(UPSTREAMS, KEY, 0)])
    table.put(nodes(2))
    assert len(_ips(polled)) == 2

    table.stale = old
    assert len(_ips(polled)) == 2


def test_version_that_really_went_back_is_believed(table: _Table) -> None:
    polled = _polled(table)
    table.put(nodes(1))
    old = table.store.batch_get([Key(UPSTREAMS, KEY, 0)])
    table.put(nodes(2))
    assert len(_ips(polled)) == 2

    for key, item in old.items():  # a restored backup
        table.store.write(Put(key, {name: value for name, value in item.items() if name not in ("upstream", "slice")}))
    assert len(_ips(polled)) == 1


def test_deleted_missing_and_returned_upstreams(table: _Table) -> None:
    polled = _polled(table, KEY, "named/never")
    table.put(nodes(1))
    assert (polled.read()["named/never"].nodes, polled.read()["named/never"].present) == ((), False)

    table.remove()
    assert (_ips(polled), polled.read()[KEY].present) == ([], False)
    table.store.write(Delete(Key(UPSTREAMS, KEY, 0)))  # the mark expired
    assert (_ips(polled), polled.read()[KEY].present) == ([], False)


def test_slices_of_two_versions_are_read_again_and_never_joined() -> None:
    class Mixed(_Table):
        """Answers the first query while a change is under way."""

        def query(self, table: str, partition: str, **wanted: Any) -> Any:
            found = [dict(item) for item in super().query(table, partition, **wanted)]
            if self.queries == 1:
                found[1]["version"] = 1
            return found

    table = Mixed()
    table.put(nodes(1))
    table.put(nodes(MANY))

    assert len(_ips(_polled(table))) == MANY
    assert table.queries == 2


def test_slices_that_stay_mixed_are_an_error() -> None:
    class Broken(_Table):
        def query(self, table: str, partition: str, **wanted: Any) -> Any:
            return list(super().query(table, partition, **wanted))[:1]

    table = Broken()
    table.put(nodes(MANY))

    with pytest.raises(StoreUnavailableError, match="different versions"):
        _polled(table).read()


def test_scan_takes_wanted_upstreams_and_refuses_other_keys(table: _Table) -> None:
    said: list[str] = []
    for key in ("prod/shop/web/80/TCP", "prod/shop/dns/53/UDP", "dr/shop/web/80/TCP", "named/prod"):
        table.put(nodes(1), key)
    table.put(nodes(1), "prod/shop/web;}/80/TCP")
    reader: Any = UpstreamReader(table, SystemClock(), said.append)  # type: ignore[arg-type]

    assert sorted(reader.every(selection([], ["TCP"]))) == ["dr/shop/web/80/TCP", "named/prod", "prod/shop/web/80/TCP"]
    assert sorted(reader.every(selection(["prod"], ["UDP"]))) == ["prod/shop/dns/53/UDP"]
    reader.every(lambda _: True)
    reader.every(lambda _: True)
    assert said == [
        "left out: 'prod/shop/web;}/80/TCP' is not the key of an upstream; only kubesync should write to the table"
    ]
