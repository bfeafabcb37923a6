"""What an API group serves: the answer to a GET of its path, by which clients choose between endpoints and slices."""

from __future__ import annotations

from kubesync_local.apiserver.resources import RESOURCES, ResourceType
from kubesync_local.apiserver.status import JsonObject

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def served_resources(path: str) -> JsonObject | None:
    """The APIResourceList of a group's path such as ``/apis/discovery.k8s.io/v1``; None where it is no such path."""
    served = [resource for resource in RESOURCES if resource.base_path == path]
    if not served:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served[0].api_version,
        "resources": [_described(resource) for resource in served],
    }


def _described(resource: ResourceType) -> JsonObject:
    return {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": True,
        "kind": resource.kind,
        "verbs": list(_VERBS),
    }
