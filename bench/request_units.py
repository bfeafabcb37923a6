"""Figures for docs/cost.md: DynamoDB request units of a quiet session and of its minutes, and of a new pod or Service.

A unit is what DynamoDB bills on demand: a strongly consistent read of up to 4 KB or a write of up to 1 KB; two in transactions.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.child_cluster import TOKEN
from bench.figures import Figure
from bench.system import ZONE, System, wait_until
from harness.fakes.memory_store import MemoryStore
from harness.fakes.write_units import WriteUnits
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.dynamodb.store import Action, Item, Key, Store, Write
from kubesync.aws.dynamodb.wire import item_bytes
from kubesync.aws.tables.control.resync_requests import new_request
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.route53 import StrictRoute53


@dataclass(frozen=True, slots=True)
class Size:
    """The number of Services with two pods each, of changes made one by one and then at once, and how long quiet sessions are.

    Args:
        quiet_services: of the clusters of which nothing is counted that depends on it (I7).
        pause_seconds: before a change that comes alone. Windows share a checkpoint for 30 s, and what they leave is written 30 s later.
        settle_seconds: after changes, until everything is in the zone and closed.
        short_seconds: of a session without bookmarks: they come each minute, and 2 s before the end of a watch.
        seconds: of one with its last bookmark alone.
        minutes: another one is longer, by one bookmark each: an even number, since two of them share a checkpoint.
    """

    services: int = 200
    changes: int = 20
    quiet_services: int = 20
    pause_seconds: float = 62.0
    settle_seconds: float = 3.0
    short_seconds: float = 1.5
    seconds: float = 50.0
    minutes: int = 2
    minute_seconds: float = 60.0
    window_seconds: float = 1.0


SMALL = Size(
    services=3, changes=2, quiet_services=3, pause_seconds=0.5, settle_seconds=0.5,
    short_seconds=0.5, seconds=1.0, minute_seconds=0.5, window_seconds=0.1,
)  # fmt: skip


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
    """No goals: these are the factors of the formula in docs/cost.md. All parts run at once, because they wait most of the time."""
    with ThreadPoolExecutor() as pool:
        parts = [pool.submit(_all, part, size) for part in (_first_list, _alone, _in_a_stream)]
        begin = pool.submit(_quiet, size, size.short_seconds)
        shorter = pool.submit(_quiet, size, size.seconds)
        longer = pool.submit(_quiet, size, size.seconds + size.minutes * size.minute_seconds)
    yield from unit_figures("quiet session, its beginning and its end", begin.result(), 1)
    minute = longer.result().less(shorter.result())
    yield from unit_figures("each minute of it", minute, size.minutes)
    yield Figure("renewals of its lease in a minute: write units", minute.renewals / size.minutes)
    for part in parts:
        yield from part.result()


def _all(part: Callable[[Size], Iterator[Figure]], size: Size) -> list[Figure]:
    return list(part(size))


def _first_list(size: Size) -> Iterator[Figure]:
    with _listed(size.services, size) as (_, system, store, _):
        yield from unit_figures("first list, each Service with two pods", store.take(), size.services)
        request = new_request("r", "", time.time(), dry_run=False, force=False)
        report = system.application.new_session().run(resync=request)
        assert report.clean, report
        yield from unit_figures("a resync that finds no difference, each of these", store.take(), size.services)


def _alone(size: Size) -> Iterator[Figure]:
    """A pod and a Service, each long after what came before it."""
    with _listed(size.quiet_services, size) as (server, system, store, nodes):
        session = system.start()
        _one_pod_more(server, nodes, ["s0"])  # reads the state of its key
        _new_service(server, nodes, "first")  # reads what is kept of its namespace
        changes: Mapping[str, Callable[[], None]] = {
            "a pod that comes, alone": partial(_one_pod_more, server, nodes, ["s0"]),
            "a Service with two pods that comes, alone": partial(_new_service, server, nodes, "new"),
        }
        for what, change in changes.items():
            time.sleep(size.pause_seconds)
            store.take()
            change()
            time.sleep(size.settle_seconds)
            yield from unit_figures(what, store.take(), 1)
        session.end()


def _in_a_stream(size: Size) -> Iterator[Figure]:
    """Changes that come one after the other, a window each; and many at once."""
    with _listed(max(size.quiet_services, size.changes), size) as (server, system, store, nodes):
        session = system.start()
        names = [f"s{number}" for number in range(size.changes)]
        _one_pod_more(server, nodes, names)  # reads the states of their keys
        time.sleep(size.settle_seconds)
        store.take()
        _one_pod_more(server, nodes, names)
        time.sleep(size.settle_seconds)
        yield from unit_figures(f"a pod that comes, one of {size.changes} in a window", store.take(), size.changes)
        for name in names:
            _one_pod_more(server, nodes, [name])
        yield from unit_figures("a pod that comes, in a stream of a window each second", store.take(), size.changes)
        for number in range(size.changes):
            _new_service(server, nodes, f"new{number}")
        time.sleep(size.settle_seconds)
        yield from unit_figures("a Service with two pods that comes, in such a stream", store.take(), size.changes)
        session.end()


def _quiet(size: Size, seconds: float) -> Units:
    """A session that ends as its time is up, and follows one that has listed."""
    with _listed(size.quiet_services, size) as (_, system, store, _):
        store.take()
        report = system.start(max_runtime_seconds=seconds).join(seconds + 120.0)
        assert report.clean, report
        return store.take()


@contextmanager
def _listed(services: int, size: Size) -> Iterator[tuple[ApiServer, System, MeteredStore, _Nodes]]:
    """A cluster of its own that a first session has listed."""
    store = MeteredStore()
    with ApiServer(tokens={TOKEN: "admin"}) as server, StrictRoute53() as zone:
        for number in range(services):
            _service(server, f"s{number}")
        system = System(server.url, zone.url, zone.create_zone(ZONE), store, window_seconds=size.window_seconds)
        nodes = _Nodes(store)
        session = system.start()
        wait_until(lambda: nodes.of(f"s{services - 1}") == 2, 120, "the first list")
        report = session.end()
        assert report.clean, report
        yield server, system, store, nodes


def unit_figures(what: str, used: Units, number: int) -> Iterator[Figure]:
    items = ", ".join(f"{kind} {units / number:.3g}" for kind, units in sorted(used.written.items()))
    yield Figure(f"{what}: write units", used.writes / number, note=items)
    yield Figure(f"{what}: read units", used.reads / number)


def _service(server: ApiServer, name: str) -> None:
    server.cluster.deploy("shop", name, 2)
    spec = {"ports": [{"name": "http", "port": 80}], "selector": {"app": name}}
    server.cluster.expose("shop", name, spec)


def _new_service(server: ApiServer, nodes: _Nodes, name: str) -> None:
    _service(server, name)
    wait_until(lambda: nodes.of(name) == 2, 60, "a new Service")


class _Nodes:
    """The number of nodes in a service's upstream. Its reads are not counted."""

    def __init__(self, store: MeteredStore) -> None:
        self._table = UpstreamTable(store.inner)

    def of(self, service: str) -> int:
        upstream = self._table.read(f"prod/shop/{service}/80/TCP")
        return 0 if upstream is None else len(upstream.nodes)


def _one_pod_more(server: ApiServer, nodes: _Nodes, services: Sequence[str]) -> None:
    """Add a pod to each, all at once, and wait until proxies see them."""
    wanted = {service: nodes.of(service) + 1 for service in services}
    server.cluster.scale_together("shop", wanted)
    for service, number in wanted.items():
        wait_until(lambda: nodes.of(service) >= number, 60, "a pod in its upstream")  # noqa: B023 - called at once
