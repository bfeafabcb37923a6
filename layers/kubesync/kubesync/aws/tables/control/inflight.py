"""The inflight item of a zone: the batch that is, or may be, under way, so that a successor can settle it.

    control table
    partition          sort                    holds
    ---------          ----                    -----
    inflight#<shard>   <zone id>               batch (its random id, or ""), epoch, journal_epoch, slices, body, version, tx
    inflight#<shard>   <zone id>#<001..>       further slices of a body over 100 KB

The item is never deleted: its presence says that this deployment has written to the zone. It is written before every change of the
zone's journal, so that no journal of ours has an epoch above ``journal_epoch``, unless tables were lost or restored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from kubesync.aws.dynamodb.store import CONTROL, Absent, Action, Delete, Equals, Key, Put, Store
from kubesync.aws.tables.state_codec import SCHEMA, decode_change, encode_change, pack, unpack
from kubesync.domain.batches import Unit
from kubesync.domain.objects import ServiceKey

_MAX_BODY_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Inflight:
    """``batch`` is empty when nothing is under way. ``slices`` counts the items that hold it, ``version`` is theirs.

    ``journal_epoch``: no journal of ours is newer; None: written by a release that did not write the item before each change.
    """

    batch: str
    epoch: int
    units: tuple[Unit, ...]
    slices: int = 1
    version: int = 0
    journal_epoch: int | None = None

    def knows(self, journal_epoch: int) -> bool:
        """Whether a journal of this epoch may be one that these tables know of."""
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
        """What is under way in a zone, None where this deployment never wrote to it."""
        head = self._store.get(self._place(zone_id))
        if head is None:
            return None
        body = cast("str | bytes", head["body"])
        count = cast(int, head["slices"])
        if count > 1:
            places = [self._place(zone_id, n) for n in range(1, count)]
            found = self._store.batch_get(places)
            body = cast(bytes, body) + b"".join(cast(bytes, found[place]["body"]) for place in places)
        units = tuple(
            Unit(ServiceKey(*row[0]), tuple(decode_change(change) for change in row[1])) for row in unpack(body)
        )
        newest = cast("int | None", head.get("journal_epoch"))
        return Inflight(
            cast(str, head["batch"]), cast(int, head["epoch"]), units, count, cast(int, head["version"]), newest
        )

    def zones(self) -> list[str]:
        """Every zone that this deployment and shard has written to."""
        found = (cast(str, item["sk"]) for item in self._store.query(CONTROL, self._partition))
        return [zone_id for zone_id in found if "#" not in zone_id]

    def put(self, zone_id: str, before: Inflight | None, after: Inflight, token: str) -> tuple[Inflight, list[Action]]:
        """Replace what is under way; ``before`` is what was read or written last."""
        rows = [
            [[u.key.cluster, u.key.namespace, u.key.name], [encode_change(change) for change in u.changes]]
            for u in after.units
        ]
        packed = pack(rows)
        bodies: list[str | bytes] = [packed]
        if isinstance(packed, bytes):
            bodies = [packed[at : at + _MAX_BODY_BYTES] for at in range(0, len(packed), _MAX_BODY_BYTES)]
        version = 1 if before is None else before.version + 1
        guard = Absent() if before is None else Equals("version", before.version)
        actions: list[Action] = [
            Put(
                self._place(zone_id),
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
        actions += [Put(self._place(zone_id, n), {"v": SCHEMA, "body": body}) for n, body in enumerate(bodies[1:], 1)]
        surplus = range(len(bodies), before.slices) if before is not None else range(0)
        actions += [Delete(self._place(zone_id, n)) for n in surplus]
        return Inflight(after.batch, after.epoch, after.units, len(bodies), version, after.epoch), actions

    def _place(self, zone_id: str, number: int = 0) -> Key:
        return Key(CONTROL, self._partition, f"{zone_id}#{number:03d}" if number else zone_id)
