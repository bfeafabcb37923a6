"""The inflight item of a zone: the batch that may be under way, so that a successor can settle it.

    control table
    partition          sort                    holds
    ---------          ----                    -----
    inflight#<shard>   <zone id>               batch (its random id, or ""), epoch, journal_epoch, slices, body, version, tx
    inflight#<shard>   <zone id>#<001..>       further slices of a body over 100 KB

A *unit* is what one key wants changed at a time: record sets that go into one batch. It is *unclosed* if it has landed, and its cluster has not
stored that in the key yet.

The body has a row for each unit: key, changes and, if the unit is unclosed, the batch that it landed with. The key has a fourth part, its kind,
if that is not Service. An item with unclosed units has schema version 2, one with units of other kinds 3, one with other routing policies than
weights 4: a release that does not know them leaves the zone alone.

The item is never deleted: it proves that this deployment has written to the zone. It is written before every change of the zone's
journal. So no journal of ours has an epoch above ``journal_epoch``, unless tables were lost or restored.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kubesync.aws.dynamodb.store import CONTROL, Action, Key, Store
from kubesync.aws.tables.items import (
    SCHEMA,
    SCHEMA_OF_KINDS,
    SCHEMA_OF_UNCLOSED,
    attributes_of,
    put,
    read_slices,
    readable,
    sliced,
    unchanged,
)
from kubesync.aws.tables.state_codec import decode_change, encode_change
from kubesync.domain.batches import Unit, by_cluster
from kubesync.domain.objects import SERVICE, ObjectKey
from kubesync.domain.sources.registry import KINDS

# A child of the functions' Logger, by its name. Commands import this file too: Powertools would be a tenth of their start.
logger = logging.getLogger(f"kubesync.{__name__}")


@dataclass(frozen=True, slots=True)
class LandedUnits:
    """Units of one batch that have landed. ``batch``: its id."""

    batch: str
    units: tuple[Unit, ...]

    @property
    def by_cluster(self) -> dict[str, LandedUnits]:
        """The units of each cluster, by its name."""
        return {name: LandedUnits(self.batch, units) for name, units in by_cluster(self.units)}


@dataclass(frozen=True, slots=True)
class Inflight:
    """What is under way in a zone. ``batch`` is empty if nothing is. ``slices`` counts the items that hold it; ``version`` is their version.

    ``journal_epoch``: no journal of ours is newer. None: written by a release that did not write the item before each change.
    ``unclosed``: by cluster, units of an earlier batch that have landed, and that the cluster has not closed yet.
    ``torn``: an operator deleted or restored one of its items, and what it held is lost.
    """

    batch: str
    epoch: int
    units: tuple[Unit, ...]
    slices: int = 1
    version: int = 0
    journal_epoch: int | None = None
    unclosed: Mapping[str, LandedUnits] = field(default_factory=dict)
    torn: bool = False

    def knows(self, journal_epoch: int) -> bool:
        """Whether the zone's journal may have this epoch, as far as this item says.

        The item is written before every change of the journal. So if the journal has a higher epoch than the item, the tables were lost, or
        restored from a backup. An older release stored no ``journal_epoch``: then any epoch is possible.
        """
        return self.journal_epoch is None or journal_epoch <= self.journal_epoch

    @property
    def clusters(self) -> tuple[str, ...]:
        """Whose units it holds."""
        return tuple(sorted({unit.key.cluster for unit in self.units} | set(self.unclosed)))


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
        rows, torn = [], False
        try:
            rows = read_slices(self._store, self._place(zone_id), head)
        except (KeyError, ValueError, zlib.error):
            # An operator deleted or restored one of the items. So nobody knows any more which record sets of the last batch are ours: where it
            # landed, they are in conflict until a person adopts them. Other zones go on (I4).
            logger.error("what is under way in a zone is lost", extra={"zone": zone_id})
            torn = True
        units: list[Unit] = []
        unclosed: dict[str, LandedUnits] = {}
        for row in rows:
            key, changes, *landed_in = row
            unit = Unit(ObjectKey(*key), tuple(decode_change(change) for change in changes))
            if landed_in:  # the unit is unclosed; all unclosed units of a cluster landed in one batch
                others = unclosed.get(unit.key.cluster, LandedUnits(landed_in[0], ()))
                unclosed[unit.key.cluster] = LandedUnits(landed_in[0], (*others.units, unit))
            else:
                units.append(unit)
        return Inflight(**attributes_of(Inflight, head), units=tuple(units), unclosed=unclosed, torn=torn)

    def zones(self) -> list[str]:
        """Every zone that this deployment and shard has written to, also one whose item a newer release wrote.

        Only sort keys are needed: the zone's id, or with "#" in it a further slice.
        """
        newer: list[str] = []
        items = readable(iter(self._store.query(CONTROL, self._partition)), lambda error: newer.append(error.sort))
        places = [str(item["sk"]) for item in items]  # to read them all fills ``newer`` too
        return sorted({place for place in (*places, *newer) if "#" not in place})

    def put(self, zone_id: str, before: Inflight | None, after: Inflight, token: str) -> tuple[Inflight, list[Action]]:
        """Replace what is under way. Returns it as stored, and the writes.

        ``before``: the item as last read or written; its version is the condition. None: there is none.
        """
        unclosed = [(landed.batch, unit) for landed in after.unclosed.values() for unit in landed.units]
        rows = [_row(unit) for unit in after.units] + [[*_row(unit), batch] for batch, unit in unclosed]
        units = (*after.units, *(unit for _, unit in unclosed))
        kinds = {unit.key.kind for unit in units} - {SERVICE}
        # The item's schema version is the highest that any unit needs: a release that does not know it must not read the item.
        versions = [SCHEMA_OF_UNCLOSED if unclosed else SCHEMA]
        versions += [max(SCHEMA_OF_KINDS, KINDS[kind].schema) for kind in kinds]
        versions += [each.routing.schema for unit in units for _, each in (*unit.deletes, *unit.creates)]
        schema = max(versions)
        place = self._place(zone_id)
        version, slices = (0, 0) if before is None else (before.version, before.slices)
        head, rest = sliced(place, rows, slices, v=schema)
        # Once this is written, the session may give the journal its own epoch.
        fields = {"tx": token, "batch": after.batch, "epoch": after.epoch, "journal_epoch": after.epoch}
        stored = replace(after, slices=head["slices"], version=version + 1, journal_epoch=after.epoch, torn=False)
        return stored, [put(place, unchanged(version), v=schema, **fields, **head, version=version + 1), *rest]

    def _place(self, zone_id: str) -> Key:
        return Key(CONTROL, self._partition, zone_id)


def _row(unit: Unit) -> list[Any]:
    """A unit as a row: its key, and its changes. To the row of an unclosed unit the caller adds the batch that it landed with."""
    key = unit.key
    of_kind = [] if key.kind == SERVICE else [key.kind]
    return [[key.cluster, key.namespace, key.name, *of_kind], [encode_change(change) for change in unit.changes]]
