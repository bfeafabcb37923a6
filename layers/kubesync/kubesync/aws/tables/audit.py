"""The audit table: every change with its old and new value, cause and time. Items expire.

    partition                  sort                            holds
    ---------                  ----                            -----
    changes#<cluster>#<day>    <timestamp>#<session>#<token>   entries (see ``_packed``), at, session, epoch
    errors#<cluster>           <timestamp>#<session>#<token>   resource, code, key, message
    sessions                   <timestamp>#<session>           how a session ended, also one that never held the lease

One item holds the changes of one transaction: an audit that doubled the number of writes would be too costly. ``docs/audit.md``
explains the words of an entry to users; a test compares that page with ``KINDS``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from kubesync.aws.dynamodb.store import AUDIT, Item, Key, Put, Store
from kubesync.aws.tables.state_codec import SCHEMA, pack, unpack
from kubesync.aws.tables.upstreams import timestamp
from kubesync.domain.dns.records import RecordSet

DEFAULT_RETENTION_SECONDS: Final = 90 * 24 * 3600
NAMED: Final = "@named"
"""Replaces the cluster for changes of named upstreams, which belong to no cluster."""
KINDS: Final = ("intended", "record", "refused", "upstream")
"""The first word of ``Entry.what`` is one of these."""
# An entry's list of changes is cut at this size: the item must stay well below DynamoDB's 400 KB.
_MAX_ENTRY_BYTES: Final = 200_000
_RECORD_SET: Final = re.compile(r"(?P<name>\S+) (?P<type>[A-Z]+)(?: \[(?P<identifier>.*)\])? in (?P<zone>\S+)")
_OBJECT: Final = re.compile(r"(?P<why>.*) (?P<object>[a-z]+/\S+)@(?P<version>\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """One change. ``before`` and ``after`` are short texts or documents; None: nothing.

    Args:
        what: a word of ``KINDS``, then name, type, ``in`` and the zone's id; or the upstream.
        why: the cause, with the object that was seen, if any: ``watch services/web@1234``.
        service: the key whose outputs changed.
        batch: id of the change batch, as in the zone's journal.
        code: of ``domain.reasons``, if something prevented the change.
        message: what exactly prevented it.
    """

    what: str
    before: object
    after: object
    why: str
    service: str = ""
    batch: str = ""
    code: str = ""
    message: str = ""

    def row(self) -> dict[str, Any]:
        """The entry as it is read back and shown."""
        kind, _, rest = self.what.partition(" ")
        record_set = _RECORD_SET.fullmatch(rest) if kind != "upstream" else None
        of_set = dict.fromkeys(("name", "type", "identifier", "zone")) if record_set is None else record_set.groupdict()
        cause = _OBJECT.fullmatch(self.why)
        return {
            "service": self.service,
            "what": self.what,
            "kind": kind if kind in KINDS else None,
            **of_set,
            "upstream": rest if kind == "upstream" else None,
            "from": self.before,
            "to": self.after,
            "why": cause["why"] if cause else self.why,
            "object": cause["object"] if cause else None,
            "resource_version": int(cause["version"]) if cause else None,
            "batch": self.batch or None,
            "reason": self.code or None,
            "message": self.message or None,
        }


def describe(record_set: RecordSet | None) -> object:
    """A record set in the form of an audit entry."""
    if record_set is None:
        return None
    if record_set.alias is not None:
        return {"alias": record_set.alias.name}
    return {"ttl": record_set.ttl, "values": list(record_set.values)}


@dataclass(frozen=True, slots=True)
class Span:
    """A period to read, in epoch seconds, both ends included."""

    since: float
    until: float

    def days(self) -> Iterator[str]:
        """Its days in UTC, the last one first."""
        day, first = (datetime.fromtimestamp(at, UTC).date() for at in (self.until, self.since))
        while day >= first:
            yield day.isoformat()
            day -= timedelta(days=1)


class AuditTable:
    """Builds audit writes and reads them back.

    Args:
        session: id of the writing session.
        retention_seconds: how long items are kept.
    """

    def __init__(self, store: Store, session: str, retention_seconds: int = DEFAULT_RETENTION_SECONDS) -> None:
        self._store = store
        self._session = session
        self._retention_seconds = retention_seconds

    def changes(self, cluster: str, entries: Sequence[Entry], epoch: int, now: float, token: str) -> Put:
        """The audit item of one transaction."""
        rows = [_packed(entry) for entry in entries]
        body = pack(rows)
        while len(body) > _MAX_ENTRY_BYTES:
            rows = rows[: len(rows) // 2]
            left_out = Entry(f"{len(entries) - len(rows)} more changes", None, None, "left out for their size")
            body = pack([*rows, _packed(left_out)])
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
        """How a session ended. Only this item is written without a fence; it is append-only."""
        at = timestamp(now)
        key = Key(AUDIT, "sessions", f"{at}#{self._session}")
        return Put(key, cast(Item, {"v": SCHEMA, "at": at, "session": self._session, **fields, **self._expiry(now)}))

    def read_changes(self, cluster: str, now: float, span: Span) -> Iterator[dict[str, Any]]:
        """Changes of a cluster, newest first, one row each. Reads nothing outside the span."""
        start, end = timestamp(span.since), timestamp(span.until) + "$"  # "$" sorts after the "#" that follows a time
        for day in span.days():
            found = self._store.query(AUDIT, f"changes#{cluster}#{day}", between=(start, end), newest_first=True)
            for item in found:
                if cast(int, item["expires_at"]) <= now:  # DynamoDB deletes expired items days late
                    continue
                common = {"at": item["at"], "cluster": cluster, "epoch": item["epoch"], "session": item["session"]}
                for packed in reversed(unpack(cast("str | bytes", item["body"]))):
                    yield common | _unpacked(packed).row()

    def read_errors(self, cluster: str, now: float, limit: int) -> Iterator[Item]:
        """The error history of a cluster, newest first."""
        for item in self._store.query(AUDIT, f"errors#{cluster}", newest_first=True, limit=limit):
            if cast(int, item["expires_at"]) > now:
                yield item

    def read_sessions(self, now: float, limit: int) -> Iterator[Item]:
        """How the last sessions ended, newest first."""
        for item in self._store.query(AUDIT, "sessions", newest_first=True, limit=limit):
            if cast(int, item["expires_at"]) > now:
                yield item

    def _expiry(self, now: float) -> dict[str, int]:
        return {"expires_at": int(now) + self._retention_seconds}


def _packed(entry: Entry) -> list[object]:
    """``[what, before, after, why, service, batch, code, message]``, without empty ones at the end."""
    row = [entry.what, entry.before, entry.after, entry.why]
    more = [entry.service, entry.batch, entry.code, entry.message]
    while more and not more[-1]:
        more.pop()
    return [*row, *more]


def _unpacked(row: Sequence[Any]) -> Entry:
    entry = Entry(*row)
    if not entry.batch and entry.why.startswith("batch "):  # the form of older releases
        return replace(entry, why="", batch=entry.why.removeprefix("batch "))
    return entry
