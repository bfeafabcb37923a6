"""The actors of all clusters, by name. A cluster that is not served any more keeps its actor: its batches are still closed.

A cluster that only a batch in flight names gets an actor too, if its fence can be raised. Else another shard serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.actor import Activity, Host
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.cluster.actor import ClusterActor
from kubesync.cluster.ports import ClusterPorts
from kubesync.cluster.serving import ClusterFigures
from kubesync.domain.errors import NotMasterError
from kubesync.messages import EndCluster, StopListening
from kubesync.session.health import actor_of

logger = Logger(service="kubesync", child=True)

_NOWHERE: Final = "not-served.invalid"


class Clusters:
    """The session's thread makes actors. Any thread may ``send``."""

    def __init__(self, ports: Callable[[], ClusterPorts], activity: Activity) -> None:
        self._new_ports = ports
        self._activity = activity
        self._hosts: dict[str, Host[ClusterFigures]] = {}

    def send(self, name: str, message: object) -> bool:
        """Send a message to a cluster. False: no such cluster here."""
        host = self._hosts.get(name)
        if host is not None:
            host.send(message)
        return host is not None

    def stop(self, name: str, message: StopListening) -> None:
        """Stop a cluster's listeners at once, even while its actor waits for DynamoDB. The actor does the rest."""
        host = self._hosts.get(name)
        if host is not None and host.figures.running is not None:
            for listener in host.figures.running.listeners:
                listener.stop(message.code)
        self.send(name, message)

    def host(self, config: ClusterConfig) -> None:
        """Make sure that the cluster has an actor. It serves nothing until it is configured."""
        name = config.name
        if name in self._hosts:
            return
        ports = self._new_ports()
        actor = ClusterActor(config, ports)
        self._hosts[name] = host = Host(actor_of(name), actor, ports.scheduler, self._activity)
        actor.hosted(host)
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

    def end(self, seconds: float) -> None:
        """End all actors: no zone asks them any more."""
        for host in self._hosts.values():
            host.send(EndCluster())
        for host in self._hosts.values():
            host.join(seconds)

    @property
    def figures(self) -> dict[str, ClusterFigures]:
        """What each cluster has published last."""
        return {name: host.figures for name, host in self._hosts.items()}
