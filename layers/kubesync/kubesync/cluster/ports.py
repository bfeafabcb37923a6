"""What a cluster asks of the Kubernetes side, and what its runner tells others: tests hand in their own."""

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
    """Reaches clusters."""

    def reflector(self, config: ClusterConfig, resource: Resource) -> Reflector:
        """A reflector with a connection of its own.

        Raises:
            ListenerError: the configuration leads nowhere (no credentials, no valid address).
        """

    def lister(self, config: ClusterConfig, resource: Resource) -> Lister:
        """For one complete list outside of any watch, with a connection of its own.

        Raises:
            ListenerError: the configuration leads nowhere.
        """

    def identity(self, config: ClusterConfig) -> str | None:
        """The uid of Service default/kubernetes, None where it cannot be known.

        Raises:
            ListenerError: the cluster cannot be asked now.
        """

    def event_poster(self, config: ClusterConfig) -> EventPoster:
        """For Kubernetes Events on Services, with a connection of its own.

        Raises:
            ListenerError: the configuration leads nowhere.
        """

    def observe(self, event: RawEvent) -> Observation:
        """Parse an event; never raises for a bad object."""


class EventWriter(Protocol):
    """Writes new reasons of one cluster's Services as Kubernetes Events, in the background."""

    report: EventsReport

    def tell(self, state: KeyState, fresh: Iterable[Problem]) -> None:
        """Take reasons that are new on a key. Returns at once; any thread."""

    def close(self) -> None:
        """Take no more; what is queued is dropped."""

    def stop(self) -> None:
        """End the background work."""


type Progress = Callable[[str, dict[str, object]], None]
"""Told what happens while it happens: a short constant word and details, for a person who watches."""


@dataclass(frozen=True, slots=True)
class RunnerEvents:
    """Whom a runner tells what.

    ``opened``: keys whose record sets have to change, with the monotonic time of the window's first event.
    ``promoted``: keys (of any cluster) that were given a name. ``error``: to be persisted. ``not_master``: stop everything.
    """

    opened: Callable[[list[KeyState], float | None], None]
    promoted: Callable[[Iterable[ServiceKey]], None]
    error: Callable[[str, Resource, ListenerError], None]
    not_master: Callable[[NotMasterError], None]
    progress: Progress
