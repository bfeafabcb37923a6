"""Turns the API's objects into the values that kubesync keeps. ``models`` has checked the input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import intern
from typing import Final

from kubesync.domain.dns.annotations.known import kept
from kubesync.domain.objects import Endpoint, EndpointGroup, EndpointsObject, Port, Service
from kubesync.kubernetes.wire.models import (
    Address,
    EndpointSliceModel,
    EndpointsModel,
    PortModel,
    ServiceModel,
    ServiceStatus,
    SliceEndpoint,
    SlicePort,
    TargetRef,
)

# Set by the endpoints controller at more than 1,000 addresses (Kubernetes, "Over-capacity Endpoints").
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_ADDRESS_TYPES: Final = frozenset({"IPv4", "IPv6"})


def project_service(model: ServiceModel, prefixes: tuple[str, ...]) -> Service:
    """Keep of a Service what its rules need. Uses the defaults of the API server: type ClusterIP, protocol TCP.

    ``prefixes``: of the annotations that are kept.
    """
    spec = model["spec"]
    metadata = model["metadata"]
    cluster_ip = spec.get("clusterIP")
    cluster_ips = spec.get("clusterIPs") or ([cluster_ip] if cluster_ip else [])
    ingress_ips, ingress_hostnames = load_balancer_of(model.get("status"))
    return Service(
        type=spec.get("type") or "ClusterIP",
        cluster_ips=tuple(cluster_ips),
        external_name=spec.get("externalName") or "",
        ports=_ports(spec.get("ports")),
        publish_not_ready=bool(spec.get("publishNotReadyAddresses")),
        ingress_ips=ingress_ips,
        ingress_hostnames=ingress_hostnames,
        annotations=kept(metadata.get("annotations") or {}, prefixes),
        created_at=metadata.get("creationTimestamp") or "",
    )


def _ports(models: Sequence[PortModel | SlicePort] | None) -> tuple[Port, ...]:
    """The ports that have a number."""
    return tuple(
        Port(port.get("name") or "", port.get("protocol") or "TCP", number)
        for port in models or ()
        if (number := port.get("port")) is not None
    )


def load_balancer_of(status: ServiceStatus | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the addresses and the host names of ``status.loadBalancer``."""
    ingress = ((status or {}).get("loadBalancer") or {}).get("ingress") or []
    ips = tuple(ip for entry in ingress if (ip := entry.get("ip")))
    return ips, tuple(host for entry in ingress if (host := entry.get("hostname")))


def project_endpoints(model: EndpointsModel, _prefixes: tuple[str, ...] = ()) -> EndpointsObject:
    """Keep of an Endpoints object one group per subset. The list that holds an address says whether it is ready."""
    metadata = model["metadata"]
    groups = []
    for subset in model.get("subsets") or ():
        endpoints = [_from_address(address, ready=True) for address in subset.get("addresses") or ()]
        endpoints += [_from_address(address, ready=False) for address in subset.get("notReadyAddresses") or ()]
        groups.append(EndpointGroup(tuple(endpoints), _ports(subset.get("ports"))))
    truncated = (metadata.get("annotations") or {}).get(_OVER_CAPACITY) == "truncated"
    return EndpointsObject(service=metadata["name"], groups=tuple(groups), truncated=truncated)


def project_endpoint_slice(model: EndpointSliceModel, _prefixes: tuple[str, ...] = ()) -> EndpointsObject:
    """Keep of an EndpointSlice one group; none if it holds host names (address type FQDN), which are not nodes."""
    service = (model["metadata"].get("labels") or {}).get(_SERVICE_NAME, "")
    if model["addressType"] not in _ADDRESS_TYPES:
        return EndpointsObject(service=service, fqdn=True)
    endpoints = tuple(_from_slice(model.get("endpoints") or ()))
    ports = _ports(model.get("ports"))
    groups = (EndpointGroup(endpoints, ports),) if endpoints or ports else ()
    return EndpointsObject(service=service, groups=groups)


def _from_address(address: Address, *, ready: bool) -> Endpoint:
    return Endpoint(
        ip=address["ip"],
        ready=ready,
        node=intern(address.get("nodeName") or ""),
        hostname=address.get("hostname") or "",
        pod=_pod(address.get("targetRef")),
    )


def _from_slice(endpoints: Iterable[SliceEndpoint]) -> Iterable[Endpoint]:
    for endpoint in endpoints:
        addresses = endpoint.get("addresses")
        if not addresses:
            continue
        conditions = endpoint.get("conditions") or {}
        yield Endpoint(
            ip=addresses[0],  # consumers use only the first (discovery.k8s.io/v1, Endpoint.addresses)
            ready=conditions.get("ready") is not False,  # absent means ready
            serving=conditions.get("serving"),
            terminating=conditions.get("terminating"),
            node=intern(endpoint.get("nodeName") or ""),
            zone=intern(endpoint.get("zone") or ""),
            hostname=endpoint.get("hostname") or "",
            pod=_pod(endpoint.get("targetRef")),
        )


def _pod(target: TargetRef | None) -> str:
    return (target.get("name") or "") if target and target.get("kind") == "Pod" else ""
