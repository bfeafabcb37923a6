"""What a refused batch means: which units are at fault, and what is to become of each (I3, I4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubesync.cluster.keys.outcomes import Outcome
from kubesync.domain.batches import Unit, culprits, halves, says_zone_is_full
from kubesync.domain.dns.records import RecordKey, RecordSet, in_the_way
from kubesync.zone.reader import Stands, ZoneReader, what_stands


@dataclass(frozen=True, slots=True)
class Isolation:
    """A refused batch taken apart: outcomes of the units at fault, and groups to be sent again at once.

    ``zone_is_full``: units that add sets are in neither; they are no failures, and wait with the zone.
    """

    outcomes: tuple[Outcome, ...]
    again: tuple[list[Unit], ...]
    zone_is_full: bool = False


def isolate(units: Sequence[Unit], messages: Sequence[str], judge: Callable[[Unit, str], Outcome]) -> Isolation:
    """Keep back what is at fault, and only that.

        messages                     what happens
        --------                     ------------
        the zone is full             what adds sets waits (``FullZone``), the rest goes at once
        point at some units          those are judged, the rest goes at once
        explain nothing, one unit    it is judged
        explain nothing, several     two halves: O(k log n) batches for k culprits among n

    Args:
        judge: reads what stands at a unit's name and decides.
    """
    if says_zone_is_full(messages):
        rest = [unit for unit in units if not unit.grows]
        if len(rest) < len(units):
            return Isolation((), (rest,) if rest else (), zone_is_full=True)
    found = culprits(units, messages)
    if not found and len(units) > 1:
        return Isolation((), halves(units))
    if not found:
        found = {0: messages[0] if messages else "refused without a message"}
    judged = tuple(judge(units[index], message) for index, message in found.items())
    rest = [unit for index, unit in enumerate(units) if index not in found]
    return Isolation(judged, (rest,) if rest else ())


def judge(reading: ZoneReader, unit: Unit, message: str, is_ours: Callable[[RecordKey], bool]) -> Outcome:
    """Read what stands at a culprit's name, and decide. ``reading``: begun after the refusal.

    known before   stands now          decision
    ------------   ----------          --------
    nothing        something           conflict: foreign, equal or not (I3)
    a set          nothing, delete     landed: somebody deleted it, nothing is left to do
    a set          another, or none    changed by hand: a full resync mends it
    as known       a foreign set that ours cannot stand beside             conflict (a CNAME, or a simple beside weighted ones)
    as known       nothing like that   rejected: the value itself
    """
    actual = reading.read(unit.name)
    ours = {change.key for change in unit.changes}
    standing = {change: what_stands(change.before, actual.get(change.key)) for change in unit.changes}
    for change, stands in standing.items():
        if change.before is None and stands is Stands.FOREIGN:
            return Outcome(unit, conflict=True, reason=why_foreign(change.key, actual[change.key]))
    if all(change.after is None and stands is Stands.GONE for change, stands in standing.items()):
        return Outcome(unit, landed=True)
    for change, stands in standing.items():
        if change.before is not None and stands is not Stands.OURS:
            what = "is gone" if stands is Stands.GONE else "was changed"
            reason = f"{change.key.label} {what} by somebody else; `kubesync resync` mends it"
            return Outcome(unit, code="ChangedByHand", reason=reason)
    for key, record_set in actual.items():
        if key in ours or is_ours(key):
            continue
        for change in unit.changes:
            if change.after is not None and in_the_way(key, record_set, change.key):
                return Outcome(unit, conflict=True, reason=why_foreign(key, record_set, change.key))
    return Outcome(unit, code="Rejected", reason=f"Route 53 rejects it: {message}")


