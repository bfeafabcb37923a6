"""What ``--watch`` costs a month. Prices: docs/cost.md (us-east-1, November 2026). Sizes are those of the first read."""

import json
from collections.abc import Iterable
from math import ceil
from typing import Final

from kubesync_local.proxies.servers import Snapshot

READ: Final = 0.125e-6  # a read request unit, on demand
STREAM_READ: Final = 0.20e-6  # a GetRecords call
SECONDS: Final = 2_628_000  # of a month
UNIT_BYTES: Final = 4096
# Slices above it are not read every second (docs/upstreams.md: "about 100 KB").
_SLICE_BYTES: Final = 100_000
_OTHER_ATTRIBUTES_BYTES: Final = 250


def dollars_of_polling(snapshots: Iterable[Snapshot], interval_seconds: float = 1.0) -> str:
    """Eventually consistent reads of slice 0: half a unit for each 4 KB that begin."""
    listed = list(snapshots)
    units = sum(0.5 * ceil(min(_bytes(each), _SLICE_BYTES) / UNIT_BYTES) for each in listed)
    cost = units * SECONDS / interval_seconds * READ
    return f"about ${cost:.2f} a month: {units:g} read units every second for {_counted(len(listed), 'upstream')}"


def dollars_of_following(table_bytes: int, shards: int, scan_seconds: float) -> str:
    """Scans of the whole table, and a GetRecords call a second for each shard."""
    units = ceil(table_bytes / UNIT_BYTES)
    scans = units * SECONDS / scan_seconds * READ
    stream = shards * SECONDS * STREAM_READ
    return (
        f"about ${scans + stream:.2f} a month: {_counted(units, 'read unit')} every {scan_seconds / 60:.0f} minutes for a scan "
        f"(${scans:.2f}), {_counted(shards, 'stream read')} every second (${stream:.2f})"
    )


def _bytes(snapshot: Snapshot) -> int:
    return len(json.dumps(snapshot.nodes, separators=(",", ":"))) + len(snapshot.key) + _OTHER_ATTRIBUTES_BYTES


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
