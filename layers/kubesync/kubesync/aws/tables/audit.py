"""The audit table: every change with its old and new value, cause and time. Items expire.

    partition                  sort                            holds
    ---------                  ----                            -----
    changes#<cluster>#<day>    <timestamp>#<session>#<token>   entries (see ``_packed``), at, session, epoch
    errors#<cluster>           <timestamp>#<session>#<digest>  resource, code, key, message
    sessions                   <timestamp>#<session>           how a session ended that never held the lease
    reports#session            <timestamp>#<session>           body: the report of a session that held it, in short
    reports#recovery           <timestamp>#<session>           body: the report of a recovery, in short

One item holds the changes of one transaction: an audit that doubled the number of writes would be too costly. ``docs/audit.md``
explains the words of an entry to users.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubesync.aws.dynamodb.store import AUDIT, Key, Put
from kubesync.aws.tables.items import pack, put
from kubesync.aws.tables.upstreams import timestamp
from kubesync.domain.dns.records import RecordSet

DEFAULT_RETENTION_SECONDS: Final = 90 * 24 * 3600
NAMED: Final = "@named"
"""Replaces the cluster for changes of named upstreams, which belong to no cluster."""
# An entry's list of changes is cut at this size: the item must stay well below DynamoDB's 400 KB.
_MAX_ENTRY_BYTES: Final = 200_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One change. ``before`` and ``after`` are short texts or documents; None: nothing.

    Args:
        what: ``intended``, ``record``, ``refused`` or ``upstream``, then name, type, ``in`` and the zone's id; or the upstream.
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


def describe(record_set: RecordSet | None) -> object:
    """A record set as an audit entry shows it, in ``before`` or ``after``; None: no set. The routing policy is left out."""
    if record_set is None:
        return None
    if record_set.alias is not None:
        health = {} if record_set.alias.evaluate_health else {"evaluate_health": False}
        return {"alias": record_set.alias.name, **health}
    return {"ttl": record_set.ttl, "values": list(record_set.values)}


class AuditTable:
    """Builds the audit items of one session."""

    def __init__(self, session: str, retention_seconds: int = DEFAULT_RETENTION_SECONDS) -> None:
        self._session = session
        self._retention_seconds = retention_seconds

    def changes(self, cluster: str, entries: Sequence[Entry], epoch: int, now: float, token: str) -> Put:
        """The audit item of one transaction. If the entries are too large for it, half are left out until the others fit, and an entry says so.

        Args:
            cluster: whose changes they are, or ``NAMED``.
            token: the transaction's. The item's key holds it, so the item also shows whether the transaction landed.
        """
        rows = [_packed(entry) for entry in entries]
        body = pack(rows)
        while len(body) > _MAX_ENTRY_BYTES:
            rows = rows[: len(rows) // 2]
            left_out = Entry(f"{len(entries) - len(rows)} more changes", None, None, "left out for their size")
            body = pack([*rows, _packed(left_out)])
        return self._put(f"changes#{cluster}#{timestamp(now)[:10]}", f"#{token}", {"epoch": epoch, "body": body}, now)

    def error(self, cluster: str, fields: Mapping[str, object], now: float) -> Put:
        """One item of a listener's error history. Its key has a digest, so that errors of one moment do not replace each other."""
        digest = hashlib.sha256(repr(sorted(fields.items())).encode()).hexdigest()[:12]
        return self._put(f"errors#{cluster}", f"#{digest}", fields, now)

    def session_ended(self, fields: Mapping[str, object], now: float) -> Put:
        """How a session ended. Only this item, ``report`` and what a person's command did have no fence; they are append-only."""
        return self._put("sessions", "", fields, now)

    def report(self, kind: str, report: object, now: float) -> Put:
        """The report of a ``session`` or a ``recovery``, under the session's id."""
        return self._put(f"reports#{kind}", "", {"body": pack(report)}, now)

    def _put(self, partition: str, suffix: str, fields: Mapping[str, object], now: float) -> Put:
        """An item that expires. ``suffix``: ends its sort key, where a session writes several at one moment."""
        at = timestamp(now)
        place = Key(AUDIT, partition, f"{at}#{self._session}{suffix}")
        expires_at = int(now) + self._retention_seconds
        return put(place, at=at, session=self._session, **fields, expires_at=expires_at)


def _packed(entry: Entry) -> list[object]:
    """``[what, before, after, why, service, batch, code, message]``, without empty ones at the end. The first four are always there."""
    row = [entry.what, entry.before, entry.after, entry.why, entry.service, entry.batch, entry.code, entry.message]
    while len(row) > 4 and not row[-1]:
        row.pop()
    return row
