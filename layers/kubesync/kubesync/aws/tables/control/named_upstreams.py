"""The registry of named upstreams, and the marks of upstreams that have to be composed again.

control table
partition                sort                 holds
---------                ----                 -----
named-upstreams          #registry            version: +1 at each change of any named upstream
named-upstreams          <name>               document, shard, revision (the registry's version of its last change), held_by
named-marks#<shard>      <upstream>           version: of the upstream when the mark was made

Every change of the registry increments its one version and is conditional on the version that was read. So nothing that a change
is checked against (circles, references, holders) can change meanwhile. The same transaction leaves a mark for the master.

A mark names a Service's upstream that has changed, or a named upstream whose configuration has. The composer removes the marks that
it has read, each only if it is unchanged: its version moves with every marked change.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, cast

from aws_lambda_powertools import Logger
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kubesync.aws.dynamodb.store import CONTROL, Absent, Action, Check, Delete, Equals, Item, Key, Put, Store
from kubesync.aws.tables.schema_guard import readable
from kubesync.aws.tables.state_codec import SCHEMA
from kubesync.domain.errors import NewerSchemaError, TransactionRefusedError, UsageError
from kubesync.domain.named_upstreams import (
    MAX_WEIGHT,
    Member,
    NamedOf,
    NamedUpstream,
    ServicePortOf,
    Source,
    StaticNode,
    named_key,
    parse_service,
    parse_static,
    why_not,
)

logger = Logger(service="kubesync", child=True)

_PARTITION: Final = "named-upstreams"
_REGISTRY: Final = Key(CONTROL, _PARTITION, "#registry")
_MAX_HOLDERS: Final = 100


class _MemberDocument(BaseModel):
    """A member as it is stored: exactly one of ``service``, ``upstream`` and ``static``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    service: str = ""
    upstream: str = ""
    static: str = ""
    weight: Annotated[int, Field(ge=1, le=MAX_WEIGHT)] = 1
    backup: bool = False


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    members: tuple[_MemberDocument, ...]


@dataclass(frozen=True, slots=True)
class Registration:
    """A named upstream, the shard whose master composes it, and its registered users."""

    upstream: NamedUpstream
    shard: str
    held_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registry:
    """All named upstreams, of all shards. ``unreadable``: the ones that this release does not understand."""

    version: int = 0
    entries: Mapping[str, Registration] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()

    @property
    def named(self) -> dict[str, NamedUpstream]:
        """The configurations alone."""
        return {name: entry.upstream for name, entry in self.entries.items()}

    def of_cluster(self, cluster: str) -> list[str]:
        """Names of those that refer directly to a Service of a cluster."""
        return [
            name
            for name, entry in sorted(self.entries.items())
            if any(source.key.cluster == cluster for source in entry.upstream.services)
        ]

    def including(self, name: str) -> list[str]:
        """Names of those that include another one directly."""
        return [other for other, entry in sorted(self.entries.items()) if name in entry.upstream.includes]


