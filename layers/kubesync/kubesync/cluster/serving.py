"""What a cluster's actor serves: one configuration after another, with a run of listeners or a removal; and lists that somebody waits for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import batched
from typing import Final

from kubesync import messages
from kubesync.actors.actor import AT_ONCE, Host, Steps
from kubesync.actors.scheduler import Clock
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.state import Queued
from kubesync.cluster.answers import answer_request
from kubesync.cluster.keys.key_states import ListenerView
from kubesync.cluster.listener import ListRound
from kubesync.cluster.listener_reports import CredentialDates, ListenerErrors
from kubesync.cluster.ports import ClusterPorts, Configured
from kubesync.cluster.removal import Removal
from kubesync.cluster.run import ListeningRun, RunFigures
from kubesync.cluster.served_keys import KEYS_AT_A_TIME, ServedKeys
from kubesync.cluster.tasks import Task
from kubesync.domain.errors import ErrorCode, KubesyncError, NewerSchemaError, NotMasterError
from kubesync.domain.large_keys import LargeKeys
from kubesync.domain.open_keys import OpenCounts
from kubesync.domain.window import Mode
from kubesync.log import logger

# How long a relist waits for listeners that were cut, and until all that they have read is recorded, both from its beginning.
_CUT_SECONDS: Final = 10.0
_REST_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05
_ASK_SECONDS: Final = 0.2
# The next run lists everything: whatever was not recorded in time is not lost.
_RECONFIGURED: Final = (ErrorCode.CONFIG_UPDATE, ErrorCode.CONFIG_DELETE)


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """A cluster in this session.

    ``runs``: all runs of listeners, the oldest first. ``running``: the run that goes on, or the last one, unless another configuration
    ended it. ``views``: copies, of the listeners that should work.
    """

    runs: tuple[RunFigures, ...] = ()
    running: RunFigures | None = None
    views: tuple[ListenerView, ...] = ()
    open: OpenCounts = field(default_factory=OpenCounts)


class Serving:
    """Serves one configuration after another. Only the cluster's actor uses it, and does the steps that its methods return.

    ``keys``: of the cluster. ``errors``: writes those of its listeners. Both last as long as the actor. ``host``: of the actor; listeners send
    messages there. ``run``: the run of listeners that goes on, or is being stopped. ``removal``: the one that is under way, of a cluster that
    is being deleted.
    """

    def __init__(self, config: ClusterConfig, ports: ClusterPorts) -> None:
        self.keys = ServedKeys(config, ports)
        self.errors = ListenerErrors(self.keys.states, ports)
        self._ports = ports
        self._credentials = CredentialDates(ports)
        self.host: Host[ClusterFigures] | None = None
        self._deadline = 0.0  # until when (monotonic) listeners run
        self._runs: list[ListeningRun] = []  # all of this session
        self.run: ListeningRun | None = None
        self._last_run: ListeningRun | None = None  # see ``ClusterFigures.running``
        self.removal: Removal | None = None

    @property
    def tasks(self) -> Sequence[Task]:
        """The tasks of the work lane, which does them in turn: a long window holds up neither names that change hands nor readers.

        While the cluster is removed, only the removal. Without a run that works nothing is planned: no view is complete.
        """
        if self.removal is not None:
            return (self.removal,)
        return () if self.run is None or self.run.failed else (self.keys.promoted, self.keys.readers, self.run)

    # --- commands ---

    def obey(self, command: object) -> Steps[None]:
        """Do a command of the session or of an operation. After a fault of ours it is called again."""
        match command:
            case messages.Configure():
                self._serve(command.configured)
            case messages.TakeUp():
                yield from self._take_up(command.queued)
            case messages.Listen():
                self._deadline = command.deadline
                self._begin()
            case messages.RecordLists() | messages.Adopt() | messages.RemoveOrphans():
                yield from answer_request(self.keys, command)

    def begin_again(self) -> Steps[None]:
        """Replace a run that was cut: read everything that is stored again, and listen again from the stored checkpoints.

        Where the session begins a run, it gives along what is stored. Here that is None: the called methods read it themselves.
        """
        self.keys.states.forget_work()
        self._serve(Configured(self.keys.states.config, None))
        yield from self._take_up(None)
        self._begin()

    def _serve(self, configured: Configured | None) -> None:
        """Switch to a configuration. Withdraws everything from the zones, and drops the run or the removal.

        If it is None, or a newer release wrote items of the cluster, the cluster is not served: its keys want nothing, and only batches that are
        under way are closed.
        """
        keys, name, was_served = self.keys, self.keys.states.config.name, self.keys.published.served
        keys.published.withdraw()  # what is open is taken up again
        keys.readers.forget()
        self.run = self.removal = None
        remembered = None
        try:
            if configured is not None:
                read = {name: configured.config.possible_resources}
                remembered = configured.remembered or self._ports.tables.listeners.remembered(read)[name]
        except NewerSchemaError as newer:
            self._unreadable(newer)
        if configured is None or remembered is None:
            keys.states.forget_work()
        else:
            now = self._ports.scheduler.epoch_seconds()
            if not was_served:  # else this session knows it
                keys.states.identity = remembered.identity
            keys.states.configure(configured.config, remembered.checkpoints, now, remembered.failing)
            self._follow_large(remembered.large, unclean=configured.unclean)
            self._credentials.configure(configured.config, remembered.credentials)
        keys.published.served = remembered is not None

    def _follow_large(self, large: LargeKeys, *, unclean: bool) -> None:
        """Take over what is stored about large keys. If the last session died, blame the large key that it was planning: after some deaths such
        keys are set aside. If it ended well, that key is to blame for nothing."""
        now, states = self._ports.scheduler.epoch_seconds(), self.keys.states
        states.large = large.died(now) if unclean else large.ended(well=False)
        if large.under_way is not None:  # the stored note still says so
            self.keys.committer.note(states.large)

    def _unreadable(self, newer: NewerSchemaError) -> None:
        """Report that the cluster is not served, because a newer release wrote some of its items."""
        name = self.keys.states.config.name
        logger.error("ignored: written by a newer release", cluster=name, reason=str(newer))
        self._ports.unreadable(name)

    def _take_up(self, queued: Queued | None) -> Steps[None]:
        """Publish keys that earlier sessions left open, and queue those to plan.

        ``queued``: see ``TakeUp``. Does nothing while the cluster is not served or is paused.
        """
        keys, states = self.keys, self.keys.states
        if not keys.published.served or states.config.paused:
            return
        try:
            queued = queued or self._ports.tables.state.queued(states.config.name)
            for marked in batched(queued.marks, KEYS_AT_A_TIME):
                idle = keys.published.publish(states.each(marked), inherited=True)
                # A key is marked as open and wants no change: somebody restored its item. When it is planned again, the mark goes.
                keys.promoted.add(() if states.config.deleting else idle)
                yield AT_ONCE
            for _ in states.each(queued.unswept):  # now cached, so that a quiet moment sweeps them
                pass
        except NewerSchemaError as newer:
            self._unreadable(newer)
            self._serve(None)
        else:
            keys.promoted.add(queued.to_plan)
            keys.readers.add(queued.changed)

    def _begin(self) -> None:
        """Start the listeners, or the removal of a cluster that is being deleted. Does nothing if it is not served or is paused, or if a run
        goes on already.
        """
        config = self.keys.states.config
        if not self.keys.published.served or config.paused or self.run is not None:
            return
        if config.deleting:
            self.removal = Removal(self.keys, self._removed)
        else:
            self.listen(None)

    def listen(self, deadline: float | None, made_for: ListRound | None = None) -> ListeningRun:
        """Start listeners: of the run that goes on, or of a new one. Returns the run.

        Args:
            deadline: until when (monotonic), for a new run. None: as the session said last.
            made_for: have them list for this round. A person waits for it, so large keys that are set aside are tried again.
        """
        keys = self.keys
        if made_for is not None:
            keys.states.large = keys.states.large.by_hand()
        if self.run is None:
            assert self.host is not None
            self._deadline = deadline or self._deadline
            number = len(self._runs) + 1
            self.run = ListeningRun(number, keys, self.errors, self._credentials, self.host)
            self._runs.append(self.run)
        self.run.start(self._deadline, made_for)
        return self.run

    def _removed(self) -> None:
        """Called by the removal at its end."""
        self._serve(None)
        self._ports.removed(self.keys.states.config.name)

    # --- faults, and the end ---

    def note(self, problem: str) -> None:
        """Report a problem of the run."""
        if self.run is not None:
            self.run.report.problem = problem

    def stop(self, stopping: messages.StopListening) -> None:
        """Cut the listeners at once. A removal goes on in the next session."""
        if self.run is not None:
            self.run.stop(stopping)
        self.removal = None

    def ended(self, stopping: messages.StopListening, *, clean: bool) -> None:
        """End the run after a stop: persist how the listeners ended, and answer the session. ``clean``: everything is recorded.

        The answer says whether all runs of this session have recorded everything: a run that failed before counts, too.
        """
        run, self.run = self.run, None
        if run is not None:
            # The next run of a changed configuration lists everything: what this one has not recorded is not lost, so it counts as no failure.
            reconfigured = stopping.code in _RECONFIGURED
            self._last_run = None if reconfigured else run
            run.failed |= not (clean or reconfigured)
            try:
                run.end()
            except NotMasterError as error:
                self._ports.not_master(error)
            except Exception:  # a fault of ours: the session waits for an answer
                logger.exception("how listeners ended could not be noted", cluster=self.keys.states.config.name)
        stopping.reply.set_result(clean and not any(each.failed for each in self._runs))

    def figures(self) -> ClusterFigures:
        """Copy figures of all runs, of the listeners' views and of open keys. Another thread may read the copy."""
        states, keys = self.keys.states, self.keys.states.open_keys
        runs: dict[ListeningRun | None, RunFigures] = {run: run.figures() for run in self._runs}
        absent, listeners = states.absent, {} if states.config.deleting else states.listeners
        views = tuple(replace(view, provisional=set(), absent=r in absent) for r, view in listeners.items())
        return ClusterFigures(tuple(runs.values()), runs.get(self.run or self._last_run), views, keys.counts())


