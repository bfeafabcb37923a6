"""When the names of one zone that are in conflict are checked: often at first, then once an hour, and many together.

    a key in conflict was                  its names are checked
    ---------------------                  -----------------------
    opened again, or a resync asks          at once
    refused up to 10 times                 when its mark says so: 5 s after the first refusal, doubling
    refused 11 times (it has "settled")    every hour; marks are not written any more
    where a set of ours has gone           at once: sets with and without an identifier exclude each other, also of two of our objects

A check waits until its key can be planned: the cluster must be listed or watched. Otherwise sessions that end soon would check too
early each time, and a name that is free would never be published.

A check writes only if it moves the count of attempts, or finds something else than the last one. For keys that have settled, one item
of the zone tells the next session since when all of them have been checked. Thousands that nobody mends cost some requests an hour
and one write, however often sessions hand over (I6). Each is checked once in two hours at worst.

Conflict checks never delay a batch. If Route 53 does not let the zone be read, they are made up for later.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Intent
from kubesync.domain.state import CONFLICT_CHECK_SECONDS
from kubesync.zone.ports import ZonePorts
from kubesync.zone.reader import ZoneReader
from kubesync.zone.waits import Reason, Waits

# The cluster judges them in a few transactions where attempts are counted: a batch does not wait for all of them.
_KEYS_IN_A_CHECK: Final = 200
# The note may be behind by this: keys that settle one by one would write it one by one.
_NOTE_SECONDS: Final = 300.0
_THROTTLED_SECONDS: Final = 30.0
_UNANSWERED_SECONDS: Final = 5.0


class CheckSchedule:
    """Decides when the names in conflict of each key are checked. Keeps these times in ``Waits``, for ``Reason.CONFLICT``.

    For the zone's own thread. Times are epoch seconds, unless they are said to be monotonic. ``go_first``: the next checks go before a batch.
    """

    def __init__(self, zone_id: str, ports: ZonePorts, waits: Waits) -> None:
        self._zone_id = zone_id
        self._ports = ports
        self._waits = waits
        self._settled: set[ObjectKey] = set()
        self._newly_settled: set[ObjectKey] = set()
        self._names: dict[ObjectKey, frozenset[str]] = {}
        self._listed: dict[str, frozenset[Resource]] = {}
        self._unlisted: dict[ObjectKey, tuple[Intent, float]] = {}
        self._noted: float | None = None
        self._checked = False
        self._left = _KEYS_IN_A_CHECK
        self._reader = ZoneReader(ports.client, zone_id, ports.scheduler)
        # What was read of the zone before this time does not count: a person has asked since, or a set of ours has gone.
        self._not_before_monotonic = 0.0
        self.go_first = True

    def begin_step(self) -> None:
        """Begin a step of the zone: allow a full check again, and schedule keys that have settled since the last step."""
        self._left = _KEYS_IN_A_CHECK
        while self._newly_settled:
            self._check_at(self._newly_settled.pop(), self._stored_check_time() + CONFLICT_CHECK_SECONDS)

    def limit_checks(self, awake: Iterable[ObjectKey], *, checks: bool) -> list[ObjectKey]:
        """Return the keys to look at in this step, without most of those that only need a check: the zone does not ask for their intents (I7).

        A key only needs a check if it has slept because its names are in conflict. These come last, at most ``_KEYS_IN_A_CHECK`` of them, and
        none while checks are put off, because Route 53 throttles reads. Such a key may also have a unit to try again: it waits with it.

        Args:
            checks: False: none of them.
        """
        first: list[ObjectKey] = []
        only_checks: list[ObjectKey] = []
        for key in awake:
            (only_checks if self._waits.has_slept(key) and key in self._check_times else first).append(key)
        checks = checks and self._waits.put_off_until(Reason.CONFLICT) <= self._ports.scheduler.epoch()
        return first + only_checks[: _KEYS_IN_A_CHECK if checks else 0]

    def set_listed(self, cluster: str, resources: frozenset[Resource]) -> None:
        """Set which views of a cluster are complete. Wakes the keys whose checks waited for that."""
        before = self._listed.get(cluster, frozenset())
        self._listed[cluster] = resources
        if not resources - before:
            return
        for key, (intent, due_at) in list(self._unlisted.items()):
            if key.cluster == cluster and self._can_be_planned(intent):
                self._check_at(key, due_at)
                self._waits.wake_by(key, 0.0)

    def _can_be_planned(self, intent: Intent) -> bool:
        """Whether all views that the key's record sets depend on are complete (I5)."""
        return intent.needs <= self._listed.get(intent.key.cluster, frozenset())

    def update(self, intent: Intent) -> None:
        """Schedule or drop the check of a key, by what the key wants now."""
        key = intent.key
        if not intent.conflicts:
            self.drop(key)
            return
        self._names[key] = intent.conflicts
        if not intent.settled:
            self._settled.discard(key)
            self._newly_settled.discard(key)
            # The time in its mark is not used: it may come from another zone.
            self._check_at(key, self._check_time(key) if intent.attempts else 0.0)
        elif key not in self._settled:
            self._settled.add(key)
            if key not in self._check_times:
                self._newly_settled.add(key)

    @property
    def _check_times(self) -> Mapping[ObjectKey, float]:
        return self._waits.waiting(Reason.CONFLICT)

    def _check_time(self, key: ObjectKey) -> float:
        return self._unlisted[key][1] if key in self._unlisted else self._check_times.get(key, 0.0)

    def _check_at(self, key: ObjectKey, epoch: float) -> None:
        self._unlisted.pop(key, None)
        self._waits.put(key, Reason.CONFLICT, epoch)

    def check_now(self, key: ObjectKey) -> None:
        """Make a scheduled check due at once, because the key was planned again. What was read of the zone lately may be used."""
        if key in self._check_times:
            self._check_at(key, 0.0)

    def check_afresh(self, key: ObjectKey) -> None:
        """Make a check of a key due at once. What was read of the zone before this moment does not count."""
        self._check_at(key, 0.0)
        self._not_before_monotonic = self._ports.scheduler.monotonic()

    def add_conflict(self, key: ObjectKey, name: str, retry_at: float) -> None:
        """Schedule the check of a name at which a foreign set was found."""
        self._names[key] = self._names.get(key, frozenset()) | {name}
        self._check_at(key, retry_at)

    def check_freed(self, names: AbstractSet[str]) -> None:
        """Check keys in conflict at these names at once, because sets of ours were deleted there. Wakes these keys."""
        for key in [key for key, at in self._names.items() if not at.isdisjoint(names)]:
            self._waits.end(key, Reason.INHERITED)
            self._waits.wake(key)
            self.check_afresh(key)

    def drop(self, key: ObjectKey) -> None:
        """Remove everything about a key that has no conflict any more."""
        self._names.pop(key, None)
        self._waits.end(key, Reason.CONFLICT)
        self._settled.discard(key)
        self._newly_settled.discard(key)
        self._unlisted.pop(key, None)

    def take_due(self, intents: Iterable[Intent], now: float) -> list[Intent]:
        """Return those of these intents whose names are to be checked now, up to what is left of this step's check.

        A key that cannot be planned yet is set aside until ``set_listed`` says that its views are complete.
        """
        due: list[Intent] = []
        for intent in intents:
            at = self._waits.not_before(intent.key, Reason.CONFLICT)
            if at is None or at > now:
                continue
            if not self._can_be_planned(intent):
                due_at = self._check_time(intent.key)
                self._check_at(intent.key, math.inf)
                self._unlisted[intent.key] = intent, due_at
            elif self._left:
                self._left -= 1
                due.append(intent)
        return due

    def read(self, names: Collection[str]) -> dict[str, dict[RecordKey, RecordSet]]:
        """Read what exists at these names, for a check. Raises what the client raises."""
        return self._reader.read_all(names, self._not_before_monotonic)

    def record_checked(self, keys: Sequence[ObjectKey], intents: Mapping[ObjectKey, Intent]) -> None:
        """Schedule the next checks of keys that were checked. Keys without an intent got no answer: they are checked again soon."""
        now = self._ports.scheduler.epoch()
        for key in keys:
            if key not in intents and key in self._names:
                self._check_at(key, now + _UNANSWERED_SECONDS)
            elif key in self._settled:
                self._newly_settled.discard(key)
                self._check_at(key, now + CONFLICT_CHECK_SECONDS)
                self._checked = True
            elif key in self._check_times:
                self._check_at(key, intents[key].retry_at)

    def put_off(self) -> None:
        """Put off all checks for a while, because Route 53 throttles reads."""
        self._waits.put_off(Reason.CONFLICT, self._ports.scheduler.epoch() + _THROTTLED_SECONDS)

    def take_check_time(self) -> float | None:
        """Return the time since which every settled key has been checked, if it must be stored again. The caller stores it.

        None: nothing was checked since the last call, or the time has moved on by less than ``_NOTE_SECONDS``.
        """
        if not self._checked:
            return None
        self._checked = False
        since = min(map(self._check_time, self._settled), default=0.0) - CONFLICT_CHECK_SECONDS
        if since < self._stored_check_time() + _NOTE_SECONDS:
            return None
        self._noted = since
        return since

    def _stored_check_time(self) -> float:
        """Return the time that ``take_check_time`` returned last. On the first call, read the one of an earlier session."""
        if self._noted is None:
            noted = self._ports.problems.checked_at(self._zone_id)
            # A time in the future comes from a clock that ran ahead. Checks would be put off until then.
            self._noted = noted if noted <= self._ports.scheduler.epoch() else 0.0
        return self._noted
