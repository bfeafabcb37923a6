"""Watches: one state machine from the request's version to the clean end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kubesync.actors.scheduler import Clock
from kubesync_local.standins.apiserver.objects import status
from kubesync_local.standins.apiserver.objects.resources import ResourceType, Target
from kubesync_local.standins.apiserver.objects.store import BOOKMARK, Change, Store, StoredObject, VersionGoneError
from kubesync_local.standins.apiserver.objects.wire import bookmark_line, error_line, event_line, go_json
from kubesync_local.standins.apiserver.requests.listing import WAIT_SLICE_SECONDS
from kubesync_local.standins.apiserver.requests.query import Selection, is_true, parse_version, select, whole_number


@dataclass(frozen=True, slots=True)
class WatchPolicy:
    """Times of a watch, in seconds.

    Source: the API server's cacher sends a bookmark about every minute and 2 s before the request's timeout; without
    ``timeoutSeconds`` a watch lasts 30 minutes or more (``--min-request-timeout``). A bookmark carries the store's version, which
    also moves when nothing of the watched resource changes (seen at a server 1.36 with etcd 3.6).
    """

    bookmark_interval: float = 60.0
    final_bookmark_lead: float = 2.0
    default_timeout: float = 1800.0


class EventStream(Protocol):
    """Where a watch's lines go. ``send`` raises when the connection is closed; that ends the watch."""

    def open(self) -> None:
        """Send status and headers."""

    def send(self, line: bytes) -> None:
        """Send one line as one chunk."""

    def alive(self) -> bool:
        """Whether the client is connected and the server not stopping. Called often; must not block."""


class Watch:
    """One watch. ``run`` blocks until the timeout, an error event, or the end of the connection."""

    def __init__(
        self, store: Store, target: Target, params: Mapping[str, str], clock: Clock, policy: WatchPolicy
    ) -> None:
        """Raises ApiStatusError for parameters that are refused before anything is sent."""
        self._store = store
        self._resource: ResourceType = target.resource
        self._selection: Selection = select(target, params)
        self._clock = clock
        self._policy = policy
        self._version = parse_version(params.get("resourceVersion", ""))
        self._bookmarks = is_true(params.get("allowWatchBookmarks", "")) and not target.legacy_watch
        self._initial_events_bookmark = self._wants_initial_events(params)
        # Versions "" and "0" begin with the current state.
        self._synthetic = self._version == 0 or self._initial_events_bookmark
        timeout = whole_number(params, "timeoutSeconds") or policy.default_timeout
        self._deadline = clock.monotonic() + timeout
        self._next_bookmark = self._bookmark_due()

    def run(self, stream: EventStream) -> None:
        """Send what happened since the version and what happens until the end."""
        with self._store.changed:
            live_from = self._store.sequence
            try:
                lines = self._initial_lines() if self._synthetic else self._missed_lines()
            except VersionGoneError as error:
                lines = [error_line(status.expired_watch(self._version, error.oldest))]
                live_from = -1
        stream.open()
        for line in lines:
            stream.send(line)
        cursor = live_from
        while cursor >= 0 and self._clock.monotonic() < self._deadline:
            with self._store.changed:
                changes = self._store.changes_after_sequence(self._resource, cursor)
                if not changes:
                    self._store.changed.wait(WAIT_SLICE_SECONDS)
                    changes = self._store.changes_after_sequence(self._resource, cursor)
                bookmark = None if changes else self._bookmark_now()
            for change in changes:
                cursor = change.sequence
                line = self._line(change)
                if line:
                    stream.send(line)
            if bookmark:
                stream.send(bookmark)
            if not changes and not stream.alive():
                return

    def _wants_initial_events(self, params: Mapping[str, str]) -> bool:
        if not is_true(params.get("sendInitialEvents", "")):
            return False
        if params.get("resourceVersionMatch") != "NotOlderThan":
            message = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise status.invalid_list_options("resourceVersionMatch", message)
        return True

    def _initial_lines(self) -> list[bytes]:
        objects = self._store.objects(self._resource)
        lines = [
            event_line("ADDED", self._resource, each.encoded) for each in objects if self._selection.matches(each.item)
        ]
        if self._initial_events_bookmark and self._bookmarks:
            lines.append(bookmark_line(self._resource, self._store.version(self._resource), initial_events_end=True))
        return lines

    def _missed_lines(self) -> list[bytes]:
        changes = self._store.changes_after_version(self._resource, self._version)
        return [line for change in changes if (line := self._line(change))]

    def _line(self, change: Change) -> bytes:
        """The line of a change; empty if this watch does not get it (k8s.io/apiserver, storage/cacher, convertToWatchEvent).

        | matched before | matches now | sent     |
        |----------------|-------------|----------|
        | no             | no          | nothing  |
        | no             | yes         | ADDED    |
        | yes            | yes         | MODIFIED |
        | yes            | no          | DELETED: the state that matched, with the version of the change |
        """
        if change.type == BOOKMARK:
            told = self._bookmarks and change.version >= self._version
            return bookmark_line(self._resource, change.version) if told else b""
        if change.version <= self._version:
            return b""  # A future version: silent until it is reached.
        if change.after is None:
            return b""
        before = change.before is not None and self._selection.matches(change.before.item)
        now = change.type != "DELETED" and self._selection.matches(change.after.item)
        if change.type == "DELETED" and change.before is None:
            before = self._selection.matches(change.after.item)
        if not before and not now:
            return b""
        if change.type != "DELETED" and change.before is not None and not now:
            return event_line("DELETED", self._resource, _as_of(change.before, change.version))
        event_type = "MODIFIED" if before and now else "ADDED" if now else "DELETED"
        return event_line(event_type, self._resource, change.after.encoded)

    def _bookmark_due(self) -> float:
        now = self._clock.monotonic()
        regular, final = now + self._policy.bookmark_interval, self._deadline - self._policy.final_bookmark_lead
        return final if now < final < regular else regular

    def _bookmark_now(self) -> bytes:
        """The bookmark that is due now, if any. Call with the store locked and nothing left to send."""
        if not self._bookmarks or self._clock.monotonic() < self._next_bookmark:
            return b""
        self._next_bookmark = self._bookmark_due()
        self._store.write_elsewhere()
        version = self._store.version(self._resource)
        return bookmark_line(self._resource, version) if version >= self._version else b""


def _as_of(stored: StoredObject, version: int) -> bytes:
    metadata = {**stored.item["metadata"], "resourceVersion": str(version)}
    return go_json({**stored.item, "metadata": metadata})
