"""The kinds of the objects that documents are about: every row of an object says its kind beside its key."""

from kubesync.domain.objects import ObjectKey
from kubesync.domain.sources.registry import KINDS, main_part
from kubesync.domain.state import KeyState


def kind_of_key(text: str) -> str | None:
    """The kind that a key says, of an object or of one of its upstreams; None: it is no such key."""
    parts = text.split("/")
    return ObjectKey.parse("/".join(parts[:3])).kind if len(parts) in (3, 5) else None


def key_of_upstream(name: str) -> ObjectKey | None:
    """The key whose upstream it is; None: it has a name of its own."""
    parts = name.split("/")
    return ObjectKey.parse("/".join(parts[:3])) if len(parts) == 5 else None


def has_object(state: KeyState) -> bool:
    """Whether the object itself exists and could be understood. Shared objects have no keys of their own."""
    part = main_part(state)
    return part is not None and part.value is not None and not KINDS[state.key.kind].shared
