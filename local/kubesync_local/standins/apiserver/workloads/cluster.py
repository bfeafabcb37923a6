"""Plays what runs in the cluster: deployments, stateful sets, and the controllers that keep their endpoints.

It uses plain HTTP calls. Addresses come from a counter, so that the same calls give the same addresses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from kubesync_local.standins.apiserver.objects.resources import (
    ENDPOINTS,
    ENDPOINTSLICES,
    INGRESSES,
    SERVICES,
    ResourceType,
    Target,
    object_path,
)
from kubesync_local.standins.apiserver.objects.status import JsonObject
from kubesync_local.standins.apiserver.workloads.client import ApiClient
from kubesync_local.standins.apiserver.workloads.endpoints_controller import (
    SLICE_MANAGER,
    Pod,
    desired_endpoints,
    desired_slices,
    mirrored_slices,
)

# Nodes of three zones, as in the recordings.
NODES: Final = (
    ("ip-10-0-1-11.eu-west-1.compute.internal", "eu-west-1a"),
    ("ip-10-0-2-12.eu-west-1.compute.internal", "eu-west-1b"),
    ("ip-10-0-3-13.eu-west-1.compute.internal", "eu-west-1c"),
)
_SERVICE_NAME: Final = "kubernetes.io/service-name"


@dataclass(slots=True)
class _Workload:
    """A deployment or stateful set; ``subdomain`` is the stateful set's Service."""

    namespace: str
    name: str
    labels: dict[str, str]
    ports: dict[str, int]
    subdomain: str = ""
    pods: list[Pod] = field(default_factory=list)


