"""Requests for a full resync, from an invocation that is not the master, and the master's answers.

control table
partition          sort                       holds
---------          ----                       -----
resync#<shard>     <timestamp>#<id>           cluster ("": all), dry_run, force, status, slices, report, expires_at
resync#<shard>     <timestamp>#<id>#<001..>   further slices of a report over 100 KB
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from kubesync.aws.dynamodb.store import CONTROL, Action, Delete, Equals, Item, Key, Put, Store, Update
from kubesync.aws.slices import pack_slices, read_slices, slice_place
from kubesync.aws.tables.schema_guard import readable
from kubesync.aws.tables.state_codec import SCHEMA
from kubesync.aws.tables.upstreams import timestamp

# A request without an answer, or whose caller is gone, is dropped after this long.
REQUEST_LIFETIME_SECONDS: Final = 3600


@dataclass(frozen=True, slots=True)
class ResyncRequest:
    """A request. An empty ``cluster`` means all of them. ``at_ms``: its time by the caller's clock."""

    id: str
    cluster: str
    dry_run: bool
    force: bool
    at_ms: int


def new_request(random_id: str, cluster: str, now: float, *, dry_run: bool, force: bool) -> ResyncRequest:
    """Make a request; nothing is written yet."""
    return ResyncRequest(f"{timestamp(now)}#{random_id}", cluster, dry_run, force, int(now * 1000))


class RequestTable:
    """The mailbox between a manual invocation and a running master."""

    def __init__(self, store: Store, shard: str) -> None:
        self._store = store
        self._partition = f"resync#{shard}"

    def leave(self, request: ResyncRequest) -> None:
        """Store a request."""
        self._store.write(
            Put(
                self._place(request),
                {
                    "v": SCHEMA,
                    "cluster": request.cluster,
                    "dry_run": request.dry_run,
                    "force": request.force,
                    "status": "asked",
                    "at_ms": request.at_ms,
                    "expires_at": request.at_ms // 1000 + REQUEST_LIFETIME_SECONDS,
                },
            )
        )

    def pending(self, now: float) -> list[ResyncRequest]:
        """Requests that wait for an answer. Requests that are too old are dropped."""
        found: list[ResyncRequest] = []
        # A request of a newer release is for a newer master. It blocks no other (I4), and expires.
        for item in readable(iter(self._store.query(CONTROL, self._partition)), lambda _newer: None):
            place = cast(str, item["sk"])
            if cast(int, item.get("expires_at", 0)) <= now:
                self._store.write(Delete(Key(CONTROL, self._partition, place)))
            elif item.get("status") == "asked":
                found.append(
                    ResyncRequest(
                        place,
                        cast(str, item["cluster"]),
                        cast(bool, item["dry_run"]),
                        cast(bool, item["force"]),
                        cast(int, item["at_ms"]),
                    )
                )
        return found

    def waiting(self, request: ResyncRequest) -> bool:
        """Whether the caller still waits for the answer."""
        item = self._store.get(self._place(request))
        return item is not None and item["status"] == "asked"

    def answer(self, request: ResyncRequest, report: Mapping[str, object], token: str) -> list[Action]:
        """The writes that store the report. They are refused if the caller no longer waits for it."""
        place = self._place(request)
        bodies = pack_slices(report)
        expiry = request.at_ms // 1000 + REQUEST_LIFETIME_SECONDS
        answered: Item = {"status": "answered", "report": bodies[0], "slices": len(bodies), "tx": token}
        return [
            Update(place, set=answered, conditions=(Equals("status", "asked"),)),
            *(
                Put(slice_place(place, number), {"v": SCHEMA, "body": body, "expires_at": expiry})
                for number, body in enumerate(bodies[1:], 1)
            ),
        ]

    def collect(self, request: ResyncRequest) -> dict[str, Any] | None:
        """Read the report and remove it with its request; None if there is none yet."""
        place = self._place(request)
        head = self._store.get(place)
        if head is None or head["status"] != "answered":
            return None
        report: dict[str, Any] = read_slices(self._store, place, head, "report")
        self.withdraw(request, cast(int, head["slices"]))
        return report

    def withdraw(self, request: ResyncRequest, slices: int = 1) -> None:
        """Remove a request; its head goes last."""
        for number in reversed(range(slices)):
            self._store.write(Delete(slice_place(self._place(request), number)))

    def _place(self, request: ResyncRequest) -> Key:
        return Key(CONTROL, self._partition, request.id)
