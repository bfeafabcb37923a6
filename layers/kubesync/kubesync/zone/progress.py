"""Values that a zone publishes about itself: its counts, and whether its changes get through."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

STUCK_SECONDS: Final = 180.0
"""A zone to which nothing got through for so long counts as stuck."""


class ZoneState(Enum):
    """What is known of a zone.

    FINE: nothing waits, or something landed a short time ago. STUCK: for ``STUCK_SECONDS`` nothing has. UNKNOWN: neither is known in this
    session, which may be too short for it.
    """

    FINE = auto()
    UNKNOWN = auto()
    STUCK = auto()


@dataclass(frozen=True, slots=True)
class Progress:
    """Since when a zone gets nothing through. Immutable: each method returns the value that holds after what it names has happened.

    All times are monotonic seconds.

    ``since``: when there was something to do, or something landed last; None: there is nothing to do.
    ``known``: something has landed since there was something to do, or nothing is to do: so the zone is known to be fine.
    ``full_since``: since when the zone is full; None: it is not.
    """

    since: float | None = None
    full_since: float | None = None
    known: bool = True

    def busy(self, now: float) -> Progress:
        """Return the value after something to do was found. Changes nothing if there was something already."""
        return self if self.since is not None else replace(self, since=now, known=False)

    def landed(self, now: float) -> Progress:
        """Return the value after something got through: a batch, a settled zone, a judged check, or a refusal reported to its cluster."""
        return replace(self, since=now, known=True)

    def quiet(self) -> Progress:
        """Return the value after there was nothing left to send now. Refused units may still wait."""
        return replace(self, since=None, known=True)

    def full(self, now: float, *, is_full: bool) -> Progress:
        """Return the value for a zone that is full, or not full any more. A full zone gets stuck although deletions still land."""
        since = now if self.full_since is None else self.full_since
        return replace(self, full_since=since if is_full else None)

    def state(self, now: float) -> ZoneState:
        """Return whether the zone is stuck, fine, or neither is known."""
        waits = [since for since in (self.since, self.full_since) if since is not None]
        if waits and now - min(waits) >= STUCK_SECONDS:
            return ZoneState.STUCK
        return ZoneState.FINE if self.known and self.full_since is None else ZoneState.UNKNOWN


@dataclass(slots=True)
class ZoneReport:
    """One zone in this session, as the session's report shows it. ``problem``: what is wrong with it. ``remark``: what was wrong and is fixed.

    ``deleted``: record sets deleted at names at which the same batch created nothing.
    ``blocked``: nothing may be written to the zone for now: it is denied, gone, or its journal is not ours. ``reasons``: how often each code of
    ``domain.reasons`` was in the way.
    """

    zone: str
    batches: int = 0
    changes: int = 0
    deleted: int = 0
    refused: int = 0
    throttled: int = 0
    unknown: int = 0
    blocked: bool = False
    problem: str = ""
    remark: str = ""
    reasons: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ZoneFigures:
    """What the zone's actor publishes. ``report``: a copy, which nobody changes.

    ``clean``: no outcome is unknown, nothing is left to settle, to close or to clear. ``lags``: seconds, of the newest of all units that have
    landed; there were ``lags_counted``.
    """

    report: ZoneReport
    progress: Progress
    clean: bool
    lags: tuple[float, ...] = ()
    lags_counted: int = 0
