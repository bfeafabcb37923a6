"""What the server does when a Service is written: defaults, rules, and allocation."""

from collections.abc import Mapping
from typing import Any, Final

from kubesync_local.standins.apiserver.objects.allocation import (
    IPV4,
    IPV6,
    ExhaustedError,
    OutOfRangeError,
    ServiceAllocations,
    TakenError,
    family_of,
)
from kubesync_local.standins.apiserver.objects.resources import SERVICES
from kubesync_local.standins.apiserver.objects.status import ApiStatusError, JsonObject, invalid

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_DUAL: Final = ("PreferDualStack", "RequireDualStack")
_OTHER_FAMILY: Final = {IPV4: IPV6, IPV6: IPV4}


def prepare_service(allocations: ServiceAllocations, given: JsonObject, before: JsonObject | None) -> JsonObject:
    """The service as it will be stored, less metadata: defaults filled in, validated, addresses and ports allocated.

    ``given`` is arranged by the schema and changed in place; ``before`` is the stored state on an update. Nothing stays
    allocated if it raises ApiStatusError (422).
    """
    name = given["metadata"].get("name", "")
    spec: JsonObject = given.setdefault("spec", {})
    _set_defaults(spec)
    if before is not None:
        _carry_over(spec, before["spec"])
    _validate(name, spec)
    _validate_immutable(name, spec, before)
    _Allocation(allocations, name, spec, before["spec"] if before else {}).run()
    old_status = before.get("status") if before else None
    given["status"] = old_status if old_status and spec["type"] == "LoadBalancer" else {"loadBalancer": {}}
    return given


def prepare_status(given: JsonObject) -> JsonObject:
    """A status as it will be stored: addresses without ``ipMode`` are virtual IPs."""
    balancer = given.get("loadBalancer") or {}
    ingress = []
    for entry in balancer.get("ingress", ()):
        if entry.get("ip"):
            entry = {
                "ip": entry["ip"],
                **({"hostname": entry["hostname"]} if entry.get("hostname") else {}),
                "ipMode": entry.get("ipMode", "VIP"),
                **({"ports": entry["ports"]} if entry.get("ports") else {}),
            }
        ingress.append(entry)
    return {"loadBalancer": {"ingress": ingress} if ingress else {}}


def _set_defaults(spec: JsonObject) -> None:
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    if spec["type"] == "ExternalName":
        return
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _carry_over(spec: JsonObject, before: Mapping[str, Any]) -> None:
    """Keep what a client may leave out on an update, and drop what does not fit a changed type.

    As the real server's patchAllocatedValues and dropTypeDependentFields.
    """
    if spec["type"] == "ExternalName":
        if before["type"] != "ExternalName":
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
                spec.pop(field, None)
    else:
        for field in ("clusterIP", "ipFamilies", "ipFamilyPolicy"):
            if field in before:
                spec.setdefault(field, before[field])
        if spec.get("clusterIP") == before.get("clusterIP") and "clusterIPs" in before:
            spec.setdefault("clusterIPs", list(before["clusterIPs"]))
    node_ports = {port.get("name", ""): port.get("nodePort") for port in before.get("ports", ())}
    wants_node_ports = spec["type"] in ("NodePort", "LoadBalancer")
    for port in spec.get("ports", ()):
        old = node_ports.get(port.get("name", ""))
        if wants_node_ports and old and not port.get("nodePort"):
            port["nodePort"] = old
        elif not wants_node_ports and old and port.get("nodePort") == old:
            del port["nodePort"]
    if not wants_node_ports:
        spec.pop("externalTrafficPolicy", None)
    if spec["type"] != "LoadBalancer":
        spec.pop("allocateLoadBalancerNodePorts", None)


def _validate(name: str, spec: Mapping[str, Any]) -> None:
    def refuse(field: str, reason: str, message: str) -> ApiStatusError:
        return invalid(SERVICES, name, field, reason, message)

    kind = spec["type"]
    if kind not in _TYPES:
        supported = ", ".join(f'"{each}"' for each in _TYPES)
        raise refuse(
            "spec.type", "FieldValueNotSupported", f'Unsupported value: "{kind}": supported values: {supported}'
        )
    ports = spec.get("ports", [])
    headless = spec.get("clusterIP") == "None"
    if kind == "ExternalName":
        if not spec.get("externalName"):
            raise refuse("spec.externalName", "FieldValueRequired", "Required value")
    elif not ports and not headless:
        raise refuse("spec.ports", "FieldValueRequired", "Required value")
    if headless and kind in ("NodePort", "LoadBalancer"):
        message = f"Invalid value: [\"None\"]: may not be set to 'None' for {kind} services"
        raise refuse("spec.clusterIPs[0]", "FieldValueInvalid", message)
    names: set[str] = set()
    numbers: set[tuple[object, object]] = set()
    for index, port in enumerate(ports):
        field = f"spec.ports[{index}]"
        number, protocol, label = port.get("port"), port["protocol"], port.get("name", "")
        if not isinstance(number, int) or not 1 <= number <= 65535:
            message = f"Invalid value: {number or 0}: must be between 1 and 65535, inclusive"
            raise refuse(f"{field}.port", "FieldValueInvalid", message)
        if protocol not in _PROTOCOLS:
            supported = ", ".join(f'"{each}"' for each in _PROTOCOLS)
            message = f'Unsupported value: "{protocol}": supported values: {supported}'
            raise refuse(f"{field}.protocol", "FieldValueNotSupported", message)
        if len(ports) > 1 and not label:
            raise refuse(f"{field}.name", "FieldValueRequired", "Required value")
        if label in names:
            raise refuse(f"{field}.name", "FieldValueDuplicate", f'Duplicate value: "{label}"')
        if (number, protocol) in numbers:
            raise refuse(field, "FieldValueDuplicate", f'Duplicate value: {{"protocol":"{protocol}","port":{number}}}')
        names.add(label)
        numbers.add((number, protocol))


