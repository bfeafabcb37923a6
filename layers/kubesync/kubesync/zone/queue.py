"""What is due in one hosted zone: open keys in the order of their coming, less what has to wait.

add ── inbox ── queue ──┬── waits: keys and units that may not go yet, with the reasons (``waits``)
                        └── due: units in a stable order, as many as fit one batch
again ── groups: parts of a refused batch, before anything else

Names in conflict are checked together, so many keys with a step (``check_schedule``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import batched, islice
from types import MappingProxyType
from typing import Final

from kubesync.cluster.keys.key_states import Ledger
from kubesync.domain.batches import BatchLimits, Unit, fill, in_stable_order, units_of, without_rivals
from kubesync.domain.dns.records import RecordChange
from kubesync.domain.objects import ServiceKey
from kubesync.domain.plan import changes_of
from kubesync.domain.state import KeyState
from kubesync.zone.check_schedule import CheckSchedule
from kubesync.zone.full_zone import FullZone
from kubesync.zone.journal import ZoneMeans
from kubesync.zone.waits import Reason, Waits

_KEYS_AT_A_TIME: Final = 200
NO_WAITS: Final[Mapping[ServiceKey, float]] = MappingProxyType({})


class ZoneQueue:
    """The queue of one zone. ``add`` may be called from any thread, everything else from the zone's own."""

    def __init__(self, zone_id: str, means: ZoneMeans) -> None:
        self._zone_id = zone_id
        self._means = means
        self._inbox: deque[tuple[ServiceKey, float | None, float | None]] = deque()
        self._queue: dict[ServiceKey, None] = {}
        self._since: dict[ServiceKey, float] = {}
        self._groups: deque[list[Unit]] = deque()
        self._waits = Waits()
        self._checks = CheckSchedule(zone_id, means, self._waits)
        self._asked: deque[tuple[ServiceKey, float]] = deque()
        self._full: FullZone | None = None

    def add(
        self, keys: Iterable[ServiceKey], since: float | None, waits: Mapping[ServiceKey, float] = NO_WAITS
    ) -> None:
        """Queue open keys; repeated ones collapse. ``waits``: until when an earlier session wanted them to (epoch seconds); 0: there is
        news of them."""
        self._inbox.extend((key, since, waits.get(key)) for key in keys)

    def again(self, groups: Sequence[Sequence[Unit]]) -> None:
        """Parts of a refused batch go before anything else, each in a batch of its own."""
        self._groups.extendleft(list(group) for group in reversed(groups))

    def look_again(self, keys: Collection[ServiceKey]) -> None:
        """Look at the names of these keys that are in conflict here as soon as may be: a person asks for it. Any thread."""
        self._inbox.extend((key, None, None) for key in keys)
        now = self._means.clock.monotonic()
        self._asked.extend((key, now) for key in keys)

    def decided(self, unit: Unit, retry_at: float | None, *, conflict: bool = False) -> None:
        """A unit was closed; ``retry_at`` (epoch seconds): it was refused, and waits until then."""
        self._waits.end_unit(unit)
        self._waits.wake(unit.key)
        if retry_at is not None and conflict:
            # Its state keeps it back until a check finds the name free, or the key is given it: then it goes at once.
            self._checks.refused(unit.key, unit.name, retry_at)
        elif retry_at is not None:
            self._waits.put_unit(unit, retry_at)

    @property
    def backlog(self) -> bool:
        """There is more to be looked at, at once."""
        return self._checks.backlog

    @property
    def throttled(self) -> int:
        """How many looks Route 53 has put off, in all."""
        return self._checks.throttled

    @property
    def looked_at(self) -> float | None:
        """See ``CheckSchedule.to_be_noted``."""
        return self._checks.to_be_noted()

    def landed(self, units: Sequence[Unit]) -> list[float]:
        """A batch has landed. Returns since when (monotonic) its keys had been waiting, as far as that is known."""
        if self._full is not None:
            self._full.landed(units, self._means.clock.epoch())
        self._checks.gone({change.key.name for unit in units for change in unit.changes if change.after is None})
        keys = dict.fromkeys(unit.key for unit in units)
        return [since for since in (self._since.pop(key, None) for key in keys) if since is not None]

    def refused_as_full(self, units: Sequence[Unit], message: str) -> None:
        """A batch was refused since the zone is full: what would add sets to it waits."""
        if self._full is None:
            self._full = FullZone(message, self._waits)
        self._full.refused(units, self._means.clock.epoch())

    @property
    def problem(self) -> str:
        """What is wrong with the zone as a whole; empty: nothing."""
        return "" if self._full is None else self._full.problem

    # --- what is due ---

    def due(self, room: Callable[[], BatchLimits]) -> tuple[list[Unit], list[Unit]]:
        """Units for the next batch, and units that fit none at all.

        Args:
            room: what a batch may hold; asked only where there is something to send.
        """
        self._checks.begin_step()
        while self._groups:
            current = frozenset(self._units(unit.key for unit in self._groups[0]))
            group = [unit for unit in self._groups.popleft() if unit in current]
            if group:
                return group, []
        self._take_in()
        units: list[Unit] = []
        now = self._means.clock.epoch()
        awake = self._checks.few_of(key for key in self._queue if self._waits.wakes_at(key) <= now)
        for keys in batched(awake, _KEYS_AT_A_TIME):
            ready = self._ready(keys)
            unready = set(keys).difference(unit.key for unit in ready)
            self._waits.sleep((key for key in unready if key in self._queue), now)
            units += ready
            if sum(unit.elements for unit in units) >= self._means.limits.elements:
                break
        if not units:
            units = self._probe()
        if not units:
            return [], []
        taken, _, oversized = fill(without_rivals(in_stable_order(units)), room())
        return taken, oversized

    def _take_in(self) -> None:
        while self._inbox:
            key, since, waits = self._inbox.popleft()
            self._queue.setdefault(key)
            self._waits.wake(key)
            if waits is not None:
                self._waits.put(key, Reason.INHERITED, waits)
                if not waits:
                    self._checks.news(key)
            if since is not None:
                self._since.setdefault(key, since)
        while self._asked:
            key, asked = self._asked.popleft()
            self._waits.end(key, Reason.INHERITED)
            self._checks.ask(key, asked)

    def _ready(self, keys: Iterable[ServiceKey]) -> list[Unit]:
        """Units that may go now. Keys that could only add sets to a full zone leave the queue, and wait there."""
        now = self._means.clock.epoch()
        units = [unit for unit in self._units(keys) if not self._waits.refused(unit, now)]
        if self._full is None:
            return units
        busy = {unit.key for unit in units if not unit.grows}
        for key in {unit.key: None for unit in units if unit.key not in busy}:
            self._queue.pop(key, None)
            self._waits.put(key, Reason.FULL, now)
        return [unit for unit in units if not unit.grows]

    def _probe(self) -> list[Unit]:
        """As many of those that wait for room as may try now."""
        full = self._full
        if full is None:
            return []
        now, waiting = self._means.clock.epoch(), self._waits.waiting(Reason.FULL)
        while waiting and (share := full.share(now)):
            keys = list(islice(waiting, min(share, _KEYS_AT_A_TIME)))
            for key in keys:
                self._waits.end(key, Reason.FULL)  # in the queue, as long as it has units
            units = [unit for unit in self._units(keys) if not self._waits.refused(unit, now)]
            if units:
                return units[:share]
        if not waiting:
            self._full = None
        return []

    def _units(self, keys: Iterable[ServiceKey]) -> list[Unit]:
        """Units of these keys in this zone as they stand now; keys without any leave the queue."""
        units: list[Unit] = []
        now = self._means.clock.epoch()
        by_cluster: dict[str, list[ServiceKey]] = {}
        for key in list(dict.fromkeys(keys)):
            by_cluster.setdefault(key.cluster, []).append(key)
        for cluster, wanted in by_cluster.items():
            ledger = self._means.ledgers.get(cluster)
            if ledger is None or ledger.config.paused:  # not served any more, or left as it is: still durably open
                for key in wanted:
                    self._queue.pop(key, None)
                    self._since.pop(key, None)
                    self._checks.drop(key)
                continue
            with ledger.lock:
                states = ledger.states(wanted)
            ready: dict[ServiceKey, KeyState] = {}
            for key, state in states.items():
                if not self._changes(state, ledger):
                    self._queue.pop(key, None)
                    self._checks.drop(key)
                    self._waits.forget(key)
                    self._since.pop(key, None)  # the lag of a later change does not count from this event
                    continue
                self._queue.setdefault(key)
                self._checks.see(state)
                if not self._waits_from_before(state, now):
                    ready[key] = state
            ready |= self._checks.look(list(ready.values()), now)
            for key, state in ready.items():
                blocked = {name.name for name in state.conflicts if name.zone_id == self._zone_id}
                units += [unit for unit in units_of(key, self._changes(state, ledger)) if unit.name not in blocked]
        return units

    def _changes(self, state: KeyState, ledger: Ledger) -> list[RecordChange]:
        return [c for c in changes_of(state, ledger.config.policy) if c.key.zone_id == self._zone_id]

    def _waits_from_before(self, state: KeyState, now: float) -> bool:
        """Whether a key has to wait as an earlier session wanted it to. News of it end that."""
        refused = state.opened is not None and state.opened.attempts > 0
        if refused and (self._waits.not_before(state.key, Reason.INHERITED) or 0.0) > now:
            return True
        self._waits.end(state.key, Reason.INHERITED)
        return False

    def next_retry(self) -> float | None:
        """Seconds until something that waits is due; None: nothing waits."""
        now = self._means.clock.epoch()
        at = self._waits.next(self._queue, now)
        return None if at is None else max(0.05, at - now)
