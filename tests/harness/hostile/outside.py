"""API servers, Route 53, the tables and a session, each in a process of its own, so that the memory of the session is its own.

The hostile namespace shares cluster ``prod`` with a friendly one; cluster ``edge`` shares only the zone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from bench.child_cluster import TOKEN
from bench.child_store import ChildStore
from bench.children import Child, answer, child
from bench.memory import peak_megabytes
from harness.hostile.objects import Amounts, Hostile
from kubesync_local.workplace.registry import ClusterRegistry

if TYPE_CHECKING:
    from kubesync_local.standins.apiserver import ApiServer

ZONE: Final = "example.com"
FRIENDLY: Final = "shop"
MEMORY_MEGABYTES: Final = 512
"""What a function that runs these sessions is given (``MemorySize``)."""

type Sets = dict[str, tuple[str, ...]]
"""``name TYPE`` to values; the journal, SOA and NS left out."""


def friendly(name: str, number: int, address: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    """A ClusterIP Service of the friendly namespace with one unnamed port."""
    from harness.seen.builders import EXTERNAL_DNS

    return {
        "metadata": {
            "name": name,
            "namespace": FRIENDLY,
            "uid": str(UUID(int=number)),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {EXTERNAL_DNS + key: value for key, value in annotations.items()},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address,
            "clusterIPs": [address],
            "ports": [{"protocol": "TCP", "port": 80}],
        },
        "status": {"loadBalancer": {}},
    }


@dataclass(frozen=True, slots=True)
class ApiProcess:
    """A stand-in API server in another process."""

    url: str
    _server: Child

    def apply(self, name: str, number: int, address: str, **annotations: str) -> None:
        """Make or change a friendly Service."""
        self._server.ask("apply", name, number, address, annotations)

    def churn(self, changes: int) -> None:
        """Draw so many of the hostile Services again, and Ingresses."""
        self._server.ask("churn", changes)

    def sizes(self) -> dict[str, int]:
        """``objects``: how many it holds; ``bytes``: of JSON of all versions of them."""
        found: dict[str, int] = self._server.ask("sizes")
        return found


@contextmanager
def api_process(seed: int, amounts: Amounts | None) -> Iterator[ApiProcess]:
    """An API server with a hostile namespace (None: with none)."""
    with child(_serve_cluster, seed, amounts) as server:
        yield ApiProcess(str(server.wait()), server)


def _serve_cluster(pipe: Connection, seed: int, amounts: Amounts | None) -> None:
    from kubesync_local.standins.apiserver import ApiServer

    with ApiServer(tokens={TOKEN: "admin"}) as server:
        hostile = Hostile(seed, amounts or Amounts(0, ingresses=0))
        writer = _Writer(server, hostile)
        services, slices = hostile.objects() if amounts is not None else ([], [])
        for service in services:
            writer.put_service(service)
        for piece in slices:
            writer.put_slice(piece)
        for ingress in hostile.ingresses():
            writer.put_ingress(ingress)
        pipe.send(server.url)
        answer(pipe, {"apply": writer.apply, "churn": writer.churn, "sizes": writer.sizes})


class _Writer:
    """Commits objects to a server's store."""

    def __init__(self, server: ApiServer, hostile: Hostile) -> None:
        from kubesync_local.standins.apiserver.objects.resources import ENDPOINTSLICES, INGRESSES, SERVICES

        self._store = server.store
        self._hostile = hostile
        self._services, self._slices, self._ingresses = SERVICES, ENDPOINTSLICES, INGRESSES
        self._known: set[tuple[str, str]] = set()
        self._bytes = 0

    def put_service(self, item: dict[str, Any]) -> None:
        self._put(self._services, item)

    def put_slice(self, item: dict[str, Any]) -> None:
        self._put(self._slices, item)

    def put_ingress(self, item: dict[str, Any]) -> None:
        self._put(self._ingresses, item)

    def apply(self, name: str, number: int, address: str, annotations: Mapping[str, str]) -> None:
        self.put_service(friendly(name, number, address, annotations))

    def churn(self, changes: int) -> None:
        for number in range(changes):
            self.put_service(self._hostile.service(f"svc-{number:04d}"))
        for number in range(changes // 10):
            self.put_ingress(self._hostile.ingress(f"ing-{number:03d}"))

    def sizes(self) -> dict[str, int]:
        return {"objects": len(self._known), "bytes": self._bytes}

    def _put(self, resource: Any, item: dict[str, Any]) -> None:
        from kubesync_local.standins.apiserver.objects.store import StoredObject

        place = (resource.plural, item["metadata"]["namespace"] + "/" + item["metadata"]["name"])
        with self._store.changed:
            item["metadata"]["resourceVersion"] = str(self._store.next_version())
            stored = StoredObject.of(item)
            assert len(stored.encoded) <= 1_500_000, "etcd would refuse it"
            self._store.commit(resource, "MODIFIED" if place in self._known else "ADDED", stored)
        self._known.add(place)
        self._bytes += len(stored.encoded)


@dataclass(frozen=True, slots=True)
class ZoneProcess:
    """A strict Route 53 in another process, with one zone."""

    url: str
    zone_id: str
    _server: Child

    def sets(self) -> Sets:
        """What stands in the zone."""
        found: Sets = self._server.ask("sets")
        return found

    def changed(self) -> dict[str, list[tuple[str, ...]]]:
        """``name TYPE`` to all values that batches have created there so far, in their order; a deletion alone is ``()``."""
        found: dict[str, list[tuple[str, ...]]] = self._server.ask("changed")
        return found


@contextmanager
def zone_process(foreign: Mapping[str, str]) -> Iterator[ZoneProcess]:
    """A zone with A sets of somebody else: names to addresses."""
    with child(_serve_zone, dict(foreign)) as server:
        url, zone_id = server.wait()
        yield ZoneProcess(url, zone_id, server)


def _serve_zone(pipe: Connection, foreign: dict[str, str]) -> None:
    import boto3

    from harness.fakes.route53 import wire_change
    from kubesync.aws.route53.client import build_route53_client
    from kubesync_local.standins.route53 import CHANGE, Limits, StrictRoute53

    with StrictRoute53(limits=Limits(sets_of_zone=100_000)) as server:
        zone_id = server.create_zone(ZONE)
        session = boto3.Session("test", "test", region_name="eu-west-1")
        made = [wire_change("CREATE", name, "A", [address], ttl=300) for name, address in foreign.items()]
        client: Any = build_route53_client(session, server.url)
        client.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": made})
        begun = len(server.calls)
        pipe.send((server.url, zone_id))

        def sets() -> Sets:
            return {
                label: tuple(stored.values) for key, stored in server.records(zone_id).items() if (label := _label(key))
            }

        def changed() -> dict[str, list[tuple[str, ...]]]:
            found: dict[str, list[tuple[str, ...]]] = {}
            for call in server.calls[begun:]:
                if call.operation == CHANGE and call.accepted:
                    batch: dict[str, tuple[str, ...]] = {}
                    for change in call.changes:
                        label = _label(change.record_set.key)
                        if label:
                            made = change.action != "DELETE"
                            batch[label] = tuple(change.record_set.values) if made else batch.get(label, ())
                    for label, values in batch.items():
                        found.setdefault(label, []).append(values)
            return found

        answer(pipe, {"sets": sets, "changed": changed})


def _label(key: Any) -> str:
    name = key.name.rstrip(".")
    if key.type in ("SOA", "NS") or name.startswith("_kubesync-"):
        return ""
    return f"{name} {key.type}" + (f" [{key.identifier}]" if key.identifier else "")


@dataclass(frozen=True, slots=True)
class SessionInProcess:
    """A session that runs in another process."""

    _child: Child

    def peak(self) -> float:
        """Peak resident memory so far, in MB."""
        found: float = self._child.ask("peak")
        return found

    def end(self) -> dict[str, Any]:
        """Stop it; its report."""
        found: dict[str, Any] = self._child.ask("end")
        return found


@contextmanager
def session_process(
    clusters: Mapping[str, str], zone: ZoneProcess, address: str, authority: bytes, options: Mapping[str, Any]
) -> Iterator[SessionInProcess]:
    """A session of production's assembly.

    Args:
        clusters: names and addresses.
        options: of each cluster, as in ``ClusterConfig``.
    """
    with child(_session, dict(clusters), zone.url, zone.zone_id, address, authority, dict(options)) as process:
        assert process.wait() == "runs"
        yield SessionInProcess(process)


def _session(
    pipe: Connection,
    clusters: dict[str, str],
    zone_url: str,
    zone_id: str,
    address: str,
    authority: bytes,
    options: dict[str, Any],
) -> None:
    from bench.system import System
    from kubesync.aws.dynamodb.client import build_dynamodb_client
    from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference

    # Also on a busy machine it is the test that ends it, once it has done what there is to do.
    patient = {"max_runtime_seconds": 7200.0, "drain_margin_seconds": 100.0}
    store = ChildStore(address, authority)
    system = System("", zone_url, zone_id, store, (), memory_megabytes=MEMORY_MEGABYTES, **patient)
    # Never called, but in memory as on Lambda: two clients, for the tables and for the lease.
    clients = [
        build_dynamodb_client(system.application.session, connect_timeout=1, read_timeout=2, endpoint_url=zone_url)
        for _ in range(2)
    ]
    table = ClusterRegistry(system.application.store())
    for name, url in clusters.items():
        if table.get(name) is None:
            table.put(
                ClusterConfig(
                    name=name,
                    server=url,
                    domain=f"{name}.{ZONE}",
                    zones=(ZoneReference(id=zone_id, name=ZONE),),
                    token="env:KUBESYNC_BENCH_TOKEN",
                    **options,
                )
            )
    running = system.start()
    pipe.send("runs")

    def end() -> dict[str, Any]:
        return running.end().document()

    commands: dict[str, Callable[..., object]] = {"peak": peak_megabytes, "end": end}
    answer(pipe, commands)
    del clients
