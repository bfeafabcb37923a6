"""Recorded exchanges with a real API server, folded into what a cluster held at a moment."""

import json
from pathlib import Path
from typing import Any

from kubesync.domain.objects import EndpointsObject, ObjectKey, Observation, RawEvent, Resource, Service
from kubesync.kubernetes.wire.decode import observe, read_event_header, read_list_page

RECORDINGS = Path(__file__).parents[2] / "recordings"


def recorded(name: str) -> Any:
    """One file of the recordings, such as ``expected-mid``."""
    return json.loads((RECORDINGS / f"{name}.json").read_text(encoding="utf-8"))


def listed(resource: Resource, name: str) -> tuple[Observation, ...]:
    """The items of a recorded list."""
    return read_list_page(resource, "".join(text for _, text in recorded(name)["body"]).encode()).items


def cluster_at(resource: Resource, until_ms: float = float("inf")) -> dict[tuple[str, str], Observation]:
    """Objects by namespace and name: the empty cluster's list and the watch over the whole story, up to a time, folded."""
    found = {(item.namespace, item.name): item for item in listed(resource, f"01-list-{resource}-empty")}
    for at_ms, line in recorded(f"02-watch-{resource}")["body"]:
        event = read_event_header(line.encode(), resource)
        if at_ms > until_ms or not isinstance(event, RawEvent):
            continue
        seen = observe(event)
        if seen.deleted:
            del found[seen.namespace, seen.name]
        else:
            found[seen.namespace, seen.name] = seen
    return found


def services_of(cluster: str, seen: dict[tuple[str, str], Observation]) -> dict[ObjectKey, Service]:
    """Services by their key."""
    return {ObjectKey(cluster, *at): item.value for at, item in seen.items() if isinstance(item.value, Service)}


def endpoints_of(cluster: str, seen: dict[tuple[str, str], Observation]) -> dict[ObjectKey, list[EndpointsObject]]:
    """Endpoints objects by the key of the Service that they belong to."""
    found: dict[ObjectKey, list[EndpointsObject]] = {}
    for (namespace, _), item in seen.items():
        if isinstance(item.value, EndpointsObject):
            found.setdefault(ObjectKey(cluster, namespace, item.value.service), []).append(item.value)
    return found
