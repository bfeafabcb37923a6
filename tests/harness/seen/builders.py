"""Builders of domain values with defaults, so that a test shows only what it is about."""

from collections.abc import Iterable, Mapping
from typing import Any

from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.domain.dns.desired import DnsRules
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone
from kubesync.domain.objects import (
    Endpoint,
    EndpointGroup,
    EndpointsObject,
    ObjectKey,
    Observation,
    Port,
    Resource,
    Service,
    Snapshot,
)

KEY = ObjectKey("prod", "shop", "web")
ZONE = Zone("Z1", "example.com")
HTTP = Port("http", "TCP", 80)
SERVICES, SLICES, ENDPOINTS = Resource.SERVICES, Resource.ENDPOINTSLICES, Resource.ENDPOINTS
IDENTITY = "uid-of-default-kubernetes"
EXTERNAL_DNS = "external-dns.alpha.kubernetes.io/"


def a_key(name: str = "web", namespace: str = "shop", cluster: str = "prod") -> ObjectKey:
    """``prod/shop/web`` unless told otherwise."""
    return ObjectKey(cluster, namespace, name)


def a_service(
    type: str = "ClusterIP",  # noqa: A002
    *,
    cluster_ips: Iterable[str] = ("10.0.0.1",),
    ports: Iterable[Port] = (HTTP,),
    headless: bool = False,
    external_name: str = "",
    annotations: Mapping[str, str] | None = None,
    ingress_ips: Iterable[str] = (),
    ingress_hostnames: Iterable[str] = (),
    publish_not_ready: bool = False,
    created_at: str = "2026-01-01T00:00:00Z",
) -> Service:
    """A ClusterIP service at 10.0.0.1 with port ``http`` 80/TCP. ``headless`` overrides the cluster IPs.

    Annotations without a ``/`` get external-dns' older prefix: ``{"hostname": "a.example.com"}``.
    """
    if headless:
        cluster_ips = ("None",)
    elif type == "ExternalName":
        cluster_ips = ()
    full = {key if "/" in key else EXTERNAL_DNS + key: value for key, value in (annotations or {}).items()}
    return Service(
        type=type,
        cluster_ips=tuple(cluster_ips),
        external_name=external_name,
        ports=tuple(ports),
        publish_not_ready=publish_not_ready,
        ingress_ips=tuple(ingress_ips),
        ingress_hostnames=tuple(ingress_hostnames),
        annotations=tuple(sorted(full.items())),
        created_at=created_at,
    )


def an_endpoint(ip: str = "10.1.0.1", **fields: Any) -> Endpoint:
    """A ready endpoint; fields as in ``Endpoint``."""
    return Endpoint(ip, **fields)


def an_endpoints(
    *endpoints: Endpoint | str,
    ports: Iterable[Port] = (Port("http", "TCP", 8080),),
    service: str = "web",
    truncated: bool = False,
) -> EndpointsObject:
    """An Endpoints object or EndpointSlice with one group, port ``http`` 8080/TCP. Plain strings are ready addresses."""
    members = tuple(Endpoint(member) if isinstance(member, str) else member for member in endpoints)
    return EndpointsObject(service, (EndpointGroup(members, tuple(ports)),), truncated)


def rules(**fields: Any) -> DnsRules:
    """Cluster ``prod``, domain ``prod.example.com``, zone ``Z1`` = ``example.com``, TTL 60; fields as in ``DnsRules``."""
    return DnsRules(
        **{"cluster": "prod", "domain": "prod.example.com", "zones": (ZONE,), "default_ttl": 60, **fields},
    )


def plain(records: Mapping[RecordKey, RecordSet] | None, *, zones: bool = False) -> dict[str, list[str]]:
    """Record sets as ``{"name TYPE": [values]}`` (``"zone name TYPE"`` with ``zones``); aliases as ``["ALIAS zone name"]``."""
    assert records is not None, "records are not known"
    return {
        (f"{key.zone_id} " if zones else "") + f"{key.name} {key.type}": (
            [f"ALIAS {found.alias.zone_id} {found.alias.name}"] if found.alias else list(found.values)
        )
        for key, found in records.items()
    }


def a_config(**changes: Any) -> ClusterConfig:
    """Cluster ``prod``, domain ``prod.example.com``, zone ``Z1`` = ``example.com``, TTL 60."""
    fields: dict[str, Any] = {
        "name": "prod",
        "server": "https://prod.test:6443",
        "domain": f"{changes.get('name', 'prod')}.example.com",
        "zones": (ZoneReference(id="Z1", name="example.com"),),
        "ttl": 60,
        "revision": 1,
    }
    return ClusterConfig(**{**fields, **changes})


def saw(
    value: object | None,
    version: int,
    name: str = "web",
    *,
    uid: str = "",
    deleted: bool = False,
    problem: str | None = None,
    namespace: str = "shop",
    resource: Resource | None = None,
) -> Observation:
    """An object of namespace ``shop`` as seen at a version; its uid is ``u-<name>`` unless told otherwise."""
    if resource is None:
        resource = SLICES if isinstance(value, EndpointsObject) else SERVICES
    return Observation(resource, namespace, name, uid or f"u-{name}", version, deleted, value, problem)


def identity(version: int = 1, uid: str = IDENTITY) -> Observation:
    """Service default/kubernetes, excluded from publication."""
    service = Service("ClusterIP", ("10.96.0.1",), annotations=(("kubesync.io/exclude", "true"),))
    return saw(service, version, "kubernetes", uid=uid, namespace="default")


def a_list(version: int, *items: Observation, resource: Resource = SERVICES, went_back: bool = False) -> Snapshot:
    return Snapshot(resource, version, items, went_back)
