"""The actor of one cluster: it owns the cluster's key states, and writes everything under the cluster's fence.

With each step it does one thing, the first that is due:

    publish      tell zones what the keys want that were recorded last
    questions    of zones, in the order of their coming: a zone waits for its answer before it sends more
    errors       of listeners, to be persisted
    work         one window, one list, one replan, one request, or a removal: begun after the one before is durable (I1)

Work of many keys is done in steps of a few transactions each. A step that fails is tried again later; meanwhile others go on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.actor import AT_ONCE, WHEN_TOLD, Steps
from kubesync.actors.backoff import Backoff
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.cluster.conversations import Question
from kubesync.cluster.ports import ClusterPorts
from kubesync.cluster.run import LIST_SECONDS, ListeningRun
from kubesync.cluster.service import ClusterFigures, Service
from kubesync.domain.errors import ErrorCode, ListenerError, NotMasterError, StoreError
from kubesync.domain.objects import Resource
from kubesync.messages import (
    Compare,
    Configure,
    EndCluster,
    Forgotten,
    Landed,
    Listen,
    Noted,
    Observed,
    Promoted,
    Refer,
    Refused,
    Relist,
    Standing,
    StopListening,
    Want,
    WithdrawRelist,
)

logger = Logger(service="kubesync", child=True)

_BACKOFF: Final = Backoff(initial=0.5, cap=10.0)
_FAULT_SECONDS: Final = 5.0
# Lists that cannot be recorded keep the room that others wait for. After about a minute they are dropped, and wait behind the others.
_GIVE_WAY_AFTER: Final = 11
_ROUND_SECONDS: Final = 0.2
_POLL_SECONDS: Final = 0.05
# The next run lists everything: whatever was not recorded in time is not lost.
_RECONFIGURED: Final = (ErrorCode.CONFIG_UPDATE, ErrorCode.CONFIG_DELETE)


@dataclass(slots=True, eq=False)
class Work:
    """Something to do in steps. ``begin``: from the beginning, also after a failure.

    ``zone``: that asked for it; ``lasting``: it waits for ever. ``command``: of the session, obeyed again once after a fault of ours.
    """

    begin: Callable[[], Steps[object]]
    zone: str = ""
    lasting: bool = False
    command: bool = False
    steps: Steps[object] | None = None
    not_before: float = 0.0
    failures: int = 0


class ClusterActor:
    """Implements ``Actor``.

    Args:
        config: the actor closes keys under it until it is configured.
    """

    def __init__(self, config: ClusterConfig, ports: ClusterPorts) -> None:
        self.service = Service(config, ports)
        self._ports = ports
        self._clock = ports.scheduler
        self._publish_at = 0.0
        self._questions: list[Work] = []
        self._seen: deque[tuple[Resource, ListenerError]] = deque()
        self._commands: deque[object] = deque()
        self._work: Work | None = None
        self._relisting: Work | None = None
        self._relist_wanted: Relist | None = None  # the last one, unless it was withdrawn
        self._anew: Work | None = None
        self._faults = 0
        # Names that go from key to key, and readers of shared objects, hold up no window; nor does it hold them up.
        self._turns = deque((self._promoted, self._readers, self._window))
        self._last_run: ListeningRun | None = None
        self._ended = False
        self._not_master = False

    def figures(self) -> ClusterFigures:
        """Of the run that goes on, or that ended with the session, and of all before."""
        return self.service.figures(self.service.run or self._last_run)

    # --- messages ---

    def receive(self, message: object) -> None:
        """File the message for a later step. Notes and withdrawals count at once."""
        match message:
            case Landed() | Refused() | Standing() | Compare() | Want():
                self._queue_question(message)
            case Observed():
                self._observed(message)
            case Promoted():
                self.service.promoted.update(message.keys)
            case Refer():
                # Between two steps: whatever was planned is written.
                self._ports.to_named(Noted(self.service.name))
            case Forgotten():
                if self.service.removal is not None:
                    self.service.removal.forgotten(message.zone)
            case WithdrawRelist():
                self._withdraw_relist(message)
            case Relist():
                # A work of its own: it goes on while windows cannot be recorded.
                self._relist_wanted = message
                self._relisting = Work(partial(self._relist, message))
            case StopListening():
                self._stop(message)
            case EndCluster():
                self._ended = True
            case _:
                self._commands.append(message)

    def _queue_question(self, question: Question) -> None:
        """Answer a zone later. It asks one question at a time: what it has asked before, it has given up, unless a batch landed."""
        for work in [each for each in self._questions if each.zone == question.zone and not each.lasting]:
            self._questions.remove(work)
            if work.steps is not None:
                work.steps.close()
        answer = partial(self.service.answer, question)
        self._questions.append(Work(answer, question.zone, isinstance(question, Landed)))

    def _withdraw_relist(self, message: WithdrawRelist) -> None:
        """A list that has begun is recorded in the normal mode. One that has not begun never does."""
        run = self.service.run
        self._relist_wanted = None
        if self.service.last_round is not None:
            self.service.last_round.reply = None
        message.reply.set_result({} if run is None else run.last_errors)

    def _observed(self, seen: Observed) -> None:
        if self.service.run is None or seen.run != self.service.run.number:
            return
        self.service.promoted |= self.service.run.observed(seen)
        self.service.published.tell_listed(self.service.states.listed)
        if seen.error is not None:
            self._seen.append((seen.resource, seen.error))

    def _stop(self, message: StopListening) -> None:
        self._not_master = self._not_master or message.abandon
        if self.service.run is not None:
            self.service.run.stop(message)
        if self.service.removal is not None:
            self.service.removal = self._work = None
        if self._anew is not None and self._work is self._anew:
            # What the run has seen since its fault is not recorded: no checkpoint may say so.
            self._work = None
            if self.service.run is not None:
                self.service.run.failed = True
        self._relisting = None
        kept = (command for command in self._commands if not isinstance(command, Listen))
        self._commands = deque([*kept, message])

    # --- steps ---

    def step(self) -> float | None:
        if self._ended:
            return None
        if self._not_master:
            return self._last_words()
        now = self._clock.monotonic()
        if self.service.fresh and self._publish_at <= now:
            try:
                self.service.publish()
            except StoreError as error:
                self._note(str(error))
                self._publish_at = now + _BACKOFF.initial
            return AT_ONCE
        question = next((each for each in self._first_questions() if each.not_before <= now), None)
        if question is not None:
            if self._advance(question):
                self._questions.remove(question)
            return AT_ONCE
        if self._relisting is not None and self._relisting.not_before <= now:
            if self._advance(self._relisting):
                self._relisting = None
            return AT_ONCE
        if self._seen:
            self.service.errors.failed(*self._seen.popleft())
            return AT_ONCE
        if self._work is None:
            self._work = self._next_work()
        if self._work is not None and (now >= self._drain_until or self._work.not_before <= now):
            self._do(self._work, now)
            return AT_ONCE
        return self._wait(now)

    def _first_questions(self) -> list[Work]:
        """The first of each zone. A zone's questions are answered in order: a refusal before what lands later."""
        first: dict[str, Work] = {}
        for question in self._questions:
            first.setdefault(question.zone, question)
        return list(first.values())

    def _do(self, work: Work, now: float) -> None:
        """Go on with the work, unless its time is over."""
        if now >= self._drain_until:
            self._work = None
            # Commands before it are superseded: the session ends, or another configuration follows.
            while not isinstance(command := self._commands.popleft(), StopListening):
                pass
            self._stopped(command, clean=False)
        elif self._advance(work) and self._work is work:
            self._work = None
            self._faults = self._faults if work.command else 0
        if self.service.run is not None:
            self.service.run.give_up_round()
            self.service.promoted |= self.service.run.take_early_promoted()
        self.service.published.tell_listed(self.service.states.listed)

    @property
    def _drain_until(self) -> float:
        return next((c.drain_until for c in self._commands if isinstance(c, StopListening)), math.inf)

    def _advance(self, work: Work) -> bool:
        """Do one step. Returns whether it was the last.

        After an error of the tables the work begins again, later. So it does after a fault of ours (any other error). If the run
        had the fault, or its lists cannot be recorded while other clusters wait for their room, the run itself begins anew.
        """
        try:
            if work.steps is None:
                work.steps = work.begin()
            pause = next(work.steps)
            work.not_before = self._clock.monotonic() + pause if pause else 0.0
        except StopIteration:
            return True
        except (StoreError, StaleStateError) as error:
            self._note(str(error))
            logger.warning("recording failed, trying again", cluster=self.service.name, error=str(error))
            work.failures += 1
            work.steps, work.not_before = None, self._clock.monotonic() + _BACKOFF.delay(work.failures)
            run = self.service.run
            if work is self._work and work.failures >= _GIVE_WAY_AFTER and run is not None and run.in_the_way:
                self._begin_anew(run, lost=False)
        except NotMasterError:
            raise
        except Exception as error:
            self._note(f"{type(error).__name__}: {error}")
            logger.exception("a step failed", cluster=self.service.name)
            work.steps, work.not_before = None, self._clock.monotonic() + _FAULT_SECONDS
            # Questions, a relist and a removal begin again from what is stored. A run resumes from its checkpoints.
            if work is self._work and self.service.removal is None:
                self._resume_from_checkpoints(work)
        return False

    def _note(self, problem: str) -> None:
        if self.service.run is not None:
            self.service.run.report.problem = problem

    def _wait(self, now: float) -> float:
        """Seconds until something is due."""
        due = [question.not_before for question in self._first_questions()]
        if self.service.fresh:
            due.append(self._publish_at)
        run = self.service.run
        if run is not None and run.round is not None and run.round.applies:
            run.give_up_round()
            over = run.round.began + LIST_SECONDS
            # Lists may wait for room longer than that.
            due.append(min(now + _ROUND_SECONDS, over if over > now else math.inf))
        if self._relisting is not None:
            due.append(self._relisting.not_before)
        if self._work is not None:
            due.append(self._work.not_before)
            due.append(self._drain_until)
        elif run is not None and not run.failed:
            due.append(now + run.due_in(now))
        return max(AT_ONCE, min(due, default=WHEN_TOLD) - now)

    def failed(self, error: Exception) -> float | None:
        if isinstance(error, NotMasterError):
            self._not_master = True
            self._ports.not_master(error)
            return AT_ONCE
        self._note(f"{type(error).__name__}: {error}")
        logger.error("a message failed", cluster=self.service.name, error=str(error), exc_info=error)
        return _FAULT_SECONDS

    def _last_words(self) -> float:
        """Another master writes: only say how the listeners ended, where no fence forbids it."""
        self._work = self.service.removal = None
        self._questions.clear()
        self.service.fresh.clear()
        while self._commands:
            command = self._commands.popleft()
            if isinstance(command, StopListening):
                self._stopped(command, clean=False)
        return WHEN_TOLD

    # --- work ---

    def _next_work(self) -> Work | None:
        run = self.service.run
        if self._commands:
            command = self._commands[0]
            if not isinstance(command, StopListening):
                self._commands.popleft()
                return Work(partial(self.service.obey, command), command=True)
            # The command stays until it is done: its time may be over before.
            return Work(partial(self._finish, command))
        if self.service.removal is not None:
            return Work(partial(self.service.remove, self.service.removal))
        if run is None or run.failed:
            return None
        for turn in tuple(self._turns):
            self._turns.rotate(-1)
            if (work := turn(run)) is not None:
                return work
        return None

    def _promoted(self, run: ListeningRun) -> Work | None:
        if not self.service.promoted:
            return None
        promoted, self.service.promoted = self.service.promoted, set()
        return Work(lambda: run.replan(promoted))

    def _readers(self, run: ListeningRun) -> Work | None:
        return Work(partial(self.service.plan_readers, run)) if self.service.changed else None

    def _window(self, run: ListeningRun) -> Work | None:
        return Work(run.record) if run.due_in(self._clock.monotonic()) <= 0 else None

    def _relist(self, asked: Relist) -> Steps[None]:
        while self._commands or (self._work is not None and self._work.command):
            yield _POLL_SECONDS  # the cluster is configured first
        if asked is self._relist_wanted:
            yield from self.service.relist(asked)

    def _finish(self, stopping: StopListening) -> Steps[None]:
        """Record the rest of the run, and publish it."""
        if self.service.run is not None:
            yield from self.service.run.finish()
            while self.service.fresh:
                yield AT_ONCE if self._publish_at <= self._clock.monotonic() else _POLL_SECONDS
        self._commands.popleft()
        self._stopped(stopping, clean=True)

    def _resume_from_checkpoints(self, work: Work) -> None:
        """After a fault of ours: resume from what is stored, or obey the command again. The second time in a row: listen no more."""
        run = self.service.run
        self._faults += 1
        if run is None:
            if not work.command:
                self._work = None
            elif self._faults > 1:
                # Nothing goes on by half a configuration, or by the one before.
                self._work = Work(partial(self.service.obey, Configure(None)))
            return
        self._begin_anew(run, lost=self._faults > 1)

    def _begin_anew(self, run: ListeningRun, *, lost: bool) -> None:
        """Drop what is not recorded, and listen again a little later: from the checkpoints, or with a list. ``lost``: listen no more."""
        self._work = None
        run.cut(ErrorCode.WORKER_EXITING, lost=lost)
        if not run.failed and run.stopping is None:
            later = self._clock.monotonic() + _FAULT_SECONDS
            self._work = self._anew = Work(self.service.begin_anew, command=True, not_before=later)
            if self._relisting is not None:
                self._relisting.steps, self._relisting.not_before = None, later + _POLL_SECONDS

    def _stopped(self, stopping: StopListening, *, clean: bool) -> None:
        run, self.service.run = self.service.run, None
        if run is not None:
            self._last_run = None if stopping.code in _RECONFIGURED else run
            run.failed = run.failed or (not clean and stopping.code not in _RECONFIGURED)
            try:
                run.end()
            except NotMasterError as error:
                self.failed(error)
            except Exception:  # a fault of ours: the session waits for an answer
                logger.exception("how listeners ended could not be noted", cluster=self.service.name)
        stopping.reply.set_result(clean and not any(run.failed for run in self.service.runs))
