"""The parts of the API's JSON that all objects, events and lists have, each with its type checked.

Go writes an absent list or map as ``null`` or leaves it out; both are allowed everywhere. ``strict``: as for the API server, a
number in quotes is not a number. Field names are the API's. Text that becomes part of a key, or is repeated in table items, has
the API server's own limits: DynamoDB would refuse the whole window that holds a longer one (I4).
"""

from typing import Annotated, Any, Final, Required, TypedDict

from pydantic import ConfigDict, Field, with_config

CONFIG: Final = ConfigDict(strict=True, extra="ignore")
"""Of each model. The models inside a model take it on."""

PortNumber = Annotated[int, Field(ge=1, le=65535)]
"""A port, 1 to 65535."""
MAX_NAME_CHARACTERS: Final = 253
"""Limit of an object's name: a DNS subdomain (Kubernetes, "Object Names and IDs")."""
Short = Annotated[str, Field(max_length=MAX_NAME_CHARACTERS)]
"""Names of nodes, pods, zones, ports, protocols, and addresses."""
Labels = dict[str, Annotated[str, Field(max_length=63)]] | None
"""Values have at most 63 characters (Kubernetes, "Labels and Selectors")."""
Annotations = dict[str, Annotated[str, Field(max_length=262_144)]] | None
"""An object's annotations may have 256 KiB together (Kubernetes, "Annotations")."""
# Legal names are narrower. Illegal ones are reported later, in words that say why.
NAME_PATTERN: Final = r"^[ !\"$-.0-9;-~]{1,253}$"
"""A name that can be part of a table's key: ASCII, without ``/``, ``#`` and ``:``, which separate the parts of keys."""
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Version = Annotated[str, Field(pattern=r"^[0-9]{1,20}$")]
"""A resourceVersion. Versions of one resource compare as integers."""


class Metadata(TypedDict, total=False):
    name: Required[Name]
    namespace: Required[Name]
    uid: Required[Name]
    resourceVersion: Required[Version]
    creationTimestamp: Annotated[str, Field(max_length=40)] | None
    labels: Labels
    annotations: Annotations


class LoadBalancerIngress(TypedDict, total=False):
    ip: Short | None
    hostname: Annotated[str, Field(max_length=1000)] | None


class LoadBalancer(TypedDict, total=False):
    ingress: Annotated[list[LoadBalancerIngress], Field(max_length=1000)] | None


class Status(TypedDict, total=False):
    """Of Services and Ingresses."""

    loadBalancer: LoadBalancer | None


class StatusDetails(TypedDict, total=False):
    retryAfterSeconds: int | None


class HeaderMetadata(TypedDict, total=False):
    name: str | None
    namespace: str | None
    uid: str | None
    resourceVersion: str | None


class HeaderObject(TypedDict, total=False):
    kind: str | None
    metadata: HeaderMetadata | None
    code: int | None
    reason: str | None
    message: str | None
    details: StatusDetails | None


@with_config(CONFIG)
class Header(TypedDict):
    """The metadata of a watch event, or the Status in an ERROR."""

    type: str
    object: HeaderObject


# Functional form: "continue" is a keyword in Python.
ListMetadata = TypedDict(
    "ListMetadata",
    {"resourceVersion": Required[Version], "continue": str | None, "remainingItemCount": Any},
    total=False,
)


@with_config(CONFIG)
class ListModel[Kind, Item](TypedDict):
    """One page of a list. Items are read one by one (``Any``) where one of them breaks the rules."""

    kind: Kind
    metadata: ListMetadata
    items: list[Item] | None


@with_config(CONFIG)
class EventModel[Item](TypedDict):
    object: Item


def load_balancer_of(status: Status | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the addresses and the host names of ``status.loadBalancer``."""
    ingress = ((status or {}).get("loadBalancer") or {}).get("ingress") or []
    ips = tuple(ip for entry in ingress if (ip := entry.get("ip")))
    return ips, tuple(host for entry in ingress if (host := entry.get("hostname")))
