"""The registry of named upstreams, and the marks of upstreams that have to be composed again.

control table
partition                sort                 holds
---------                ----                 -----
named-upstreams          #registry            version: +1 at each change of any named upstream
named-upstreams          <name>               document, shard, revision (the registry's version of its last change), held_by
named-marks#<shard>      <upstream>           version: of the upstream when the mark was made

Only people change the registry, with the command. The same transaction moves its one version and leaves a mark for the master.

A mark names a Service's upstream that has changed, or a named upstream whose configuration has. The composer removes the marks that
it has read, each only if it is unchanged: its version moves with every marked change.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kubesync.aws.dynamodb.store import CONTROL, Action, Delete, Equals, Item, Key, Put
from kubesync.aws.tables.control.clusters import explain
from kubesync.aws.tables.items import Table, put, readable
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.upstreams.named import (
    MAX_WEIGHT,
    Member,
    MemberSource,
    Named,
    NamedOf,
    NamedUpstream,
    parse_service,
    parse_static,
)

# A child of the functions' Logger, by its name. Commands import this file too: Powertools would be a tenth of their start.
logger = logging.getLogger(f"kubesync.{__name__}")

PARTITION: Final = "named-upstreams"
REGISTRY: Final = Key(CONTROL, PARTITION, "#registry")


class MemberDocument(BaseModel):
    """A member as it is stored: exactly one of ``service``, ``upstream`` and ``static``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    service: str = ""
    upstream: str = ""
    static: str = ""
    weight: Annotated[int, Field(ge=1, le=MAX_WEIGHT)] = 1
    backup: bool = False


class Document(BaseModel):
    """The members as they are stored, in JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    members: tuple[MemberDocument, ...]


@dataclass(frozen=True, slots=True)
class Registry:
    """All named upstreams, of all shards. ``unreadable``: the ones that this release does not understand."""

    version: int = 0
    named: Named = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()


class NamedUpstreamTable(Table):
    """Reads the registry; reads marks and builds their writes. A master writes only marks, in its own transactions (I2)."""

    def version(self) -> int:
        """The registry's version; 0 if there never was a named upstream."""
        item = self._store.get(REGISTRY)
        return 0 if item is None else item["version"]

    def read(self) -> Registry:
        """Everything that is registered. An entry that cannot be read does not stop the others (I4).

        A change during the read may or may not be included. In both cases its transaction has left a mark and moved the version, and so the composer
        reads again.
        """
        version = 0
        named: dict[str, NamedUpstream] = {}
        unreadable: set[str] = set()

        def left_alone(newer: NewerSchemaError) -> None:
            # Without the registry's own item nothing is known; without one entry the others are.
            if newer.sort == REGISTRY.sort:
                raise newer
            logger.error("named upstream cannot be read", extra={"upstream": newer.sort, "reason": str(newer)})
            unreadable.add(newer.sort)

        for item in readable(iter(self._store.query(CONTROL, PARTITION)), left_alone):
            name = item["sk"]
            if name == REGISTRY.sort:  # sorts before every name, so it is read first
                version = item["version"]
                continue
            try:
                named[name] = _parse(name, item)
            except ValueError as error:
                said = explain(error) if isinstance(error, ValidationError) else str(error)
                logger.error("named upstream cannot be read", extra={"upstream": name, "reason": said})
                unreadable.add(name)
        return Registry(version, named, frozenset(unreadable))

    @staticmethod
    def mark(shard: str, upstream: str, version: int) -> Put:
        """Mark durably that everything made of an upstream has to be composed again."""
        return put(_mark_key(shard, upstream), version=version)

    @staticmethod
    def unmark(shard: str, upstream: str, version: int) -> Delete:
        """Remove a mark, if it is unchanged since it was read."""
        return Delete(_mark_key(shard, upstream), (Equals("version", version),))

    def marks(self, shard: str) -> dict[str, int]:
        """All marks of a shard: upstreams and their versions."""
        found = self._store.query(CONTROL, f"named-marks#{shard}")
        return {item["sk"]: item["version"] for item in found}


def is_mark(action: Action) -> bool:
    """Whether a write is a mark for the composer."""
    return action.key.table == CONTROL and action.key.partition.startswith("named-marks#")


def _mark_key(shard: str, upstream: str) -> Key:
    return Key(CONTROL, f"named-marks#{shard}", upstream)


def _parse(name: str, item: Item) -> NamedUpstream:
    """The named upstream that an item holds. Raises ValueError."""
    document = Document.model_validate_json(item["document"])
    members = tuple(Member(_source(each), each.weight, each.backup) for each in document.members)
    return NamedUpstream(name, members, item["shard"], tuple(item["held_by"]))


def _source(member: MemberDocument) -> MemberSource:
    """What a member names: a Service's upstream, another named upstream, or fixed addresses. It names exactly one: commands see to it.

    Raises ValueError.
    """
    if member.service:
        return parse_service(member.service)
    return NamedOf(member.upstream) if member.upstream else parse_static(member.static)


class NamedReferrals:
    """Which upstreams the named upstreams of a shard are made of. Planning a Service asks it, so that changes get a mark (I1).

        reconciler, any cluster                     composer
        -----------------------                     --------
        plans a Service, asks for marks
        writes its upstream and the mark ──────>    wakes up, reads marks, composes, removes the marks

    The transaction that writes a Service's upstream also writes the mark. If a master ends in between, the next one finds it. An
    upstream that no named upstream refers to gets no mark (I6). The threads of all clusters read it; the composer replaces the index as a whole.

    ``index``: maps each upstream, of a Service or named, to the names that have to be composed when it changes. ``on_note``: wakes the composer,
    which sets it.
    """

    def __init__(self, shard: str = "0") -> None:
        self._shard = shard
        self.index: Mapping[str, frozenset[str]] = {}
        self.on_note: Callable[[], None] = lambda: None

    def follow(self, index: Mapping[str, frozenset[str]]) -> frozenset[str]:
        """Use this index from now on. Returns the upstreams that are referred to for the first time."""
        before, self.index = self.index, index
        return frozenset(index.keys() - before.keys())

    def marks(self, upstream: str, version: int) -> tuple[Action, ...]:
        """The marks to write together with this version of a Service's upstream."""
        if upstream not in self.index:
            return ()
        return (NamedUpstreamTable.mark(self._shard, upstream, version),)

    def wake_composer(self, actions: Iterable[Action]) -> None:
        """Wake the composer, if these actions have marks for it. Called after their transaction, also if nobody knows whether it was written."""
        if any(map(is_mark, actions)):
            self.on_note()
