"""Compares what stands in a zone with what a key knows of it, and says what follows if they differ (I3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import KeyState, Name


class Stands(StrEnum):
    """What stands in a zone in place of a set that a key has applied, seen from this key: see ``what_stands``. The values are those of reports."""

    OURS = "as known"
    CHANGED = "changed"
    FOREIGN = "foreign"
    GONE = "missing"


def what_stands(known: RecordSet | None, stands: RecordSet | None) -> Stands:
    """What the set is that stands where ``known`` was applied (None: nothing was), or what has become of that (I3).

    known    stands                                 is
    -----    ------                                 --
    any      nothing                                gone
    nothing  a set, equal to the wanted or not      foreign
    a set    the same                               ours
    a set    another of a form that we might make   ours, changed by hand
    a set    one of a form that we never make       foreign: somebody replaced ours
    """
    if stands is None:
        return Stands.GONE
    if known is None or (stands != known and stands.foreign_form):
        return Stands.FOREIGN
    return Stands.OURS if stands == known else Stands.CHANGED


def why_foreign(key: RecordKey, record_set: RecordSet, wanted: RecordKey | None = None) -> str:
    """The reason to report for a set that is in the way of one of ours, and is not known as ours, with advice.

    Claims are by set identifier (ADR 0010). So a set with another identifier may be another object's:

    our set has                                                       the advice
    -----------                                                       ----------
    the same key (``wanted``: None), or the same set identifier       take it over, remove it, or choose another name
    the same type, and only one of the two has a set identifier       an identifier for all, or for none
    another type and another set identifier                           another name for one of the two: a CNAME excludes all

    Args:
        key, record_set: the set that stands there.
        wanted: the key of our set, which cannot stand beside it. None: both have the same key.
    """
    shown = (
        record_set.foreign_form
        or ", ".join(record_set.values[:3])
        or (record_set.alias.name if record_set.alias else "")
    )
    if wanted is not None and wanted.type == key.type and bool(wanted.identifier) != bool(key.identifier):
        return (
            f"{key.label} stands there ({shown}), and sets with and without an identifier exclude each other: give every Service that "
            "wants the name a set-identifier, or none; remove what is nobody's"
        )
    if wanted is not None and wanted.identifier != key.identifier and wanted.type != key.type:
        return (
            f"{key.label} stands there ({shown}), and a CNAME excludes every other set: where another Service has it, choose "
            "another name for one of the two; remove what is nobody's"
        )
    return (
        f"{key.label} stands there and is not ours ({shown}): "
        "take it over (`kubesync recover`), remove it, or choose another name"
    )


def with_replacements(actual: Mapping[RecordKey, RecordSet]) -> dict[RecordKey, RecordSet]:
    """The sets of a zone, to be compared with known ones.

    Somebody may have replaced a simple set of ours by one with a set identifier, which has another key. It is added under the key of the
    simple set, as foreign: so ours counts as replaced, not as missing.
    """
    as_replacements = {
        replace(key, identifier=""): replace(stands, foreign_form=f"SetIdentifier={key.identifier}")
        for key, stands in actual.items()
        if key.identifier
    }
    return as_replacements | dict(actual)  # if the simple set stands there after all, it is not replaced


@dataclass(frozen=True, slots=True)
class Drift:
    """A record set of ours that is not in the zone as it was applied (``known``). ``stands``: what is there now; None: nothing."""

    service: ObjectKey
    key: RecordKey
    known: RecordSet
    stands: RecordSet | None

    @property
    def what(self) -> Stands:
        """What stands there."""
        return what_stands(self.known, self.stands)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a walk of a zone is compared with: the sets that one key had applied there before the walk (``applied``).

    If the key has changed since then (``is_current``), a difference may be a change of its own, and proves nothing.

    ``version`` is that of the key's state then. It is not enough: an object that goes and comes back begins again with the first version.
    So ``seen`` says what the state came from: of each part uid, generation and resourceVersion (``domain.state.Part``).
    """

    service: ObjectKey
    version: int
    seen: frozenset[tuple[str, int, int]]
    applied: tuple[tuple[RecordKey, RecordSet], ...]

    @classmethod
    def of(cls, state: KeyState, zone_id: str) -> Baseline:
        """Make it from a key's state before the walk."""
        in_zone = ((key, known) for key, known in state.applied.items() if key.zone_id == zone_id)
        return cls(state.key, state.version, _seen(state), tuple(sorted(in_zone, key=lambda item: item[0])))

    def is_current(self, state: KeyState) -> bool:
        """Whether the key is unchanged since then."""
        return (state.version, _seen(state)) == (self.version, self.seen)

    def drifts(self, actual: Mapping[RecordKey, RecordSet]) -> list[Drift]:
        """Its sets that do not stand in the zone as they were applied."""
        return [
            Drift(self.service, key, known, actual.get(key))
            for key, known in self.applied
            if what_stands(known, actual.get(key)) is not Stands.OURS
        ]


def _seen(state: KeyState) -> frozenset[tuple[str, int, int]]:
    """The objects that the state came from: see ``Baseline``."""
    return frozenset((part.uid, part.generation, part.resource_version) for part in state.parts.values())


def as_found_in_zone(state: KeyState, drifts: Iterable[Drift]) -> KeyState:
    """The state as if the key had applied what was found in the zone. The next changes then start from there, and correct it (I3).

    the set that was applied            ``applied`` says    and
    ------------------------            ----------------    ---
    was written or removed since then   the same            -
    is changed                          what stands         -
    is gone                             no set              -
    is replaced by a foreign set        no set              the name is in conflict
    """
    applied = dict(state.applied)
    conflicts = dict(state.conflicts)
    for drift in drifts:
        if applied.get(drift.key) != drift.known:
            continue
        if drift.stands is not None and drift.what is Stands.CHANGED:
            applied[drift.key] = drift.stands
            continue
        applied.pop(drift.key)
        if drift.stands is not None:  # foreign: of a form that we never make
            conflicts[Name.of(drift.key)] = f"{drift.key.label} was replaced ({drift.stands.foreign_form})"
    return replace(state, applied=applied, conflicts=conflicts)
