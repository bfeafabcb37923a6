"""Room for every list: for tests in which nobody waits."""

import math

from kubesync.actors.scheduler import Scheduler
from kubesync.kubernetes.list_room import ListReservation, ListRoom


def unlimited_reservation(scheduler: Scheduler) -> ListReservation:
    """The reservation of one listener, alone in a room without bounds."""
    return ListRoom(math.inf, scheduler).for_cluster().for_list()
