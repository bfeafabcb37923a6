"""The master of one epoch: joins ledgers, reconcilers, zone writers and cluster runners."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from aws_lambda_powertools import Logger

from kubesync.actors.answer import Answer
from kubesync.actors.parallel import ParallelMap
from kubesync.actors.scheduler import Thread
from kubesync.aws.dynamodb.retry import retry_while_throttled
from kubesync.aws.fencing.take_over import Fencing
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.listeners import ListenerTable, Remembered
from kubesync.aws.tables.control.named_referrals import NamedReferrals
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.state import Queued, StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.key_states import Ledger, LedgerBusyError, unpaused
from kubesync.cluster.keys.outcomes import Outcomes
from kubesync.cluster.keys.planner import Tables
from kubesync.cluster.keys.reconciler import Mode, Reconciler, Recorded
from kubesync.cluster.ports import Progress, RunnerEvents
from kubesync.cluster.promoted_keys import PromotedKeys
from kubesync.cluster.runner import ClusterRunner
from kubesync.domain.batches import BatchLimits
from kubesync.domain.errors import ErrorCode, NotMasterError
from kubesync.domain.report import SessionReport
from kubesync.domain.state import KeyState
from kubesync.operations.ports import MasterParts
from kubesync.session.former_clusters import FormerClusters
from kubesync.session.lease_keeper import LeaseKeeper
from kubesync.session.listener_errors import ListenerErrors
from kubesync.session.newer_items import remembered, unless_newer
from kubesync.session.snapshot import fill, snapshot
from kubesync.telemetry.service_events import ServiceEvents
from kubesync.upstreams.composer import Composer, ComposerPorts
from kubesync.zone.conflict_checks import Reclaimer
from kubesync.zone.journal import ZoneMeans
from kubesync.zone.pool import ZonePool
from kubesync.zone.writer import ZoneWriter

logger = Logger(service="kubesync", child=True)

_LISTENERS_END_SECONDS: Final = 2.0
_ENDINGS_SECONDS: Final = 2.0
_SNAPSHOT_SECONDS: Final = 0.2  # for all clusters together


class Master:
    """Everything that one master runs. The session's own thread calls the methods, unless they say otherwise.

    ``pool_type``, ``runner_type``, ``composer_type`` and ``start_thread`` run the work in threads. A test may step them instead.
    ``reads_at_once``: the threads that a take-over or a resync reads with. Fewer than the connections of the store's client.
    """

    pool_type: ClassVar[type[ZonePool]] = ZonePool
    runner_type: ClassVar[type[ClusterRunner]] = ClusterRunner
    composer_type: ClassVar[type[Composer]] = Composer
    reads_at_once: ClassVar[int] = 16

    def __init__(
        self,
        parts: MasterParts,
        keeper: LeaseKeeper,
        epoch: int,
        report: SessionReport,
        progress: Progress,
        end: Callable[[ErrorCode, str], None],
    ) -> None:
        self.parts = parts
        self.report = report
        self.progress = progress
        self.ledgers: dict[str, Ledger] = {}
        self.reconcilers: dict[str, Reconciler] = {}
        self.runners: dict[str, ClusterRunner] = {}
        self._ended: list[ClusterRunner] = []
        scheduler = parts.scheduler
        self._promoted = PromotedKeys(self.runners, scheduler)
        self._end = end
        self.ending: Callable[[], bool] = lambda: False
        settings, store, clock = parts.settings, parts.store, parts.clock
        self._reads = ParallelMap(scheduler, self.reads_at_once)
        self.clusters = ClusterTable(store)
        self.tables = Tables(
            StateTable(store),
            ClaimTable(store),
            UpstreamTable(store),
            ListenerTable(store),
            AuditTable(store, report.session, settings.audit_retention_days * 86_400),
            NamedReferrals(settings.shard),
            self._reads,
        )
        self.inflight = InflightTable(store, settings.shard)
        self.fenced_writer = FencedWriter(store, epoch, keeper.may_write, scheduler, settings.shard)
        self._fencing = Fencing(store, settings.shard, epoch, self._retry)
        self.fenced = self._fencing.raised
        self.queues_taken: set[str] = set()  # clusters whose open keys have been queued
        self.former = FormerClusters(self.tables.state, self._fencing.raise_one, scheduler)
        # Three looks: a cluster that moves from the first to the second, or back, while a zone closes is never missed.
        known = ChainMap(self.ledgers, self.former.ledgers, self.ledgers)
        self.outcomes = Outcomes(
            lambda name: self._committer(known[name]) if name in known else None,
            scheduler.random,
            self._promoted.add,
            self._reads,
        )
        named, tables = NamedUpstreamTable(store), self.tables
        of_tables = named, tables.upstreams, tables.named, self.fenced_writer, tables.audit
        of_master = scheduler, self.ledgers, self.not_master, self._reads
        self.composer = self.composer_type(ComposerPorts(settings.shard, *of_tables, *of_master))
        of_reclaimer = (parts.zones, self.tables.claims, self.ledgers, self.reconcilers, self.outcomes, clock)
        self._reclaimer = Reclaimer(*of_reclaimer, self.follow_up)
        self._keeper = keeper
        self.deadline = 0.0
        self._clean = False
        self._held = False
        self.pool: ZonePool | None = None
        self.unsettled: frozenset[str] = frozenset()
        self._errors = ListenerErrors(
            report.session, self.ledgers, self.tables, self.fenced_writer, clock, progress, self.not_master
        )

    def start_thread(self, name: str, run: Callable[[], None]) -> Thread:
        """Run something in a separate thread. The caller need not join it."""
        thread = self.parts.scheduler.thread(name, run)
        thread.start()
        return thread

    # --- taking over ---

    def take_over(self, *, clean: bool, unsettled: Collection[str] = (), hold_zones: bool = False) -> None:
        """Read the configurations, raise all fences, then read checkpoints and named upstreams; ``release_zones`` reads the rest.

        Args:
            clean: the last master ended cleanly, except in the zones that it left ``unsettled``.
            hold_zones: write to no zone before ``release_zones``, which a dry run never calls.
        """
        configs = self._retry(lambda: list(self.clusters.all(self.parts.settings.shard)))
        self._fencing.take_over([config.name for config in configs])
        found = remembered(self.tables.listeners, [config.name for config in configs], self._retry)
        for config in configs:
            if config.name in found:
                self._register(config, found[config.name])
        self._retry(self.composer.load)
        scheduler = self.parts.scheduler
        zones = {zone.id: zone for ledger in self.ledgers.values() for zone in ledger.rules.zones}
        self.pool = self.pool_type(
            self._zone_means(), scheduler, clean=clean, unsettled=unsettled, zones=zones, on_not_master=self.not_master
        )
        self._clean, self._held = clean, True
        if not hold_zones:
            self.release_zones()

    def release_zones(self) -> None:
        """Start to write to zones. Read the inflight items of zones to settle (``ZoneJournal.settle``), then open and promoted keys."""
        assert self.pool is not None
        self._held = False
        left = self.pool.unsettled if self._clean else self._retry(lambda: list(self.inflight.zones()))
        # Batches in flight may hold keys of clusters that are no longer served.
        for zone_id, inflight in zip(left, self._parallel(unless_newer(self.inflight.read), list(left)), strict=True):
            self._retry(partial(self.former.prepare_all, inflight, zone_id, frozenset(self.ledgers)))
        self.pool.settle(left)
        names = unpaused(self.ledgers)
        for name, queued in zip(names, self._parallel(unless_newer(self.tables.state.queued), names), strict=True):
            take = unless_newer(partial(self._take_queue_now, name))
            if queued is None or not self._retry(partial(take, queued)):
                self._retry(partial(self.forget, name))

    def _parallel[T, R](self, call: Callable[[T], R], things: Sequence[T]) -> list[R]:
        return self._reads(lambda thing: self._retry(lambda: call(thing)), things)

    def _retry[T](self, call: Callable[[], T]) -> T:
        return retry_while_throttled(call, self.fenced_writer.check, self.parts.scheduler, self.deadline)

    def _register(self, config: ClusterConfig, found: Remembered) -> None:
        name = config.name
        served = self.ledgers.get(name)
        ledger = served or self.former.ledgers.get(name) or Ledger(config, self.tables.state, self.parts.scheduler)
        with ledger.briefly():
            if served is None:
                ledger.identity = found.identity
                self.ledgers[name] = ledger
                self.former.ledgers.pop(name, None)
            ledger.configure(config, found.checkpoints)
            self.reconcilers[name] = self.reconciler(ledger)

    def reconciler(self, ledger: Ledger, fenced_writer: FencedWriter | None = None) -> Reconciler:
        """A reconciler for a cluster's current configuration. ``fenced_writer`` replaces the session's."""
        committer, connector, config = self._committer(ledger, fenced_writer), self.parts.connector, ledger.config
        return Reconciler(committer, connector.observe, lambda: connector.identity(config))

    def _committer(self, ledger: Ledger, fenced_writer: FencedWriter | None = None) -> Committer:
        writer = fenced_writer or self.fenced_writer
        return Committer(ledger, self.tables, writer, self.parts.clock, self.fenced)

    def _take_queue_now(self, cluster: str, queued: Queued) -> bool:
        try:
            self._take_queue(cluster, queued)
        except LedgerBusyError as busy:  # a batch is being settled: ``take_up`` tries again
            logger.warning("open keys not queued yet, trying again", cluster=cluster, reason=str(busy))
        return True

    def _take_queue(self, cluster: str, queued: Queued) -> None:
        ledger = self.ledgers[cluster]
        with ledger.briefly():
            states = list(ledger.states(queued.marks).values())
            ledger.states(queued.unswept)  # now cached, so that a quiet moment sweeps them
        if states:
            assert self.pool is not None
            self.pool.add(states, inherited=True)
        self._promoted.add(queued.promoted)
        self.queues_taken.add(cluster)

    def _zone_means(self) -> ZoneMeans:
        settings = self.parts.settings
        return ZoneMeans(
            client=self.parts.zones,
            inflight=self.inflight,
            fenced_writer=self.fenced_writer,
            outcomes=self.outcomes,
            reclaim=self._reclaimer.reclaim,
            ledgers=self.ledgers,
            scheduler=self.parts.scheduler,
            deployment=settings.deployment,
            shard=settings.shard,
            limits=BatchLimits(settings.batch_elements, settings.batch_characters),
            problems=ZoneProblemTable(self.parts.store, settings.shard, self.report.session),
            truly_master=self._keeper.truly_master,
            progress=self.progress,
        )

    # --- clusters ---

    def start(self) -> None:
        """Watch every cluster that is neither deleting nor disabled, and start the composer even if there is none."""
        self.composer.start()
        for name, ledger in list(self.ledgers.items()):
            if not (ledger.config.deleting or ledger.config.paused):
                self.start_cluster(name)

    def start_cluster(self, name: str, relist: Mode | None = None) -> ClusterRunner:
        """Start the runner of a registered cluster. ``relist``: list in any case, and record the lists in this mode."""
        ledger, parts, reconciler = self.ledgers[name], self.parts, self.reconcilers[name]
        writer = None
        if ledger.config.write_events:
            writer = ServiceEvents(name, partial(parts.connector.event_poster, ledger.config), parts.scheduler)
        events = RunnerEvents(self.opened, self._promoted.add, self._errors.failed, self.not_master, self.progress)
        runner = self.runner_type(
            ledger, reconciler, parts.connector, events, parts.scheduler, parts.settings.window_seconds, writer
        )
        promoted = self._promoted.start(name, runner)
        self.composer.start()
        runner.start(self.deadline, relist)
        if promoted:
            runner.replan(promoted)
        return runner

    def adopt(self, config: ClusterConfig) -> None:
        """Register a new cluster, or apply a changed configuration.

        Raises:
            StoreError: it failed (LedgerBusyError: a writer holds the cluster). Call it again later; a repeat does no harm.
        """
        name = config.name
        self._fencing.adopt(name)
        self._register(config, self.tables.listeners.remembered([name])[name])
        if config.paused:
            self.queues_taken.discard(name)  # open keys are queued once the cluster is enabled again
        else:
            self.take_up(name)

    def take_up(self, name: str) -> None:
        """Queue the open keys of a cluster, once. Raises as ``adopt`` does."""
        if name not in self.queues_taken:
            self._take_queue(name, self.tables.state.queued(name))

    def stop_cluster(self, name: str, code: ErrorCode, deadline: float) -> None:
        """End a cluster's listeners at once, record what they have read, and persist how they ended."""
        runner = self.runners.pop(name, None)
        if runner is None:
            return
        self._ended.append(runner)
        runner.stop(code)
        runner.join(deadline)
        self._errors.ended(runner, code, self.parts.clock.monotonic() + _ENDINGS_SECONDS)

    def forget(self, name: str) -> None:
        """Stop serving a cluster; its batches under way are still closed. Raises LedgerBusyError: try again."""
        if (ledger := self.ledgers.get(name)) is not None:
            self.former.keep(name, ledger)
        self.ledgers.pop(name, None)
        self.reconcilers.pop(name, None)
        self.queues_taken.discard(name)
        self.fenced.discard(name)

    def batches_ended(self, cluster: str) -> list[Answer[None]]:
        """One answer per zone: done once the zone has no batch of this cluster under way."""
        return [] if self.pool is None else self.pool.without(cluster)

    # --- callbacks, on the threads of runners and zone writers ---

    def opened(self, states: list[KeyState], since: float | None) -> None:
        """Queue keys whose record sets must change."""
        assert self.pool is not None
        self.pool.add(states, since)

    def follow_up(self, cluster: str, recorded: Recorded) -> None:
        """After keys of a cluster were committed: queue the open ones, and send promoted keys to their runners."""
        if (ledger := self.ledgers.get(cluster)) is not None:  # None: the cluster has been forgotten
            with ledger.lock:
                states = list(ledger.states(recorded.opened).values())
            self.opened(states, None)
        self._promoted.add(recorded.promoted)

    def not_master(self, error: NotMasterError) -> None:
        """End the session: another master writes. Any thread may call it."""
        self._end(ErrorCode.NOT_MASTER, str(error))

    # --- the end ---

    def settle_down(self, deadline: float) -> None:
        """Wait until all zones are idle, the deadline passes, or the session must end."""
        assert self.pool is not None
        clock = self.parts.clock
        while not self.pool.quiet and clock.monotonic() < deadline and not self.ending():
            self._keeper.may_write()
            clock.sleep(0.05)

    def finish(self, code: ErrorCode, drain_until: float, *, abandon: bool) -> bool:
        """Stop reading, record the last windows, and close the batches that can be closed.

        Args:
            abandon: another session holds the lease. Write only, where no fence forbids it, that the lease was lost.

        Returns:
            Whether everything has ended and every outcome is known, except in the ``unsettled`` zones.
        """
        running = list(self.runners.values())
        clock = self.parts.clock
        self.fenced_writer.until_monotonic = drain_until
        for runner in running:
            runner.stop(code)
        # All listeners share one short time limit: one that hangs (in a DNS query, say) must not delay the rest.
        listen_until = min(drain_until, clock.monotonic() + _LISTENERS_END_SECONDS)
        for runner in running:
            runner.wind_up(listen_until, drain_until, abandon=abandon)
        joined = [runner.join(drain_until, abandon=abandon) for runner in running]
        joined += [runner.gone(clock.monotonic() + 1.0 if abandon else drain_until) for runner in self._ended]
        clean = all(joined) and not any(runner.failed for runner in [*running, *self._ended])
        self.composer.stop(drain_until, abandon=abandon)
        if self.pool is not None:
            self.pool.drain(self.parts.clock.monotonic() + 1.0 if abandon else drain_until)
            self.unsettled = self.pool.unsettled
        clean = self.composer.join() and clean
        if clock.monotonic() < drain_until or abandon:
            self.fenced_writer.until_monotonic = max(drain_until, clock.monotonic() + _ENDINGS_SECONDS)
            for runner in running:
                self._errors.ended(runner, code, self.fenced_writer.until_monotonic)
        # Zones that were never released after an unclean end must be settled by the next session.
        clean = clean and (self._clean or not self._held)
        if not clean or self.unsettled:
            self._keeper.give_up_writing()
        fill(self.report, [*self._ended, *running], self._writers(), self.composer.report)
        self.report.transactions = {"sent": self.fenced_writer.sent, "repeated": self.fenced_writer.repeated}
        return clean

    def snapshot(self) -> SessionReport:
        """A report of the current counts, for metrics."""
        clock, until = self.parts.clock, self.parts.clock.monotonic() + _SNAPSHOT_SECONDS

        def conflicts(cluster: str) -> int:
            ledger = self.ledgers.get(cluster)
            return 0 if ledger is None else ledger.conflicts(until - clock.monotonic())

        running, composing = dict(self.runners), self.composer.report
        return snapshot(self.report, self._ended, running, self._writers(), composing, conflicts)

    def _writers(self) -> Mapping[str, ZoneWriter]:
        return {} if self.pool is None else self.pool.writers
