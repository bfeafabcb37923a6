"""Discovery: the API groups and resources that are served. Clients choose between endpoints and slices by it, and kubectl needs it."""

from kubesync_local.standins.apiserver.objects.resources import INGRESSES, SERVED, SERVICES, ResourceType
from kubesync_local.standins.apiserver.objects.status import JsonObject

_OPENAPI = "/openapi/v3"
_SHORT = {SERVICES: "svc", INGRESSES: "ing"}
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def discovered(path: str) -> JsonObject | None:
    """The answer to a GET of ``/api``, ``/apis``, a group's path such as ``/apis/discovery.k8s.io/v1``, or ``/openapi/v3`` and what
    it names; None: no such path.
    """
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if path == "/apis":
        groups = dict.fromkeys((r.group, r.version, r.api_version) for r in SERVED if r.group)
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(*group) for group in groups]}
    if path == _OPENAPI:
        bases = dict.fromkeys(resource.base_path for resource in SERVED)
        return {"paths": {base.lstrip("/"): {"serverRelativeURL": f"{_OPENAPI}{base}"} for base in bases}}
    if path.startswith(_OPENAPI + "/"):
        return _openapi(path.removeprefix(_OPENAPI))
    return _served_resources(path)


def _openapi(base: str) -> JsonObject | None:
    """Says only that writes are validated here: kubectl asks for that before it applies anything."""
    served = [resource for resource in SERVED if resource.base_path == base]
    if not served:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "kubesync's stand-in of an API server", "version": "1"},
        "paths": {
            f"{base}/namespaces/{{namespace}}/{resource.plural}/{{name}}": {
                "patch": {
                    "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
                    "responses": {"200": {"description": "OK"}},
                    "x-kubernetes-group-version-kind": {
                        "group": resource.group,
                        "version": resource.version,
                        "kind": resource.kind,
                    },
                }
            }
            for resource in served
        },
    }


def _group(name: str, version: str, group_version: str) -> JsonObject:
    served = {"groupVersion": group_version, "version": version}
    return {"name": name, "versions": [served], "preferredVersion": served}


def _served_resources(path: str) -> JsonObject | None:
    served = [resource for resource in SERVED if resource.base_path == path]
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
        **({"shortNames": [_SHORT[resource]]} if resource in _SHORT else {}),
        "namespaced": True,
        "kind": resource.kind,
        "verbs": list(_VERBS),
    }
