"""A session's ports with an eye on how long lists and batches take (``session.trace``); they pass everything on as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from kubesync.aws.route53.zones import BatchChange, ZoneClient
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.xray import Value
from kubesync.cluster.ports import Connector
from kubesync.domain.dns.records import RecordKey, RecordSet, Zone
from kubesync.domain.errors import ListenerError
from kubesync.domain.objects import Observation, RawEvent, Resource, Snapshot
from kubesync.kubernetes.ports import Lister, Reflector, WatchSink
from kubesync.kubernetes.service_events import EventPoster


class Steps(Protocol):
    """Is told what took how long, in seconds, right after it; from any thread."""

    def monotonic(self) -> float: ...

    def took(
        self, kind: str, what: str, seconds: float, facts: Mapping[str, Value], failure: type[Exception] | None = None
    ) -> None: ...


class TracedZones:
    """Implements ``ZoneClient``; times batches."""

    def __init__(self, zones: ZoneClient, steps: Steps) -> None:
        self._zones = zones
        self._steps = steps

    def zone(self, zone_id: str) -> Zone:
        return self._zones.zone(zone_id)

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        began = self._steps.monotonic()
        failure: type[Exception] | None = None
        try:
            self._zones.change(zone_id, changes, comment)
        except Exception as error:
            failure = type(error)
            raise
        finally:
            seconds = self._steps.monotonic() - began
            self._steps.took("batch", zone_id, seconds, {"elements": len(changes)}, failure)

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        return self._zones.read(zone_id, name)

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        return self._zones.walk(zone_id)


class TracedConnector:
    """Implements ``Connector``; times lists."""

    def __init__(self, connector: Connector, steps: Steps) -> None:
        self._connector = connector
        self._steps = steps
        self.identity = connector.identity
        self.event_poster: Callable[[ClusterConfig], EventPoster] = connector.event_poster
        self.observe: Callable[[RawEvent], Observation] = connector.observe

    def reflector(self, config: ClusterConfig, resource: Resource) -> Reflector:
        return _Reflector(self._connector.reflector(config, resource), f"{config.name}/{resource}", self._steps)

    def lister(self, config: ClusterConfig, resource: Resource) -> Lister:
        return _Lister(self._connector.lister(config, resource), f"{config.name}/{resource}", self._steps)


class _Lister:
    def __init__(self, lister: Lister, what: str, steps: Steps) -> None:
        self._lister = lister
        self._what = what
        self._steps = steps
        self.stop = lister.stop

    def run(self, deadline_monotonic: float) -> Snapshot:
        began = self._steps.monotonic()
        snapshot = self._lister.run(deadline_monotonic)
        self._steps.took("list", self._what, self._steps.monotonic() - began, {"items": len(snapshot.items)})
        return snapshot


class _Reflector:
    def __init__(self, reflector: Reflector, what: str, steps: Steps) -> None:
        self._reflector = reflector
        self._what = what
        self._steps = steps
        self.stop = reflector.stop

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None:
        listing_since = self._steps.monotonic() if resume_from is None else None
        self._reflector.run(_Sink(sink, self._what, self._steps, listing_since), resume_from, deadline_monotonic)


class _Sink:
    """Implements ``WatchSink``: passes everything on, and knows since when a list is being read."""

    def __init__(self, sink: WatchSink, what: str, steps: Steps, listing_since: float | None) -> None:
        self._sink = sink
        self._what = what
        self._steps = steps
        self._listing_since = listing_since
        # What comes often goes straight to where it is wanted.
        self.on_events = sink.on_events
        self.on_bookmark = sink.on_bookmark
        self.on_resumed = sink.on_resumed

    def on_snapshot(self, snapshot: Snapshot) -> None:
        now = self._steps.monotonic()
        self._sink.on_snapshot(snapshot)
        since, self._listing_since = self._listing_since, None
        if since is not None:
            self._steps.took("list", self._what, now - since, {"items": len(snapshot.items)})

    def on_stale(self) -> None:
        self._listing_since = self._steps.monotonic()
        self._sink.on_stale()

    def on_error(self, error: ListenerError, *, consecutive: int) -> None:
        self._sink.on_error(error, consecutive=consecutive)
