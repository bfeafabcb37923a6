"""What a cluster has told its zones: which keys want changes there. A zone that was told of a key hears of every change of its wish."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from kubesync.cluster.keys.key_states import KeyStates
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.plan import Wish, changes_of, wish_of
from kubesync.domain.state import KeyState
from kubesync.messages import Publish

# With one message. The zone asks for the others when their turn comes.
_WISHES_AT_A_TIME: Final = 500


class Published:
    """The cluster's side of its zones' queues. ``send``: to a zone."""

    def __init__(self, cluster: str, send: Callable[[str, object], None]) -> None:
        self._cluster = cluster
        self._send = send
        self._told: dict[ObjectKey, frozenset[str]] = {}
        self._zones: set[str] = set()
        self._listed: frozenset[Resource] = frozenset()
        self.silent = False  # the cluster is not served: it wants nothing

    def knows(self, key: ObjectKey) -> bool:
        """Whether a zone was told that the key wants changes."""
        return key in self._told

    def publish(
        self, states: KeyStates, keys: Iterable[KeyState], since: float | None = None, *, inherited: bool = False
    ) -> None:
        """Tell every zone what these keys want there now. ``since``, ``inherited``: see ``Publish``."""
        wishes: dict[str, list[Wish]] = defaultdict(list)
        for state in keys:
            wanted = self._zones_of(states, state)
            for zone_id in sorted(wanted | self._told.get(state.key, frozenset())):
                wishes[zone_id].append(self._wish(states, state, zone_id))
            self._tell(state.key, wanted)
        self._listed = states.listed
        for zone_id, of_zone in wishes.items():
            self._zones.add(zone_id)
            full, names = of_zone[:_WISHES_AT_A_TIME], tuple(wish.key for wish in of_zone[_WISHES_AT_A_TIME:])
            self._send(zone_id, Publish(self._cluster, tuple(full), names, since, inherited, listed=self._listed))

    def wishes(self, states: KeyStates, keys: Iterable[ObjectKey], zone_id: str) -> tuple[Wish, ...]:
        """What these keys want in a zone now: for an answer to it."""
        found: list[Wish] = []
        for key, state in states.states(keys).items():
            found.append(wish := self._wish(states, state, zone_id))
            told = self._told.get(key, frozenset())
            self._tell(key, told | {zone_id} if wish.changes else told - {zone_id})
        return tuple(found)

    def withdraw(self) -> None:
        """Nothing of the cluster is to be sent any more."""
        for zone_id in sorted(self._zones):
            self._send(zone_id, Publish(self._cluster, anew=True, listed=self._listed))
        self._told.clear()

    def tell_listed(self, listed: frozenset[Resource]) -> None:
        """Tell the zones whose views are complete now, if that has changed."""
        if listed != self._listed:
            self._listed = listed
            for zone_id in sorted(self._zones):
                self._send(zone_id, Publish(self._cluster, listed=listed))

    def _wish(self, states: KeyStates, state: KeyState, zone_id: str) -> Wish:
        if self.silent or states.config.paused:
            return Wish(state.key)
        return wish_of(state, zone_id, states.config.policy, states.config.resources)

    def _zones_of(self, states: KeyStates, state: KeyState) -> frozenset[str]:
        if self.silent or states.config.paused:
            return frozenset()
        return frozenset(change.key.zone_id for change in changes_of(state, states.config.policy))

    def _tell(self, key: ObjectKey, zones: frozenset[str]) -> None:
        if zones:
            self._told[key] = zones
        else:
            self._told.pop(key, None)
