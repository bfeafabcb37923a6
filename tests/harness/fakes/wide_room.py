"""Room for every list: for tests in which nobody waits."""

from __future__ import annotations

import math

from kubesync.actors.scheduler import Scheduler
from kubesync.kubernetes.list_room import ListRoom, Space


def wide_space(scheduler: Scheduler) -> Space:
    """The space of one listener, alone in a room without bounds."""
    return ListRoom(math.inf, scheduler).turn().space()
