"""A named upstream as JSON: what is registered, what each member adds now, and what the table holds."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from kubesync.actors.parallel import Map, one_by_one
from kubesync.aws.dynamodb.store import Store
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable, Registry
from kubesync.aws.tables.upstreams import StoredUpstream, UpstreamTable
from kubesync.domain.dns.records import Node, Problem
from kubesync.domain.errors import NewerSchemaError
from kubesync.domain.reasons import advice_for
from kubesync.domain.upstreams.named import Composed, Member, NamedUpstream, below, compose, named_key
from kubesync.domain.upstreams.nodes import node_of
from kubesync_local.registration.named_upstreams import including, member_text

_UNREADABLE: Final = (NewerSchemaError, KeyError, TypeError)
"""Written by a newer release, or by another program."""


class Upstreams(Protocol):
    """Reads upstreams: the table, or what was read of it."""

    def read(self, upstream: str) -> StoredUpstream | None: ...


def problems_of_named(store: Store, reads: Map = one_by_one) -> list[dict[str, Any]]:
    """The problems of all named upstreams, which belong to no cluster. An unreadable one does not hide the others.

    Each upstream is read once, however many named upstreams share it. ``reads`` makes these calls.
    """
    registry = NamedUpstreamTable(store).read()
    services = {source.upstream for entry in registry.named.values() for source in entry.services}
    upstreams = _AllRead(UpstreamTable(store), sorted({*map(named_key, registry.named), *services}), reads)
    rows: list[dict[str, Any]] = []
    for name in sorted(registry.named):
        try:
            problems = NamedDocument(name, registry, upstreams).problems()
        except _UNREADABLE as error:
            problems = [{"reason": "Unreadable", "subject": named_key(name), "message": str(error)}]
        for problem in problems:
            code = problem["reason"]
            said = {"subject": problem["subject"], "message": problem["message"], "advice": advice_for(code)}
            rows.append({"name": name, "code": code, **said})
    return rows


class _AllRead:
    """Implements ``Upstreams`` with what was read at once. One that cannot be read fails where it is asked for."""

    def __init__(self, table: UpstreamTable, names: Sequence[str], reads: Map) -> None:
        def read(name: str) -> StoredUpstream | Exception | None:
            try:
                return table.read(name)
            except _UNREADABLE as error:
                return error

        self._found = dict(zip(names, reads(read, names), strict=True))

    def read(self, upstream: str) -> StoredUpstream | None:
        found = self._found[upstream]
        if isinstance(found, Exception):
            raise found
        return found


class NamedDocument:
    """One named upstream. Every method reads the upstreams."""

    def __init__(self, name: str, registry: Registry, upstreams: Upstreams) -> None:
        self._name = name
        self._registry = registry
        self._entry = registry.named[name]
        self._upstreams = upstreams

    def row(self) -> dict[str, Any]:
        """For a list."""
        stored = self._upstreams.read(named_key(self._name))
        there = stored is not None and not stored.deleted
        return {
            "name": self._name,
            "upstream": named_key(self._name),
            "shard": self._entry.shard,
            "members": [member_text(member) for member in self._entry.members],
            "held_by": list(self._entry.held_by),
            "included_in": including(self._name, self._registry),
            "version": stored.version if stored is not None and there else None,
            "nodes": len(stored.nodes) if stored is not None and there else None,
        }

    def document(self, *, running: bool = True) -> dict[str, Any]:
        """Everything. ``state``: whether the table holds what its members lead to now; ``running``: a session is running."""
        nodes_of = self._nodes_of()
        composed = compose(self._name, self._registry.named, nodes_of)
        stored = self._upstreams.read(named_key(self._name))
        return {
            **self.row(),
            "state": _state(stored, composed, running=running),
            "members": [self._member(member, nodes_of) for member in self._entry.members],
            "nodes": [] if stored is None or stored.deleted else list(stored.nodes),
            "problems": [_problem(problem) for problem in composed.problems],
        }

    def problems(self) -> list[dict[str, str]]:
        """What is wrong with its members: ``reason``, ``subject``, ``message``."""
        self._upstreams.read(named_key(self._name))  # what the table holds must be readable too
        composed = compose(self._name, self._registry.named, self._nodes_of())
        return [_problem(problem) for problem in composed.problems]

    def _nodes_of(self) -> dict[str, Sequence[Node] | None]:
        named = self._registry.named
        sources = {source.upstream for each in below(self._name, named) for source in named[each].services}
        found = {name: self._upstreams.read(name) for name in sorted(sources)}
        return {
            name: list(map(node_of, stored.nodes))
            for name, stored in found.items()
            if stored is not None and not stored.deleted
        }

    def _member(self, member: Member, nodes_of: dict[str, Sequence[Node] | None]) -> dict[str, Any]:
        # Composed alone, so that nodes that other members also have count here too.
        alone = NamedUpstream(self._name, (member,))
        composed = compose(self._name, {**self._registry.named, self._name: alone}, nodes_of)
        problem = _problem(composed.problems[0]) if composed.problems else {}
        return {
            **member_text(member),
            "nodes": len(composed.nodes),
            "ready": sum(node.ready for node in composed.nodes),
            "reason": problem.get("reason"),
            "message": problem.get("message"),
        }


def _state(stored: StoredUpstream | None, composed: Composed, *, running: bool) -> str:
    if stored is not None and stored.holds(composed.nodes):
        plural = "" if len(composed.nodes) == 1 else "s"
        return f"version {stored.version} is current, {len(composed.nodes)} node{plural}"
    if not running and (stored is None or stored.deleted):
        return "not yet in the table; the next session writes it"
    return "being composed: if that takes longer than some seconds, see `kubesync status`"


def _problem(problem: Problem) -> dict[str, str]:
    return {"reason": problem.code, "subject": problem.subject, "message": problem.message}
