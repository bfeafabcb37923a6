"""What kubesync remembers of one service key: parts (what was seen), outputs (what it leads to), and what is still open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.objects import EndpointsObject, Resource, Service, ServiceKey

EMPTY: Final[Mapping[RecordKey, RecordSet]] = MappingProxyType({})
CONFLICT_LOOK_SECONDS: Final = 3600.0
"""So often, at least, names in conflict are looked at. Sooner at first, at once by a resync or with news of the key."""
SETTLED_ATTEMPTS: Final = 11
"""From so many on the waits between two looks (5 s, doubling) are ``CONFLICT_LOOK_SECONDS``, and the mark is not written any more."""


@dataclass(frozen=True, slots=True, order=True)
class PartId:
    """Names a part within its key: the listener's resource and the object's own name."""

    resource: Resource
    name: str


@dataclass(frozen=True, slots=True)
class Part:
    """What one listener last saw of one object.

    ``value`` is the last state that could be understood. ``deleted``: a tombstone (``value`` is None), kept so that an older
    event cannot bring the object back. ``problem``: why the newest version could not be understood. ``held``: a list
    did not hold the object any more, and its deletion waits for a person or for the object (I5).
    """

    uid: str
    resource_version: int
    generation: int
    value: Service | EndpointsObject | None
    deleted: bool = False
    problem: str = ""
    held: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """A name in a zone: what a claim is about. Sets with a set identifier are claimed by name and identifier."""

    zone_id: str
    name: str
    identifier: str = ""

    @classmethod
    def of(cls, key: RecordKey) -> Name:
        """The name at which a record set stands."""
        return cls(key.zone_id, key.name, key.identifier)

    @property
    def label(self) -> str:
        """For people: name, identifier where there is one, and zone."""
        of_set = f" [{self.identifier}]" if self.identifier else ""
        return f"{self.name}{of_set} in {self.zone_id}"


@dataclass(frozen=True, slots=True)
class UpstreamState:
    """An upstream as last written: its version (+1 at each change), the digest of its nodes and its number of slices."""

    version: int
    digest: str
    slices: int


@dataclass(frozen=True, slots=True)
class OpenMark:
    """Why a key is still open. ``retry_at`` is in epoch seconds; 0 means at once.

    ``reason`` and ``code`` (of ``domain.reasons``) say what was in the way at the last try, ``cause`` what opened the key:
    such as ``watch services/web@1234``.
    """

    attempts: int = 0
    retry_at: float = 0.0
    reason: str = ""
    code: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True)
class KeyState:
    """One service key. ``version`` is that of its item, 0 where there is none yet.

    ``claims`` are the names it owns, ``waits`` those it wants and another key owns, ``conflicts`` those where a set stands that
    is not ours, with the reason: their claim was let go, and they are read again before they join a batch (I3).
    ``slices`` counts the items that hold it in the table.
    """

    key: ServiceKey
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

    def live(self, resource: Resource) -> Iterator[tuple[PartId, Part]]:
        """Parts of one listener that are not tombstones."""
        for part_id, part in self.parts.items():
            if part_id.resource is resource and not part.deleted:
                yield part_id, part

    @property
    def service(self) -> Service | None:
        """The Service as last understood, None where there is none."""
        part = self.parts.get(PartId(Resource.SERVICES, self.key.name))
        return part.value if part is not None and isinstance(part.value, Service) else None

    def endpoints(self, source: Resource) -> tuple[EndpointsObject, ...]:
        """The endpoints objects of one source, in the order of their names."""
        found = [(part_id, part.value) for part_id, part in self.parts.items() if part_id.resource is source]
        return tuple(value for _, value in sorted(found, key=lambda f: f[0].name) if isinstance(value, EndpointsObject))

    @property
    def settled(self) -> bool:
        """It was refused so often that its mark says nothing of the last look any more; names in conflict are meant."""
        return self.opened is not None and self.opened.attempts >= SETTLED_ATTEMPTS

    def tried_next(self, looked_at: Mapping[str, float]) -> float:
        """When it is tried again, or its names in conflict are looked at (epoch seconds); 0: at once, or nothing is to be tried.

        Args:
            looked_at: since when (epoch seconds) all that has settled in a zone was looked at.
        """
        at = 0.0 if self.opened is None else self.opened.retry_at
        if not (self.settled and self.conflicts):
            return at
        return max(at, min(looked_at.get(name.zone_id, 0.0) for name in self.conflicts) + CONFLICT_LOOK_SECONDS)

    @property
    def tombstoned(self) -> bool:
        """Deleted objects are remembered until no event can contradict that any more."""
        return any(part.deleted for part in self.parts.values())

    @property
    def bare(self) -> bool:
        """Nothing is left that would have to be remembered, tombstones aside."""
        return not (
            self.intended
            or self.applied
            or self.upstreams
            or self.claims
            or self.waits
            or any(not part.deleted for part in self.parts.values())
        )


def names_of(record_sets: Mapping[RecordKey, RecordSet]) -> frozenset[Name]:
    """The names at which these record sets stand."""
    return frozenset(map(Name.of, record_sets))
