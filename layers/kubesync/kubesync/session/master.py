"""The master of one epoch: makes the actors of clusters, zones and named upstreams, and ends them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final
from zlib import crc32

from kubesync.actors.actor import Activity, Host
from kubesync.actors.directory import Directory
from kubesync.actors.parallel import ParallelMap
from kubesync.actors.scheduler import Lock
from kubesync.aws.fencing.take_over import Fencing, retry_while_throttled
from kubesync.aws.fencing.writer import FencedWriter
from kubesync.aws.tables.audit import AuditTable
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.named_upstreams import NamedReferrals, NamedUpstreamTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.aws.tables.of_clusters import Tables
from kubesync.cluster.keys.key_states import rules_of
from kubesync.cluster.keys.reconciler import Reconciler
from kubesync.cluster.ports import ClusterPorts, Configured
from kubesync.domain.batches import BatchLimits
from kubesync.domain.dns.records import Zone
from kubesync.domain.errors import ErrorCode, NewerSchemaError
from kubesync.domain.report import SessionReport, percentiles
from kubesync.kubernetes.list_room import ListRoom
from kubesync.log import logger
from kubesync.messages import Drain, Listen, Message, TakeUp
from kubesync.operations.ports import MasterParts, Term, unpaused
from kubesync.operations.requests import ResyncActor
from kubesync.session.clusters import Clusters
from kubesync.session.health import ACTOR_OF_ZONE, RegisteredClusters, Reporter, harmless
from kubesync.session.lease_keeper import LeaseKeeper
from kubesync.upstreams.actor import NamedUpstreams
from kubesync.upstreams.composer import NamedPorts
from kubesync.zone.actor import ZoneActor
from kubesync.zone.ports import ZonePorts
from kubesync.zone.progress import ZoneFigures

# Threads of a take-over or a resync. Fewer than the connections of the store's client.
_READS_AT_ONCE: Final = 16
# A resync that is under way gets this long to stop and answer, before the listeners are cut.
_RESYNC_ENDS_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What a master found when it took over. Before ``Master.take_over``: nothing is known, and no zone has to wait.

    ``clean``, ``unsettled``: how the last master ended: cleanly, except in these zones. ``zones``: the zones that configurations name, by id.
    ``zones_held``: this master writes to no zone yet (``Master.release_zones``), so all that the last one left unsettled is unsettled still.
    """

    clean: bool = False
    unsettled: frozenset[str] = frozenset()
    zones: Mapping[str, Zone] = field(default_factory=dict)
    zones_held: bool = False


