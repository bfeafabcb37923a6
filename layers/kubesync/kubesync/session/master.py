"""The master's machinery: ledgers, recorders, zone writers and cluster runners, joined for one epoch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from aws_lambda_powertools import Logger

from kubesync.aws.audit import AuditTable
from kubesync.aws.claims import ClaimTable
from kubesync.aws.clusters import ClusterConfig, ClusterTable
from kubesync.aws.fences import raise_fence
from kubesync.aws.inflight import InflightTable
from kubesync.aws.lease import held_check
from kubesync.aws.listeners import ListenerTable
from kubesync.aws.state import StateTable
from kubesync.aws.store import Store
from kubesync.aws.upstreams import UpstreamTable, timestamp
from kubesync.aws.zone_problems import ZoneProblemTable
from kubesync.aws.zones import ZoneClient
from kubesync.clock import Clock
from kubesync.domain.batches import BatchLimits
from kubesync.domain.errors import (
    ErrorCode,
    ListenerError,
    NotMasterError,
    StoreBusyError,
    StoreError,
    StoreOutcomeUnknownError,
)
from kubesync.domain.objects import Resource, ServiceKey
from kubesync.domain.state import KeyState
from kubesync.session.closer import Closer
from kubesync.session.cluster_runner import ClusterRunner, RunnerEvents
from kubesync.session.lease_keeper import LeaseKeeper
from kubesync.session.ledger import Ledger
from kubesync.session.patience import patiently
from kubesync.session.planner import Tables
from kubesync.session.ports import Connector, Progress
from kubesync.session.reclaim import Reclaimer
from kubesync.session.recorder import Means, Mode, Recorded, Recorder
from kubesync.session.report import SessionReport, percentiles
from kubesync.session.transactor import StaleStateError, Transactor
from kubesync.session.zone_ground import ZoneMeans
from kubesync.session.zone_pool import ZonePool
from kubesync.settings import Settings

logger = Logger(service="kubesync", child=True)

_LISTENERS_END_SECONDS: Final = 2.0
_NOTES_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class MasterParts:
    """What bootstrap joins: the outside world of a session."""

    store: Store
    zones: ZoneClient
    connector: Connector
    settings: Settings
    clock: Clock


class Master:
    """Everything that one master runs. Methods are called from the session's own thread unless they say otherwise.

    ``pool_type`` and ``runner_type`` say who runs zones and clusters: threads, unless a test steps them by hand.
    """

    pool_type: ClassVar[type[ZonePool]] = ZonePool
    runner_type: ClassVar[type[ClusterRunner]] = ClusterRunner

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
        self.recorders: dict[str, Recorder] = {}
        self.runners: dict[str, ClusterRunner] = {}
        self._ended: list[ClusterRunner] = []
        self._end = end
        self.ending: Callable[[], bool] = lambda: False
        settings, store, clock = parts.settings, parts.store, parts.clock
        self.clusters = ClusterTable(store)
        self.listeners = ListenerTable(store)
        self.tables = Tables(StateTable(store), ClaimTable(store), UpstreamTable(store))
        self.inflight = InflightTable(store, settings.shard)
        self.audit = AuditTable(store, report.session, settings.audit_retention_days * 86_400)
        held = held_check(settings.shard, epoch)
        self.transactor = Transactor(store, epoch, keeper.may_write, clock, held)
        self.fenced: set[str] = set()
        self._inherited: dict[str, set[ServiceKey]] = {}
        self._inheriting = threading.Lock()
        self._queues_taken: set[str] = set()
        self.closer = Closer(self.ledgers, self.tables, self.transactor, self.audit, clock, self.fenced, self._heirs)
        self._reclaimer = Reclaimer(parts.zones, self.ledgers, self.recorders, self.closer)
        self._keeper = keeper
        self.deadline = 0.0
        self._clean = False
        self._held = False
        self.pool: ZonePool | None = None

    # --- taking over ---

    def take_over(self, *, clean: bool, hold_zones: bool = False) -> None:
        """Raise fences, before any state is read; then find out what is open, and settle what an unclean end left behind.

        Args:
            hold_zones: write no zone before ``release_zones``.
        """
        configs = self._patiently(lambda: list(self.clusters.all(self.parts.settings.shard)))
        for config in configs:
            self._patiently(partial(self._fence, config.name))
        for config in configs:
            self._patiently(partial(self._register, config))
        zones = {zone.id: zone for ledger in self.ledgers.values() for zone in ledger.rules.zones}
        self.pool = self.pool_type(
            self._zone_means(), self.parts.clock, clean=clean, zones=zones, on_not_master=self._not_master
        )
        self._clean, self._held = clean, True
        if not hold_zones:
            self.release_zones()

    def release_zones(self) -> None:
        """Begin to write zones: settle what an unclean end left behind, then what is open."""
        assert self.pool is not None
        self._held = False
        if not self._clean:
            self.pool.settle(self._patiently(lambda: list(self.inflight.zones())))
        for name in list(self.ledgers):
            self._patiently(partial(self._take_queue, name))

    def _patiently[T](self, call: Callable[[], T]) -> T:
        return patiently(call, self.transactor.check, self.parts.clock, self.deadline)

    def _fence(self, cluster: str) -> None:
        epoch = self.transactor.epoch
        try:
            raise_fence(self.parts.store, cluster, epoch, held_check(self.parts.settings.shard, epoch))
        except StoreOutcomeUnknownError as unknown:
            raise StoreBusyError(str(unknown)) from unknown  # the same again does no harm
        self.fenced.add(cluster)

    def _register(self, config: ClusterConfig) -> None:
        ledger = self.ledgers.get(config.name)
        checkpoints = self.listeners.checkpoints(config.name)
        if ledger is None:
            ledger = Ledger(config, self.tables.state)
            ledger.identity = self.listeners.identity(config.name)
            self.ledgers[config.name] = ledger
        with ledger.lock:
            ledger.configure(config, checkpoints)
        self.recorders[config.name] = Recorder(ledger, self.means(config))

    def means(self, config: ClusterConfig) -> Means:
        """What a recorder of this cluster works with."""
        return Means(
            self.transactor,
            self.tables,
            self.listeners,
            self.audit,
            self.parts.clock,
            self.fenced,
            self.parts.connector.observe,
            lambda: self.parts.connector.identity(config),
        )

    def _take_queue(self, cluster: str) -> None:
        queued = self.tables.state.queued(cluster)
        ledger = self.ledgers[cluster]
        with ledger.lock:
            states = list(ledger.states(queued.marks).values())
            ledger.states(queued.unswept)  # known from now on, so that they are swept when there is time
        if states:
            self.opened(states, None)
        if queued.heirs:
            self._inherited[cluster] = queued.heirs
        self._queues_taken.add(cluster)

    def _zone_means(self) -> ZoneMeans:
        settings = self.parts.settings
        return ZoneMeans(
            client=self.parts.zones,
            inflight=self.inflight,
            transactor=self.transactor,
            closer=self.closer,
            reclaim=self._reclaimer.reclaim,
            ledgers=self.ledgers,
            clock=self.parts.clock,
            deployment=settings.deployment,
            shard=settings.shard,
            limits=BatchLimits(settings.batch_elements, settings.batch_characters),
            problems=ZoneProblemTable(self.parts.store, settings.shard, self.report.session),
            truly_master=self._keeper.truly_master,
            progress=self.progress,
        )

    # --- clusters ---

    def start(self) -> None:
        """Watch every cluster that is not being deleted."""
        for name, ledger in list(self.ledgers.items()):
            if not ledger.config.deleting:
                self.start_cluster(name)

    def start_cluster(self, name: str, relist: Mode | None = None) -> ClusterRunner:
        """Start the runner of a registered cluster; ``relist``: by listing, taken this way."""
        told = RunnerEvents(self.opened, self._heirs, self._listener_error, self._not_master, self.progress)
        runner = self.runner_type(
            self.ledgers[name],
            self.recorders[name],
            self.parts.connector,
            told,
            self.parts.clock,
            self.parts.settings.window_seconds,
        )
        with self._inheriting:
            self.runners[name] = runner
            heirs = self._inherited.pop(name, None)
        runner.start(self.deadline, relist)
        if heirs:
            runner.replan(heirs)
        return runner

    def adopt(self, config: ClusterConfig) -> None:
        """Begin with a cluster that was registered, or go on with a changed configuration."""
        if config.name not in self.fenced:
            self._patiently(partial(self._fence, config.name))
        self._register(config)
        if config.name not in self._queues_taken:
            self._take_queue(config.name)

    def stop_cluster(self, name: str, code: ErrorCode, deadline: float) -> None:
        """End a cluster's listeners at once, record what they had read, and note how they ended."""
        runner = self.runners.pop(name, None)
        if runner is None:
            return
        runner.stop(code)
        runner.join(deadline)
        self._note_end(runner, code)
        self._ended.append(runner)

    def forget(self, name: str) -> None:
        """A cluster is gone for good."""
        self.ledgers.pop(name, None)
        self.recorders.pop(name, None)
        self._queues_taken.discard(name)

    # --- told by runners and zone writers, from their threads ---

    def opened(self, states: list[KeyState], since: float | None) -> None:
        """Keys whose record sets have to change."""
        assert self.pool is not None
        self.pool.add(states, since)

    def follow_up(self, cluster: str, recorded: Recorded) -> None:
        """What a transformation of a cluster's keys came to: open ones to their zones, heirs to their runners."""
        ledger = self.ledgers[cluster]
        with ledger.lock:
            states = list(ledger.states(recorded.opened).values())
        self.opened(states, None)
        self._heirs(recorded.heirs)

    def _heirs(self, keys: Iterable[ServiceKey]) -> None:
        for key in keys:
            with self._inheriting:
                runner = self.runners.get(key.cluster)
                if runner is None:  # not started yet: its runner takes them along
                    self._inherited.setdefault(key.cluster, set()).add(key)
                    continue
            runner.replan([key])

    def _not_master(self, error: NotMasterError) -> None:
        self._end(ErrorCode.NOT_MASTER, str(error))

    def _listener_error(self, cluster: str, resource: Resource, error: ListenerError) -> None:
        details: dict[str, object] = {"cluster": cluster, "resource": resource.value, "message": error.message}
        if error.status is not None:
            details["status"] = error.status
        self.progress("error", {"key": error.code.key, **details})
        self._note(cluster, resource, error.code, error.message, error.status)

    def _note(self, cluster: str, resource: Resource, code: ErrorCode, message: str, status: int | None = None) -> None:
        now = self.parts.clock.epoch()
        fields: dict[str, object] = {"code": int(code), "key": code.key, "message": message}
        if status is not None:
            fields["status"] = status
        token, session = self.transactor.token(), self.report.session
        count = self.listeners.count_error(cluster, resource, code, fields, timestamp(now), session)
        history = self.audit.error(cluster, {"resource": resource.value, **fields}, now)
        ledger = self.ledgers.get(cluster)
        if ledger is None:
            return
        if not ledger.lock.acquire(timeout=_NOTES_SECONDS):
            logger.warning("an error could not be persisted in time", cluster=cluster, code=code.key)
            return
        try:
            if code is ErrorCode.NOT_MASTER:
                self.transactor.last_word(cluster, [count, history], token)
            else:
                self.transactor.run([cluster], [count, history], token)
        except NotMasterError as lost:
            self._not_master(lost)
        except (StoreError, StaleStateError) as failed:
            logger.warning("an error could not be persisted", cluster=cluster, code=code.key, error=str(failed))
        finally:
            ledger.lock.release()

    def _note_end(self, runner: ClusterRunner, code: ErrorCode) -> None:
        for listener in runner.listeners:
            self._note(runner.ledger.config.name, listener.resource, code, _ENDED[code])

    # --- the end ---

    def settle_down(self, deadline: float) -> None:
        """Wait until no zone has anything to do right now, or until the deadline."""
        assert self.pool is not None
        clock = self.parts.clock
        while not self.pool.quiet and clock.monotonic() < deadline:
            self._keeper.may_write()
            clock.sleep(0.05)

    def finish(self, code: ErrorCode, drain_until: float, *, abandon: bool) -> bool:
        """Stop reading, apply the last windows, close what can be closed.

        Args:
            abandon: the lease is another's: write nothing more than, where no fence forbids it, that it was lost.

        Returns:
            Whether everything has ended and no outcome is unknown.
        """
        running = list(self.runners.values())
        clock = self.parts.clock
        self.transactor.until_monotonic = drain_until
        for runner in running:
            runner.stop(code)
        # All listeners share a short time: one that hangs (in a name look-up, say) must not cost the others theirs.
        listen_until = min(drain_until, clock.monotonic() + _LISTENERS_END_SECONDS)
        for runner in running:
            runner.wind_up(listen_until, drain_until, abandon=abandon)
        joined = [runner.join(drain_until, abandon=abandon) for runner in running]
        clean = all(joined) and not any(runner.failed for runner in [*running, *self._ended])
        if self.pool is not None:
            clean = self.pool.drain(self.parts.clock.monotonic() + 1.0 if abandon else drain_until) and clean
        if clock.monotonic() < drain_until or abandon:
            self.transactor.until_monotonic = max(drain_until, clock.monotonic() + _NOTES_SECONDS)
            for runner in running:
                self._note_end(runner, code)
        # Zones that were held back after an unclean end are still to be settled, by whoever comes next.
        clean = clean and (self._clean or not self._held)
        if not clean:
            self._keeper.give_up_writing()
        self._fill_report([*self._ended, *running])
        return clean

    def _fill_report(self, runners: list[ClusterRunner]) -> None:
        report = self.report
        lags: list[float] = []
        for runner in runners:
            report.clusters.append(runner.report)
            report.listeners += [listener.report for listener in runner.listeners]
        for zone_id, writer in (self.pool.writers if self.pool is not None else {}).items():
            counted = writer.report
            lags += counted.lags
            report.zones.append(
                {
                    "zone": zone_id,
                    "batches": counted.batches,
                    "changes": counted.changes,
                    "refused": counted.refused,
                    "throttled": counted.throttled,
                    "unknown": counted.unknown,
                    "problem": counted.problem,
                    "remark": counted.remark,
                }
            )
        report.lag = percentiles(lags)
        report.transactions = {"sent": self.transactor.sent, "repeated": self.transactor.repeated}


_ENDED = {
    ErrorCode.WORKER_EXITING: "the process was told to end",
    ErrorCode.CONFIG_DELETE: "the cluster's configuration was deleted",
    ErrorCode.CONFIG_UPDATE: "the cluster's configuration was changed",
    ErrorCode.NOT_MASTER: "the lease was lost",
    ErrorCode.MAX_RUNTIME: "the session's time was up",
}
