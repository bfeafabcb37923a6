"""Listeners in ``kubesync status``: whether each works, its last error, and whether that is over."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from kubesync.aws.tables.control.listeners import Checkpoint, ListenerErrors, failing_since, works_since
from kubesync.domain.errors import NOT_RENEWED, ErrorCode
from kubesync.domain.sources.registry import may_be_absent
from kubesync_local.workplace.readings import ListenerReadings


def listener_rows(cluster: str, table: ListenerReadings) -> list[dict[str, Any]]:
    """One row for each listener that ever ran."""
    checkpoints, errors = table.checkpoints(cluster), table.errors(cluster)
    optional = {resource for resource in errors if checkpoints and may_be_absent(resource)}
    return [
        {
            "listener": resource.value,
            **listener_row(checkpoints.get(resource), errors.get(resource), optional=resource in optional),
        }
        for resource in sorted(checkpoints.keys() | errors.keys())
    ]


def listener_row(
    checkpoint: Checkpoint | None, errors: ListenerErrors | None, *, optional: bool = False
) -> dict[str, Any]:
    """The row of one listener. ``optional``: the cluster works, and may be without this API.

    last error    its watches accepted since    state
    ----------    --------------------------    -----
    none          no matter                     works
    at a time     then or later                 works: the error is over
    404           never listed, and optional    absent: the cluster never served it
    at a time     before, or not known          failing
    """
    last = errors.last if errors is not None else None
    ended = errors.ended if errors is not None else None
    accepted_since = works_since(checkpoint, errors) or None
    # Times have one form, which sorts by time.
    over = last is None or (accepted_since is not None and accepted_since >= str(last["at"]))
    absent = not over and optional and checkpoint is None and bool(last and last.get("status") == HTTPStatus.NOT_FOUND)
    since = None if over or absent else failing_since(checkpoint, errors) or str(last["at"] if last else "") or None
    return {
        "checkpoint": checkpoint.resource_version if checkpoint is not None else None,
        "state": "works" if over else "absent" if absent else "failing",
        "works_since": accepted_since if over else None,
        "failing_since": since,
        "last_error": last["key"] if last else None,
        "last_error_at": last["at"] if last else None,
        "last_error_message": last["message"] if last else None,
        "ended": ended["key"] if ended else None,
        "ended_at": ended["at"] if ended else None,
        "ended_message": ended.get("message") if ended else None,
    }


# Ends of a session that are no error, though they have codes.
_IN_ORDER: Final = {
    ErrorCode.CONFIG_DELETE.key: "normally: the cluster was removed",
    ErrorCode.CONFIG_UPDATE.key: "normally: its configuration was changed",
    ErrorCode.NOT_MASTER.key: "normally: another session is the master",
    ErrorCode.MAX_RUNTIME.key: "normally: its time was up",
}


def in_order(key: object, message: object) -> str | None:
    """An end that is no error, in words. None: it is an error, as is a lease that could not be renewed."""
    return None if str(message).startswith(NOT_RENEWED) else _IN_ORDER.get(str(key))


def for_people(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row for people. An error that is over is marked, so that nobody takes it for a current one."""
    over = row["state"] == "works"
    at = row["works_since"] or row["failing_since"]
    since = f" since {at}" if at else ""
    error = None
    if row["last_error"]:
        resolved = "resolved: " if over else ""
        error = f"{resolved}{row['last_error']} at {row['last_error_at']}: {row['last_error_message']}"
    ended = None
    if row["ended"]:
        words = in_order(row["ended"], row["ended_message"])
        said = f": {row['ended_message']}" if row["ended"] == ErrorCode.NOT_MASTER.key else ""
        ended = f"{words} ({row['ended_at']})" if words else f"{row['ended']} at {row['ended_at']}{said}"
    return {**row, "state": f"{row['state']}{since}", "last_error": error, "ended": ended}
