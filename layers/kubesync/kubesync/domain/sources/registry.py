"""All sources and kinds. The rest of kubesync asks here, and names no resource and no kind.

A further source is one file beside ``services``, one in ``kubernetes.wire``, and a line in each of the two registries.

*Shared* objects, such as Gateways, belong to no key: plans of many keys read them (``port.shared_kind``). They are the parts of *buckets*,
keys that lead to nothing. The other parts belong to the key of their object: a Service, say, with its EndpointSlices.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.sources import ingresses, services
from kubesync.domain.sources.port import Kind, Source
from kubesync.domain.state import KeyState, Part, PartId, Reference

_SOURCES: Final[dict[Resource, Source]] = {}
_KINDS: Final[dict[str, Kind]] = {}
_KIND_OF: Final[dict[Resource, Kind]] = {}
SOURCES: Final[Mapping[Resource, Source]] = MappingProxyType(_SOURCES)
"""By their resources."""
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(_KINDS)
"""By their names."""

MOVING: Final[set[Resource]] = set()
"""Resources whose objects may move from key to key: a label may name another Service (``Source.owner``)."""

BUCKETS_OF_SHARED: Final = 16
IDENTITY: Final = (Resource.SERVICES, "default", "kubernetes")
"""The object whose uid identifies a cluster: resource, namespace and name (I5)."""


def register(kind: Kind, sources: Sequence[Source]) -> None:
    """Add a kind of key, with the resources that its parts come from, to all mappings of this file. Tests add a source of their own."""
    _KINDS[kind.name] = kind
    _SOURCES.update({source.resource: source for source in sources})
    MOVING.update(source.resource for source in sources if source.owner is not None)
    _KIND_OF.update(dict.fromkeys(kind.resources, kind))


register(services.KIND, services.SOURCES)
register(ingresses.KIND, ingresses.SOURCES)


def kind_of(resource: Resource) -> Kind:
    """The kind of the keys that objects of a resource belong to, such as ``Service`` for ``endpointslices``."""
    return _KIND_OF[resource]


def may_be_absent(resource: Resource) -> bool:
    """Whether a cluster may be without the API of this resource: it is not of the core, and no other kind of key depends on it."""
    kind = _KIND_OF[resource]
    return kind.main is resource and "/" in kind.api_version


def bucket_of(cluster: str, reference: Reference) -> ObjectKey:
    """The key of the bucket that holds a shared object: by the hash of its namespace and name, in no namespace."""
    number = zlib.crc32(f"{reference.namespace}/{reference.name}".encode("utf-8", "surrogatepass")) % BUCKETS_OF_SHARED
    return ObjectKey(cluster, "", f"{number:x}", reference.kind)


def part_of(reference: Reference) -> PartId:
    """The id of a shared object's part in its bucket. Its name is ``namespace/name``, as a bucket holds objects of all namespaces."""
    return PartId(KINDS[reference.kind].main, f"{reference.namespace}/{reference.name}")


def place_of(key: ObjectKey, part_id: PartId) -> tuple[str, str]:
    """The namespace and the name of the object that a part is kept of.

    The id of a shared object's part says both (``part_of``). Any other object is in the namespace of its key.
    """
    if KINDS[key.kind].shared:
        namespace, _, name = part_id.name.partition("/")
        return namespace, name
    return key.namespace, part_id.name


def main_id(key: ObjectKey) -> PartId:
    """The id of the part of the key's own object."""
    return PartId(KINDS[key.kind].main, key.name)


def main_part(state: KeyState) -> Part | None:
    """What is known of the key's own object; None: nothing."""
    return state.parts.get(main_id(state.key))


def lives(state: KeyState) -> bool:
    """Whether the key's own object exists, as far as is known."""
    main = main_part(state)
    return main is not None and not main.deleted


def created_at(state: KeyState) -> str:
    """When the key's own object was made, as it was seen last; empty: it is not known."""
    part = main_part(state)
    return "" if part is None or part.value is None else KINDS[state.key.kind].created_at(part.value)


def describe_change(before: KeyState, after: KeyState) -> str:
    """What happened to a key, in one word for the audit and for people. The first row that fits counts.

    the key's own object    other parts    intended sets    word
    --------------------    -----------    -------------    ----
    was not there           any            any              appeared
    is not there any more   any            any              disappeared
    has another value       any            any              changed
    the same                changed        any              endpoints
    the same                the same       changed          rules: those of the cluster, or of a new release
    the same                the same       the same         empty
    """
    was, now = _value(main_part(before)), _value(main_part(after))
    if was != now:
        return "appeared" if was is None else "disappeared" if now is None else "changed"
    if _other_values(before) != _other_values(after):
        return "endpoints"
    return "rules" if before.intended != after.intended else ""


def _value(part: Part | None) -> object:
    return None if part is None else part.value


def _other_values(state: KeyState) -> dict[PartId, object]:
    """The values of all parts but the key's own object. Deleted ones do not count."""
    main = main_id(state.key)
    return {part_id: part.value for part_id, part in state.parts.items() if part_id != main and not part.deleted}


def cause_of(why: str, before: KeyState, seen: KeyState, resources: Collection[Resource]) -> str:
    """Why a key is planned, with the newest changed object, else its own: ``watch services/web@1234``. It is kept with the open mark.

    Args:
        why: the first word, such as ``watch`` or ``list``.
        before: the state as stored; ``seen``: with what was seen since then.
        resources: only parts of these count, such as those that the record sets of the key depend on.
    """
    changed = [
        part_id
        for part_id, part in seen.parts.items()
        if before.parts.get(part_id) is not part
        and part_id.resource in resources  # a part that did not change is the same object
    ]
    newest = max(changed, key=lambda part_id: seen.parts[part_id].resource_version, default=main_id(seen.key))
    part = seen.parts.get(newest)
    return why if part is None else f"{why} {newest.resource}/{newest.name}@{part.resource_version}"
