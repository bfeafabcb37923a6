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

from kubesync.aws.dynamodb.store import CONTROL, Action, Item, Key, Put, Store
from kubesync.aws.slices import pack_slices, read_slices, slice_place
from kubesync.aws.tables.control.resync_requests import RequestTable, ResyncRequest
from kubesync.aws.tables.schema_guard import readable
from kubesync.aws.tables.state_codec import SCHEMA
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
        head, *rest = pack_slices(short)
        expires_at = int(now) + self._retention_seconds
        item: dict[str, object] = {
            "v": SCHEMA,
            "by": "schedule" if request.scheduled else "person",
            "at": timestamp(request.at_ms / 1000),
            "ended_at": timestamp(now),
            "seconds": max(0, round(now - request.at_ms / 1000)),
            "cluster": request.cluster,
            "forced": request.force,
            **figures,
            "slices": 1 + len(rest),
            "body": head,
            "tx": token,
            "expires_at": expires_at,
        }
        return [Put(place, cast(Item, item)), *_slices(place, rest, expires_at)]

    def last(self, limit: int = 1) -> list[dict[str, Any]]:
        """The results of the last resyncs, newest first: the figures, ``id``, and ``report``."""
        found: list[dict[str, Any]] = []
        items = iter(self._store.query(CONTROL, self._partition, newest_first=True))
        for item in readable(items, lambda _newer: None):
            if "by" not in item:
                continue  # a further slice
            place = Key(CONTROL, self._partition, cast(str, item["sk"]))
            figures = {name: item[name] for name in RESULT}
            found.append({"id": place.sort, **figures, "report": read_slices(self._store, place, item)})
            if len(found) == limit:
                break
        return found

    # --- progress ---

    def put_part(self, request: ResyncRequest, cluster: str, part: object, token: str) -> list[Action]:
        """Keep what is done of one cluster. Refused once nobody waits for the resync."""
        place = Key(CONTROL, _parts_of(request), cluster)
        head, *rest = pack_slices(part)
        expires_at = request.expires_at + _PARTS_STAY_SECONDS
        item: Item = {"v": SCHEMA, "slices": 1 + len(rest), "body": head, "tx": token, "expires_at": expires_at}
        return [Put(place, item), *_slices(place, rest, expires_at)]

    def put_progress(
        self, request: ResyncRequest, session: str, clusters: int, done: int, now: float, token: str
    ) -> list[Action]:
        """Say how far a resync is: so many ``clusters``, of which so many are ``done``. Refused once nobody waits for it.

        It expires later than the request, so that a resync that nobody ends does not vanish.
        """
        item: Item = {
            "v": SCHEMA,
            "cluster": request.cluster,
            "at_ms": request.at_ms,
            **({"scheduled": True} if request.scheduled else {}),
            "session": session,
            "clusters": clusters,
            "done": done,
            "tx": token,
            "expires_at": int(now) + self._retention_seconds,
        }
        return [self._requests.asked_check(request), Put(self._requests.underway_place(request), item)]

    def parts(self, request: ResyncRequest) -> dict[str, Any]:
        """By cluster, what is done. A part of which slices are missing is not there: DynamoDB drops each item by itself."""
        partition = _parts_of(request)
        items = [item for item in self._store.query(CONTROL, partition) if "slices" in item]
        found: dict[str, Any] = {}
        for item in items:
            place = Key(CONTROL, partition, cast(str, item["sk"]))
            with suppress(KeyError):
                found[cast(str, item["sk"])] = read_slices(self._store, place, item)
        return found


def _parts_of(request: ResyncRequest) -> str:
    return f"resync-parts#{request.id}"


def _slices(place: Key, bodies: list[str | bytes], expires_at: int) -> list[Action]:
    return [
        Put(slice_place(place, number), {"v": SCHEMA, "body": body, "expires_at": expires_at})
        for number, body in enumerate(bodies, 1)
    ]
