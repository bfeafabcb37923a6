"""One run of a cluster's listeners: they fill the merge window, and the cluster's actor records window by window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from aws_lambda_powertools import Logger

from kubesync.actors.actor import Host, Steps
from kubesync.cluster.credential_dates import CredentialDates
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.reconciler import IDLE_CHECKPOINT_SECONDS, Reconciler, Recorded
from kubesync.cluster.listener import Listener, ListRound, SharedWindow, round_of
from kubesync.cluster.listener_errors import ListenerErrors
from kubesync.cluster.ports import ClusterPorts, EventWriter
from kubesync.domain.errors import ErrorCode, ListenerError
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.report import ClusterReport
from kubesync.domain.window import Mode, WindowContent
from kubesync.messages import ListingFailedError, Observed, Relisted, StopListening

logger = Logger(service="kubesync", child=True)

GIVE_UP_SECONDS: Final = 15.0
"""A requested list that fails for so long is given up. The listeners retry all that time."""
LIST_SECONDS: Final = 300.0
"""A requested list that takes longer is given up. The session may end earlier."""
_CUT_SECONDS: Final = 10.0
_REST_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05
_SWEEP_MARGIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class RunFigures:
    """A run of listeners.

    ``report``: a copy, which nobody changes. ``listeners``: those that run, or the last ones; ``past``: those that a relist has cut off.
    Any thread may stop a listener, and read its report. ``unrecorded_since`` (monotonic seconds): since when events are read that are not
    recorded; None: there are none.
    """

    report: ClusterReport
    listeners: tuple[Listener, ...]
    past: tuple[Listener, ...]
    unrecorded_since: float | None = None


class ListeningRun:
    """Belongs to the cluster's actor, which calls every method. Listeners only send ``Observed``.

    Args:
        host: of the actor. Listeners send to it.
        follow_up: passes on what was recorded, with the time of the window's first event (monotonic).
    """

    def __init__(
        self,
        number: int,
        ports: ClusterPorts,
        states: KeyStates,
        reconciler: Reconciler,
        errors: ListenerErrors,
        credentials: CredentialDates,
        host: Host[Any],
        follow_up: Callable[[Recorded, float | None], None],
    ) -> None:
        self.number = number
        self.report = ClusterReport(states.config.name)
        self.stopping: StopListening | None = None
        self.failed = False
        self.round: ListRound | None = None
        self._ports = ports
        self._states = states
        self._reconciler = reconciler
        self._errors = errors
        self._credentials = credentials
        self._host = host
        self._follow_up = follow_up
        self._scheduler = ports.scheduler
        self._window = SharedWindow(ports.window_seconds, ports.scheduler, host.wake)
        self._turn = ports.room.turn()
        self._content: tuple[WindowContent, ListRound | None] | None = None  # closed, and not recorded yet
        self.listeners: list[Listener] = []  # those that run, or the last ones
        self._past: list[Listener] = []  # a relist has cut them off
        self._unreachable: dict[str, ListenerError] = {}
        self._unseen: set[Resource] = set()  # their lists are not recorded yet
        self._in_trouble: set[Resource] = set()
        # Promoted before the first list. They cannot be planned yet, and their durable notes stay until then.
        self._early_promoted: set[ObjectKey] = set()
        self._idle_at = 0.0
        self._swept_at = 0.0
        self._left_since: float | None = None  # unrecorded at the session's end: the next one reads it again
        self._deadline = 0.0
        self._event_writer: EventWriter | None = ports.event_writer(states.config)
        states.reasons = self.report.reasons
        self.report.credential_days = credentials.days_left()
        if self._event_writer is not None:
            self.report.events_on_services = self._event_writer.report
            states.on_problems = self._event_writer.send

    # --- listeners ---

    def start(self, deadline_monotonic: float, made_for: ListRound | None = None) -> None:
        """Start the listeners. Each resumes from its checkpoint, or lists if no checkpoint is valid.

        Args:
            made_for: list in any case, for this round.
        """
        self._deadline = deadline_monotonic
        self._idle_at = self._scheduler.monotonic() + IDLE_CHECKPOINT_SECONDS
        self.round = made_for or self.round
        # Decide all resume points before any listener starts: a window that the first one fills may withdraw the checkpoint
        # of the next, whose view is not complete yet (I5).
        made = [self._listener(resource, made_for) for resource in self._states.config.resources]
        self._past += self.listeners
        self.listeners = [listener for listener, _ in filter(None, made)]
        for listener, resume in filter(None, made):
            listener.start(resume, self._deadline)
        self._host.publish()  # they may have to be stopped at once

    def _listener(self, resource: Resource, made_for: ListRound | None) -> tuple[Listener, int | None] | None:
        """A listener and the version that it resumes from (None: it lists first). None: the cluster is unreachable."""
        config = self._states.config
        try:
            reflector = self._ports.connector.reflector(config, resource, self._turn.space())
        except ListenerError as error:
            view = self._states.listeners[resource]
            view.fails(self._scheduler.epoch())
            view.works_since = 0.0
            self._errors.failed(resource, error)
            self.report.problem = error.message
            self._unreachable[resource.value] = error
            return None
        self._unreachable.pop(resource.value, None)
        number, send = self.number, self._host.send
        listener = Listener(
            config.name,
            resource,
            reflector,
            self._window,
            lambda *seen: send(Observed(number, *seen)),
            self._scheduler,
            made_for,
            self._ports.progress,
        )
        stored = self._states.listeners[resource].checkpoint
        if stored is not None and stored.basis == self._states.basis and made_for is None:
            return listener, stored.resource_version
        # Its view is incomplete until its watch is accepted: a refused list or watch leaves it unknown (I5).
        self._unseen.add(resource)
        return listener, None

    def observed(self, seen: Observed) -> set[ObjectKey]:
        """Take in what a listener saw. Returns keys that can be planned now."""
        view = self._states.listeners[seen.resource]
        if seen.what == "stale":
            self._unseen.add(seen.resource)
            view.fails(self._scheduler.epoch())
            view.whole, view.broken = False, True
        elif seen.error is not None:
            view.fails(self._scheduler.epoch())
            view.works_since = 0.0
            self._in_trouble.add(seen.resource)
        else:
            if seen.resource in self._in_trouble:
                self._in_trouble.discard(seen.resource)
                listener = {"cluster": self._states.config.name, "resource": seen.resource.value}
                self._ports.progress("listening", {**listener})
            view.works_since = view.works_since or self._scheduler.epoch()
            # A watch that follows a list proves nothing until that list is recorded: unknown is not empty (I5).
            if seen.resource not in self._unseen:
                view.whole = True
                return set(view.unsure)
        return set()

    def figures(self) -> RunFigures:
        return RunFigures(deepcopy(self.report), tuple(self.listeners), tuple(self._past), self.unrecorded_since)

    def stop(self, stopping: StopListening) -> None:
        """Cut the listeners at once. ``finish`` records what they have read."""
        self.stopping = stopping
        self.failed = self.failed or stopping.abandon
        if self._event_writer is not None:
            self._event_writer.close()
        for listener in self.listeners:
            listener.stop(stopping.code)

    def cut(self, code: ErrorCode, *, lost: bool) -> None:
        """Listen no more, after a fault of ours. ``lost``: no other run takes its place; it must not look like a quiet cluster."""
        self.failed = self.failed or lost
        for listener in self.listeners:
            listener.stop(code)
        for view in self._states.listeners.values():
            view.fails(self._scheduler.epoch())
            view.works_since = 0.0
        self._content = None
        self._window.close()
        self._turn.end()
        if self.round is not None and self.round.reply is not None and self.round.applies:
            lasted = self._scheduler.monotonic() - self.round.began
            self.round.reply.set_exception(ListingFailedError({}, lasted, self.report.problem))
            self.round.reply = None

    # --- recording ---

    @property
    def in_the_way(self) -> bool:
        """Whether its lists, which are not recorded yet, take the room that other clusters wait for."""
        return self.stopping is None and self._turn.in_the_way

    @property
    def unrecorded_since(self) -> float | None:
        """Since when (monotonic) events are read that are not recorded. None: there are none.

        The recording of a long list writes from time to time: it counts since the last write.
        """
        closed = self._content
        if closed is None:
            return self._window.opened_at() if self._left_since is None else self._left_since
        content, _ = closed
        if content.opened_at is None or not content.snapshots:
            return content.opened_at
        return max(content.opened_at, self._reconciler.written_at)

    def due_in(self, now: float) -> float:
        """Seconds until the window is to be recorded; at most 0: now."""
        if self._content is not None:
            return 0.0
        closes_at = self._window.closes_at()
        return (self._idle_at if closes_at is None else closes_at) - now

    def record(self, *, flush: bool = False) -> Steps[None]:
        """Record the window. If a try fails, the next one records the same content: nothing later goes before it (I1)."""
        if self._content is None:
            content, rounds = self._window.close()
            # Decided once for all tries: meanwhile another round may be requested, or this one withdrawn.
            self._content = content, round_of(rounds.values())
        yield 0.0  # what the listeners have sent before is received first
        content, requested = self._content
        began = self._scheduler.monotonic()
        mode = requested.mode if requested else Mode()
        recorded = yield from self._reconciler.record(content, mode, flush=flush)
        self._content = None
        self._turn.recorded(sum(snapshot.size for snapshot in content.snapshots.values()))
        self._idle_at = self._scheduler.monotonic() + IDLE_CHECKPOINT_SECONDS
        if not content.empty:
            self._count(content, recorded, self._scheduler.monotonic() - began)
        self._follow_up(recorded, content.opened_at)
        if content.snapshots:
            self._listed(content.snapshots, recorded, requested)
        self._credentials.update(self._states.config)
        self.report.credential_days = self._credentials.days_left()
        yield from self._sweep_some(flush=flush, quiet=content.empty)

    def replan(self, keys: Iterable[ObjectKey], why: str = "a name was let go") -> Steps[None]:
        """Plan keys again without news of their objects."""
        promoted = set(keys)
        self._early_promoted |= {key for key in promoted if not self._states.plannable(key)}
        self._follow_up((yield from self._reconciler.replan(promoted, why)), None)

    def take_early_promoted(self) -> set[ObjectKey]:
        """Promoted keys that waited for the first list, once it is recorded."""
        early = {key for key in self._early_promoted if self._states.plannable(key)}
        self._early_promoted -= early
        return early

    def _listed(self, resources: Iterable[Resource], recorded: Recorded, requested: ListRound | None) -> None:
        # A listener that went stale while its list was recorded lists again: it stays unseen.
        self._unseen -= {resource for resource in resources if not self._states.listeners[resource].broken}
        self.report.held = {resource.value: reason for resource, reason in (recorded.held or {}).items()}
        self.report.holding |= {resource.value: resource.value in self.report.held for resource in resources}
        if requested is not None:
            requested.unlisted.difference_update(resources)
            requested.missed |= recorded.missed
            if not requested.unlisted and requested.reply is not None:
                changed = self.report.changed_keys - requested.changed_before
                requested.reply.set_result(Relisted(changed, dict(self.report.held), len(requested.missed)))
                requested.reply = None

    def _count(self, content: WindowContent, recorded: Recorded, seconds: float) -> None:
        self.report.windows += 1
        self.report.events += content.received
        self.report.merged += content.merged
        self.report.changed_keys += len(recorded.changed)
        self.report.recording_seconds += seconds
        window: dict[str, object] = {"cluster": self._states.config.name, "changed": len(recorded.changed)}
        window |= {"events": content.received, "merged": content.merged, "listed": content.listed}
        self._ports.progress("window", window)
        if recorded.changed or content.snapshots:
            logger.info("window recorded", extra={**window, "seconds": round(seconds, 3)})

    def _sweep_some(self, *, flush: bool, quiet: bool) -> Steps[None]:
        """Delete tombstones in quiet moments, at the end, and at intervals, because a busy cluster is never quiet."""
        now = self._scheduler.monotonic()
        if not (flush or quiet or now - self._swept_at >= IDLE_CHECKPOINT_SECONDS):
            return
        self._swept_at = now
        while left := len(self._states.tombstoned):
            yield from self._reconciler.sweep()
            until = self.stopping.drain_until - _SWEEP_MARGIN_SECONDS if flush and self.stopping is not None else 0.0
            if self._scheduler.monotonic() >= until or len(self._states.tombstoned) >= left:
                return

    # --- the end ---

    def finish(self) -> Steps[None]:
        """Wait for the listeners, record what they have read, and persist how they ended.

        A listener that hangs longer does no harm: its events land in a window that is never recorded.
        """
        stopping = self.stopping
        assert stopping is not None
        while self._scheduler.monotonic() < stopping.listen_until and any(each.alive for each in self.listeners):
            yield _POLL_SECONDS
        if self._content is not None and not self.failed:
            yield from self.record()
        if not self.failed:
            yield from self.record(flush=True)

    def end(self) -> None:
        """Persist how the listeners ended. Write no more Events."""
        assert self.stopping is not None
        self._left_since = self.unrecorded_since
        self._content = None
        self._turn.end()
        self._states.on_problems = None
        for listener in self.listeners:
            self._errors.ended(listener.resource, self.stopping.code)
        if self._event_writer is not None:
            self._event_writer.stop()

    # --- lists that somebody waits for ---

    def relist(self, made_for: ListRound) -> Steps[None]:
        """Cut the watches and list again. Events read before are recorded first, in order."""
        for listener in self.listeners:
            listener.cut()
        now = self._scheduler.monotonic()
        while self._scheduler.monotonic() < now + _CUT_SECONDS and any(each.alive for each in self.listeners):
            yield _POLL_SECONDS
        # A list that is pending, or is being recorded, does not belong to this request.
        while self._scheduler.monotonic() < now + _REST_SECONDS and (
            self._content is not None or self._window.closes_at() is not None
        ):
            yield _POLL_SECONDS
        if self.stopping is None and not self.failed:
            self.start(self._deadline, made_for)
        elif made_for.reply is not None:
            made_for.reply.set_exception(ListingFailedError({}, 0.0, self.report.problem or "it is watched no more"))

    @property
    def last_errors(self) -> Mapping[str, ListenerError]:
        """The newest error of each listener."""
        seen = {listener.resource.value: listener.last_error for listener in self.listeners if listener.last_error}
        return self._unreachable | seen

    def give_up_round(self) -> None:
        """Answer whoever waits for lists, once they do not come: the session ends, a person must act, or it takes too long."""
        waits = self.round
        if waits is None or waits.reply is None or not waits.unlisted:
            return
        lasted = self._scheduler.monotonic() - max(waits.began, self._turn.given_at)
        refused = {each.resource.value: each.refused for each in self.listeners if each.refused}
        failing = {
            each.resource.value: each.failing for each in self.listeners if each.failing and not each.report.lists
        }
        errors = self._unreachable | refused or (failing if lasted >= GIVE_UP_SECONDS else {})
        in_time = bool(self._turn.waiting) or lasted < LIST_SECONDS
        if not errors and in_time and not self.failed:
            return
        said = (f"{of}: {error.code.key}: {error.message}" for of, error in sorted(self.last_errors.items()))
        problem = "" if errors else self.report.problem or "; ".join(said) or "no answer"
        waits.reply.set_exception(ListingFailedError(errors or self.last_errors, lasted, problem))
        waits.reply = None
