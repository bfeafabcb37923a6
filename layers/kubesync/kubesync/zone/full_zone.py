"""A zone that has as many record sets as it can have: one condition of the zone, not a failure of each key.

    what happened                                    sets are added again
    -------------                                    --------------------
    a batch was refused since the zone is full       with one unit, at once
    that one unit was refused too                    with one unit, after 5 s, doubling to 5 minutes
    some landed                                      with twice as many, at once
    sets of ours went                                with one unit, at once: there is room
    nothing waits any more                           the condition is over

Source of the limit: https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html, record sets per hosted zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubesync.actors.backoff import Backoff
from kubesync.domain.batches import Unit
from kubesync.zone.waits import Reason, Waits

_PROBES: Final = Backoff(initial=5.0, cap=300.0)


class FullZone:
    """How many of those that wait for room may try now. Times are epoch seconds, as those of all waits.

    Args:
        message: what Route 53 said.
    """

    def __init__(self, message: str, waits: Waits) -> None:
        self._waits = waits
        waits.put_off(Reason.FULL, 0.0)
        self._message = message
        self._share = 1
        self._failures = 0

    @property
    def problem(self) -> str:
        """One line for a person."""
        return f"the zone is full: deletions and changes go through, what would add record sets waits ({self._message})"

    def share(self, now: float) -> int:
        """How many units may try now."""
        return self._share if now >= self._waits.earliest(Reason.FULL) else 0

    def refused(self, units: Sequence[Unit], now: float) -> None:
        """A batch that would have added sets was refused, since the zone is full."""
        alone = sum(unit.grows for unit in units) == 1
        self._share = 1
        if alone:
            self._failures += 1
            self._waits.put_off(Reason.FULL, now + _PROBES.delay(self._failures))

    def landed(self, units: Sequence[Unit], now: float) -> None:
        """A batch has landed: there is room where it added sets, and where it took some away."""
        if any(unit.grows for unit in units):
            self._share *= 2
        elif not any(unit.shrinks for unit in units):
            return
        self._failures = 0
        self._waits.put_off(Reason.FULL, now)
