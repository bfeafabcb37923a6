"""Whether a zone's changes get through: since when there is something to do, and nothing has landed."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

STUCK_SECONDS: Final = 180.0
"""A zone to which nothing got through for so long counts as stuck."""


class Standing(Enum):
    """What is known of a zone.

    FINE: nothing waits, or something landed a short time ago. STUCK: for ``STUCK_SECONDS`` nothing has. UNSURE: neither is known in this
    session, which may be too short for it.
    """

    FINE = auto()
    UNSURE = auto()
    STUCK = auto()


class Progress:
    """The zone's actor alone changes it. Any thread may ask for ``standing``. All times are monotonic seconds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._full_since: float | None = None
        self._known = True

    def busy(self, now: float) -> None:
        """There is something to do."""
        if self._since is None:
            self._since = now
            self._known = False

    def landed(self, now: float) -> None:
        """A batch has landed, the zone is settled, a check is judged, or a refusal is reported to its cluster."""
        self._since, self._known = now, True

    def quiet(self) -> None:
        """Nothing is to be sent now. What was refused waits for its time."""
        self._since, self._known = None, True

    def full(self, now: float, *, is_full: bool) -> None:
        """Deletions go on to land in a full zone; what would add record sets does not."""
        if not is_full:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now

    def standing(self, now: float) -> Standing:
        waits = [since for since in (self._since, self._full_since) if since is not None]
        if waits and now - min(waits) >= STUCK_SECONDS:
            return Standing.STUCK
        return Standing.FINE if self._known and self._full_since is None else Standing.UNSURE
