"""The audit table: every change, from what to what, why and when; expiring.

    partition                  sort                            holds
    ---------                  ----                            -----
    changes#<cluster>#<day>    <timestamp>#<session>#<token>   entries: [[what, from, to, why, service]], at, session, epoch
    errors#<cluster>           <timestamp>#<session>#<token>   resource, code, key, message
    sessions                   <timestamp>#<session>           how a session ended (a stand-by that never held the lease too)

``what`` begins with one of these words; a record set that changes is seen as intended first, then as a record:

    intended    what the cluster asks for has changed; it is to be written to the zone
    record      the zone was changed: a batch has landed (``why`` names it, as the journal in the zone does)
    refused     Route 53, or a foreign set, was in the way; ``why`` says what
    upstream    what the proxies read has changed

One item holds what one transaction changed: an audit that doubles the number of writes would not be kept on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from kubesync.aws.state_codec import SCHEMA, pack, unpack
from kubesync.aws.store import AUDIT, Item, Key, Put, Store
from kubesync.aws.upstreams import timestamp
from kubesync.domain.records import RecordSet

DEFAULT_RETENTION_SECONDS: Final = 90 * 24 * 3600
# An entry's list of changes is cut here: the item must stay well below DynamoDB's 400 KB.
_MAX_ENTRY_BYTES: Final = 200_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One change. ``before`` and ``after`` are short texts or documents; None: nothing. ``service``: whose outputs changed."""

    what: str
    before: object
    after: object
    why: str
    service: str = ""


def describe(record_set: RecordSet | None) -> object:
    """A record set as an audit entry shows it."""
    if record_set is None:
        return None
    if record_set.alias is not None:
        return {"alias": record_set.alias.name}
    return {"ttl": record_set.ttl, "values": list(record_set.values)}


class AuditTable:
    """Builds audit writes and reads them back.

    Args:
        session: id of the session that writes.
        retention_seconds: how long items are kept.
    """

    def __init__(self, store: Store, session: str, retention_seconds: int = DEFAULT_RETENTION_SECONDS) -> None:
        self._store = store
        self._session = session
        self._retention_seconds = retention_seconds

    def changes(self, cluster: str, entries: Sequence[Entry], epoch: int, now: float, token: str) -> Put:
        """The audit item of one transaction."""
        rows = [[e.what, e.before, e.after, e.why, e.service] for e in entries]
        body = pack(rows)
        while len(body) > _MAX_ENTRY_BYTES:
            rows = rows[: len(rows) // 2]
            body = pack(
                [*rows, [f"{len(entries) - len(rows)} more changes", None, None, "left out for their size", ""]]
            )
        at = timestamp(now)
        key = Key(AUDIT, f"changes#{cluster}#{at[:10]}", f"{at}#{self._session}#{token}")
        return Put(
            key, {"v": SCHEMA, "at": at, "session": self._session, "epoch": epoch, "body": body, **self._expiry(now)}
        )

    def error(self, cluster: str, fields: Mapping[str, object], now: float) -> Put:
        """One item of a listener's error history."""
        at = timestamp(now)
        digest = hashlib.sha256(repr(sorted(fields.items())).encode()).hexdigest()[:12]
        key = Key(AUDIT, f"errors#{cluster}", f"{at}#{self._session}#{digest}")
        return Put(key, cast(Item, {"v": SCHEMA, "at": at, "session": self._session, **fields, **self._expiry(now)}))

    def session_ended(self, fields: Mapping[str, object], now: float) -> Put:
        """How a session ended: the only item that is written without a fence, append-only."""
        at = timestamp(now)
        key = Key(AUDIT, "sessions", f"{at}#{self._session}")
        return Put(key, cast(Item, {"v": SCHEMA, "at": at, "session": self._session, **fields, **self._expiry(now)}))

    def read_changes(self, cluster: str, now: float, days: int) -> Iterator[dict[str, Any]]:
        """Changes of the last days, newest first, one row each."""
        today = datetime.fromtimestamp(now, UTC).date()
        for back in range(days):
            day = (today - timedelta(days=back)).isoformat()
            for item in self._store.query(AUDIT, f"changes#{cluster}#{day}", newest_first=True):
                if cast(int, item["expires_at"]) <= now:
                    continue
                # Older items name no service.
                for what, before, after, why, *service in reversed(unpack(cast("str | bytes", item["body"]))):
                    yield {
                        "at": item["at"],
                        "cluster": cluster,
                        "service": service[0] if service else "",
                        "what": what,
                        "from": before,
                        "to": after,
                        "why": why,
                        "session": item["session"],
                    }

    def read_errors(self, cluster: str, now: float, limit: int) -> Iterator[Item]:
        """The error history of a cluster, newest first."""
        for item in self._store.query(AUDIT, f"errors#{cluster}", newest_first=True, limit=limit):
            if cast(int, item["expires_at"]) > now:  # TTL deletes days late
                yield item

    def read_sessions(self, now: float, limit: int) -> Iterator[Item]:
        """How the last sessions ended, newest first."""
        for item in self._store.query(AUDIT, "sessions", newest_first=True, limit=limit):
            if cast(int, item["expires_at"]) > now:
                yield item

    def _expiry(self, now: float) -> dict[str, int]:
        return {"expires_at": int(now) + self._retention_seconds}
