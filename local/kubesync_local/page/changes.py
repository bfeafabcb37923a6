"""The audit for the page: the newest matching changes of some clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from kubesync.aws.tables.audit import NAMED
from kubesync.domain.errors import UsageError
from kubesync_local.commands.show.audit import matching
from kubesync_local.documents.audit_log import AuditLog, Span
from kubesync_local.page.gathering import Answer, Gatherer
from kubesync_local.workplace.workplace import Workplace

PAGE: Final = 50
MAX_PAGES: Final = 20
PERIODS: Final = {"1h": 3_600.0, "1d": 86_400.0, "7d": 7 * 86_400.0, "30d": 30 * 86_400.0}
"""How far back a person can look at once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which changes. ``until`` (epoch seconds): not after it; None: now. ``page``: from 1. Empty text: any."""

    cluster: str
    service: str
    name: str
    period: str
    until: float | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class Changes:
    """The newest changes, newest first; ``more``: there are older ones in the period."""

    rows: tuple[dict[str, Any], ...]
    more: bool
    span: Span


def read_changes(gatherer: Gatherer, wanted: Wanted, names: Sequence[str], *, again: bool) -> Answer[Changes]:
    """The changes of these clusters (and of named upstreams, if no cluster is chosen).

    Raises:
        UsageError: a filter can match nothing.
    """
    matches = matching(wanted.service, wanted.name)
    if wanted.period not in PERIODS:
        raise UsageError(f"the period {wanted.period!r} is not one of {', '.join(PERIODS)}")
    partitions = [wanted.cluster] if wanted.cluster else [*names, NAMED]

    def read(work: Workplace) -> Changes:
        now = gatherer.now()
        until = now if wanted.until is None else min(now, wanted.until)
        span = Span(max(0.0, until - PERIODS[wanted.period]), until)
        # A page is a part of what is newest, so that changes of one moment are neither lost nor shown twice.
        begin = PAGE * (wanted.page - 1)
        first = _first(AuditLog(work.store), matches, now, span, begin + PAGE + 1)
        rows = [row for found in gatherer.for_each(first, partitions) for row in found]
        rows.sort(key=lambda row: str(row["at"]), reverse=True)
        return Changes(tuple(rows[begin : begin + PAGE]), len(rows) > begin + PAGE, span)

    return gatherer.answer(("changes", wanted, tuple(partitions)), read, again=again)


def _first(
    log: AuditLog, matches: Callable[[dict[str, Any]], bool], now: float, span: Span, most: int
) -> Callable[[str], list[dict[str, Any]]]:
    """Reads the newest changes of one partition, at most so many."""

    def first(partition: str) -> list[dict[str, Any]]:
        return list(islice(filter(matches, log.read_changes(partition, now, span)), most))

    return first
