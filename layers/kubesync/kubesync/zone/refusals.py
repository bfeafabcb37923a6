"""What a refused batch means: which units are at fault (I4). The cluster judges each of them (I3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesync.domain.batches import Unit, culprits, halves, says_zone_is_full


@dataclass(frozen=True, slots=True)
class Isolation:
    """A refused batch taken apart.

    Args:
        culprits: units at fault, each with the message about it.
        again: groups of units to be sent again at once.
        zone_is_full: what Route 53 said, if the zone is full. Units that add sets are then in neither: they wait for room.
    """

    culprits: tuple[tuple[Unit, str], ...] = ()
    again: tuple[Sequence[Unit], ...] = ()
    zone_is_full: str = ""


def isolate(units: Sequence[Unit], messages: Sequence[str]) -> Isolation:
    """Keep back what is at fault, and only that.

    messages                     what happens
    --------                     ------------
    the zone is full             what adds sets waits (``FullZone``), the rest goes at once
    point at some units          those are at fault, the rest goes at once
    explain nothing, one unit    it is at fault
    explain nothing, several     two halves: O(k log n) batches for k culprits among n
    """
    if says_zone_is_full(messages):
        rest = [unit for unit in units if not unit.grows]
        if len(rest) < len(units):
            return Isolation(again=(rest,) if rest else (), zone_is_full=messages[0])
    found = culprits(units, messages)
    if not found and len(units) > 1:
        return Isolation((), halves(units))
    if not found:
        found = {0: messages[0] if messages else "refused without a message"}
    at_fault = tuple((units[index], message) for index, message in found.items())
    rest = [unit for index, unit in enumerate(units) if index not in found]
    return Isolation(at_fault, (rest,) if rest else ())
