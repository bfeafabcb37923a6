"""Clusters of any size, as the API server's objects: Services, and EndpointSlices of up to 100 endpoints each."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.apiserver.objects.resources import ENDPOINTS, ENDPOINTSLICES, SERVICES

FIRST_VERSION = 1_000
_CREATED = "2026-01-01T00:00:00Z"
_SLICE_ENDPOINTS = 100


def install(server: ApiServer, services: int, endpoints_each: int) -> None:
    """Fill a stand-in with ``team-N/app-N``. Every listener then lists at the same version."""
    server.store.install(SERVICES, [service(number) for number in range(services)], FIRST_VERSION)
    slices = [item for number in range(services) for item in _slices(number, endpoints_each)]
    server.store.install(ENDPOINTSLICES, slices, FIRST_VERSION)
    server.store.install(ENDPOINTS, [], FIRST_VERSION)


def place(number: int) -> tuple[str, str]:
    """Namespace and name of a service."""
    return f"team-{number % 40}", f"app-{number}"


def service(number: int, *, version: int = FIRST_VERSION, address: int | None = None) -> dict[str, Any]:
    """A ClusterIP service with one unnamed port: one record set, an A with one value. ``address`` changes the value."""
    namespace, name = place(number)
    ip = address_at(10, 96, number if address is None else address)
    return {
        "metadata": _metadata(namespace, name, number, version, {"app": name}, "v1", ("f:ports", "f:selector")),
        "spec": {
            "ports": [{"protocol": "TCP", "port": 80, "targetPort": 8080}],
            "selector": {"app": name},
            "clusterIP": ip,
            "clusterIPs": [ip],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }


def _slices(number: int, endpoints: int) -> Iterator[dict[str, Any]]:
    namespace, name = place(number)
    for part, first in enumerate(range(0, endpoints, _SLICE_ENDPOINTS)):
        many = range(first, min(endpoints, first + _SLICE_ENDPOINTS))
        labels = {
            "app": name,
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            "kubernetes.io/service-name": name,
        }
        yield {
            "metadata": _metadata(
                namespace,
                f"{name}-{part:05x}",
                1_000_000 * (part + 1) + number,
                FIRST_VERSION,
                labels,
                "discovery.k8s.io/v1",
                ("f:addressType", "f:endpoints", "f:ports"),
            ),
            "addressType": "IPv4",
            "endpoints": [_endpoint(namespace, name, number * endpoints + n) for n in many],
            "ports": [{"name": "", "protocol": "TCP", "port": 8080}],
        }


def _endpoint(namespace: str, name: str, number: int) -> dict[str, Any]:
    return {
        "addresses": [address_at(10, 160, number)],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "targetRef": {
            "kind": "Pod",
            "namespace": namespace,
            "name": f"{name}-{number % 97:010x}-{number:05x}",
            "uid": str(UUID(int=number)),
        },
        "nodeName": f"ip-10-0-{number % 4}-{number % 200}.eu-west-1.compute.internal",
        "zone": f"eu-west-1{'abc'[number % 3]}",
    }


def _metadata(
    namespace: str,
    name: str,
    number: int,
    version: int,
    labels: dict[str, str],
    api_version: str,
    fields: tuple[str, ...],
) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": namespace,
        "uid": str(UUID(int=number)),
        "resourceVersion": str(version),
        "creationTimestamp": _CREATED,
        "labels": labels,
        "managedFields": [
            {
                "manager": "kube-controller-manager",
                "operation": "Update",
                "apiVersion": api_version,
                "time": _CREATED,
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {f: {} for f in fields}},
            }
        ],
    }


def address_at(first: int, second: int, number: int) -> str:
    """The address with this number, from ``first.second`` on."""
    return f"{first}.{second + number // 65536}.{number // 256 % 256}.{number % 256}"
