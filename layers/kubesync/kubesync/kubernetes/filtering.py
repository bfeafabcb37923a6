"""Filters objects of other namespaces that the API server cannot leave out."""

from __future__ import annotations

from collections.abc import Sequence

from kubesync.domain.errors import ListenerError
from kubesync.domain.objects import RawEvent, Snapshot
from kubesync.domain.scope import Scope
from kubesync.kubernetes.ports import WatchSink


class FilteredSink:
    """Passes on what is in scope. A filtered event moves the checkpoint as a bookmark does: it has been seen."""

    def __init__(self, sink: WatchSink, scope: Scope) -> None:
        self._sink = sink
        self._scope = scope

    def on_events(self, events: Sequence[RawEvent]) -> None:
        kept = [event for event in events if self._scope.holds(event.namespace)]
        if kept:
            self._sink.on_events(kept)
        if not kept or kept[-1] is not events[-1]:
            self._sink.on_bookmark(events[-1].resource_version)

    def on_bookmark(self, resource_version: int) -> None:
        self._sink.on_bookmark(resource_version)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        self._sink.on_snapshot(snapshot)

    def on_resumed(self) -> None:
        self._sink.on_resumed()

    def on_stale(self) -> None:
        self._sink.on_stale()

    def on_error(self, error: ListenerError, *, consecutive: int) -> None:
        self._sink.on_error(error, consecutive=consecutive)
