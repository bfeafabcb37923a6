"""What the server does to an Ingress before it is stored."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubesync_local.standins.apiserver.objects.resources import INGRESSES
from kubesync_local.standins.apiserver.objects.status import JsonObject, invalid

_ATOMIC: Final = ("rules", "tls", "ingress")
"""Lists that one manager owns as a whole (k8s.io/api/networking/v1: ``+listType=atomic``)."""


def prepare_ingress(given: JsonObject, before: JsonObject | None) -> JsonObject:
    """Validates hosts, and keeps the status: only its subresource changes it."""
    spec, name = given.setdefault("spec", {}), given["metadata"]["name"]
    for index, rule in enumerate(spec.get("rules", ())):
        host = rule.get("host", "")
        if host and (host != host.lower() or host.endswith(".")):
            message = f'Invalid value: "{host}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters'
            raise invalid(INGRESSES, name, f"spec.rules[{index}].host", "FieldValueInvalid", message)
    kept = {} if before is None else copy.deepcopy(before.get("status", {}))
    return {**given, "status": kept}


def managed(item: JsonObject, now: str, before: Iterable[JsonObject] = (), subresource: str = "") -> None:
    """Enter in ``metadata.managedFields`` who wrote the object, or its status, as the server's field managers do."""
    manager = "nginx-ingress-controller" if subresource else "kubectl-create"
    written = {"status": item["status"]} if subresource else {"metadata": _of_people(item), "spec": item["spec"]}
    entry: JsonObject = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": INGRESSES.api_version,
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": _fields(written),
    }
    if subresource:
        entry["subresource"] = subresource
    item["metadata"]["managedFields"] = [*(each for each in before if each["manager"] != manager), entry]


def _of_people(item: JsonObject) -> JsonObject:
    return {name: item["metadata"][name] for name in ("annotations", "labels") if name in item["metadata"]}


def _fields(value: Mapping[str, Any]) -> JsonObject:
    found: JsonObject = {}
    for name, inner in sorted(value.items()):
        whole = not isinstance(inner, Mapping) or name in _ATOMIC
        found[f"f:{name}"] = {} if whole else ({".": {}} if name in ("annotations", "labels") else {}) | _fields(inner)
    return found
