"""Ports of a cluster: to Kubernetes, to the tables, and to other actors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kubesync.actors.scheduler import Lock, Scheduler
from kubesync.aws.dynamodb.store import Action
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.listeners import Remembered
from kubesync.aws.tables.of_clusters import Tables
from kubesync.domain.credential_ends import Credential
from kubesync.domain.errors import NotMasterError
from kubesync.domain.objects import Observation, RawEvent, Resource
from kubesync.kubernetes.list_room import ListReservation, ListRoom
from kubesync.kubernetes.ports import Lister, Reflector
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.messages import Message

_WRITE_SECONDS: Final = 2.0


class Connector(Protocol):
    """Connects to clusters."""

    def reflector(self, config: ClusterConfig, resource: Resource, reservation: ListReservation) -> Reflector:
        """A reflector with its own connection. Its lists wait for room in ``reservation``.

        Raises:
            ListenerError: the configuration is unusable (no credentials, no valid address).
        """

    def lister(self, config: ClusterConfig, resource: Resource, reservation: ListReservation) -> Lister:
        """A lister for one complete list without a watch, with its own connection. The list waits for room in ``reservation``.

        Raises:
            ListenerError: the configuration is unusable.
        """

    def identity(self, config: ClusterConfig) -> str | None:
        """The uid of Service default/kubernetes. It shows whether the cluster at this address is still the same one. None: it cannot be known.

        Raises:
            ListenerError: the cluster does not answer now.
        """

    def credentials(self, config: ClusterConfig) -> Mapping[Credential, tuple[float, ...]]:
        """When the credentials of its connections end (epoch seconds), as far as the connections of this session have seen.

        Missing: not seen yet. Empty: none that a person must know. Several: one of these, the latest if nothing better is known.
        """

    def client(self, config: ClusterConfig) -> ApiClient:
        """A client with its own connection, for Kubernetes Events on Services.

        Raises:
            ListenerError: the configuration is unusable.
        """

    def observe(self, config: ClusterConfig, event: RawEvent) -> Observation:
        """Parse an event. Never raises for a bad object."""


type Progress = Callable[[str, dict[str, object]], None]
"""Called at each notable step with a short constant word and details, for a person who watches."""


@dataclass(frozen=True, slots=True)
class Configured:
    """A cluster's configuration, and what earlier sessions have stored about it.

    ``remembered``: checkpoints, identity and more. None: the cluster reads them itself. ``unclean``: the last session died.
    """

    config: ClusterConfig
    remembered: Remembered | None
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class ClusterPorts:
    """What a cluster's actor needs.

    Args:
        session: the id of the session.
        room: the memory for lists of all clusters.
        cached_keys: returns how many keys a cluster may keep in memory now.
        window_seconds, window_bytes: of the merge window, see ``SharedWindow``.
        pause_seconds: between the last session and this one, see ``KeyStates``.
        to_cluster, to_zone, to_named: send a message to the cluster, or zone, of this name, or to the named upstreams.
        zones: returns the ids of zones that have an actor.
        large: a lock for the memory of the process: one large key is planned at a time, see ``Committer``.
        not_master: tells the session that another master writes: stop everything.
        removed: tells the session that a cluster of this name is removed.
        unreadable: tells it that a newer release wrote items of this cluster, so it is not served.
        progress: shows what happens to a person who watches.
    """

    session: str
    tables: Tables
    fenced_writer: FencedWriter
    connector: Connector
    room: ListRoom
    cached_keys: Callable[[], int]
    scheduler: Scheduler
    window_seconds: float
    window_bytes: int
    pause_seconds: float
    to_cluster: Callable[[str, Message], bool]
    to_zone: Callable[[str, Message], object]
    to_named: Callable[[Message], None]
    zones: Callable[[], Sequence[str]]
    large: Lock
    not_master: Callable[[NotMasterError], None]
    removed: Callable[[str], None]
    unreadable: Callable[[str], None]
    progress: Progress

    def write(self, cluster: str, actions: Sequence[Action], token: str = "") -> None:
        """Write items of a cluster under its fence. Raises as ``FencedWriter.run``, after a moment at most."""
        until = self.scheduler.monotonic() + _WRITE_SECONDS
        self.fenced_writer.run([cluster], actions, token or self.fenced_writer.token(), until_monotonic=until)
