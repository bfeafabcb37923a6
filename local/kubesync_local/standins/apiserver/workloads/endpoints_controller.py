"""What the controllers compute from a Service and its pods: Endpoints and EndpointSlices, as values. Pure."""

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kubesync_local.standins.apiserver.objects.allocation import IPV4, family_of
from kubesync_local.standins.apiserver.objects.status import JsonObject

# kube-controller-manager: --max-endpoints-per-slice, and the endpoint controller's own limit per object.
_SLICE_SIZE: Final = 100
_ENDPOINTS_CAPACITY: Final = 1000
SLICE_MANAGER: Final = "endpointslice.kubernetes.io/managed-by"
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_HEADLESS: Final = "service.kubernetes.io/headless"


@dataclass(slots=True)
class Pod:
    """A pod that has its addresses. ``ports``: container ports by name."""

    namespace: str
    name: str
    uid: str
    ips: tuple[str, ...]
    node: str
    zone: str
    labels: dict[str, str]
    ports: dict[str, int] = field(default_factory=dict)
    hostname: str = ""
    subdomain: str = ""
    ready: bool = True
    terminating: bool = False

    def ip(self, family: str) -> str | None:
        """Its address of a family."""
        return next((ip for ip in self.ips if family_of(ip) == family), None)

    def matches(self, service: JsonObject) -> bool:
        """Whether the Service selects it."""
        selector = service["spec"].get("selector") or {}
        return bool(selector) and all(self.labels.get(key) == value for key, value in selector.items())

    def hostname_for(self, service: JsonObject) -> str:
        """Its host name under this Service, empty if it has none."""
        return self.hostname if self.subdomain == service["metadata"]["name"] else ""

    @property
    def reference(self) -> JsonObject:
        """The targetRef of its endpoints."""
        return {"kind": "Pod", "namespace": self.namespace, "name": self.name, "uid": self.uid}


@dataclass(frozen=True, slots=True, order=True)
class _Port:
    name: str
    protocol: str
    number: int


def _resolved_ports(service: JsonObject, pod: Pod) -> tuple[_Port, ...]:
    """The Service's ports as numbers on this pod; a named target port that the pod lacks is left out."""
    ports = []
    for port in service["spec"].get("ports", ()):
        target = port.get("targetPort", port["port"])
        number = pod.ports.get(target) if isinstance(target, str) else target
        if number:
            ports.append(_Port(port.get("name", ""), port.get("protocol", "TCP"), number))
    return tuple(sorted(ports))


def _by_ports(service: JsonObject, pods: Iterable[Pod]) -> dict[tuple[_Port, ...], list[Pod]]:
    groups: dict[tuple[_Port, ...], list[Pod]] = {}
    for pod in pods:
        ports = _resolved_ports(service, pod)
        if ports or not service["spec"].get("ports"):
            groups.setdefault(ports, []).append(pod)
    return groups


def _address_order(ip: str) -> tuple[int, int]:
    address = ipaddress.ip_address(ip)
    return address.version, int(address)


def _labels(service: JsonObject, managed_by: dict[str, str]) -> dict[str, str]:
    headless = {_HEADLESS: ""} if service["spec"].get("clusterIP") == "None" else {}
    return {**service["metadata"].get("labels", {}), **managed_by, **headless}


def desired_endpoints(service: JsonObject, pods: Sequence[Pod]) -> JsonObject:
    """The Endpoints object of a Service with a selector; ``pods`` are those it selects.

    Only the first address family; at most 1,000 addresses, then annotated as truncated; terminating pods are left out
    unless not-ready addresses are published.
    """
    spec, metadata = service["spec"], service["metadata"]
    publish = bool(spec.get("publishNotReadyAddresses"))
    family = (spec.get("ipFamilies") or [IPV4])[0]
    counted = sorted(
        (pod for pod in pods if pod.ip(family) and (publish or not pod.terminating)),
        key=lambda pod: (not (pod.ready or publish), _address_order(pod.ip(family) or "")),
    )
    subsets = []
    for ports, group in sorted(_by_ports(service, counted[:_ENDPOINTS_CAPACITY]).items()):
        subset: JsonObject = {}
        for name, ready in (("addresses", True), ("notReadyAddresses", False)):
            addresses = [_address(service, pod, family) for pod in group if (pod.ready or publish) is ready]
            if addresses:
                subset[name] = addresses
        if ports:
            subset["ports"] = [{"name": p.name, "port": p.number, "protocol": p.protocol} for p in ports]
        subsets.append(subset)
    over = len(counted) > _ENDPOINTS_CAPACITY
    return {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": _labels(service, {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}),
            **({"annotations": {"endpoints.kubernetes.io/over-capacity": "truncated"}} if over else {}),
        },
        "subsets": subsets,
    }


