"""Registrations that are lost: clusters that no configuration names any more, although nobody has removed them.

the registry of a shard                  read besides (I7)            a cluster is lost if
-----------------------                  -----------------            --------------------
as many as a session saw last, or more   nothing                      none is
fewer, or how many is not known          the control table            it has listener items and no configuration: a removal deletes
both. Its fence alone means nothing: it stays after a removal
no cluster in any shard                  and one item of the          there is any item: nobody knows whose
state table
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from kubesync.aws.dynamodb.store import CONTROL, STATE, Store
from kubesync.aws.tables.control.clusters import ClusterTable
from kubesync.aws.tables.schema_guard import readable
from kubesync.domain.errors import NewerSchemaError


def lost_clusters(store: Store, registered: Collection[str], known: int | None) -> tuple[str, ...]:
    """The names of lost clusters; an empty name if it is not known which they are.

    Args:
        registered: of this shard, as just read.
        known: how many the last session saw there, see ``Lease.clusters``.
    """
    if known is not None and len(registered) >= max(known, 1):
        return ()
    names = ClusterTable(store).read().keys()
    items = readable(store.scan(CONTROL), lambda _newer: None)
    listened = (cast(str, i["pk"]) for i in items if cast(str, i["sk"]).startswith("checkpoint#"))
    found = {partition.removeprefix("cluster#") for partition in listened} - names
    newer: list[NewerSchemaError] = []
    if not found and not names and (any(readable(store.scan(STATE, limit=1), newer.append)) or newer):
        return ("",)
    return tuple(sorted(found))
