"""What the Kubernetes side offers to a session, and what it asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kubesync.domain.errors import ListenerError
from kubesync.domain.objects import RawEvent, Snapshot


class WatchSink(Protocol):
    """Takes what a reflector saw, in order. Called from the listener's thread; must be quick and thread-safe."""

    def on_events(self, events: Sequence[RawEvent]) -> None:
        """ADDED, MODIFIED and DELETED events of the resource, one or more, in order: those of one block of the stream."""

    def on_bookmark(self, resource_version: int) -> None:
        """Everything up to this version has been seen."""

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """A complete list has been read; events that follow are later than it."""

    def on_resumed(self) -> None:
        """A watch from a known version was accepted (status 200): the listener's view is whole again."""

    def on_stale(self) -> None:
        """The version is too old (410 in either form) or from the future: the view is not whole until a snapshot comes."""

    def on_error(self, error: ListenerError, *, consecutive: int) -> None:
        """A list or watch failed; the reflector backs off and tries again. Persist it. ``consecutive`` starts at 1."""


class Reflector(Protocol):
    """Lists and watches one resource of one cluster until told to stop.

    ``run`` blocks. It lists first when ``resume_from`` is None, else it watches from that version. It returns when
    ``stop`` was called (from any thread, also while a read is blocking: within a second) or the deadline passed; it never raises
    a ListenerError, those go to the sink.
    """

    def run(self, sink: WatchSink, resume_from: int | None, deadline_monotonic: float) -> None: ...
    def stop(self) -> None: ...


class Lister(Protocol):
    """Lists one resource of one cluster once.

    ``run`` blocks, until the deadline at the longest, or ``stop`` (from any thread, also while a read is blocking).
    It raises ListenerError where the list cannot be had whole; after ``stop`` whatever it raises is not looked at.
    """

    def run(self, deadline_monotonic: float) -> Snapshot: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ReflectorPolicy:
    """Times of a reflector, in seconds, and sizes.

    Sources: client-go's reflector backoff (0.8 s doubling to 30 s, jitter factor 1, reset after two quiet minutes); a
    bookmark comes about every 60 s.
    """

    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    page_limit: int = 500
    watch_timeout: int = 300
    bookmark_interval: float = 60.0
    silence_margin: float = 15.0
    backoff_initial: float = 0.8
    backoff_cap: float = 30.0
    backoff_reset: float = 120.0
    max_line_bytes: int = 16 * 1024 * 1024
    max_list_page_bytes: int = 256 * 1024 * 1024
    # 200,000 objects of 2.5 KB; what is kept of them is a fraction. A list that is longer than that does not end.
    max_list_bytes: int = 512 * 1024 * 1024
    max_list_pages: int = 10_000
