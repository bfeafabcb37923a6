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
        self._publishing = Lane(self._clock, _PROMPT, lambda: (self._serving.keys.published,))
        self._questions: dict[str, ZoneQuestions] = {}  # by zone, in the order in which they are answered
        self._relisting = Lane(self._clock, _BACKOFF)
        self._errors = Lane(self._clock, _BACKOFF, lambda: (self._serving.errors,))
        self._work = Lane(self._clock, _BACKOFF, self._next_work)
        self._commands = self._serving.keys.commands  # messages that wait for the work lane, the oldest first
        self._faults = 0  # faults of ours in a row, in the work lane
        self._ended = False
        self._not_master = False  # another master writes: do nothing more than end the run

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
                if serving.run is not None:  # keys have to be planned again once a view is complete
                    serving.keys.promoted.add(serving.run.listeners.observed(message))
            case messages.Promoted():
                serving.keys.promoted.add(message.keys)
            case messages.Follow():
                # An alias of another cluster's key leads to this name. The first time, that key is planned again if this cluster has the name.
                if serving.keys.committer.dependents.follow(message.name, message.key) and message.owns:
                    self._ports.to_cluster(message.key.cluster, messages.Promoted((message.key,)))
            case messages.Refer():
                # Messages are received between two steps: whatever was planned without the new references is written.
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
        """Queue a question of a zone. A zone whose questions were all answered goes to the end of the line."""
        asked = self._questions.get(question.zone) or ZoneQuestions(self._serving.keys, _BACKOFF)
        if asked.empty:
            self._questions.pop(question.zone, None)
        self._questions[question.zone] = asked
        asked.ask(question)

    def _stop_listening(self, message: messages.StopListening) -> None:
        """Cut the listeners now, drop everything that would start them, and queue the rest of the stop as a command (``_finish_run``)."""
        self._not_master = self._not_master or message.abandon
        if self._serving.removal is not None:  # it goes on in the next session
            self._work.put(None)
        self._serving.stop(message)
        if isinstance(self._work.under_way, Command) and self._work.under_way.not_before > AT_ONCE:
            # The restart after a fault (``_cut_run``) waits for its time. What the run has read since the fault is lost, so no checkpoint
            # may move past it.
            self._work.put(None)
            if self._serving.run is not None:
                self._serving.run.failed = True
        self._relisting.put(None)
        for listen in [command for command in self._commands if isinstance(command, messages.Listen)]:
            self._commands.remove(listen)
        self._commands.append(message)

    # --- steps ---

    def step(self) -> float | None:
        """Do a step of the first lane that is due. Returns as ``Actor.step`` does.

        what holds                                      what is done
        ----------                                      ------------
        another master writes, nobody stops the run     nothing: the session will stop it
        another master writes, the run is being         the run ends, and nothing more is recorded; how its listeners ended is written
          stopped                                         where no fence forbids it
        a lane before the work is due                   its step
        the run is being stopped, its time is over      the run ends without the rest
        the work is due                                 its step
        """
        if self._ended:
            return None
        now, drain_until = self._clock.monotonic(), self._drain_until
        if self._not_master:
            if drain_until == math.inf:
                return ON_MESSAGE
            self._drop_unrecorded()
            return AT_ONCE
        next_at = drain_until
        for lane in self._lanes():
            if lane is self._work and now >= drain_until:
                self._drop_unrecorded()
                return AT_ONCE
            if (due := lane.due_at()) <= now:
                self._advance(lane)
                return AT_ONCE
            next_at = min(next_at, due)
        return max(AT_ONCE, next_at - now)

    def _lanes(self) -> Iterator[Lane]:
        """All lanes, first the one that goes first."""
        yield self._publishing
        yield from (asked.lane for asked in self._questions.values())
        yield from (self._relisting, self._errors, self._work)

    @property
    def _drain_until(self) -> float:
        """Until when (monotonic) a run that is being stopped may record. Infinite: none is being stopped."""
        return next((c.drain_until for c in self._commands if isinstance(c, messages.StopListening)), math.inf)

    def _drop_unrecorded(self) -> None:
        """End the run without recording the rest: its time is over, or another master writes. Answers the stop.

        Drops the commands that were queued before the stop. They are superseded: the session ends, or another configuration follows.
        """
        self._work.put(None)  # what the lane is doing ends here
        while not isinstance(command := self._commands.popleft(), messages.StopListening):
            pass
        self._serving.ended(command, clean=False)

    def _advance(self, lane: Lane) -> None:
        """Do one step of a lane. After any error but NotMasterError its task begins again later.

        the error                        when                     besides
        ---------                        ----                     -------
        StoreError, StaleStateError      after a backoff          in the work lane, after _GIVE_WAY_AFTER failures in a row: a run whose lists
                                                                    hold room that other clusters wait for is cut and starts again
        NotMasterError                   never: ``handle_error``
        any other, so a fault of ours    after _FAULT_SECONDS     in the work lane, but not in a removal: ``_after_fault``
        """
        run, name = self._serving.run, self._serving.keys.states.config.name
        try:
            done = lane.advance()
        except (StoreError, StaleStateError) as error:
            self._serving.note(str(error))
            logger.warning("recording failed, trying again", cluster=name, error=str(error))
            failures = lane.back_off()
            if lane is self._work and failures >= _GIVE_WAY_AFTER and run is not None and run.blocks_others:
                self._cut_run(restart=True)
        except NotMasterError:
            raise
        except Exception as error:
            self._serving.note(f"{type(error).__name__}: {error}")
            logger.exception("a step failed", cluster=name)
            lane.restart_after(_FAULT_SECONDS)
            # Questions, a relist and a removal begin again from what is stored.
            if lane is self._work and self._serving.removal is None:
                self._after_fault()
        else:
            # The restart after a fault is a command: that it succeeds does not show that the run works again.
            if lane is self._work and done is not None and not isinstance(done, Command):
                self._faults = 0

    def handle_error(self, error: Exception) -> float | None:
        """Handle what ``receive`` raised, or NotMasterError. Other errors of tasks do not get here: ``_advance`` retries those.

        Another master writes: from now on steps only end the run (``step``). Any other error is a fault of ours: it is reported, and the message is
        not received again.
        """
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
        """Return the tasks that the work lane may choose from: the first command alone, if there is one, else those that take turns.

        Takes no command from the queue: the lane also asks when it is due.
        """
        if not self._commands:
            return self._serving.tasks
        command = self._commands[0]
        if isinstance(command, messages.StopListening):
            # A stop stays in the queue until it is done: `step` drops it, and what it did not record, once its time is over.
            return (Command(partial(self._finish_run, command)),)
        return (Command(partial(self._obey, command)),)

    def _obey(self, command: object) -> Steps[None]:
        """Take the command from the queue, and do it."""
        if self._commands and self._commands[0] is command:  # a retry finds it taken
            self._commands.popleft()
        yield from self._serving.obey(command)

    def _commands_are_done(self) -> bool:
        """Whether no command waits or is under way."""
        return not self._commands and not isinstance(self._work.under_way, Command)

    def _finish_run(self, stopping: messages.StopListening) -> Steps[None]:
        """Record the rest of the run, wait until it is published, and answer the stop. ``_drop_unrecorded`` does it where this takes too long."""
        if self._serving.run is not None:
            yield from self._serving.run.finish()
            while (due := self._publishing.due_at()) < ON_MESSAGE:
                yield AT_ONCE if due <= self._clock.monotonic() else _POLL_SECONDS
        self._commands.popleft()
        self._faults = 0
        self._serving.ended(stopping, clean=True)

    def _after_fault(self) -> None:
        """Decide what follows a fault of ours in the work lane. After the second in a row the cluster is not listened to in this session.

        what there is       the first fault                                  the second in a row
        -------------       ---------------                                  -------------------
        a run               it starts again, from its checkpoints            it ends
        no run, a command   it is done again (``Lane.restart_after``)        the cluster is no longer served: a command may be half done
        another task        it is dropped, and begins again in its turn      the same
        """
        self._faults += 1
        if self._serving.run is not None:
            self._cut_run(restart=self._faults == 1)
        elif not isinstance(self._work.under_way, Command):
            self._work.put(None)
        elif self._faults > 1:
            self._work.put(Command(partial(self._serving.obey, messages.Configure(None))))

    def _cut_run(self, *, restart: bool) -> None:
        """Cut the listeners, and drop what is not recorded.

        ``restart``: start them again in _FAULT_SECONDS, from the checkpoints or with a list. A relist that waits for this run fails, or starts
        over after the restart.
        """
        run, relisting = self._serving.run, self._relisting.under_way
        assert run is not None
        self._work.put(None)
        run.cut(ErrorCode.WORKER_EXITING, restart=restart)
        if run.works:  # not if it is being stopped
            later = self._clock.monotonic() + _FAULT_SECONDS
            self._work.put(Command(self._serving.begin_again, not_before=later))
        if isinstance(relisting, Relisting) and not relisting.give_up(run.report.problem) and run.works:
            self._relisting.restart_after(_FAULT_SECONDS + _POLL_SECONDS)
