"""Lag by minute: of the running session from its lease, of those before from the reports that they kept when they ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from kubesync.aws.tables.control.lease import Lease
from kubesync_local.documents.audit_log import AuditLog

_MOST_SESSIONS: Final = 70  # of an hour, where each lasts a minute


@dataclass(frozen=True, slots=True)
class LagMinute:
    """One minute with changes. ``minute``: its begin, epoch seconds. The rest: seconds from event to accepted batch."""

    minute: int
    median_seconds: float
    p99_seconds: float
    changes: int = 0


def lag_of_session(lease: Lease) -> list[LagMinute]:
    """The last minutes of the session that holds the lease, or held it last, oldest first. An older release notes nothing."""
    rows = zip(*[iter(lease.lag)] * 4, strict=False)
    return [LagMinute(at // 60 * 60, p50 / 1000, p99 / 1000, changes) for at, changes, p50, p99 in rows]


def lag_in_words(found: Sequence[LagMinute]) -> str:
    """Of a session: how many changes, how late as a rule, and at worst. Empty: none has landed."""
    if not found:
        return ""
    worst = max(found, key=lambda each: each.p99_seconds)
    usual = sorted(each.median_seconds for each in found)[len(found) // 2]
    since, at = (f"{datetime.fromtimestamp(minute, UTC):%H:%M}" for minute in (found[0].minute, worst.minute))
    number = sum(each.changes for each in found)
    changes = f"{number} change{'' if number == 1 else 's'} since {since} UTC"
    return f"{changes}; lag usually {usual:.2f} s, slowest {worst.p99_seconds:.2f} s at {at}"


def lag_by_minute(audit: AuditLog, lease: Lease, since: float, until: float) -> Sequence[LagMinute]:
    """The minutes with changes in this period (epoch seconds), oldest first.

    Where two figures fall into one minute, as at a hand-over, the later counts.
    """
    found = {each.minute: each for each in lag_of_session(lease) if since <= each.minute <= until}
    for kept in audit.read_reports("session", until, _MOST_SESSIONS):
        ended = datetime.fromisoformat(kept["at"]).timestamp()
        if ended < since:
            break
        began = ended - kept["report"].get("seconds", 0.0)
        for seconds, count, median, p99 in kept["report"].get("minutes", ()):
            minute = int(began + seconds) // 60 * 60
            if since <= minute <= until:
                found.setdefault(minute, LagMinute(minute, median, p99, round(count)))
    return [found[minute] for minute in sorted(found)]