class NamedUpstreamTable:
    """Reads and changes the registry; reads marks and builds their writes. A master writes only marks, in its own transactions (I2)."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- the registry ---

    def version(self) -> int:
        """The registry's version; 0 if there never was a named upstream."""
        item = self._store.get(_REGISTRY)
        return 0 if item is None else cast(int, item["version"])

    def read(self) -> Registry:
        """Everything that is registered. An entry that cannot be read does not stop the others (I4).

        A change during the read may or may not be included. In both cases its mark exists, and it moves the version.
        """
        version = 0
        entries: dict[str, Registration] = {}
        unreadable: set[str] = set()

        def left_alone(newer: NewerSchemaError) -> None:
            if newer.sort == _REGISTRY.sort:
                raise newer
            logger.error("named upstream cannot be read", upstream=newer.sort, reason=str(newer))
            unreadable.add(newer.sort)

        for item in readable(iter(self._store.query(CONTROL, _PARTITION)), left_alone):
            name = cast(str, item["sk"])
            if name == _REGISTRY.sort:  # sorts before every name, so it is read first
                version = cast(int, item["version"])
                continue
            try:
                entries[name] = _parse(name, item)
            except ValueError as error:
                logger.error("named upstream cannot be read", upstream=name, reason=_line(error))
                unreadable.add(name)
        return Registry(version, entries, frozenset(unreadable))

    def put(self, wanted: Registration, registry: Registry, only_if: Sequence[Check] = ()) -> None:
        """Register or replace a named upstream, and mark that it has to be composed.

        Args:
            registry: as read; the change was decided with it.
            only_if: further conditions of the write, such as unchanged clusters.

        Raises:
            UsageError: it conflicts with the others, or something changed meanwhile.
        """
        name = wanted.upstream.name
        self._refuse_unreadable(name, registry)
        if reason := why_not(wanted.upstream, registry.named):
            raise UsageError(reason)
        _refuse_other_shards(wanted, registry)
        known = registry.entries.get(name)
        held_by = known.held_by if known is not None else ()
        actions: list[Action] = [_put(replace(wanted, held_by=held_by), registry.version + 1), *only_if]
        self._change(registry, [*actions, self.mark(wanted.shard, named_key(name), registry.version + 1)])

    def remove(self, name: str, registry: Registry) -> None:
        """Remove a named upstream. The master then marks it as removed in the upstreams table.

        Raises:
            UsageError: something refers to it, or something changed meanwhile.
        """
        entry = self.known(name, registry)
        if others := registry.including(name):
            raise UsageError(
                f"named upstream {name} is included in {', '.join(others)}: "
                "remove it there first (`kubesync upstream add ... --replace`)"
            )
        if entry.held_by:
            raise UsageError(
                f"named upstream {name} is held by {', '.join(entry.held_by)}: "
                f"`kubesync upstream release {name} --by WHO` when it is no longer used"
            )
        gone: list[Action] = [Delete(Key(CONTROL, _PARTITION, name))]
        self._change(registry, [*gone, self.mark(entry.shard, named_key(name), registry.version + 1)])

    def hold(self, name: str, who: str, registry: Registry) -> bool:
        """Record that somebody uses it. False: that was recorded already. Raises UsageError."""
        entry = self.known(name, registry)
        if who in entry.held_by:
            return False
        if len(entry.held_by) >= _MAX_HOLDERS:
            raise UsageError(f"named upstream {name} is held by {_MAX_HOLDERS} already, the highest number possible")
        held_by = tuple(sorted((*entry.held_by, who)))
        self._change(registry, [_put(replace(entry, held_by=held_by), registry.version + 1)])
        return True

    def release(self, name: str, who: str, registry: Registry) -> None:
        """Record that somebody no longer uses it. Raises UsageError."""
        entry = self.known(name, registry)
        if who not in entry.held_by:
            held = ", ".join(entry.held_by) or "nobody"
            raise UsageError(f"named upstream {name} is not held by {who!r}, but by {held}")
        held_by = tuple(other for other in entry.held_by if other != who)
        self._change(registry, [_put(replace(entry, held_by=held_by), registry.version + 1)])

    @staticmethod
    def unchanged(registry: Registry) -> Check:
        """A condition for a transaction that was decided with this registry."""
        return Check(_REGISTRY, _guard(registry))

    def known(self, name: str, registry: Registry) -> Registration:
        """The registration of a name. Raises UsageError if there is none."""
        self._refuse_unreadable(name, registry)
        if name not in registry.entries:
            known = ", ".join(sorted(registry.entries)) or "none yet, see `kubesync upstream add --help`"
            raise UsageError(f"there is no named upstream {name!r}; registered: {known}")
        return registry.entries[name]

    @staticmethod
    def _refuse_unreadable(name: str, registry: Registry) -> None:
        if name in registry.unreadable:
            raise UsageError(f"named upstream {name} was written by a newer release of kubesync: upgrade this one")

    def _change(self, registry: Registry, actions: Iterable[Action]) -> None:
        moved = Put(_REGISTRY, {"v": SCHEMA, "version": registry.version + 1}, _guard(registry))
        try:
            self._store.transact([moved, *actions], secrets.token_hex(16))
        except TransactionRefusedError as refused:
            what = "named upstreams were" if 0 in refused.failed else "a cluster was"
            raise UsageError(f"{what} changed by somebody else meanwhile: try again") from refused

    # --- marks ---

    @staticmethod
    def mark(shard: str, upstream: str, version: int) -> Put:
        """Mark durably that everything made of an upstream has to be composed again."""
        return Put(_mark_key(shard, upstream), {"v": SCHEMA, "version": version})

    @staticmethod
    def unmark(shard: str, upstream: str, version: int) -> Delete:
        """Remove a mark, if it is unchanged since it was read."""
        return Delete(_mark_key(shard, upstream), (Equals("version", version),))

    def marks(self, shard: str) -> dict[str, int]:
        """All marks of a shard: upstreams and their versions."""
        found = self._store.query(CONTROL, f"named-marks#{shard}")
        return {cast(str, item["sk"]): cast(int, item["version"]) for item in found}


