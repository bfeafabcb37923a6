"""Decides what one hosted zone does next: first in, first out, round-robin over namespaces (I9); waiting keys are skipped.

clusters ── queue of keys ──┬── keys and units that may not go yet, with the reasons (``waits``)
                            ├── keys whose intents are not kept: the zone asks what they want
                            ├── keys in conflict: their names are checked together (``check_schedule``)
                            └── units in a stable order, as many as fit one batch
send_first ── groups: parts of a refused batch, before anything else

A *unit* is the changes of one key at one name. A key's units are known once the zone has the key's *intent*.

If IAM denies a name, all keys of the key's namespace are sent separately from then on: never in one batch with keys of other namespaces.
Batches of such namespaces alternate with batches of all other namespaces, and with one another. It takes many batches to find all denied
names, and other namespaces must not wait that long (I9).
"""

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import batched
from typing import Final

from kubesync.domain.batches import BatchLimits, Unit, by_turns, next_batch, together, units_of
from kubesync.domain.objects import Namespace, ObjectKey
from kubesync.domain.plan import Intent
from kubesync.messages import Decision, Publish
from kubesync.zone.check_schedule import KEYS_IN_A_CHECK, CheckSchedule
from kubesync.zone.passing import Passing
from kubesync.zone.ports import ZonePorts
from kubesync.zone.waits import MOST_INTENTS, TRY_AGAIN_SECONDS, FullZone, QueuedKey, QueuedKeys

KEYS_AT_A_TIME: Final = 200
LATE_SECONDS: Final = 5.0
_EVENTS_COME_SECONDS: Final = 5.0
_LISTED_DURING_EVENTS: Final = 50
"""While single events arrive, a batch has at most about so many keys of lists: a large batch takes long, and events would wait for it."""


@dataclass(frozen=True, slots=True)
class Due:
    """What the zone does next. One field is not empty."""

    units: Sequence[Unit] = ()  # for the next batch
    oversized: Sequence[Unit] = ()  # too large for any batch
    unknown: Sequence[ObjectKey] = ()  # the zone has to ask first what these keys want
    checks: Sequence[Intent] = ()  # intents of keys in conflict: check their names now


