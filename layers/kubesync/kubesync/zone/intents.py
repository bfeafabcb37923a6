"""A cache of what keys want in one zone, since when each of their units waits, and which keys have low priority.

The lag of a unit counts from the event that made what it wants now, not from the first event of its key: a name in conflict may wait
for days, and must not make a name that its Service adds later look late. A unit that no event made, such as one of a resync, has no lag.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from kubesync.domain.batches import Unit, units_of
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Intent

MOST_INTENTS: Final = 1000
_EVENTS_COME_SECONDS: Final = 5.0


class IntentCache:
    """Holds the intents of at most ``MOST_INTENTS`` keys. For other keys, the zone asks the cluster when their turn comes.

    Times are monotonic seconds. If several events change a key before the zone learns its intent, the lag counts from the first event.
    ``lags``: seconds, of the newest of all units that have landed; there were ``lags_counted``.
    """

    def __init__(self) -> None:
        self.lags: deque[float] = deque(maxlen=10_000)
        self.lags_counted = 0
        self._intents: dict[ObjectKey, Intent] = {}
        self._since: dict[ObjectKey, float] = {}  # of every unit that is not in ``_earlier``
        self._earlier: dict[ObjectKey, dict[int, float | None]] = {}  # by the hash of a unit: a unit itself is large
        self._of_lists: set[ObjectKey] = set()
        self._newest_event = -math.inf

    def mark_changed(self, key: ObjectKey, since: float | None, *, of_list: bool = False) -> None:
        """Drop the cached intent of a key, because the key has changed.

        ``since``: time of the event; None: no event. ``of_list``: see ``Publish``.
        """
        self.drop([key])
        if not of_list:
            self._of_lists.discard(key)
            self._newest_event = max(self._newest_event, since or self._newest_event)
        elif key not in self._since and key not in self._earlier:
            self._of_lists.add(key)
        if since is not None:
            self._since.setdefault(key, since)

    def low_priority_keys(self, now: float) -> AbstractSet[ObjectKey]:
        """Return the keys that other keys go before: keys changed only by lists, while single events still arrive."""
        return self._of_lists if now < self._newest_event + _EVENTS_COME_SECONDS else frozenset()

    def put(self, intent: Intent, *, asked: bool) -> None:
        """Cache an intent. If the cache is full, an asked intent replaces the least recently used one; any other intent is not cached."""
        self._intents.pop(intent.key, None)
        if len(self._intents) >= MOST_INTENTS:
            if not asked:
                return
            self.drop([next(iter(self._intents))])
        self._intents[intent.key] = intent

    def get(self, key: ObjectKey) -> Intent | None:
        """Return the cached intent of a key, and mark it as used last. None: the zone has to ask."""
        intent = self._intents.pop(key, None)
        if intent is not None:
            self._intents[key] = intent
        return intent

    def drop(self, keys: Iterable[ObjectKey]) -> None:
        """Remove the intents of these keys from the cache. The times since when their units wait are kept."""
        for key in keys:
            intent = self._intents.pop(key, None)
            if intent is None or not (key in self._since or key in self._earlier):
                continue
            since, earlier = self._since.pop(key, None), self._earlier.pop(key, {})
            self._earlier[key] = {each: earlier.get(each, since) for each in map(hash, units_of(key, intent.changes))}

    def drop_cluster(self, cluster: str) -> None:
        """Remove the intents of a cluster's keys from the cache. Times are kept."""
        self.drop([key for key in self._intents if key.cluster == cluster])

    def forget(self, key: ObjectKey) -> None:
        """Remove everything about a key that wants nothing: the lag of a later change must not count from earlier events."""
        for known in (self._intents, self._since, self._earlier):
            known.pop(key, None)
        self._of_lists.discard(key)

    def since(self, unit: Unit) -> float | None:
        """Return when the event came that made a unit. None: no event of this session did."""
        return self._earlier.get(unit.key, {}).get(hash(unit), self._since.get(unit.key))

    def record_landed(self, units: Sequence[Unit], now: float) -> None:
        """Remove units that have landed, and the cached intents of their keys. Keep how long each unit waited, where that is known."""
        since = [self.since(unit) for unit in units]
        self.drop(unit.key for unit in units)
        for unit in units:
            self._since.pop(unit.key, None)
            self._earlier.get(unit.key, {}).pop(hash(unit), None)
        lags = [now - each for each in since if each is not None]
        self.lags.extend(lags)
        self.lags_counted += len(lags)
