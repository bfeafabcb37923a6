"""The master of one epoch: makes the actors of clusters, zones and named upstreams, and ends them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, cast
from zlib import crc32

from aws_lambda_powertools import Logger

from kubesync.actors.actor import Activity
from kubesync.actors.answer import Answer
from kubesync.actors.parallel import ParallelMap
from kubesync.aws.dynamodb.retry import retry_while_throttled
from kubesync.aws.fencing.take_over import Fencing
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.claims import ClaimTable
from kubesync.aws.tables.control.clusters import ClusterConfig, ClusterTable
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.control.lost_clusters import lost_clusters
from kubesync.aws.tables.control.named_referrals import NamedReferrals
from kubesync.aws.tables.control.named_upstreams import NamedUpstreamTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.name_counts import NameCountTable
from kubesync.aws.tables.state import StateTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.committer import Committer
from kubesync.cluster.keys.key_states import KeyStates, rules_of
from kubesync.cluster.keys.planner import Tables
from kubesync.cluster.keys.reconciler import Reconciler
from kubesync.cluster.ports import ClusterPorts, Configured, EventWriter, Progress
from kubesync.cluster.served_keys import reconciler_of
from kubesync.cluster.serving import ClusterFigures
from kubesync.domain.batches import BatchLimits
from kubesync.domain.errors import ErrorCode, NotMasterError
from kubesync.domain.report import ResyncEnded, SessionReport
from kubesync.kubernetes.list_room import ListRoom
from kubesync.messages import Configure, Listen, StopListening, TakeUp
from kubesync.operations.ports import MasterParts, unpaused
from kubesync.session.clusters import Clusters
from kubesync.session.health import KNOWN_AFTER_SECONDS, harmless, health, of_cluster
from kubesync.session.lease_keeper import LeaseKeeper
from kubesync.session.remains import Remains
from kubesync.session.snapshot import fill, snapshot
from kubesync.telemetry.service_events import ServiceEvents
from kubesync.upstreams.actor import NamedUpstreams
from kubesync.upstreams.composer import NamedPorts
from kubesync.zone.pool import Zones
from kubesync.zone.ports import ZonePorts
from kubesync.zone.progress import ZoneFigures

logger = Logger(service="kubesync", child=True)

# Threads of a take-over or a resync. Fewer than the connections of the store's client.
_READS_AT_ONCE: Final = 16
_LISTENERS_END_SECONDS: Final = 2.0
_LAST_WORDS_SECONDS: Final = 5.0
_ENDINGS_SECONDS: Final = 2.0
_STUCK_SECONDS: Final = 30.0


class Master:
    """Everything that one master runs. The session's own thread calls the methods, unless they say otherwise.

    ``configs``: of the clusters that are served, also those that are being deleted. ``lost``: another session is the master by now.
    """

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
        self.session = report.session
        self.progress = progress
        self.configs: Mapping[str, ClusterConfig] = {}
        self.deadline = 0.0
        self.ending: Callable[[], bool] = lambda: False
        self.resync_ended: Callable[[ResyncEnded], None] = lambda _ended: None
        self.zones: Zones | None = None
        self.unsettled: frozenset[str] = frozenset()
        self.lost = False
        self._keeper = keeper
        self._end = end
        settings, store, scheduler = parts.settings, parts.store, parts.scheduler
        self._reads = ParallelMap(scheduler, _READS_AT_ONCE)
        self.activity = Activity(scheduler)
        self.clusters = ClusterTable(store)
        self.tables = Tables(
            StateTable(store),
            NameCountTable(store),
            ClaimTable(store),
            UpstreamTable(store),
            ListenerTable(store),
            AuditTable(report.session, settings.audit_retention_days * 86_400),
            NamedReferrals(settings.shard),
            self._reads,
        )
        self.inflight = InflightTable(store, settings.shard)
        self.fenced_writer = FencedWriter(store, epoch, keeper.may_write, scheduler, settings.shard)
        self._fencing = Fencing(store, settings.shard, epoch, report.session, self._retry)
        self._remains = Remains(self.inflight, self.tables.state, self.tables.listeners, self._reads, self._retry)
        self._large = scheduler.lock()
        self.room = ListRoom(settings.list_room_bytes, scheduler)
        self._actors = Clusters(self._cluster_ports, self.activity)
        self.named = NamedUpstreams(self._named_ports(), self.activity)
        self._found_clean = False
        self._zones_held = False
        # Every registered cluster (None: its configuration cannot be read), and those that a newer release wrote.
        self.registered: Mapping[str, ClusterConfig | None] = {}
        self.lost_clusters: tuple[str, ...] = ()
        self._unserved: set[str] = set()
        self._watches_since: float | None = None
        self._lags_told: dict[str, int] = {}
        self._removed: deque[str] = deque()
        self._unreadable: deque[str] = deque()

    def send(self, cluster: str, message: object) -> bool:
        """Send a message to a cluster's actor, from any thread. False: no such cluster here."""
        return self._actors.send(cluster, message)

    def ask_named(self, message: object) -> None:
        """Send a message to the named upstreams' actor, from any thread."""
        self.named.ask(message)

    def previewer(self, config: ClusterConfig) -> Reconciler:
        """A reconciler on key states of its own, for previews."""
        tables, remembered = (
            self.tables,
            self.tables.listeners.remembered({config.name: config.remembered})[config.name],
        )
        states = KeyStates(config, tables.state, tables.name_counts)
        states.configure(config, remembered.checkpoints)
        states.identity, states.large = remembered.identity, remembered.large
        committer = Committer(states, tables, self.fenced_writer, self.parts.clock, self._fencing.raised, self._large)
        return reconciler_of(committer, self.parts.connector, self.parts.scheduler)

    # --- taking over ---

    def take_over(self, *, clean: bool, unsettled: Collection[str] = (), hold_zones: bool = False) -> None:
        """Read the configurations, raise all fences, then read checkpoints and named upstreams; ``release_zones`` reads the rest.

        Args:
            clean: the last master ended cleanly, except in the zones that it left ``unsettled``.
            hold_zones: write to no zone before ``release_zones``, which a dry run never calls.
        """
        self.see_registered(self._retry(lambda: self.clusters.read(self.parts.settings.shard)))
        configs = {name: config for name, config in self.registered.items() if config is not None}
        self._fencing.take_over(configs)
        found = self._remains.remembered(configs)
        self._retry(self.named.load)
        zones = {zone.id: zone for config in configs.values() for zone in rules_of(config).zones}
        self.zones = Zones(self._zone_ports(), self.activity, clean=clean, unsettled=unsettled, zones=zones)
        for name, remembered in found.items():
            self._configure(Configured(configs[name], remembered, unclean=not clean))
        self._found_clean, self._zones_held = clean, True
        if not hold_zones:
            self.release_zones()

    def see_registered(self, found: Mapping[str, ClusterConfig | None]) -> None:
        """The registry as just read. Look for clusters that it lacks, and note how many there are."""
        self.registered = found
        with harmless("lost registrations could not be looked for"):
            self.lost_clusters = lost_clusters(self.parts.store, found, self._keeper.lease.clusters)
            self._keeper.note(clusters=len(found) + len(self.lost_clusters))

    def release_zones(self) -> None:
        """Start to write to zones. Read the inflight items of zones to settle, then open and promoted keys."""
        assert self.zones is not None
        self._zones_held = False
        left = self.zones.unsettled if self._found_clean else self._retry(lambda: list(self.inflight.zones()))
        # Batches in flight may hold keys of clusters that are no longer served.
        for zone_id, inflight in zip(left, self._remains.inflight(list(left)), strict=True):
            if inflight is not None:
                fence = self._fencing.raise_one
                self._retry(partial(self._actors.host_unserved, inflight.clusters, zone_id, fence))
        self.zones.settle(left)
        names = unpaused(self.configs)
        for name, queued in zip(names, self._remains.queued(names), strict=True):
            self.send(name, TakeUp(queued))

    def _retry[T](self, call: Callable[[], T]) -> T:
        return retry_while_throttled(call, self.fenced_writer.check, self.parts.scheduler, self.deadline)

    def _configure(self, configured: Configured) -> None:
        config = configured.config
        self._actors.host(config)
        self.configs = {**self.configs, config.name: config}
        self.send(config.name, Configure(configured))

    # --- ports of the actors ---

    def _cluster_ports(self) -> ClusterPorts:
        parts = self.parts

        def event_writer(config: ClusterConfig) -> EventWriter | None:
            if not config.write_events:
                return None
            return ServiceEvents(config.name, partial(parts.connector.event_poster, config), parts.scheduler)

        assert self.zones is not None
        return ClusterPorts(
            session=self.report.session,
            tables=self.tables,
            clusters=self.clusters,
            fenced_writer=self.fenced_writer,
            fenced_here=self._fencing.raised,
            connector=parts.connector,
            room=self.room,
            cached_keys=lambda: parts.settings.cached_keys // max(1, len(self.configs)),
            scheduler=parts.scheduler,
            window_seconds=parts.settings.window_seconds,
            to_cluster=self.send,
            to_zone=self.zones.send,
            to_named=self.ask_named,
            zones=lambda: () if self.zones is None else self.zones.hosted,
            large=self._large,
            event_writer=event_writer,
            not_master=self.not_master,
            removed=self._removed.append,
            unreadable=self._unreadable.append,
            progress=self.progress,
        )

    def _zone_ports(self) -> ZonePorts:
        settings = self.parts.settings
        return ZonePorts(
            client=self.parts.zones,
            inflight=self.inflight,
            fenced_writer=self.fenced_writer,
            to_cluster=self.send,
            scheduler=self.parts.scheduler,
            deployment=settings.deployment,
            shard=settings.shard,
            limits=BatchLimits(settings.batch_elements, settings.batch_characters),
            problems=ZoneProblemTable(self.parts.store, settings.shard, self.report.session),
            truly_master=self._keeper.truly_master,
            not_master=self.not_master,
            progress=self.progress,
        )

    def _named_ports(self) -> NamedPorts:
        return NamedPorts(
            shard=self.parts.settings.shard,
            table=NamedUpstreamTable(self.parts.store),
            upstreams=self.tables.upstreams,
            referrals=self.tables.named,
            fenced_writer=self.fenced_writer,
            audit=self.tables.audit,
            scheduler=self.parts.scheduler,
            to_cluster=self.send,
            not_master=self.not_master,
            reads=self._reads,
        )

    # --- clusters ---

    def start(self) -> None:
        """Watch every cluster, and go on with removals. Named upstreams are composed even if there is no cluster."""
        self._watches_since = self.parts.clock.monotonic()
        self.named.start()
        # In another order each time: slow clusters that list first must not hold the room in every session.
        for name in sorted(self.configs, key=lambda name: crc32(f"{self.report.session} {name}".encode())):
            self.send(name, Listen(self.deadline))

    def adopt(self, config: ClusterConfig, code: ErrorCode, until: float) -> None:
        """Serve a new cluster, or apply a changed configuration: its listeners end by then (monotonic), and begin anew.

        Raises:
            StoreError: it failed. Call it again later; a repeat does no harm.
        """
        name = config.name
        self._fencing.adopt(name)
        self._stop(name, code, until)
        self._configure(Configured(config, None))
        self.send(name, TakeUp(None))
        self.named.start()
        self.send(name, Listen(self.deadline))

    def drop(self, name: str, code: ErrorCode, until: float) -> None:
        """Stop serving a cluster. Its batches under way are still closed."""
        self._stop(name, code, until)
        self.forget(name)

    def forget(self, name: str) -> None:
        """The cluster's actor has stopped serving it, or does so now."""
        self.send(name, Configure(None))
        self.configs = {other: config for other, config in self.configs.items() if other != name}
        self._fencing.raised.discard(name)

    def _stop(self, name: str, code: ErrorCode, until: float) -> None:
        self._actors.stop(name, StopListening(code, until, until, Answer(self.parts.scheduler)))

    def forget_ended(self) -> list[str]:
        """Forget clusters that have ended by themselves. Returns those that are removed."""
        while self._unreadable:
            name = self._unreadable.popleft()
            self._unserved.add(name)
            self.forget(name)
        removed = [self._removed.popleft() for _ in range(len(self._removed))]
        for name in removed:
            self.forget(name)
        return removed

    def not_master(self, error: NotMasterError) -> None:
        """End the session: another master writes. Any thread may call it."""
        self._end(ErrorCode.NOT_MASTER, str(error))

    # --- the end ---

    def settle_down(self, deadline: float) -> None:
        """Wait until all actors are idle, the deadline passes, or the session must end."""
        clock = self.parts.clock
        while not self.activity.none and clock.monotonic() < deadline and not self.ending():
            self._keeper.may_write()
            clock.sleep(0.05)

    def finish(self, code: ErrorCode, drain_until: float, *, abandon: bool) -> bool:
        """Clusters record what was read. Then zones send, and clusters close. Then all end.

        Args:
            abandon: another session holds the lease. Write only, where no fence forbids it, that the lease was lost.

        Returns:
            Whether everything has ended and every outcome is known, except in the ``unsettled`` zones.
        """
        clock = self.parts.clock
        self.fenced_writer.until_monotonic = drain_until
        clean = self._stop_clusters(code, drain_until, abandon=abandon)
        self.named.stop(drain_until, abandon=abandon)
        zones_until = clock.monotonic() + 1.0 if abandon else drain_until
        if self.zones is not None:
            self.zones.drain(zones_until)
            self.unsettled = self.zones.unsettled
        clean = self.named.join() and clean
        self._actors.end(0.1)
        # Zones that were never released after an unclean end must be settled by the next session.
        clean = clean and (self._found_clean or not self._zones_held)
        if not clean or self.unsettled:
            self._keeper.give_up_writing()  # a thread that hangs sends nothing later
        zones = {} if self.zones is None else self.zones.figures
        fill(self.report, self._actors.figures.values(), zones, self.named.host.figures)
        self.report.transactions = {"sent": self.fenced_writer.sent, "repeated": self.fenced_writer.repeated}
        return clean

    def _stop_clusters(self, code: ErrorCode, drain_until: float, *, abandon: bool) -> bool:
        """Cut the listeners, and record what they have read. Returns whether all is recorded."""
        clock = self.parts.clock
        # All listeners share one short time limit: one that hangs (in a DNS query, say) must not delay the rest.
        listen_until = min(drain_until, clock.monotonic() + _LISTENERS_END_SECONDS)
        answers: list[Answer[bool]] = []
        for name in self._actors.figures:
            answer: Answer[bool] = Answer(self.parts.scheduler)
            answers.append(answer)
            self._actors.stop(name, StopListening(code, listen_until, drain_until, answer, abandon))
        until = clock.monotonic() + _LAST_WORDS_SECONDS if abandon else drain_until + _ENDINGS_SECONDS
        recorded = [answer.wait(max(0.0, until - clock.monotonic())) and answer.result() for answer in answers]
        return all(recorded)

    def snapshot(self) -> SessionReport:
        """A report of the current counts, for metrics."""
        zones, clusters = {} if self.zones is None else self.zones.figures, self._actors.figures
        found = snapshot(self.report, clusters.values(), zones, self.named.host.figures, self._lags_told)
        found.stuck = self.activity.stuck(_STUCK_SECONDS)
        if found.stuck:
            logger.warning("a step takes long", seconds_by_actor=found.stuck)
        with harmless("what does not get through could not be counted"):
            found.health = self._health(clusters, zones, found.stuck)
        return found

    def _health(
        self, clusters: Mapping[str, ClusterFigures], zones: Mapping[str, ZoneFigures], steps: Mapping[str, float]
    ) -> dict[str, float]:
        """Empty as long as nothing is known, and where another session is the master."""
        clock = self.parts.clock
        epoch, now, since = clock.epoch(), clock.monotonic(), self._watches_since
        if since is None or now - since < KNOWN_AFTER_SECONDS or self.lost:
            return {}
        watched = {name for name, config in self.registered.items() if config is None or not config.paused}
        served = {name: of_cluster(name, clusters[name], steps, epoch, now) for name in watched & self.configs.keys()}
        # Once it is served again its listeners work.
        self._unserved -= {name for name, each in served.items() if not any(each.failing)}
        unreadable = {name for name in watched if self.registered[name] is None} - self.configs.keys()
        unserved = unreadable | (self._unserved & watched)
        rest = [each for name, each in served.items() if name not in unserved]
        found = health(rest, len(unserved), len(watched - served.keys() - unserved), zones, steps, now)
        found["RegistrationsLost"] = len(self.lost_clusters)
        if since_ms := self._keeper.notes.get("resynced_at_ms"):
            found["HoursSinceResync"] = (epoch - cast(int, since_ms) / 1000) // 3600
        return found
