"""Objects that no API server would accept, put into the stand-in's store past its validation: listed and watched all the same."""

import json
from typing import Any

from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.apiserver.objects.resources import (
    BY_PLURAL,
    ENDPOINTS,
    ENDPOINTSLICES,
    SERVICES,
    ResourceType,
)
from kubesync_local.standins.apiserver.objects.store import StoredObject, object_key

RESOURCES: dict[str, ResourceType] = {each.plural: each for each in (SERVICES, ENDPOINTS, ENDPOINTSLICES)}


def raw_service(name: str, namespace: str = "shop", uid: str = "", **changes: Any) -> dict[str, Any]:
    """A Service as the server would store it: ``spec``, ``status`` and ``metadata`` fields can be replaced by anything."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{namespace}-{name}"[:60],
        "resourceVersion": "0",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    metadata |= changes.pop("metadata", {})
    spec = {"type": "ClusterIP", "clusterIP": "10.68.9.9", "clusterIPs": ["10.68.9.9"], "ports": [a_port()]}
    given = changes.pop("spec", {})
    whole = {**spec, **given} if isinstance(given, dict) else given
    return {"metadata": metadata, "spec": whole, "status": {"loadBalancer": {}}, **changes}


def a_port(name: str = "http", port: object = 80, protocol: object = "TCP") -> dict[str, object]:
    return {"name": name, "protocol": protocol, "port": port, "targetPort": 8080}


def raw_endpoints(name: str, namespace: str = "shop", subsets: object = None, **metadata: Any) -> dict[str, Any]:
    """Endpoints of a Service."""
    head = {"name": name, "namespace": namespace, "uid": f"uid-ep-{namespace}-{name}"[:60], "resourceVersion": "0"}
    return {"metadata": head | metadata, "subsets": subsets}


def put_raw(
    api: ApiServer, item: dict[str, Any], resource: str = "services", change: str = "ADDED", *, encoded: bytes = b""
) -> int:
    """Store an object as it is; returns its version.

    Args:
        change: ``ADDED``, ``MODIFIED`` or ``DELETED``.
        encoded: its bytes, with ``VERSION`` where the version belongs, instead of the item as JSON in ASCII.
    """
    with api.store.changed:
        version = api.store.next_version()
        metadata = item["metadata"]
        if metadata.get("resourceVersion") == "0":
            metadata["resourceVersion"] = str(version)
        body = encoded.replace(b"VERSION", str(version).encode()) or json.dumps(item, separators=(",", ":")).encode()
        key = object_key(str(metadata.get("namespace", "")), str(metadata.get("name")))
        api.store.commit(BY_PLURAL[resource], change, StoredObject(key, version, item, body))
        return version
