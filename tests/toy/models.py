"""How the API writes toys and boxes: custom resources, so their fields come in alphabetical order. A box has no namespace."""

from typing import Annotated, Any, Required, TypedDict

from pydantic import ConfigDict, Field, with_config

from kubesync.kubernetes.wire import registry
from kubesync.kubernetes.wire.models import Metadata, Name, PortNumber, Short, Version
from kubesync.kubernetes.wire.port import wire_source
from toy.rules import BOXES, TOYS, Box, Toy


class ToySpec(TypedDict, total=False):
    addresses: list[Short] | None
    box: Short | None
    host: Annotated[str, Field(max_length=1000)]
    port: PortNumber | None


@with_config(ConfigDict(strict=True, extra="ignore"))
class ToyModel(TypedDict, total=False):
    metadata: Required[Metadata]
    spec: Required[ToySpec]


class ClusterMetadata(TypedDict, total=False):
    name: Required[Name]
    uid: Required[Name]
    resourceVersion: Required[Version]


class BoxSpec(TypedDict):
    ttl: Annotated[int, Field(ge=1)]


@with_config(ConfigDict(strict=True, extra="ignore"))
class BoxModel(TypedDict):
    metadata: ClusterMetadata
    spec: BoxSpec


def project_toy(model: Any, _prefixes: tuple[str, ...]) -> Toy:
    spec, metadata = model["spec"], model["metadata"]
    return Toy(
        host=spec["host"],
        addresses=tuple(spec.get("addresses") or ()),
        port=spec.get("port") or 0,
        box=spec.get("box") or "",
        created_at=metadata.get("creationTimestamp") or "",
    )


def project_box(model: Any, _prefixes: tuple[str, ...]) -> Box:
    return Box(model["spec"]["ttl"])


registry.register(wire_source(TOYS, "Toy", "toys.example.com/v1", ToyModel, project_toy))
registry.register(wire_source(BOXES, "Box", "toys.example.com/v1", BoxModel, project_box))
