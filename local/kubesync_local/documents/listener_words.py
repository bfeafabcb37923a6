"""Listeners in words, for people: "idle: the last session ended normally 3 min ago". Pure: a row of ``listener_rows`` in, a sentence out.

The first matching row:

    the listener                          a session runs    in words
    ------------                          --------------    --------
    its cluster is disabled               no matter         not watched: the cluster is disabled
    its API was never served              no matter         not served: which API, and that it is looked for
    its last error is not over            no matter         failing: the error, and how long ago it came
    works since a time after its end      yes               watching for ...
    never ended                           yes               watched by the running session
    ended                                 yes               taken up again by the running session
    ended, by a code                      no                idle: what the code says
    never ended                           no                idle: the last session did not say how it ended
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import inf
from types import MappingProxyType
from typing import Any, Final

from kubesync.domain.errors import ErrorCode
from kubesync.domain.objects import Resource
from kubesync.domain.sources.registry import kind_of

_ENDS: Final = {
    ErrorCode.WORKER_EXITING.key: "the last session was stopped",
    ErrorCode.CONFIG_DELETE.key: "the cluster's configuration was deleted",
    ErrorCode.CONFIG_UPDATE.key: "the cluster's configuration was changed",
    ErrorCode.NOT_MASTER.key: "the last session lost the lease",
    ErrorCode.MAX_RUNTIME.key: "the last session ended normally",
}

_TIMES: Final = ("works_since", "ended_at", "last_error_at")
_ONE_MOMENT_SECONDS: Final = 5.0


def listener_words(
    row: Mapping[str, Any],
    now: float,
    *,
    running: bool,
    disabled: bool = False,
    last: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """One sentence about a listener.

    Args:
        now: epoch seconds.
        disabled: its cluster is.
        last: the last time of each kind in its cluster; one that is a few seconds later is told instead.
    """

    def told(name: str) -> object:
        time = row[name]
        return last[name] if name in last and _apart(time, last[name]) <= _ONE_MOMENT_SECONDS else time

    if disabled:
        return "not watched: the cluster is disabled"
    if row["state"] == "absent":
        api = kind_of(Resource(row["listener"])).api_version
        return f"not served: the cluster has no {row['listener']} of {api}; looked for every 30 s"
    if row["state"] == "failing":
        return f"failing: {row['last_error']} {_ago(told('last_error_at'), now)}: {row['last_error_message']}"
    works, ended = row["works_since"], row["ended_at"]
    if running:
        if works and (not ended or works > ended):
            return f"watching for {_ago(told('works_since'), now).removesuffix(' ago').replace('just now', '1 s')}"
        return "taken up again by the running session" if ended else "watched by the running session"
    if not ended:
        return "idle: the last session did not say how it ended"
    how = _ENDS.get(str(row["ended"]), f"the last session ended with {row['ended']}")
    return f"idle: {how} {_ago(told('ended_at'), now)}"


def words_of_cluster(
    rows: Sequence[Mapping[str, Any]], now: float, *, running: bool, disabled: bool = False
) -> list[str]:
    """A sentence for each listener of a cluster. Equal states read equal, also where their times are a few seconds apart."""
    last = {name: max(str(row[name] or "") for row in rows) for name in _TIMES} if rows else {}
    return [listener_words(row, now, running=running, disabled=disabled, last=last) for row in rows]


def ago(seconds: float) -> str:
    """How long ago something was."""
    if seconds < 1:
        return "just now"
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size or (unit != "days" and seconds >= size):
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds)} s ago"


def _apart(timestamp: object, other: str) -> float:
    try:
        return abs((datetime.fromisoformat(str(timestamp)) - datetime.fromisoformat(other)).total_seconds())
    except (ValueError, TypeError):  # another release's form
        return inf


def _ago(timestamp: object, now: float) -> str:
    try:
        return ago(now - datetime.fromisoformat(str(timestamp)).timestamp())
    except ValueError:  # another release's form
        return str(timestamp)
