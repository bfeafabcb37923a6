"""Knows what has to wait in one hosted zone, until when, and why.

    reason      what waits                                              not before (epoch seconds)
    ------      ----------                                              --------------------------
    INHERITED   a key that was refused in an earlier session: its       the time of its open mark; ends early if the cluster
                mark does not say which unit, nor in which zone         plans the key again
    CONFLICT    a check of a key's names where foreign sets stand       see ``check_schedule``
    FULL        a key that could only add sets to a full zone           the zone's next try: see ``FullZone``

A unit that Route 53 refused waits alone, without its key's other units, until the time that its cluster decided (``put_unit``).

A reason may be put off for all keys together: while Route 53 throttles reads no name is checked, and a full zone is tried for all keys.

A key of which nothing can be sent *sleeps* until the first of its waits is over; an inherited wait must be over in any case. The zone does
not keep the intent of a sleeping key, and does not ask for it: otherwise it would ask for thousands of waiting keys at every step (I7).
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
    CONFLICT = auto()
    FULL = auto()


class Waits:
    """Holds until when keys and units of one zone wait, by reason, and which keys sleep. All times are epoch seconds."""

    def __init__(self) -> None:
        self._keys: dict[Reason, dict[ObjectKey, float]] = {reason: {} for reason in Reason}
        self._units: dict[ObjectKey, dict[Unit, float]] = {}
        self._put_off: dict[Reason, float] = {}
        self._asleep: dict[ObjectKey, float] = {}

    def put(self, key: ObjectKey, reason: Reason, not_before: float) -> None:
        """Let a key wait for a reason. Replaces its earlier wait for the same reason."""
        self._keys[reason][key] = not_before

    def put_unit(self, unit: Unit, not_before: float) -> None:
        """Let a refused unit wait."""
        self._units.setdefault(unit.key, {})[unit] = not_before

    def put_off(self, reason: Reason, not_before: float) -> None:
        """Let everything that waits for this reason wait until then at least."""
        self._put_off[reason] = not_before

    def end(self, key: ObjectKey, reason: Reason) -> None:
        """End a key's wait for a reason, if there is one."""
        self._keys[reason].pop(key, None)

    def end_unit(self, unit: Unit) -> None:
        """End the wait of a refused unit, if there is one."""
        of_key = self._units.get(unit.key, {})
        of_key.pop(unit, None)
        if not of_key:
            self._units.pop(unit.key, None)

    def waiting(self, reason: Reason) -> Mapping[ObjectKey, float]:
        """Return the keys that wait for this reason, oldest first, each with its own time (without ``put_off``)."""
        return self._keys[reason]

    def not_before(self, key: ObjectKey, reason: Reason) -> float | None:
        """Return when a key's wait for this reason is over, ``put_off`` included. None: the key does not wait for it."""
        own = self._keys[reason].get(key)
        return None if own is None else max(own, self.put_off_until(reason))

    def put_off_until(self, reason: Reason) -> float:
        """Return until when this reason is put off as a whole. 0: it never was."""
        return self._put_off.get(reason, 0.0)

    def delays(self, unit: Unit, now: float) -> bool:
        """Whether a refused unit still has to wait."""
        return self._units.get(unit.key, {}).get(unit, 0.0) > now

    def sleep(
        self, keys: Iterable[ObjectKey], now: float, besides: Callable[[ObjectKey], float | None] = lambda _key: None
    ) -> None:
        """Put keys to sleep of which nothing can be sent now, each until the first of its waits is over.

        Waits of units that are over are removed. ``besides`` returns one more time at which a key must wake; None: there is none.
        """
        for key in keys:
            units = {unit: at for unit, at in self._units.pop(key, {}).items() if at > now}
            if units:
                self._units[key] = units
            inherited = self.not_before(key, Reason.INHERITED) or 0.0
            # The inherited time may come from a refusal in another zone, so it does not include the waits of this zone.
            also = self.not_before(key, Reason.CONFLICT), besides(key)
            times = [at for at in (*also, *units.values()) if at is not None]
            # Until an inherited wait is over, nothing of the key is sent.
            self._asleep[key] = inherited if inherited > now else min(times, default=now + _TRY_AGAIN_SECONDS)

    def wake(self, key: ObjectKey) -> None:
        """Wake a key now, if it sleeps."""
        self._asleep.pop(key, None)

    def wake_by(self, key: ObjectKey, epoch: float) -> None:
        """Let a sleeping key wake at this time at the latest."""
        if key in self._asleep:
            self._asleep[key] = min(self._asleep[key], epoch)

    def has_slept(self, key: ObjectKey) -> bool:
        """Whether a key was put to sleep since it was last published or woken. It may be due by now."""
        return key in self._asleep

    def wakes_at(self, key: ObjectKey) -> float:
        """Return when a sleeping key is due. 0: it does not sleep."""
        return self._asleep.get(key, 0.0)

    def next_due(self, keys: Iterable[ObjectKey], now: float) -> float | None:
        """Return when the first of these keys, or of the keys that wait for room in a full zone, is due. None: nothing waits."""
        times = [at if (at := self.wakes_at(key)) > now else now + _TRY_AGAIN_SECONDS for key in keys]
        if self._keys[Reason.FULL]:
            times.append(self.put_off_until(Reason.FULL))
        return min(times, default=None)

    def forget(self, key: ObjectKey) -> None:
        """Remove all waits of a key and of its units."""
        self.wake(key)
        self._units.pop(key, None)
        for reason in Reason:
            self.end(key, reason)


class FullZone:
    """Decides how many units may try to add record sets to a full zone. The condition belongs to the zone, not to each key.

        what happened                                    sets are added again
        -------------                                    --------------------
        a batch was refused since the zone is full       with one unit, at once
        that one unit was refused too                    with one unit, after 5 s, doubling to 5 minutes
        some landed                                      with twice as many, at once
        sets of ours went                                with one unit, at once: there is room
        nothing waits any more                           the condition is over

    The limit: https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html, record sets per hosted zone.
    ``message``: what Route 53 said. Creating an instance lets everything that waits for ``Reason.FULL`` try at once.
    """

    def __init__(self, message: str, waits: Waits) -> None:
        self._waits = waits
        waits.put_off(Reason.FULL, 0.0)
        self.problem = (
            f"the zone is full: deletions and changes go through, what would add record sets waits ({message})"
        )
        self._share = 1
        self._failures = 0

    def allowed_units(self, now: float) -> int:
        """Return how many units that add sets may be tried now. 0: the next try is later."""
        return self._share if now >= self._waits.put_off_until(Reason.FULL) else 0

    def record_refused(self, units: Sequence[Unit], now: float) -> None:
        """Allow one unit only, after a batch was refused because the zone is full. If that batch had one such unit: after a delay."""
        self._share = 1
        if sum(unit.grows for unit in units) == 1:
            self._failures += 1
            self._waits.put_off(Reason.FULL, now + _PROBES.delay(self._failures))

    def record_landed(self, units: Sequence[Unit], now: float) -> None:
        """Allow more after a batch has landed: twice as many if it added sets, and an immediate try if it only removed some."""
        if any(unit.grows for unit in units):
            self._share *= 2
        elif not any(unit.growth < 0 for unit in units):
            return
        self._failures = 0
        self._waits.put_off(Reason.FULL, now)
