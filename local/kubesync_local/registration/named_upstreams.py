"""Changes of the registry of named upstreams, and which of them are possible.

Every change increments the registry's version and is conditional on the version that was read. So nothing that a change is
checked against (circles, references, holders) can change meanwhile. The same transaction leaves a mark for the master.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kubesync.aws.dynamodb.store import CONTROL, Absent, Action, Check, Delete, Equals, Item, Key, Put
from kubesync.aws.tables.control.named_upstreams import (
    PARTITION,
    REGISTRY,
    Document,
    MemberDocument,
    NamedUpstreamTable,
    Registry,
)
from kubesync.aws.tables.items import SCHEMA
from kubesync.domain.errors import ChangedMeanwhileError, TransactionRefusedError, UsageError
from kubesync.domain.upstreams.named import (
    MAX_DEPTH,
    Member,
    MemberSource,
    Named,
    NamedOf,
    NamedUpstream,
    ServicePortOf,
    StaticNode,
    named_key,
    valid_name,
)

MAX_MEMBERS: Final = 200
_MAX_HOLDERS: Final = 100


class NamedRegistry(NamedUpstreamTable):
    """Reads and changes the registry."""

    def put(self, wanted: NamedUpstream, registry: Registry, only_if: Sequence[Check] = ()) -> None:
        """Register or replace a named upstream, and mark that it has to be composed.

        Args:
            registry: as read; the change was decided with it.
            only_if: further conditions of the write, such as unchanged clusters.

        Raises:
            UsageError: it conflicts with the others.
            ChangedMeanwhileError: the registry or a cluster was changed since it was read.
        """
        name = wanted.name
        self._refuse_unreadable(name, registry)
        if reason := why_not(wanted, registry.named):
            raise UsageError(reason)
        _refuse_other_shards(wanted, registry)
        known = registry.named.get(name)
        held_by = known.held_by if known is not None else ()
        actions: list[Action] = [_put(replace(wanted, held_by=held_by), registry.version + 1), *only_if]
        self._change(registry, [*actions, self.mark(wanted.shard, named_key(name), registry.version + 1)])

    def remove(self, name: str, registry: Registry) -> None:
        """Remove a named upstream. The master then marks it as removed in the upstreams table.

        Raises:
            UsageError: something refers to it.
            ChangedMeanwhileError: the registry was changed since it was read.
        """
        entry = self.known(name, registry)
        if others := including(name, registry):
            raise UsageError(
                f"named upstream {name} is included in {', '.join(others)}: "
                "remove it there first (`kubesync upstream add ... --replace`)"
            )
        if entry.held_by:
            raise UsageError(
                f"named upstream {name} is held by {', '.join(entry.held_by)}: "
                f"`kubesync upstream release {name} --by WHO` when it is no longer used"
            )
        gone: list[Action] = [Delete(Key(CONTROL, PARTITION, name))]
        self._change(registry, [*gone, self.mark(entry.shard, named_key(name), registry.version + 1)])

    def hold(self, name: str, who: str, registry: Registry) -> bool:
        """Record that somebody uses it. False: that was recorded already. Raises UsageError or ChangedMeanwhileError."""
        entry = self.known(name, registry)
        if who in entry.held_by:
            return False
        if len(entry.held_by) >= _MAX_HOLDERS:
            raise UsageError(f"named upstream {name} is held by {_MAX_HOLDERS} already, the highest number possible")
        held_by = tuple(sorted((*entry.held_by, who)))
        self._change(registry, [_put(replace(entry, held_by=held_by), registry.version + 1)])
        return True

    def release(self, name: str, who: str, registry: Registry) -> None:
        """Record that somebody no longer uses it. Raises UsageError or ChangedMeanwhileError."""
        entry = self.known(name, registry)
        if who not in entry.held_by:
            held = ", ".join(entry.held_by) or "nobody"
            raise UsageError(f"named upstream {name} is not held by {who!r}, but by {held}")
        held_by = tuple(other for other in entry.held_by if other != who)
        self._change(registry, [_put(replace(entry, held_by=held_by), registry.version + 1)])

    @staticmethod
    def unchanged(registry: Registry) -> Check:
        """A condition for a transaction that was decided with this registry."""
        return Check(REGISTRY, _guard(registry))

    def known(self, name: str, registry: Registry) -> NamedUpstream:
        """The registration of a name. Raises UsageError if there is none."""
        self._refuse_unreadable(name, registry)
        if name not in registry.named:
            known = ", ".join(sorted(registry.named)) or "none yet, see `kubesync upstream add --help`"
            raise UsageError(f"there is no named upstream {name!r}; registered: {known}")
        return registry.named[name]

    @staticmethod
    def _refuse_unreadable(name: str, registry: Registry) -> None:
        if name in registry.unreadable:
            raise UsageError(f"named upstream {name} was written by a newer release of kubesync: upgrade this one")

    def _change(self, registry: Registry, actions: Iterable[Action]) -> None:
        moved = Put(REGISTRY, {"v": SCHEMA, "version": registry.version + 1}, _guard(registry))
        try:
            self._store.transact([moved, *actions], secrets.token_hex(16))
        except TransactionRefusedError as refused:
            what = "named upstreams were" if 0 in refused.failed else "a cluster was"
            raise ChangedMeanwhileError(f"{what} changed by somebody else meanwhile: try again") from refused


def member_text(member: Member) -> dict[str, str | int | bool]:
    """A member as it is stored and shown, without default values."""
    weight = {} if member.weight == 1 else {"weight": member.weight}
    backup = {"backup": True} if member.backup else {}
    return {_kind(member.source): _reference(member.source), **weight, **backup}


def _kind(source: MemberSource) -> str:
    match source:
        case ServicePortOf():
            return "service"
        case NamedOf():
            return "upstream"
        case StaticNode():
            return "static"


def _reference(source: MemberSource) -> str:
    return source.name if isinstance(source, NamedOf) else str(source)


def _guard(registry: Registry) -> tuple[Absent | Equals, ...]:
    return (Equals("version", registry.version),) if registry.version else (Absent(),)


def _put(entry: NamedUpstream, revision: int) -> Put:
    members = tuple(MemberDocument.model_validate(member_text(member)) for member in entry.members)
    document = Document(members=members).model_dump_json(exclude_defaults=True)
    fields: Item = {
        "v": SCHEMA,
        "revision": revision,
        "shard": entry.shard,
        "document": document,
        "held_by": list(entry.held_by),
    }
    return Put(Key(CONTROL, PARTITION, entry.name), fields)


def _refuse_other_shards(wanted: NamedUpstream, registry: Registry) -> None:
    name = wanted.name
    known = registry.named.get(name)
    if known is not None and known.shard != wanted.shard:
        raise UsageError(
            f"named upstream {name} belongs to shard {known.shard}: remove it, and add it again once "
            f"`kubesync upstreams` lacks it"
        )
    for include in wanted.includes:
        if registry.named[include].shard != wanted.shard:
            raise UsageError(
                f"named upstream {include} belongs to shard {registry.named[include].shard}, "
                f"{name} to shard {wanted.shard}: all that is behind a named upstream must belong to one"
            )


def why_not(wanted: NamedUpstream, named: Named) -> str | None:
    """Why it cannot be registered with these, in one line, or None. ``named`` may hold the version that it replaces."""
    if not valid_name(wanted.name):
        return f"{wanted.name!r} is not a name: use lower-case letters, digits and hyphens, at most 63"
    if not wanted.members:
        return f"named upstream {wanted.name} has no members: give --service, --static or --upstream"
    if len(wanted.members) > MAX_MEMBERS:
        return f"named upstream {wanted.name} has {len(wanted.members)} members: at most {MAX_MEMBERS} are possible"
    sources = [member.source for member in wanted.members]
    for source in sources:
        if sources.count(source) > 1:
            return f"{source} is given more than once"
    for include in wanted.includes:
        if include not in named and include != wanted.name:
            known = ", ".join(sorted(named)) or "none"
            return f"there is no named upstream {include!r} to include; registered: {known}"
    together = {**named, wanted.name: wanted}
    circle = _circle(wanted, together)
    if circle:
        return f"named upstream {wanted.name} would include itself: {' > '.join(circle)}"
    depths: dict[str, int] = {}
    for name in sorted(together):
        if _depth(name, together, depths) > MAX_DEPTH:
            return f"named upstream {name} would be nested more than {MAX_DEPTH} deep: give its Services directly"
    return None


def _circle(wanted: NamedUpstream, named: Named) -> tuple[str, ...]:
    """The path on which it includes itself; empty if it does not. The others hold no circle: registration checked each of them."""
    chains: list[tuple[str, ...]] = [(wanted.name, include) for include in wanted.includes]
    seen: set[str] = set()
    while chains:
        chain = chains.pop()
        last = chain[-1]
        if last == wanted.name:
            return chain
        if last in named and last not in seen:
            seen.add(last)
            chains += [(*chain, include) for include in named[last].includes]
    return ()


def _depth(name: str, named: Named, known: dict[str, int]) -> int:
    if name not in known:
        known[name] = 1  # this also ends a circle that somebody wrote by hand
        includes = named[name].includes if name in named else ()
        known[name] = 1 + max((_depth(include, named, known) for include in includes), default=0)
    return known[name]


def referring_to(registry: Registry, cluster: str) -> list[str]:
    """Names of those that refer directly to a Service of a cluster."""
    entries = sorted(registry.named.items())
    return [name for name, entry in entries if any(each.key.cluster == cluster for each in entry.services)]


def including(name: str, registry: Registry) -> list[str]:
    """Names of those that include another one directly."""
    return [other for other, entry in sorted(registry.named.items()) if name in entry.includes]
