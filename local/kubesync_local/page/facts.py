"""What the page keeps of a cluster's Services: counts, a row for each, and whatever is not as wanted. Pure: states in, facts out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kubesync.aws.tables.audit import describe
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.upstreams import timestamp
from kubesync.domain.objects import EndpointsObject
from kubesync.domain.reasons import advice_for
from kubesync.domain.sources.registry import KINDS
from kubesync.domain.state import KeyState
from kubesync_local.commands.show.records import rows_of
from kubesync_local.documents.kinds import has_object
from kubesync_local.documents.problem_order import in_order
from kubesync_local.recovery.conflict_words import in_the_way_for_people
from kubesync_local.terminal.output import side_in_words

# A cluster in which everything fails must not fill the memory: counts stay exact beyond these.
MAX_PENDING: Final = 2_000
MAX_PROBLEMS: Final = 2_000
_UNNAMED: Final = ""
OF_NAME: Final = "\x1f"
# The first that a record set of the name has counts.
_STATES: Final = ("conflict", "held", "open", "kept", "waiting")


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """One object in lists and in searches.

    Args:
        path: ``namespace/name`` or ``namespace/Kind:name``.
        kind: of a Service its type; empty: the object is not there.
        state: ``conflict``, ``held``, ``open``, ``problem`` or ``closed``: the first that is true.
        words: its names and addresses in lower case, one a line. After a name that it wants or has: ``OF_NAME`` and the state of that name, as
            ``kubesync records`` says it; nothing: ``applied``.
    """

    path: str
    kind: str
    state: str
    record_sets: int
    upstreams: int
    codes: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """A cluster as it was read. ``pending`` are rows of ``kubesync records`` that are not as wanted; ``problems`` are those of status.

    ``held``: by listener, how many deletions are held back. ``sets_in_zone``: record sets that are written, by zone id.
    """

    cluster: str
    read_at: float
    seconds: float
    services: tuple[ServiceRow, ...]
    service_count: int
    record_sets: int
    upstreams: int
    states: Mapping[str, int]
    held: Mapping[str, int]
    problem_counts: Mapping[str, int]
    problems: tuple[dict[str, Any], ...]
    pending_counts: Mapping[str, int]
    pending: tuple[dict[str, Any], ...]
    sets_in_zone: Mapping[str, int]

    def without_services(self) -> ClusterFacts:
        """The same without the rows, to save memory."""
        return replace(self, services=())

    @property
    def has_services(self) -> bool:
        """Whether the rows are there."""
        return len(self.services) == self.service_count


@dataclass(slots=True)
class FactsReader:
    """Collects the facts of one cluster, some states at a time."""

    config: ClusterConfig
    _services: list[ServiceRow] = field(default_factory=list)
    _record_sets: int = 0
    _upstreams: int = 0
    _states: Counter[str] = field(default_factory=Counter)
    _held: Counter[str] = field(default_factory=Counter)
    _problem_counts: Counter[str] = field(default_factory=Counter)
    _problems: list[dict[str, Any]] = field(default_factory=list)
    _pending_counts: Counter[str] = field(default_factory=Counter)
    _pending: list[dict[str, Any]] = field(default_factory=list)
    _sets_in_zone: Counter[str] = field(default_factory=Counter)

    def add(self, states: Iterable[KeyState]) -> None:
        """Add some keys. Tombstones alone are no object, and shared objects have no rows."""
        for state in states:
            if KINDS[state.key.kind].shared:
                self._add_problems(state)
            elif not state.bare:
                self._add(state)

    def _add(self, state: KeyState) -> None:
        row = _row(state, self.config)
        self._services.append(row)
        self._record_sets += len(state.applied)
        self._upstreams += len(state.upstreams)
        self._states[row.state] += 1
        self._sets_in_zone.update(key.zone_id for key in state.applied)
        self._add_problems(state)
        for pending in _pending(state, self.config) if row.state != "closed" or state.intended != state.applied else ():
            self._pending_counts[pending["state"]] += 1
            if len(self._pending) < MAX_PENDING:
                self._pending.append(pending)

    def _add_problems(self, state: KeyState) -> None:
        self._held.update(part_id.resource.value for part_id, part in state.parts.items() if part.held)
        self._problem_counts.update(problem.code for problem in state.problems)
        for problem in in_order(state.problems) if len(self._problems) < MAX_PROBLEMS else ():
            message = in_the_way_for_people(problem.message)
            told = {"code": problem.code, "subject": problem.subject, "message": message}
            self._problems.append({"service": str(state.key), **told, "advice": advice_for(problem.code)})

    def done(self, read_at: float, seconds: float) -> ClusterFacts:
        """The facts. ``read_at``: epoch seconds at which reading began; ``seconds``: how long it took."""
        return ClusterFacts(
            cluster=self.config.name,
            read_at=read_at,
            seconds=seconds,
            services=tuple(sorted(self._services, key=lambda row: row.path)),
            service_count=len(self._services),
            record_sets=self._record_sets,
            upstreams=self._upstreams,
            states=dict(self._states),
            held=dict(sorted(self._held.items())),
            problem_counts=dict(self._problem_counts),
            problems=tuple(self._problems),
            pending_counts=dict(self._pending_counts),
            pending=tuple(self._pending),
            sets_in_zone=dict(self._sets_in_zone),
        )


def _row(state: KeyState, config: ClusterConfig) -> ServiceRow:
    codes = {problem.code for problem in state.problems}
    if state.opened is not None and state.opened.code:
        codes.add(state.opened.code)
    return ServiceRow(
        path=state.key.path,
        kind=_kind(state),
        state=_word(state),
        record_sets=len(state.applied),
        upstreams=len(state.upstreams),
        codes=tuple(sorted(codes)),
        words="\n".join(dict.fromkeys((*_names(state, config), *_words(state)))).lower(),
    )


def _kind(state: KeyState) -> str:
    if (service := state.service) is not None:
        return "headless" if service.headless else service.type
    return state.key.kind if has_object(state) else _UNNAMED


# | names in conflict | a part is held | open | problems | state    |
# | ----------------- | -------------- | ---- | -------- | -------- |
# | yes               |                |      |          | conflict |
# | no                | yes            |      |          | held     |
# | no                | no             | yes  |          | open     |
# | no                | no             | no   | yes      | problem  |
# | no                | no             | no   | no       | closed   |
def _word(state: KeyState) -> str:
    if state.conflicts:
        return "conflict"
    if any(part.held for part in state.parts.values()):
        return "held"
    if state.opened is not None:
        return "open"
    return "problem" if state.problems else "closed"


def _names(state: KeyState, config: ClusterConfig) -> Iterator[str]:
    """Its names, each with the state of that name: another one of the same Service may be in conflict, or wait."""
    words = {name.name: "waiting" for name in state.waits} | {name.name: "conflict" for name in state.conflicts}
    if state.opened is not None or state.intended != state.applied or any(part.held for part in state.parts.values()):
        for row in rows_of(state, config):
            before = words.get(row["name"], "")
            if row["state"] in _STATES and (
                before not in _STATES or _STATES.index(row["state"]) < _STATES.index(before)
            ):
                words[row["name"]] = row["state"]
    for name in dict.fromkeys(key.name for sets in (state.intended, state.applied) for key in sets):
        words.setdefault(name, "")
    yield from (f"{name}{OF_NAME}{word}" for name, word in words.items())


def _words(state: KeyState) -> Iterator[str]:
    """Whatever else a person may search a Service by, besides its key."""
    for sets in (state.intended, state.applied):
        for key, record_set in sets.items():
            yield from (value for value in record_set.values if key.type != "SRV")
            if record_set.alias is not None:
                yield record_set.alias.name
    for part in state.parts.values():
        if isinstance(part.value, EndpointsObject):
            yield from (endpoint.ip for group in part.value.groups for endpoint in group.endpoints)
    if state.service is not None:
        yield from (ip for ip in state.service.cluster_ips if ip != "None")
        yield from (*state.service.ingress_ips, *state.service.ingress_hostnames)


def _pending(state: KeyState, config: ClusterConfig) -> Iterator[dict[str, Any]]:
    """The record sets of a key that are not as wanted, or wait for a person: rows of ``kubesync records`` with both sides in words."""
    retry_at = state.opened.retry_at if state.opened is not None else 0.0
    keys = sorted(state.intended.keys() | state.applied.keys())
    for key, row in zip(keys, rows_of(state, config), strict=True):
        if row["state"] != "applied":
            current, wanted = state.applied.get(key), state.intended.get(key)
            sides = {
                "current": None if current is None else side_in_words(describe(current)),
                "wanted": None
                if wanted is None
                else "the same"
                if wanted == current
                else side_in_words(describe(wanted)),
                "retry_at": timestamp(retry_at) if retry_at else None,
            }
            yield (
                {name: row[name] for name in ("zone", "name", "type", "service", "state")}
                | {"reason": in_the_way_for_people(row["reason"])}
                | sides
                | {"identifier": key.identifier}
            )
