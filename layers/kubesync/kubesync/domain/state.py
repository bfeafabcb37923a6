"""What kubesync remembers of one key: parts (what it saw), outputs (what they lead to), and what is still open.

Words of this file:

    claim    the right of one key to have record sets at a name: those with one set identifier, or with one seat (``Name``). Another key
             that wants it waits, or shares the name (``KeyState.shared``)
    place    zone id and name, without set identifier: claims of several keys may be at one place
    form     what all sets at a place must have in common (``Form``)
    turn     a claim turns if its sets get another form, such as latency instead of weighted. All sets at the place have to turn in one
             batch, also those of other keys (ADR 0072)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kubesync.domain.dns.records import Held, Problem, RecordChange, RecordKey, RecordSet
from kubesync.domain.objects import EMPTY_SET, EndpointsObject, ObjectKey, Resource, Service

EMPTY: Final[Mapping[RecordKey, RecordSet]] = MappingProxyType({})
CONFLICT_CHECK_SECONDS: Final = 3600.0
"""How far conflict checks of a name are apart in the end; twice as far at worst (``zone.check_schedule``). The first come sooner; a resync or
news of the key brings one at once."""
HOURLY_ATTEMPTS: Final = 11
"""From this many attempts on, a key is ``checked_hourly``; before, its checks are 5 s apart, doubling."""

_SETS: Final = ("claims", "waits", "reads", "kept", "shared", "passing")  # fields of ``KeyState``: its frozen sets


@dataclass(frozen=True, slots=True, order=True)
class PartId:
    """Identifies a part within its key: the listener's resource and the object's own name."""

    resource: Resource
    name: str


@dataclass(frozen=True, slots=True)
class Part:
    """What one listener last saw of one object.

    ``generation`` counts how often the versions of the listener's resource began anew, because the store of the API server was restored or
    replaced. It is not the object's ``metadata.generation``. Versions of two generations cannot be compared.
    ``value`` is the last state that could be understood. ``deleted``: a tombstone (``value`` is None), which prevents an older
    event from bringing the object back. ``problem``: why the newest version could not be understood. ``held``: a list
    lacked the object, and its deletion waits until a person confirms it or the object reappears (I5).
    """

    uid: str
    resource_version: int
    generation: int
    value: object | None
    deleted: bool = False
    problem: str = ""
    held: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """A name in a zone: the subject of a claim. Sets with a set identifier are claimed by name and identifier.

    ``seat``: what of a routing policy only one set may have, such as ``latency eu-west-1``. It is claimed besides, without identifier.
    """

    zone_id: str
    name: str
    identifier: str = ""
    seat: str = ""

    @classmethod
    def of(cls, key: RecordKey) -> Name:
        """The name that a record set needs a claim of."""
        return cls(key.zone_id, key.name, key.identifier)

    @property
    def place(self) -> tuple[str, str]:
        """The zone id and the name itself. Claims of several keys may have the same: those for other set identifiers, and those of seats."""
        return self.zone_id, self.name

    @property
    def label(self) -> str:
        """For people: the name, its set identifier or its seat if any, and its zone."""
        of_set = f" [{self.identifier}]" if self.identifier else f" ({self.seat})" if self.seat else ""
        return f"{self.name}{of_set} in {self.zone_id}"


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """A shared object that a key reads, whether or not it exists. ``namespace`` is empty where the kind has none."""

    kind: str
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """``kind/namespace/name``."""
        return f"{self.kind}/{self.namespace}/{self.name}"

    @classmethod
    def at(cls, path: str) -> Reference:
        """The inverse of ``path``."""
        return cls(*path.split("/", 2))


@dataclass(frozen=True, slots=True)
class UpstreamState:
    """An upstream as last written: its version (+1 at each change), the digest of its nodes and its number of slices."""

    version: int
    digest: str
    slices: int


@dataclass(frozen=True, slots=True)
class OpenMark:
    """Why a key is still open. ``retry_at`` is in epoch seconds; 0 means at once.

    ``reason`` and ``code`` (of ``domain.reasons``) say why the last try failed. ``cause`` says what opened the key,
    such as ``watch services/web@1234``. ``since``: when it was opened (epoch seconds); 0: an older release did not note it.
    """

    attempts: int = 0
    retry_at: float = 0.0
    reason: str = ""
    code: str = ""
    cause: str = ""
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class KeyState:
    """One service key. ``version`` is the version of its item; 0: there is no item yet.

    ``claims`` are the names that it owns. ``waits`` are wanted names that another key owns. ``conflicts`` are names where a foreign
    set stands, with the reason: the key let go of their claims, and a check reads these names before they join a batch (I3).
    ``slices`` counts the items that hold the key in the table. ``reads``: shared objects that its plan depends on. ``kept``: intended record
    sets that a changed configuration, or new rules, no longer want, and whose deletion waits until a person confirms it (I5).
    ``shared``: of its claims those that another key of its namespace owns; this one has some types there (ADR 0062). ``passing``: sets that
    go, and make room for one of another such key: both changes belong into one batch.
    """

    key: ObjectKey
    version: int = 0
    parts: Mapping[PartId, Part] = field(default_factory=dict)
    intended: Mapping[RecordKey, RecordSet] = EMPTY
    applied: Mapping[RecordKey, RecordSet] = EMPTY
    upstreams: Mapping[str, UpstreamState] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    claims: frozenset[Name] = frozenset()
    waits: frozenset[Name] = frozenset()
    conflicts: Mapping[Name, str] = field(default_factory=dict)
    opened: OpenMark | None = None
    slices: int = 0
    reads: frozenset[Reference] = frozenset()
    kept: frozenset[RecordKey] = frozenset()
    shared: frozenset[Name] = frozenset()
    passing: frozenset[RecordKey] = frozenset()

    def slim(self) -> KeyState:
        """The same in less memory, for whoever keeps thousands: all share one empty set, and a key in sync has one mapping of its sets, not two."""
        empty: dict[str, Any] = dict.fromkeys((name for name in _SETS if not getattr(self, name)), EMPTY_SET)
        applied = self.intended if self.applied == self.intended else self.applied
        return replace(self, applied=applied, **empty)

    @property
    def holds_back(self) -> bool:
        """Whether any deletion waits until a person confirms it."""
        return bool(self.kept) or any(part.held for part in self.parts.values())

    @property
    def service(self) -> Service | None:
        """The last Service that could be understood; None where there is none."""
        part = self.parts.get(PartId(Resource.SERVICES, self.key.name))
        return part.value if part is not None and isinstance(part.value, Service) else None

    def endpoints(self, source: Resource) -> tuple[EndpointsObject, ...]:
        """The endpoints objects of one source, in the order of their names."""
        found = [(part_id, part.value) for part_id, part in self.parts.items() if part_id.resource is source]
        return tuple(value for _, value in sorted(found, key=lambda f: f[0].name) if isinstance(value, EndpointsObject))

    @property
    def checked_hourly(self) -> bool:
        """Whether it was refused so often that its names in conflict are checked only once an hour (``zone.check_schedule``).

        A check then does not rewrite the mark of the key any more. Asked only of keys with names in conflict.
        """
        return self.opened is not None and self.opened.attempts >= HOURLY_ATTEMPTS

    @property
    def set_aside(self) -> bool:
        """Whether its endpoints are not taken in, because sessions died of so many (``domain.large_keys``)."""
        return self.opened is not None and self.opened.code == "SetAside"

    @property
    def tombstoned(self) -> bool:
        """Whether it keeps tombstones (``Part``), which it does until no event can contradict them."""
        return any(part.deleted for part in self.parts.values())

    @property
    def held(self) -> Held:
        """What the key holds already, for rules that let it keep this although they would not give it now."""
        values: dict[tuple[str, str], set[str]] = {}
        for key, record_set in (*self.intended.items(), *self.applied.items()):
            values.setdefault(key.place, set()).update(record_set.values)
        digests = {name: upstream.digest for name, upstream in self.upstreams.items()}
        return Held(frozenset(claim.name for claim in self.claims), values, digests)

    @property
    def bare(self) -> bool:
        """Whether nothing is left to remember, apart from tombstones. The table deletes the key's item when these are gone, too."""
        return not (
            self.intended
            or self.applied
            or self.upstreams
            or self.claims
            or self.waits
            or any(not part.deleted for part in self.parts.values())
        )


