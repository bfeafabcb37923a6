"""The inflight item of a zone: the batch that may be under way, so that a successor can settle it.

    control table
    partition          sort                    holds
    ---------          ----                    -----
    inflight#<shard>   <zone id>               batch (its random id, or ""), epoch, journal_epoch, slices, body, version, tx
    inflight#<shard>   <zone id>#<001..>       further slices of a body over 100 KB

The item is never deleted: it proves that this deployment has written to the zone. It is written before every change of the zone's
journal. So no journal of ours has an epoch above ``journal_epoch``, unless tables were lost or restored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from kubesync.aws.dynamodb.store import CONTROL, Absent, Action, Delete, Equals, Key, Put, Store
from kubesync.aws.slices import pack_slices, read_slices, slice_place
from kubesync.aws.tables.state_codec import SCHEMA, decode_change, encode_change
from kubesync.domain.batches import Unit
from kubesync.domain.objects import ServiceKey


@dataclass(frozen=True, slots=True)
class Inflight:
    """``batch`` is empty if nothing is under way. ``slices`` counts the items that hold it; ``version`` is their version.

    ``journal_epoch``: no journal of ours is newer. None: written by a release that did not write the item before each change.
    """

    batch: str
    epoch: int
    units: tuple[Unit, ...]
    slices: int = 1
    version: int = 0
    journal_epoch: int | None = None

    def knows(self, journal_epoch: int) -> bool:
        """Whether these tables may know a journal of this epoch."""
        return self.journal_epoch is None or journal_epoch <= self.journal_epoch

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(sorted({unit.key.cluster for unit in self.units}))


class InflightTable:
    """Reads inflight items and builds their writes."""

    def __init__(self, store: Store, shard: str) -> None:
        self._store = store
        self._partition = f"inflight#{shard}"

    def read(self, zone_id: str) -> Inflight | None:
        """What is under way in a zone; None if this deployment never wrote to it."""
        head = self._store.get(self._place(zone_id))
        if head is None:
            return None
        rows = read_slices(self._store, self._place(zone_id), head)
        units = tuple(Unit(ServiceKey(*row[0]), tuple(decode_change(change) for change in row[1])) for row in rows)
        return Inflight(
            cast(str, head["batch"]),
            cast(int, head["epoch"]),
            units,
            cast(int, head["slices"]),
            cast(int, head["version"]),
            cast("int | None", head.get("journal_epoch")),
        )

    def zones(self) -> list[str]:
        """Every zone that this deployment and shard has written to."""
        found = (cast(str, item["sk"]) for item in self._store.query(CONTROL, self._partition))
        return [zone_id for zone_id in found if "#" not in zone_id]

    def put(self, zone_id: str, before: Inflight | None, after: Inflight, token: str) -> tuple[Inflight, list[Action]]:
        """Replace what is under way. ``before`` is the item as last read or written."""
        rows = [
            [[u.key.cluster, u.key.namespace, u.key.name], [encode_change(change) for change in u.changes]]
            for u in after.units
        ]
        bodies = pack_slices(rows)
        place = self._place(zone_id)
        version = 1 if before is None else before.version + 1
        guard = Absent() if before is None else Equals("version", before.version)
        actions: list[Action] = [
            Put(
                place,
                {
                    "v": SCHEMA,
                    "tx": token,
                    "batch": after.batch,
                    "epoch": after.epoch,
                    "journal_epoch": after.epoch,
                    "slices": len(bodies),
                    "body": bodies[0],
                    "version": version,
                },
                (guard,),
            )
        ]
        actions += [Put(slice_place(place, n), {"v": SCHEMA, "body": body}) for n, body in enumerate(bodies[1:], 1)]
        surplus = range(len(bodies), before.slices) if before is not None else range(0)
        actions += [Delete(slice_place(place, n)) for n in surplus]
        return Inflight(after.batch, after.epoch, after.units, len(bodies), version, after.epoch), actions

    def _place(self, zone_id: str) -> Key:
        return Key(CONTROL, self._partition, zone_id)
