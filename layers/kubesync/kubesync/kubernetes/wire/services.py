"""How the API writes Services, Endpoints and EndpointSlices, and the values that are kept of them."""

from collections.abc import Iterable, Sequence
from sys import intern
from typing import Annotated, Final, Required, TypedDict

from pydantic import Field, with_config

from kubesync.domain.dns.annotations import annotations_to_keep
from kubesync.domain.objects import Endpoint, EndpointGroup, EndpointsObject, Port, Resource, Service
from kubesync.kubernetes.wire.models import CONFIG, Metadata, PortNumber, Short, Status, load_balancer_of
from kubesync.kubernetes.wire.port import wire_source

# Set by the endpoints controller at more than 1,000 addresses (Kubernetes, "Over-capacity Endpoints").
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_ADDRESS_TYPES: Final = frozenset({"IPv4", "IPv6"})


class PortModel(TypedDict, total=False):
    name: Short | None
    protocol: Short | None
    port: Required[PortNumber]


class ServiceSpec(TypedDict, total=False):
    type: Short | None
    clusterIP: Short | None
    clusterIPs: Annotated[list[Short], Field(max_length=100)] | None
    externalName: Annotated[str, Field(max_length=1000)] | None
    ports: Annotated[list[PortModel], Field(max_length=10_000)] | None
    publishNotReadyAddresses: bool | None


@with_config(CONFIG)
class ServiceModel(TypedDict, total=False):
    metadata: Required[Metadata]
    spec: Required[ServiceSpec]
    status: Status | None


class TargetRef(TypedDict, total=False):
    kind: Short | None
    name: Short | None


class EndpointAddress(TypedDict, total=False):
    ip: Required[Short]
    hostname: Short | None
    nodeName: Short | None
    targetRef: TargetRef | None


class Subset(TypedDict, total=False):
    addresses: list[EndpointAddress] | None
    notReadyAddresses: list[EndpointAddress] | None
    ports: list[PortModel] | None


@with_config(CONFIG)
class EndpointsModel(TypedDict, total=False):
    metadata: Required[Metadata]
    subsets: list[Subset] | None


class Conditions(TypedDict, total=False):
    ready: bool | None
    serving: bool | None
    terminating: bool | None


class SliceEndpoint(TypedDict, total=False):
    addresses: list[Short] | None
    conditions: Conditions | None
    hostname: Short | None
    nodeName: Short | None
    zone: Short | None
    targetRef: TargetRef | None


class SlicePort(TypedDict, total=False):
    name: Short | None
    protocol: Short | None
    port: PortNumber | None  # null: "all ports" (discovery.k8s.io/v1, EndpointPort)


@with_config(CONFIG)
class EndpointSliceModel(TypedDict, total=False):
    metadata: Required[Metadata]
    addressType: Required[str]
    endpoints: list[SliceEndpoint] | None
    # As the API server allows (discovery.k8s.io validation).
    ports: Annotated[list[SlicePort], Field(max_length=20_000)] | None


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
        annotations=annotations_to_keep(metadata.get("annotations") or {}, prefixes),
        created_at=metadata.get("creationTimestamp") or "",
    )


def _ports(models: Sequence[PortModel | SlicePort] | None) -> tuple[Port, ...]:
    """The ports that have a number."""
    return tuple(
        Port(port.get("name") or "", port.get("protocol") or "TCP", number)
        for port in models or ()
        if (number := port.get("port")) is not None
    )


def project_endpoints(model: EndpointsModel, _prefixes: tuple[str, ...] = ()) -> EndpointsObject:
    """Keep of an Endpoints object one group per subset. The list that holds an address says whether it is ready.

    ``_prefixes``: of annotations to keep, as for each ``Project``. None are kept of endpoints.
    """
    metadata = model["metadata"]
    groups = []
    for subset in model.get("subsets") or ():
        endpoints = [_from_address(address, ready=True) for address in subset.get("addresses") or ()]
        endpoints += [_from_address(address, ready=False) for address in subset.get("notReadyAddresses") or ()]
        groups.append(EndpointGroup(tuple(endpoints), _ports(subset.get("ports"))))
    truncated = (metadata.get("annotations") or {}).get(_OVER_CAPACITY) == "truncated"
    return EndpointsObject(service=metadata["name"], groups=tuple(groups), truncated=truncated)


def project_endpoint_slice(model: EndpointSliceModel, _prefixes: tuple[str, ...] = ()) -> EndpointsObject:
    """Keep of an EndpointSlice one group; none if it holds host names (address type FQDN), which are not nodes. ``_prefixes``: not used."""
    service = (model["metadata"].get("labels") or {}).get(_SERVICE_NAME, "")
    if model["addressType"] not in _ADDRESS_TYPES:
        return EndpointsObject(service=service, fqdn=True)
    endpoints = tuple(_from_slice(model.get("endpoints") or ()))
    ports = _ports(model.get("ports"))
    groups = (EndpointGroup(endpoints, ports),) if endpoints or ports else ()
    return EndpointsObject(service=service, groups=groups)


def _from_address(address: EndpointAddress, *, ready: bool) -> Endpoint:
    """The endpoint of an address in an Endpoints object."""
    return Endpoint(
        ip=address["ip"],
        ready=ready,
        node=intern(address.get("nodeName") or ""),
        hostname=address.get("hostname") or "",
        pod=_pod(address.get("targetRef")),
    )


def _from_slice(endpoints: Iterable[SliceEndpoint]) -> Iterable[Endpoint]:
    """The endpoints of an EndpointSlice. One without an address is left out."""
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
    """The name of the pod behind an address; empty if it is no pod."""
    return (target.get("name") or "") if target and target.get("kind") == "Pod" else ""


_DISCOVERY: Final = "discovery.k8s.io/v1"
SOURCES: Final = (
    wire_source(Resource.SERVICES, "Service", "v1", ServiceModel, project_service),
    wire_source(Resource.ENDPOINTS, "Endpoints", "v1", EndpointsModel, project_endpoints),
    wire_source(Resource.ENDPOINTSLICES, "EndpointSlice", _DISCOVERY, EndpointSliceModel, project_endpoint_slice),
)
