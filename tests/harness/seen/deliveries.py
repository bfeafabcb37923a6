"""Counts what a session's listeners hand over, so that a test knows what is in a window before it closes."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.objects import RawEvent, Resource
from kubesync.kubernetes.list_room import ListReservation
from kubesync.kubernetes.ports import Reflector, WatchSink
from kubesync.session.session import Session


class Deliveries:
    """``events`` and ``bookmarks``: by cluster and resource, how many have reached the window."""

    def __init__(self, session: Session) -> None:
        self.events: Counter[tuple[str, Resource]] = Counter()
        self.bookmarks: Counter[tuple[str, Resource]] = Counter()
        connector = session._parts.connector
        self._really = connector.reflector
        connector.reflector = self._reflector  # type: ignore[method-assign] # the connector of this session only

    def _reflector(self, config: ClusterConfig, resource: Resource, reservation: ListReservation) -> Reflector:
        return _CountedReflector(self._really(config, resource, reservation), self, (config.name, resource))


class _CountedReflector:
    """Implements ``Reflector``."""

    def __init__(self, reflector: Reflector, counts: Deliveries, which: tuple[str, Resource]) -> None:
        self._reflector = reflector
        self._counts = counts
        self._which = which

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None:
        counted: Any = _CountedSink(sink, self._counts, self._which)
        self._reflector.run(counted, resume_from, deadline_monotonic)

    def stop(self) -> None:
        self._reflector.stop()


class _CountedSink:
    """Counts; everything goes to the listener as it is."""

    def __init__(self, sink: WatchSink, counts: Deliveries, which: tuple[str, Resource]) -> None:
        self._sink = sink
        self._counts = counts
        self._which = which

    def on_events(self, events: Sequence[RawEvent]) -> None:
        self._sink.on_events(events)
        self._counts.events[self._which] += len(events)

    def on_bookmark(self, resource_version: int) -> None:
        self._sink.on_bookmark(resource_version)
        self._counts.bookmarks[self._which] += 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)
