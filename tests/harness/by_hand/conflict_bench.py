"""Names of one zone that are in conflict, over sessions that hand over: a reconciler, a zone's writer and a strict zone, on one thread.

Time is the bench's own: it passes with waits, and by what a request takes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from harness.by_hand.desk import World
from harness.by_hand.zone_bench import ZONE, StrictZone
from harness.fakes.memory_store import Call, NoFaults
from harness.seen.builders import a_config, saw
from kubesync.aws.route53.zones import BatchChange
from kubesync.aws.tables.control.inflight import InflightTable
from kubesync.aws.tables.control.zone_problems import ZoneProblemTable
from kubesync.cluster.keys.reconciler import Recorded
from kubesync.domain.batches import BatchLimits
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.errors import KubesyncError
from kubesync.domain.objects import Service, ServiceKey
from kubesync.zone.conflict_checks import Reclaimer
from kubesync.zone.journal import ZoneMeans
from kubesync.zone.writer import ZoneWriter
from kubesync_local.standins.route53.zone.model import Limits

NAMES_OF_A_PAGE = 300
STORE_SECONDS, LISTING_SECONDS, BATCH_SECONDS = 0.005, 0.1, 0.2


class CountedZone(StrictZone):
    """Counts requests: ``lists`` (a walk is one for each page) and ``batches``. Each takes its time."""

    def __init__(self, bench: ConflictBench) -> None:
        super().__init__(Limits(sets_of_zone=20_000))
        self.calls: Counter[str] = Counter()
        self._bench = bench

    def change(self, zone_id: str, changes: Sequence[BatchChange], comment: str = "") -> None:
        self.calls["batches"] += 1
        self._bench.world.clock.advance(BATCH_SECONDS)
        super().change(zone_id, changes, comment)

    def read(self, zone_id: str, name: str) -> dict[RecordKey, RecordSet]:
        self.calls["lists"] += 1
        self._bench.world.clock.advance(LISTING_SECONDS)
        return self.at(name)

    def walk(self, zone_id: str) -> Iterator[tuple[RecordKey, RecordSet]]:
        found = list(super().walk(zone_id))
        pages = math.ceil(len(found) / NAMES_OF_A_PAGE)
        self.calls["lists"] += pages
        self._bench.world.clock.advance(pages * LISTING_SECONDS)
        yield from found


class _Timed(NoFaults):
    def __init__(self, bench: ConflictBench) -> None:
        self._bench = bench

    def after(self, call: Call) -> None:
        del call
        self._bench.world.clock.advance(STORE_SECONDS)


class ConflictBench:
    """Cluster ``prod``; ``web-<n>`` of namespace ``shop`` at the names where somebody else's sets stand."""

    def __init__(self, names: int) -> None:
        self.world = World(a_config(srv=False))
        self.zone = CountedZone(self)
        self.names = [f"web-{number:04d}" for number in range(names)]
        for name in self.names:
            self.zone.by_hand("CREATE", name_of(name), "A", "192.0.2.1")
        self.session(settled=False)
        self.desk.begin(*(saw(address("10.0.0.1"), 2, name) for name in self.names))
        self.hand_over(clean=False)
        self.world.store.faults = _Timed(self)

    # --- sessions ---

    def session(self, *, settled: bool = True) -> None:
        """Take over from the last session, with nothing queued yet."""
        self.desk = desk = self.world.session()
        clock, store = self.world.clock, self.world.store
        self.reclaimer = Reclaimer(
            self.zone, desk.tables.claims, desk.ledgers, desk.reconcilers, desk.outcomes, clock, self._follow_up
        )
        self.means = ZoneMeans(
            client=self.zone,
            inflight=InflightTable(store, "0"),
            fenced_writer=desk.fenced_writer,
            outcomes=desk.outcomes,
            reclaim=self.reclaimer.reclaim,
            ledgers=desk.ledgers,
            scheduler=clock,
            deployment="test",
            shard="0",
            limits=BatchLimits(),
            problems=ZoneProblemTable(store, "0", "session"),
            truly_master=lambda: None,
        )
        self.writer = ZoneWriter(ZONE.id, self.means, settled=settled, zone=ZONE)

    def hand_over(self, *, clean: bool = True) -> None:
        """The next session begins, and finds what is open."""
        self.session(settled=clean)
        marks = self.desk.tables.state.queued("prod").marks
        for state in self.desk.ledger.states(marks).values():
            assert state.opened is not None
            wait = state.opened.retry_at if state.opened.attempts else 0.0
            self.writer.add([state.key], None, {state.key: wait})

    def _follow_up(self, _cluster: str, recorded: Recorded) -> None:
        self.opened(recorded)

    def opened(self, recorded: Recorded, since: float | None = None) -> None:
        """What the pool does with keys that were recorded."""
        for state in self.desk.ledger.states(recorded.opened).values():
            news = {state.key: 0.0} if state.opened is None or not state.opened.attempts else {}
            self.writer.add([state.key], since, news)

    # --- what happens ---

    def publish(self, name: str, value: str, version: int, since: float | None = None) -> None:
        """A Service is seen with this address."""
        self.opened(self.desk.record(saw(address(value), version, name)), since)

    def free(self, *names: str) -> None:
        """A person removes the foreign sets."""
        for name in names:
            self.zone.by_hand("DELETE", name_of(name), "A", "192.0.2.1")

    def run(self, seconds: float, until: float | None = None) -> None:
        """Let so many seconds pass; the writer does whatever is due."""
        clock = self.world.clock
        end = clock.monotonic() + seconds if until is None else until
        while clock.monotonic() < end:
            try:
                wait = self.writer.step()
            except KubesyncError:
                wait = 5.0  # what the pool does
            if wait is None or wait > 0:
                clock.advance(min(end - clock.monotonic(), 1e9 if wait is None else wait))

    # --- what came of it ---

    def conflicts(self) -> set[str]:
        """Services with a name in conflict, as stored."""
        return {state.key.name for state in self.desk.tables.state.load_all("prod") if state.conflicts}

    def key(self, name: str) -> ServiceKey:
        return ServiceKey("prod", "shop", name)

    def counts(self) -> Counter[str]:
        """Requests since this was asked last: ``lists``, ``batches``, and DynamoDB's by operation."""
        found = self.zone.calls + Counter(call.operation for call in self.world.store.calls)
        found["items read"] = sum(len(c.keys) for c in self.world.store.calls if c.operation == "batch_get_item")
        found["items written"] = sum(len(call.actions) for call in self.world.store.calls)
        self.zone.calls.clear()
        self.world.store.calls.clear()
        return found

    def lags(self) -> list[float]:
        """Seconds from news to the accepted batch, in this session."""
        return list(self.writer.report.lags)


def address(value: str) -> Service:
    return Service("ClusterIP", (value,))


def name_of(service: str) -> str:
    """The name that a Service's record set has."""
    return f"{service}.shop.svc.prod.example.com"
