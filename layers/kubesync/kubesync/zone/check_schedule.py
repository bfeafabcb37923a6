"""When the names of one zone that are in conflict are checked: often at first, then once an hour, and many together.

    a key in conflict was                  its names are checked
    ---------------------                  -----------------------
    opened again, or a resync asks          at once
    refused up to 10 times                 when its mark says so: 5 s after the first refusal, doubling
    refused 11 times (``checked_hourly``)  every hour; its mark is not written any more
    where a set of ours has gone           at once: sets with and without an identifier exclude each other, also of two of our objects

A check waits until its key can be planned: the cluster must be listed or watched. Otherwise sessions that end soon would check too
early each time, and a name that is free would never be published.

A check writes only if it moves the count of attempts, or finds something else than the last one. For keys that are checked hourly, one item
of the zone tells the next session since when all of them have been checked: *the stored time*. Thousands that nobody mends cost some requests an hour
and one write, however often sessions hand over (I6). Each is checked once in two hours at worst.

Conflict checks never delay a batch. If Route 53 does not let the zone be read, they are made up for later.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Set as AbstractSet
from typing import Final

from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Intent
from kubesync.domain.state import CONFLICT_CHECK_SECONDS
from kubesync.zone.ports import ZonePorts
from kubesync.zone.reader import ZoneReader
from kubesync.zone.waits import QueuedKey

# The cluster judges them in a few transactions where attempts are counted: a batch does not wait for all of them.
KEYS_IN_A_CHECK: Final = 200
# The stored time may be behind by this: keys that are checked one by one would write it one by one.
_STORE_SECONDS: Final = 300.0
_THROTTLED_SECONDS: Final = 30.0
_UNANSWERED_SECONDS: Final = 5.0


class CheckSchedule:
    """Decides when the names in conflict of each key are checked, and keeps these times in the queue's ``keys``.

    For the zone's own thread. Times are epoch seconds, unless they are said to be monotonic. ``go_first``: the next checks go before a batch
    (``ZoneQueue.due`` sets it, so that checks and batches alternate).
    """

    def __init__(self, zone_id: str, ports: ZonePorts, keys: Mapping[ObjectKey, QueuedKey]) -> None:
        self._zone_id = zone_id
        self._ports = ports
        self._keys = keys
        self._listed: dict[str, frozenset[Resource]] = {}  # by cluster, the resources that it has listed completely
        self._put_off_until = 0.0
        self._stored: float | None = None  # the stored time; None: not read yet
        self._checked = False  # a key was checked hourly since ``take_check_time`` was called last
        self._reader = ZoneReader(ports.client, zone_id, ports.scheduler)
        # Monotonic. What was read of the zone before this time does not count: a person has asked since, or a set of ours has gone.
        self._reads_count_from = 0.0
        self.go_first = True

    def in_order(self, awake: Iterable[QueuedKey]) -> list[ObjectKey]:
        """Return the keys to look at in this step, without most of those that only need a check: the zone does not ask for their intents (I7).

        A key only needs a check if it has slept because its names are in conflict. These come last, at most ``KEYS_IN_A_CHECK`` of them, and
        only while checks ``go_first`` and Route 53 does not throttle reads. Such a key may also have a unit to try again: it waits with it.
        """
        first: list[ObjectKey] = []
        only_checks: list[ObjectKey] = []
        for known in awake:
            # Without ``wakes_at`` it has not slept: something else has changed. Without ``check_at`` no check of it is scheduled.
            (first if known.wakes_at is None or known.check_at is None else only_checks).append(known.key)
        checks = self.go_first and self._put_off_until <= self._ports.scheduler.epoch_seconds()
        return first + only_checks[: KEYS_IN_A_CHECK if checks else 0]

    def set_listed(self, cluster: str, resources: frozenset[Resource]) -> None:
        """Set which views of a cluster are complete. Wakes the keys whose checks waited for that."""
        before = self._listed.get(cluster, frozenset())
        self._listed[cluster] = resources
        if not resources - before:
            return
        for known in self._keys.values():
            if known.key.cluster == cluster and known.wakes_at is not None and (at := self.due_at(known)) is not None:
                known.wake_by(at)

    def update(self, known: QueuedKey, intent: Intent) -> None:
        """Schedule or drop the check of a key, by what the key wants now.

        the intent                                     the next check
        ----------                                     --------------
        has no names in conflict                       is dropped
        is ``checked_hourly``                          stays as scheduled. If it is not, ``_scheduled`` takes it from the stored time
        was refused before (``attempts``)              stays as scheduled. If it is not, at once: the time in the key's mark is not used,
                                                       it may come from another zone
        has no attempts: its cluster has planned it    at once
          again
        """
        known.conflicts, known.needs, known.checked_hourly = intent.conflicts, intent.needs, intent.checked_hourly
        if not intent.conflicts:
            known.check_at, known.checked_hourly = None, False
        elif not intent.checked_hourly:
            known.check_at = (known.check_at or 0.0) if intent.attempts else 0.0

    def due_at(self, known: QueuedKey) -> float | None:
        """Return when the names in conflict of a key are checked. None: it has none. Infinite: the key cannot be planned yet (I5)."""
        if known.check_at is None and not known.checked_hourly:
            return None
        if not known.needs <= self._listed.get(known.key.cluster, frozenset()):
            return math.inf
        return max(self._scheduled(known), self._put_off_until)

    def _scheduled(self, known: QueuedKey) -> float:
        """Return when a key is to be checked. A key without a time gets one here: it is checked hourly, and this session has not checked it yet,
        so it is due an hour after the stored time.
        """
        if known.check_at is None:
            known.check_at = self._stored_check_time() + CONFLICT_CHECK_SECONDS
        return known.check_at

    def check_afresh(self, known: QueuedKey) -> None:
        """Wake a key, and make a check of its names due at once: a person has asked for it, or a set of ours has gone from one of them.

        All waits of the key as a whole end, also one of an earlier session and one for room in the zone. The check reads the zone anew.
        """
        known.wake()
        known.not_before, known.check_at, known.for_room = 0.0, 0.0, False
        self._reads_count_from = self._ports.scheduler.monotonic()

    def check_freed(self, names: AbstractSet[str]) -> None:
        """Check keys in conflict at these names at once, because sets of ours were deleted there."""
        for known in self._keys.values() if names else ():
            if not known.conflicts.isdisjoint(names):
                self.check_afresh(known)

    def due(self, intents: Iterable[Intent], now: float) -> list[Intent]:
        """Return those of these intents whose names are to be checked now."""
        times = ((intent, self.due_at(self._keys[intent.key])) for intent in intents)
        return [intent for intent, at in times if at is not None and at <= now]

    def read(self, names: Collection[str]) -> dict[str, dict[RecordKey, RecordSet]]:
        """Read what exists at these names, for a check. Raises what the client raises."""
        return self._reader.read_all(names, self._reads_count_from)

    def record_checked(self, keys: Iterable[ObjectKey], intents: Mapping[ObjectKey, Intent]) -> None:
        """Schedule the next checks of keys that were checked. Keys without an intent got no answer: they are checked again soon."""
        now = self._ports.scheduler.epoch_seconds()
        for known in (self._keys[key] for key in keys if key in self._keys and self._keys[key].conflicts):
            if known.key not in intents:
                known.check_at = now + _UNANSWERED_SECONDS
            elif known.checked_hourly:
                known.check_at = now + CONFLICT_CHECK_SECONDS
                self._checked = True
            else:
                known.check_at = intents[known.key].retry_at

    def put_off(self) -> None:
        """Put off all checks for a while, because Route 53 throttles reads."""
        self._put_off_until = self._ports.scheduler.epoch_seconds() + _THROTTLED_SECONDS

    def take_check_time(self) -> float | None:
        """Return the time since which every hourly key has been checked, if it must be stored again. The caller stores it.

        None: nothing was checked since the last call, or the time has moved on by less than ``_STORE_SECONDS``.
        """
        if not self._checked:
            return None
        self._checked = False
        # The key that is checked next is the one that was checked longest ago, an hour before that.
        next_checks = (self._scheduled(known) for known in self._keys.values() if known.checked_hourly)
        since = min(next_checks, default=0.0) - CONFLICT_CHECK_SECONDS
        if since < self._stored_check_time() + _STORE_SECONDS:
            return None
        self._stored = since
        return since

    def _stored_check_time(self) -> float:
        """Return the time that ``take_check_time`` returned last. On the first call, read the one of an earlier session."""
        if self._stored is None:
            stored = self._ports.problems.checked_at(self._zone_id)
            # A time in the future comes from a clock that ran ahead. Checks would be put off until then.
            self._stored = stored if stored <= self._ports.scheduler.epoch_seconds() else 0.0
        return self._stored
