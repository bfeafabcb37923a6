"""The port for sources: what kubesync has to know of a resource that it reads, and of the kind of key that its objects belong to.

    Source   one resource of the API:   how its objects are stored, and which key each belongs to
    Kind     one kind of key:           which resources its parts come from, and its rules: from parts to record sets and upstreams

A *part* is what kubesync keeps of one object that belongs to a key (``domain.state.Part``). A resource is *complete* when its listener has
listed all of it, or has resumed from a checkpoint: only then is an object that is not known an object that does not exist (I5).

How the API writes a resource is in ``kubernetes.wire.port``.
"""

from collections.abc import Callable, Collection, Sequence, Set as AbstractSet
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Protocol

from kubesync.domain.dns.desired import Desired, DnsRules, Keeping
from kubesync.domain.objects import Resource
from kubesync.domain.state import KeyState


@dataclass(frozen=True, slots=True)
class Source:
    """A resource that listeners read.

    Args:
        encode: the stored form of a value, as JSON. Releases hand over to each other: it is a contract.
        decode: its inverse.
        owner: the name of the key's object, in the same namespace; empty: the object belongs to no key. None: it always belongs to the
            key of its own name. An object whose owner may change is remembered with the owner that it had last.
        namespaced: its objects have a namespace.
    """

    resource: Resource
    encode: Callable[[Any], Sequence[object]]
    decode: Callable[[Sequence[Any]], object]
    owner: Callable[[Any], str] | None = None
    namespaced: bool = True


def row_of(value_class: type[Any]) -> Callable[[Any], Sequence[object]]:
    """The stored form of a dataclass: its fields in their order. JSON writes tuples as lists."""
    return attrgetter(*(field.name for field in fields(value_class)))


def with_tuples(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row of JSON with tuples in place of its lists."""
    return tuple([with_tuples(each) if type(each) is list else each for each in row])


class UnknownObjectError(Exception):
    """A plan reads a shared object, and its resource is not listed yet: the plan is not known (I5)."""


class Shared(Protocol):
    """Shared objects, for a plan."""

    def get(self, kind: str, namespace: str, name: str) -> object | None:
        """The value of an object; None: it does not exist. Whoever asked is planned again once that changes.

        Raises:
            UnknownObjectError: nobody knows yet. The rules let it pass through.
        """


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of key.

    Args:
        name: as keys and the API say it, such as ``Service``.
        option: how configurations name it, such as ``service``.
        api_version: of the object itself, for Events on it.
        schema: the schema version of a configuration with this kind, and at least that of an inflight item with its units. Releases that
            do not know the kind leave both alone (ADR 0013), so each new kind has a version of its own: one above all those of
            kinds, routing policies (``since``) and forms of one item (``aws.tables.items``). A test holds it.
        main: the resource of the object itself.
        others: the other resources that its parts may come from. Of those that exclude each other the cluster's configuration names one.
        created_at: the creationTimestamp of the object itself, RFC 3339: the older object gets a name that two want.
        desired: what should exist because of a key, from those of its parts whose resources are complete (I5). The set holds the
            complete resources, always the main one. The last argument is what it may read besides.
        keeps: of names that a key holds, or may hold (None), those that it keeps while it publishes nothing there.
        of_records: the resources that the record sets of a key depend on.
        reads: names of the kinds of shared objects that its plans read.
        shared: its objects belong to no key, and plans of many keys read them (``shared_kind``).
    """

    name: str
    option: str
    api_version: str
    schema: int
    main: Resource
    others: tuple[Resource, ...]
    created_at: Callable[[Any], str]
    desired: Callable[[KeyState, AbstractSet[Resource], DnsRules, Shared], Desired]
    keeps: Callable[[KeyState, DnsRules, Collection[str] | None], Keeping]
    of_records: Callable[[KeyState], frozenset[Resource]]
    reads: tuple[str, ...] = ()
    shared: bool = False

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All resources that its parts may come from."""
        return (self.main, *self.others)


def shared_kind(name: str, api_version: str, resource: Resource) -> Kind:
    """A kind of shared objects, such as Gateways or Namespaces.

    They lie in buckets by the hash of their place. A bucket is a key that leads to nothing: its parts are the objects.
    """
    return Kind(
        name=name,
        option="",
        api_version=api_version,
        schema=1,
        main=resource,
        others=(),
        created_at=lambda _value: "",
        desired=lambda *_args: Desired({}, {}, ()),
        keeps=lambda *_args: Keeping(),
        of_records=lambda _state: frozenset(),
        shared=True,
    )
