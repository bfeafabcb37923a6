"""Replays recordings of a real server: their objects and events, with the recorded versions and uids."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlencode

from kubesync_local.standins.apiserver.objects.resources import BY_PLURAL, RESOURCES, ResourceType, parse_path
from kubesync_local.standins.apiserver.objects.status import JsonObject
from kubesync_local.standins.apiserver.objects.store import BOOKMARK, StoredObject
from kubesync_local.standins.apiserver.requests.query import is_true
from kubesync_local.standins.apiserver.server import ApiServer

# Where the story of the recordings begins.
_START_LISTS: Final = tuple(f"01-list-{resource.plural}-empty" for resource in RESOURCES)
_START_WATCHES: Final = tuple(f"02-watch-{resource.plural}" for resource in RESOURCES)


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded HTTP exchange. ``lines`` are (milliseconds since the request, text)."""

    method: str
    path: str
    params: dict[str, str]
    status: int
    headers: dict[str, str]
    lines: tuple[tuple[int, str], ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read one file. Raises OSError, ValueError and KeyError for other files."""
        value = json.loads(path.read_text(encoding="utf-8"))
        request = value["request"]
        return cls(
            method=request["method"],
            path=request["path"],
            params=request["params"],
            status=value["status"],
            headers=value["headers"],
            lines=tuple((milliseconds, text) for milliseconds, text in value["body"]),
        )

    @property
    def body(self) -> str:
        """The whole body."""
        return "".join(text for _, text in self.lines)

    @property
    def target(self) -> str:
        """Path and query of the request."""
        return self.path + (f"?{urlencode(self.params)}" if self.params else "")

    @property
    def resource(self) -> ResourceType:
        """Raises ValueError if the path names none."""
        found = parse_path(self.path)
        if found is None:
            raise ValueError(f"no resource at {self.path}")
        return BY_PLURAL[found.resource.plural]

    @property
    def is_watch(self) -> bool:
        """Whether it is a stream of events."""
        found = parse_path(self.path)
        return is_true(self.params.get("watch", "")) or (found is not None and found.legacy_watch)


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One line of a recorded watch."""

    milliseconds: int
    resource: ResourceType
    type: str
    version: int
    item: JsonObject


def load_list(server: ApiServer, recording: Recording) -> int:
    """Replace a resource by what a recorded list holds, verbatim; returns the list's version."""
    body = json.loads(recording.body)
    version = int(body["metadata"]["resourceVersion"])
    server.store.install(recording.resource, body["items"], version)
    server.note_allocations()
    return version


def events_of(recording: Recording) -> list[RecordedEvent]:
    """The events of a recorded watch, in order, without ERROR events."""
    events = []
    for milliseconds, text in recording.lines:
        line = json.loads(text)
        if line["type"] == "ERROR":
            continue
        item = {name: value for name, value in line["object"].items() if name not in ("kind", "apiVersion")}
        version = int(item["metadata"]["resourceVersion"])
        events.append(RecordedEvent(milliseconds, recording.resource, line["type"], version, item))
    return events


class Replay:
    """Releases recorded events into a server, at the caller's pace. Not thread-safe.

    Events of all watches are merged by their recorded time, those of one millisecond by version. During a replay each
    resource is at its own last recorded version, as in a watch cache.
    """

    def __init__(self, server: ApiServer, lists: Iterable[Recording], watches: Iterable[Recording]) -> None:
        """Installs the lists at once, replacing what the server held."""
        self._server = server
        for recording in lists:
            load_list(server, recording)
        events = [event for recording in watches for event in events_of(recording)]
        self._events = sorted(events, key=lambda event: (event.milliseconds, event.version))
        self._position = 0

    @classmethod
    def of_story(cls, server: ApiServer, directory: Path) -> Self:
        """The whole story, from the recordings in ``directory``; sets the server to its beginning."""

        def read(names: Iterable[str]) -> list[Recording]:
            return [Recording.read(directory / f"{name}.json") for name in names]

        return cls(server, read(_START_LISTS), read(_START_WATCHES))

    @property
    def pending(self) -> tuple[RecordedEvent, ...]:
        """What is not released yet."""
        return tuple(self._events[self._position :])

    def release_next(self) -> RecordedEvent | None:
        """Release one event or bookmark; None when there are no more."""
        if self._position == len(self._events):
            return None
        event = self._events[self._position]
        self._position += 1
        if event.type == BOOKMARK:
            self._server.store.bookmark(event.resource, event.version)
        else:
            self._server.store.replay(event.resource, event.type, StoredObject.of(event.item))
        return event

    def release_until(self, milliseconds: int) -> int:
        """Release everything recorded in the first milliseconds of the watches; returns how many."""
        before = self._position
        while self._position < len(self._events) and self._events[self._position].milliseconds <= milliseconds:
            self.release_next()
        return self._position - before

    def release_all(self) -> int:
        """Release everything that is left."""
        return self.release_until(self._events[-1].milliseconds) if self._events else 0

    def settle(self, version: int) -> None:
        """Set the whole store to ``version``, as it was when later lists were recorded."""
        self._server.store.advance(version)
        self._server.note_allocations()
