"""State of a zone as a whole: the problem that prevents writes, and the time of its last conflict check.

control table
partition        sort          holds
---------        ----          -----
zones#<shard>    <zone id>     problem ("": none any more), at, session
looks#<shard>    <zone id>     looked_at (ms): since when all names checked hourly (``zone.check_schedule``) were checked
"""

from kubesync.aws.dynamodb.store import CONTROL, Key, Put, Store
from kubesync.aws.tables.items import put
from kubesync.aws.tables.upstreams import timestamp


class ZoneProblemTable:
    """Reads problems and builds their writes."""

    def __init__(self, store: Store, shard: str, session: str) -> None:
        self._store = store
        self._partition = f"zones#{shard}"
        self._checks = f"looks#{shard}"
        self._session = session

    def put(self, zone_id: str, problem: str, now_epoch: float, token: str) -> Put:
        """Store a problem; an empty one means that the last one is solved."""
        fields = {"problem": problem[:1000], "at": timestamp(now_epoch), "session": self._session, "tx": token}
        return put(Key(CONTROL, self._partition, zone_id), **fields)

    def read(self, zone_id: str) -> str:
        """The stored problem of a zone; empty if there is none."""
        item = self._store.get(Key(CONTROL, self._partition, zone_id))
        return "" if item is None else item["problem"]

    def put_check(self, zone_id: str, at: float, token: str) -> Put:
        """Store ``at``, the time (epoch seconds) since which every name of a zone that is checked hourly has been checked."""
        return put(Key(CONTROL, self._checks, zone_id), looked_at=round(at * 1000), tx=token)

    def checked_at(self, zone_id: str) -> float:
        """The stored time of one zone (epoch seconds); 0 if there is none."""
        item = self._store.get(Key(CONTROL, self._checks, zone_id))
        return 0.0 if item is None else item["looked_at"] / 1000
