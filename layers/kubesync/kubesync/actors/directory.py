"""The actors of one kind, by name: who runs, who has failed, start, stop, figures."""

from collections.abc import Callable
from typing import Final

from kubesync.actors.actor import Host
from kubesync.actors.scheduler import Scheduler

_ENDING_SECONDS: Final = 0.1
"""Actors end by themselves at their deadline. Those that have not ended so much later hang."""


class Directory[F]:
    """Starts and ends the actors of one kind, whose figures are ``F``, and finds them by name. Any thread may call all methods.

    An actor that has ended stays, with its last figures.

    Args:
        make: makes the actor of a name, in its host.
        on_demand: ``send`` makes an actor that is missing.
    """

    def __init__(self, make: Callable[[str], Host[F]], scheduler: Scheduler, *, on_demand: bool = False) -> None:
        self._make = make
        self._scheduler = scheduler
        self._on_demand = on_demand
        self._lock = scheduler.lock()
        self._hosts: dict[str, Host[F]] = {}
        self._last: tuple[object, float] | None = None  # arguments of ``end``, once it was called

    def __contains__(self, name: str) -> bool:
        return name in self._hosts

    def send(self, name: str, message: object) -> bool:
        """Send a message to an actor, unless it has ended. False: there was never an actor of this name."""
        if self._on_demand:
            self.start(name)
        host = self._hosts.get(name)
        if host is not None and host.alive:
            host.send(message)
        return host is not None

    def start(self, name: str) -> None:
        """Make and start an actor, if there is none of this name.

        After ``end``, a new actor gets the last message first; it does not start if the time of that message is over.
        """
        with self._lock:
            if name in self._hosts:
                return
            self._hosts[name] = host = self._make(name)
            if self._last is None or self._scheduler.monotonic() < self._last[1]:
                if self._last is not None:
                    host.send(self._last[0])
                host.start()

    def end(self, message: object, until: float) -> None:
        """Send all actors their last message, also those that are made later, and wait for their ends until then (monotonic)."""
        with self._lock:
            self._last = message, until
            hosts = [host for host in self._hosts.values() if host.alive]
        for host in hosts:
            host.send(message)
        until = max(until, self._scheduler.monotonic()) + _ENDING_SECONDS  # for all of them together
        for host in hosts:
            host.join(until - self._scheduler.monotonic())

    def not_ended_well(self, well: Callable[[F], bool]) -> frozenset[str]:
        """Return the names of actors that have not ended, or whose last figures are not ``well``. An actor that was never started has ended."""
        with self._lock:
            return frozenset(
                name for name, host in self._hosts.items() if not (host.figures_are_final and well(host.figures))
            )

    @property
    def figures(self) -> dict[str, F]:
        """What each actor published last, by its name."""
        with self._lock:
            return {name: host.figures for name, host in self._hosts.items()}
