"""The audit for the page: the newest matching changes of some clusters.

It reads all clusters together, from the newest change backwards. Reading that takes too long stops, says how far back it came, and
goes on from there when a person asks for it.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final

from kubesync.aws.tables.audit import NAMED
from kubesync.aws.tables.upstreams import timestamp
from kubesync.domain.errors import UsageError
from kubesync_local.commands.show.audit import matching
from kubesync_local.documents.audit_log import AuditLog, Span
from kubesync_local.page.answers import Answer
from kubesync_local.page.gathering import Gatherer
from kubesync_local.workplace.people import DEPLOYMENT
from kubesync_local.workplace.workplace import Workplace

PAGE: Final = 50
MAX_PAGES: Final = 20
PERIODS: Final = {"1h": 3_600.0, "1d": 86_400.0, "7d": 7 * 86_400.0, "30d": 30 * 86_400.0}
"""How far back a person can look at once."""
READ_SECONDS: Final = 6.0
READ_CHANGES: Final = 50_000
"""How long, and how many changes, one page reads at most."""
_ITEMS_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which changes. ``until`` (epoch seconds): not after it; None: now. ``page``: from 1. Empty text: any.

    ``since`` (epoch seconds): not before it; None: so long before ``until`` as the period is.
    """

    cluster: str
    service: str
    name: str
    period: str
    until: float | None = None
    page: int = 1
    since: float | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """The newest changes, newest first; ``more``: there are older ones in the period.

    ``back``: reading stopped early, and everything after this time (whole epoch seconds) was read; None: it did not.
    """

    rows: tuple[dict[str, Any], ...]
    more: bool
    span: Span
    back: int | None = None


def read_changes(gatherer: Gatherer, wanted: Wanted, names: Sequence[str], *, again: bool) -> Answer[Changes]:
    """The changes of these clusters (and of named upstreams, if no cluster is chosen).

    Raises:
        UsageError: a filter can match nothing.
    """
    matches = matching(wanted.service, wanted.name)
    if wanted.period not in PERIODS:
        raise UsageError(f"the period {wanted.period!r} is not one of {', '.join(PERIODS)}")
    partitions = [wanted.cluster] if wanted.cluster else [*names, NAMED, DEPLOYMENT]

    def read(work: Workplace) -> Changes:
        now = gatherer.now()
        until = now if wanted.until is None else min(now, wanted.until)
        since = until - PERIODS[wanted.period] if wanted.since is None else min(until, wanted.since)
        reading = _Reading(gatherer, AuditLog(work.store), partitions, Span(max(0.0, since), until))
        # A page is a part of what is newest, so that changes of one moment are neither lost nor shown twice.
        begin = PAGE * (wanted.page - 1)
        rows: list[dict[str, Any]] = []
        for row in reading.rows():
            if matches(row):
                rows.append(row)
            if len(rows) > begin + PAGE:
                break
        if reading.back is not None:
            # What is not later than this is read again when somebody goes on.
            rows = [row for row in rows if str(row["at"]) > timestamp(reading.back)]
        return Changes(tuple(rows[begin : begin + PAGE]), len(rows) > begin + PAGE, reading.span, reading.back)

    return gatherer.changes(("changes", wanted, tuple(partitions)), read, again=again)


class _Reading:
    """Reads the changes of all partitions, newest first, until its time is over or it has read too many.

    Attributes:
        back: as in ``Changes``, once ``rows`` has ended. It is always before the end of the span, so that whoever goes on comes to an end.
    """

    def __init__(self, gatherer: Gatherer, log: AuditLog, partitions: Sequence[str], span: Span) -> None:
        self._gatherer = gatherer
        self._log = log
        self._partitions = partitions
        self.span = span
        self.back: int | None = None
        self._now = gatherer.now()
        self._read = 0
        self._least = timestamp(math.ceil(span.until) - 1)  # it does not stop after this

    def rows(self) -> Iterator[dict[str, Any]]:
        for day in self.span.days():
            if self._stops(f"{datetime.fromisoformat(day) + timedelta(days=1):%Y-%m-%d}T00:00:00.000Z"):
                return
            for row in self._of_day(day):
                if self._stops(str(row["at"])):
                    return
                self._read += 1
                yield row

    def _of_day(self, day: str) -> Iterator[dict[str, Any]]:
        def first(partition: str) -> Iterator[dict[str, Any]]:
            rows = self._log.read_day(partition, day, self._now, self.span, at_once=_ITEMS_AT_ONCE)
            newest = next(rows, None)
            return iter(()) if newest is None else chain([newest], rows)

        found = self._gatherer.for_each(first, self._partitions)
        return heapq.merge(*found, key=lambda row: str(row["at"]), reverse=True)

    def _stops(self, at: str) -> bool:
        """Whether reading ends before what happened at this time."""
        if at > self._least or not (self._read >= READ_CHANGES or self._gatherer.now() - self._now >= READ_SECONDS):
            return False
        self.back = math.ceil(datetime.fromisoformat(at).timestamp())
        return True
