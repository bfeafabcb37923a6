"""What a cluster's actor serves: one configuration after another, a run of listeners or a removal, and what follows from them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import batched
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.actors.actor import AT_ONCE, Host, Steps
from kubesync.aws.fencing.writer import StaleStateError
from kubesync.aws.tables.audit import Entry
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.state import Queued
from kubesync.cluster.conversations import Conversations, Question
from kubesync.cluster.credential_dates import CredentialDates
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.key_states import KeyStates, ListenerView
from kubesync.cluster.keys.reconciler import Reconciler, Recorded
from kubesync.cluster.listener import ListRound, probe_identity
from kubesync.cluster.listener_errors import ListenerErrors
from kubesync.cluster.ports import ClusterPorts, Configured
from kubesync.cluster.published import Published
from kubesync.cluster.removal import Removal
from kubesync.cluster.requests import Requests
from kubesync.cluster.run import ListeningRun, RunFigures
from kubesync.domain.errors import KubesyncError, NewerSchemaError
from kubesync.domain.large_keys import LargeKeys
from kubesync.domain.objects import ObjectKey
from kubesync.domain.plan import changes_of
from kubesync.domain.state import Reference
from kubesync.domain.window import Mode
from kubesync.messages import Claim, Configure, Listen, Promoted, RecordLists, Relist, RemoveOrphans, TakeUp

logger = Logger(service="kubesync", child=True)

_TAKEN_UP_AT_A_TIME: Final = 500
_READERS_AT_A_TIME: Final = 200


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """A cluster in this session.

    ``running``: the last run, as long as it counts. ``views``: copies, of the listeners that should work. ``open_keys``: how many go by
    themselves. ``oldest_open`` (epoch seconds): since when the oldest of them waits. ``waiting``: how many keys wait for a person.
    ``conflicts``: how many names somebody else holds. ``set_aside``: how many keys are not planned, because sessions have died of them.
    """

    runs: tuple[RunFigures, ...] = ()
    running: RunFigures | None = None
    views: tuple[ListenerView, ...] = ()
    open_keys: int = 0
    oldest_open: float | None = None
    waiting: int = 0
    conflicts: int = 0
    set_aside: int = 0


class Service:
    """For the cluster's actor alone. Methods that return steps are its work.

    ``changed``: shared objects whose readers are to be planned, with the numbers of their notes.
    ``run``: the listeners that are watched now. ``removal``: of a cluster that is being deleted. ``fresh``: what was recorded, and
    not published yet. ``promoted``: keys that were given a name, and are to be planned.
    """

    def __init__(self, config: ClusterConfig, ports: ClusterPorts) -> None:
        self.name = config.name
        self.states = KeyStates(
            config, ports.tables.state, ports.tables.name_counts, ports.cached_keys, ports.scheduler.epoch
        )
        self.runs: list[ListeningRun] = []
        self.run: ListeningRun | None = None
        self.removal: Removal | None = None
        self.fresh: deque[tuple[Recorded, float | None]] = deque()
        self.promoted: set[ObjectKey] = set()
        self.changed: dict[Reference, int] = {}
        self._readers: dict[Reference, list[ObjectKey]] = {}
        self.host: Host[ClusterFigures] | None = None
        self.last_round: ListRound | None = None  # the lists that a resync asked for last
        self.published = Published(self.name, ports.to_zone)
        self.errors = ListenerErrors(
            ports.session, self.states, ports.tables, ports.fenced_writer, ports.scheduler, ports.progress
        )
        self.credentials = CredentialDates(ports)
        self._ports = ports
        self._clock = ports.scheduler
        self._committer = Committer(
            self.states,
            ports.tables,
            ports.fenced_writer,
            ports.scheduler,
            ports.fenced_here,
            ports.large,
            self._written,
        )
        self._reconciler: Reconciler | None = None
        self.conversations = Conversations(ports, self._committer, None, self.published, self.follow_up)
        self._deadline = 0.0

    def _written(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        try:
            self._ports.progress("changes", {"cluster": self.name, "entries": entries})
        except Exception:  # what people see must not decide about records
            logger.exception("changes could not be shown", cluster=self.name)

    def obey(self, command: object) -> Steps[None]:
        match command:
            case Configure():
                self._serve(command.configured)
            case TakeUp():
                yield from self._take_up(command.queued)
            case Listen():
                self._deadline = command.deadline
                self._listen()
            case RecordLists() | Claim() | RemoveOrphans():
                assert self._reconciler is not None
                yield from Requests(self._ports, self._committer, self._reconciler).answer(command)

    def answer(self, question: Question) -> Steps[None]:
        return self.conversations.answer(question)

    def _serve(self, configured: Configured | None) -> None:
        """Go by a configuration from now on. None, or if a newer release wrote to its tables: only close batches."""
        self.published.withdraw()
        self.fresh.clear()  # what is open is taken up anew
        self.run = self.removal = None
        self.changed.clear()
        self._readers.clear()
        reconciler = None
        try:
            remembered = None if configured is None else configured.remembered
            if configured is not None and remembered is None:
                read = {self.name: configured.config.remembered}
                remembered = self._ports.tables.listeners.remembered(read)[self.name]
        except NewerSchemaError as newer:
            remembered = None
            self._unreadable(newer)
        if configured is None or remembered is None:
            self.states.forget_work()
        else:
            if self._reconciler is None:
                self.states.identity = remembered.identity
            self.states.configure(configured.config, remembered.checkpoints, remembered.failing)
            self._follow_large(remembered.large, unclean=configured.unclean)
            self.credentials.configure(configured.config, remembered.credentials)
            connector, config = self._ports.connector, configured.config
            probe = partial(probe_identity, connector, config, self._clock)
            reconciler = Reconciler(self._committer, partial(connector.observe, config), probe)
        self._reconciler = reconciler
        self.published.silent = reconciler is None
        self.conversations = Conversations(self._ports, self._committer, reconciler, self.published, self.follow_up)

    def _follow_large(self, large: LargeKeys, *, unclean: bool) -> None:
        """A large key that was being planned when the last session ended: it may have died of it."""
        self.states.large = large.died(self._clock.epoch()) if unclean else large.ended(well=False)
        if large.under_way is not None:
            self._committer.note(self.states.large)

    def _unreadable(self, newer: NewerSchemaError) -> None:
        logger.error("ignored: written by a newer release", cluster=self.name, reason=str(newer))
        self._ports.unreadable(self.name)

    def _take_up(self, queued: Queued | None) -> Steps[None]:
        if self._reconciler is None or self.states.config.paused:
            return
        try:
            queued = queued or self._ports.tables.state.queued(self.name)
            for keys in batched(queued.marks, _TAKEN_UP_AT_A_TIME):
                found = self.states.states(keys).values()
                self.published.publish(self.states, found, inherited=True)
                if (
                    not self.states.config.deleting
                ):  # an open mark of a key that wants no change: somebody restored the item
                    idle = (state.key for state in found if not changes_of(state, self.states.config.policy))
                    self.promoted.update(idle)
                yield AT_ONCE
            self.states.states(queued.unswept)  # now cached, so that a quiet moment sweeps them
        except NewerSchemaError as newer:
            self._unreadable(newer)
            self._serve(None)
        else:
            self.promoted |= queued.promoted
            self.changed |= queued.changed

    def _listen(self) -> None:
        config = self.states.config
        if self._reconciler is None or config.paused or self.run is not None:
            return
        if config.deleting:
            self.removal = Removal(config, self._ports, self.states, self._reconciler, self.follow_up)
        else:
            self._new_run().start(self._deadline)

    def _new_run(self) -> ListeningRun:
        assert self.host is not None and self._reconciler is not None  # noqa: PT018
        run = ListeningRun(
            len(self.runs) + 1,
            self._ports,
            self.states,
            self._reconciler,
            self.errors,
            self.credentials,
            self.host,
            self.follow_up,
        )
        self.runs.append(run)
        self.run = run
        return run

    def relist(self, asked: Relist) -> Steps[None]:
        """List again for a resync."""
        self.states.large = self.states.large.by_hand()
        mode, now = Mode(forced=asked.forced, distrust_upstreams=True), self._clock.monotonic()
        if self._reconciler is None or (self.run is None and asked.deadline is None):
            changing = f"the configuration of cluster {self.name} is being changed: run it again"
            asked.reply.set_exception(KubesyncError(changing))
            return
        changed = 0 if self.run is None else self.run.report.changed_keys
        made_for = self.last_round = ListRound(mode, set(self.states.config.resources), now, changed, asked.reply)
        if self.run is not None:
            yield from self.run.relist(made_for)
        elif asked.deadline is not None:
            self._deadline = asked.deadline
            self._new_run().start(asked.deadline, made_for)

    def plan_readers(self, run: ListeningRun) -> Steps[None]:
        """Plan some of the keys that read a shared object that changed."""
        reference, number = next(iter(self.changed.items()))
        table, writer = self._ports.tables.state, self._ports.fenced_writer
        left = self._readers.setdefault(reference, [])
        left = left or sorted(table.readers(self.name, reference))
        yield from run.replan(left[:_READERS_AT_A_TIME], f"{reference.kind} {reference.name} changed")
        if self.changed.get(reference) != number:
            return  # it changed again: all its readers are planned once more
        self._readers[reference] = left[_READERS_AT_A_TIME:]
        if not self._readers[reference]:
            # Stale: an earlier try has removed it, and its answer was lost.
            with suppress(StaleStateError):
                writer.run([self.name], [table.unmark_changed(self.name, reference, number)], writer.token())
            del self.changed[reference], self._readers[reference]

    def remove(self, removal: Removal) -> Steps[None]:
        yield from removal.steps()
        self._serve(None)
        self._ports.removed(self.name)

    def begin_anew(self) -> Steps[None]:
        """After a fault of ours: read everything that is stored again, and listen again from the stored checkpoints."""
        configured = Configured(self.states.config, None)
        self.states.forget_work()
        self._serve(configured)
        yield from self._take_up(None)
        self._listen()

    def figures(self, running: ListeningRun | None) -> ClusterFigures:
        states, keys = self.states, self.states.open_keys
        runs: dict[ListeningRun | None, RunFigures] = {run: run.figures() for run in self.runs}
        views = () if states.config.deleting else tuple(replace(v, unsure=set()) for v in states.listeners.values())
        counts = keys.count, keys.oldest, keys.waiting, states.conflicts, keys.set_aside
        return ClusterFigures(tuple(runs.values()), runs.get(running), views, *counts)

    # --- what follows from what was recorded ---

    def follow_up(self, recorded: Recorded, since: float | None = None) -> None:
        """Zones hear of keys that changed, clusters of keys that were given a name."""
        self.fresh.append((recorded, since))
        self.changed |= recorded.shared
        for reference in recorded.shared:
            self._readers.pop(reference, None)
        for key in recorded.promoted:
            self._ports.to_cluster(key.cluster, Promoted((key,)))

    def publish(self) -> None:
        """Tell zones what was recorded first. Raises StoreError."""
        recorded, since = self.fresh[0]
        told = (key for key in sorted(recorded.changed) if self.published.knows(key))
        keys = list(dict.fromkeys((*recorded.opened, *told)))
        states = self.states.states(keys[:_TAKEN_UP_AT_A_TIME])
        self.published.publish(self.states, states.values(), since)
        if rest := keys[_TAKEN_UP_AT_A_TIME:]:
            self.fresh[0] = Recorded(tuple(rest)), since
        else:
            self.fresh.popleft()
