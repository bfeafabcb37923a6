"""The listeners of one cluster: each is a reflector in its own thread. They fill the cluster's merge window."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from kubesync.actors.actor import Host
from kubesync.actors.scheduler import Scheduler, Thread
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.listener_reports import ListenerErrors
from kubesync.cluster.ports import ClusterPorts
from kubesync.domain.errors import ErrorCode, ListenerError
from kubesync.domain.objects import ObjectKey, RawEvent, Resource, Snapshot
from kubesync.domain.report import ListenerReport
from kubesync.domain.sources.registry import may_be_absent
from kubesync.domain.window import Mode, Window, WindowContent
from kubesync.kubernetes.list_room import ClusterReservation
from kubesync.kubernetes.ports import Reflector
from kubesync.log import logger
from kubesync.messages import ListingFailedError, Observed, Relisted, Reply

# One refusal may come from a server that is just starting. After this many in a row a person must act.
_REFUSED_AFTER: Final = 3
_FULL_SECONDS: Final = 0.1  # how often a listener looks whether a full window has been closed
# Errors that a retry does not mend: a configuration or a permission causes them (``_will_last``).
_LASTING: Final = (ErrorCode.PARSE_DOMAIN, ErrorCode.SSL_HANDSHAKE, ErrorCode.REQUEST_URI, ErrorCode.REQUEST_DENIED)


@dataclass(slots=True, eq=False)
class ListRound:
    """Lists that one resync has requested, one of each listener, and the mode in which they are recorded.

    A list keeps its round, even if another round is requested before it is recorded.

    ``reply``: to the resync. None: it is answered, or withdrawn: nobody waits. ``unlisted``: resources whose list is not recorded yet; empty
    before the lists are requested of listeners. ``began`` (monotonic) and ``changed_before``: when that was, and how many keys the run had
    changed by then. ``missed``: keys with a change that a watch should have reported.
    """

    mode: Mode
    reply: Reply[Relisted] | None
    unlisted: set[Resource] = field(default_factory=set)
    began: float = 0.0
    changed_before: int = 0
    missed: set[ObjectKey] = field(default_factory=set)

    @property
    def applies(self) -> bool:
        """Whether its lists are requested and not all recorded, and somebody waits for them. Only then its mode applies to them."""
        return self.reply is not None and bool(self.unlisted)

    def recorded(self, resources: Iterable[Resource], missed: AbstractSet[ObjectKey]) -> None:
        """Note that lists of these resources, made for this round, are recorded."""
        self.unlisted.difference_update(resources)
        self.missed |= missed

    def answer(self, answer: Relisted | ListingFailedError | None) -> None:
        """Answer the caller, at most once. None: drop the reply, the caller waits no longer."""
        reply, self.reply = self.reply, None
        if reply is not None and isinstance(answer, Relisted):
            reply.set_result(answer)
        elif reply is not None and isinstance(answer, ListingFailedError):
            reply.set_exception(answer)


def round_of(rounds: Iterable[ListRound | None]) -> ListRound | None:
    """The round whose mode applies to the lists of one window. None: the normal mode.

    A requested mode applies only to lists that were made for that request (I5). If a window also holds another list, the
    normal mode applies to all of them.
    """
    found = set(rounds)
    only = found.pop() if len(found) == 1 else None
    return only if only is not None and only.applies else None


class SharedWindow:
    """A cluster's merge window: it collects events for a second after the first. Its listeners' threads fill it, and its actor closes it.

    Args:
        length_seconds: from the first event until it is due.
        opened: called by a listener's thread when the first event, or a list, has come; wakes the actor.
        most_bytes: with more than that it is full, and its listeners wait. So objects that change faster than they are recorded do not fill
            the memory (I9).
    """

    def __init__(
        self, length_seconds: float, scheduler: Scheduler, opened: Callable[[], None], most_bytes: int
    ) -> None:
        self._window = Window(length_seconds)
        self._most_bytes = most_bytes
        # Of the lists in the window: by resource, the round that the list was made for; None: nobody requested it.
        self._rounds: dict[Resource, ListRound | None] = {}
        self._clock = scheduler
        self._lock = scheduler.lock()
        self._opened = opened

    def add_events(self, events: Sequence[RawEvent]) -> None:
        with self._lock:
            opened = self._window.closes_at() is None
            self._window.add_events(events, self._clock.monotonic())
        if opened:
            self._opened()

    def full(self) -> bool:
        with self._lock:
            return self._window.over(self._most_bytes)

    def add_bookmark(self, resource: Resource, resource_version: int) -> None:
        with self._lock:
            self._window.add_bookmark(resource, resource_version)

    def add_snapshot(self, snapshot: Snapshot, made_for: ListRound | None = None) -> None:
        with self._lock:
            self._window.add_snapshot(snapshot, self._clock.monotonic())
            self._rounds[snapshot.resource] = made_for
        self._opened()

    def closes_at(self) -> float | None:
        """From when (monotonic) the window may be closed. None: no event or list has come."""
        with self._lock:
            return self._window.closes_at()

    def opened_at(self) -> float | None:
        """When (monotonic) the first event or list came. None: none has come."""
        with self._lock:
            return self._window.opened_at

    def close_events(self) -> WindowContent | None:
        """Close the window and return its content, if it is due and holds no list. None: leave it open."""
        with self._lock:
            closes_at = self._window.closes_at()
            due = closes_at is not None and closes_at <= self._clock.monotonic() and not self._rounds  # holds no list
            return self._window.close() if due else None

    def close(self) -> tuple[WindowContent, ListRound | None]:
        """Close the window. Returns its content, and the round whose mode applies to its lists (``round_of``)."""
        with self._lock:
            rounds, self._rounds = self._rounds, {}
            return self._window.close(), round_of(rounds.values())


class Listener:
    """Runs one reflector and counts its events, lists and errors. Implements WatchSink.

    Its thread writes everything here, except ``stop``. Each ``on_`` method is called in it.

    ``last_error``: the newest error, also after it has passed. ``failing``: the newest error, if there were several in a row without a success;
    None otherwise.

    Args:
        run: the number of the run that it belongs to.
        send: sends a message to the cluster's actor.
        lists_for: the round that its lists are made for. None: nobody requested them.
    """

    def __init__(
        self,
        cluster: str,
        run: int,
        resource: Resource,
        reflector: Reflector,
        window: SharedWindow,
        ports: ClusterPorts,
        send: Callable[[Observed], None],
        lists_for: ListRound | None = None,
    ) -> None:
        self.resource = resource
        self._run = run
        self._counted = ListenerReport(cluster, resource.value)
        self.last_error: ListenerError | None = None
        self.failing: ListenerError | None = None
        self._reflector = reflector
        self._window = window
        self._ports = ports
        self._send = send
        self._lists_for = lists_for
        self._ended = ports.scheduler.event()
        self._thread: Thread | None = None

    def start(self, resume_from: int | None, deadline_monotonic: float) -> None:
        """Start the thread. ``resume_from``: version to watch from; None: list first."""
        run = partial(self._reflector.run, self, resume_from, deadline_monotonic)
        self._thread = self._ports.scheduler.thread(f"{self._counted.cluster}/{self.resource}", run)
        self._thread.start()

    def stop(self, code: ErrorCode | None) -> None:
        """End it at once, and report this reason. None: another listener continues its work."""
        if code is not None:
            self._counted.ended = self._counted.ended or code.key
        self._ended.set()
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
        """Add events to the window. While the window is full, this waits, so that the reflector reads no more from the API server."""
        self._counted.events += len(events)
        self._window.add_events(events)
        while self._window.full() and not self._ended.wait(_FULL_SECONDS):
            pass  # the API server waits, or the watch goes on from here later

    def on_bookmark(self, resource_version: int) -> None:
        self._counted.bookmarks += 1
        self._window.add_bookmark(self.resource, resource_version)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        self._counted.lists += 1
        self.on_page(len(snapshot.items), 0)  # the last page
        log_list(self._counted.cluster, snapshot)
        self.failing = None
        self._window.add_snapshot(snapshot, self._lists_for)

    def on_page(self, items: int, left: int | None) -> None:
        listener = {"cluster": self._counted.cluster, "resource": self.resource.value}
        self._ports.progress("list", {**listener, "items": items, "left": left})

    def on_resumed(self) -> None:
        self._counted.resumed = self._counted.resumed or not self._counted.lists  # a watch after a list does not count
        self.failing = None
        self._send(Observed(self._run, self.resource, "resumed"))

    def on_stale(self) -> None:
        self._send(Observed(self._run, self.resource, "stale"))

    def on_error(self, error: ListenerError, *, consecutive: int) -> None:
        errors, key = self._counted.errors, error.code.key
        self._counted.errors = {**errors, key: errors.get(key, 0) + 1}
        self.last_error = error
        self.failing = error if consecutive >= _REFUSED_AFTER else None
        self._send(Observed(self._run, self.resource, "error", error))


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


class Listeners:
    """The listeners of one run of a cluster. Only its actor calls methods; their threads send it ``Observed``.

    Args:
        number: of the run.
        host: of the actor.
    """

    def __init__(
        self, number: int, states: KeyStates, ports: ClusterPorts, errors: ListenerErrors, host: Host[Any]
    ) -> None:
        self.window = SharedWindow(ports.window_seconds, ports.scheduler, host.wake, ports.window_bytes)
        self._number = number
        self._ports = ports
        self._states = states
        self._errors = errors
        self._host = host
        self._running: list[Listener] = []  # or those that ended last
        self._past: list[Listener] = []  # those that a relist has cut off
        # By resource, the error because of which no listener could be made: the configuration is unusable.
        self._unreachable: dict[str, ListenerError] = {}
        # Resources whose view is unknown until a list of them is recorded: they list first, or their version has expired.
        self._unseen: set[Resource] = set()
        # Those that have failed since they worked last, for the progress that people see.
        self._in_trouble: set[Resource] = set()

    def start(self, deadline_monotonic: float, room: ClusterReservation, made_for: ListRound | None = None) -> str:
        """Make listeners and start them, at the beginning of the run or for a relist. Each resumes from its checkpoint, or lists if it is not valid.

        Returns why a listener could not be made; empty: all were.

        Args:
            room: the cluster's part of the memory for lists.
            made_for: list in any case, for this round.
        """
        # Decide all resume points before any listener starts: a window that the first one fills may withdraw the checkpoint
        # of the next, whose view is not complete yet (I5).
        made = [self._listener(resource, room, made_for) for resource in self._states.config.resources]
        self._past += self._running
        self._running = [listener for listener, _ in filter(None, made)]
        for listener, resume in filter(None, made):
            listener.start(resume, deadline_monotonic)
        self._host.publish()  # the session's thread finds in these figures which listeners it has to stop
        # The newest error.
        return next((error.message for error in reversed(self._unreachable.values())), "")

    def _listener(
        self, resource: Resource, room: ClusterReservation, made_for: ListRound | None
    ) -> tuple[Listener, int | None] | None:
        """Make a listener. Returns it with the version that it resumes from; without a version, it lists first.

        None: the configuration is unusable, such as an address that is not valid. That error is then persisted.
        """
        config, ports = self._states.config, self._ports
        try:
            reflector = ports.connector.reflector(config, resource, room.for_list())
        except ListenerError as error:
            self._note_failure(resource)
            self._errors.add(resource, error)
            self._unreachable[resource.value] = error
            return None
        self._unreachable.pop(resource.value, None)
        send = self._host.send
        listener = Listener(config.name, self._number, resource, reflector, self.window, ports, send, made_for)
        stored = self._states.listeners[resource].checkpoint
        if stored is not None and stored.basis == self._states.basis and made_for is None:
            return listener, stored.resource_version
        # Its view is incomplete until its watch is accepted: a refused list or watch leaves it unknown (I5).
        self._unseen.add(resource)
        return listener, None

    def observed(self, seen: Observed) -> Collection[ObjectKey]:
        """Update the view of a resource from what its listener has seen. Returns keys to plan again, because the view is complete now.

        what was seen                       the view
        -------------                       --------
        it is stale                         not complete, until a new list is recorded
        error 404 of an optional API        absent, unless a list of it was ever recorded. Only the first one in a row is persisted
        any other error                     failing. The error is persisted
        resumed: the watch was accepted     works. Complete, unless its list is not recorded yet
        """
        if seen.run != self._number:
            return ()
        view = self._states.listeners[seen.resource]
        if seen.what == "stale":
            self._unseen.add(seen.resource)
            view.fails(self._ports.scheduler.epoch_seconds())
            view.complete, view.expired = False, True
        elif seen.error is not None:
            absent = seen.error.status == HTTPStatus.NOT_FOUND and may_be_absent(seen.resource)
            was_absent = seen.resource in self._states.absent
            view.absent = absent and view.checkpoint is None
            if was_absent:
                view.failing_since = 0.0  # while its API was absent, that was no fault
            self._note_failure(seen.resource)
            self._in_trouble.add(seen.resource)
            if not (was_absent and view.absent):  # once is enough
                self._errors.add(seen.resource, seen.error)
        else:
            if seen.resource in self._in_trouble:
                self._in_trouble.discard(seen.resource)
                self._ports.progress(
                    "listening", {"cluster": self._states.config.name, "resource": seen.resource.value}
                )
            view.works_since, view.absent = view.works_since or self._ports.scheduler.epoch_seconds(), False
            # A watch that follows a list proves nothing until that list is recorded: unknown is not empty (I5).
            if seen.resource not in self._unseen:
                view.complete = True
                return set(view.provisional)
        return ()

    def _note_failure(self, resource: Resource) -> None:
        """Note in the view of a resource that its listener does not work now."""
        view = self._states.listeners[resource]
        view.fails(self._ports.scheduler.epoch_seconds())
        view.works_since = 0.0

    def recorded(self, resources: Iterable[Resource]) -> None:
        """Note that the lists of these resources are recorded. A listener that went stale meanwhile lists again: it stays unseen."""
        self._unseen -= {resource for resource in resources if not self._states.listeners[resource].expired}

    def stop(self, code: ErrorCode | None) -> None:
        """End them at once, for this reason. None: other listeners continue their work, as in a relist."""
        for listener in self._running:
            listener.stop(code)

    def forsake(self, code: ErrorCode) -> None:
        """End them at once, drop all that they have read, and note that none works: their run is cut (``ListeningRun.cut``)."""
        self.stop(code)
        for resource in self._states.listeners:
            self._note_failure(resource)
        self.window.close()

    def ended(self, code: ErrorCode) -> None:
        """Persist how they ended."""
        self._errors.ended([listener.resource for listener in self._running], code)

    @property
    def alive(self) -> bool:
        """Whether the thread of one of them still runs."""
        return any(listener.alive for listener in self._running)

    @property
    def all(self) -> tuple[tuple[Listener, ...], tuple[Listener, ...]]:
        """Those that run, or the last ones; and those that a relist has cut off."""
        return tuple(self._running), tuple(self._past)

    @property
    def last_errors(self) -> Mapping[str, ListenerError]:
        """The newest error of each, by resource, also of those that work again."""
        return self._unreachable | {each.resource.value: each.last_error for each in self._running if each.last_error}

    def refused(self, *, failing: bool) -> Mapping[str, ListenerError]:
        """The errors, by resource, because of which a requested list does not come. Empty: it may still come.

        ``failing``: if no error will last, also return those that may pass, of listeners that have not listed.
        """
        asked = [each for each in self._running if each.resource not in self._states.absent]
        lasting = {each.resource.value: each.failing for each in asked if each.failing and _will_last(each.failing)}
        passing = {each.resource.value: each.failing for each in asked if each.failing and not each.report.lists}
        return (self._unreachable | lasting) or (passing if failing else {})