class ZoneQueue:
    """The keys of one zone that want changes, and what holds each of them back. For the zone's own thread.

    ``late_clusters``: clusters that have not closed their part of a batch in time, each with the number of the question that it may still
    answer. Nothing of them is sent until they do. ``keys``, ``checks`` and ``passing`` belong to this queue; the zone also calls them.

    Args:
        room: returns what a batch may hold. It is called only if there is something to send.
    """

    def __init__(self, zone_id: str, ports: ZonePorts, room: Callable[[], BatchLimits]) -> None:
        self.keys = QueuedKeys()
        self.late_clusters: dict[str, int] = {}
        self._ports = ports
        self._room = room
        self._newest_event = -math.inf  # monotonic: when the newest single event came, not one of a list
        # Clusters that did not answer a question other than to close, each with the time (monotonic) until which they are skipped.
        self._skipped_until: dict[str, float] = {}
        self._groups: deque[Sequence[Unit]] = deque()  # see ``send_first``
        self._denied: dict[Namespace, None] = {}  # namespaces that are sent separately, least recently served first
        self._turn_of_denied = False  # whose turn it was last: of one of these, or of all other namespaces
        # The number of the last batch that served a namespace; batches count from 1. Who was served longest ago comes first (``by_turns``).
        self._last_turns: dict[Namespace, int] = {}
        self._full: FullZone | None = None  # None: the zone is not full, as far as is known
        self.checks = CheckSchedule(zone_id, ports, self.keys)
        self.passing = Passing(zone_id, self.keys, ports.scheduler.epoch_seconds)

    def publish(self, message: Publish) -> None:
        """Queue the keys of a cluster's message and wake them. Keys that want nothing any more leave the queue."""
        if message.restart:  # it publishes all its keys anew
            self.forget_cluster(message.cluster)
        self._skipped_until.pop(message.cluster, None)
        self.checks.set_listed(message.cluster, message.listed)
        for intent in message.intents:
            # Units that the key wanted before keep the time since when they wait. Those that are new count from this message (``changed``).
            self.keys.drop_intents([intent.key])
            self.keys.get_or_add(intent.key).changed(message, intent)
        if message.since is not None and not (message.of_list or message.inherited):
            self._newest_event = max(self._newest_event, message.since)
        self.learn(message.intents)

    def learn(self, intents: Iterable[Intent], *, asked: bool = False) -> None:
        """Replace what the zone knows of these keys. Keys that want nothing leave the queue; the other keys wake, and join the queue.

        Called with what clusters publish, and with their answers to questions of the zone.

        Args:
            asked: the zone asked for these intents, and no cluster published them.
        """
        for intent in intents:
            if not intent.changes:
                self._remove_key(intent.key)
                continue
            known = self.keys.get_or_add(intent.key)
            known.wake()
            self.keys.keep_intent(intent, asked=asked)
            self.checks.update(known, intent)
            self.passing.update(known, intent)
            if not intent.attempts:
                # The cluster has planned the key since it was refused: a refusal of an earlier session no longer delays the key.
                known.not_before = 0.0

    def _remove_key(self, key: ObjectKey) -> None:
        """Remove a key that wants nothing, with all its waits and checks."""
        if (known := self.keys.remove(key)) is not None:
            self.passing.update(known, Intent(key))

    def forget_cluster(self, cluster: str) -> None:
        """Remove all keys of a cluster from this queue. Nothing durable changes: its open keys stay open."""
        for key in [key for key in self.keys if key.cluster == cluster]:
            self._remove_key(key)
        left = ([unit for unit in group if unit.key.cluster != cluster] for group in self._groups)
        self._groups = deque(group for group in left if group)

    def skip_for_a_while(self, cluster: str) -> None:
        """Skip the keys of a cluster that did not answer for ``LATE_SECONDS``, and ask for their intents again after that."""
        self.keys.drop_intents([key for key in self.keys if key.cluster == cluster])
        self._skipped_until[cluster] = self._ports.scheduler.monotonic() + LATE_SECONDS

    def request_checks(self, keys: Iterable[ObjectKey]) -> None:
        """Check the names of these keys as soon as possible, because a person asked (``CheckConflicts``)."""
        for key in keys:
            self.checks.check_afresh(self.keys.get_or_add(key))

    def send_first(self, groups: Sequence[Sequence[Unit]]) -> None:
        """Send parts of a refused batch before anything else, each in its own batch."""
        self._groups.extendleft(group for group in reversed(groups) if group)

    def separate_denied(self, keys: Iterable[ObjectKey]) -> None:
        """Send the namespaces of these keys separately from now on, because IAM denies names of these keys.

        Groups that wait to be sent are split, so that namespaces without a denied name do not wait.
        """
        found = {key.full_namespace for key in keys} - self._denied.keys()
        self._denied |= dict.fromkeys(sorted(found))
        for group in list(self._groups) if found else ():
            self._groups.popleft()
            apart = [unit for unit in group if unit.key.full_namespace in found]
            others = [unit for unit in group if unit.key.full_namespace not in found]
            self._groups.extend(part for part in (apart, others) if part)

    def record_landed(self, units: Sequence[Unit]) -> None:
        """Note that a batch with these units has landed.

        The intents of their keys are dropped, because the clusters send new ones when they close.
        """
        if self._full is not None:
            self._full.record_landed(units, self._ports.scheduler.epoch_seconds())
        self.checks.check_freed({change.key.name for unit in units for change in unit.changes if change.after is None})
        self.keys.record_landed(units, self._ports.scheduler.monotonic())

    def record_full_zone(self, units: Sequence[Unit], message: str) -> None:
        """Hold back all units that add sets from now on, after Route 53 refused a batch of these units because the zone is full."""
        if self._full is None:
            self._full = FullZone(message)
        self._full.record_refused(units, self._ports.scheduler.epoch_seconds())

    def apply_decision(self, unit: Unit, decision: Decision | None = None) -> None:
        """Apply what a cluster decided about a unit, and wake its key. None: the unit has landed, or its key no longer wants it."""
        known = self.keys.get(unit.key)
        if known is None:
            return
        known.wake()
        known.end_wait(unit)
        if decision is None or decision.retry_at is None:
            return  # the key does not wait for the unit
        self.passing.record_refused(unit, too_large=decision.code == "TooLargeForBatch")
        if decision.conflict:
            # The conflict holds the unit back until a check of the name finds it free, or the key owns the name.
            known.conflicts |= {unit.name}
            known.check_at = decision.retry_at
        else:
            known.wait(unit, decision.retry_at)

    @property
    def problem(self) -> str:
        """That the zone is full, in one line. Empty: it is not."""
        return "" if self._full is None else self._full.problem

    def due(self) -> Due | None:
        """Return what the zone does next. None: nothing now. Call it once a step: it takes units, moves turns on and puts keys to sleep.

        Batches and conflict checks alternate: after a check, batches go first, and after all else, checks do (``go_first``). A question is
        asked on the way to one of them, and changes nothing of that.
        """
        found = self._due_by_turns()
        if found is None and not self.checks.go_first:
            self.checks.go_first = True  # nothing else is due: look at checks, too
            found = self._due_by_turns()
        if found is None or not found.unknown:
            self.checks.go_first = found is None or not found.checks
        return found

    def _due_by_turns(self) -> Due | None:
        """Return what is due. Namespaces that are sent separately, because IAM denies names of theirs (``_denied``), and the rest take turns.

        In a turn of those that are sent separately, the one that was served longest ago goes first. The rest, all other namespaces together,
        is None here. Whoever has nothing to send gives its turn away.
        """
        now = self._ports.scheduler.epoch_seconds()
        self._turn_of_denied = not self._turn_of_denied
        queued = self.keys.items() if self._denied else ()
        # Who has keys or groups to send now.
        waiting = {self._apart(key) for key, known in queued if known.is_awake(now)}
        waiting.update(self._apart(group[0].key) for group in self._groups)
        denied = [each for each in self._denied if each in waiting]
        for namespace in (*denied, None) if self._turn_of_denied else (None, *denied):
            if (found := self._due_of(namespace)) is not None:
                if namespace is not None:  # it was served: to the end
                    self._denied[namespace] = self._denied.pop(namespace)
                return found
        return None

    def _apart(self, key: ObjectKey) -> Namespace | None:
        """Return the namespace of a key if it is sent separately. None: it is sent together with all others."""
        return key.full_namespace if self._denied and key.full_namespace in self._denied else None

    def _due_of(self, apart: Namespace | None) -> Due | None:
        """Return what is due: first parts of refused batches, then of queued keys. Units that their keys no longer want are left out.

        ``apart``: only of this namespace, which is sent separately. None: of all that are not.
        """
        for first in [group for group in self._groups if self._apart(group[0].key) == apart]:
            keys = list(dict.fromkeys(unit.key for unit in first))
            if unknown := self._keys_to_ask(keys):
                return Due(unknown=unknown)
            current = frozenset(self._sendable_units(keys))
            self._groups.remove(first)
            group = self.passing.ready([unit for unit in first if unit in current])
            if group:
                return Due(group)
        return self._due_in_queue(apart)

    def _due_in_queue(self, apart: Namespace | None) -> Due | None:
        """Return what is due of queued keys. ``apart``: as in ``_due_of``.

        Goes through awake keys in their turns, some at a time, and collects units to send, keys to ask and names to check. Puts keys to sleep
        of which nothing can be sent now. Stops once a batch is full, enough keys must be asked, or as many intents are needed as the zone
        keeps. Then returns the first that applies:

            conflict checks     they go first, or there is nothing to send or to ask
            questions           keys must be asked, unless as many intents are in use as the zone keeps, or a full batch is ready that has units of
                                each namespace that must be asked
            a batch             there are units
            a try to add sets   the zone is full (``_due_of_full_zone``)
        """
        units: dict[Unit, None] = {}  # a set: the units of a leaver (``passing``) may be found twice
        unknown: list[ObjectKey] = []  # keys that must be asked
        to_check: list[Intent] = []
        ready_keys = 0  # how many have units or a check now. The zone can keep the intents of ``MOST_INTENTS`` keys
        now = self._ports.scheduler.epoch_seconds()
        # While single events arrive, keys of lists give way: once ``_LISTED_DURING_EVENTS`` of them have something to do (``listed``), the
        # others are passed over. They stay awake.
        events_come = self._ports.scheduler.monotonic() < self._newest_event + _EVENTS_COME_SECONDS
        listed, at_a_time = 0, _LISTED_DURING_EVENTS if events_come else KEYS_AT_A_TIME
        for some in batched(self.checks.in_order(self._awake_in_turn(apart, now)), at_a_time):
            gives_way = {key for key in some if events_come and self.keys[key].of_list}
            keys = some if listed < _LISTED_DURING_EVENTS else [key for key in some if key not in gives_way]
            # 1. What these keys want, and the leavers of names that they want: both go in one batch.
            intents = self._sendable_intents(keys)
            leaving = self.passing.others_leaving(intents).keys()
            unknown += (to_ask := self._keys_to_ask([*keys, *leaving]))
            # 2. Of these: what to check, and what to send.
            in_check = self.checks.due(intents.values(), now)[: KEYS_IN_A_CHECK - len(to_check)]
            to_check += in_check
            ready = self._ready([*intents, *leaving])
            units |= dict.fromkeys(ready)
            # 3. All that have nothing to send, to check or to be asked now go to sleep. The others are busy.
            busy = {unit.key for unit in ready} | {intent.key for intent in in_check}
            if not leaving.isdisjoint(to_ask):  # heirs stay awake: they go once the intents of the leavers are known
                busy.update(intents)
            ready_keys += len(busy)
            busy.update(to_ask)
            self._put_to_sleep((key for key in keys if key not in busy), now)
            listed += len(busy & gives_way)
            if self._fill_a_batch(units) or len(unknown) >= KEYS_AT_A_TIME or ready_keys + len(unknown) >= MOST_INTENTS:
                break
        if to_check and (self.checks.go_first or not (units or unknown)):
            return Due(checks=to_check)
        full = self._fill_a_batch(units) and _all_have_units(unknown, units)
        if unknown and ready_keys < MOST_INTENTS and not full:
            return Due(unknown=unknown[: MOST_INTENTS - ready_keys])
        return self._batch_of(units) if units else self._due_of_full_zone()

    def _awake_in_turn(self, apart: Namespace | None, now: float) -> Iterator[QueuedKey]:
        """Return the awake keys of clusters that are not skipped, round-robin over namespaces. ``apart``: as in ``_due_of``."""
        skipped = self._skipped_clusters()
        awake = (known for known in self.keys.values() if known.is_awake(now) and known.key.cluster not in skipped)
        mine = (known for known in awake if self._apart(known.key) == apart)
        return by_turns(mine, lambda known: known.key, self._last_turns)

    def _put_to_sleep(self, keys: Iterable[ObjectKey], now: float) -> None:
        """Put keys to sleep of which nothing can be sent now, except those that wait for room: they are not awake anyway (``FullZone``).

        Args:
            now: the time at which it was decided what can be sent. A unit whose wait has ended since then still wakes its key.
        """
        for known in (self.keys[key] for key in keys if not self.keys[key].for_room):
            heir_by = self.passing.waits_until(known)
            known.sleep(now, self.checks.due_at(known), heir_by)
            # The intent of a sleeping key is not kept (I7), unless the key waits for an heir (until ``heir_by``).
            if heir_by is None:
                self.keys.drop_intents([known.key])

    def _batch_of(self, units: Collection[Unit]) -> Due | None:
        """Return as many of these units as fit one batch, or units that are too large for any. Notes which namespaces this turn serves."""
        taken, oversized = next_batch(units, self._room())
        if oversized:
            return Due(oversized=oversized)
        turn = max(self._last_turns.values(), default=0) + 1
        self._last_turns.update((unit.key.full_namespace, turn) for unit in taken)
        return Due(taken) if taken else None

    def _fill_a_batch(self, units: Iterable[Unit]) -> bool:
        """Whether these units are as many as one batch can hold."""
        return sum(unit.elements for unit in units) >= self._ports.limits.elements

    def _ready(self, keys: Iterable[ObjectKey]) -> list[Unit]:
        """Return the units of these keys that may be sent now.

        If the zone is full, this also lets keys wait for room (``for_room``) whose units would only add sets, behind those that do already.
        """
        units = self.passing.ready(self._sendable_units(keys))
        if self._full is None:
            return units
        fitting = [unit for group in together(units) if sum(each.growth for each in group) <= 0 for unit in group]
        busy = {unit.key for unit in fitting}
        for key in {unit.key: None for unit in units if unit.key not in busy}:
            self.keys.drop_intents([key])
            self.keys.move_to_end(key).for_room = True
        return fitting

    def _due_of_full_zone(self) -> Due | None:
        """Return a batch that tries to add sets to a full zone, if it is time to try; or keys to ask first. None if the zone is not full.

        The keys of the batch no longer wait for room. Once no key does, the zone is not full any more.
        """
        full = self._full
        if full is None:
            return None
        now, skipped = self._ports.scheduler.epoch_seconds(), self._skipped_clusters()
        waiting = [known for known in self.keys.values() if known.for_room]
        in_time = (known for known in waiting if known.key.cluster not in skipped)
        in_turn = by_turns(in_time, lambda known: known.key, self._last_turns)
        share = full.allowed_units(now)  # how many units may be tried
        # 0: it is not yet time to try. A key has at least one unit, so ``share`` keys at a time are enough.
        for some in batched(in_turn, min(share, KEYS_AT_A_TIME)) if share else ():
            keys = [known.key for known in some]
            if unknown := self._keys_to_ask(keys):
                return Due(unknown=unknown)
            for known in some:
                known.for_room = False  # if they are refused for room again, ``_ready`` lets them wait again
            if units := self._sendable_units(keys):
                return self._batch_of(units[:share])
        if not any(known.for_room for known in waiting):
            self._full = None
        return None

    def _skipped_clusters(self) -> set[str]:
        """Return the clusters of which nothing is sent or asked now: ``late_clusters``, and clusters that did not answer lately."""
        now = self._ports.scheduler.monotonic()
        return self.late_clusters.keys() | {cluster for cluster, until in self._skipped_until.items() if until > now}

    def _sendable_intents(self, keys: Iterable[ObjectKey]) -> Mapping[ObjectKey, Intent]:
        """Return the intents of these keys that may be sent now.

        Leaves out keys of skipped clusters, keys whose intents are unknown, and keys whose retry delay of an earlier session is not over.
        """
        now, skipped = self._ports.scheduler.epoch_seconds(), self._skipped_clusters()
        found = ((key, self.keys.intent(key)) for key in keys if key.cluster not in skipped)
        return {key: intent for key, intent in found if intent is not None and self.keys[key].not_before <= now}

    def _keys_to_ask(self, keys: Iterable[ObjectKey]) -> list[ObjectKey]:
        """Return the keys whose intents are unknown and whose clusters must be asked for them. A key that is not queued wants nothing."""
        skipped = self._skipped_clusters()
        queued = (key for key in keys if key in self.keys and key.cluster not in skipped)
        return [key for key in queued if self.keys.intent(key) is None]

    def _sendable_units(self, keys: Iterable[ObjectKey]) -> list[Unit]:
        """Return the units of these keys that may be sent now (``_sendable_intents``), without names in conflict and units refused lately."""
        now = self._ports.scheduler.epoch_seconds()
        return [
            unit
            for key, intent in self._sendable_intents(keys).items()
            for unit in units_of(key, intent.changes)
            if unit.name not in intent.conflicts and self.keys[key].refused_units.get(unit, 0.0) <= now
        ]

    def next_retry(self) -> float | None:
        """Return the seconds until the first waiting key is due, or the next try of a full zone. None: nothing waits.

        Called when nothing is due. If a key is awake nevertheless, it cannot go for another reason, for example because its cluster is skipped:
        look again in a second. A time that is over already gives 0.05 s and not 0, which would mean that there is more to do at once.
        """
        now = self._ports.scheduler.epoch_seconds()
        queued = [known for known in self.keys.values() if not known.for_room]
        times = [now + TRY_AGAIN_SECONDS if known.is_awake(now) else known.wakes_at or now for known in queued]
        if self._full is not None:
            times.append(self._full.next_try)
        return max(0.05, min(times) - now) if times else None


def _all_have_units(keys: Iterable[ObjectKey], units: Iterable[Unit]) -> bool:
    """Whether each namespace of these keys has at least one of these units."""
    return {key.full_namespace for key in keys} <= {unit.key.full_namespace for unit in units}
