"""Ports of the Kubernetes adapter: reflectors and listers that a session uses, and sinks that a session provides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kubesync.domain.errors import ListenerError
from kubesync.domain.objects import RawEvent, Snapshot


class EventSink(Protocol):
    """Receives the events of a watch in order. The listener's thread calls it; it must be quick and thread-safe."""

    def on_events(self, events: Sequence[RawEvent]) -> None:
        """Take one or more ADDED, MODIFIED and DELETED events of the resource, in order. They come from one block of the stream."""

    def on_bookmark(self, resource_version: int) -> None:
        """The server has sent everything up to this version."""


class WatchSink(EventSink, Protocol):
    """Receives lists, events and errors of a reflector, in order."""

    def on_page(self, items: int, left: int | None) -> None:
        """A page of a list was read, and more follow. ``items``: read so far. ``left``: how many follow, if the server says it."""

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """A complete list was read. Later events are newer than it."""

    def on_resumed(self) -> None:
        """The server accepted a watch from a known version (status 200). The listener's view is synced again."""

    def on_stale(self) -> None:
        """The version is too old (410 in either form) or from the future. The view is stale until a snapshot comes."""

    def on_error(self, error: ListenerError, *, consecutive: int) -> None:
        """A list or watch failed. The sink stores the error; the reflector backs off and tries again. ``consecutive`` starts at 1."""


class Reflector(Protocol):
    """Lists and watches one resource of one cluster until stopped.

    ``run`` blocks. It lists first if ``resume_from`` is None, otherwise it watches from that version. It returns when
    ``stop`` was called or the deadline passed. Any thread may call ``stop``; ``run`` returns within a second, even from a
    blocking read. It never raises a ListenerError: those go to the sink.
    """

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None: ...
    def stop(self) -> None: ...


class Lister(Protocol):
    """Lists one resource of one cluster once.

    ``run`` blocks until the list is complete, the deadline passes, or ``stop`` is called (by any thread, also during a read).
    It raises ListenerError if the list is incomplete. After ``stop``, callers ignore whatever it raises.
    """

    def run(self, deadline_monotonic: float) -> Snapshot: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ReflectorPolicy:
    """Times of a reflector, in seconds, and sizes.

    Sources: client-go's reflector backoff (0.8 s doubling to 30 s, jitter factor 1, reset after two quiet minutes); a
    bookmark comes about every 60 s. An API server compacts its store every 5 minutes: the pages of a list that takes longer expire.
    """

    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    page_limit: int = 500
    list_timeout: float = 300.0
    watch_timeout: int = 300
    bookmark_interval: float = 60.0
    silence_margin: float = 15.0
    backoff_initial: float = 0.8
    backoff_cap: float = 30.0
    backoff_reset: float = 120.0
    max_line_bytes: int = 16 * 1024 * 1024
    # A longer page is read again with half as many objects, down to one.
    page_bytes: int = 4 * 1024 * 1024
    max_list_page_bytes: int = 16 * 1024 * 1024
    # What is kept of a list: 200,000 objects of 2.5 KB. Beyond it, the largest objects of the largest namespaces are left out.
    max_list_bytes: int = 512 * 1024 * 1024
    # Pages without an object. A list with more counts as endless.
    max_list_pages: int = 10_000

    @property
    def header_seconds(self) -> float:
        """How long a request may take until the header of its answer is complete, however slowly it comes."""
        return self.connect_timeout + self.read_timeout

    @property
    def answer_seconds(self) -> float:
        """How long a whole answer may take; not for a watch or a list without pages.

        API servers end such requests after 60 s (--request-timeout).
        """
        return 2 * self.read_timeout
