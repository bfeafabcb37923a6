"""What one hosted zone knows of each key that wants changes there: what has to wait, until when, and why.

    why                                                     what waits               not before
    ---                                                     ----------               ----------
    it was refused in an earlier session: its mark does     the key                  the time of its open mark, at once if the
      not say which unit, nor in which zone                                          cluster plans the key again
    foreign sets stand at its names                         a check of these names   see ``check_schedule``
    its units could only add sets to a full zone            the key                  the zone's next try: see ``FullZone``
    Route 53 refused it                                     the unit alone           the time that its cluster decided

A key of which nothing can be sent *sleeps* until the first of its waits is over, but never before an inherited wait is over. The zone does
not keep the intent of a sleeping key, and does not ask for it: otherwise it would ask for thousands of waiting keys at every step (I7).

The lag of a unit counts from the event that made what it wants now, not from the first event of its key: a name in conflict may wait
for days, and must not make a name that its Service adds later look late. A unit that no event made, such as one of a resync, has no lag.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from kubesync.actors.backoff import Backoff
from kubesync.domain.batches import Unit, units_of
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Intent
from kubesync.domain.state import Form, Name
from kubesync.messages import Publish

MOST_INTENTS: Final = 1000
TRY_AGAIN_SECONDS: Final = 1.0
_NONE: Final[Mapping[Any, Any]] = MappingProxyType({})  # shared: thousands of keys may be queued
_PROBES: Final = Backoff(initial=5.0, cap=300.0)


@dataclass(slots=True)
class QueuedKey:
    """A key that wants changes in the zone. All times are epoch seconds, only ``since`` and ``earlier`` are monotonic.

    ``not_before``: the end of an inherited wait, of an earlier session. ``of_list``: only lists have changed it. ``wakes_at``: None: it does
    not sleep. ``for_room``: it waits for room in a full zone (``FullZone``).
    ``check_at``: when its names in conflict (``conflicts``) are checked, once the zone knows that ``needs`` are listed; None: not scheduled.
    ``checked_hourly``: as in ``domain.state.KeyState``.
    """

    key: ObjectKey
    not_before: float = 0.0
    wakes_at: float | None = None
    refused_units: Mapping[Unit, float] = _NONE  # each with the time until which it waits
    for_room: bool = False
    conflicts: frozenset[str] = frozenset()
    needs: frozenset[Resource] = frozenset()
    checked_hourly: bool = False
    check_at: float | None = None
    passes: frozenset[str] = frozenset()  # names that it leaves, or at which it turns (``Intent.passes``)
    heir_to: frozenset[str] = frozenset()  # names of leavers (``passing``) that it wants
    turns_to: Mapping[str, Form] = _NONE  # names at which it turns, each with the new form
    turns_with: frozenset[Name] = frozenset()  # claims that must turn in the same batch, or go
    of_list: bool = False
    since: float | None = None  # when the event came that made the units which are not in ``earlier``; None: none did
    earlier: Mapping[int, float | None] = _NONE  # the same, by the hash of a unit: a unit itself is large

    def changed(self, message: Publish, intent: Intent) -> None:
        """Wake the key, because its cluster has published it, and note when this was and why. If several events change a key, its lag counts
        from the first.
        """
        self.wake()
        self.for_room = False
        if message.inherited:  # it was left open by an earlier session
            self.not_before = intent.retry_at
        # A key that an event changed never gives way as keys of lists do, as long as that change waits. So a message of an event ends
        # ``of_list``, and one of a list sets it only if no change of an event waits: its time would be in ``since`` or ``earlier``.
        of_list = message.of_list or message.inherited
        self.of_list = of_list and (self.of_list or (self.since is None and not self.earlier))
        self.since = message.since if self.since is None else self.since

    def since_of(self, unit: Unit) -> float | None:
        """Return when the event came that made a unit. None: no event of this session did."""
        return self.earlier.get(hash(unit), self.since)

    def keep_since(self, units: Iterable[Unit]) -> None:
        """Keep since when these units wait, in ``earlier``. Called before the key's intent is dropped: it may want something else next."""
        if self.earlier or self.since is not None:
            self.earlier, self.since = {each: self.earlier.get(each, self.since) for each in map(hash, units)}, None

    def forget_since(self, units: Iterable[Unit]) -> None:
        """Forget since when these units waited: they have landed."""
        gone = set(map(hash, units))
        self.since, self.earlier = None, {each: at for each, at in self.earlier.items() if each not in gone}

    def wait(self, unit: Unit, not_before: float) -> None:
        """Let a refused unit wait."""
        self.refused_units = {**self.refused_units, unit: not_before}

    def end_wait(self, unit: Unit) -> None:
        """End the wait of a refused unit, if there is one."""
        if unit in self.refused_units:
            # The mapping is never changed, but replaced. To copy it as a whole hashes no unit again: to hash one is slow, and a key may have
            # thousands.
            self.refused_units = left = {**self.refused_units}
            del left[unit]

    def wake(self) -> None:
        self.wakes_at = None

    def wake_by(self, epoch: float) -> None:
        """Wake at this time at the latest."""
        if self.wakes_at is not None:
            self.wakes_at = min(self.wakes_at, epoch)

    def is_awake(self, now: float) -> bool:
        """Whether it is due now. A key that waits for room is not: see ``FullZone``."""
        return not self.for_room and (self.wakes_at is None or self.wakes_at <= now)

    def sleep(self, now: float, *others: float | None) -> None:
        """Sleep until the first wait is over. Removes waits of units that are over. If nothing says when, sleeps ``TRY_AGAIN_SECONDS``.

        ``others``: further times at which it must wake; None: no such time.
        """
        self.refused_units = {unit: at for unit, at in self.refused_units.items() if at > now}
        # The inherited time may come from a refusal in another zone. Until it is over, nothing of the key is sent.
        waits = [at for at in (*others, *self.refused_units.values()) if at is not None]
        self.wakes_at = self.not_before if self.not_before > now else min(waits, default=now + TRY_AGAIN_SECONDS)


