"""What is due in one hosted zone: keys in the order of their coming, by turns of namespaces (I9), less what has to wait.

clusters ── queue of keys ──┬── waits: keys and units that may not go yet, with the reasons (``waits``)
                            ├── keys known by name only: the zone asks what they want
                            ├── keys in conflict: their names are checked together (``check_schedule``)
                            └── units in a stable order, as many as fit one batch
again ── groups: parts of a refused batch, before anything else

Where IAM denied a name, all keys of its namespace go apart from now on: never in one batch with those of others, by turns with them, and
such namespaces by turns with one another. To find denied names takes many batches. Others would wait for all of them (I9).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import batched, islice
from typing import Final

from kubesync.domain.batches import (
    BatchLimits,
    Namespace,
    Unit,
    by_turns,
    fill,
    in_stable_order,
    namespace_of,
    together,
    units_of,
    without_rivals,
)
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import Wish
from kubesync.messages import Publish
from kubesync.zone.check_schedule import CheckSchedule
from kubesync.zone.passing import Passing
from kubesync.zone.ports import ZonePorts
from kubesync.zone.waits import FullZone, Reason, Waits
from kubesync.zone.wishes import MOST_WISHES, WishCache

KEYS_AT_A_TIME: Final = 200
LATE_SECONDS: Final = 5.0
_LISTED_BESIDE_EVENTS: Final = 50


@dataclass(frozen=True, slots=True)
class Due:
    """What the zone does next. Only one of these is not empty."""

    units: Sequence[Unit] = ()  # for the next batch
    oversized: Sequence[Unit] = ()  # they fit no batch at all
    unknown: Sequence[ObjectKey] = ()  # the zone has to ask first what these keys want
    checks: Sequence[Wish] = ()  # of keys in conflict, whose names are to be checked

    @property
    def nothing(self) -> bool:
        return not (self.units or self.oversized or self.unknown or self.checks)


class ZoneQueue:
    def __init__(self, zone_id: str, ports: ZonePorts) -> None:
        self._ports = ports
        self._queue: dict[ObjectKey, None] = {}
        self._wishes = WishCache()
        # Published, and ``learn`` has not seen yet what they want. True: open since before the session.
        self._unlearned: dict[ObjectKey, bool] = {}
        self._late: dict[str, float] = {}
        self._groups: deque[Sequence[Unit]] = deque()
        self._denied: dict[Namespace, None] = {}  # they go apart; whose turn was last comes last
        self._turn_of_denied = False
        self._last_turns: dict[Namespace, int] = {}  # numbers of batches
        self._waits = Waits()
        self._full: FullZone | None = None
        self.held: set[str] = set()  # clusters of which nothing goes now
        self.checks = CheckSchedule(zone_id, ports, self._waits)
        self.passing = Passing(zone_id, self._waits, ports.clock.epoch)

    def publish(self, message: Publish) -> None:
        """Queue keys of a cluster. ``learn`` takes out those that want nothing."""
        if message.anew:
            self.forget(message.cluster)
        self._late.pop(message.cluster, None)
        self.checks.listed(message.cluster, message.listed)
        for key in (*message.names, *(wish.key for wish in message.wishes)):
            self._wishes.news(key, message.since, of_list=message.of_list or message.inherited)
            self._waits.wake(key)
            self._queue.setdefault(key)
            self._unlearned[key] = message.inherited or self._unlearned.get(key, False)
        self.learn(message.wishes)

    def learn(self, wishes: Iterable[Wish], *, asked: bool = False) -> None:
        """What these keys want now replaces what the zone knew. Keys that want nothing leave the queue."""
        for wish in wishes:
            key = wish.key
            news, inherited = key in self._unlearned, self._unlearned.pop(key, False)
            if not wish.changes:
                self._leave(key)
                continue
            if key not in self._waits.waiting(Reason.FULL):
                self._queue.setdefault(key)
            self._waits.wake(key)
            self._wishes.put(wish, asked=asked)
            self.checks.see(wish)
            self.passing.see(wish)
            if news and not wish.attempts:
                # It waits no longer for what an earlier session was refused.
                self._waits.put(key, Reason.INHERITED, 0.0)
                self.checks.news(key)
            elif inherited:
                self._waits.put(key, Reason.INHERITED, wish.retry_at)

    def _leave(self, key: ObjectKey) -> None:
        self._queue.pop(key, None)
        self._unlearned.pop(key, None)
        self._wishes.forget(key)
        self.passing.see(Wish(key))
        self.checks.drop(key)
        self._waits.forget(key)

    def forget(self, cluster: str) -> None:
        """Nothing of this cluster is written here any more. What is open stays durably open."""
        for key in [*self._queue, *self._waits.waiting(Reason.FULL)]:
            if key.cluster == cluster:
                self._leave(key)
        left = ([unit for unit in group if unit.key.cluster != cluster] for group in self._groups)
        self._groups = deque(group for group in left if group)
        self._late.pop(cluster, None)

    def late(self, cluster: str) -> None:
        """A cluster has not answered: do without it for a while, then ask what its keys want."""
        self._wishes.drop_cluster(cluster)
        self._late[cluster] = self._ports.clock.monotonic() + LATE_SECONDS

    def check(self, keys: Iterable[ObjectKey]) -> None:
        """See ``CheckConflicts``."""
        for key in keys:
            self._queue.setdefault(key)
            self._waits.wake(key)
            self._waits.end(key, Reason.INHERITED)
            self.checks.ask(key)

    def again(self, groups: Sequence[Sequence[Unit]]) -> None:
        """Parts of a refused batch go before anything else, each in a batch of its own."""
        self._groups.extendleft(group for group in reversed(groups) if group)

    def denied(self, keys: Iterable[ObjectKey]) -> None:
        """IAM denies names of these keys. Groups are parted too: what has no denied name so far waits for nothing more."""
        found = {namespace_of(key) for key in keys} - self._denied.keys()
        self._denied |= dict.fromkeys(sorted(found))
        for group in list(self._groups) if found else ():
            self._groups.popleft()
            apart = [unit for unit in group if namespace_of(unit.key) in found]
            others = [unit for unit in group if namespace_of(unit.key) not in found]
            self._groups.extend(part for part in (apart, others) if part)

    def landed(self, units: Sequence[Unit]) -> list[float]:
        """A batch has landed: the clusters say what its keys want now. Returns as ``WishCache.landed``."""
        if self._full is not None:
            self._full.landed(units, self._ports.clock.epoch())
        self.checks.gone({change.key.name for unit in units for change in unit.changes if change.after is None})
        for key in dict.fromkeys(unit.key for unit in units):
            if key in self._queue:  # if it wants more, others come first
                self._queue[key] = self._queue.pop(key)
        return self._wishes.landed(units)

    def refused_as_full(self, units: Sequence[Unit], message: str) -> None:
        if self._full is None:
            self._full = FullZone(message, self._waits)
        self._full.refused(units, self._ports.clock.epoch())

    def decided(self, unit: Unit, retry_at: float | None = None, *, conflict: bool = False) -> None:
        """A cluster has closed or judged a unit; ``retry_at`` (epoch seconds): it was refused, and waits until then."""
        self._waits.end_unit(unit)
        self._waits.wake(unit.key)
        if retry_at is not None:
            self.passing.refused(unit)
        if retry_at is not None and conflict:
            # Its wish keeps it back until a check finds the name free, or the key is given it: then it goes at once.
            self.checks.refused(unit.key, unit.name, retry_at)
        elif retry_at is not None:
            self._waits.put_unit(unit, retry_at)

    def undecided(self, unit: Unit) -> None:
        """A unit was refused, and its cluster has not judged it: it goes again a little later."""
        self._waits.put_unit(unit, self._ports.clock.epoch() + LATE_SECONDS)

    @property
    def problem(self) -> str:
        return "" if self._full is None else self._full.problem

    def due(self, room: Callable[[], BatchLimits], *, checks: bool) -> Due:
        """What the zone does next.

        Args:
            room: what a batch may hold; asked only where there is something to send.
            checks: conflict checks come before a batch this time. False: after it.
        """
        self.checks.begin_step()
        if not self._denied:
            return self._due(room, lambda _key: True, checks=checks)
        self._turn_of_denied = not self._turn_of_denied
        turns = self._due_apart, self._due_of_others
        first, second = turns if self._turn_of_denied else reversed(turns)
        found = first(room, checks=checks)
        return second(room, checks=checks) if found.nothing else found

    def _due_of_others(self, room: Callable[[], BatchLimits], *, checks: bool) -> Due:
        return self._due(room, lambda key: namespace_of(key) not in self._denied, checks=checks)

    def _due_apart(self, room: Callable[[], BatchLimits], *, checks: bool) -> Due:
        """Of the namespace whose last turn is the longest ago."""
        now = self._ports.clock.epoch()
        waiting = {namespace_of(key) for key in self._queue if self._waits.wakes_at(key) <= now}
        waiting.update(namespace_of(group[0].key) for group in self._groups)
        for namespace in [each for each in self._denied if each in waiting]:
            found = self._due(room, _of(namespace), checks=checks)
            if not found.nothing:
                self._denied[namespace] = self._denied.pop(namespace)
                return found
        return Due()

    def _due(self, room: Callable[[], BatchLimits], of: Callable[[ObjectKey], bool], *, checks: bool) -> Due:
        while (first := next((group for group in self._groups if of(group[0].key)), None)) is not None:
            keys = list(dict.fromkeys(unit.key for unit in first))
            if unknown := self._unknown(keys):
                return Due(unknown=unknown)
            current = frozenset(self._units(keys))
            self._groups.remove(first)
            group = self.passing.ready([unit for unit in first if unit in current])
            if group:
                return Due(group)
        found = self._next(room, of, checks=checks)
        return self._next(room, of, checks=True) if found.nothing and not checks else found

    def _next(self, room: Callable[[], BatchLimits], of: Callable[[ObjectKey], bool], *, checks: bool) -> Due:
        units: dict[Unit, None] = {}  # a key that leaves a name may come twice
        unknown: list[ObjectKey] = []
        to_check: list[Wish] = []
        ready_keys = 0
        now = self._ports.clock.epoch()
        late, wakes_at = self._late_ones(), self._waits.wakes_at
        awake = (key for key in self._queue if key.cluster not in late and wakes_at(key) <= now and of(key))
        in_time = by_turns(awake, _itself, self._last_turns)
        # Where events come, lists give way: a batch of many keys takes long, and what comes meanwhile waits for it.
        gives_way = self._wishes.give_way(self._ports.clock.monotonic())
        listed, at_a_time = 0, _LISTED_BESIDE_EVENTS if gives_way else KEYS_AT_A_TIME
        for some in batched(self.checks.first_of(in_time, checks=checks), at_a_time):
            keys = some if listed < _LISTED_BESIDE_EVENTS else [key for key in some if key not in gives_way]
            wishes = self._known(keys)
            leaving = self.passing.beside(wishes).keys()
            unknown += (to_ask := self._unknown([*keys, *leaving]))
            in_check = self.checks.take(wishes.values(), now)
            to_check += in_check
            ready = self._ready([*wishes, *leaving])
            units |= dict.fromkeys(ready)
            busy = {unit.key for unit in ready} | {wish.key for wish in in_check}
            if not leaving.isdisjoint(to_ask):  # heirs go once it is known what these want
                busy.update(wishes)
            ready_keys += len(busy)
            busy.update(to_ask)
            asleep = [key for key in keys if key in self._queue and key not in busy]
            self._waits.sleep(asleep, now, self.passing.until)
            self._wishes.drop(key for key in asleep if self.passing.until(key) is None)
            listed += len(busy & gives_way)
            if self._enough(units) or len(unknown) >= KEYS_AT_A_TIME or ready_keys + len(unknown) >= MOST_WISHES:
                break
        if to_check and (checks or not (units or unknown)):
            return Due(checks=to_check)
        if unknown and ready_keys < MOST_WISHES and not (self._enough(units) and _share(unknown, units)):
            return Due(unknown=unknown[: MOST_WISHES - ready_keys])
        if not units:
            probe = self._probe()
            if not probe.units:
                return probe
            units = dict.fromkeys(probe.units)
        place = {key: number for number, key in enumerate(dict.fromkeys(unit.key for unit in units))}
        first_come = sorted(without_rivals(in_stable_order([*units])), key=lambda unit: place[unit.key])
        taken, _, oversized = fill([*by_turns(together(first_come), lambda group: group[0].key)], room())
        if oversized:
            return Due(oversized=oversized)
        turn = max(self._last_turns.values(), default=0) + 1
        self._last_turns.update((namespace_of(unit.key), turn) for unit in taken)
        return Due(in_stable_order(taken))

    def _enough(self, units: Iterable[Unit]) -> bool:
        return sum(unit.elements for unit in units) >= self._ports.limits.elements

    def _ready(self, keys: Iterable[ObjectKey]) -> list[Unit]:
        """Units that may go now. Keys that could only add sets to a full zone leave the queue, and wait there."""
        now = self._ports.clock.epoch()
        units = self.passing.ready([unit for unit in self._units(keys) if not self._waits.refused(unit, now)])
        if self._full is None:
            return units
        fitting = [unit for group in together(units) if sum(each.growth for each in group) <= 0 for unit in group]
        busy = {unit.key for unit in fitting}
        for key in {unit.key: None for unit in units if unit.key not in busy}:
            self._queue.pop(key, None)
            self._wishes.drop([key])
            self._waits.put(key, Reason.FULL, now)
        return fitting

    def _probe(self) -> Due:
        """As many of those that wait for room as may try now."""
        full = self._full
        if full is None:
            return Due()
        now, waiting = self._ports.clock.epoch(), self._waits.waiting(Reason.FULL)
        late = self._late_ones()
        in_time = by_turns((key for key in waiting if key.cluster not in late), _itself, self._last_turns)
        while waiting and (share := full.share(now)):
            keys = list(islice(in_time, min(share, KEYS_AT_A_TIME)))
            if unknown := self._unknown(keys):
                return Due(unknown=unknown)
            if not keys:
                return Due()
            for key in keys:
                self._waits.end(key, Reason.FULL)
                self._queue.setdefault(key)
            units = [unit for unit in self._units(keys) if not self._waits.refused(unit, now)]
            if units:
                return Due(units[:share])
        if not waiting:
            self._full = None
        return Due()

    def _late_ones(self) -> set[str]:
        now = self._ports.clock.monotonic()
        return self.held.union(cluster for cluster, until in self._late.items() if until > now)

    def _known(self, keys: Iterable[ObjectKey]) -> Mapping[ObjectKey, Wish]:
        """Wishes of keys that do not wait as an earlier session wanted it."""
        found = ((key, self._wishes.get(key)) for key in keys if key.cluster not in self.held)
        return {key: wish for key, wish in found if wish is not None and not self._waits_from_before(wish)}

    def _unknown(self, keys: Iterable[ObjectKey]) -> list[ObjectKey]:
        """Keys of which the zone has to ask what they want. Those that wait nowhere want nothing."""
        full, late = self._waits.waiting(Reason.FULL), self._late_ones()
        waiting = (key for key in keys if (key in self._queue or key in full) and key.cluster not in late)
        return [key for key in waiting if self._wishes.get(key) is None]

    def _units(self, keys: Iterable[ObjectKey]) -> list[Unit]:
        """Units that these keys want, without names in conflict."""
        return [
            unit
            for key, wish in self._known(keys).items()
            for unit in units_of(key, wish.changes)
            if unit.name not in wish.conflicts
        ]

    def _waits_from_before(self, wish: Wish) -> bool:
        """Whether a key has to wait as an earlier session wanted it to. News of it end that."""
        not_before = self._waits.not_before(wish.key, Reason.INHERITED) or 0.0
        if wish.attempts and not_before > self._ports.clock.epoch():
            return True
        self._waits.end(wish.key, Reason.INHERITED)
        return False

    def next_retry(self) -> float | None:
        """Seconds until something that waits is due; None: nothing waits."""
        now = self._ports.clock.epoch()
        at = self._waits.next(self._queue, now)
        return None if at is None else max(0.05, at - now)


def _itself(key: ObjectKey) -> ObjectKey:
    return key


def _of(namespace: Namespace) -> Callable[[ObjectKey], bool]:
    return lambda key: namespace_of(key) == namespace


def _share(keys: Iterable[ObjectKey], units: Iterable[Unit]) -> bool:
    """Whether each namespace of these keys has units already."""
    return {namespace_of(key) for key in keys} <= {namespace_of(unit.key) for unit in units}
