"""Services and endpoints as values: what kubesync keeps of a Kubernetes object, and of one observation of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from sys import getsizeof
from typing import Any, ClassVar, Final, NamedTuple, Self

SERVICE: Final = "Service"
"""The kind of a key that does not say its kind."""
EMPTY_SET: Final = frozenset[Any]()
"""For whoever keeps thousands: ``frozenset()`` makes another one of 216 bytes each time."""
_OF_KIND: Final = re.compile(r"([A-Z][A-Za-z0-9]*):(.*)", re.DOTALL)


class Resource(str):
    """A resource that a listener watches: the plural in the API's path. Equal ones are one object, so ``is`` compares them.

    Which ones there are, and what they mean, is in ``domain.sources``.
    """

    __slots__ = ()
    _made: ClassVar[dict[str, Resource]] = {}
    SERVICES: ClassVar[Resource]
    ENDPOINTS: ClassVar[Resource]
    ENDPOINTSLICES: ClassVar[Resource]

    def __new__(cls, plural: str) -> Resource:  # noqa: PYI034 - it has no subclasses
        return cls._made.setdefault(plural, str.__new__(cls, plural))

    @property
    def value(self) -> str:
        """As plain text."""
        return str(self)


Resource.SERVICES = Resource("services")
Resource.ENDPOINTS = Resource("endpoints")
Resource.ENDPOINTSLICES = Resource("endpointslices")


type Namespace = tuple[str, str]
"""Its cluster, and its name."""


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """The unit of reconciliation: one object, with everything that belongs to it. ``kind`` is the object's, such as ``Service``.

    ``str()`` gives ``cluster/namespace/name`` for a Service, and ``cluster/namespace/Kind:name`` for any other kind. No name of a
    Kubernetes object that has a key holds an upper-case letter.
    """

    cluster: str
    namespace: str
    name: str
    kind: str = SERVICE

    @property
    def full_namespace(self) -> Namespace:
        return self.cluster, self.namespace

    @property
    def path(self) -> str:
        """``namespace/name`` or ``namespace/Kind:name``: the key inside its cluster."""
        return f"{self.namespace}/{self.name}" if self.kind == SERVICE else f"{self.namespace}/{self.kind}:{self.name}"

    @classmethod
    def at(cls, cluster: str, path: str) -> Self:
        """Read a ``path``: the inverse of it. ``shop/web`` is a Service; ``shop/Ingress:web`` says another kind before the colon."""
        namespace, _, name = path.partition("/")
        of_kind = _OF_KIND.fullmatch(name) if ":" in name else None
        return cls(cluster, namespace, name) if of_kind is None else cls(cluster, namespace, of_kind[2], of_kind[1])

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of ``str``."""
        cluster, _, path = text.partition("/")
        return cls.at(cluster, path)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.path}"


def neighbours(one: ObjectKey, other: ObjectKey) -> bool:
    """Whether two keys are of one namespace of a cluster."""
    return one.full_namespace == other.full_namespace


