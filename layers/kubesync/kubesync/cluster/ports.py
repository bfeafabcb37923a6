"""Ports of a cluster to Kubernetes, and the callbacks of its runner. Tests pass their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.dns.records import Problem
from kubesync.domain.errors import ListenerError, NotMasterError
from kubesync.domain.objects import Observation, RawEvent, Resource, ServiceKey
from kubesync.domain.report import EventsReport
from kubesync.domain.state import KeyState
from kubesync.kubernetes.ports import Lister, Reflector
from kubesync.kubernetes.service_events import EventPoster


class Connector(Protocol):
    """Connects to clusters."""

    def reflector(self, config: ClusterConfig, resource: Resource) -> Reflector:
        """A reflector with its own connection.

        Raises:
            ListenerError: the configuration is unusable (no credentials, no valid address).
        """

    def lister(self, config: ClusterConfig, resource: Resource) -> Lister:
        """A lister for one complete list without a watch, with its own connection.

        Raises:
            ListenerError: the configuration is unusable.
        """

    def identity(self, config: ClusterConfig) -> str | None:
        """The uid of Service default/kubernetes. None: it cannot be known.

        Raises:
            ListenerError: the cluster does not answer now.
        """

    def event_poster(self, config: ClusterConfig) -> EventPoster:
        """A poster of Kubernetes Events on Services, with its own connection.

        Raises:
            ListenerError: the configuration is unusable.
        """

    def observe(self, event: RawEvent) -> Observation:
        """Parse an event. Never raises for a bad object."""


class EventWriter(Protocol):
    """Writes new reasons of one cluster's Services as Kubernetes Events, in the background."""

    report: EventsReport

    def send(self, state: KeyState, fresh: Iterable[Problem]) -> None:
        """Queue new reasons of a key. Returns at once. Any thread may call it."""

    def close(self) -> None:
        """Accept no more, and drop the queue."""

    def stop(self) -> None:
        """End the background work."""


type Progress = Callable[[str, dict[str, object]], None]
"""Called at each notable step with a short constant word and details, for a person who watches."""


@dataclass(frozen=True, slots=True)
class RunnerEvents:
    """Callbacks of a runner, on its threads.

    ``opened``: keys whose record sets must change, with the monotonic time of the window's first event.
    ``promoted``: keys of any cluster that now own a name. ``error``: an error to persist. ``not_master``: stop everything.
    """

    opened: Callable[[list[KeyState], float | None], None]
    promoted: Callable[[Iterable[ServiceKey]], None]
    error: Callable[[str, Resource, ListenerError], None]
    not_master: Callable[[NotMasterError], None]
    progress: Progress
