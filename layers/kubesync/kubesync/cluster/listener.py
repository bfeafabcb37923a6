"""One listener of one cluster: a reflector in its own thread that fills the cluster's merge window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.answer import Answer
from kubesync.actors.scheduler import Scheduler, Thread
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.cluster.ports import Connector, Progress
from kubesync.domain.errors import ErrorCode, ListenerError
from kubesync.domain.objects import ObjectKey, RawEvent, Resource, Snapshot
from kubesync.domain.report import ListenerReport
from kubesync.domain.window import Mode, Window, WindowContent
from kubesync.kubernetes.ports import Reflector
from kubesync.messages import Relisted, Reply

logger = Logger(service="kubesync", child=True)

# One refusal may come from a server that is just starting. After this many in a row a person must act.
_REFUSED_AFTER: Final = 3
_LASTING: Final = (
    ErrorCode.PARSE_DOMAIN,
    ErrorCode.SSL_HANDSHAKE,
    ErrorCode.REQUEST_URI,
    ErrorCode.REQUEST_DENIED,
)


@dataclass(slots=True, eq=False)
class ListRound:
    """Requested lists, one per listener, and the mode in which they are recorded.

    A list keeps its round, even if another round is requested before it is recorded. ``unlisted``: resources whose list is
    not recorded yet. ``began`` (monotonic) and ``changed_before``: when the lists were requested, and how many keys had changed.
    ``reply``: None once it is given, or the caller waits no longer. ``missed``: keys whose changes no watch has told.
    """

    mode: Mode
    unlisted: set[Resource]
    began: float
    changed_before: int
    reply: Reply[Relisted] | None
    missed: set[ObjectKey] = field(default_factory=set)

    @property
    def applies(self) -> bool:
        """Whether its mode still applies to lists that are made for it."""
        return self.reply is not None and bool(self.unlisted)


def round_of(rounds: Iterable[ListRound | None]) -> ListRound | None:
    """The round whose mode applies to the lists of one window. None: the normal mode.

    A requested mode applies only to lists that were made for that request (I5). If a window also holds another list, the
    normal mode applies to all of them.
    """
    found = set(rounds)
    only = found.pop() if len(found) == 1 else None
    return only if only is not None and only.applies else None


class SharedWindow:
    """A cluster's merge window. Its listeners' threads fill it, and its actor closes it. ``opened`` wakes the actor."""

    def __init__(self, length_seconds: float, scheduler: Scheduler, opened: Callable[[], None]) -> None:
        self._window = Window(length_seconds)
        self._rounds: dict[Resource, ListRound | None] = {}
        self._clock = scheduler
        self._lock = scheduler.lock()
        self._opened = opened

    def events(self, events: Sequence[RawEvent]) -> None:
        with self._lock:
            opened = self._window.closes_at() is None
            self._window.add_events(events, self._clock.monotonic())
        if opened:
            self._opened()

    def bookmark(self, resource: Resource, resource_version: int) -> None:
        with self._lock:
            self._window.add_bookmark(resource, resource_version)

    def snapshot(self, snapshot: Snapshot, made_for: ListRound | None = None) -> None:
        with self._lock:
            self._window.add_snapshot(snapshot, self._clock.monotonic())
            self._rounds[snapshot.resource] = made_for
        self._opened()

    def closes_at(self) -> float | None:
        with self._lock:
            return self._window.closes_at()

    def opened_at(self) -> float | None:
        with self._lock:
            return self._window.opened_at

    def close(self) -> tuple[WindowContent, Mapping[Resource, ListRound | None]]:
        """The collected content, and the round of each of its lists."""
        with self._lock:
            rounds, self._rounds = self._rounds, {}
            return self._window.close(), rounds


class Listener:
    """Runs one reflector and counts its events, lists and errors. Implements WatchSink.

    ``last_error``: the newest error. ``failing``: the newest error, after several in a row without a success. ``refused``:
    a failing error that a retry cannot mend. Each is None otherwise.

    Args:
        observed: called in the listener's thread. ``resumed``: the view is complete again. ``stale``: it is out of date.
            ``error``: an error to persist.
        lists_for: the round that its lists belong to.
        progress: told how far a list is.
    """

    def __init__(
        self,
        cluster: str,
        resource: Resource,
        reflector: Reflector,
        window: SharedWindow,
        observed: Callable[[Resource, str, ListenerError | None], None],
        scheduler: Scheduler,
        lists_for: ListRound | None = None,
        progress: Progress = lambda _what, _details: None,
    ) -> None:
        self.resource = resource
        self._counted = ListenerReport(cluster, resource.value)
        self.last_error: ListenerError | None = None
        self.refused: ListenerError | None = None
        self.failing: ListenerError | None = None
        self._reflector = reflector
        self._window = window
        self._observed = observed
        self._lists_for = lists_for
        self._scheduler = scheduler
        self._progress = progress
        self._thread: Thread | None = None

    def start(self, resume_from: int | None, deadline_monotonic: float) -> None:
        """Start. ``resume_from`` None: list first."""
        run = partial(self._reflector.run, self, resume_from, deadline_monotonic)
        self._thread = self._scheduler.thread(f"{self._counted.cluster}/{self.resource}", run)
        self._thread.start()

    def stop(self, code: ErrorCode) -> None:
        """End at once, and keep the reason."""
        self._counted.ended = self._counted.ended or code.key
        self._reflector.stop()

    def cut(self) -> None:
        """End at once. Another listener continues."""
        self._reflector.stop()

    @property
    def report(self) -> ListenerReport:
        """A copy of its counts. Any thread may ask: values are replaced, not changed."""
        return replace(self._counted)

    @property
    def alive(self) -> bool:
        """Whether its thread still runs."""
        return self._thread is not None and self._thread.is_alive()

    # --- WatchSink ---

    def on_events(self, events: Sequence[RawEvent]) -> None:
        self._counted.events += len(events)
        self._window.events(events)

    def on_bookmark(self, resource_version: int) -> None:
        self._counted.bookmarks += 1
        self._window.bookmark(self.resource, resource_version)

    def on_page(self, items: int, left: int | None) -> None:
        self._tell_how_far(items, left)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        self._counted.lists += 1
        self._tell_how_far(len(snapshot.items), 0)
        log_list(self._counted.cluster, snapshot)
        self.refused = self.failing = None
        self._window.snapshot(snapshot, self._lists_for)

    def _tell_how_far(self, items: int, left: int | None) -> None:
        listener = {"cluster": self._counted.cluster, "resource": self.resource.value}
        self._progress("list", {**listener, "items": items, "left": left})

    def on_resumed(self) -> None:
        self._counted.resumed = self._counted.resumed or not self._counted.lists
        self.refused = self.failing = None
        self._observed(self.resource, "resumed", None)

    def on_stale(self) -> None:
        self._observed(self.resource, "stale", None)

    def on_error(self, error: ListenerError, *, consecutive: int) -> None:
        errors, key = self._counted.errors, error.code.key
        self._counted.errors = {**errors, key: errors.get(key, 0) + 1}
        self.last_error = error
        self.failing = error if consecutive >= _REFUSED_AFTER else None
        self.refused = error if self.failing and _will_last(error) else None
        self._observed(self.resource, "error", error)


def log_list(cluster: str, snapshot: Snapshot) -> None:
    """Log how long a complete list took."""
    logger.info(
        "list read",
        cluster=cluster,
        resource=snapshot.resource.value,
        items=len(snapshot.items),
        seconds=round(snapshot.seconds, 3),
        waited_for_room=round(snapshot.waited_seconds, 3),
    )


def _will_last(error: ListenerError) -> bool:
    """Whether a configuration or a permission causes the error, so that a retry does not help."""
    return error.code in _LASTING or (error.code is ErrorCode.REQUEST_STATUS and error.status == HTTPStatus.NOT_FOUND)


def probe_identity(connector: Connector, config: ClusterConfig, scheduler: Scheduler) -> Answer[str | None]:
    """Ask the cluster for the uid of Service default/kubernetes, in a thread of its own."""
    answer: Answer[str | None] = Answer(scheduler)

    def run() -> None:
        try:
            answer.set_result(connector.identity(config))
        except BaseException as error:  # noqa: BLE001 - the actor raises it again
            answer.set_exception(error)

    scheduler.thread(f"{config.name}/identity", run).start()
    return answer
