"""``kubesync pause`` and ``kubesync resume``: whether the schedules of a deployment start sessions.

    pause    schedules DISABLED ─> alarm NoMaster notifies nobody ─> the note in the tables ─> the audit
    resume   schedules ENABLED ─> alarm NoMaster notifies ─> no note ─> the audit

Each step is idempotent: whoever was interrupted runs the command again. A session that runs goes on to its end.
"""

import argparse
import os

from kubesync.aws.dynamodb.store import Delete
from kubesync.aws.tables.items import put
from kubesync.aws.tables.upstreams import timestamp
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.people import DEPLOYMENT, caller, note
from kubesync_local.workplace.readings import PAUSED
from kubesync_local.workplace.schedules import SchedulerError, Schedules
from kubesync_local.workplace.workplace import Workplace


def run(arguments: argparse.Namespace) -> int:
    """Switch the schedules, and say what still runs."""
    work = Workplace()
    work.store.get(PAUSED)  # tables of another deployment are refused before anything changes
    schedules = Schedules(work.boto, work.settings.deployment, os.environ)
    pausing = arguments.command == "pause"
    state = "DISABLED" if pausing else "ENABLED"
    before = schedules.switch(state)
    _notify(schedules, on=not pausing)
    if pausing:
        work.store.write(put(PAUSED, at=timestamp(work.now()), by=caller(work.boto)))
    else:
        work.store.write(Delete(PAUSED))
    changed = {name: was for name, was in before.items() if was != state}
    if changed:
        note(work, DEPLOYMENT, arguments.command, [(f"schedule {name}", was, state) for name, was in changed.items()])
    _say(work, pausing=pausing, changed=bool(changed))
    return 0


def _notify(schedules: Schedules, *, on: bool) -> None:
    try:
        schedules.notify(on=on)
    except SchedulerError as error:  # the schedules matter more
        remark(f"warning: {error}")


def _say(work: Workplace, *, pausing: bool, changed: bool) -> None:
    deployment = work.settings.deployment
    if not pausing:
        starts = "the next session starts within its schedule's time"
        remark(f"deployment {deployment} is {'resumed' if changed else 'not paused'}: {starts}")
        return
    lease = work.lease.read()
    until = f" until {timestamp(lease.ends_at_ms / 1000)}" if lease.ends_at_ms else ""
    running = "" if lease.is_free(int(work.now() * 1000)) else f"; session {lease.holder} goes on{until}"
    remark(f"deployment {deployment} is paused: no session starts, record sets and upstreams stay as they are{running}")
    remark("`kubesync resume` starts it again")
