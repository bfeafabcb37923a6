"""The port for sources, on the side of the API: its path, its models, and the values that are kept of it.

What these values mean is in ``domain.sources``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, TypeAdapter, ValidationInfo

from kubesync.domain.objects import Observation, Resource
from kubesync.kubernetes.wire import models
from kubesync.kubernetes.wire.event_scan import Scan, make_scan

type Project = Callable[[Any, tuple[str, ...]], object]
"""Makes the value to keep of a checked model. The second argument: prefixes of the annotations to keep."""


@dataclass(frozen=True, slots=True)
class WireSource:
    """How the API writes one resource.

    Args:
        kind: of its objects, such as ``Service``.
        path: of its group and version, such as ``/api/v1``.
        event, page, item: check a watch event, a page of a list, one object. In place of each object they give an Observation. Their
            context is the prefixes of the annotations to keep.
        scan: reads the usual part of its watch.
    """

    resource: Resource
    kind: str
    path: str
    event: TypeAdapter[Any]
    page: TypeAdapter[Any]
    item: TypeAdapter[Any]
    scan: Scan


def wire_source(resource: Resource, kind: str, api_version: str, model: Any, project: Project) -> WireSource:
    """Make the wire description of a resource: its path, its checks and its scan.

    Args:
        api_version: as objects say it, such as ``v1`` or ``discovery.k8s.io/v1``.
        model: a TypedDict of the object's JSON (``models``).
        project: makes the value that is kept of an object.
    """
    # The core group lives under /api, all others under /apis.
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"

    def to_observation(item: Any, info: ValidationInfo[Any]) -> Observation:
        """Replace a checked object. Only this stays of it in memory while the rest of its page is read."""
        metadata = item["metadata"]
        return Observation(
            resource=resource,
            namespace=metadata.get("namespace") or "",
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version=int(metadata["resourceVersion"]),
            value=project(item, info.context),
        )

    item: Any = Annotated[model, AfterValidator(to_observation)]
    list_model: Any = models.ListModel  # its kind is known only here
    event_model: Any = models.EventModel
    return WireSource(
        resource,
        kind,
        path,
        TypeAdapter(event_model[item]),
        TypeAdapter(list_model[Literal[f"{kind}List"], item]),
        TypeAdapter(item),
        make_scan(resource, kind, api_version),
    )
