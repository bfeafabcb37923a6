"""All resources that this release reads, as the API writes them. A further one is a file beside this one, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kubesync.domain.objects import Resource
from kubesync.domain.sources.ingresses import INGRESSES
from kubesync.kubernetes.wire.ingresses import IngressModel, project_ingress
from kubesync.kubernetes.wire.models import EndpointSliceModel, EndpointsModel, ServiceModel
from kubesync.kubernetes.wire.port import WireSource, wire_source
from kubesync.kubernetes.wire.projections import project_endpoint_slice, project_endpoints, project_service

_WIRE: Final[dict[Resource, WireSource]] = {}
WIRE: Final[Mapping[Resource, WireSource]] = MappingProxyType(_WIRE)


def register(source: WireSource) -> None:
    """Make a resource readable."""
    _WIRE[source.resource] = source


_DISCOVERY: Final = "discovery.k8s.io/v1"
register(wire_source(Resource.SERVICES, "Service", "v1", ServiceModel, project_service))
register(wire_source(Resource.ENDPOINTS, "Endpoints", "v1", EndpointsModel, project_endpoints))
register(wire_source(Resource.ENDPOINTSLICES, "EndpointSlice", _DISCOVERY, EndpointSliceModel, project_endpoint_slice))
register(wire_source(INGRESSES, "Ingress", "networking.k8s.io/v1", IngressModel, project_ingress))
