"""How the API writes each resource that kubesync reads: its path, its models, and the values that are kept of it.

A further resource is one more file with a model and a projection, which calls ``add``. What its values mean is in ``domain.sources``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, TypeAdapter, ValidationInfo

from kubesync.domain.objects import Observation, Resource
from kubesync.kubernetes.wire import models, projections
from kubesync.kubernetes.wire.event_scan import Scan, head_of, scan_of

type Project = Callable[[Any, tuple[str, ...]], object]
"""Makes the value that is kept of a checked model. The second argument: prefixes of the annotations that are kept."""


@dataclass(frozen=True, slots=True)
class WireSource:
    """How the API writes one resource.

    ``path``: of its group and version. ``event``, ``page``, ``item``: check a watch event, a page of a list, one object. The last two
    take prefixes as their context, and give Observations.
    ``head``: the usual beginning of a line of its watch; ``scan`` reads the usual part of its watch.
    """

    kind: str
    path: str
    event: TypeAdapter[Any]
    page: TypeAdapter[Any]
    item: TypeAdapter[Any]
    project: Project
    head: re.Pattern[bytes]
    scan: Scan


_WIRE: Final[dict[Resource, WireSource]] = {}
WIRE: Final[Mapping[Resource, WireSource]] = MappingProxyType(_WIRE)
"""All resources that this release reads."""


def add(resource: Resource, kind: str, api_version: str, model: Any, project: Project) -> None:
    """Add a resource.

    Args:
        api_version: as objects say it, such as ``v1`` or ``discovery.k8s.io/v1``.
        model: a TypedDict of the object's JSON (``models``).
    """
    # The core group lives under /api, all others under /apis.
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"

    def listed(item: Any, info: ValidationInfo[Any]) -> Observation:
        # Of each object, only this stays in memory while the rest of its page is read.
        metadata = item["metadata"]
        return Observation(
            resource=resource,
            namespace=metadata.get("namespace") or "",
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version=int(metadata["resourceVersion"]),
            value=project(item, info.context),
        )

    item: Any = Annotated[model, AfterValidator(listed)]
    list_model: Any = models.ListModel  # its kind is known only here
    _WIRE[resource] = WireSource(
        kind,
        path,
        TypeAdapter(models.EventModel[model]),
        TypeAdapter(list_model[Literal[f"{kind}List"], item]),
        TypeAdapter(item),
        project,
        re.compile(head_of(kind, api_version).encode()),
        scan_of(resource, kind, api_version),
    )


add(Resource.SERVICES, "Service", "v1", models.ServiceModel, projections.project_service)
add(Resource.ENDPOINTS, "Endpoints", "v1", models.EndpointsModel, projections.project_endpoints)
add(
    Resource.ENDPOINTSLICES,
    "EndpointSlice",
    "discovery.k8s.io/v1",
    models.EndpointSliceModel,
    projections.project_endpoint_slice,
)
