"""What has to wait in one hosted zone, not before when, and why.

    reason      what waits                                              not before (epoch seconds)
    ------      ----------                                              --------------------------
    INHERITED   a key that was refused in an earlier session: its       the time of its mark; news of the key end it
                mark does not say which unit, nor in which zone
    REFUSED     one unit of a key: Route 53 refused it                  the time of the key's mark
    CONFLICT    a check of a key's names where foreign sets stand       see ``check_schedule``
    FULL        a key that could only add sets to a full zone           the zone's next try: see ``full_zone``

A reason may be put off as a whole: while Route 53 throttles reads no name is checked, and a full zone is tried for all at once.

A key of which nothing can go sleeps until the first of its waits is over, and as long as an inherited one lasts. Until then the zone
does not keep its wish, and does not ask for it: thousands that wait would be asked for at every step (I7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Final

from kubesync.domain.batches import Unit
from kubesync.domain.objects import ServiceKey

_TRY_AGAIN_SECONDS: Final = 1.0


class Reason(Enum):
    """Why something waits: see the table above."""

    INHERITED = auto()
    REFUSED = auto()
    CONFLICT = auto()
    FULL = auto()


class Waits:
    """For the zone's own thread. All times are epoch seconds."""

    def __init__(self) -> None:
        self._keys: dict[Reason, dict[ServiceKey, float]] = {reason: {} for reason in Reason}
        self._units: dict[ServiceKey, dict[Unit, float]] = {}
        self._put_off: dict[Reason, float] = {}
        self._asleep: dict[ServiceKey, float] = {}

    def put(self, key: ServiceKey, reason: Reason, not_before: float) -> None:
        """A key waits for this reason."""
        self._keys[reason][key] = not_before

    def put_unit(self, unit: Unit, not_before: float) -> None:
        """A unit was refused."""
        self._units.setdefault(unit.key, {})[unit] = not_before

    def put_off(self, reason: Reason, not_before: float) -> None:
        """Nothing that waits for this reason goes earlier."""
        self._put_off[reason] = not_before

    def end(self, key: ServiceKey, reason: Reason) -> None:
        """A key does not wait for this reason any more."""
        self._keys[reason].pop(key, None)

    def end_unit(self, unit: Unit) -> None:
        """A unit does not wait any more."""
        of_key = self._units.get(unit.key, {})
        of_key.pop(unit, None)
        if not of_key:
            self._units.pop(unit.key, None)

    def waiting(self, reason: Reason) -> Mapping[ServiceKey, float]:
        """Keys that wait for this reason, in the order of their coming, with times of their own."""
        return self._keys[reason]

    def not_before(self, key: ServiceKey, reason: Reason) -> float | None:
        """When a key's wait for this reason is over; None: it does not wait for it."""
        own = self._keys[reason].get(key)
        return None if own is None else max(own, self.earliest(reason))

    def earliest(self, reason: Reason) -> float:
        """Nothing that waits for this reason goes earlier; 0: it is not put off."""
        return self._put_off.get(reason, 0.0)

    def refused(self, unit: Unit, now: float) -> bool:
        """Whether a unit has to wait since it was refused."""
        return self._units.get(unit.key, {}).get(unit, 0.0) > now

    # --- sleep ---

    def sleep(self, keys: Iterable[ServiceKey], now: float) -> None:
        """Nothing of these keys can go now. One whose wait is over, but had no turn yet, wakes at once."""
        for key in keys:
            units = {unit: at for unit, at in self._units.get(key, {}).items() if at > now}
            if units:
                self._units[key] = units
            else:
                self._units.pop(key, None)
            inherited = self.not_before(key, Reason.INHERITED) or 0.0
            # A mark's time is that of the key's last refusal, in whatever zone; what was refused here has a time of its own.
            times = [self.not_before(key, Reason.CONFLICT), *units.values()]
            known = [at for at in times if at is not None]
            if inherited > now:  # until then nothing of the key goes
                self._asleep[key] = inherited
            else:
                self._asleep[key] = min(known) if known else now + _TRY_AGAIN_SECONDS

    def wake(self, key: ServiceKey) -> None:
        """There is something new about a key."""
        self._asleep.pop(key, None)

    def wake_by(self, key: ServiceKey, epoch: float) -> None:
        """A key that sleeps wakes at this time at the latest."""
        if key in self._asleep:
            self._asleep[key] = min(self._asleep[key], epoch)

    def slept(self, key: ServiceKey) -> bool:
        """Whether a key has slept since there was something new about it."""
        return key in self._asleep

    def wakes_at(self, key: ServiceKey) -> float:
        """When a key wakes; 0: it is awake."""
        return self._asleep.get(key, 0.0)

    def next(self, keys: Iterable[ServiceKey], now: float) -> float | None:
        """When the first of these keys, or of those that wait for room, is due; None: nothing waits."""
        times = [at if (at := self.wakes_at(key)) > now else now + _TRY_AGAIN_SECONDS for key in keys]
        if self._keys[Reason.FULL]:
            times.append(self.earliest(Reason.FULL))
        return min(times, default=None)

    def forget(self, key: ServiceKey) -> None:
        """A key wants nothing any more."""
        self.wake(key)
        self._units.pop(key, None)
        for reason in Reason:
            self.end(key, reason)
