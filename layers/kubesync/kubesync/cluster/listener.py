"""One listener of one cluster: a reflector in a thread of its own, what it sees goes into the cluster's window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.scheduler import Event, Scheduler, Thread
from kubesync.cluster.keys.reconciler import Mode
from kubesync.domain.errors import ErrorCode, ListenerError
from kubesync.domain.objects import RawEvent, Resource, Snapshot
from kubesync.domain.report import ListenerReport
from kubesync.domain.window import Window, WindowContent
from kubesync.kubernetes.ports import Reflector

logger = Logger(service="kubesync", child=True)

# One refusal may be a server that is just starting; this many in a row are for a person to mend.
_REFUSED_AFTER: Final = 3
_LASTING: Final = (
    ErrorCode.PARSE_DOMAIN,
    ErrorCode.SSL_HANDSHAKE,
    ErrorCode.REQUEST_URI,
    ErrorCode.REQUEST_DENIED,
)


@dataclass(slots=True, eq=False)
class ListRound:
    """Lists that somebody asked for, one of each listener, and how they are to be taken: a list keeps the round that it was
    made for, whatever is asked for while it waits to be recorded.

    ``unlisted``: whose list is not recorded yet; changed by the cluster's worker only. ``withdrawn``: nobody waits any more.
    """

    mode: Mode
    unlisted: set[Resource]
    done: Event
    withdrawn: bool = False

    def recorded(self, resources: Iterable[Resource]) -> None:
        """Lists of these have been recorded in the round's mode."""
        self.unlisted.difference_update(resources)
        if not self.unlisted:
            self.done.set()


def round_of(rounds: Iterable[ListRound | None]) -> ListRound | None:
    """The round as which the lists of one window are taken; None: like any other.

    What a person asked for holds for the lists that were made for it, and for none that is recorded together with one (I5):
    then the round goes without.
    """
    found = set(rounds)
    only = found.pop() if len(found) == 1 else None
    return None if only is None or only.withdrawn or only.done.is_set() else only


class SharedWindow:
    """A cluster's merge window, filled by its listeners' threads and closed by its worker."""

    def __init__(self, length_seconds: float, scheduler: Scheduler) -> None:
        self._window = Window(length_seconds)
        self._rounds: dict[Resource, ListRound | None] = {}
        self._clock = scheduler
        self.changed = scheduler.condition()

    def events(self, events: Sequence[RawEvent]) -> None:
        with self.changed:
            opened = self._window.closes_at() is None
            self._window.add_events(events, self._clock.monotonic())
            if opened:
                self.changed.notify_all()

    def bookmark(self, resource: Resource, resource_version: int) -> None:
        with self.changed:
            self._window.add_bookmark(resource, resource_version)

    def snapshot(self, snapshot: Snapshot, made_for: ListRound | None = None) -> None:
        with self.changed:
            self._window.add_snapshot(snapshot, self._clock.monotonic())
            self._rounds[snapshot.resource] = made_for
            self.changed.notify_all()

    def closes_at(self) -> float | None:
        with self.changed:
            return self._window.closes_at()

    def close(self) -> tuple[WindowContent, Mapping[Resource, ListRound | None]]:
        """What was collected, and which round each of its lists was made for."""
        with self.changed:
            rounds, self._rounds = self._rounds, {}
            return self._window.close(), rounds


@dataclass(frozen=True, slots=True)
class ListenerEvents:
    """Who wants to know what besides the window.

    ``resumed``, ``stale``: the view is whole again, or broken. ``error``: to be persisted. ``woken``: anything happened.
    """

    resumed: Callable[[Resource], None]
    stale: Callable[[Resource], None]
    error: Callable[[Resource, ListenerError], None]


class Listener:
    """Runs one reflector and counts what it does. Implements WatchSink.

    ``last_error``: the newest one. ``refused``: the same, where trying again will not help. ``failing``: the same, after
    several in a row with nothing that worked in between. None otherwise.

    Args:
        lists_for: the round that its lists are made for.
    """

    def __init__(
        self,
        cluster: str,
        resource: Resource,
        reflector: Reflector,
        window: SharedWindow,
        events: ListenerEvents,
        scheduler: Scheduler,
        lists_for: ListRound | None = None,
    ) -> None:
        self.resource = resource
        self.report = ListenerReport(cluster, resource.value)
        self.last_error: ListenerError | None = None
        self.refused: ListenerError | None = None
        self.failing: ListenerError | None = None
        self._reflector = reflector
        self._window = window
        self._events = events
        self._lists_for = lists_for
        self._scheduler = scheduler
        self._thread: Thread | None = None

    def start(self, resume_from: int | None, deadline_monotonic: float) -> None:
        """Begin; ``resume_from`` None lists first."""
        run = partial(self._reflector.run, self, resume_from, deadline_monotonic)
        self._thread = self._scheduler.thread(f"{self.report.cluster}/{self.resource}", run)
        self._thread.start()

    def stop(self, code: ErrorCode) -> None:
        """End at once, and remember why."""
        self.report.ended = self.report.ended or code.key
        self._reflector.stop()

    def cut(self) -> None:
        """End at once, for another listener to go on."""
        self._reflector.stop()

    def join(self, seconds: float) -> bool:
        """Wait for the thread; False: it still runs."""
        if self._thread is None:
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # --- WatchSink ---

    def on_events(self, events: Sequence[RawEvent]) -> None:
        self.report.events += len(events)
        self._window.events(events)

    def on_bookmark(self, resource_version: int) -> None:
        self.report.bookmarks += 1
        self._window.bookmark(self.resource, resource_version)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        self.report.lists += 1
        log_list(self.report.cluster, snapshot)
        self.refused = self.failing = None
        self._window.snapshot(snapshot, self._lists_for)

    def on_resumed(self) -> None:
        self.report.resumed = self.report.resumed or not self.report.lists
        self.refused = self.failing = None
        self._events.resumed(self.resource)

    def on_stale(self) -> None:
        self._events.stale(self.resource)

    def on_error(self, error: ListenerError, *, consecutive: int) -> None:
        self.report.errors[error.code.key] = self.report.errors.get(error.code.key, 0) + 1
        self.last_error = error
        self.failing = error if consecutive >= _REFUSED_AFTER else None
        self.refused = error if self.failing and _will_last(error) else None
        self._events.error(self.resource, error)


def log_list(cluster: str, snapshot: Snapshot) -> None:
    """Say in the log how long a complete list took to read."""
    logger.info(
        "list read",
        cluster=cluster,
        resource=snapshot.resource.value,
        items=len(snapshot.items),
        seconds=round(snapshot.seconds, 3),
    )


def _will_last(error: ListenerError) -> bool:
    """Whether the cause is in a configuration or a permission: waiting does not help."""
    return error.code in _LASTING or (error.code is ErrorCode.REQUEST_STATUS and error.status == HTTPStatus.NOT_FOUND)
