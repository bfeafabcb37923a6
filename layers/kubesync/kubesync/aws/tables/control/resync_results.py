"""What becomes of full resyncs: their results, kept like the audit, and the parts of one that goes on in the next session.

control table
partition                  sort                       holds
---------                  ----                       -----
resynced#<shard>           <timestamp>#<id>           figures (``RESULT``), slices, body: the report in short; expires_at
resynced#<shard>           <timestamp>#<id>#<001..>   further slices of a body over 100 KB
resync-parts#<request>     <cluster>                  slices, body: the cluster's part of the report so far; expires_at
resync-parts#<request>     <cluster>#<001..>          further slices

``<timestamp>#<id>`` is the id of the request. Parts stay until they expire, a day after the request's hour: nobody reads them without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from kubesync.aws.dynamodb.store import CONTROL, Action, Key, Store
from kubesync.aws.tables.control.resync_requests import RequestTable, ResyncRequest
from kubesync.aws.tables.items import place_of, put, read_slices, sliced
from kubesync.aws.tables.schema_guard import readable
from kubesync.aws.tables.upstreams import timestamp

RESULT: Final = ("by", "at", "ended_at", "seconds", "cluster", "forced", "clusters", "errors", "differences", "session")
"""``by``: schedule or person. ``at``: when it was asked for. ``errors``: clusters that could not be resynchronised."""

_PARTS_STAY_SECONDS: Final = 86_400
"""After the request's hour, when what was done becomes its result."""


class ResyncResultTable:
    """Builds the writes of a master, which belong into transactions with its shard's fence (I2), and reads for people.

    Args:
        retention_seconds: how long results stay.
    """

    def __init__(self, store: Store, shard: str, retention_seconds: int = 0) -> None:
        self._store = store
        self._partition = f"resynced#{shard}"
        self._requests = RequestTable(store, shard)
        self._retention_seconds = retention_seconds

    # --- results ---

    def put(
        self, request: ResyncRequest, figures: Mapping[str, Any], short: object, now: float, token: str
    ) -> list[Action]:
        """Keep the result of a resync that has ended.

        Args:
            figures: see ``RESULT``; what is known here is added.
            short: the report, cut to what people need.
        """
        place = Key(CONTROL, self._partition, request.id)
        expires_at, asked_at = int(now) + self._retention_seconds, request.at_ms / 1000
        head, rest = sliced(place, short, expires_at=expires_at)
        times = {"at": timestamp(asked_at), "ended_at": timestamp(now), "seconds": max(0, round(now - asked_at))}
        fields = {"by": "schedule" if request.scheduled else "person", **times, **figures, **head}
        fields |= {"cluster": request.cluster, "forced": request.force, "tx": token, "expires_at": expires_at}
        return [put(place, **fields), *rest]

    def last(self, limit: int = 1) -> list[dict[str, Any]]:
        """The results of the last resyncs, newest first: the figures, ``id``, and ``report``."""
        found: list[dict[str, Any]] = []
        items = iter(self._store.query(CONTROL, self._partition, newest_first=True))
        for item in readable(items, lambda _newer: None):
            if "by" not in item:
                continue  # a further slice
            figures = {name: item[name] for name in RESULT}
            report = read_slices(self._store, place_of(CONTROL, item), item)
            found.append({"id": item["sk"], **figures, "report": report})
            if len(found) == limit:
                break
        return found

    # --- progress ---

    def put_part(self, request: ResyncRequest, cluster: str, part: object, token: str) -> list[Action]:
        """Keep what is done of one cluster. Refused once nobody waits for the resync."""
        place = Key(CONTROL, _parts_of(request), cluster)
        expires_at = request.expires_at + _PARTS_STAY_SECONDS
        head, rest = sliced(place, part, expires_at=expires_at)
        return [put(place, **head, tx=token, expires_at=expires_at), *rest]

    def put_progress(
        self, request: ResyncRequest, session: str, clusters: int, done: int, now: float, token: str
    ) -> list[Action]:
        """Say how far a resync is: so many ``clusters``, of which so many are ``done``. Refused once nobody waits for it.

        It expires later than the request, so that a resync that nobody ends does not vanish.
        """
        fields = {"cluster": request.cluster, "at_ms": request.at_ms, "session": session, "clusters": clusters}
        fields |= {"done": done, "tx": token, "expires_at": int(now) + self._retention_seconds}
        fields |= {"scheduled": True} if request.scheduled else {}
        return [self._requests.asked_check(request), put(self._requests.underway_place(request), **fields)]

    def parts(self, request: ResyncRequest) -> dict[str, Any]:
        """By cluster, what is done. A part of which slices are missing is not there: DynamoDB drops each item by itself."""
        items = [item for item in self._store.query(CONTROL, _parts_of(request)) if "slices" in item]
        found: dict[str, Any] = {}
        for item in items:
            with suppress(KeyError):
                found[cast(str, item["sk"])] = read_slices(self._store, place_of(CONTROL, item), item)
        return found


def _parts_of(request: ResyncRequest) -> str:
    return f"resync-parts#{request.id}"
