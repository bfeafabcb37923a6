"""A deployment under CloudWatch's eyes: a scheduler starts sessions, each writes its metrics, and the template's alarms are evaluated.

watched = WatchedDeployment()
watched.schedule(10)                  # minutes
watched.break_api(ConnectError("refused"))
watched.schedule(5)
assert watched.alarms == {"ListenersFailing"}
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from harness.cloudwatch import CloudWatch
from harness.deployment import Deployment
from kubesync.aws.dynamodb.store import CONTROL, Item, Key, Put
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.items import SCHEMA, SchemaGuard
from kubesync.domain.dns.records import RecordSet
from kubesync.domain.errors import BodyError, ListenerError, StoreUnavailableError
from kubesync.domain.objects import Resource
from kubesync.domain.sources import services
from kubesync.kubernetes.list_room import ListReservation
from kubesync.kubernetes.ports import WatchSink
from kubesync.telemetry.metrics import MetricsPublisher
from kubesync_local.commands.show.status import Place, status_document
from kubesync_local.commands.show.status_table import show_status
from kubesync_local.standins.route53.zone.model import Limits
from kubesync_local.workplace.registry import ClusterRegistry
from simulation.cluster import LIST_BYTES, ScriptedConnector, ScriptedReflector
from simulation.gate import Outward
from simulation.world import Running

MINUTE: Final = 60.0
_TICK: Final = 5.0
# As the reflector's: from half a second, doubling.
_LONGEST_PAUSE: Final = 30.0
_ON_LAMBDA: Final = {"lease_renew_seconds": 5.0, "max_runtime_seconds": 840, "stand_by_seconds": 0.0}


@dataclass
class Fault:
    """How an API server fails. ``hangs``: seconds until the error. ``stands``: a watch is accepted, and breaks off after so many seconds.
    ``in_the_room``: lists take room meanwhile, and watches go on.
    """

    error: ListenerError
    hangs: float = 0.0
    stands: float | None = None
    only: frozenset[Resource] = frozenset(services.KIND.resources)
    in_the_room: bool = False


@dataclass
class Faults:
    """Of all clusters, by name. ``unusable``: no reflector can be made."""

    of: dict[str, Fault] = field(default_factory=dict)
    unusable: dict[str, ListenerError] = field(default_factory=dict)


class FaultyReflector(ScriptedReflector):
    faults: Faults
    errors = 0

    def _fault(self) -> Fault | None:
        fault = self.faults.of.get(self._cluster.name)
        return fault if fault is not None and self._resource in fault.only else None

    def _fails(self, sink: WatchSink, fault: Fault) -> None:
        if fault.hangs:
            self._process.sleep(fault.hangs)
        if self._stopped:
            return
        self.errors += 1
        sink.on_error(fault.error, consecutive=self.errors)
        self._news.wait("a pause after an error", min(_LONGEST_PAUSE, 0.5 * 2**self.errors))

    def _connect(self, sink: WatchSink) -> None:
        fault = self._fault()
        if fault is None or fault.in_the_room:
            self.errors = 0
            super()._connect(sink)
        elif fault.stands is None:
            self._fails(sink, fault)
        else:
            sink.on_resumed()
            self._process.sleep(fault.stands)
            self._fails(sink, fault)

    def _list(self, sink: WatchSink, deadline_monotonic: float) -> None:
        fault = self._fault()
        if fault is None or fault.stands is not None:
            if self._reservation.take(LIST_BYTES, deadline_monotonic, partial(self._waits_long, sink)):
                super()._list(sink, deadline_monotonic)
        elif not fault.in_the_room or self._reservation.take(LIST_BYTES, deadline_monotonic):
            self._fails(sink, fault)
            self._reservation.release()

    def _waits_long(self, sink: WatchSink, seconds: float) -> None:
        sink.on_error(BodyError(f"the list has waited for room for {seconds:.0f} s"), consecutive=1)


class WatchedDeployment(Deployment):
    """See the module. Sessions last 14 minutes, or until they end by themselves.

    Args:
        every: minutes between two starts of a session.
        parameters: of the template.

    ``enabled``: the schedule is. ``lasts``: seconds until Lambda ends a session; None: never. ``undelivered``: dead letters.
    ``loses_lease_after``: seconds until another process takes the lease of a session, and ends. ``holds_lease``: a process that
    writes no metrics renews the lease. ``journal_before``, ``replaced``: what a cause has replaced.
    """

    def __init__(
        self,
        *,
        every: int = 1,
        limits: Limits | None = None,
        parameters: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        **config: Any,
    ) -> None:
        super().__init__(limits=limits, settings={**_ON_LAMBDA, **(settings or {})}, **config)
        self.faults = faults = Faults()

        class Reflector(FaultyReflector):
            pass

        Reflector.faults = faults

        class Connector(ScriptedConnector):
            reflector_type = Reflector

            def reflector(
                self, config: ClusterConfig, resource: Resource, reservation: ListReservation
            ) -> ScriptedReflector:
                if config.name in faults.unusable:
                    raise faults.unusable[config.name]
                return super().reflector(config, resource, reservation)

        self.world.connector_type = Connector  # type: ignore[misc]  # of this world alone
        self.cloud = CloudWatch(parameters or {}, self.epoch)
        # The stack has been there before: a new one is without a master for its first minutes.
        self.cloud.put("kubesync", "MasterHeartbeat", {"service": "kubesync-test"}, 1, self.epoch - MINUTE)
        self.every = every
        self.enabled = True
        self.before_start: Callable[[], None] = lambda: None
        self.undelivered = 0
        self.held: set[str] = set()
        self.lasts: float | None = None
        self.loses_lease_after: float | None = None
        self.holds_lease = False
        self.journal_before: RecordSet | None = None
        self.replaced: tuple[Key, Item] | None = None
        self._next_start = self.epoch
        self._publisher: MetricsPublisher | None = None
        self._ended = True
        self._began = self.epoch
        self._lost: Running | None = None

    @property
    def epoch(self) -> float:
        return self.world.clock.epoch_seconds()

    # --- faults ---

    def break_api(self, error: ListenerError, cluster: str = "prod", **how: Any) -> None:
        """From now on every list and watch of a cluster fails so; watches that stand end."""
        self.faults.of[cluster] = Fault(error, **how)
        self.world.clusters[cluster].cut()

    def mend_api(self, cluster: str = "prod") -> None:
        del self.faults.of[cluster]

    def hold_writes(self, *names: str) -> None:
        """DynamoDB refuses every write of the actors of these clusters (``prod``) or of all (``*``)."""
        self.held = set(names)

    def _before(self, call: Outward) -> None:
        super()._before(call)
        if call.service == "dynamodb" and call.writes:
            mine = self.held.intersection(call.thread.split("/"))
            if mine or "*" in self.held:
                raise StoreUnavailableError("ProvisionedThroughputExceededException: the table is throttled")

    # --- sessions ---

    def start(self) -> Running:
        """Begin the next session, with its metrics."""
        gate = self.world.new_gate()
        gate.on_before, gate.on_after = self._before, self._after
        self.running = running = self.world.new_session(gate)
        publisher = self._publisher = MetricsPublisher("test")
        running.session.on_beat = lambda snapshot: self._write(lambda: publisher.beat(snapshot))
        running.session.on_resync = lambda ended: self._write(lambda: publisher.resync_ended(ended))
        self._ended = False
        self._began = self.epoch
        running.start()
        return running

    def schedule(self, minutes: float) -> WatchedDeployment:
        """Let so many minutes pass, in which sessions start on schedule."""
        until = self.epoch + minutes * MINUTE
        while self.epoch < until:
            if self.epoch >= self._next_start:
                self._next_start += self.every * MINUTE
                if self.enabled and (self.running is None or not self.running.alive):
                    self._invoke()
            if self.holds_lease:
                self._renew_by_hand()
            self.world.clock.advance(min(_TICK, until - self.epoch, max(0.001, self._next_start - self.epoch)))
            if (
                self.lasts is not None
                and self.running is not None
                and self.running.alive
                and self.epoch - self._began >= self.lasts
            ):
                self.kill()
            if self.loses_lease_after is not None and self.epoch - self._began >= self.loses_lease_after:
                self._lose_lease_once()
            self._see_the_end()
            self.cloud.put(
                "AWS/SQS",
                "ApproximateNumberOfMessagesVisible",
                {"QueueName": "DeadLetters.QueueName"},
                self.undelivered,
                self.epoch,
            )
            self.cloud.evaluate(self.epoch)
        return self

    def _invoke(self) -> None:
        self.before_start()
        self.start()

    def _lose_lease_once(self) -> None:
        if self.running is not None and self.running is not self._lost and self.running.alive:
            self._lost = self.running
            self.lose_lease()
            self.running.wait()

    def _renew_by_hand(self) -> None:
        key = Key(CONTROL, "lease#0", "lease")
        item = self.world.store.peek(key)
        assert item is not None
        renewal, until = int(str(item["renewal"])) + 1, int((self.epoch + 15.0) * 1000)
        held: Item = {name: value for name, value in item.items() if name != "released_at_ms"}
        self.store.write(
            Put(
                key,
                {**held, "holder": "somebody-else", "renewal": renewal, "expires_at_ms": until, "ends_at_ms": until},
            )
        )

    def _see_the_end(self) -> None:
        running = self.running
        if running is None or running.alive or self._ended:
            return
        self._ended = True
        failed = running.report is None
        self.undelivered += failed
        self.cloud.put("AWS/Lambda", "Errors", {"FunctionName": "watch"}, int(failed), self.epoch)
        report, publisher = running.report, self._publisher
        if report is not None and publisher is not None:
            self._write(lambda: publisher.ended(report))

    def _write(self, metrics: Callable[[], None]) -> None:
        written = io.StringIO()
        with redirect_stdout(written):
            metrics()
        self.cloud.lines(written.getvalue(), self.epoch)

    # --- what people see ---

    @property
    def alarms(self) -> set[str]:
        """Alarms that are on."""
        return self.cloud.on

    def raised(self) -> set[str]:
        """Alarms that were ever on."""
        return {
            name for name, alarm in self.cloud.alarms.items() if any(state == "ALARM" for _, state in alarm.changes)
        }

    def status(self) -> str:
        """What ``kubesync status`` prints, in lines of any length."""
        store = SchemaGuard(self.store, SCHEMA)
        place = SimpleNamespace(
            store=store, lease=LeaseTable(store, "0"), settings=self.world.settings, now=lambda: self.epoch
        )
        printed = io.StringIO()
        with self.world.unseen(), pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
            patch.setenv("COLUMNS", "1000")
            show_status(status_document(cast(Place, place), ClusterRegistry(store).all()), self.epoch)
        return printed.getvalue()