class QueuedKeys(dict[ObjectKey, QueuedKey]):
    """All keys of a zone in the order of the queue, and the intents of at most ``MOST_INTENTS`` of them.

    For other keys, the zone asks the cluster when their turn comes. ``lags``: seconds, of the newest of all units that have landed;
    there were ``lags_counted``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lags: deque[float] = deque(maxlen=10_000)
        self.lags_counted = 0
        self._intents: dict[ObjectKey, Intent] = {}  # least recently used first

    def get_or_add(self, key: ObjectKey) -> QueuedKey:
        """Return what is known of a key. A new key joins the end of the queue."""
        return self.setdefault(key, QueuedKey(key))

    def move_to_end(self, key: ObjectKey) -> QueuedKey:
        """Let all other keys go before a key, and return what is known of it."""
        self[key] = known = self.pop(key)
        return known

    def remove(self, key: ObjectKey) -> QueuedKey | None:
        """Forget a key. Returns what was known of it."""
        self._intents.pop(key, None)
        return self.pop(key, None)

    def keep_intent(self, intent: Intent, *, asked: bool) -> None:
        """Keep what a key wants. If there are ``MOST_INTENTS``, an asked intent replaces the least recently used one; any other one is not kept:
        the zone needs at once what it asks for, and asks for the others in their turn.
        """
        self._intents.pop(intent.key, None)
        if len(self._intents) >= MOST_INTENTS:
            if not asked:
                return
            self.drop_intents([next(iter(self._intents))])
        self._intents[intent.key] = intent

    def intent(self, key: ObjectKey) -> Intent | None:
        """Return the intent of a key, and mark it as used last. None: the zone has to ask."""
        if key in self._intents:
            self._intents[key] = self._intents.pop(key)
        return self._intents.get(key)

    def drop_intents(self, keys: Iterable[ObjectKey]) -> None:
        """Remove the intents of these keys, not the keys themselves. Their clusters will say again what they want.

        The times since when the units wait are kept: what a key still wants then has its lag from the first event.
        """
        for key in keys:
            if (intent := self._intents.pop(key, None)) is not None:
                self[key].keep_since(units_of(key, intent.changes))

    def since(self, unit: Unit) -> float | None:
        """Return when the event came that made a unit. None: no event of this session did."""
        return self[unit.key].since_of(unit) if unit.key in self else None

    def record_landed(self, units: Sequence[Unit], now: float) -> None:
        """Remove units that have landed, and the intents of their keys. Keep how long each unit waited, where that is known."""
        lags = [now - since for since in map(self.since, units) if since is not None]
        self.lags.extend(lags)
        self.lags_counted += len(lags)
        of_keys: dict[ObjectKey, list[Unit]] = {}
        for unit in units:
            of_keys.setdefault(unit.key, []).append(unit)
        self.drop_intents(of_keys)
        for key in [key for key in of_keys if key in self]:
            # To the end of the queue: if the key wants more, other keys of its namespace come first.
            self.move_to_end(key).forget_since(of_keys[key])


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
    ``message``: what Route 53 said. ``next_try``: epoch seconds.
    """

    def __init__(self, message: str) -> None:
        self.next_try = 0.0
        self.problem = (
            f"the zone is full: deletions and changes go through, what would add record sets waits ({message})"
        )
        self._share = 1  # how many units that add sets the next batch may hold
        self._failures = 0  # how often in a row a batch with one such unit was refused

    def allowed_units(self, now: float) -> int:
        """Return how many units that add sets may be tried now. 0: the next try is later."""
        return self._share if now >= self.next_try else 0

    def record_refused(self, units: Sequence[Unit], now: float) -> None:
        """Allow one unit only, after a batch was refused because the zone is full. If that batch had one such unit: after a delay."""
        self._share = 1
        if sum(unit.growth > 0 for unit in units) == 1:
            self._failures += 1
            self.next_try = now + _PROBES.delay(self._failures)

    def record_landed(self, units: Sequence[Unit], now: float) -> None:
        """Allow more after a batch has landed: twice as many if it added sets, and an immediate try if it only removed some."""
        if any(unit.growth > 0 for unit in units):
            self._share *= 2
        elif not any(unit.growth < 0 for unit in units):
            return
        self._failures = 0
        self.next_try = now
