"""Runs a session that only looks, with its progress on standard error."""

from typing import Any

from kubesync_local.sessions.ending import ended_by_signals
from kubesync_local.sessions.live import showing_progress
from kubesync_local.workplace.looking import Look


def compared(look: Look, cluster: str, *, force: bool = False) -> dict[str, Any]:
    """The report of a dry run. Raises LookError."""
    with showing_progress(compares=True) as progress:
        session = look.session(progress)
        with ended_by_signals(lambda: session):
            return look.compared(session, cluster, force=force)