class Master:
    """Makes and ends everything that one master runs. Only the session's thread calls the methods, unless they say otherwise.

    A session has one master, as a rule. If fences are above its epoch, it takes the lease again, and makes another master for the new epoch.

    ``served``: the actors of clusters. ``zones``: the actors of zones; each starts when the first message for it is sent, or when it has to
    settle. ``activity``: counts the actors that have something to do. ``term``: until when all of them work.
    """

    def __init__(self, parts: MasterParts, keeper: LeaseKeeper, report: SessionReport, term: Term) -> None:
        settings, store, scheduler = parts.settings, parts.store, parts.scheduler
        fencing = Fencing(store, settings.shard, report.epoch, parts.session, self._retry)
        self.parts = parts
        self.activity = Activity(scheduler)
        audit = AuditTable(parts.session, settings.audit_retention_seconds)
        tables = Tables.of(store, audit, NamedReferrals(settings.shard))
        self.tables = replace(tables, reads=ParallelMap(scheduler, _READS_AT_ONCE), writable_clusters=fencing.raised)
        self.fenced_writer = FencedWriter(store, report.epoch, keeper.check_may_write, scheduler, settings.shard)
        self.room = ListRoom(settings.list_room_bytes, scheduler)
        self.registered = RegisteredClusters(store, settings.shard, keeper)
        self.term = term
        self._keeper = keeper
        self._reporter = Reporter(report, scheduler, self.activity)
        self._taken_over = TakenOver()
        cluster_ports = partial(self._cluster_ports, scheduler.lock())
        self.served = Clusters(cluster_ports, fencing, scheduler, self.activity)
        make_zone = partial(self._zone, self._zone_ports())
        self.zones: Directory[ZoneFigures] = Directory(make_zone, scheduler, on_demand=True)
        self.named = NamedUpstreams(self._named_ports(), self.activity)
        self.resyncs = ResyncActor(self, self.activity)

    @property
    def configs(self) -> Mapping[str, ClusterConfig]:
        """The configurations of the clusters that are served, also of those being deleted."""
        return self.served.configs

    def send(self, cluster: str, message: Message) -> bool:
        """Send a message to a cluster's actor, from any thread. False: no such cluster here."""
        return self.served.actors.send(cluster, message)

    def previewer(self, config: ClusterConfig) -> Reconciler:
        """Make a reconciler with key states of its own, for previews."""
        return self.served.previewer(config)

    # --- taking over ---

    def take_over(self, *, clean: bool, unsettled: Collection[str] = (), hold_zones: bool = False) -> None:
        """Read the configurations, raise all fences, then read checkpoints and named upstreams; ``release_zones`` reads the rest.

        Fences come before all reads of state: what is read may not be changed any more by an earlier master (I2).

        Args:
            clean: the last master ended cleanly, except in the zones that it left ``unsettled``.
            hold_zones: write to no zone before ``release_zones``, which a dry run never calls.
        """
        found = self._retry(self.registered.read)
        configs = {name: config for name, config in found.items() if config is not None}
        self.served.fencing.take_over(configs)
        read = {name: config.possible_resources for name, config in configs.items()}
        # If a newer release wrote one of the items, all of this is None: each cluster reads its own part, and may find that it cannot be served.
        remembered = self._read(partial(self.tables.listeners.remembered, read)) or dict.fromkeys(configs)
        self._retry(self.named.load)
        zones = {zone.id: zone for config in configs.values() for zone in rules_of(config).zones}
        self._taken_over = TakenOver(clean, frozenset(unsettled), zones, zones_held=True)
        for name, of_cluster in remembered.items():
            self.served.configure(Configured(configs[name], of_cluster, unclean=not clean))
        if not hold_zones:
            self.release_zones()

    def release_zones(self) -> None:
        """Start to write to zones. Read the inflight items of zones to settle, then open and promoted keys.

        ``take_over`` calls it, or a recovery, once it knows what is in the zones. Zones are settled even if there is nothing to write: after a
        clean end the unsettled ones, else all that have an inflight item. All other zones start with the first message for them.
        """
        self._taken_over = replace(self._taken_over, zones_held=False)
        # After an end that was not clean, each zone with an inflight item may have a batch of which nobody knows whether it landed.
        to_settle = sorted(self._unsettled()) if self._taken_over.clean else self._retry(self.parts.inflight.zones)
        # Batches in flight may hold keys of clusters that are no longer served.
        for zone_id, inflight in zip(to_settle, self._read_each(self.parts.inflight.read, to_settle), strict=True):
            if inflight is not None:
                self._retry(partial(self.served.host_for_closing, inflight.clusters, zone_id))
        for zone_id in sorted(to_settle):
            self.zones.start(zone_id)
        # What a cluster publishes first: its keys that are open, or have been promoted. None: it reads them itself (``_read``).
        names = unpaused(self.configs)
        for name, queued in zip(names, self._read_each(self.tables.state.queued, names), strict=True):
            self.send(name, TakeUp(queued))

    def _read_each[T, R](self, call: Callable[[T], R], things: Sequence[T]) -> list[R | None]:
        """Call ``call`` for each thing, in parallel, and return the results in this order. See ``_read``."""
        return self.tables.reads(lambda thing: self._read(partial(call, thing)), things)

    def _read[R](self, call: Callable[[], R]) -> R | None:
        """Read what a take-over needs: of all clusters together, or of one cluster or zone. None: a newer release wrote one of the items.

        Whom the item concerns reads its own again later, and then cannot work. Others can.
        """
        try:
            return self._retry(call)
        except NewerSchemaError as newer:
            logger.error("ignored: written by a newer release", reason=str(newer))
            return None

    def _retry[T](self, call: Callable[[], T]) -> T:
        """Repeat a call while DynamoDB throttles it, this process may write, and the deadline has not passed."""
        return retry_while_throttled(call, self.fenced_writer.check, self.parts.scheduler, self.term.deadline)

    def _zone(self, ports: ZonePorts, zone_id: str) -> Host[ZoneFigures]:
        """Make the actor of a zone. It settles first, unless the last master ended cleanly there. The directory ``zones`` calls it."""
        last = self._taken_over
        settled = last.clean and zone_id not in last.unsettled
        actor = ZoneActor(zone_id, ports, settled=settled, zone=last.zones.get(zone_id))
        return Host(ACTOR_OF_ZONE.format(zone_id), actor, self.parts.scheduler, self.activity)

    def _cluster_ports(self, large: Lock) -> ClusterPorts:
        """Return all that a cluster's actor gets from outside: tables, clients, limits, and whom it tells what.

        ``large``: one lock for all clusters, see ``ClusterPorts``.
        """
        parts = self.parts
        return ClusterPorts(
            session=parts.session,
            tables=self.tables,
            fenced_writer=self.fenced_writer,
            connector=parts.connector,
            room=self.room,
            cached_keys=lambda: parts.settings.cached_keys // max(1, len(self.configs)),
            scheduler=parts.scheduler,
            window_seconds=parts.settings.window_seconds,
            window_bytes=parts.settings.window_bytes,
            pause_seconds=self.term.pause_seconds,
            to_cluster=self.send,
            to_zone=self.zones.send,
            to_named=self.named.ask,
            zones=lambda: tuple(self.zones.figures),
            large=large,
            not_master=self.term.not_master,
            removed=self.served.removed.append,
            unreadable=self.served.unreadable.append,
            progress=self.term.progress,
        )

    def _zone_ports(self) -> ZonePorts:
        settings = self.parts.settings
        return ZonePorts(
            client=self.parts.zones,
            inflight=self.parts.inflight,
            fenced_writer=self.fenced_writer,
            to_cluster=self.send,
            scheduler=self.parts.scheduler,
            deployment=settings.deployment,
            shard=settings.shard,
            limits=BatchLimits(settings.batch_elements, settings.batch_characters),
            problems=ZoneProblemTable(self.parts.store, settings.shard, self.parts.session),
            check_holds_lease=self._keeper.check_holds_lease,
            not_master=self.term.not_master,
            progress=self.term.progress,
        )

    def _named_ports(self) -> NamedPorts:
        return NamedPorts(
            shard=self.parts.settings.shard,
            table=NamedUpstreamTable(self.parts.store),
            tables=self.tables,
            fenced_writer=self.fenced_writer,
            scheduler=self.parts.scheduler,
            to_cluster=self.send,
            not_master=self.term.not_master,
        )

    # --- work, and its end ---

    def start(self) -> None:
        """Watch every cluster, and go on with removals. Named upstreams are composed even if there is no cluster."""
        self._reporter.watches_since = self.parts.scheduler.monotonic()
        self.named.start()
        # The order differs in each session, so that slow clusters do not list first, and hold the room for lists, in every session.
        for name in sorted(self.configs, key=lambda name: crc32(f"{self.parts.session} {name}".encode())):
            self.send(name, Listen(self.term.deadline))

    def wait_until_idle(self) -> None:
        """Wait until no actor has anything to do, so that what a recovery or a resync has changed is published before the session ends.

        Returns sooner if the deadline passes or the session must end. Raises NotMasterError once the lease is or may be lost.
        """
        while not (self.activity.idle or self.term.time_is_up):
            self._keeper.check_may_write()
            self.parts.scheduler.sleep(0.05)

    def finish(self, code: ErrorCode, drain_until: float, *, abandon: bool) -> tuple[bool, frozenset[str]]:
        """End all actors, and complete the report. First clusters record what was read; then zones send, and clusters close.

        Args:
            code: why the session ends. Listeners store it as their end.
            drain_until: the time (monotonic) after which nothing is written.
            abandon: another session holds the lease. Write only, where no fence forbids it, that the lease was lost.

        Returns:
            Whether everything has ended and every outcome is known, except in these zones; and these zones. The lease is released with both.
        """
        self.fenced_writer.until_monotonic = drain_until
        # 1. The resync under way stops by itself and answers its caller. The listeners are cut without waiting for it.
        self.resyncs.close()
        self.resyncs.join(_RESYNC_ENDS_SECONDS)
        # 2. Clusters record what their listeners have read, and publish it.
        clean = self.served.stop(code, drain_until, abandon=abandon)
        # 3. Zones send what they can, while clusters still close. Then clusters end.
        until = self.parts.scheduler.monotonic() + 1.0 if abandon else drain_until
        self.named.stop(Drain(until, abandon))
        self.zones.end(Drain(until), until)
        unsettled = self._unsettled()
        clean = self.named.join() and clean
        self.served.end()
        # 4. Is the end clean? Zones with an actor are in ``unsettled`` if they are not. All others need no settling if the last master ended
        # cleanly, or if ``release_zones`` has started an actor for each zone with an inflight item.
        others_are_settled = self._taken_over.clean or not self._taken_over.zones_held
        clean = clean and others_are_settled
        clean = self.resyncs.join(drain_until - self.parts.scheduler.monotonic()) and clean
        if not clean or unsettled:
            self._keeper.give_up_writing()  # a thread that hangs sends nothing later
        self._reporter.fill(self.served.actors.figures.values(), self.zones.figures, self.named.host.figures)
        counts = {"sent": self.fenced_writer.sent, "repeated": self.fenced_writer.repeated}
        self._reporter.report.transactions = counts
        return clean, unsettled

    def _unsettled(self) -> frozenset[str]:
        """Return the zones that the next master has to settle. ``release_zones`` settles them in this session; ``finish`` hands the rest over.

        a zone counts if                                                   why
        ----------------                                                   ---
        the last master left it unsettled, and it has no actor here        nobody has settled it since
        its actor has ended, and its figures are not clean                 an outcome is unknown, or it was never settled here
        its actor hangs in a call                                          the batch of that call may still land
        """
        left = frozenset(zone_id for zone_id in self._taken_over.unsettled if zone_id not in self.zones)
        return left | self.zones.not_ended_well(lambda figures: figures.clean)

    def fresh_lag(self) -> dict[str, float]:
        """Return the lag of what has landed since the last snapshot, as ``percentiles``."""
        return percentiles(self._reporter.fresh_lags(self.zones.figures))

    def snapshot(self, *, lost: bool) -> SessionReport:
        """Make a report of the current counts, for metrics. Notes on the lease which namespace waits longest for its turn (``Lease.turn``).

        ``lost``: another session is the master by now. Then the report has no health.
        """
        zones = self.zones.figures
        found = self._reporter.snapshot(self.served.actors.figures.values(), zones, self.named.host.figures)
        with harmless("what does not get through could not be counted"):
            if not lost:
                steps, details = found.stuck, self._keeper.details
                found.health = self._reporter.health(self.served, zones, steps, self.registered, details)
                seconds, where = self._reporter.turn
                # Epoch, seconds, "cluster/namespace" (``Lease.turn``). If nothing waits any more, the note of the last call is emptied.
                # If there is no such note, the lease stays as it is.
                if seconds >= 1.0 or details.get("turn"):
                    self._keeper.note(turn=[self._keeper.lease.epoch, int(seconds), where] if seconds >= 1.0 else [])
        return found
