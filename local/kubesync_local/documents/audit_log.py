"""The audit as people read it back, newest first. ``docs/audit.md`` explains its words; a test compares that page with ``KINDS``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from kubesync.aws.dynamodb.store import AUDIT, Item, Store
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.items import unpack
from kubesync.aws.tables.upstreams import timestamp
from kubesync_local.documents.kinds import kind_of_key

KINDS: Final = ("intended", "record", "refused", "upstream", "settings")
"""The first word of ``Entry.what`` is one of these."""
_RECORD_SET: Final = re.compile(r"(?P<name>\S+) (?P<type>[A-Z]+)(?: \[(?P<identifier>.*)\])? in (?P<zone>\S+)")
_OBJECT: Final = re.compile(r"(?P<why>.*) (?P<object>[a-z]+/\S+)@(?P<version>\d+)", re.DOTALL)


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


class AuditLog:
    """Reads the audit table."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read_changes(
        self, cluster: str, now: float, span: Span, *, at_once: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Changes of a cluster, newest first, one row each. Reads nothing outside the span.

        Args:
            at_once: how many items one request reads at most, for a caller that stops early; None: as many as fit. An item
                holds at least one change.
        """
        for day in span.days():
            yield from self.read_day(cluster, day, now, span, at_once=at_once)

    def read_day(
        self, cluster: str, day: str, now: float, span: Span, *, at_once: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """The changes of one of the span's days, as ``read_changes`` has them. The first row costs a request."""
        for item in self._items(f"changes#{cluster}#{day}", span, at_once):
            if cast(int, item["expires_at"]) <= now:  # DynamoDB deletes expired items days late
                continue
            common = {"at": item["at"], "cluster": cluster, "epoch": item["epoch"], "session": item["session"]}
            for packed in reversed(unpack(cast("str | bytes", item["body"]))):
                yield common | _row(_unpacked(packed))

    def _items(self, partition: str, span: Span, at_once: int | None) -> Iterator[Item]:
        start, end = timestamp(span.since), timestamp(span.until) + "$"  # "$" sorts after the "#" that follows a time
        limit, last = at_once, ""
        while True:
            count = 0
            for item in self._store.query(AUDIT, partition, between=(start, end), newest_first=True, limit=limit):
                count += 1
                if item["sk"] != last:  # the next request begins with the last item
                    yield item
                end = cast(str, item["sk"])
            if at_once is None or count < cast(int, limit):
                return
            limit, last = at_once + 1, end

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

    def read_reports(self, kind: str, now: float, limit: int) -> Iterator[dict[str, Any]]:
        """The reports of the last sessions (``session``) or recoveries (``recovery``), newest first: ``at``, ``session``, ``report``."""
        for item in self._store.query(AUDIT, f"reports#{kind}", newest_first=True, limit=limit):
            if cast(int, item["expires_at"]) > now:
                report = unpack(cast("str | bytes", item["body"]))
                yield {"at": item["at"], "session": item["session"], "report": report}


def _row(entry: Entry) -> dict[str, Any]:
    kind, _, rest = entry.what.partition(" ")
    record_set = _RECORD_SET.fullmatch(rest) if kind != "upstream" else None
    of_set = dict.fromkeys(("name", "type", "identifier", "zone")) if record_set is None else record_set.groupdict()
    cause = _OBJECT.fullmatch(entry.why)
    return {
        "service": entry.service,
        "object_kind": kind_of_key(entry.service),
        "what": entry.what,
        "kind": kind if kind in KINDS else None,
        **of_set,
        "upstream": rest if kind == "upstream" else None,
        "from": entry.before,
        "to": entry.after,
        "why": cause["why"] if cause else entry.why,
        "object": cause["object"] if cause else None,
        "resource_version": int(cause["version"]) if cause else None,
        "batch": entry.batch or None,
        "reason": entry.code or None,
        "message": entry.message or None,
    }


def _unpacked(row: Sequence[Any]) -> Entry:
    entry = Entry(*row)
    if not entry.batch and entry.why.startswith("batch "):  # the form of older releases
        return replace(entry, why="", batch=entry.why.removeprefix("batch "))
    return entry
