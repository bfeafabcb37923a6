"""Tracks which keys wait for which claim while one section of a commit is planned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kubesync.aws.dynamodb.store import Key
from kubesync.aws.tables.claims import ClaimTable
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Name


class Waiters:
    """The queues of claims: as stored, with the keys that joined and left in this section.

    A *place* is the item of one waiting key. The order of places is the order of the queue (``ClaimTable.waiter_place``).
    """

    def __init__(self, table: ClaimTable) -> None:
        self._table = table
        self._stored: dict[Name, dict[Key, ObjectKey]] = {}
        self._joined: dict[Name, dict[Key, ObjectKey]] = defaultdict(dict)
        self._left: dict[Name, set[Key]] = defaultdict(set)

    def of(self, name: Name) -> dict[Key, ObjectKey]:
        """The keys that wait for a claim now, by place, in no order. Reads the stored queue once."""
        if name not in self._stored:
            self._stored[name] = {place: key for key, place in self._table.waiters(name)}
        waiting = self._stored[name] | self._joined[name]
        return {place: key for place, key in waiting.items() if place not in self._left[name]}

    def places_of(self, name: Name, key: ObjectKey) -> list[Key]:
        """The places of one key in the queue of a claim. Empty: the key does not wait."""
        return [place for place, waiter in self.of(name).items() if waiter == key]

    def join(self, name: Name, key: ObjectKey, place: Key) -> None:
        """Note that a key joins the queue of a claim at this place."""
        self._joined[name][place] = key
        self._left[name].discard(place)

    def leave(self, name: Name, places: Iterable[Key]) -> None:
        """Note that the keys at these places leave the queue of a claim."""
        for place in places:
            self._left[name].add(place)
            self._joined[name].pop(place, None)


def first_place(places: Iterable[Key]) -> Key:
    """The place of the key that is next in line."""
    return min(places, key=lambda place: str(place.sort))
