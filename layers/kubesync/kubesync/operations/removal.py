"""Removes a cluster whose configuration is marked as deleting, over several sessions if needed.

    emptying    normal commits remove every key's outputs. A person requested these deletions, so they are not held (I5). With
                `retain`, record sets and upstreams stay, and kubesync forgets that it owned them
    waiting     until no key is left. Refused sets are compared with the zone and deleted with their current values
    draining    until no batch with a key of the cluster is under way: its outcome could bring a key back
    forgetting  remembered slices, notes, listener items, and last the configuration

Each step is short, because the session's own thread calls it and must keep its deadline and serve other clusters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.answer import Answer
from kubesync.aws.dynamodb.store import Action
from kubesync.aws.tables.control.clusters import ClusterConfig, retains
from kubesync.domain.errors import KubesyncError
from kubesync.domain.objects import ServiceKey
from kubesync.domain.state import EMPTY, KeyState
from kubesync.operations.drift import as_it_stands, drifts_of
from kubesync.operations.ports import Master
from kubesync.zone.reader import ZoneReader

logger = Logger(service="kubesync", child=True)

_KEYS_AT_A_TIME: Final = 50
_PLACES_AT_A_TIME: Final = 90
_COMPARE_SECONDS: Final = 5.0
_WHY: Final = "the cluster is removed"


class Removal:
    """The removal of one cluster. Call ``step`` until it returns True."""

    def __init__(self, master: Master, config: ClusterConfig) -> None:
        self._master = master
        self._config = config
        # Its own time limit, but the same fence turns: a step stops when DynamoDB is busy, and the next one continues.
        self._fenced_writer = copy.copy(master.fenced_writer)
        self._reconciler = master.reconciler(master.ledgers[config.name], self._fenced_writer)
        self._states: Iterator[KeyState] | None = None
        self._emptied = False
        self._compared: dict[ServiceKey, int] = {}
        self._compare_at = 0.0
        self._comparing: list[Answer[None]] = []
        self._batches_ended: list[Answer[None]] | None = None
        self._left: Iterator[Action] | None = None

    def step(self, until_monotonic: float) -> bool:
        """Work until then, and slightly longer. True: the cluster is removed."""
        self._fenced_writer.until_monotonic = until_monotonic
        self._fenced_writer.sent = self._fenced_writer.repeated = 0
        try:
            return self._step(until_monotonic)
        finally:
            self._master.fenced_writer.sent += self._fenced_writer.sent
            self._master.fenced_writer.repeated += self._fenced_writer.repeated

    def _step(self, until_monotonic: float) -> bool:
        clock, lock = self._master.parts.clock, self._master.ledgers[self._config.name].lock
        while True:
            # The holder may be waiting for DynamoDB.
            if not lock.acquire(timeout=max(0.0, until_monotonic - clock.monotonic())):
                return False
            try:
                goes_on = self._go_on()
            except KubesyncError:
                self._states = self._left = None  # an iterator that raised is exhausted
                raise
            finally:
                lock.release()
            if goes_on is None:
                return True
            if not goes_on or clock.monotonic() >= until_monotonic:
                return False

    def _go_on(self) -> bool | None:
        """True: more work can follow at once. False: it must wait. None: all is done."""
        if not self._emptied:
            self._emptied = self._empty_some()
            return True
        if self._master.tables.state.any_key(self._config.name):
            self._batches_ended = None
            return self._look_at_what_is_left()
        if self._batches_ended is None:
            self._batches_ended = self._master.batches_ended(self._config.name)
            return True  # check for keys again after these batches: then none can come back
        if not all(future.done() for future in self._batches_ended):
            return False
        return None if self._forget_some() else True

    # --- emptying ---

    def _empty_some(self) -> bool:
        """Empty some more keys. True: no key was left."""
        name = self._config.name
        if self._states is None:
            self._states = self._master.tables.state.load_all(name)
        keys = [state.key for state in islice(self._states, _KEYS_AT_A_TIME)]
        if not keys:
            self._states = None
            return True
        ledger = self._master.ledgers[name]

        def pairs() -> Iterator[tuple[KeyState, KeyState]]:
            for state in ledger.states(keys).values():
                yield state, self._bare(state)

        self._master.follow_up(name, self._reconciler.transform(pairs, _WHY))
        return False

    def _bare(self, state: KeyState) -> KeyState:
        bare = replace(state, parts={})
        if retains(self._config):
            bare = replace(bare, intended=EMPTY, applied=EMPTY, upstreams={}, conflicts={})
        return bare

    # --- waiting ---

    def _look_at_what_is_left(self) -> bool:
        clock = self._master.parts.clock
        if clock.monotonic() < self._compare_at or not all(future.done() for future in self._comparing):
            return False
        self._compare_at = clock.monotonic() + _COMPARE_SECONDS
        marks = dict(self._master.tables.state.open_keys(self._config.name))
        if not marks or retains(self._config):
            # A batch brought an emptied key back, or a key was not read yet.
            self._emptied = False
            return True
        refused = {key: mark.attempts for key, mark in marks.items() if mark.attempts}
        news = [key for key, attempts in refused.items() if self._compared.get(key) != attempts]
        self._compared = refused
        if news:
            self._compare(news)
        return False

    def _compare(self, keys: list[ServiceKey]) -> None:
        """Compare keys whose sets were refused with their zones, in each zone between two batches."""
        assert self._master.pool is not None
        states = self._master.ledgers[self._config.name].states(keys).values()
        zones = sorted({key.zone_id for state in states for key in state.applied})
        compare = partial(self._take_as_it_stands, keys)
        self._comparing = [
            self._master.pool.between_batches(zone_id, partial(_reported, partial(compare, zone_id)))
            for zone_id in zones
        ]

    def _take_as_it_stands(self, keys: list[ServiceKey], zone_id: str) -> None:
        """Take for known what stands at the names of these keys: it goes as it is read, never whatever stands there by then.

        What was changed by hand is still ours, as the journal proves. A set of a form that we never make is another's, and stays.
        Runs in the zone's thread, between two batches. Raises ZoneError where the zone cannot be read.
        """
        master, name = self._master, self._config.name
        ledger, reconciler = master.ledgers.get(name), master.reconcilers.get(name)
        if ledger is None or reconciler is None:
            return
        with ledger.lock:
            states = ledger.states(keys).values()
            names = {key.name for state in states for key in state.applied if key.zone_id == zone_id}
        standing = ZoneReader(master.parts.zones, zone_id, master.parts.clock).read_sets(names)

        def pairs() -> Iterator[tuple[KeyState, KeyState]]:
            for state in ledger.states(keys).values():
                if drifts := drifts_of(state, zone_id, standing):
                    yield state, as_it_stands(state, drifts)

        master.follow_up(name, reconciler.transform(pairs, _WHY))

    # --- forgetting ---

    def _forget_some(self) -> bool:
        """Delete some of the cluster's remaining items. True: all are deleted."""
        name, master = self._config.name, self._master
        if self._left is None:
            state = master.tables.state
            slices = (state.remember_slice(name, *place, service=None) for place in state.slices(name))
            self._left = chain(slices, state.leftover_marks(name))
        places = list(islice(self._left, _PLACES_AT_A_TIME))
        if places:
            self._fenced_writer.run([name], places, self._fenced_writer.token())
            return False
        actions: list[Action] = [*master.tables.listeners.all_places(name), master.clusters.forget(self._config)]
        self._fenced_writer.run([name], actions, self._fenced_writer.token())
        return True


def _reported(compare: Callable[[], None]) -> None:
    try:
        compare()
    except Exception as error:
        logger.warning("comparison with a zone failed, trying again", error=str(error))
        raise
