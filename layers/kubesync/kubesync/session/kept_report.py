"""The report of a session as it is kept in the audit table: what is empty is left out, so that a quiet one costs one write unit.

``minutes``: for each beat in which batches landed ``[seconds since the session began, batches' changes, median, 99th percentile]``.
Everything else has the names of ``SessionReport``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from kubesync.aws.tables.items import MAX_SLICE_BYTES, pack
from kubesync.domain.report import SessionReport

_LEFT_OUT: Final = ("session", "stuck", "resyncs", "recoveries", "transactions", "dynamodb", "steady")
_ROWS: Final = 100
"""Of each list of a recovery's report, to begin with: half as many until it fits."""

type Minute = Sequence[float]


def session_in_short(report: SessionReport, minutes: Sequence[Minute]) -> dict[str, Any]:
    """The report of a session that has ended."""
    fields = {name: value for name, value in asdict(report).items() if name not in _LEFT_OUT}
    for cluster in fields["clusters"]:
        cluster["recording_seconds"] = round(cluster["recording_seconds"], 3)
        del cluster["holding"]
    found: dict[str, Any] = _without_empty({**fields, "minutes": [list(minute) for minute in minutes]})
    return found


def recovery_in_short(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report of a recovery: of each list its length, and the first rows."""
    rows = _ROWS
    while True:
        found: dict[str, Any] = _cut(report, rows)
        if rows == 0 or len(pack(found)) <= MAX_SLICE_BYTES:
            return found
        rows //= 2


def _without_empty(value: Any) -> Any:
    """Without what is empty, zero or false inside of dicts."""
    if isinstance(value, dict):
        kept = {name: _without_empty(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in (None, "", 0, False, [], {})}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def _cut(value: Any, rows: int) -> Any:
    if isinstance(value, Mapping):
        lists = {name: len(each) for name, each in value.items() if isinstance(each, list) and len(each) > rows}
        lists.pop("clusters", None)
        cut = {name: each if name not in lists else each[:rows] for name, each in value.items()}
        found = {name: _cut(each, rows) for name, each in cut.items()}
        return {**found, "counts": lists} if lists else found
    return [_cut(each, rows) for each in value] if isinstance(value, list) else value
