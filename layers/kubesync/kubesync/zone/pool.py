"""The zones of a session: an actor and a thread for each hosted zone that has something to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesync.actors.actor import Activity, Host
from kubesync.domain.dns.records import Zone
from kubesync.messages import Drain
from kubesync.zone.actor import ZoneActor
from kubesync.zone.ports import ZonePorts
from kubesync.zone.progress import ZoneFigures

# Zones end by themselves at the deadline. Those that have not ended so much later hang.
_ENDING_SECONDS = 0.1


class Zones:
    """Makes a zone's actor when it is first needed. Any thread may call all methods.

    Args:
        clean: the last master ended cleanly: zones need no settling, except those that it left ``unsettled``.
        zones: zones whose names are known from configurations.
    """

    def __init__(
        self,
        ports: ZonePorts,
        activity: Activity,
        *,
        clean: bool,
        unsettled: Iterable[str] = (),
        zones: Mapping[str, Zone],
    ) -> None:
        self._ports = ports
        self._activity = activity
        self._clean = clean
        self._inherited = frozenset(unsettled)
        self._zones = zones
        self._lock = ports.scheduler.lock()
        self._hosts: dict[str, Host[ZoneFigures]] = {}
        self._drain_until: float | None = None

    def send(self, zone_id: str, message: object) -> None:
        if (host := self._host(zone_id)).alive:
            host.send(message)

    def settle(self, zone_ids: Iterable[str]) -> None:
        """Start the actors of zones that have to be settled, whether or not there is anything to write."""
        for zone_id in sorted(zone_ids):
            self._host(zone_id)

    def _host(self, zone_id: str) -> Host[ZoneFigures]:
        """The zone's thread. It does not start if the session has ended before the zone was needed."""
        with self._lock:
            if zone_id not in self._hosts:
                settled = self._clean and zone_id not in self._inherited
                actor = ZoneActor(zone_id, self._ports, settled=settled, zone=self._zones.get(zone_id))
                self._hosts[zone_id] = host = Host(f"zone {zone_id}", actor, self._ports.scheduler, self._activity)
                if self._drain_until is None or self._ports.clock.monotonic() < self._drain_until:
                    if self._drain_until is not None:
                        host.send(Drain(self._drain_until))
                    host.start()
            return self._hosts[zone_id]

    @property
    def hosted(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._hosts)

    def drain(self, deadline_monotonic: float) -> None:
        """Let every zone do what can be done now, and end their threads; see ``unsettled`` for what that left."""
        with self._lock:
            self._drain_until = deadline_monotonic
            hosts = [host for host in self._hosts.values() if host.alive]
        for host in hosts:
            host.send(Drain(deadline_monotonic))
        clock = self._ports.clock
        until = max(deadline_monotonic, clock.monotonic()) + _ENDING_SECONDS  # for all of them together
        for host in hosts:
            host.join(until - clock.monotonic())

    @property
    def unsettled(self) -> frozenset[str]:
        """Zones that the next master has to settle: an outcome is unknown, or what the last master left could not be settled.

        Also those whose thread hangs in a call: once this master has given up writing, what that call sent is all that can land.
        """
        with self._lock:
            left = {zone_id for zone_id, host in self._hosts.items() if not (host.over and host.figures.clean)}
            return frozenset(left | (self._inherited - self._hosts.keys()))

    @property
    def figures(self) -> Mapping[str, ZoneFigures]:
        """What each zone has published last."""
        with self._lock:
            return {zone_id: host.figures for zone_id, host in self._hosts.items()}
