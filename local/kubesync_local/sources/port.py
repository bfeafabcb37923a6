"""What commands ask about the objects of one kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.dns.annotations.reading import DnsAnnotations
from kubesync.domain.dns.desired import Desired, DnsRules
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.domain.sources.port import Kind
from kubesync.domain.state import KeyState


@dataclass(frozen=True, slots=True)
class SourceWords:
    """A kind of objects, for commands. ``state`` is that of a key whose object is known, and not left out by its annotations.

    Args:
        names: names that the object asks for without an annotation, whether it has something to publish there or not.
        remarks: what leaves its names out, or keeps it from having record sets, although there is no problem.
        why_not_wanted: why none of this object's record sets is this one, which external-dns made of it. None: it asks for the name, and
            nothing of this kind explains it.
    """

    kind: Kind
    names: Callable[[Any, ObjectKey, ClusterConfig], Iterable[str]]
    remarks: Callable[[KeyState, Desired, ClusterConfig], Iterator[str]]
    why_not_wanted: Callable[[RecordKey, RecordSet, ObjectKey, Any, DnsAnnotations, DnsRules], str | None]
