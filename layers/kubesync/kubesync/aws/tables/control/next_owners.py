"""Keys that were given a name by a master of another shard. It cannot write under the fence of their cluster, so it leaves a note here.

Where it can write, a mark of the key says the same (``StateTable.mark_to_plan``).

control table
partition    sort                        holds
---------    ----                        -----
heirs        <key>#<zone id>/<name>      key, zone_id, name, identifier, seat, and the claim's version; one with an identifier or a seat
                                         has it at the end of its sort key

The master of the key's cluster finds the note within ``control_seconds``, has the key planned, and removes the note once the key has taken the
name. Until then the name has an owner, and nobody else gets it.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import quote

from kubesync.aws.dynamodb.store import CONTROL, Delete, Equals, Key, Put
from kubesync.aws.tables.items import Table, place_of, put, readable
from kubesync.domain.objects import ObjectKey
from kubesync.domain.state import Name

_PARTITION: Final = "heirs"


@dataclass(frozen=True, slots=True)
class NextOwner:
    """A note: this key was given this name. ``done`` removes it, unless the key was given the name again."""

    key: ObjectKey
    name: Name
    done: Delete


class NextOwnerTable(Table):
    """Reads these items and builds their writes. One is written in the transaction that hands the name on."""

    @staticmethod
    def note(key: ObjectKey, name: Name, version: int) -> Put:
        """Note that a key was given a name. ``version``: of the name's claim at that moment.

        If the key is given the name again, the claim has another version, and this write replaces the note. ``NextOwner.done`` of the earlier one
        then removes nothing.
        """
        of_set = quote(name.identifier or name.seat, safe="")
        sort = f"{key}#{name.zone_id}/{name.name}" + (f"/{of_set}" if of_set else "")
        fields = {field: text for field, text in asdict(name).items() if text}
        return put(Key(CONTROL, _PARTITION, sort), key=str(key), version=version, **fields)

    def read(self) -> Iterator[NextOwner]:
        """The items of all shards. Those of a newer release are left to it."""
        for item in readable(iter(self._store.query(CONTROL, _PARTITION)), lambda _newer: None):
            fields = {field: item.get(field, "") for field in ("zone_id", "name", "identifier", "seat")}
            guard = Equals("version", item["version"])
            yield NextOwner(ObjectKey.parse(item["key"]), Name(**fields), Delete(place_of(CONTROL, item), (guard,)))