def _validate_immutable(name: str, spec: Mapping[str, Any], before: JsonObject | None) -> None:
    if before is None or "ExternalName" in (spec["type"], before["spec"]["type"]):
        return
    old, new = before["spec"].get("clusterIP"), spec.get("clusterIP")
    if old != new:
        message = f'Invalid value: ["{new}"]: may not change once set'
        raise invalid(SERVICES, name, "spec.clusterIPs[0]", "FieldValueInvalid", message)


class _Allocation:
    """Allocates for one write; releases everything again if a rule is broken on the way."""

    def __init__(self, allocations: ServiceAllocations, name: str, spec: JsonObject, before: Mapping[str, Any]) -> None:
        self._allocations = allocations
        self._name = name
        self._spec = spec
        self._before = before
        self._taken_addresses: list[str] = []
        self._taken_ports: list[tuple[int, str]] = []

    def run(self) -> None:
        try:
            self._addresses()
            self._node_ports()
        except ApiStatusError:
            for address in self._taken_addresses:
                self._allocations.release_address(address)
            for port, protocol in self._taken_ports:
                self._allocations.release_node_port(port, protocol)
            raise
        self._release_what_is_left_behind()

    def _refuse(self, field: str, message: str) -> ApiStatusError:
        return invalid(SERVICES, self._name, field, "FieldValueInvalid", message)

    def _addresses(self) -> None:
        spec = self._spec
        if spec["type"] == "ExternalName":
            return
        given: list[str] = list(spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else []))
        headless = given[:1] == ["None"]
        families = self._families([] if headless else given)
        if headless:
            addresses = ["None"]
        else:
            old = self._before.get("clusterIPs", [])
            addresses = [self._address(family, given, old) for family in families]
            spec["clusterIP"] = addresses[0]
        spec["clusterIPs"] = addresses
        spec["ipFamilies"] = families
        # Fields that are set late get their place in the wire order when the object is arranged again.

    def _families(self, given: list[str]) -> list[str]:
        """The address families of the service.

        | ipFamilyPolicy   | single-stack cluster | dual-stack cluster |
        |------------------|----------------------|--------------------|
        | SingleStack      | the first            | the first          |
        | PreferDualStack  | the first            | both               |
        | RequireDualStack | refused              | both               |
        """
        spec, served = self._spec, list(self._allocations.ranges)
        named: list[str] = list(spec.get("ipFamilies") or [])
        try:
            named = named or [family_of(address) for address in given]
        except ValueError as error:
            message = f'Invalid value: ["{given[0]}"]: must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
            raise self._refuse("spec.clusterIPs[0]", message) from error
        selectorless_headless = not spec.get("selector") and spec.get("clusterIP") == "None"
        if "ipFamilyPolicy" not in spec:
            several = len(named) > 1 or selectorless_headless
            spec["ipFamilyPolicy"] = "RequireDualStack" if several else "SingleStack"
        policy = spec["ipFamilyPolicy"]
        first = named[0] if named else served[0]
        for family in named:
            if family not in served:
                message = f'Invalid value: "{family}": not configured on this cluster'
                raise self._refuse("spec.ipFamilies[0]", message)
        if policy not in _DUAL:
            return [first]
        if len(served) == 2 or (selectorless_headless and not given):
            return [first, _OTHER_FAMILY[first]]
        if policy == "RequireDualStack":
            message = 'Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services'
            raise self._refuse("spec.ipFamilyPolicy", message)
        return [first]

    def _address(self, family: str, given: list[str], old: list[str]) -> str:
        wanted = next((address for address in given if family_of(address) == family), None)
        if wanted is not None and wanted in old:
            return wanted
        addresses = self._allocations.ranges[family]
        try:
            if wanted is None:
                wanted = addresses.allocate()
            else:
                addresses.claim(wanted)
        except (ExhaustedError, OutOfRangeError, TakenError) as error:
            raise self._refuse("spec.clusterIPs", f'Invalid value: ["{wanted or ""}"]: {error}') from error
        self._taken_addresses.append(wanted)
        return wanted

    def _node_ports(self) -> None:
        spec = self._spec
        if spec["type"] not in ("NodePort", "LoadBalancer"):
            return
        old = {(port.get("nodePort"), port.get("protocol")) for port in self._before.get("ports", ())}
        automatic = spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts", True)
        for index, port in enumerate(spec.get("ports", ())):
            wanted, protocol = port.get("nodePort"), port["protocol"]
            if ((wanted, protocol) in old and wanted) or (not wanted and not automatic):
                continue
            try:
                if wanted:
                    self._allocations.claim_node_port(wanted, protocol)
                else:
                    wanted = self._allocations.allocate_node_port(protocol)
            except (ExhaustedError, OutOfRangeError, TakenError) as error:
                raise self._refuse(f"spec.ports[{index}].nodePort", f"Invalid value: {wanted or 0}: {error}") from error
            self._taken_ports.append((wanted, protocol))
            port["nodePort"] = wanted

    def _release_what_is_left_behind(self) -> None:
        kept = set(self._spec.get("clusterIPs", ()))
        for address in self._before.get("clusterIPs", ()):
            if address not in kept:
                self._allocations.release_address(address)
        kept_ports = {(port.get("nodePort"), port.get("protocol")) for port in self._spec.get("ports", ())}
        for port in self._before.get("ports", ()):
            if port.get("nodePort") and (port["nodePort"], port["protocol"]) not in kept_ports:
                self._allocations.release_node_port(port["nodePort"], port["protocol"])
