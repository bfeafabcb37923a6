"""Removes a cluster whose configuration is marked as being deleted, over as many sessions as that takes.

    emptying    every key's outputs go through the ordinary commit; deletions that a person asked for are not held (I5). With
                `retain` record sets and upstreams stay as they are: kubesync forgets that they were its own
    waiting     until no key is left; what was refused is compared with the zone, and goes in the form in which it stands
    parting     until no batch that holds something of the cluster is under way: its outcome could bring a key back
    forgetting  remembered slices, notes, listener items, and last of all the configuration

Each step is short: it is called from the session's own thread, which has the deadline and other clusters to look after.
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
    """The removal of one cluster. ``step`` is called until it returns True."""

    def __init__(self, master: Master, config: ClusterConfig) -> None:
        self._master = master
        self._config = config
        # Its own patience, but the same locks: a step gives up when DynamoDB is busy, and goes on with the next.
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
        """Do what can be done until then, and a little longer. True: the cluster is gone."""
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
            # Whoever holds it may be waiting for DynamoDB.
            if not lock.acquire(timeout=max(0.0, until_monotonic - clock.monotonic())):
                return False
            try:
                goes_on = self._go_on()
            except KubesyncError:
                self._states = self._left = None  # an iterator that has raised is at its end
                raise
            finally:
                lock.release()
            if goes_on is None:
                return True
            if not goes_on or clock.monotonic() >= until_monotonic:
                return False

    def _go_on(self) -> bool | None:
        """True: there is more to be done at once. False: it has to wait. None: all is done."""
        if not self._emptied:
            self._emptied = self._empty_some()
            return True
        if self._master.tables.state.any_key(self._config.name):
            self._batches_ended = None
            return self._look_at_what_is_left()
        if self._batches_ended is None:
            self._batches_ended = self._master.batches_ended(self._config.name)
            return True  # what is left is looked at again, now that nothing can come back
        if not all(future.done() for future in self._batches_ended):
            return False
        return None if self._forget_some() else True

    # --- emptying ---

    def _empty_some(self) -> bool:
        """Some keys more. True: those were the last."""
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
            # A batch brought a key back that had been emptied, or one was still to be read.
            self._emptied = False
            return True
        refused = {key: mark.attempts for key, mark in marks.items() if mark.attempts}
        news = [key for key, attempts in refused.items() if self._compared.get(key) != attempts]
        self._compared = refused
        if news:
            self._compare(news)
        return False

    def _compare(self, keys: list[ServiceKey]) -> None:
        """Look at what stands in the zones where something was refused, each between two of its batches."""
        assert self._master.pool is not None
        states = self._master.ledgers[self._config.name].states(keys).values()
        zones = sorted({key.zone_id for state in states for key in state.applied})
        look = partial(self._take_as_it_stands, keys)
        self._comparing = [
            self._master.pool.between_batches(zone_id, partial(_reported, partial(look, zone_id))) for zone_id in zones
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
        """Some of what is remembered of it. True: that was the last."""
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
        logger.warning("what stands in a zone could not be compared, trying again", error=str(error))
        raise