def _address(service: JsonObject, pod: Pod, family: str) -> JsonObject:
    return {
        "ip": pod.ip(family),
        "hostname": pod.hostname_for(service),
        "nodeName": pod.node,
        "targetRef": pod.reference,
    }


def desired_slices(service: JsonObject, pods: Sequence[Pod], existing: Sequence[JsonObject]) -> list[JsonObject]:
    """The EndpointSlices of a Service with a selector: per family, at most 100 endpoints each.

    An endpoint stays in the slice it is in; new ones fill slices with room. Slices without a name must be created; those of
    ``existing`` that are not returned must be deleted. Without endpoints one empty slice per family stays.
    """
    slices: list[JsonObject] = []
    for family in service["spec"].get("ipFamilies", [IPV4]):
        present = [pod for pod in pods if pod.ip(family)]
        groups = _by_ports(service, present) or {(): []}
        for ports, group in sorted(groups.items()):
            wire_ports = [{"name": p.name, "protocol": p.protocol, "port": p.number} for p in ports]
            endpoints = {pod.ip(family): _endpoint(service, pod, family) for pod in group}
            reusable = [
                each
                for each in existing
                if each["addressType"] == family and ((each.get("ports") or []) == wire_ports or len(groups) == 1)
            ]
            slices += _filled(service, family, endpoints, wire_ports, reusable)
    return slices


def _filled(
    service: JsonObject,
    family: str,
    endpoints: dict[str | None, JsonObject],
    ports: list[JsonObject],
    reusable: Sequence[JsonObject],
) -> list[JsonObject]:
    remaining = dict(endpoints)
    filled: list[tuple[JsonObject | None, list[JsonObject]]] = []
    for old in reusable:
        kept = [remaining.pop(each["addresses"][0], None) for each in old.get("endpoints") or ()]
        filled.append((old, [endpoint for endpoint in kept if endpoint is not None]))
    for endpoint in remaining.values():
        room = next((content for _, content in filled if len(content) < _SLICE_SIZE), None)
        if room is None:
            filled.append((None, [endpoint]))
        else:
            room.append(endpoint)
    kept_slices = [entry for entry in filled if entry[1]] or filled[:1] or [(None, [])]
    owner = _owner("v1", "Service", service["metadata"])
    labels = _labels(
        service, {SLICE_MANAGER: "endpointslice-controller.k8s.io", _SERVICE_NAME: service["metadata"]["name"]}
    )
    return [_slice(service["metadata"], old, family, content, ports, labels, owner) for old, content in kept_slices]


def _endpoint(service: JsonObject, pod: Pod, family: str) -> JsonObject:
    publish = bool(service["spec"].get("publishNotReadyAddresses"))
    return {
        "addresses": [pod.ip(family)],
        "conditions": {
            "ready": publish or (pod.ready and not pod.terminating),
            "serving": pod.ready,
            "terminating": pod.terminating,
        },
        "hostname": pod.hostname_for(service),
        "targetRef": pod.reference,
        "nodeName": pod.node,
        "zone": pod.zone,
    }


def mirrored_slices(endpoints: JsonObject, existing: Sequence[JsonObject]) -> list[JsonObject]:
    """The EndpointSlices that mirror hand-made Endpoints: one per subset and family."""
    metadata = endpoints["metadata"]
    labels = {SLICE_MANAGER: "endpointslicemirroring-controller.k8s.io", _SERVICE_NAME: metadata["name"]}
    owner = _owner("v1", "Endpoints", metadata)
    unused = list(existing)
    slices = []
    for subset in endpoints.get("subsets", ()):
        ports = [
            {"name": port.get("name", ""), "protocol": port.get("protocol", "TCP"), "port": port["port"]}
            for port in subset.get("ports", ())
        ]
        by_family: dict[str, list[JsonObject]] = {}
        for field_name, ready in (("addresses", True), ("notReadyAddresses", False)):
            for address in subset.get(field_name, ()):
                entry = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
                by_family.setdefault(family_of(address["ip"]), []).append(entry)
        for family, content in by_family.items():
            fitting = [each for each in unused if each["addressType"] == family and (each.get("ports") or []) == ports]
            if fitting:
                unused.remove(fitting[0])
            slices.append(_slice(metadata, fitting[0] if fitting else None, family, content, ports, labels, owner))
    return slices


def _owner(api_version: str, kind: str, metadata: JsonObject) -> JsonObject:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _slice(
    parent: JsonObject,
    old: JsonObject | None,
    family: str,
    endpoints: list[JsonObject],
    ports: list[JsonObject],
    labels: dict[str, str],
    owner: JsonObject,
) -> JsonObject:
    name = {"name": old["metadata"]["name"]} if old else {}
    return {
        "metadata": {
            **name,
            "generateName": parent["name"] + "-",
            "namespace": parent["namespace"],
            "labels": labels,
            "ownerReferences": [owner],
        },
        "addressType": family,
        "endpoints": endpoints,
        "ports": ports,
    }
