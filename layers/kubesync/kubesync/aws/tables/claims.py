"""Claims: which key owns a name (and set identifier) in a zone, and which keys wait for it, oldest first.

    partition                    sort                              holds
    ---------                    ----                              -----
    names#<zone id>#<bucket>     <name>                            owner, version, waiting (how many), types
                                 <name>#set#<identifier>           the same, of the sets with this set identifier
                                 <name>#is#<seat>                  the same, of what only one set of a routing policy may have
                                 <any of these>#wait#<time>#<key>  key of a waiter; its object was created at this time

A bucket is a hash of the name: the claims of a large zone lie in several partitions.

A *seat* is what only one set of a name may have under its routing policy, such as ``latency eu-west-1``. It has a claim of its own, besides that of
the set identifier: two keys with different identifiers must not both take one region.

Keys of one namespace may share a name: one has its A set, another its AAAA set. ``types`` then names, by type, the keys that share it with the
owner: ``{AAAA: prod/shop/b}``. It never names the owner, whose types are what it intends (ADR 0062).

The claim's version changes whenever a waiter comes or goes, so that an owner that lets the name go cannot miss one.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, unquote

from kubesync.aws.dynamodb.store import STATE, Absent, Action, Condition, Delete, Equals, Item, Key
from kubesync.aws.tables.items import SCHEMA, SCHEMA_OF_TYPES, Table, place_of, put
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Name

_BUCKETS: Final = 16
# What follows the name in the sort key of a claim: nothing, a set identifier (the first group) or a seat (the second).
_OF_SET: Final = re.compile(r"(?:#set#([^#]+)|#is#([^#]+))?")


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as read. Every change of it is conditional on ``version``. ``waiting`` counts the keys in the queue. ``types``: by type of record
    sets, the key besides the owner that has it."""

    name: Name
    owner: ObjectKey
    version: int
    waiting: int
    types: Mapping[str, ObjectKey] = field(default_factory=dict)

    @property
    def holders(self) -> list[ObjectKey]:
        """The owner, and who shares the name with it."""
        return list(dict.fromkeys((self.owner, *(key for _, key in sorted(self.types.items())))))

    def types_without(self, key: ObjectKey) -> dict[str, ObjectKey]:
        """Types that are neither the owner's nor this key's, with the keys that have them."""
        return {record_type: holder for record_type, holder in self.types.items() if holder != key}

    def changed(self, **fields: Any) -> Claim:
        """The claim as it is to be, for ``ClaimTable.change``: these fields are replaced, and the version is the next one."""
        return replace(self, version=self.version + 1, **fields)


def claim_key(name: Name) -> Key:
    """The key of a claim's item. ``name`` has a set identifier, or a seat, or none of them."""
    # surrogatepass: a name that comes from JSON may hold half of a surrogate pair.
    bucket = zlib.crc32(name.name.encode("utf-8", "surrogatepass")) % _BUCKETS
    # Quoted, because an identifier may hold the characters that separate the parts of this key.
    kind, text = ("is", name.seat) if name.seat else ("set", name.identifier)
    of_set = f"#{kind}#{quote(text, safe='')}" if text else ""
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
    def change(
        before: Claim | None,
        after: Claim | None,
        joins: Mapping[Key, ObjectKey] | None = None,
        leaves: Iterable[Key] = (),
    ) -> list[Action]:
        """Return the writes that change a claim and its queue. To hand a name on is one such change: the claim is never without an owner meanwhile.

        before      after       what it writes
        ------      -----       --------------
        None        a claim     the claim, which nobody may have now
        a claim     a claim     the claim, in place of the one before
        a claim     None        nobody owns the name any more
        None        None        only the queue changes

        The queue is not counted here: ``after.waiting`` already is the number of keys that wait after ``joins`` and ``leaves``.

        ``key_writes._merge_counts`` merges two such writes if only their counts differ. It compares fields and guards, and needs the guards in this
        order.

        Args:
            before: as read, or as an earlier action leaves it. None: nobody owns the name.
            after: as it is to be (``Claim.changed``). None: nobody is to own the name.
            joins: keys that join the queue, by their places (``waiter_place``).
            leaves: places of keys that leave the queue.
        """
        queue: list[Action] = [*map(Delete, leaves)]
        queue += [put(place, key=str(key)) for place, key in (joins or {}).items()]
        # The owner is a guard too: a claim that was deleted and made again begins with the same version.
        guards: tuple[Condition, ...] = (Absent(),)
        if before is not None:
            guards = (Equals("version", before.version), Equals("owner", str(before.owner)))
        if after is None:
            return queue if before is None else [Delete(claim_key(before.name), guards), *queue]
        types = {"types": {kind: str(key) for kind, key in sorted(after.types.items())}} if after.types else {}
        schema, owner = SCHEMA_OF_TYPES if after.types else SCHEMA, str(after.owner)
        fields = {"owner": owner, "version": after.version, "waiting": after.waiting, **types}
        return [put(claim_key(after.name), *guards, v=schema, **fields), *queue]


def _claim(name: Name, item: Item) -> Claim:
    owner = ObjectKey.parse(item["owner"])
    types = {each: ObjectKey.parse(key) for each, key in item.get("types", {}).items()}
    return Claim(name, owner, item["version"], item["waiting"], types)


class Waiters:
    """The queues of claims while some keys of one commit are planned: as stored, plus the keys that joined, minus those that left since.

    It writes nothing: ``ClaimTable.change`` makes the writes.

    A *place* is the item of one waiting key. The order of places is the order of the queue (``ClaimTable.waiter_place``).
    """

    def __init__(self, table: ClaimTable) -> None:
        self._table = table
        # By claim and place: the keys that waited when the queue was read. Only queues that somebody has asked for.
        self._stored: dict[Name, dict[Key, ObjectKey]] = {}
        # By claim and place, what changed since: a key that joined; None: the key at this place has left.
        self._changed: dict[Name, dict[Key, ObjectKey | None]] = defaultdict(dict)

    def by_place(self, name: Name) -> dict[Key, ObjectKey]:
        """The keys that wait for a claim now, by place, in no order. Reads the stored queue once."""
        if name not in self._stored:
            self._stored[name] = {place: key for key, place in self._table.waiters(name)}
        waiting = {**self._stored[name], **self._changed[name]}
        return {place: key for place, key in waiting.items() if key is not None}

    def places_of(self, name: Name, key: ObjectKey) -> list[Key]:
        """The places of one key in the queue of a claim. Empty: the key does not wait."""
        return [place for place, waiter in self.by_place(name).items() if waiter == key]

    def change(self, name: Name, joins: Mapping[Key, ObjectKey], leaves: Iterable[Key]) -> None:
        """Note that keys join the queue of a claim at their places, and that the keys at other places leave it."""
        self._changed[name] |= {**dict.fromkeys(leaves), **joins}


def first_place(places: Iterable[Key]) -> Key:
    """The place of the key that is next in line: the oldest object, then the first key."""
    return min(places, key=lambda place: str(place.sort))