class Cluster:
    """Plays a cluster. Not thread-safe. Its methods raise what ApiClient raises, and KeyError for unknown workloads."""

    def __init__(self, client: ApiClient, nodes: Sequence[tuple[str, str]] = NODES) -> None:
        """``nodes``: names and zones; pods are spread over them in turn."""
        self._client = client
        self._nodes = nodes
        self._workloads: dict[tuple[str, str], _Workload] = {}
        # By path: what was written last, and the version that it has since then.
        self._written: dict[str, tuple[JsonObject, str]] = {}
        self._numbers = count(2)  # The first pod has 10.42.0.2 and fd00:10:42::2.

    # -- workloads -----------------------------------------------------------------------------------------------

    def deploy(
        self,
        namespace: str,
        name: str,
        replicas: int,
        *,
        ports: Mapping[str, int] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> list[Pod]:
        """A deployment of ready pods; labels default to ``app: NAME``, ``ports`` are named container ports."""
        self._workloads[namespace, name] = _Workload(namespace, name, dict(labels or {"app": name}), dict(ports or {}))
        return self.scale(namespace, name, replicas)

    def stateful_set(
        self, namespace: str, name: str, replicas: int, *, service: str, ports: Mapping[str, int] | None = None
    ) -> list[Pod]:
        """A stateful set: its pods are named NAME-0, NAME-1, ... and have those host names under ``service``."""
        self._workloads[namespace, name] = _Workload(namespace, name, {"app": name}, dict(ports or {}), service)
        return self.scale(namespace, name, replicas)

    def scale(self, namespace: str, name: str, replicas: int, *, oldest_first: bool = False) -> list[Pod]:
        """Scale it to so many pods; without ``oldest_first`` the youngest are removed. Returns its pods."""
        self._resize(self._workloads[namespace, name], replicas, oldest_first=oldest_first)
        self.reconcile(namespace)
        return list(self._workloads[namespace, name].pods)

    def scale_together(self, namespace: str, replicas: Mapping[str, int]) -> None:
        """Scale workloads, by name, before their endpoints follow: as when a node comes or goes."""
        for name, number in replicas.items():
            self._resize(self._workloads[namespace, name], number)
        self.reconcile(namespace)

    def _resize(self, workload: _Workload, replicas: int, *, oldest_first: bool = False) -> None:
        while len(workload.pods) > replicas:
            workload.pods.pop(0 if oldest_first else -1)
        while len(workload.pods) < replicas:
            workload.pods.append(self._new_pod(workload))

    def undeploy(self, namespace: str, name: str) -> None:
        """Remove it with all its pods."""
        del self._workloads[namespace, name]
        self.reconcile(namespace)

    def set_pod(
        self, namespace: str, pod_name: str, *, ready: bool | None = None, terminating: bool | None = None
    ) -> Pod:
        """Change the state of one pod."""
        pod = next(pod for pod in self.pods(namespace) if pod.name == pod_name)
        pod.ready = pod.ready if ready is None else ready
        pod.terminating = pod.terminating if terminating is None else terminating
        self.reconcile(namespace)
        return pod

    def pods(self, namespace: str, name: str = "") -> list[Pod]:
        """The pods of a namespace, or of one workload in it."""
        return [
            pod
            for (pod_namespace, workload), each in self._workloads.items()
            if pod_namespace == namespace and name in ("", workload)
            for pod in each.pods
        ]

    def _new_pod(self, workload: _Workload) -> Pod:
        number = next(self._numbers)
        node, zone = self._nodes[number % len(self._nodes)]
        ordinal = next(n for n in count() if f"{workload.name}-{n}" not in {pod.name for pod in workload.pods})
        name = f"{workload.name}-{ordinal}" if workload.subdomain else f"{workload.name}-{number:05d}"
        return Pod(
            namespace=workload.namespace,
            name=name,
            uid=str(uuid5(NAMESPACE_URL, f"{workload.namespace}/{name}/{number}")),
            # 254 pods to a /24, as a node's pod range would have it.
            ips=(f"10.42.{number // 256}.{number % 256}", f"fd00:10:42::{number:x}"),
            node=node,
            zone=zone,
            labels=dict(workload.labels),
            ports=dict(workload.ports),
            hostname=name if workload.subdomain else "",
            subdomain=workload.subdomain,
        )

    # -- services ------------------------------------------------------------------------------------------------

    def expose(
        self,
        namespace: str,
        name: str,
        spec: JsonObject,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> JsonObject:
        """Create a Service of any type; ``spec`` is the wire's. Endpoints follow."""
        metadata: JsonObject = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
        service = self._client.create(SERVICES, namespace, {"metadata": metadata, "spec": spec})
        self.reconcile(namespace)
        return service

    def change_service(self, namespace: str, name: str, patch: JsonObject) -> JsonObject:
        """Patch a Service (merge patch). Endpoints follow."""
        service = self._client.patch(SERVICES, namespace, name, patch)
        self.reconcile(namespace)
        return service

    def set_load_balancer(self, namespace: str, name: str, ingress: Sequence[JsonObject]) -> JsonObject:
        """Set the load balancer's addresses; empty removes them."""
        patch = {"status": {"loadBalancer": {"ingress": list(ingress)} if ingress else None}}
        return self._client.patch(SERVICES, namespace, name, patch, "status")

    def expose_ingress(
        self, namespace: str, name: str, spec: JsonObject, *, annotations: Mapping[str, str] | None = None
    ) -> JsonObject:
        """Create an Ingress; ``spec`` is the wire's."""
        metadata: JsonObject = {"name": name, "annotations": dict(annotations or {})}
        return self._client.create(INGRESSES, namespace, {"metadata": metadata, "spec": spec})

    def set_ingress(self, namespace: str, name: str, ingress: Sequence[JsonObject]) -> JsonObject:
        """Set the addresses of an Ingress, as its controller does; empty removes them."""
        patch = {"status": {"loadBalancer": {"ingress": list(ingress)} if ingress else None}}
        return self._client.patch(INGRESSES, namespace, name, patch, "status")

    def delete_ingress(self, namespace: str, name: str) -> None:
        """Delete an Ingress."""
        self._client.delete(INGRESSES, namespace, name)

    def delete_service(self, namespace: str, name: str) -> None:
        """Delete a Service; its Endpoints and EndpointSlices go with it."""
        self._client.delete(SERVICES, namespace, name)
        self.reconcile(namespace)

    def make_endpoints(self, namespace: str, name: str, subsets: Sequence[JsonObject]) -> JsonObject:
        """Hand-made Endpoints of a Service without selector, mirrored into EndpointSlices; created or replaced."""
        body = {"metadata": {"name": name}, "subsets": list(subsets)}
        endpoints = self._client.update(ENDPOINTS, namespace, name, body)
        self.reconcile(namespace)
        return endpoints

    # -- the controllers -----------------------------------------------------------------------------------------

    def reconcile(self, namespace: str) -> None:
        """Bring Endpoints and EndpointSlices of a namespace in step with its Services and pods."""
        services = {each["metadata"]["name"]: each for each in self._client.list(SERVICES, namespace)}
        endpoints = {each["metadata"]["name"]: each for each in self._client.list(ENDPOINTS, namespace)}
        slices: dict[str, list[JsonObject]] = {}
        for each in self._client.list(ENDPOINTSLICES, namespace):
            if SLICE_MANAGER in each["metadata"].get("labels", {}):
                slices.setdefault(each["metadata"]["labels"].get(_SERVICE_NAME, ""), []).append(each)
        for name, service in services.items():
            if service["spec"]["type"] == "ExternalName":
                continue
            present = slices.pop(name, [])
            current = endpoints.pop(name, None)
            if service["spec"].get("selector"):
                pods = [pod for pod in self.pods(namespace) if pod.matches(service)]
                # EndpointSlices first: the real controllers usually write them first.
                self._apply_slices(namespace, desired_slices(service, pods, present), present)
                self._apply(ENDPOINTS, namespace, desired_endpoints(service, pods), current)
            elif current is not None and not _skips_mirroring(current):
                self._apply_slices(namespace, mirrored_slices(current, present), present)
        for name in endpoints:
            self._client.delete(ENDPOINTS, namespace, name)
        for orphans in slices.values():
            self._apply_slices(namespace, [], orphans)

    def _apply_slices(self, namespace: str, wanted: Sequence[JsonObject], present: Sequence[JsonObject]) -> None:
        by_name = {each["metadata"]["name"]: each for each in present}
        for each in wanted:
            self._apply(ENDPOINTSLICES, namespace, each, by_name.pop(each["metadata"].get("name", ""), None))
        for name in by_name:
            self._client.delete(ENDPOINTSLICES, namespace, name)

    def _apply(self, resource: ResourceType, namespace: str, wanted: JsonObject, current: JsonObject | None) -> None:
        """Write it, unless it still is what was written last: a namespace of n Services would cost n requests for each change."""
        if current is None:
            made = self._client.create(resource, namespace, wanted)
        else:
            path = object_path(resource, namespace, current["metadata"]["name"])
            if self._written.get(path) == (wanted, current["metadata"]["resourceVersion"]):
                return
            made = self._client.update(resource, namespace, wanted["metadata"]["name"], wanted)
        metadata = made["metadata"]
        self._written[object_path(resource, namespace, metadata["name"])] = wanted, metadata["resourceVersion"]


def _skips_mirroring(endpoints: JsonObject) -> bool:
    labels = endpoints["metadata"].get("labels", {})
    return bool(labels.get("endpointslice.kubernetes.io/skip-mirror") == "true")


def install_own_service(create: Callable[[Target, JsonObject], object], address: str) -> None:
    """Create what every cluster has from the start: the API server's own Service and endpoints."""
    create(
        Target(SERVICES, "default"),
        {
            "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {
                "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
                "clusterIP": address,
            },
        },
    )
    create(
        Target(ENDPOINTS, "default"),
        {
            "metadata": {"name": "kubernetes", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": "192.0.2.2"}], "ports": [{"name": "https", "port": 6443}]}],
        },
    )
    create(
        Target(ENDPOINTSLICES, "default"),
        {
            "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["192.0.2.2"], "conditions": {"ready": True}}],
            "ports": [{"name": "https", "protocol": "TCP", "port": 6443}],
        },
    )
