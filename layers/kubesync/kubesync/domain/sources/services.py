"""Services, with the Endpoints or EndpointSlices that belong to them. The rules are in ``domain.dns`` and ``domain.upstreams``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from sys import intern
from typing import Any, Final, cast

from kubesync.domain.dns.desired import Desired, DnsRules, Keeping, desired, names_to_keep
from kubesync.domain.objects import (
    SERVICE,
    Endpoint,
    EndpointGroup,
    EndpointPort,
    EndpointsObject,
    Resource,
    Service,
    ServicePort,
)
from kubesync.domain.sources.port import Kind, Shared, Source
from kubesync.domain.state import KeyState

_ENDPOINT_FIELDS: Final = attrgetter("ip", "ready", "serving", "terminating", "node", "zone", "hostname", "pod")
_OF_ENDPOINTS: Final = (Resource.ENDPOINTSLICES, Resource.ENDPOINTS)
_OF_SERVICE: Final = frozenset({Resource.SERVICES})


def _desired(state: KeyState, complete: AbstractSet[Resource], rules: DnsRules, _shared: Shared) -> Desired:
    source = next((resource for resource in _OF_ENDPOINTS if resource in complete), None)
    endpoints = None if source is None else state.endpoints(source)
    return desired(state.key, state.service, endpoints, rules, state.held)


def _keeps(state: KeyState, rules: DnsRules, held: Collection[str]) -> Keeping:
    return names_to_keep(state.key, state.service, rules, held)


def _of_records(state: KeyState) -> frozenset[Resource]:
    """A headless Service has the addresses of its endpoints."""
    service = state.service
    return _OF_SERVICE.union(_OF_ENDPOINTS) if service is not None and service.headless else _OF_SERVICE


def _encode_service(value: Service) -> list[object]:
    return [
        value.type,
        list(value.cluster_ips),
        value.external_name,
        [[p.name, p.protocol, p.port] for p in value.ports],
        value.publish_not_ready,
        list(value.ingress_ips),
        list(value.ingress_hostnames),
        [list(a) for a in value.annotations],
        value.created_at,
    ]


def _decode_service(row: Sequence[Any]) -> Service:
    kind, ips, external, ports, not_ready, ingress_ips, ingress_names, annotations, created = row
    return Service(
        kind,
        tuple(ips),
        external,
        tuple(ServicePort(*p) for p in ports),
        not_ready,
        tuple(ingress_ips),
        tuple(ingress_names),
        tuple((cast(str, name), cast(str, text)) for name, text in annotations),
        created,
    )


def _encode_endpoints(value: EndpointsObject) -> list[object]:
    groups = [
        [[_encode_endpoint(e) for e in group.endpoints], [[p.name, p.protocol, p.port] for p in group.ports]]
        for group in value.groups
    ]
    return [value.service, groups, value.truncated, *([True] if value.fqdn else [])]


def _decode_endpoints(row: Sequence[Any]) -> EndpointsObject:
    service, groups, truncated, *fqdn = row
    return EndpointsObject(
        service,
        tuple(
            EndpointGroup(tuple(_decode_endpoint(*e) for e in endpoints), tuple(EndpointPort(*p) for p in ports))
            for endpoints, ports in groups
        ),
        truncated,
        bool(fqdn),
    )


def _decode_endpoint(
    ip: str,
    ready: bool = True,
    serving: bool | None = None,
    terminating: bool | None = None,
    node: str = "",
    zone: str = "",
    *names: str,
) -> Endpoint:
    # One text for all endpoints of a node, and of a zone: they take much of the memory.
    return Endpoint(ip, ready, serving, terminating, intern(node), intern(zone), *names)


def _encode_endpoint(endpoint: Endpoint) -> list[object]:
    row = list(_ENDPOINT_FIELDS(endpoint))
    while row and row[-1] in ("", None):
        row.pop()
    return row


SOURCES: Final = (
    Source(Resource.SERVICES, _encode_service, _decode_service),
    Source(Resource.ENDPOINTS, _encode_endpoints, _decode_endpoints),
    Source(Resource.ENDPOINTSLICES, _encode_endpoints, _decode_endpoints, owner=attrgetter("service")),
)
KIND: Final = Kind(
    name=SERVICE,
    option="service",
    api_version="v1",
    main=Resource.SERVICES,
    beside=_OF_ENDPOINTS,
    created_at=attrgetter("created_at"),
    desired=_desired,
    keeps=_keeps,
    of_records=_of_records,
)
