"""Lag by minute, from the reports that sessions keep when they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubesync_local.documents.audit_log import AuditLog

_MOST_SESSIONS: Final = 70  # of an hour, where each lasts a minute


@dataclass(frozen=True, slots=True)
class LagMinute:
    """One minute with changes. ``minute``: its begin, epoch seconds. The rest: seconds from event to accepted batch."""

    minute: int
    median_seconds: float
    p99_seconds: float


def lag_by_minute(audit: AuditLog, since: float, until: float) -> Sequence[LagMinute]:
    """The minutes with changes in this period (epoch seconds), oldest first. The running session's are not kept yet.

    Where two figures fall into one minute, as at a hand-over, the later counts.
    """
    found: dict[int, LagMinute] = {}
    for kept in audit.read_reports("session", until, _MOST_SESSIONS):
        ended = datetime.fromisoformat(kept["at"]).timestamp()
        if ended < since:
            break
        began = ended - kept["report"].get("seconds", 0.0)
        for seconds, _, median, p99 in kept["report"].get("minutes", ()):
            minute = int(began + seconds) // 60 * 60
            if since <= minute <= until:
                found.setdefault(minute, LagMinute(minute, median, p99))
    return [found[minute] for minute in sorted(found)]
