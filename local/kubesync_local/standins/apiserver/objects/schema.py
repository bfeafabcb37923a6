"""Fields of the served types, in wire order. Other fields are dropped, as the real server does."""

from collections.abc import Iterator
from typing import Any, Final

from kubesync_local.standins.apiserver.objects.resources import ENDPOINTS, ENDPOINTSLICES, EVENTS, INGRESSES, SERVICES
from kubesync_local.standins.apiserver.objects.status import JsonObject

# A shape is None (a scalar, kept as given), SORTED (a map of strings, sorted by key), LIST (a list of scalars),
# a dict of shapes (an object), a one-element list with the shape of its elements, or RAW (anything, kept as given).
Shape = Any
SORTED: Final = "sorted"
LIST: Final = "list"
RAW: Final = "raw"

_METADATA: Final[dict[str, Shape]] = {
    "name": None,
    "generateName": None,
    "namespace": None,
    "uid": None,
    "resourceVersion": None,
    "generation": None,
    "creationTimestamp": None,
    "deletionTimestamp": None,
    "deletionGracePeriodSeconds": None,
    "labels": SORTED,
    "annotations": SORTED,
    "ownerReferences": [
        {"apiVersion": None, "kind": None, "name": None, "uid": None, "controller": None, "blockOwnerDeletion": None}
    ],
    "finalizers": LIST,
}
_TARGET_REF: Final[dict[str, Shape]] = {
    "kind": None,
    "namespace": None,
    "name": None,
    "uid": None,
    "apiVersion": None,
    "resourceVersion": None,
    "fieldPath": None,
}
_ADDRESS: Final[dict[str, Shape]] = {"ip": None, "hostname": None, "nodeName": None, "targetRef": _TARGET_REF}
_BACKEND: Final = {
    "service": {"name": None, "port": {"name": None, "number": None}},
    "resource": {"apiGroup": None, "kind": None, "name": None},
}
SHAPES: Final[dict[str, dict[str, Shape]]] = {
    SERVICES.plural: {
        "metadata": _METADATA,
        "spec": {
            "ports": [
                {
                    "name": None,
                    "protocol": None,
                    "appProtocol": None,
                    "port": None,
                    "targetPort": None,
                    "nodePort": None,
                }
            ],
            "selector": SORTED,
            "clusterIP": None,
            "clusterIPs": LIST,
            "type": None,
            "externalIPs": LIST,
            "sessionAffinity": None,
            "loadBalancerIP": None,
            "loadBalancerSourceRanges": LIST,
            "externalName": None,
            "externalTrafficPolicy": None,
            "healthCheckNodePort": None,
            "publishNotReadyAddresses": None,
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": None}},
            "ipFamilies": LIST,
            "ipFamilyPolicy": None,
            "allocateLoadBalancerNodePorts": None,
            "loadBalancerClass": None,
            "internalTrafficPolicy": None,
            "trafficDistribution": None,
        },
        "status": {
            "loadBalancer": {
                "ingress": [
                    {
                        "ip": None,
                        "hostname": None,
                        "ipMode": None,
                        "ports": [{"port": None, "protocol": None, "error": None}],
                    }
                ]
            }
        },
    },
    ENDPOINTS.plural: {
        "metadata": _METADATA,
        "subsets": [
            {
                "addresses": [_ADDRESS],
                "notReadyAddresses": [_ADDRESS],
                "ports": [{"name": None, "port": None, "protocol": None, "appProtocol": None}],
            }
        ],
    },
    ENDPOINTSLICES.plural: {
        "metadata": _METADATA,
        "addressType": None,
        "endpoints": [
            {
                "addresses": LIST,
                "conditions": {"ready": None, "serving": None, "terminating": None},
                "hostname": None,
                "targetRef": _TARGET_REF,
                "deprecatedTopology": SORTED,
                "nodeName": None,
                "zone": None,
                "hints": {"forZones": [{"name": None}], "forNodes": [{"name": None}]},
            }
        ],
        "ports": [{"name": None, "protocol": None, "port": None, "appProtocol": None}],
    },
    INGRESSES.plural: {
        "metadata": {**_METADATA, "managedFields": RAW},
        "spec": {
            "ingressClassName": None,
            "defaultBackend": _BACKEND,
            "tls": [{"hosts": LIST, "secretName": None}],
            "rules": [{"host": None, "http": {"paths": [{"path": None, "pathType": None, "backend": _BACKEND}]}}],
        },
        "status": {
            "loadBalancer": {
                "ingress": [{"ip": None, "hostname": None, "ports": [{"port": None, "protocol": None, "error": None}]}]
            }
        },
    },
    EVENTS.plural: {
        "metadata": _METADATA,
        "involvedObject": _TARGET_REF,
        "reason": None,
        "message": None,
        "source": {"component": None, "host": None},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "count": None,
        "type": None,
        "eventTime": None,
        "action": None,
        "reportingComponent": None,
        "reportingInstance": None,
    },
}
# Fields that the real types have too, and the stand-in drops.
_ACCEPTED: Final = frozenset({"metadata.managedFields", "metadata.selfLink", "status.conditions"})
# Fields that Go writes even when they are empty: pointers set to "", false or 0, and lists without omitempty.
_KEPT_EMPTY: Final = frozenset(
    {
        "ready",
        "serving",
        "terminating",
        "conditions",
        "controller",
        "blockOwnerDeletion",
        "allocateLoadBalancerNodePorts",
    }
)


