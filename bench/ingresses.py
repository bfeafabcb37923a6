"""Figure 13: what Ingresses take beside what Services take: memory and CPU of a session that lists them, and DynamoDB units of each.

Each object has one name with one address. Ingresses carry managedFields and annotations as a package manager and a load balancer's
controller write them. The first list runs with everything else in processes of its own; units are counted in this process.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from bench.child_cluster import TOKEN
from bench.child_route53 import route53
from bench.child_store import ChildStore, child_store
from bench.children import answer, child
from bench.crowd import FIRST_VERSION, place, service
from bench.figures import Figure
from bench.memory import peak_megabytes

if TYPE_CHECKING:
    from bench.system import RunningSession, System
    from kubesync.aws.dynamodb.store import Store
    from kubesync_local.standins.apiserver import ApiServer

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Services": ("service",),
    "Ingresses": ("ingress",),
    "Services and Ingresses": ("service", "ingress"),
}
"""What a cluster holds, with its option ``sources``."""
_SECONDS: Final = 900.0


@dataclass(frozen=True, slots=True)
class Size:
    """How many objects of each kind; how many while units are counted, and how many of these change one by one."""

    objects: int = 5_000
    counted: int = 1_000
    changes: int = 10
    window_seconds: float = 1.0


SMALL = Size(objects=10, counted=10, changes=2, window_seconds=0.1)


def run(size: Size = Size()) -> Iterator[Figure]:
    """No goals: a cluster that reads Services alone stands beside them."""
    from bench.system import ZONE, wait_for_sets

    for kind, sources in KINDS.items():
        with (
            child(_serve, sources, size.objects) as server,
            route53(ZONE) as zone,
            child_store() as (address, authority),
        ):
            url = str(server.wait())
            with child(_session, url, sources, zone.url, zone.zone_id, address, authority) as process:
                process.wait()
                process.ask("start")
                wait_for_sets(zone, size.objects * len(sources))
                seconds = process.ask("end")
                cpu, highest = process.ask("cpu"), process.ask("peak")
        note = f"{size.objects:,} of each kind; {seconds:.0f} s"
        yield Figure(f"{kind}: resident, highest, first list included", highest, "MB", note=note)
        yield Figure(f"{kind}: CPU of the session until all is in the zone", cpu, "s")
    with ThreadPoolExecutor() as pool:  # at the same time: they wait for windows
        for units in pool.map(partial(_units, size=size), ("Services", "Ingresses")):
            yield from units


def ingress(number: int, *, version: int = FIRST_VERSION, address: int | None = None) -> dict[str, Any]:
    """An Ingress of one host, with TLS. ``address`` changes the load balancer's."""
    namespace, name = place(number)
    host = f"{name}.{namespace}.prod.example.com"
    labels = {
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/version": "1.16.0",
        "helm.sh/chart": "app-0.1.0",
    }
    annotations = {
        "alb.ingress.kubernetes.io/listen-ports": '[{"HTTP": 80}, {"HTTPS":443}]',
        "alb.ingress.kubernetes.io/scheme": "internet-facing",
        "alb.ingress.kubernetes.io/ssl-redirect": "443",
        "alb.ingress.kubernetes.io/target-type": "ip",
        "meta.helm.sh/release-name": name,
        "meta.helm.sh/release-namespace": namespace,
    }
    backend = {"service": {"name": name, "port": {"number": 80}}}
    spec = {
        "ingressClassName": "alb",
        "rules": [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}],
        "tls": [{"hosts": [host], "secretName": f"{name}-tls"}],
    }
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": str(UUID(int=number)),
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels,
            "annotations": annotations,
            "finalizers": ["ingress.k8s.aws/resources"],
            "managedFields": _managed_fields(annotations, labels),
        },
        "spec": spec,
        "status": {"loadBalancer": {"ingress": [{"ip": _address(number if address is None else address)}]}},
    }


