"""Listeners in ``kubesync status``: whether each works, its last error, and whether that is over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubesync.aws.tables.control.listeners import Checkpoint, ListenerErrors, ListenerTable
from kubesync.aws.tables.upstreams import timestamp
from kubesync.domain.errors import ErrorCode


def listener_rows(cluster: str, table: ListenerTable) -> list[dict[str, Any]]:
    """One row for each listener that ever ran."""
    checkpoints, errors = table.checkpoints(cluster), table.errors(cluster)
    return [
        {"listener": resource.value, **listener_row(checkpoints.get(resource), errors.get(resource))}
        for resource in sorted(checkpoints.keys() | errors.keys())
    ]


def listener_row(checkpoint: Checkpoint | None, errors: ListenerErrors | None) -> dict[str, Any]:
    """The row of one listener.

    last error    its watches accepted since    state
    ----------    --------------------------    -----
    none          no matter                     works
    at a time     then or later                 works: the error is over
    at a time     before, or not known          failing
    """
    last = errors.last if errors is not None else None
    ended = errors.ended if errors is not None else None
    works_since = _works_since(checkpoint, ended)
    # Times have one form, which sorts by time.
    over = last is None or (works_since is not None and works_since >= str(last["at"]))
    return {
        "checkpoint": checkpoint.resource_version if checkpoint is not None else None,
        "state": "works" if over else "failing",
        "works_since": works_since if over else None,
        "last_error": last["key"] if last else None,
        "last_error_at": last["at"] if last else None,
        "last_error_message": last["message"] if last else None,
        "ended": ended["key"] if ended else None,
        "ended_at": ended["at"] if ended else None,
    }


def failing_since(
    checkpoint: Checkpoint | None, errors: ListenerErrors | None, history: Iterable[Mapping[str, Any]]
) -> str:
    """The time of a listener's first error since it last worked; empty if no entry tells. ``history``: its entries of the audit."""
    works_since = _works_since(checkpoint, errors.ended if errors is not None else None) or ""
    found = [str(entry["at"]) for entry in history if entry["code"] > ErrorCode.MAX_RUNTIME]
    return min((at for at in found if at > works_since), default="")


def _works_since(checkpoint: Checkpoint | None, ended: Mapping[str, object] | None) -> str | None:
    """The later of the times in the checkpoint and in the listener's end."""
    stored = timestamp(checkpoint.works_since) if checkpoint is not None and checkpoint.works_since else ""
    at_the_end = str(ended.get("works_since") or "") if ended is not None else ""
    return max(stored, at_the_end) or None


def for_people(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row for people. An error that is over is marked, so that nobody takes it for a current one."""
    over = row["state"] == "works"
    since = f" since {row['works_since']}" if row["works_since"] else ""
    error = None
    if row["last_error"]:
        error = f"{'over: ' if over else ''}{row['last_error']} at {row['last_error_at']}: {row['last_error_message']}"
    ended = f"{row['ended']} at {row['ended_at']}" if row["ended"] else None
    return {**row, "state": f"{row['state']}{since}", "last_error": error, "ended": ended}
