"""What has to wait in one hosted zone, not before when, and why.

    reason      what waits                                              not before (epoch seconds)
    ------      ----------                                              --------------------------
    INHERITED   a key that was refused in an earlier session: its       the time of its mark; news of the key end it
                mark does not say which unit, nor in which zone
    REFUSED     one unit of a key: Route 53 refused it                  the time of the key's mark
    CONFLICT    a check of a key's names where foreign sets stand       see ``check_schedule``
    FULL        a key that could only add sets to a full zone           the zone's next try: see ``FullZone``

A reason may be put off as a whole: while Route 53 throttles reads no name is checked, and a full zone is tried for all at once.

A key of which nothing can go sleeps until the first of its waits is over, and as long as an inherited one lasts. Until then the zone
does not keep its wish, and does not ask for it: thousands that wait would be asked for at every step (I7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from kubesync.actors.backoff import Backoff
from kubesync.domain.batches import Unit
from kubesync.domain.objects import ObjectKey

_TRY_AGAIN_SECONDS: Final = 1.0
_PROBES: Final = Backoff(initial=5.0, cap=300.0)


class Reason(Enum):
    """Why something waits: see the table above."""

    INHERITED = auto()
    REFUSED = auto()
    CONFLICT = auto()
    FULL = auto()


class Waits:
    """All times are epoch seconds."""

    def __init__(self) -> None:
        self._keys: dict[Reason, dict[ObjectKey, float]] = {reason: {} for reason in Reason}
        self._units: dict[ObjectKey, dict[Unit, float]] = {}
        self._put_off: dict[Reason, float] = {}
        self._asleep: dict[ObjectKey, float] = {}

    def put(self, key: ObjectKey, reason: Reason, not_before: float) -> None:
        self._keys[reason][key] = not_before

    def put_unit(self, unit: Unit, not_before: float) -> None:
        self._units.setdefault(unit.key, {})[unit] = not_before

    def put_off(self, reason: Reason, not_before: float) -> None:
        self._put_off[reason] = not_before

    def end(self, key: ObjectKey, reason: Reason) -> None:
        self._keys[reason].pop(key, None)

    def end_unit(self, unit: Unit) -> None:
        of_key = self._units.get(unit.key, {})
        of_key.pop(unit, None)
        if not of_key:
            self._units.pop(unit.key, None)

    def waiting(self, reason: Reason) -> Mapping[ObjectKey, float]:
        """Keys that wait for this reason, in the order of their coming, with times of their own."""
        return self._keys[reason]

    def not_before(self, key: ObjectKey, reason: Reason) -> float | None:
        """When a key's wait for this reason is over; None: it does not wait for it."""
        own = self._keys[reason].get(key)
        return None if own is None else max(own, self.earliest(reason))

    def earliest(self, reason: Reason) -> float:
        """Nothing that waits for this reason goes earlier; 0: it is not put off."""
        return self._put_off.get(reason, 0.0)

    def refused(self, unit: Unit, now: float) -> bool:
        return self._units.get(unit.key, {}).get(unit, 0.0) > now

    def sleep(
        self, keys: Iterable[ObjectKey], now: float, besides: Callable[[ObjectKey], float | None] = lambda _key: None
    ) -> None:
        """Nothing of these keys can go now. One whose wait is over, but had no turn yet, wakes at once. ``besides``: another time."""
        for key in keys:
            units = {unit: at for unit, at in self._units.pop(key, {}).items() if at > now}
            if units:
                self._units[key] = units
            inherited = self.not_before(key, Reason.INHERITED) or 0.0
            # A mark's time is that of the key's last refusal, in whatever zone; what was refused here has a time of its own.
            also = self.not_before(key, Reason.CONFLICT), besides(key)
            times = [at for at in (*also, *units.values()) if at is not None]
            # Until an inherited wait is over, nothing of the key goes.
            self._asleep[key] = inherited if inherited > now else min(times, default=now + _TRY_AGAIN_SECONDS)

    def wake(self, key: ObjectKey) -> None:
        self._asleep.pop(key, None)

    def wake_by(self, key: ObjectKey, epoch: float) -> None:
        """A key that sleeps wakes at this time at the latest."""
        if key in self._asleep:
            self._asleep[key] = min(self._asleep[key], epoch)

    def slept(self, key: ObjectKey) -> bool:
        """Whether a key has slept since there was something new about it."""
        return key in self._asleep

    def wakes_at(self, key: ObjectKey) -> float:
        """When a key wakes; 0: it is awake."""
        return self._asleep.get(key, 0.0)

    def next(self, keys: Iterable[ObjectKey], now: float) -> float | None:
        """When the first of these keys, or of those that wait for room, is due; None: nothing waits."""
        times = [at if (at := self.wakes_at(key)) > now else now + _TRY_AGAIN_SECONDS for key in keys]
        if self._keys[Reason.FULL]:
            times.append(self.earliest(Reason.FULL))
        return min(times, default=None)

    def forget(self, key: ObjectKey) -> None:
        self.wake(key)
        self._units.pop(key, None)
        for reason in Reason:
            self.end(key, reason)


class FullZone:
    """A zone that has as many record sets as it can have: one condition of the zone, not a failure of each key.

        what happened                                    sets are added again
        -------------                                    --------------------
        a batch was refused since the zone is full       with one unit, at once
        that one unit was refused too                    with one unit, after 5 s, doubling to 5 minutes
        some landed                                      with twice as many, at once
        sets of ours went                                with one unit, at once: there is room
        nothing waits any more                           the condition is over

    The limit: https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html, record sets per hosted zone.
    ``message``: what Route 53 said.
    """

    def __init__(self, message: str, waits: Waits) -> None:
        self._waits = waits
        waits.put_off(Reason.FULL, 0.0)
        self._message = message
        self._share = 1
        self._failures = 0

    @property
    def problem(self) -> str:
        return f"the zone is full: deletions and changes go through, what would add record sets waits ({self._message})"

    def share(self, now: float) -> int:
        return self._share if now >= self._waits.earliest(Reason.FULL) else 0

    def refused(self, units: Sequence[Unit], now: float) -> None:
        """A batch that would have added sets was refused, since the zone is full."""
        self._share = 1
        if sum(unit.grows for unit in units) == 1:
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