class Relisting:
    """One full list of a cluster for a resync: a task of its own, which goes on while windows cannot be recorded.

    Args:
        configured: whether the cluster has done all commands that came before, such as a new configuration.
    """

    def __init__(self, asked: messages.Relist, serving: Serving, clock: Clock, configured: Callable[[], bool]) -> None:
        self._asked = asked
        self._serving = serving
        self._clock = clock
        self._configured = configured
        self._round = ListRound(Mode(forced=asked.forced, reread_upstreams=True), asked.reply)

    def due_at(self) -> float:
        return AT_ONCE

    def steps(self) -> Steps[None]:
        """Have the cluster listed, and wait until the lists are recorded or do not come. The round is answered at the end."""
        while not self._configured():
            yield _POLL_SECONDS
        made_for, asked, serving, began, changed = self._round, self._asked, self._serving, self._clock.monotonic(), 0
        if made_for.reply is None:  # withdrawn meanwhile
            return
        config = serving.keys.states.config
        # Without a deadline only a cluster that is watched already may be listed (``Relist``).
        if not serving.keys.published.served or (serving.run is None and asked.deadline is None):
            changing = f"the configuration of cluster {config.name} is being changed: run it again"
            asked.reply.set_exception(KubesyncError(changing))
            return
        # 1. Cut the listeners, and wait until all that they have read is recorded: it does not belong to this request.
        if (run := serving.run) is not None:
            changed = run.report.changed_keys
            run.listeners.stop(None)
            while self._clock.monotonic() < began + _CUT_SECONDS and run.listeners.alive:
                yield _POLL_SECONDS
            while self._clock.monotonic() < began + _REST_SECONDS and not run.quiet:
                yield _POLL_SECONDS
        # 2. From here on the round applies: new listeners list for it. A run that has failed or is being stopped starts none: 3. finds out.
        made_for.unlisted, made_for.began, made_for.changed_before = set(config.resources), began, changed
        if run is None or run.works:
            run = serving.listen(asked.deadline, made_for)
        # 3. Wait for the answer. The run gives it once the lists are recorded (``_note_lists``). It is asked here too: a resource may turn out to
        # be absent in the cluster, and no list of it comes. Somebody may also withdraw the round, or give it up.
        while made_for.applies:
            run.answer(made_for)
            if (error := run.why_unlisted(began)) is not None:
                made_for.answer(error)
                return
            yield _ASK_SECONDS

    def withdraw(self) -> None:
        """Note that nobody waits any more. A list that has begun is recorded in the normal mode. One that has not begun never does."""
        self._round.answer(None)

    def give_up(self, problem: str) -> bool:
        """Answer that the lists do not come, because the run is cut. Returns whether it has answered.

        It does not if nobody waits any more. It does not either before the lists are requested of listeners: then the caller restarts
        ``steps``, and a new run makes the lists.
        """
        if not self._round.applies:
            return False
        self._round.answer(messages.ListingFailedError({}, self._clock.monotonic() - self._round.began, problem))
        return True
