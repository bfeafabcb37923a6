"""Claims: which key owns a name (and set identifier) in a zone, and which keys wait for it, oldest first.

    partition                    sort                              holds
    ---------                    ----                              -----
    names#<zone id>#<bucket>     <name>                            owner, version, waiting (how many)
                                 <name>#set#<identifier>           the same, of the sets with this set identifier
                                 <name>#is#<seat>                  the same, of what only one set of a routing policy may have
                                 <any>#wait#<created>#<key>        key of a waiter

Keys of one namespace may share a name by types: ``types`` then says which type is whose, besides those of the owner (ADR 0062).

The claim's version changes whenever a waiter comes or goes, so that an owner that lets the name go cannot miss one.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote, unquote

from kubesync.aws.dynamodb.store import STATE, Absent, Action, Condition, Delete, Equals, Item, Key, Put, Update
from kubesync.aws.tables.items import SCHEMA, SCHEMA_OF_TYPES, Table, place_of, put
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Name

_BUCKETS: Final = 16
_OF_SET: Final = re.compile(r"(?:#set#([^#]+)|#is#([^#]+))?")


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as read. Every change of it is conditional on ``version``. ``waiting`` counts the keys in the queue. ``types``: of keys besides
    the owner."""

    name: Name
    owner: ObjectKey
    version: int
    waiting: int
    types: Mapping[str, ObjectKey] = field(default_factory=dict)

    @property
    def holders(self) -> list[ObjectKey]:
        """The owner, and who shares the name with it."""
        return list(dict.fromkeys((self.owner, *(key for _, key in sorted(self.types.items())))))

    def without(self, key: ObjectKey) -> dict[str, ObjectKey]:
        """Types that are neither the owner's nor this key's."""
        return {each: holder for each, holder in self.types.items() if holder != key}


def claim_key(name: Name) -> Key:
    bucket = zlib.crc32(name.name.encode("utf-8", "surrogatepass")) % _BUCKETS
    # Quoted, because an identifier may hold the characters that separate the parts of this key.
    of_set = f"#set#{quote(name.identifier, safe='')}" if name.identifier else ""
    of_set = f"#is#{quote(name.seat, safe='')}" if name.seat else of_set
    return Key(STATE, f"names#{name.zone_id}#{bucket:x}", name.name + of_set)


class ClaimTable(Table):
    """Reads claims and builds their writes. Each write belongs into the transaction of the key that it is for."""

    def read(self, names: Iterable[Name]) -> dict[Name, Claim]:
        """The claims that exist. Reads them in a stable order, so that the same run makes the same calls."""
        places = {claim_key(name): name for name in sorted(names)}
        found = self._store.batch_get(list(places))
        return {places[place]: _claim(places[place], item) for place, item in found.items()}

    def read_all(self, simple: Name) -> dict[Name, Claim]:
        """All claims that exist at the name of ``simple``, which has no identifier and no seat: its own, and those with one of these."""
        place = claim_key(simple)
        claims: dict[Name, Claim] = {}
        for item in self._store.query(STATE, place.partition, prefix=str(place.sort)):
            # The prefix also finds waiters, and names that begin with this one.
            if match := _OF_SET.fullmatch(str(item["sk"]).removeprefix(str(place.sort))):
                identifier, seat = (unquote(text or "") for text in match.groups())
                name = replace(simple, identifier=identifier, seat=seat)
                claims[name] = _claim(name, item)
        return claims

    def waiters(self, name: Name) -> Iterator[tuple[ObjectKey, Key]]:
        """The keys that wait for a name, and the items that say so, oldest first."""
        place = claim_key(name)
        for item in self._store.query(STATE, place.partition, prefix=f"{place.sort}#wait#"):
            yield ObjectKey.parse(item["key"]), place_of(STATE, item)

    @staticmethod
    def waiter_place(name: Name, key: ObjectKey, created_at: str) -> Key:
        """The item of a key that waits for a name. Items sort by creation time, then by key."""
        place = claim_key(name)
        return Key(STATE, place.partition, f"{place.sort}#wait#{created_at}#{key}")

    @staticmethod
    def gain(name: Name, key: ObjectKey) -> list[Action]:
        """Claim a name that nobody owns."""
        return [put(claim_key(name), Absent(), owner=str(key), version=1, waiting=0)]

    @staticmethod
    def replaced(claim: Claim, before: Claim | None, left: Iterable[Key] = ()) -> list[Action]:
        """Put a claim as it is to be: its item is lost, or names an owner that does not know of it, or other keys share it from now on.
        ``left``: places in its queue that go.
        """
        # The owner too: a claim that went and was made again begins with the same version.
        guards: list[Condition] = (
            [Absent()] if before is None else [Equals("version", before.version), Equals("owner", str(before.owner))]
        )
        types = {"types": {each: str(key) for each, key in sorted(claim.types.items())}} if claim.types else {}
        schema, owner = SCHEMA_OF_TYPES if claim.types else SCHEMA, str(claim.owner)
        fields = {"owner": owner, "version": claim.version, "waiting": claim.waiting, **types}
        return [put(claim_key(claim.name), *guards, v=schema, **fields), *map(Delete, left)]

    @staticmethod
    def wait(claim: Claim, key: ObjectKey, created_at: str) -> list[Action]:
        """Queue for a name that another key owns."""
        return [_waiter(claim, key, created_at), _changed(claim, waiting=1)]

    @staticmethod
    def requeue(claim: Claim, key: ObjectKey, created_at: str, left: Iterable[Key]) -> list[Action]:
        """Queue at another place. The claim's version changes, so that its owner cannot give it to the old place."""
        return [*map(Delete, left), _waiter(claim, key, created_at), _changed(claim)]

    @staticmethod
    def give_up(claim: Claim | None, places: Iterable[Key]) -> list[Action]:
        """Leave the queue."""
        return [*map(Delete, places), *([] if claim is None else [_changed(claim, waiting=-1)])]

    @staticmethod
    def let_go(claim: Claim, heir: tuple[ObjectKey, Key | None] | None) -> list[Action]:
        """Let a name go. If a key waits for it, the same write hands it on to the first one: nobody can come in between.

        Args:
            heir: that key, and its place in the line; None: it has none.
        """
        if heir is None:
            return [Delete(claim_key(claim.name), (Equals("version", claim.version),))]
        key, place = heir
        return [
            replace(_changed(claim, waiting=0 if place is None else -1), set={"owner": str(key)}),
            *([] if place is None else [Delete(place)]),
        ]


def _claim(name: Name, item: Item) -> Claim:
    owner = ObjectKey.parse(item["owner"])
    types = {each: ObjectKey.parse(key) for each, key in item.get("types", {}).items()}
    return Claim(name, owner, item["version"], item["waiting"], types)


def _waiter(claim: Claim, key: ObjectKey, created_at: str) -> Put:
    return put(ClaimTable.waiter_place(claim.name, key, created_at), key=str(key))


def _changed(claim: Claim, **add: int) -> Update:
    """Every change moves the version."""
    return Update(claim_key(claim.name), add={"version": 1, **add}, conditions=(Equals("version", claim.version),))


class Waiters:
    """The queues of claims while one section of a commit is planned: as stored, with the keys that joined and left in it.

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
