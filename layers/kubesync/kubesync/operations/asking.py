"""How an operation asks an actor and waits for the answer. It checks every CHECK_SECONDS whether it must stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubesync.actors.answer import Answer
from kubesync.domain.errors import KubesyncError, ZoneError
from kubesync.operations.ports import Master

LIST_SECONDS: Final = 300.0
"""A resync gives up a list, or a zone's answer, that takes longer. The session may end earlier."""
CHECK_SECONDS: Final = 0.2


class ResyncError(KubesyncError):
    """A resync could not be done. The message says why in one line."""


class SessionEndsError(ResyncError):
    """The session ends before the resync is done. A normal resync goes on in the next session; a forced one and a dry run have failed."""


def time_is_up(master: Master) -> bool:
    """Whether the session must end or its deadline has passed."""
    return master.term.over or master.parts.scheduler.monotonic() >= master.term.deadline


def check_time(master: Master, what: str = "the resync") -> None:
    """Raise SessionEndsError once the session must end or its time is over."""
    if time_is_up(master):
        raise SessionEndsError(f"the session ended before {what} was done: run it again")


def wait_for[T](answer: Answer[T], check: Callable[[], None]) -> T:
    """Wait for an answer, and return it or raise it. ``check`` is called every CHECK_SECONDS, and raises if the wait must stop."""
    while not answer.wait(CHECK_SECONDS):
        check()
    return answer.result()


type Question[T] = Callable[[Answer[T]], object]
"""Makes the message to send. It is called with the answer into which the actor is to reply."""


def ask_cluster[T](master: Master, cluster: str, question: Question[T], check: Callable[[], None]) -> T:
    """Send a question to a cluster's actor, and wait for the answer. ``check`` raises if the wait must stop.

    Raises:
        ResyncError: the cluster is not served now.
        Exception: what the actor answers with.
    """
    answer: Answer[T] = Answer(master.parts.scheduler)
    if not master.send(cluster, question(answer)):
        raise ResyncError(f"the configuration of cluster {cluster} is being changed: run it again")
    return wait_for(answer, check)


def ask_zone[T](master: Master, zone_id: str, question: Question[T], check: Callable[[], None]) -> T:
    """Send a question to a zone's actor, and wait for the answer.

    Raises:
        ResyncError: nothing may be written to the zone, or it does not answer in time.
        Exception: what the actor answers with.
    """
    clock = master.parts.scheduler
    answer: Answer[T] = Answer(clock)
    master.zones.send(zone_id, question(answer))
    until = clock.monotonic() + LIST_SECONDS

    def go_on() -> None:
        check()
        if clock.monotonic() >= until:
            raise ResyncError(f"zone {zone_id} could not be compared in time")

    try:
        return wait_for(answer, go_on)
    except ZoneError as error:
        said = f"zone {zone_id} could not be compared: {error}; run it again once that is mended"
        raise ResyncError(said) from error
