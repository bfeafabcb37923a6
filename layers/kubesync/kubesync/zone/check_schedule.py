"""When the names of one zone that are in conflict are checked: often at first, then once an hour, and many together.

    a key in conflict was                  its names are checked
    ---------------------                  -----------------------
    opened anew, or a resync asks          at once
    refused up to 10 times                 when its mark says so: 5 s after the first refusal, doubling
    refused 11 times (it has "settled")    every hour; marks are not written any more
    where a set of ours has gone           at once: simple and weighted sets exclude each other, also of two of our Services

A check waits until its key can be planned: the cluster must be listed or watched. Otherwise sessions that end soon would check too
early each time, and a name that is free would never be published.

A check writes only if it moves the count of attempts, or finds something else than the last one. For keys that have settled, one item
of the zone tells the next session since when all of them have been checked. Thousands that nobody mends cost some requests an hour
and one write, however often sessions hand over (I6). Each is checked once in two hours at worst.

Conflict checks never delay a batch. If Route 53 does not let the zone be read, they are made up for later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.domain.errors import ZoneThrottledError
from kubesync.domain.objects import Resource, ServiceKey
from kubesync.domain.state import CONFLICT_CHECK_SECONDS, KeyState
from kubesync.zone.journal import ZoneMeans
from kubesync.zone.waits import Reason, Waits

logger = Logger(service="kubesync", child=True)

# A few transactions where attempts are counted: what is to be sent does not wait for all of them.
_KEYS_WITH_A_STEP: Final = 200
# What is noted may be so much behind: keys that settled one by one would write it one by one.
_NOTE_SECONDS: Final = 300.0
_THROTTLED_SECONDS: Final = 30.0
_UNLISTED_SECONDS: Final = 1.0


class CheckSchedule:
    """For the zone's own thread. Times are epoch seconds, but for what is said to be monotonic."""

    def __init__(self, zone_id: str, means: ZoneMeans, waits: Waits) -> None:
        self._zone_id = zone_id
        self._means = means
        self._waits = waits
        self._settled: set[ServiceKey] = set()
        self._names: dict[ServiceKey, frozenset[str]] = {}
        self._noted: float | None = None
        self._looked = False
        self._asked_monotonic = 0.0
        self.throttled = 0  # looks that Route 53 put off, in all
        self._left = _KEYS_WITH_A_STEP
        self._backlog = False

    def begin_step(self) -> None:
        """So many keys may be looked at again."""
        self._left, self._backlog = _KEYS_WITH_A_STEP, False

    def few_of(self, awake: Iterable[ServiceKey]) -> list[ServiceKey]:
        """Leave out those of which nothing is to be had with this step but a look: their state is not even read (I7)."""
        first: list[ServiceKey] = []
        looks: list[ServiceKey] = []
        for key in awake:
            if not (self._waits.slept(key) and key in self._due_at):
                first.append(key)
            elif not self._unlisted(key.cluster):
                looks.append(key)
        return first + looks[:_KEYS_WITH_A_STEP]

    def see(self, state: KeyState) -> None:
        """A key as it stands now: note whether and when it is to be looked at."""
        key, mark = state.key, state.opened
        names = frozenset(name.name for name in state.conflicts if name.zone_id == self._zone_id)
        if not names:
            self.drop(key)
            return
        self._names[key] = names
        if mark is None or not mark.attempts:
            self._settled.discard(key)
            self._check_at(key, 0.0)
        elif not state.settled:
            self._settled.discard(key)
            self._check_at(
                key, self._due_at.get(key, 0.0)
            )  # the mark's time does not say: another zone may have set it
        elif key not in self._settled:
            self._settled.add(key)
            if key not in self._due_at:
                self._check_at(key, self._noted_at() + CONFLICT_CHECK_SECONDS)

    @property
    def _due_at(self) -> Mapping[ServiceKey, float]:
        return self._waits.waiting(Reason.CONFLICT)

    def _check_at(self, key: ServiceKey, epoch: float) -> None:
        self._waits.put(key, Reason.CONFLICT, epoch)

    def news(self, key: ServiceKey) -> None:
        """There is news of a key: its names are looked at now, also where another zone has refused it again meanwhile."""
        if key in self._due_at:
            self._check_at(key, 0.0)

    def ask(self, key: ServiceKey, monotonic: float) -> None:
        """Somebody wanted it, at this time, to be looked at: what was read before does not count."""
        self._check_at(key, 0.0)
        self._asked_monotonic = max(self._asked_monotonic, monotonic)

    @property
    def backlog(self) -> bool:
        """More are due perhaps than this step has looked at."""
        return self._backlog

    def refused(self, key: ServiceKey, name: str, retry_at: float) -> None:
        """A set that is in the way was found at a name."""
        self._names[key] = self._names.get(key, frozenset()) | {name}
        self._check_at(key, retry_at)

    def gone(self, names: AbstractSet[str]) -> None:
        """Sets of ours went at these names: whoever is in conflict there is looked at now."""
        for key in [key for key, at in self._names.items() if not at.isdisjoint(names)]:
            self._waits.end(key, Reason.INHERITED)
            self._waits.wake(key)
            self.ask(key, self._means.clock.monotonic())

    def drop(self, key: ServiceKey) -> None:
        """It has no name in conflict here any more."""
        self._names.pop(key, None)
        self._waits.end(key, Reason.CONFLICT)
        self._settled.discard(key)

    def look(self, states: Sequence[KeyState], now: float) -> Mapping[ServiceKey, KeyState]:
        """Look at those of these keys that are due, as far as this step may. Returns their new states."""
        times = ((state, self._waits.not_before(state.key, Reason.CONFLICT)) for state in states)
        due: list[KeyState] = []
        for state in (state for state, at in times if at is not None and at <= now):
            if self._can_plan(state):
                due.append(state)
            else:
                self._check_at(state.key, now + _UNLISTED_SECONDS)
        due, self._left = due[: self._left], self._left - min(len(due), self._left)
        if not due:
            return {}
        try:
            after = self._means.reclaim(self._zone_id, due, self._asked_monotonic)
        except ZoneThrottledError as error:
            logger.warning("names in conflict are looked at later", zone=self._zone_id, reason=str(error))
            self.throttled += 1
            self._waits.put_off(Reason.CONFLICT, now + _THROTTLED_SECONDS)
            return {}
        self._backlog = self._left == 0 and len(after) == len(due)
        for state in after.values():
            self.see(state)
            if state.key in self._settled:
                self._check_at(state.key, now + CONFLICT_CHECK_SECONDS)
                self._looked = True
            elif state.key in self._due_at and state.opened is not None:
                self._check_at(state.key, state.opened.retry_at)
        return after

    def _unlisted(self, cluster: str) -> bool:
        """No key of the cluster can be planned now."""
        ledger = self._means.ledgers.get(cluster)
        if ledger is None or ledger.config.deleting or ledger.config.paused:
            return False
        return not ledger.listeners[Resource.SERVICES].whole

    def _can_plan(self, state: KeyState) -> bool:
        ledger = self._means.ledgers.get(state.key.cluster)
        return ledger is None or ledger.can_plan(state)

    def to_be_noted(self) -> float | None:
        """Since when every key that has settled was looked at, where that has moved on; None: it has not."""
        if not self._looked:
            return None
        self._looked = False
        since = min((self._due_at[key] for key in self._settled), default=0.0) - CONFLICT_CHECK_SECONDS
        if since < self._noted_at() + _NOTE_SECONDS:
            return None
        self._noted = since
        return since

    def _noted_at(self) -> float:
        if self._noted is None:
            noted = self._means.problems.checked_at(self._zone_id)
            # What a clock that ran ahead has noted would put looks off until then.
            self._noted = noted if noted <= self._means.clock.epoch() else 0.0
        return self._noted
