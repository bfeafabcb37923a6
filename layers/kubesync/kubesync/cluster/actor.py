"""The actor of one cluster: it owns the cluster's key states, and writes everything under the cluster's fence.

With each step it does one thing, the first that is due:

    publish      tell zones what the keys want that were recorded last
    questions    of zones, in the order of their coming: a zone waits for its answer before it sends more
    errors       of listeners, to be persisted
    work         one window, one list, one replan, one request, or a removal: begun after the one before is durable (I1)

Work of many keys is done in steps of a few transactions each. A step that fails is tried again later; meanwhile others go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import batched
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.actor import AT_ONCE, WHEN_TOLD, Host
from kubesync.actors.backoff import Backoff
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.listeners import Remembered
from kubesync.aws.tables.state import Queued
from kubesync.cluster.conversations import Conversations
from kubesync.cluster.keys.committer import Committer, Steps
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.cluster.keys.reconciler import Mode, Reconciler, Recorded
from kubesync.cluster.listener import ListRound, probe_identity
from kubesync.cluster.listener_errors import ListenerErrors
from kubesync.cluster.ports import ClusterPorts, Configured
from kubesync.cluster.published import Published
from kubesync.cluster.removal import Removal
from kubesync.cluster.requests import Requests
from kubesync.cluster.run import ListeningRun
from kubesync.domain.errors import ErrorCode, KubesyncError, ListenerError, NewerSchemaError, NotMasterError, StoreError
from kubesync.domain.objects import Resource, ServiceKey
from kubesync.messages import (
    Claim,
    Compare,
    Configure,
    EndCluster,
    Forgotten,
    Landed,
    Listen,
    Noted,
    Observed,
    Promoted,
    RecordLists,
    Refer,
    Refused,
    Relist,
    RemoveOrphans,
    Standing,
    StopListening,
    TakeUp,
    Want,
    WithdrawRelist,
)

logger = Logger(service="kubesync", child=True)

_BACKOFF: Final = Backoff(initial=0.5, cap=10.0)
_FAULT_SECONDS: Final = 5.0
_ROUND_SECONDS: Final = 0.2
_TAKEN_UP_AT_A_TIME: Final = 500
# The next run lists everything: whatever was not recorded in time is not lost.
_RECONFIGURED: Final = (ErrorCode.CONFIG_UPDATE, ErrorCode.CONFIG_DELETE)


@dataclass(slots=True, eq=False)
class Work:
    """Something to do in steps. ``begin``: from the beginning, also after a failure."""

    begin: Callable[[], Steps[object]]
    steps: Steps[object] | None = None
    not_before: float = 0.0
    failures: int = 0


class ClusterActor:
    """Implements ``Actor``. Other threads only send messages, and read ``runs`` for reports.

    Args:
        config: the actor closes keys under it until it is configured.
    """

    def __init__(self, config: ClusterConfig, ports: ClusterPorts) -> None:
        self.name = config.name
        self.states = KeyStates(config, ports.tables.state)
        self.runs: list[ListeningRun] = []
        self._host: Host | None = None
        self._ports = ports
        self._clock = ports.scheduler
        self._run: ListeningRun | None = None
        self._published = Published(self.name, ports.to_zone)
        self._errors = ListenerErrors(
            ports.session, self.states, ports.tables, ports.fenced_writer, ports.scheduler, ports.progress
        )
        self._committer = Committer(
            self.states, ports.tables, ports.fenced_writer, ports.scheduler, ports.fenced_here
        )
        self._reconciler: Reconciler | None = None
        self._conversations = Conversations(ports, self._committer, None, self._published, self._follow_up)
        self._removal: Removal | None = None
        self._fresh: deque[tuple[Recorded, float | None]] = deque()
        self._publish_at = 0.0
        self._questions: list[Work] = []
        self._seen: deque[tuple[Resource, ListenerError]] = deque()
        self._commands: deque[object] = deque()
        self._promoted: set[ServiceKey] = set()
        self._work: Work | None = None
        self._faults = 0
        self._deadline = 0.0
        self._ended = False
        self._not_master = False

    def hosted_by(self, host: Host) -> None:
        """The host that runs this actor. Listeners send to it."""
        self._host = host

    @property
    def running(self) -> ListeningRun | None:
        """The run that goes on."""
        return self._run

    # --- messages ---

    def receive(self, message: object) -> None:
        match message:
            case Landed() | Refused() | Standing() | Compare() | Want():
                self._questions.append(Work(lambda: self._conversations.answer(message)))
            case Observed():
                self._observed(message)
            case Promoted():
                self._promoted.update(message.keys)
            case Refer():
                # Between two steps: whatever was planned is written.
                self._ports.to_named(Noted(self.name))
            case Forgotten():
                if self._removal is not None:
                    self._removal.forgotten(message.zone)
            case WithdrawRelist():
                run = self._run
                if run is not None and run.round is not None:
                    run.round.reply = None
                message.reply.set_result({} if run is None else run.last_errors)
            case StopListening():
                self._stop(message)
            case EndCluster():
                self._ended = True
            case _:
                self._commands.append(message)

    def _observed(self, seen: Observed) -> None:
        if self._run is None or seen.run != self._run.number:
            return
        self._promoted |= self._run.observed(seen)
        if seen.error is not None:
            self._seen.append((seen.resource, seen.error))

    def _stop(self, message: StopListening) -> None:
        if self._run is not None:
            self._run.stop(message)
        if self._removal is not None:
            self._removal = self._work = None
        for command in self._commands:
            if isinstance(command, Relist):
                command.reply.set_exception(KubesyncError(f"cluster {self.name} is not watched any more"))
        kept = (command for command in self._commands if not isinstance(command, Relist | Listen))
        self._commands = deque([*kept, message])

    # --- steps ---

    def step(self) -> float | None:
        if self._ended:
            return None
        if self._not_master:
            return self._last_words()
        now = self._clock.monotonic()
        if self._fresh and self._publish_at <= now:
            self._publish(now)
            return AT_ONCE
        for question in self._questions:
            if question.not_before <= now:
                if self._advance(question):
                    self._questions.remove(question)
                return AT_ONCE
        if self._seen:
            self._errors.failed(*self._seen.popleft())
            return AT_ONCE
        if self._work is None:
            self._work = self._next_work(now)
        if self._work is not None and (self._late(now) or self._work.not_before <= now):
            self._do(self._work, now)
            return AT_ONCE
        return self._wait(now)

    def _do(self, work: Work, now: float) -> None:
        """Go on with the work, unless its time is over."""
        if self._late(now):
            self._work = None
            stopping = self._commands.pop()
            self._commands.clear()
            assert isinstance(stopping, StopListening)
            self._stopped(stopping, clean=False)
        elif self._advance(work) and self._work is work:
            self._work = None
            self._faults = 0
        if self._run is not None:
            self._run.give_up_round()
            self._promoted |= self._run.take_early_promoted()
        self._published.tell_listed(self.states.listed)

    def _late(self, now: float) -> bool:
        last = self._commands[-1] if self._commands else None
        return isinstance(last, StopListening) and now > last.drain_until

    def _advance(self, work: Work) -> bool:
        """Do one step. Returns whether it was the last. After an error the work begins again, later."""
        try:
            if work.steps is None:
                work.steps = work.begin()
            pause = next(work.steps)
            work.not_before = self._clock.monotonic() + pause if pause else 0.0
        except StopIteration:
            return True
        except (StoreError, StaleStateError) as error:
            self._note(str(error))
            logger.warning("recording failed, trying again", cluster=self.name, error=str(error))
            work.failures += 1
            work.steps, work.not_before = None, self._clock.monotonic() + _BACKOFF.delay(work.failures)
        except NotMasterError:
            raise
        except Exception as error:
            self._note(f"{type(error).__name__}: {error}")
            logger.exception("a step failed", cluster=self.name)
            work.steps, work.not_before = None, self._clock.monotonic() + _FAULT_SECONDS
            if work is self._work and self._removal is None:
                self._begin_anew()
        return False

    def _note(self, problem: str) -> None:
        if self._run is not None:
            self._run.report.problem = problem

    def _wait(self, now: float) -> float:
        """Seconds until something is due."""
        due = [question.not_before for question in self._questions]
        if self._fresh:
            due.append(self._publish_at)
        run = self._run
        if run is not None and run.round is not None and run.round.applies:
            run.give_up_round()
            due.append(now + _ROUND_SECONDS)
        if self._work is not None:
            due.append(self._work.not_before)
            due += [c.drain_until for c in self._commands if isinstance(c, StopListening)]
        elif run is not None and not run.failed:
            due.append(now + run.due_in(now))
        return max(AT_ONCE, min(due, default=WHEN_TOLD) - now)

    def failed(self, error: Exception) -> float | None:
        if isinstance(error, NotMasterError):
            self._not_master = True
            self._ports.not_master(error)
            return AT_ONCE
        self._note(f"{type(error).__name__}: {error}")
        logger.error("a message failed", cluster=self.name, error=str(error), exc_info=error)
        return _FAULT_SECONDS

    def _last_words(self) -> float:
        """Another master writes: only say how the listeners ended, where no fence forbids it."""
        self._work = self._removal = None
        self._questions.clear()
        self._fresh.clear()
        while self._commands:
            command = self._commands.popleft()
            if isinstance(command, StopListening):
                self._stopped(command, clean=False)
        return WHEN_TOLD

    # --- work ---

    def _next_work(self, now: float) -> Work | None:
        run = self._run
        if self._commands:
            command = self._commands[0]
            if not isinstance(command, StopListening):  # it stays until it is done: its time may be over before
                self._commands.popleft()
            return Work(lambda: self._obey(command))
        if self._removal is not None:
            return Work(partial(self._remove, self._removal))
        if run is None or run.failed:
            return None
        if self._promoted:
            promoted, self._promoted = self._promoted, set()
            return Work(lambda: run.replan(promoted))
        return Work(run.record) if run.due_in(now) <= 0 else None

    def _obey(self, command: object) -> Steps[None]:
        match command:
            case Configure():
                self._serve(command.configured)
            case TakeUp():
                yield from self._take_up(command.queued)
            case Listen():
                self._deadline = command.deadline
                self._listen()
            case Relist():
                yield from self._relist(command)
            case StopListening():
                if self._run is not None:
                    yield from self._run.finish()
                    while self._fresh:
                        yield AT_ONCE
                self._commands.popleft()
                self._stopped(command, clean=True)
            case RecordLists() | Claim() | RemoveOrphans():
                assert self._reconciler is not None
                yield from Requests(self._ports, self._committer, self._reconciler).answer(command)

    def _serve(self, configured: Configured | None) -> None:
        """Go by a configuration from now on. None, or if a newer release wrote to its tables: only close batches."""
        self._published.withdraw()
        self._run = self._removal = None
        reconciler = None
        try:
            remembered = None if configured is None else configured.remembered or self._remembered()
        except NewerSchemaError as newer:
            remembered = None
            self._unreadable(newer)
        if configured is None or remembered is None:
            self.states.forget()
        else:
            if self._reconciler is None:
                self.states.identity = remembered.identity
            self.states.configure(configured.config, remembered.checkpoints)
            connector, config = self._ports.connector, configured.config
            probe = partial(probe_identity, connector, config, self._clock)
            reconciler = Reconciler(self._committer, connector.observe, probe)
        self._reconciler = reconciler
        self._conversations = Conversations(
            self._ports, self._committer, reconciler, self._published, self._follow_up
        )

    def _remembered(self) -> Remembered:
        return self._ports.tables.listeners.remembered([self.name])[self.name]

    def _unreadable(self, newer: NewerSchemaError) -> None:
        logger.error("ignored: written by a newer release", cluster=self.name, reason=str(newer))
        self._ports.unreadable(self.name)

    def _take_up(self, queued: Queued | None) -> Steps[None]:
        if self._reconciler is None or self.states.config.paused:
            return
        try:
            queued = queued or self._ports.tables.state.queued(self.name)
            for keys in batched(queued.marks, _TAKEN_UP_AT_A_TIME):
                self._published.publish(self.states, self.states.states(keys).values(), inherited=True)
                yield AT_ONCE
            self.states.states(queued.unswept)  # now cached, so that a quiet moment sweeps them
        except NewerSchemaError as newer:
            self._unreadable(newer)
            self._serve(None)
        else:
            self._promoted |= queued.promoted

    def _listen(self) -> None:
        config = self.states.config
        if self._reconciler is None or config.paused or self._run is not None:
            return
        if config.deleting:
            self._removal = Removal(config, self._ports, self.states, self._reconciler, self._follow_up)
        else:
            self._new_run().start(self._deadline)

    def _new_run(self) -> ListeningRun:
        assert self._host is not None and self._reconciler is not None
        run = ListeningRun(
            len(self.runs) + 1,
            self._ports,
            self.states,
            self._reconciler,
            self._errors,
            self._host.send,
            self._host.wake,
            self._follow_up,
        )
        self.runs.append(run)
        self._run = run
        return run

    def _relist(self, asked: Relist) -> Steps[None]:
        """List again for a resync."""
        mode, now = Mode(forced=asked.forced, distrust_upstreams=True), self._clock.monotonic()
        if self._reconciler is None or (self._run is None and asked.deadline is None):
            changing = f"the configuration of cluster {self.name} is being changed: run it again"
            asked.reply.set_exception(KubesyncError(changing))
            return
        changed = 0 if self._run is None else self._run.report.changed_keys
        made_for = ListRound(mode, set(self.states.sources), now, changed, asked.reply)
        if self._run is not None:
            yield from self._run.relist(made_for)
        elif asked.deadline is not None:
            self._deadline = asked.deadline
            self._new_run().start(asked.deadline, made_for)

    def _remove(self, removal: Removal) -> Steps[None]:
        yield from removal.steps()
        self._serve(None)
        self._ports.removed(self.name)

    def _begin_anew(self) -> None:
        """After a fault of ours: drop the window, and resume from the stored checkpoints. The second time in a row: listen no more."""
        run, self._work = self._run, None
        if run is None:
            return
        self._faults += 1
        run.cut(ErrorCode.WORKER_EXITING, lost=self._faults > 1)
        if self._faults > 1 or run.stopping is not None:
            return
        configured = Configured(self.states.config, None)

        def anew() -> Steps[None]:
            self.states.forget()
            self._serve(configured)
            yield from self._take_up(None)
            self._listen()

        self._work = Work(anew)

    def _stopped(self, stopping: StopListening, *, clean: bool) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.failed = run.failed or (not clean and stopping.code not in _RECONFIGURED)
            try:
                run.end()
            except NotMasterError as error:
                self._not_master = True
                self._ports.not_master(error)
        stopping.reply.set_result(clean)

    # --- what follows from what was recorded ---

    def _follow_up(self, recorded: Recorded, since: float | None = None) -> None:
        """Zones hear of keys that changed, clusters of keys that were given a name."""
        self._fresh.append((recorded, since))
        for key in recorded.promoted:
            self._ports.to_cluster(key.cluster, Promoted((key,)))

    def _publish(self, now: float) -> None:
        recorded, since = self._fresh[0]
        told = (key for key in sorted(recorded.changed) if self._published.knows(key))
        try:
            states = self.states.states(dict.fromkeys((*recorded.opened, *told)))
        except StoreError as error:
            logger.warning("open keys are published later", cluster=self.name, error=str(error))
            self._publish_at = now + _BACKOFF.initial
            return
        self._fresh.popleft()
        self._published.publish(self.states, states.values(), since)