class ShapeError(ValueError):
    """A field has another JSON type than the schema. The message names it as Go's decoder does."""


def arrange(plural: str, given: JsonObject) -> JsonObject:
    """A new object with the known fields of ``given`` in wire order; empty ones are left out, unknown ones dropped.

    Raises ShapeError if something else is given where an object, list or map is expected.
    """
    arranged = _arrange_object(SHAPES[plural], given, plural)
    arranged.setdefault("metadata", {})
    return arranged


def unknown_fields(plural: str, given: JsonObject) -> list[str]:
    """The fields of an object, or of a patch of it, that the schema does not have: ``spec.ports[0].prot``."""
    return list(_unknown({"kind": None, "apiVersion": None, **SHAPES[plural]}, given, ""))


def _unknown(shape: Shape, given: Any, path: str) -> Iterator[str]:
    if isinstance(shape, list) and isinstance(given, list):
        for number, element in enumerate(given):
            yield from _unknown(shape[0], element, f"{path.removesuffix('.')}[{number}].")
    if not isinstance(shape, dict) or not isinstance(given, dict):
        return
    for name, value in given.items():
        if name in shape:
            yield from _unknown(shape[name], value, f"{path}{name}.")
        elif not name.startswith("$") and f"{path}{name}" not in _ACCEPTED:
            yield f"{path}{name}"


def _arrange_object(shape: dict[str, Shape], given: Any, path: str) -> JsonObject:
    if not isinstance(given, dict):
        raise ShapeError(f"json: cannot unmarshal {type(given).__name__} into Go struct field {path}")
    result: JsonObject = {}
    for name, inner in shape.items():
        if given.get(name) is None:
            continue
        value = _arrange(inner, given[name], f"{path}.{name}")
        endpointslice_port_name = path == "endpointslices.ports" and name == "name"
        if value in ("", 0, [], {}) and name not in _KEPT_EMPTY and not endpointslice_port_name:
            continue
        result[name] = value
    return result


def _arrange(shape: Shape, value: Any, path: str) -> Any:
    if shape == RAW:
        return value
    if shape is None:
        if isinstance(value, (dict, list)):
            raise ShapeError(f"json: cannot unmarshal {type(value).__name__} into Go struct field {path}")
        return value
    if shape == SORTED:
        if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
            raise ShapeError(f"json: cannot unmarshal into Go struct field {path} of type map[string]string")
        return dict(sorted(value.items()))
    if isinstance(shape, dict):
        return _arrange_object(shape, value, path)
    if not isinstance(value, list):
        raise ShapeError(f"json: cannot unmarshal {type(value).__name__} into Go struct field {path} of a list type")
    return list(value) if shape == LIST else [_arrange_object(shape[0], element, path) for element in value]
