"""What keeps a zone from being written, kept where ``kubesync status`` finds it.

control table
partition        sort          holds
---------        ----          -----
zones#<shard>    <zone id>     problem ("": none any more), at, session
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from kubesync.aws.state_codec import SCHEMA
from kubesync.aws.store import CONTROL, Key, Put, Store
from kubesync.aws.upstreams import timestamp


@dataclass(frozen=True, slots=True)
class ZoneProblem:
    """The last thing that was wrong with a zone; ``problem`` is empty once it has been mended."""

    zone_id: str
    problem: str
    at: str


class ZoneProblemTable:
    """Reads problems and builds their writes."""

    def __init__(self, store: Store, shard: str, session: str) -> None:
        self._store = store
        self._partition = f"zones#{shard}"
        self._session = session

    def put(self, zone_id: str, problem: str, now_epoch: float, token: str) -> Put:
        """Note a problem, or (empty) that there is none any more."""
        fields = {"problem": problem[:1000], "at": timestamp(now_epoch), "session": self._session, "tx": token}
        return Put(Key(CONTROL, self._partition, zone_id), {"v": SCHEMA, **fields})

    def read(self, zone_id: str) -> str:
        """What is noted of a zone; empty where there is nothing."""
        item = self._store.get(Key(CONTROL, self._partition, zone_id))
        return "" if item is None else cast(str, item["problem"])

    def current(self) -> list[ZoneProblem]:
        """Zones that have a problem now."""
        return [
            ZoneProblem(cast(str, item["sk"]), cast(str, item["problem"]), cast(str, item["at"]))
            for item in self._store.query(CONTROL, self._partition)
            if item["problem"]
        ]
