"""The resources the stand-in serves, and the paths that lead to them."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One served resource: its names in paths, objects and messages.

    ``bookmark_tail`` is what a bookmark of this kind carries after its metadata: the type's fields that are not omitted
    when empty, as recorded.
    """

    plural: str
    kind: str
    group: str
    version: str
    bookmark_tail: str = ""
    warning: str = ""

    @property
    def api_version(self) -> str:
        """``apiVersion`` of its objects: ``v1`` or ``discovery.k8s.io/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name in messages: ``services`` or ``endpointslices.discovery.k8s.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def base_path(self) -> str:
        """The path of its API group, without a trailing slash."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


SERVICES: Final = ResourceType("services", "Service", "", "v1", ',"spec":{},"status":{"loadBalancer":{}}')
ENDPOINTS: Final = ResourceType(
    "endpoints",
    "Endpoints",
    "",
    "v1",
    # A Warning header since 1.33, as recorded.
    warning='299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"',
)
ENDPOINTSLICES: Final = ResourceType(
    "endpointslices",
    "EndpointSlice",
    "discovery.k8s.io",
    "v1",
    ',"addressType":"","endpoints":null,"ports":null',
)
INGRESSES: Final = ResourceType(
    "ingresses", "Ingress", "networking.k8s.io", "v1", ',"spec":{},"status":{"loadBalancer":{}}'
)
EVENTS: Final = ResourceType("events", "Event", "", "v1")
RESOURCES: Final = (SERVICES, ENDPOINTS, ENDPOINTSLICES)
"""The resources that are recorded and replayed."""
SERVED: Final = (*RESOURCES, INGRESSES)
"""What discovery names. Events are only stored."""
STORED: Final = (*SERVED, EVENTS)
BY_PLURAL: Final = {resource.plural: resource for resource in STORED}
"""What paths may name. Custom resources may be added."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names. ``legacy_watch``: one of the deprecated ``/watch/`` paths."""

    resource: ResourceType
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    legacy_watch: bool = False


def parse_path(path: str) -> Target | None:
    """The target of a path without its query, or None if there is no such resource.

    | path after the group                       | meaning                        |
    |--------------------------------------------|--------------------------------|
    | services                                   | cluster-wide                   |
    | namespaces/NS/services[/NAME[/status]]     | namespaced, one object, status |
    | watch/services, watch/namespaces/NS/...    | deprecated watches             |
    """
    for base in dict.fromkeys(resource.base_path for resource in BY_PLURAL.values()):
        if path.startswith(base + "/"):
            parts = [unquote(part) for part in path[len(base) + 1 :].strip("/").split("/")]
            break
    else:
        return None
    legacy_watch = parts[0] == "watch"
    if legacy_watch:
        parts = parts[1:]
    namespace = ""
    if len(parts) >= 3 and parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    resource = BY_PLURAL.get(parts[0]) if parts else None
    if resource is None or resource.base_path != base or len(parts) > 3 or (len(parts) > 1 and not namespace):
        return None
    subresource = parts[2] if len(parts) == 3 else ""
    if subresource and (subresource != "status" or resource not in (SERVICES, INGRESSES) or legacy_watch):
        return None
    return Target(resource, namespace, parts[1] if len(parts) > 1 else "", subresource, legacy_watch)


def object_path(resource: ResourceType, namespace: str, name: str = "", subresource: str = "") -> str:
    """The path of a namespaced collection, of one object in it, or of its subresource."""
    parts = [resource.base_path, "namespaces", namespace, resource.plural, name, subresource]
    return "/".join(part for part in parts if part)
