"""How ``kubesync status --watch`` reads: beside the drawing, a few clusters at a time, and less often where it takes long."""

import threading
from types import SimpleNamespace
from typing import Any, Final

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import Call, MemoryStore
from harness.waiting import PATIENCE_SECONDS, wait_until
from kubesync.aws.tables.audit import AuditTable, Entry
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.domain.errors import StoreUnavailableError
from kubesync_local.commands.show.watch import Reading, gathered, pause_after
from kubesync_local.commands.show.watch_screen import View
from kubesync_local.workplace.registry import ClusterRegistry

HINT: Final = "Ctrl-C ends it; `kubesync status` shows problems of Services"


def a_view(now: float) -> View:
    return View("main", now, {}, [], [], [], [])


class Source:
    """Views that are read one after the other. Each reading but the first waits until a test lets it go on."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.count = 0
        self.takes = 0.0
        self.fails: Exception | None = None
        self.go_on = threading.Semaphore(0)
        self.pauses: list[float] = []
        self.may_read = threading.Semaphore(0)

    def read(self) -> View:
        self.count += 1
        if self.count > 1:
            assert self.go_on.acquire(timeout=PATIENCE_SECONDS)
        self.clock.advance(self.takes)
        if self.fails is not None:
            raise self.fails
        return a_view(float(self.count))

    def pause(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        assert self.may_read.acquire(timeout=PATIENCE_SECONDS)
        return self.count < 0

    def begin(self) -> None:
        before = self.count
        self.may_read.release()
        wait_until(lambda: self.count > before)

    def end(self) -> None:
        before = len(self.pauses)
        self.go_on.release()
        wait_until(lambda: len(self.pauses) > before)

    def stop(self) -> None:
        self.count = -10
        self.may_read.release()


def test_screen_shows_what_was_read_last_while_reading_takes_long() -> None:
    source = Source()
    with Reading(source.read, source.clock, source.pause) as reading:
        assert reading.seen() == (a_view(1.0), f"read every 5 s; {HINT}", True)
        source.begin()
        assert reading.seen()[0] == a_view(1.0)
        source.clock.advance(12)
        assert reading.seen() == (a_view(1.0), f"being read for 12 s; {HINT}", True)
        source.end()
        assert reading.seen()[0] == a_view(2.0)
        source.stop()


def test_it_reads_less_often_where_reading_takes_long() -> None:
    source = Source()
    source.takes = 4.0
    with Reading(source.read, source.clock, source.pause) as reading:
        assert reading.seen()[1] == f"read every 20 s; {HINT}"
        source.takes = 0.2
        source.begin()
        source.end()
        assert reading.seen()[1] == f"read every 5 s; {HINT}"
        assert source.pauses == [20.0, 5.0]
        source.stop()


def test_reading_that_fails_leaves_what_was_read_and_is_tried_again() -> None:
    source = Source()
    with Reading(source.read, source.clock, source.pause) as reading:
        for error, said in (
            (StoreUnavailableError("DynamoDB cannot be reached"), "not read: DynamoDB cannot be reached"),
            (ValueError("odd"), "not read: ValueError: odd"),
        ):
            source.fails = error
            source.begin()
            source.end()
            assert reading.seen() == (a_view(1.0), said, False)
        source.fails = None
        source.begin()
        source.end()
        assert reading.seen() == (a_view(4.0), f"read every 5 s; {HINT}", True)
        source.stop()


def test_first_reading_that_fails_ends_the_command() -> None:
    source = Source()
    source.fails = StoreUnavailableError("denied")
    with pytest.raises(StoreUnavailableError, match="denied"), Reading(source.read, source.clock, source.pause):
        pass


@pytest.mark.parametrize(
    ("took", "failed", "pause"), [(0.0, False, 5.0), (1.0, False, 5.0), (7.2, False, 36.0), (2.0, True, 5.0), (12.0, True, 12.0)]
)  # fmt: skip
def test_pause_between_readings(took: float, failed: bool, pause: float) -> None:
    assert pause_after(took, failed=failed) == pause


class Tables:
    """Clusters whose changes are read, and how many requests wait at a time."""

    def __init__(self, clusters: int) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(clock=self.clock, faults=self)
        self.gate: threading.Event | None = None
        for number in range(clusters):
            zone = ZoneReference(id="Z1", name="example.com")
            config = ClusterConfig(name=f"c{number}", server="https://10.0.0.1", domain="example.com", zones=(zone,))
            ClusterRegistry(self.store).put(config)
        clusters_table = ClusterRegistry(self.store)
        self.work: Any = SimpleNamespace(
            store=self.store,
            settings=SimpleNamespace(shard="0", deployment="test"),
            lease=LeaseTable(self.store, "0"),
            now=self.clock.epoch_seconds,
            chosen=lambda _: clusters_table.all(),
        )

    def changes_asked(self) -> list[Call]:
        return [call for call in list(self.store.calls) if call.partition.startswith("changes#")]

    def before(self, call: Call) -> None:
        if self.gate is not None and call.partition.startswith("changes#"):
            assert self.gate.wait(PATIENCE_SECONDS)

    def after(self, call: Call) -> None: ...


def test_several_clusters_are_read_at_a_time() -> None:
    tables = Tables(12)
    tables.gate = threading.Event()
    found: list[View] = []
    thread = threading.Thread(target=lambda: found.append(gathered(tables.work, "")))
    thread.start()
    wait_until(lambda: len(tables.changes_asked()) == 8)
    tables.gate.set()
    thread.join(PATIENCE_SECONDS)

    (view,) = found
    assert sorted(each.name for each in view.clusters) == sorted(f"c{number}" for number in range(12))
    assert len(tables.changes_asked()) == 12


def test_busy_cluster_costs_one_small_request_for_its_changes() -> None:
    tables = Tables(1)
    now, audit = tables.clock.epoch_seconds(), AuditTable("s1")
    for number in range(300):
        made = {"ttl": 30, "values": ["10.0.0.1"]}
        entry = Entry(f"record s{number}.example.com A in Z1", None, made, "watch", "c0/shop/s")
        tables.store.write(audit.changes("c0", [entry], 1, now - number, f"t{number}"))
    limits: list[object] = []
    really = tables.store.query

    def query(table: str, partition: str, **wanted: Any) -> Any:
        if partition.startswith("changes#"):
            limits.append(wanted.get("limit"))
        return really(table, partition, **wanted)

    tables.store.query = query  # type: ignore[method-assign]

    view = gathered(tables.work, "")

    assert limits == [40]
    assert [row["name"] for row in view.changes] == [f"s{number}.example.com" for number in range(40)]