def names_of(record_sets: Mapping[RecordKey, RecordSet]) -> frozenset[Name]:
    """The claims that these record sets need: of their names, and of their seats (``Name``)."""
    return frozenset(policies_of(record_sets))


def claims_beside_waits(state: KeyState) -> frozenset[Name]:
    """Claims that a key has at names where it waits for another claim."""
    places = {name.place for name in state.waits}
    return frozenset(name for name in state.claims if name.place in places)


class Form(NamedTuple):
    """What sets that share a name must have in common: the policy, and whether they are CNAMEs (RFC 1034 3.6.2)."""

    policy: str
    cname: bool


def form_of(key: RecordKey, record_set: RecordSet) -> Form:
    """The form of a set."""
    return Form(record_set.routing.kind, key.type == "CNAME")


def turned(before: Mapping[RecordKey, RecordSet], after: Mapping[RecordKey, RecordSet]) -> dict[Name, Form]:
    """The claims that *turn* if a key replaces its sets ``before`` by its sets ``after``, each with the form that the place gets.

    A claim turns if one of its sets in ``before`` has a set identifier, and the sets in ``after`` at the same place have another form. These
    may have other identifiers. Only sets with an identifier count: only beside these, other keys may have sets of the same form.
    """
    wanted = {key.place: form_of(key, each) for key, each in after.items() if key.identifier}
    stands = ((Name.of(key), form_of(key, each)) for key, each in before.items() if key.identifier)
    return {name: wanted[name.place] for name, form in stands if wanted.get(name.place, form) != form}


