"""The actors of all clusters, by name. A cluster that is not served any more keeps its actor: its batches are still closed.

A cluster that only a batch in flight names gets an actor too, if its fence can be raised. Else another shard serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.actor import Activity, Host
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.cluster.actor import ClusterActor
from kubesync.cluster.ports import ClusterPorts
from kubesync.cluster.run import ListeningRun
from kubesync.domain.errors import NotMasterError
from kubesync.messages import EndCluster, StopListening
from kubesync.session.health import ClusterHealth

logger = Logger(service="kubesync", child=True)

_NOWHERE: Final = "not-served.invalid"


def _host_name(cluster: str) -> str:
    return f"{cluster}/cluster"


class Clusters:
    """The session's thread makes actors. Any thread may ``send``."""

    def __init__(self, ports: Callable[[], ClusterPorts], activity: Activity) -> None:
        self._new_ports = ports
        self._activity = activity
        self._actors: dict[str, ClusterActor] = {}
        self._hosts: dict[str, Host] = {}

    def send(self, name: str, message: object) -> bool:
        """Send a message to a cluster. False: no such cluster here."""
        host = self._hosts.get(name)
        if host is not None:
            host.send(message)
        return host is not None

    def stop(self, name: str, message: StopListening) -> None:
        """Stop a cluster's listeners at once, even while its actor waits for DynamoDB. The actor does the rest."""
        actor = self._actors.get(name)
        if actor is not None and actor.running is not None:
            for listener in actor.running.listeners:
                listener.stop(message.code)
        self.send(name, message)

    def host(self, config: ClusterConfig) -> None:
        """Make sure that the cluster has an actor. It serves nothing until it is configured."""
        name = config.name
        if name in self._hosts:
            return
        ports = self._new_ports()
        actor = ClusterActor(config, ports)
        host = Host(_host_name(name), actor, ports.scheduler, self._activity)
        actor.service.host = host  # its listeners send to it
        self._actors[name], self._hosts[name] = actor, host
        host.start()

    def host_unserved(self, names: Iterable[str], zone_id: str, fence: Callable[[str], None]) -> None:
        """Make actors that close a zone's batch for clusters that are not served. ``fence`` raises a fence, or NotMasterError."""
        for name in names:
            if name in self._hosts:
                continue
            try:
                fence(name)
            except NotMasterError as error:
                logger.warning("cannot close a batch of this cluster", cluster=name, reason=str(error))
                continue
            zone = ZoneReference(id=zone_id, name=_NOWHERE)
            self.host(ClusterConfig(name=name, server=f"https://{_NOWHERE}", domain=_NOWHERE, zones=(zone,)))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._hosts)

    def end(self, seconds: float) -> None:
        """End all actors: no zone asks them any more."""
        for host in self._hosts.values():
            host.send(EndCluster())
        for host in self._hosts.values():
            host.join(seconds)

    # --- for reports ---

    @property
    def runs(self) -> list[tuple[ListeningRun, bool]]:
        """Every run of listeners, and whether it goes on."""
        return [(run, run is actor.running) for actor in self._actors.values() for run in actor.service.runs]

    def health(self, config: ClusterConfig, steps: Mapping[str, float], epoch: float, now: float) -> ClusterHealth:
        """What of a cluster does not get through. ``steps``: actors that are in one step for long, and for how many seconds."""
        actor = self._actors[config.name]
        states, run = actor.service.states, actor.running
        hangs = steps.get(_host_name(config.name), 0.0)
        views = [] if config.deleting else list(states.listeners.values())
        # A cluster that was added a moment ago has not read yet since when it does not work.
        failing = [0.0 if view.works(epoch) else epoch - (view.failing_since or epoch - 1.0) for view in views]
        oldest = states.open_keys.oldest
        unrecorded = None if run is None else run.unrecorded_since
        return ClusterHealth(
            tuple(max(seconds, hangs) for seconds in failing),
            states.open_keys.count,
            0.0 if oldest is None else max(0.0, epoch - oldest),
            0.0 if unrecorded is None else now - unrecorded,
            states.open_keys.waiting,
        )

    def conflicts(self, name: str) -> int:
        """How many names of a cluster somebody else holds, as far as is known."""
        return self._actors[name].service.states.conflicts
