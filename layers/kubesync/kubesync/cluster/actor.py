"""The actor of one cluster: it owns the cluster's key states, and writes everything under the cluster's fence.

With each step it does one thing: a step of the first of these lanes that is due.

    publish      send zones what the keys want that were recorded last
    questions    answer zones, a lane for each zone: a zone waits for its answer before it sends more
    relist       have the cluster listed for a resync
    errors       persist errors of listeners
    work         a command, a removal, or in turns a window, promoted keys, readers: begun after the one before is durable (I1)

Work of many keys is done in steps of a few transactions each. A task that fails is begun again later; meanwhile others go on.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from kubesync import messages
from kubesync.actors.actor import AT_ONCE, ON_MESSAGE, Host, Steps
from kubesync.actors.backoff import Backoff
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.cluster.answers import ZoneQuestions
from kubesync.cluster.ports import ClusterPorts
from kubesync.cluster.serving import ClusterFigures, Relisting, Serving
from kubesync.cluster.tasks import Command, Lane, Task
from kubesync.domain.errors import ErrorCode, NotMasterError, StoreError
from kubesync.log import logger

_BACKOFF: Final = Backoff(initial=0.5, cap=10.0)
_PROMPT: Final = replace(_BACKOFF, cap=_BACKOFF.initial)  # zones wait for what is recorded
_FAULT_SECONDS: Final = 5.0
# Lists that cannot be recorded keep the room that others wait for. After about a minute they are dropped, and wait behind the others.
_GIVE_WAY_AFTER: Final = 11
_POLL_SECONDS: Final = 0.05


class ClusterActor:
    """Implements ``Actor``.

    Args:
        config: the actor closes keys under it until it is configured.
    """

    def __init__(self, config: ClusterConfig, ports: ClusterPorts) -> None:
        self._ports = ports
        self._clock = ports.scheduler
        self._serving = Serving(config, ports)
        self._published = Lane(self._clock, _PROMPT, lambda: (self._serving.keys.published,))
        self._zones: dict[str, ZoneQuestions] = {}
        self._relisting = Lane(self._clock, _BACKOFF)
        self._errors = Lane(self._clock, _BACKOFF, lambda: (self._serving.errors,))
        self._work = Lane(self._clock, _BACKOFF, self._next_work)
        self._commands = self._serving.keys.commands
        self._faults = 0
        self._ended = False
        self._not_master = False

    def hosted(self, host: Host[ClusterFigures]) -> None:
        """Set the host of this actor: its listeners send messages there."""
        self._serving.host = host

    def figures(self) -> ClusterFigures:
        return self._serving.figures()

    # --- messages ---

    def receive(self, message: object) -> None:
        """Queue the message for a later step. Promotions, withdrawals, follows and stops take effect at once."""
        serving = self._serving
        match message:
            case messages.Question():
                self._queue_question(message)
            case messages.Observed():
                if serving.run is not None:
                    serving.keys.promoted.add(serving.run.listeners.observed(message))
            case messages.Promoted():
                serving.keys.promoted.add(message.keys)
            case messages.Follow():
                if serving.keys.committer.dependents.follow(message.name, message.key) and message.owns:
                    self._ports.to_cluster(message.key.cluster, messages.Promoted((message.key,)))
            case messages.Refer():
                # Between two steps: whatever was planned is written.
                self._ports.to_named(messages.Noted(serving.keys.states.config.name, message.number))
            case messages.WithdrawRelist():
                if isinstance(self._relisting.under_way, Relisting):
                    self._relisting.under_way.withdraw()
                message.reply.set_result({} if serving.run is None else serving.run.listeners.last_errors)
            case messages.Relist():
                self._relisting.put(Relisting(message, serving, self._clock, self._commands_are_done))
            case messages.StopListening():
                self._stop_listening(message)
            case messages.EndCluster():
                self._ended = True
            case _:
                self._commands.append(message)

    def _queue_question(self, question: messages.Question) -> None:
        """Queue a question of a zone. ``_zones`` is in the order in which zones began to ask: so they are answered."""
        asked = self._zones.get(question.zone) or ZoneQuestions(self._serving.keys, _BACKOFF)
        if asked.empty:  # it begins to ask: to the end of the line
            self._zones.pop(question.zone, None)
        self._zones[question.zone] = asked
        asked.ask(question)

    def _stop_listening(self, message: messages.StopListening) -> None:
        """Cut the listeners now, drop commands that would start them, and queue the rest of the stop as a command."""
        self._not_master = self._not_master or message.abandon
        if self._serving.removal is not None:
            self._work.put(None)
        self._serving.stop(message)
        if isinstance(self._work.under_way, Command) and self._work.under_way.not_before > AT_ONCE:
            # A restart waits. What the run has seen since its fault is not recorded: no checkpoint may say so.
            self._work.put(None)
            if self._serving.run is not None:
                self._serving.run.failed = True
        self._relisting.put(None)
        for listen in [command for command in self._commands if isinstance(command, messages.Listen)]:
            self._commands.remove(listen)
        self._commands.append(message)

    # --- steps ---

    def step(self) -> float | None:
        if self._ended:
            return None
        now, over_at = self._clock.monotonic(), self._drain_until
        if self._not_master:
            # Another master writes: do nothing more than report how the listeners ended, where no fence forbids it.
            if over_at == math.inf:
                return ON_MESSAGE
            self._drop_unrecorded()
            return AT_ONCE
        goes_on = over_at
        for lane in self._lanes():
            if lane is self._work and now >= over_at:
                self._drop_unrecorded()
                return AT_ONCE
            if (due := lane.due_at()) <= now:
                self._advance(lane)
                return AT_ONCE
            goes_on = min(goes_on, due)
        return max(AT_ONCE, goes_on - now)

    def _lanes(self) -> Iterator[Lane]:
        """All lanes, first the one that goes first."""
        yield self._published
        yield from (asked.lane for asked in self._zones.values())
        yield from (self._relisting, self._errors, self._work)

    @property
    def _drain_until(self) -> float:
        """Until when (monotonic) a run that is being stopped may record. Infinite: none is being stopped."""
        return next((c.drain_until for c in self._commands if isinstance(c, messages.StopListening)), math.inf)

    def _drop_unrecorded(self) -> None:
        """End the run without recording the rest: its time is over, or another master writes. Drops commands before the stop.

        They are superseded: the session ends, or another configuration follows.
        """
        self._work.put(None)
        while not isinstance(command := self._commands.popleft(), messages.StopListening):
            pass
        self._serving.ended(command, clean=False)

    def _advance(self, lane: Lane) -> None:
        """Do one step of a lane.

        After any error the task starts over later. The run itself starts over if the error was a fault of ours (no error of the tables)
        in the run, or if its lists cannot be recorded while other clusters wait for their room.
        """
        run, name = self._serving.run, self._serving.keys.states.config.name
        try:
            done = lane.advance()
        except (StoreError, StaleStateError) as error:
            self._serving.note(str(error))
            logger.warning("recording failed, trying again", cluster=name, error=str(error))
            failures = lane.back_off()
            if lane is self._work and failures >= _GIVE_WAY_AFTER and run is not None and run.blocks_others:
                self._begin_again(lost=False)
        except NotMasterError:
            raise
        except Exception as error:
            self._serving.note(f"{type(error).__name__}: {error}")
            logger.exception("a step failed", cluster=name)
            lane.again(_FAULT_SECONDS)
            # Questions, a relist and a removal begin again from what is stored. A run resumes from its checkpoints.
            if lane is self._work and self._serving.removal is None:
                self._resume_from_checkpoints()
        else:
            if lane is self._work and done is not None and not isinstance(done, Command):
                self._faults = 0

    def failed(self, error: Exception) -> float | None:
        if isinstance(error, NotMasterError):
            self._not_master = True
            self._ports.not_master(error)
            return AT_ONCE
        self._serving.note(f"{type(error).__name__}: {error}")
        name = self._serving.keys.states.config.name
        logger.error("a message failed", cluster=name, error=str(error), exc_info=error)
        return _FAULT_SECONDS

    # --- work ---

    def _next_work(self) -> Sequence[Task]:
        """The tasks that the work lane may choose from: the first command alone, if there is one, else those that take turns.

        The lane asks before each choice, so this changes nothing.
        """
        if not self._commands:
            return self._serving.turns
        command = self._commands[0]
        if isinstance(command, messages.StopListening):
            # A stop stays in the queue until it is done: `step` drops it, and what it did not record, once its time is over.
            return (Command(partial(self._finish_run, command)),)
        return (Command(partial(self._obey, command)),)

    def _obey(self, command: object) -> Steps[None]:
        """Take the command from the queue, and do it. Idempotent: a retry finds it taken."""
        if self._commands and self._commands[0] is command:  # else it is begun again
            self._commands.popleft()
        yield from self._serving.obey(command)

    def _commands_are_done(self) -> bool:
        """Whether no command waits or is under way."""
        return not self._commands and not isinstance(self._work.under_way, Command)

    def _finish_run(self, stopping: messages.StopListening) -> Steps[None]:
        """Record the rest of the run, wait until it is published, and answer the stop."""
        if self._serving.run is not None:
            yield from self._serving.run.finish()
            while (due := self._published.due_at()) < ON_MESSAGE:
                yield AT_ONCE if due <= self._clock.monotonic() else _POLL_SECONDS
        self._commands.popleft()
        self._faults = 0
        self._serving.ended(stopping, clean=True)

    def _resume_from_checkpoints(self) -> None:
        """What follows a fault of ours, by what it was in. After the second one in a row the cluster is not listened to in this session.

                            the first fault                                  the second in a row
                            ---------------                                  -------------------
        a run               it starts again, from its checkpoints            it ends
        a command           it is done again (``Lane.again``)                nothing goes on by half of it, or by the configuration before it
        another task        it is dropped, and begins again in its turn      the same
        """
        self._faults += 1
        if self._serving.run is not None:
            self._begin_again(lost=self._faults > 1)
        elif not isinstance(self._work.under_way, Command):
            self._work.put(None)
        elif self._faults > 1:
            self._work.put(Command(partial(self._serving.obey, messages.Configure(None))))

    def _begin_again(self, *, lost: bool) -> None:
        """Drop what is not recorded, and start the listeners again a little later: from the checkpoints, or with a list.

        ``lost``: do not start them again. A relist that waits for this run fails, or starts over with the next one.
        """
        run, relisting = self._serving.run, self._relisting.under_way
        assert run is not None
        self._work.put(None)
        run.cut(ErrorCode.WORKER_EXITING, lost=lost)
        if run.works:
            later = self._clock.monotonic() + _FAULT_SECONDS
            self._work.put(Command(self._serving.begin_again, not_before=later))
        if isinstance(relisting, Relisting) and not relisting.cut(run.report.problem) and run.works:
            self._relisting.again(_FAULT_SECONDS + _POLL_SECONDS)
