"""Figures for docs/cost.md: DynamoDB request units of a quiet session and of its minutes, and of a new pod or Service.

A unit is what DynamoDB bills on demand: a strongly consistent read of up to 4 KB or a write of up to 1 KB; two in transactions.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.child_cluster import TOKEN
from bench.figures import Figure
from bench.system import ZONE, System, wait_until
from harness.fakes.memory_store import MemoryStore
from harness.fakes.write_units import WriteUnits
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import Action, Item, Key, Store, Write
from kubesync.aws.dynamodb.values import item_bytes
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.route53 import StrictRoute53


@dataclass(frozen=True, slots=True)
class Size:
    """The number of Services with two pods each, of changes made one by one and then at once; how long a quiet session is, and how many
    minutes another one is longer: each has one bookmark.
    """

    services: int = 200
    changes: int = 20
    seconds: float = 50.0
    minutes: int = 4
    minute_seconds: float = 60.0
    window_seconds: float = 1.0


SMALL = Size(services=3, changes=2, seconds=1.0, minute_seconds=0.5, window_seconds=0.1)


@dataclass(frozen=True, slots=True)
class Units:
    """The units used; those written by kind of item. Renewals of the lease, one write unit each, are counted apart."""

    reads: int
    written: Mapping[str, int]
    renewals: int

    @property
    def writes(self) -> int:
        return sum(self.written.values())

    def less(self, other: Units) -> Units:
        written = Counter(self.written)
        written.subtract(other.written)
        return Units(self.reads - other.reads, +written, self.renewals - other.renewals)


class MeteredStore:
    """A store in memory that counts units."""

    def __init__(self) -> None:
        memory = MemoryStore(clock=ThreadScheduler())
        self.inner: Store = memory
        self._reads = 0
        self._written = WriteUnits(memory)

    def take(self) -> Units:
        """The units used since the last call."""
        used = Units(self._reads, self._written.take(), self._written.renewals)
        self._reads = self._written.renewals = 0
        return used

    def get(self, key: Key) -> Item | None:
        item = self.inner.get(key)
        self._reads += _read(_bytes(item))
        return item

    def batch_get(self, keys: Sequence[Key]) -> dict[Key, Item]:
        found = self.inner.batch_get(keys)
        self._reads += sum(_read(_bytes(found.get(key))) for key in keys)
        return found

    def query(self, table: str, partition: str, **options: Any) -> Iterator[Item]:
        return self._pages(self.inner.query(table, partition, **options))

    def scan(self, table: str, limit: int | None = None) -> Iterator[Item]:
        return self._pages(self.inner.scan(table, limit))

    def _pages(self, items: Iterator[Item]) -> Iterator[Item]:
        found = list(items)
        self._reads += _read(sum(map(_bytes, found)))
        return iter(found)

    def write(self, action: Write) -> Item:
        return self.inner.write(action)

    def transact(self, actions: Sequence[Action], token: str) -> None:
        self.inner.transact(actions, token)


def _bytes(item: Item | None) -> int:
    return item_bytes(item) if item else 0


def _read(size: int) -> int:
    return max(1, math.ceil(size / 4096))


def run(size: Size = Size()) -> Iterator[Figure]:
    """No goals: these are the factors of the formula in docs/cost.md."""
    store = MeteredStore()
    with ApiServer(tokens={TOKEN: "admin"}) as server, StrictRoute53() as zone:
        for number in range(size.services):
            _service(server, f"s{number}")
        system = System(server.url, zone.url, zone.create_zone(ZONE), store, window_seconds=size.window_seconds)
        nodes = _Nodes(store)
        session = system.start()
        wait_until(lambda: nodes.of(f"s{size.services - 1}") == 2, 120, "the first list")
        report = session.end()
        assert report.clean, report
        yield from unit_figures("first list, each service", store.take(), size.services)
        quiet = _quiet(system, store, size.seconds)
        longer = _quiet(system, store, size.seconds + size.minutes * size.minute_seconds)
        yield from unit_figures("quiet session, its beginning and its end", quiet, 1)
        minute = longer.less(quiet)
        yield from unit_figures("each minute of it", minute, size.minutes)
        yield Figure("renewals of its lease in a minute: write units", minute.renewals / size.minutes)
        session = system.start()
        _one_by_one(server, nodes, size)  # the first changes after a resumption read the state of their keys
        store.take()
        _one_by_one(server, nodes, size)
        yield from unit_figures("a pod more, alone in its window, in a stream", store.take(), size.changes)
        _at_once(server, nodes, size)
        yield from unit_figures(f"a pod more, one of {size.changes} in a window", store.take(), size.changes)
        for number in range(size.changes):
            _service(server, f"new{number}")
            wait_until(lambda: nodes.of(f"new{number}") == 2, 60, "a new service")  # noqa: B023 - called at once
        session.end()
        yield from unit_figures("a Service with two pods that comes, in a stream", store.take(), size.changes)


def _quiet(system: System, store: MeteredStore, seconds: float) -> Units:
    """A session that ends as its time is up."""
    report = system.start(max_runtime_seconds=seconds).join(seconds + 120.0)
    assert report.clean, report
    return store.take()


def unit_figures(what: str, used: Units, number: int) -> Iterator[Figure]:
    items = ", ".join(f"{kind} {units / number:.3g}" for kind, units in sorted(used.written.items()))
    yield Figure(f"{what}: write units", used.writes / number, note=items)
    yield Figure(f"{what}: read units", used.reads / number)


def _service(server: ApiServer, name: str) -> None:
    server.cluster.deploy("shop", name, 2)
    spec = {"ports": [{"name": "http", "port": 80}], "selector": {"app": name}}
    server.cluster.expose("shop", name, spec)


class _Nodes:
    """The number of nodes in a service's upstream. Its reads are not counted."""

    def __init__(self, store: MeteredStore) -> None:
        self._table = UpstreamTable(store.inner)

    def of(self, service: str) -> int:
        upstream = self._table.read(f"prod/shop/{service}/80/TCP")
        return 0 if upstream is None else len(upstream.nodes)


def _one_by_one(server: ApiServer, nodes: _Nodes, size: Size) -> None:
    for number in range(size.changes):
        _scale(server, nodes, f"s{number % size.services}")()


def _at_once(server: ApiServer, nodes: _Nodes, size: Size) -> None:
    for wait in [_scale(server, nodes, f"s{number % size.services}") for number in range(size.changes)]:
        wait()


def _scale(server: ApiServer, nodes: _Nodes, service: str) -> Callable[[], None]:
    """Add one pod. The result waits until proxies see it."""
    wanted = nodes.of(service) + 1
    server.cluster.scale("shop", service, wanted)
    return lambda: wait_until(lambda: nodes.of(service) >= wanted, 60, "a pod in its upstream")
