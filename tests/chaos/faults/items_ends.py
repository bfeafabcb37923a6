"""Who has to act at most once an item of the tables was deleted, or restored to an older version: for each kind of item."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class Ends(IntEnum):
    """Who has to act at most until everything is well again."""

    ITSELF = 0
    RESYNC = 1
    RECOVER = 2
    BY_HAND = 3


ENDS: Final[Mapping[str, tuple[Ends, Ends]]] = {
    # If it is deleted, and if an older version comes back.
    "epoch counter": (Ends.ITSELF, Ends.ITSELF),
    "owner of the tables": (Ends.ITSELF, Ends.ITSELF),
    "lease": (Ends.ITSELF, Ends.ITSELF),
    "fence of a shard": (Ends.ITSELF, Ends.ITSELF),
    "fence of a cluster": (Ends.ITSELF, Ends.ITSELF),
    "checkpoint": (Ends.ITSELF, Ends.ITSELF),
    "errors of a listener": (Ends.ITSELF, Ends.ITSELF),
    "identity of a cluster": (Ends.ITSELF, Ends.ITSELF),
    "configuration": (Ends.BY_HAND, Ends.BY_HAND),
    "inflight": (Ends.RECOVER, Ends.RECOVER),
    "version of the named upstreams": (Ends.ITSELF, Ends.ITSELF),
    "named upstream": (Ends.BY_HAND, Ends.RESYNC),
    "note for the composer": (Ends.RESYNC, Ends.ITSELF),
    "resync request": (Ends.ITSELF, Ends.ITSELF),
    "resync under way": (Ends.ITSELF, Ends.ITSELF),
    "part of a resync": (Ends.ITSELF, Ends.ITSELF),
    "result of a resync": (Ends.ITSELF, Ends.ITSELF),
    "access to a zone": (Ends.ITSELF, Ends.ITSELF),
    "problem of a zone": (Ends.ITSELF, Ends.ITSELF),
    "key": (Ends.BY_HAND, Ends.BY_HAND),
    "key, slice": (Ends.BY_HAND, Ends.BY_HAND),
    "service of an EndpointSlice": (Ends.RESYNC, Ends.RESYNC),
    "open mark": (Ends.RESYNC, Ends.ITSELF),
    "promotion note": (Ends.RESYNC, Ends.ITSELF),
    "note of tombstones": (Ends.ITSELF, Ends.ITSELF),
    "names asked for": (Ends.RESYNC, Ends.RESYNC),
    "claim": (Ends.RESYNC, Ends.RESYNC),
    "claim of a set identifier": (Ends.RESYNC, Ends.RESYNC),
    "waiter": (Ends.RESYNC, Ends.RESYNC),
    "upstream": (Ends.RESYNC, Ends.RESYNC),
    "upstream, slice": (Ends.RESYNC, Ends.RESYNC),
    "changes": (Ends.ITSELF, Ends.ITSELF),
    "history of errors": (Ends.ITSELF, Ends.ITSELF),
    "report of a session": (Ends.ITSELF, Ends.ITSELF),
    "key of a removed cluster": (Ends.ITSELF, Ends.ITSELF),
    "open mark of a removed cluster": (Ends.ITSELF, Ends.ITSELF),
    "upstream of a removed cluster": (Ends.ITSELF, Ends.BY_HAND),
}
REMOVED: Final = " of a removed cluster"
NOT_HERE: Final = {
    "ends of credentials": "nothing but a warning depends on it",
    "conflict checks of a zone": "conflicts are checked once more than they need to be",
    "inflight, slice": "unit/aws/tables/test_inflight_table.py",
    "resync request, slice": "a resync that nobody answers is asked for again",
    "part of a resync, slice": "the same",
    "result of a resync, slice": "the same",
    "heir in another shard": "one shard is played; integration/shards/test_shards_in_one_zone.py",
    "claim of a seat": "the code that reads a claim of a set identifier reads it",
    "report of a recovery": "nothing but what people look up",
    "end of a session": "the same",
}
"""Kinds that this section does not disturb, and why that is enough."""
