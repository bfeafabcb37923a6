"""Figure 13: what one namespace feels of another that floods their cluster.

A friendly namespace makes a Service each second. The lag runs from its event to the answer of the batch that carries its record set. Each flood
begins in a session of its own that is quiet; the lag before it counts as usual. The tables, the zone and the API server are in processes of their
own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final

from bench.child_cluster import TOKEN
from bench.child_route53 import Route53, route53
from bench.child_store import ChildStore, child_store
from bench.children import Child, answer, child
from bench.figures import Figure, Sense
from bench.system import ZONE, System, wait_for_sets, wait_until
from kubesync.domain.dns.permissions import WAITS_PER_NAMESPACE

if TYPE_CHECKING:
    from kubesync_local.standins.apiserver import ApiServer

_TAKEN: Final = f"www.{ZONE}"
_LONG: Final = ",".join(f"{number:x}" for number in range(45_000))
"""An annotation of 250 KB."""
_PATIENCE_SECONDS: Final = 300.0
_FRIENDS_FROM: Final = 100_000
"""Addresses by number: of the hostile namespace below, of the friendly one from here on."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large each flood is, and how far away AWS is.

    Args:
        seconds: for how long the friendly namespace makes Services.
    """

    services: int = 20_000
    waiters: int = 5_000
    ports: int = 100
    slices: int = 10
    endpoints_each: int = 1_000
    long_annotations: int = 40
    seconds: int = 10
    window_seconds: float = 1.0
    store_latency_seconds: float = 0.004
    route53_latency_seconds: float = 0.1


SMALL = Size(20, 20, 2, 2, 10, 1, 2, window_seconds=0.2, store_latency_seconds=0.0, route53_latency_seconds=0.0)

type Flood = Callable[[_Writer, Size], None]


def _nothing(_writer: _Writer, _size: Size) -> None:
    """The other namespace is quiet."""


def _services(writer: _Writer, size: Size) -> None:
    for number in range(size.services):
        writer.service("evil", f"h{number}", number)


def _waiters(writer: _Writer, size: Size) -> None:
    for number in range(size.waiters):
        writer.service("evil", f"h{number}", number, hostname=_TAKEN)


def _waiters_go(writer: _Writer, size: Size) -> None:
    for number in range(size.waiters):
        writer.delete("evil", f"h{number}")


def _owner_goes(writer: _Writer, _size: Size) -> None:
    writer.delete("owner", "owner")


def _ports(writer: _Writer, size: Size) -> None:
    writer.service("evil", "large", 0, ports=size.ports)
    for number in range(size.slices):
        writer.slice("large", number, size)


def _slice(writer: _Writer, size: Size) -> None:
    writer.slice("large", 0, size)


def _long_annotations(writer: _Writer, size: Size) -> None:
    for number in range(size.long_annotations):
        writer.service("evil", f"h{number}", number, hostname=_LONG)


@dataclass(frozen=True, slots=True)
class _Attack:
    """Args:
    before: what the namespace holds when it begins; ``sets``: how many A sets that makes.
    again: is repeated each five seconds.
    waits: how many places in lines the namespace may have.
    """

    what: str
    flood: Flood
    before: Flood = _nothing
    sets: int = 0
    again: Flood = _nothing
    waits: int = WAITS_PER_NAMESPACE


def _attacks(size: Size) -> Iterator[_Attack]:
    many = f"{size.waiters:,} that wait for one name"
    yield _Attack(f"{size.services:,} services", _services)
    yield _Attack(many, _waiters, waits=size.waiters)
    yield _Attack(f"{many} and are deleted", _waiters_go, _waiters, size.waiters, waits=size.waiters)
    yield _Attack(f"{many}, whose owner goes", _owner_goes, _waiters, size.waiters, waits=size.waiters)
    yield _Attack(f"{many}, as far as they may, and are deleted", _waiters_go, _waiters, size.waiters)
    large = f"{size.ports} ports with {size.slices} slices"
    yield _Attack(large, _ports)
    yield _Attack(f"{large}, one slice changes", _slice, _ports, 1, again=_slice)
    yield _Attack(f"{size.long_annotations} annotations of 250 KB", _long_annotations)


class _DistantStore(ChildStore):
    """A store in another process, as far away as DynamoDB."""

    def __init__(self, address: str, authority: bytes, latency_seconds: float) -> None:
        super().__init__(address, authority)
        self._latency_seconds = latency_seconds

    def _call(self, method: str, *arguments: object) -> Any:
        time.sleep(self._latency_seconds)
        return super()._call(method, *arguments)

    def _pages(self, *arguments: Any) -> Iterator[Any]:
        time.sleep(self._latency_seconds)
        return super()._pages(*arguments)


def run(size: Size = Size()) -> Iterator[Figure]:
    """Goal: at most 5 s more than without the flood."""
    for attack in _attacks(size):
        with _running(attack, size) as (cluster, zone):
            usual = _lags(cluster, zone, None, size, min(size.seconds, 3))
            cluster.ask("flood", attack.before, size)
            wait_for_sets(zone, 1 + len(usual) + attack.sets)
            lags = _lags(cluster, zone, attack, size, size.seconds)
        note = f"{max(lags):.1f} s beside it, {max(usual):.1f} s without; {len(lags)} changes"
        yield Figure(f"beside {attack.what}, longest", max(lags) - max(usual), "s more", Sense.AT_MOST, 5.0, note)


@contextmanager
def _running(attack: _Attack, size: Size) -> Iterator[tuple[Child, Route53]]:
    """A session that has listed."""
    with (
        child(_serve) as cluster,
        route53(ZONE, latency_seconds=size.route53_latency_seconds) as zone,
        child_store() as (address, authority),
    ):
        store = _DistantStore(address, authority, size.store_latency_seconds)
        system = System("", zone.url, zone.zone_id, store, (), window_seconds=size.window_seconds)
        url, waits = str(cluster.wait()), attack.waits
        system.register("prod", url, zone.zone_id, domain_filter=(ZONE,), max_waits_per_namespace=waits)
        session = system.start(max_runtime_seconds=7200.0)
        wait_for_sets(zone, 1)
        yield cluster, zone
        session.end()


def _lags(cluster: Child, zone: Route53, attack: _Attack | None, size: Size, seconds: int) -> list[float]:
    """Seconds of each friendly change until it is in the zone."""
    sent: dict[str, float] = cluster.ask("beside", attack, size, seconds)
    wait_until(lambda: sent.keys() <= zone.created().keys(), _PATIENCE_SECONDS, "every friendly change in the zone")
    accepted = zone.created()
    return [accepted[address] - at for address, at in sent.items()]


def _serve(pipe: Connection) -> None:
    from bench.crowd import install
    from kubesync_local.standins.apiserver import ApiServer

    with ApiServer(tokens={TOKEN: "admin"}) as server:
        install(server, 0, 0)
        writer = _Writer(server)
        writer.service("owner", "owner", _FRIENDS_FROM - 1, hostname=_TAKEN)
        pipe.send(server.url)
        answer(pipe, {"flood": lambda flood, size: writer.flood(flood, size), "beside": writer.beside})


class _Writer:
    """Commits objects to a server's store."""

    def __init__(self, server: ApiServer) -> None:
        from kubesync_local.standins.apiserver.objects.resources import ENDPOINTSLICES, SERVICES

        self._store, self._services, self._slices = server.store, SERVICES, ENDPOINTSLICES
        self._held: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._friends = self._moved = 0

    def flood(self, flood: Flood, size: Size) -> None:
        """Commit all of it at once."""
        with self._store.changed:
            flood(self, size)

    def beside(self, attack: _Attack | None, size: Size, seconds: int) -> dict[str, float]:
        """Flood the cluster, and make a friendly Service each second. Returns the address of each, and when its event was sent."""
        sent: dict[str, float] = {}
        if attack is not None:
            self.flood(attack.flood, size)
        began = time.monotonic()
        for number in range(seconds):
            time.sleep(max(0.0, began + number - time.monotonic()))
            if attack is not None and number and number % 5 == 0:
                self.flood(attack.again, size)
            address = self.service("friend", f"f{self._friends}", _FRIENDS_FROM + self._friends)
            self._friends += 1
            sent[address] = time.monotonic()
        return sent

    def service(self, namespace: str, name: str, number: int, *, hostname: str = "", ports: int = 1) -> str:
        """Make or change a Service. Returns its address."""
        from bench.crowd import service

        item = service(number, address=number)
        item["metadata"] |= {"namespace": namespace, "name": name, "uid": f"{namespace}-{name}"}
        if hostname:
            item["metadata"]["annotations"] = {"external-dns.kubernetes.io/hostname": hostname}
        item["spec"]["ports"] = [{"name": f"p{n}", "protocol": "TCP", "port": 1000 + n} for n in range(ports)]
        self._commit(self._services, item)
        return str(item["spec"]["clusterIP"])

    def slice(self, name: str, number: int, size: Size) -> None:
        """Make or change a slice of a Service: other endpoints each time."""
        from bench.crowd import address_at

        self._moved += 1
        first = self._moved * size.endpoints_each
        self._commit(
            self._slices,
            {
                "metadata": {
                    "name": f"{name}-{number}",
                    "namespace": "evil",
                    "uid": f"slice-{number}",
                    "labels": {"kubernetes.io/service-name": name},
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                },
                "addressType": "IPv4",
                "endpoints": [
                    {"addresses": [address_at(10, 160, first + n)], "conditions": {"ready": True}}
                    for n in range(size.endpoints_each)
                ],
                "ports": [{"name": f"p{n}", "protocol": "TCP", "port": 8000 + n} for n in range(size.ports)],
            },
        )

    def delete(self, namespace: str, name: str) -> None:
        """Delete a Service."""
        self._commit(self._services, self._held[self._services.plural, namespace, name], deleted=True)

    def _commit(self, resource: Any, item: dict[str, Any], *, deleted: bool = False) -> None:
        from kubesync_local.standins.apiserver.objects.store import StoredObject

        place = (resource.plural, item["metadata"]["namespace"], item["metadata"]["name"])
        with self._store.changed:
            item["metadata"]["resourceVersion"] = str(self._store.next_version())
            made = "DELETED" if deleted else "MODIFIED" if place in self._held else "ADDED"
            self._store.commit(resource, made, StoredObject.of(item))
        if deleted:
            del self._held[place]
        else:
            self._held[place] = item