def is_mark(action: Action) -> bool:
    """Whether a write is a mark for the composer."""
    return action.key.table == CONTROL and action.key.partition.startswith("named-marks#")


def member_text(member: Member) -> dict[str, str | int | bool]:
    """A member as it is stored and shown, without default values."""
    weight = {} if member.weight == 1 else {"weight": member.weight}
    backup = {"backup": True} if member.backup else {}
    return {_kind(member.source): _reference(member.source), **weight, **backup}


def _kind(source: Source) -> str:
    match source:
        case ServicePortOf():
            return "service"
        case NamedOf():
            return "upstream"
        case StaticNode():
            return "static"


def _reference(source: Source) -> str:
    return source.name if isinstance(source, NamedOf) else str(source)


def _mark_key(shard: str, upstream: str) -> Key:
    return Key(CONTROL, f"named-marks#{shard}", upstream)


def _guard(registry: Registry) -> tuple[Absent | Equals, ...]:
    return (Equals("version", registry.version),) if registry.version else (Absent(),)


def _put(entry: Registration, revision: int) -> Put:
    members = tuple(_MemberDocument.model_validate(member_text(member)) for member in entry.upstream.members)
    document = _Document(members=members).model_dump_json(exclude_defaults=True)
    fields: Item = {
        "v": SCHEMA,
        "revision": revision,
        "shard": entry.shard,
        "document": document,
        "held_by": list(entry.held_by),
    }
    return Put(Key(CONTROL, _PARTITION, entry.upstream.name), fields)


def _parse(name: str, item: Item) -> Registration:
    schema = cast(int, item["v"])
    if schema > SCHEMA:
        raise ValueError(f"schema {schema} is newer than this release")
    document = _Document.model_validate_json(cast(str, item["document"]))
    members = tuple(Member(_source(each), each.weight, each.backup) for each in document.members)
    holders = tuple(cast("list[str]", item["held_by"]))
    return Registration(NamedUpstream(name, members), cast(str, item["shard"]), holders)


def _source(member: _MemberDocument) -> Source:
    if member.service:
        return parse_service(member.service)
    return NamedOf(member.upstream) if member.upstream else parse_static(member.static)


def _refuse_other_shards(wanted: Registration, registry: Registry) -> None:
    name = wanted.upstream.name
    known = registry.entries.get(name)
    if known is not None and known.shard != wanted.shard:
        raise UsageError(
            f"named upstream {name} belongs to shard {known.shard}: remove it, and add it again once "
            f"`kubesync upstreams` lacks it"
        )
    for include in wanted.upstream.includes:
        if registry.entries[include].shard != wanted.shard:
            raise UsageError(
                f"named upstream {include} belongs to shard {registry.entries[include].shard}, "
                f"{name} to shard {wanted.shard}: all that is behind a named upstream must belong to one"
            )


def _line(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)
