"""Removes a cluster whose configuration is marked as deleting, in short steps, over several sessions if needed.

emptying    normal commits remove every key's outputs. A person requested these deletions, so they are not held (I5). With
`retain`, record sets and upstreams stay, and kubesync forgets that it owned them
waiting     until no key is left. Refused sets are compared with the zone and deleted with their current values. Zones delete the
sets, as for other open keys
parting     every zone says that nothing of the cluster is under way: its outcome could bring a key back. With `retain` also
before the emptying: a batch that is settled later would bring a forgotten key back
forgetting  remembered slices, marks, listener items, and last the configuration
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import batched, chain
from typing import Final

from kubesync.actors.actor import AT_ONCE, Steps
from kubesync.actors.answer import Answer
from kubesync.aws.tables.control.clusters import ClusterTable, retains
from kubesync.cluster.keys.key_states import KEYS_AT_A_TIME
from kubesync.cluster.served_keys import ServedKeys
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import EMPTY, KeyState
from kubesync.log import logger
from kubesync.messages import Compared, CompareZone, Forget

_PLACES_AT_A_TIME: Final = 90
_COMPARE_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.2
_WHY: Final = "the cluster is removed"


class Removal:
    """The removal of one cluster: a task of its actor. ``removed`` is called at the end, when nothing of the cluster is stored any more."""

    def __init__(self, served: ServedKeys, removed: Callable[[], None]) -> None:
        self._served = served
        self._ports = served.ports
        self._config = served.states.config
        self._removed = removed
        # Refused keys at the last comparison, each with its attempts then: a key is compared again only after another refusal.
        self._compared: dict[ObjectKey, int] = {}

    def due_at(self) -> float:
        return AT_ONCE

    def steps(self) -> Steps[None]:
        """Remove the cluster. May be begun again after an error."""
        table, name = self._ports.tables.state, self._config.name
        if retains(self._config):
            yield from self._wait_for_zones()
        emptied = False
        while not emptied:
            yield from self._empty()
            if (yield from self._wait_for_sets()):
                yield from self._wait_for_zones()
                emptied = not table.any_key(name)  # else what was under way has brought a key back
        yield from self._forget()
        self._removed()

    def _wait_for_sets(self) -> Steps[bool]:
        """Wait until zones have deleted the sets of all keys, and no key is left. Returns whether no key is left.

        False: to wait longer would not help, because no zone has to delete anything. A batch that was under way has brought a key back, and
        ``steps`` has to empty it again.
        """
        table, name = self._ports.tables.state, self._config.name
        while table.any_key(name):
            marks = dict(table.open_keys(name))
            # If no key is open, or with `retain`, zones delete nothing.
            if not marks or retains(self._config):
                return False
            # A mark counts attempts once Route 53 has refused the key.
            yield from self._compare({key: mark.attempts for key, mark in marks.items() if mark.attempts})
            yield _COMPARE_SECONDS
        return True

    def _empty(self) -> Steps[None]:
        """Plan every key without its objects, so that it wants nothing. Zones delete its record sets later."""
        every = (state.key for state in self._ports.tables.state.load_all(self._config.name))
        for keys in batched(every, KEYS_AT_A_TIME):
            transform = partial(self._served.reconciler.transform, keys, self._without_outputs, _WHY)
            yield from self._served.carry_out(transform)
            yield 0.0

    def _without_outputs(self, state: KeyState) -> KeyState:
        """The key without its objects, so that it wants nothing. With `retain`, also without what exists because of it: then it is gone at once."""
        bare = replace(state, parts={})
        if retains(self._config):
            bare = replace(bare, intended=EMPTY, applied=EMPTY, upstreams={}, conflicts={})
        return bare

    def _compare(self, refused: dict[ObjectKey, int]) -> Steps[None]:
        """Have zones compare the sets of these keys with what exists, because Route 53 refused to delete them. From then on the keys know the sets
        as they stand, so they can be deleted.

        A set that somebody changed by hand is still ours, as the journal proves.

        Args:
            refused: these keys, each with its attempts until now.
        """
        news = [key for key, attempts in refused.items() if self._compared.get(key) != attempts]
        self._compared = refused
        states = self._served.states.states(news).values()
        for zone_id in sorted({key.zone_id for state in states for key in state.applied}):
            names = frozenset(key.name for state in states for key in state.applied if key.zone_id == zone_id)
            answer: Answer[Compared] = Answer(self._ports.scheduler)
            asked = CompareZone(self._config.name, answer, keys=tuple(news), names=names, why=_WHY)
            self._ports.to_zone(zone_id, asked)
            while not answer.done():
                yield _POLL_SECONDS
            try:
                answer.result()
            except Exception as error:  # noqa: BLE001 - the next comparison tries again
                logger.warning("comparison with a zone failed, trying again", error=str(error))

    def _wait_for_zones(self) -> Steps[None]:
        """Ask every zone to forget the cluster, and wait until all have answered."""
        answers = {zone_id: Answer[None](self._ports.scheduler) for zone_id in sorted(self._ports.zones())}
        for zone_id, answer in answers.items():
            self._ports.to_zone(zone_id, Forget(self._config.name, answer))
        while not all(answer.done() for answer in answers.values()):
            yield _POLL_SECONDS
        yield AT_ONCE  # first receive the messages that zones have sent before

    def _forget(self) -> Steps[None]:
        """Delete what is left of the cluster: slices, marks, listener items, and last the configuration."""
        name, state = self._config.name, self._ports.tables.state
        slices = (state.remember_slice(name, *place, service=None) for place, _ in state.all_slices(name))
        for places in batched(chain(slices, state.leftover_marks(name)), _PLACES_AT_A_TIME):
            self._ports.write(name, places)
            yield 0.0
        last = [*self._ports.tables.listeners.delete_all(name), ClusterTable.forget(self._config)]
        self._ports.write(name, last)