class Port(NamedTuple):
    """A port of a Service, or of its endpoints. ``name`` is empty where there is none. Its fields in their order are its stored form."""

    name: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class Service:
    """The projection of a Service: only the fields that its records and upstreams depend on. In their order, they are its stored form.

    ``cluster_ips`` is ``("None",)`` for a headless service. ``annotations`` is sorted and holds only the annotations that
    kubesync reads: external-dns.* and kubesync.io/*.
    ``created_at`` is the creationTimestamp as sent, RFC 3339.
    """

    type: str
    cluster_ips: tuple[str, ...] = ()
    external_name: str = ""
    ports: tuple[Port, ...] = ()
    publish_not_ready: bool = False
    ingress_ips: tuple[str, ...] = ()
    ingress_hostnames: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    created_at: str = ""

    @property
    def headless(self) -> bool:
        return self.type != "ExternalName" and self.cluster_ips == ("None",)

    def texts(self) -> Iterable[str]:
        """The texts that count for its size."""
        ports = ((port.name, port.protocol) for port in self.ports)
        texts = (self.external_name, *self.cluster_ips, *self.ingress_ips, *self.ingress_hostnames)
        return chain(texts, *ports, *self.annotations)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address. An empty string or None means that the object does not say."""

    ip: str
    ready: bool = True
    serving: bool | None = None
    terminating: bool | None = None
    node: str = ""
    zone: str = ""
    hostname: str = ""
    pod: str = ""


@dataclass(frozen=True, slots=True)
class EndpointGroup:
    """Addresses that share ports: a subset of Endpoints, or a whole EndpointSlice."""

    endpoints: tuple[Endpoint, ...]
    ports: tuple[Port, ...]


@dataclass(frozen=True, slots=True)
class EndpointsObject:
    """The projection of an Endpoints or EndpointSlice object.

    ``service`` is the name of the Service it belongs to, in the same namespace: the object's own name for Endpoints, the label
    ``kubernetes.io/service-name`` for an EndpointSlice (empty if that label is missing). ``truncated``: an annotation of the
    object says that it is over capacity and lacks addresses. ``fqdn``: the object holds host names instead of addresses.
    """

    service: str
    groups: tuple[EndpointGroup, ...] = ()
    truncated: bool = False
    fqdn: bool = False

    def texts(self) -> Iterable[str]:
        """The texts that count for its size: two of each port, three of each endpoint."""
        for group in self.groups:
            for endpoint in group.endpoints:
                yield from (endpoint.ip + endpoint.node + endpoint.zone, endpoint.hostname, endpoint.pod)
            for port in group.ports:
                yield from (port.name, port.protocol)


def texts_of(value: object) -> Iterable[str]:
    """The texts that are kept of an object: each value has them in its method ``texts``."""
    # Not by isinstance of a protocol: that takes 3 µs, several times for each key.
    texts: Callable[[], Iterable[str]] | None = getattr(value, "texts", None)
    return () if texts is None else texts()


def bytes_of(value: object) -> int:
    """About how many bytes of memory the value of an object takes while it is kept. CPython 3.13 really takes 0.7 to 1.3 times as many.

    Half of them are the headers of texts. A text that endpoints share, such as the name of a node, counts for each of them.
    """
    return 400 + sum(map(getsizeof, texts_of(value)))


@dataclass(frozen=True, slots=True)
class Observation:
    """One object as a list or an event showed it.

    ``value`` is None for a deleted object whose last state is useless, and for an object that could not be understood. In the second
    case ``problem`` says why in one line. For a DELETED event, ``value`` is the object's last state.
    """

    resource: Resource
    namespace: str
    name: str
    uid: str
    resource_version: int
    deleted: bool = False
    value: object | None = None
    problem: str | None = None


class RawEvent(NamedTuple):
    """A watch event, parsed no further than its metadata; ``line`` is the whole JSON line as received.

    ``type`` is ADDED, MODIFIED or DELETED; bookmarks and errors never leave the reflector. It is a tuple because one is made for
    every line of a watch: a frozen dataclass takes three times as long.
    """

    type: str
    resource: Resource
    namespace: str
    name: str
    uid: str
    resource_version: int
    line: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A *complete* consistent list of one resource. ``store_went_back``: its version is lower than one seen before. The store
    was restored or replaced, older versions mean nothing, and a new generation begins. ``seconds``: how long reading took, after
    ``waited_seconds`` for room. ``size``: how many bytes of room it takes."""

    resource: Resource
    resource_version: int
    items: tuple[Observation, ...]
    store_went_back: bool = False
    seconds: float = field(default=0.0, compare=False)
    waited_seconds: float = field(default=0.0, compare=False)
    size: int = field(default=0, compare=False)


def equal_share(needs: Iterable[int], room: int) -> int:
    """The most that anybody may take of the room: an equal share, and what others leave of theirs. The whole room if all needs fit.

    Such as 4 for the needs 1, 5, 9 and room 9: the first leaves 2 of its 3, and the others share 8.
    """
    left, rising = room, sorted(needs)
    # The smallest need first: what it does not use of its equal share is for the others. ``waiting``: how many needs are left, this one too.
    for waiting, need in zip(range(len(rising), 0, -1), rising, strict=True):
        if need * waiting > left:
            return left // waiting
        left -= need
    return room