def turned_by(changes: Iterable[RecordChange]) -> dict[Name, Form]:
    """The claims that turn (``turned``) if these changes of one key are made, each with the form that the place gets."""
    changes = list(changes)
    before = {each.key: each.before for each in changes if each.before is not None}
    return turned(before, {each.key: each.after for each in changes if each.after is not None}) if before else {}


def turning(state: KeyState) -> frozenset[Name]:
    """Claims of other keys that must turn in the same batch as this key's own claims; empty: this key does not turn (ADR 0072).

    This key has a set at the place and intends another form, which Route 53 refuses while other sets have the old one. So it waits for the
    claims of all these sets. They get the new form in the same batch, or are deleted in it.
    """
    places = {name.place for name in turned(state.applied, state.intended)} if state.waits else ()
    return frozenset(name for name in state.waits if name.place in places)


def kept_sets(state: KeyState) -> Mapping[RecordKey, RecordSet]:
    """The sets that a key keeps while it waits for what it newly wants. That is usually what it intends.

    At places where it waits for others to turn (``turning``) it is what is applied: there, what it intends is the new form, which it
    could not publish yet.
    """
    back = {name.place for name in turning(state)}
    if not back:
        return state.intended
    own = {key: each for key, each in state.intended.items() if key.place not in back}
    return own | {key: each for key, each in state.applied.items() if key.place in back}


def policies_of(record_sets: Mapping[RecordKey, RecordSet]) -> dict[Name, str]:
    """The claims that these record sets need, each with the routing policy of its sets."""
    found: dict[Name, str] = {}
    for key, record_set in record_sets.items():
        found[Name.of(key)] = record_set.routing.kind
        if seat := record_set.routing.seat(key.identifier):
            found[Name(key.zone_id, key.name, "", seat)] = record_set.routing.kind
    return found


def conflict_problems(conflicts: Mapping[Name, str]) -> list[Problem]:
    """The problems to report of names where a foreign set exists (I3)."""
    return [Problem("Conflict", name.label, reason) for name, reason in conflicts.items()]


def problems_of_parts(state: KeyState) -> list[Problem]:
    """The problems to report of objects that could not be understood, or whose deletion is held back."""
    found: list[Problem] = []
    release = f"kubesync resync --cluster {state.key.cluster} --force"
    for key in state.kept:
        why = f"the configuration, or a new release, no longer wants it; `{release}` lets the deletion through"
        found.append(Problem("DeletionHeld", key.label, why))
    for part_id, part in state.parts.items():
        subject = f"{part_id.resource}/{part_id.name}"
        if part.problem:
            found.append(Problem("Unreadable", subject, part.problem))
        if part.held:
            found.append(Problem("DeletionHeld", subject, f"a list lacks it; `{release}` lets the deletion through"))
    return found