def _managed_fields(annotations: Mapping[str, str], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    def entry(manager: str, fields: object, **more: str) -> dict[str, Any]:
        head = {"manager": manager, "operation": "Update", "apiVersion": "networking.k8s.io/v1"}
        return {**head, "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields, **more}

    def of(names: Mapping[str, str]) -> dict[str, object]:
        return {".": {}, **{f"f:{name}": {} for name in names}}

    metadata = {"f:annotations": of(annotations), "f:labels": of(labels)}
    spec: dict[str, object] = {"f:ingressClassName": {}, "f:rules": {}, "f:tls": {}}
    finalizers: dict[str, object] = {".": {}, 'v:"ingress.k8s.aws/resources"': {}}
    return [
        entry("helm", {"f:metadata": metadata, "f:spec": spec}),
        entry("controller", {"f:metadata": {"f:finalizers": finalizers}}),
        entry("controller", {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}, subresource="status"),
    ]


def _address(number: int) -> str:
    return f"198.{18 + number // 65536}.{number // 256 % 256}.{number % 256}"


def install(server: ApiServer, sources: tuple[str, ...], objects: int) -> None:
    """Fill a stand-in with objects of these kinds."""
    from kubesync_local.standins.apiserver.objects.resources import ENDPOINTSLICES, INGRESSES, SERVICES

    services, ingresses = "service" in sources, "ingress" in sources
    server.store.install(SERVICES, [service(n) for n in range(objects * services)], FIRST_VERSION)
    server.store.install(INGRESSES, [ingress(n) for n in range(objects * ingresses)], FIRST_VERSION)
    server.store.install(ENDPOINTSLICES, [], FIRST_VERSION)


def _serve(pipe: Connection, sources: tuple[str, ...], objects: int) -> None:
    from kubesync_local.standins.apiserver import ApiServer

    with ApiServer(tokens={TOKEN: "admin"}) as server:
        install(server, sources, objects)
        pipe.send(server.url)
        answer(pipe, {})


def _system(
    server: str, sources: tuple[str, ...], zone_url: str, zone_id: str, store: Store, **settings: Any
) -> System:
    """As ``System``, with one cluster that reads these sources, and whose names are in its domain."""
    from bench.system import ZONE, System
    from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
    from kubesync_local.workplace.registry import ClusterRegistry

    system = System(server, zone_url, zone_id, store, clusters=(), **settings)
    domain = f"prod.{ZONE}"
    ClusterRegistry(system.application.store()).put(
        ClusterConfig(
            name="prod",
            server=server,
            domain=domain,
            domain_filter=(domain,),
            zones=(ZoneReference(id=zone_id, name=ZONE),),
            token="env:KUBESYNC_BENCH_TOKEN",
            sources=sources,
        )
    )
    return system


def _session(
    pipe: Connection, server: str, sources: tuple[str, ...], zone_url: str, zone_id: str, address: str, authority: bytes
) -> None:
    from kubesync.aws.dynamodb.client import build_dynamodb_client

    system = _system(server, sources, zone_url, zone_id, ChildStore(address, authority))
    # Never called, but in memory as on Lambda: two clients, for the tables and for the lease.
    clients = [
        build_dynamodb_client(system.application.session, connect_timeout=1, read_timeout=2, endpoint_url=zone_url)
        for _ in range(2)
    ]
    system.application.zones()
    pipe.send("ready")
    running: list[tuple[float, RunningSession]] = []
    began = time.process_time()

    def start() -> None:
        running.append((time.monotonic(), system.start()))

    def end() -> float:
        started, session = running[0]
        assert session.end().clean
        return time.monotonic() - started

    commands = {"start": start, "end": end, "peak": peak_megabytes, "cpu": lambda: time.process_time() - began}
    answer(pipe, commands)
    del clients


def _units(kind: str, size: Size) -> list[Figure]:
    """DynamoDB units of each object of a first list, and of one that gets another address."""
    from bench.request_units import MeteredStore, unit_figures
    from bench.system import ZONE, wait_until
    from kubesync_local.standins.apiserver import ApiServer
    from kubesync_local.standins.route53 import Limits, StrictRoute53

    store, sources = MeteredStore(), KINDS[kind]
    with ApiServer(tokens={TOKEN: "admin"}) as server, StrictRoute53(limits=Limits(sets_of_zone=100_000)) as zone:
        install(server, sources, size.counted)
        zone_id = zone.create_zone(ZONE)
        system = _system(server.url, sources, zone.url, zone_id, store, window_seconds=size.window_seconds)

        def published() -> set[str]:
            return {value for key, found in zone.records(zone_id).items() if key.type == "A" for value in found.values}

        def change(numbers: Iterable[int], first_address: int) -> None:
            """Give objects other addresses, and wait for them in the zone."""
            changed = {_change(server, sources, number, first_address + number) for number in numbers}
            wait_until(lambda: changed <= published(), 60, "changed addresses")

        session = system.start()
        wait_until(lambda: len(published()) >= size.counted, _SECONDS, "the first list")
        assert session.end().clean
        listed = store.take()
        session = system.start()
        change(range(size.changes), size.counted)  # the first changes after a resumption read the state of their keys
        time.sleep(2 * size.window_seconds)
        store.take()
        for number in range(size.changes):
            change([number], 2 * size.counted)
        changed = store.take()
        session.end()
    return [
        *unit_figures(f"{kind}: first list, each", listed, size.counted),
        *unit_figures(f"{kind}: another address, alone in its window", changed, size.changes),
    ]


def _change(server: ApiServer, sources: tuple[str, ...], number: int, address: int) -> str:
    """Give an object another address; returns it."""
    from kubesync_local.standins.apiserver.objects.resources import INGRESSES, SERVICES
    from kubesync_local.standins.apiserver.objects.store import StoredObject

    resource, made = (INGRESSES, ingress) if "ingress" in sources else (SERVICES, service)
    with server.store.changed:
        item = made(number, version=server.store.next_version(), address=address)
        server.store.commit(resource, "MODIFIED", StoredObject.of(item))
    if "ingress" in sources:
        return str(item["status"]["loadBalancer"]["ingress"][0]["ip"])
    return str(item["spec"]["clusterIP"])
