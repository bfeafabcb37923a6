"""What commands ask about the objects of one kind."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.dns.annotations import DnsAnnotations
from kubesync.domain.dns.desired import Desired, DnsRules
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.domain.sources.port import Kind
from kubesync.domain.state import KeyState

type LoadBalancer = tuple[tuple[str, ...], tuple[str, ...]]
"""Its addresses, and its host names."""


@dataclass(frozen=True, slots=True)
class SourceWords:
    """A kind of objects, for commands. ``state`` is that of a key whose object is known, and not left out by its annotations.

    Args:
        names: names that the object asks for without an annotation, whether it has something to publish there or not.
        remarks: what leaves its names out, or keeps it from having record sets, although there is no problem.
        why_not_wanted: why none of this object's record sets is this one, which external-dns made of it. None: it asks for the name, and
            nothing of this kind explains it.
        load_balancer: addresses and host names of the object's load balancer: none while it is pending. None: the object has no load balancer.
        with_load_balancer: the object with these addresses and host names of its load balancer.
    """

    kind: Kind
    names: Callable[[Any, ObjectKey, ClusterConfig], Iterable[str]]
    remarks: Callable[[KeyState, Desired, ClusterConfig], Iterator[str]]
    why_not_wanted: Callable[[RecordKey, RecordSet, ObjectKey, Any, DnsAnnotations, DnsRules], str | None]
    load_balancer: Callable[[Any], LoadBalancer | None]
    with_load_balancer: Callable[[Any, LoadBalancer], Any]
