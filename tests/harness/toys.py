"""Toys over the wire: the stand-in API server serves them as it serves any custom resource, and a cluster may have them for a source."""

from typing import Any, Final

from harness.cli_stack import CliStack
from harness.seen.raw_objects import put_raw
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.standins.apiserver.objects.resources import BY_PLURAL, ResourceType
from kubesync_local.workplace.registry import ClusterRegistry
from toy.rules import BOXES, TOYS

GROUP: Final = "toys.example.com"
BY_PLURAL[TOYS.value] = ResourceType(TOYS.value, "Toy", GROUP, "v1")
BY_PLURAL[BOXES.value] = ResourceType(BOXES.value, "Box", GROUP, "v1")


def put_toy(api: ApiServer, name: str, host: str, *addresses: str, change: str = "ADDED", **spec: Any) -> None:
    """Store a toy of namespace ``shop``. ``spec``: ``port``, ``box``."""
    metadata = {
        "creationTimestamp": "2026-01-01T00:00:00Z", "name": name, "namespace": "shop", "resourceVersion": "0", "uid": f"uid-toy-{name}",
    }  # fmt: skip
    item = {"metadata": metadata, "spec": dict(sorted({"addresses": list(addresses), "host": host, **spec}.items()))}
    put_raw(api, item, TOYS.value, change)


def put_box(api: ApiServer, name: str, ttl: int, change: str = "ADDED") -> None:
    """Store a box, which has no namespace."""
    item = {"metadata": {"name": name, "resourceVersion": "0", "uid": f"uid-box-{name}"}, "spec": {"ttl": ttl}}
    put_raw(api, item, BOXES.value, change)


def read_toys(stack: CliStack, cluster: str = "prod") -> None:
    """Have a registered cluster read toys besides Services."""
    table = ClusterRegistry(stack.store)
    (config,) = (each for each in table.all() if each.name == cluster)
    table.put(config.model_copy(update={"sources": ("service", "toy")}))
