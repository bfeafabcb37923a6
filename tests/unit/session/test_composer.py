"""The composer, stepped by hand: notes, what is read and written for them, and what happens in between (I1, I2, I4, I6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kubesync.aws.audit import NAMED, AuditTable, Span
from kubesync.aws.named_upstreams import NamedUpstreamTable, is_mark
from kubesync.aws.resync_requests import ResyncRequest
from kubesync.aws.schema_guard import SchemaGuard
from kubesync.aws.store import CONTROL, UPSTREAMS, Delete, Key, Put, Store
from kubesync.aws.upstreams import UpstreamTable
from kubesync.domain.errors import NotMasterError, StoreBusyError, StoreOutcomeUnknownError
from kubesync.domain.records import Node
from kubesync.domain.state import UpstreamState
from kubesync.session.composer import Composer, ComposerMeans
from kubesync.session.ledger import Ledger
from kubesync.session.named_referrals import NamedReferrals
from kubesync.session.transactor import Transactor
from support.fencing import raise_shard_fence
from support.manual_clock import ManualClock
from support.memory_store import Call, MemoryStore, NoFaults
from support.named import member, named_item, named_nodes, notes, register, unregister

WEB, API = "prod/shop/web/80/TCP", "prod/shop/api/80/TCP"


class _Lock:
    """A cluster's lock; whoever waits for it lets its holder finish first."""

    def __init__(self) -> None:
        self.holder: Callable[[], None] | None = None
        self.taken = 0

    def acquire(self, timeout: float) -> bool:
        assert timeout > 0
        self.taken += 1
        if self.holder is not None:
            self.holder()
        self.holder = None
        return True

    def release(self) -> None:
        """Nothing waits for it."""


@dataclass
class _LedgerOfLock:
    lock: _Lock = field(default_factory=_Lock)


class Bench:
    """A composer, and Services' upstreams written as a recorder writes them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(clock=self.clock)
        self.upstreams = UpstreamTable(self.store)
        self.lost: list[NotMasterError] = []
        self.ledger = _LedgerOfLock()
        raise_shard_fence(self.store, 7)
        self.composer, self.referrals = self.new_composer(7)

    def new_composer(self, epoch: int, through: Store | None = None) -> tuple[Composer, NamedReferrals]:
        store = through or self.store
        referrals = NamedReferrals("0")
        transactor = Transactor(store, epoch, lambda: None, self.clock, "0")
        ledgers = cast("dict[str, Ledger]", {"prod": self.ledger})
        table, audit = NamedUpstreamTable(store), AuditTable(store, "session")
        means = ComposerMeans(
            "0", table, UpstreamTable(store), referrals, transactor, audit, self.clock, ledgers, self.lost.append, 1
        )
        return Composer(means), referrals

    def write(self, upstream: str, *ips: str, gone: bool = False, noted: bool = True) -> None:
        """A Service's upstream, and the note that is written with it."""
        self.clock.advance(1)
        stored = self.upstreams.read(upstream)
        stands = None if stored is None else UpstreamState(stored.version, "", stored.items)
        nodes = [Node(ip, 8080, ready=True) for ip in ips]
        version = 1 if stored is None else stored.version + 1
        if gone:
            actions = self.upstreams.remove(upstream, stands, self.clock.epoch())
        else:
            actions = self.upstreams.put(upstream, stands, nodes, self.clock.epoch())[1]
        note = self.referrals.notes(upstream, version) if noted else ()
        self.store.transact([*actions, *note], Transactor.token())
        self.referrals.written(note)

    def compare(self, cluster: str = "", *, dry_run: bool = False, force: bool = False) -> list[dict[str, Any]]:
        return self.composer.compare(ResyncRequest("asked", cluster, dry_run, force, 0), lambda: None)

    def ips(self, name: str) -> list[str] | None:
        nodes = named_nodes(self.store, name)
        return None if nodes is None else [node["ip"] for node in nodes]

    def version(self, name: str) -> int:
        stored = named_item(self.store, name)
        assert stored is not None
        return stored.version

    def audited(self) -> list[dict[str, Any]]:
        now = self.clock.epoch()
        rows = AuditTable(self.store, "").read_changes(NAMED, now, Span(now - 3600, now + 3600))
        return [{name: row[name] for name in ("upstream", "from", "to", "why")} for row in rows]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_was_registered_is_composed_and_the_note_is_gone(bench: Bench) -> None:
    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB, 3), member("192.0.2.1:80", backup=True))
    assert bench.composer.turn() is None
    assert named_nodes(bench.store, "shop") == [
        {"ip": "10.1.0.1", "port": 8080, "ready": True, "weight": 3},
        {"ip": "192.0.2.1", "port": 80, "ready": True, "backup": True},
    ]
    assert notes(bench.store) == {}
    assert bench.audited() == [
        {"upstream": "named/shop", "from": None, "to": "version 1, 2 nodes", "why": "configuration"}
    ]


def test_change_of_a_service_is_composed_into_all_that_are_made_of_it(bench: Bench) -> None:
    register(bench.store, "inner", member(WEB))
    register(bench.store, "outer", member("inner"), member(API))
    bench.composer.turn()
    noted = []
    for act in (lambda: bench.write(WEB, "10.1.0.1"), bench.composer.turn):
        act()
        noted.append(bench.composer.noted)
    assert noted == [True, False]
    assert (bench.ips("inner"), bench.ips("outer")) == (["10.1.0.1"], ["10.1.0.1"])
    bench.write(API, "10.2.0.1")
    bench.composer.turn()
    assert (bench.version("inner"), bench.version("outer")) == (2, 3)
    assert bench.ips("outer") == ["10.1.0.1", "10.2.0.1"]
    bench.write(WEB, gone=True)
    bench.composer.turn()
    assert (bench.ips("inner"), bench.ips("outer")) == ([], ["10.2.0.1"])
    assert bench.audited()[0]["why"] == f"upstream {WEB} version 2"


def test_i6_i7_nothing_is_noted_read_or_written_for_what_nobody_refers_to(bench: Bench) -> None:
    register(bench.store, "shop", member(WEB))
    bench.composer.turn()
    bench.write(API, "10.2.0.1")
    assert (notes(bench.store), bench.composer.noted) == ({}, False)
    bench.write(WEB, "10.1.0.1")
    bench.store.calls.clear()
    bench.composer.turn()
    assert [(call.operation, call.partition or [key.sort for key in call.keys]) for call in bench.store.calls] == [
        ("query", "named-marks#0"),
        ("get_item", ["#registry"]),
        ("query", WEB),
        ("query", "named/shop"),
        ("transact_write_items", []),
    ]


def test_i6_what_comes_to_the_same_nodes_is_not_written(bench: Bench) -> None:
    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB), member("10.1.0.1:8080"))
    bench.composer.turn()
    bench.write(WEB)
    bench.composer.turn()
    assert (bench.version("shop"), notes(bench.store)) == (1, {})


def test_removed_one_leaves_a_mark_with_its_version_and_returns_with_the_next(bench: Bench) -> None:
    register(bench.store, "shop", member("192.0.2.1:80"))
    bench.composer.turn()
    unregister(bench.store, "shop")
    bench.composer.turn()
    stored = named_item(bench.store, "shop")
    assert stored is not None
    assert (stored.deleted, stored.version, stored.nodes) == (True, 2, ())
    assert notes(bench.store) == {}
    register(bench.store, "shop", member("192.0.2.2:80"))
    bench.composer.turn()
    assert (bench.version("shop"), bench.ips("shop")) == (3, ["192.0.2.2"])


def test_many_nodes_are_written_in_slices_and_surplus_ones_go(bench: Bench) -> None:
    names = [f"prod/shop/s{number}/80/TCP" for number in range(4)]
    for number, name in enumerate(names):
        bench.write(name, *(f"10.{number}.{n // 250}.{n % 250}" for n in range(800)))
    register(bench.store, "all", *(member(name) for name in names))
    bench.composer.turn()
    stored = named_item(bench.store, "all")
    assert stored is not None
    assert (stored.slices, len(stored.nodes), stored.whole) == (2, 3200, True)
    for name in names[1:]:
        bench.write(name, gone=True)
    bench.composer.turn()
    stored = named_item(bench.store, "all")
    assert stored is not None
    assert (stored.slices, len(stored.nodes), stored.items, stored.whole) == (1, 800, 1, True)


# --- in between ---


class _Strikes(NoFaults):
    """Does something at a write of a named upstream, once."""

    def __init__(self, *, before: Callable[[], None] = lambda: None, after: Callable[[], None] = lambda: None) -> None:
        self._before, self._after = before, after
        self.struck = 0

    def before(self, call: Call) -> None:
        if self._is_it(call):
            self.struck += 1
            if self.struck == 1:
                self._before()

    def after(self, call: Call) -> None:
        if self._is_it(call) and self.struck == 1:
            self._after()

    @staticmethod
    def _is_it(call: Call) -> bool:
        return any(action.key.partition.startswith("named/") for action in call.actions)


def test_i1_change_that_comes_while_composing_is_not_lost(bench: Bench) -> None:
    """The note that would be taken away is another one by now: the transaction is refused, and all is read again."""
    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB))
    bench.composer.turn()
    bench.write(WEB, "10.1.0.2")
    bench.store.faults = strikes = _Strikes(before=lambda: bench.write(WEB, "10.1.0.3"))
    bench.composer.turn()
    assert strikes.struck == 2
    assert (bench.ips("shop"), bench.version("shop"), notes(bench.store)) == (["10.1.0.3"], 2, {})


def test_i1_configuration_that_changes_while_composing_is_not_lost(bench: Bench) -> None:
    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB))
    bench.store.faults = _Strikes(before=lambda: register(bench.store, "shop", member("192.0.2.1:80")))
    bench.composer.turn()
    assert (bench.ips("shop"), notes(bench.store)) == (["192.0.2.1"], {})


def test_i1_what_a_dead_session_did_not_compose_is_noted_for_the_next(bench: Bench) -> None:
    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB))
    bench.composer.turn()
    bench.write(WEB, "10.1.0.2")
    raise_shard_fence(bench.store, 8)
    successor, _ = bench.new_composer(8)
    successor.load()
    successor.turn()
    assert (bench.ips("shop"), notes(bench.store)) == (["10.1.0.2"], {})


@pytest.mark.parametrize("landed", [False, True])
def test_i1_answer_that_is_lost_changes_nothing_in_the_end(bench: Bench, *, landed: bool) -> None:
    def lose() -> None:
        raise StoreOutcomeUnknownError("no answer")

    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB))
    bench.store.faults = _Strikes(**{"after" if landed else "before": lose})
    assert bench.composer.turn() is None
    assert (bench.ips("shop"), bench.version("shop"), notes(bench.store)) == (["10.1.0.1"], 1, {})


def test_i1_service_that_is_just_being_recorded_when_it_is_first_referred_to_is_not_lost(bench: Bench) -> None:
    """Its recorder planned it before anybody referred to it, and writes it without a note: under the cluster's lock."""
    bench.write(WEB, "10.1.0.1")
    bench.composer.load()
    bench.ledger.lock.holder = lambda: bench.write(WEB, "10.1.0.2", noted=False)
    register(bench.store, "shop", member(WEB))
    bench.composer.turn()
    assert bench.ips("shop") == ["10.1.0.2"]
    bench.write(WEB, "10.1.0.3")
    bench.composer.turn()
    assert bench.ledger.lock.taken == 1


def test_i2_composer_of_a_master_that_was_fenced_out_writes_nothing_and_ends_its_session(bench: Bench) -> None:
    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB))
    raise_shard_fence(bench.store, 8)
    before = bench.store.dump()
    assert bench.composer.turn() is None
    assert bench.store.dump() == before
    assert [str(error) for error in bench.lost] == ["another master has fenced this one out"]


def test_busy_table_is_tried_again_later_and_later(bench: Bench) -> None:
    class _Busy(NoFaults):
        def before(self, call: Call) -> None:
            raise StoreBusyError("throttled")

    register(bench.store, "shop", member("192.0.2.1:80"))
    bench.store.faults = _Busy()
    assert [bench.composer.turn() for _ in range(8)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert bench.composer.report.problem == "throttled"
    bench.store.faults = NoFaults()
    assert bench.composer.turn() is None
    assert (bench.ips("shop"), bench.composer.report.problem) == (["192.0.2.1"], "")


def test_i4_upstream_that_somebody_has_broken_stops_only_what_is_made_of_it(bench: Bench) -> None:
    bench.write(WEB, "10.1.0.1")
    bench.write(API, "10.2.0.1")
    for name, upstream in (("of-web", WEB), ("of-api", API), ("of-both", WEB)):
        register(bench.store, name, member(upstream), *([member(API)] if name == "of-both" else []))
    bench.composer.turn()
    for upstream in (WEB, API):
        bench.write(upstream, "10.3.0.1")
    item = dict(bench.store.get(Key(UPSTREAMS, WEB, 0)) or {})
    bench.store.write(Put(Key(UPSTREAMS, WEB, 0), {**item, "slices": 2}))
    assert bench.composer.turn() == 0.5
    assert [bench.ips(name) for name in ("of-web", "of-api", "of-both")] == [
        ["10.1.0.1"],
        ["10.3.0.1"],
        ["10.1.0.1", "10.2.0.1"],
    ]
    assert list(notes(bench.store)) == [API, WEB]
    assert bench.composer.report.problem.startswith(f"cannot be read whole: {WEB};")
    bench.store.write(Put(Key(UPSTREAMS, WEB, 0), item))
    assert bench.composer.turn() is None
    assert (bench.ips("of-both"), notes(bench.store)) == (["10.3.0.1"], {})


def test_i4_named_upstream_of_a_newer_release_is_left_to_it(bench: Bench) -> None:
    register(bench.store, "shop", member("192.0.2.1:80"))
    register(bench.store, "newer", member("192.0.2.2:80"))
    place = Key(CONTROL, "named-upstreams", "newer")
    bench.store.write(Put(place, {**dict(bench.store.get(place) or {}), "v": 2}))
    bench.composer.turn()
    assert (bench.ips("shop"), named_item(bench.store, "newer")) == (["192.0.2.1"], None)
    assert notes(bench.store) == {"named/newer": 2}


@pytest.mark.parametrize("upstream", [WEB, "named/of-web"])
def test_i4_item_of_a_newer_release_stops_only_what_is_made_of_it(bench: Bench, upstream: str) -> None:
    bench.write(WEB, "10.1.0.1")
    register(bench.store, "of-web", member(WEB))
    bench.composer.turn()
    place = Key(UPSTREAMS, upstream, 0)
    bench.store.write(Put(place, {**dict(bench.store.get(place) or {}), "v": 2}))
    composer, _ = bench.new_composer(7, SchemaGuard(bench.store))
    register(bench.store, "of-web", member(WEB, 2))
    register(bench.store, "other", member("192.0.2.1:80"))
    assert composer.turn() == 0.5
    assert (bench.version("of-web"), bench.ips("other"), list(notes(bench.store))) == (
        1,
        ["192.0.2.1"],
        ["named/of-web"],
    )


def test_named_upstream_of_another_shard_is_left_to_its_master(bench: Bench) -> None:
    register(bench.store, "shop", member("192.0.2.1:80"))
    bench.composer.turn()
    unregister(bench.store, "shop")
    register(bench.store, "shop", member("192.0.2.9:80"), shard="b")
    bench.composer.turn()
    assert (bench.ips("shop"), notes(bench.store), notes(bench.store, "b")) == (["192.0.2.1"], {}, {"named/shop": 3})


# --- full resync ---


def test_comparison_reports_what_differs_and_mends_it(bench: Bench) -> None:
    for name in ("right", "changed", "missing"):
        register(bench.store, name, member("192.0.2.1:80"))
    bench.composer.turn()
    other = [Node("192.0.2.66", 80, ready=True)]
    for name, stands in (("changed", UpstreamState(1, "", 1)), ("stray", None)):
        bench.store.transact(bench.upstreams.put(f"named/{name}", stands, other, 0)[1], Transactor.token())
    bench.store.transact(bench.upstreams.remove("named/missing", UpstreamState(1, "", 1), 0), Transactor.token())
    wanted = [
        {"upstream": "named/changed", "drift": "changed"},
        {"upstream": "named/missing", "drift": "missing"},
        {"upstream": "named/stray", "drift": "stray"},
    ]
    before = bench.store.dump()
    assert bench.compare(dry_run=True) == wanted
    assert bench.store.dump() == before
    assert bench.compare() == wanted
    assert [bench.ips(name) for name in ("right", "changed", "missing", "stray")] == [
        *[["192.0.2.1"]] * 3,
        ["192.0.2.66"],
    ]
    assert [bench.version(name) for name in ("right", "changed", "missing", "stray")] == [1, 3, 3, 1]


def test_i5_stray_one_is_removed_by_force_only(bench: Bench) -> None:
    """A registry that was lost does not prove that nobody wants it."""
    bench.store.transact(bench.upstreams.put("named/stray", None, [], 0)[1], Transactor.token())
    stray = [{"upstream": "named/stray", "drift": "stray"}]
    assert [bench.compare(), bench.ips("stray")] == [stray, []]
    assert [bench.compare(dry_run=True, force=True), bench.ips("stray")] == [stray, []]
    assert [bench.compare(force=True), bench.ips("stray")] == [stray, None]
    assert bench.compare(force=True) == []


def test_comparison_of_a_cluster_looks_at_what_is_made_of_its_services_only(bench: Bench) -> None:
    register(bench.store, "shop", member(WEB), member("192.0.2.1:80"))
    register(bench.store, "other", member("192.0.2.1:80"))
    bench.composer.turn()
    for name in ("shop", "other"):
        bench.store.write(Put(Key(UPSTREAMS, f"named/{name}", 0), {"v": 1, "version": 5, "slices": 1, "nodes": [],
                              "digest": "", "updated_at": ""}))  # fmt: skip
    assert bench.compare("prod") == [{"upstream": "named/shop", "drift": "changed"}]
    assert bench.compare("edge") == []


def test_what_is_noted_is_no_drift(bench: Bench) -> None:
    register(bench.store, "shop", member("192.0.2.1:80"))
    assert bench.compare(dry_run=True) == []
    assert bench.compare() == []
    assert bench.ips("shop") == ["192.0.2.1"]


# --- in its own thread ---


def test_what_is_noted_when_it_has_to_end_is_still_composed(bench: Bench) -> None:
    register(bench.store, "shop", member(WEB))
    bench.composer.load()
    bench.composer.start()
    bench.write(WEB, "10.1.0.1")
    bench.composer.stop(bench.clock.monotonic() + 10.0)
    assert bench.composer.join()
    assert (bench.ips("shop"), notes(bench.store)) == (["10.1.0.1"], {})


def test_nothing_is_written_once_the_lease_is_lost(bench: Bench) -> None:
    register(bench.store, "shop", member("192.0.2.1:80"))
    bench.composer.stop(bench.clock.monotonic() + 10.0, abandon=True)
    bench.composer.start()
    assert bench.composer.join()
    assert (named_item(bench.store, "shop"), notes(bench.store)) == (None, {"named/shop": 1})


def test_session_that_ends_while_the_table_is_busy_leaves_the_note_to_the_next(bench: Bench) -> None:
    class _Busy(NoFaults):
        def before(self, call: Call) -> None:
            raise StoreBusyError("throttled")

    register(bench.store, "shop", member("192.0.2.1:80"))
    bench.store.faults = _Busy()
    bench.composer.stop(bench.clock.monotonic() + 3.0)
    bench.composer.start()
    assert bench.composer.join()
    bench.store.faults = NoFaults()
    assert notes(bench.store) == {"named/shop": 1}


def test_i4_services_of_which_one_is_always_changing_do_not_keep_a_named_upstream_from_being_written(
    bench: Bench,
) -> None:
    services = [f"prod/shop/s{n}/80/TCP" for n in range(20)]
    for service in services:
        bench.write(service, "10.1.0.1")
    register(bench.store, "shop", *map(member, services))
    bench.composer.turn()
    changes = iter(range(1000))

    class AlwaysChanging(NoFaults):
        def before(self, call: Call) -> None:
            if any(isinstance(action, Delete) and is_mark(action) for action in call.actions):
                number = next(changes)
                bench.write(services[number % 20], f"10.2.{number // 250}.{number % 250}")

    bench.write(services[0], "10.3.0.1")
    bench.store.faults = AlwaysChanging()
    for version in (2, 3, 4):
        assert bench.composer.turn() is None
        assert bench.version("shop") == version
        assert notes(bench.store)  # I1: what came meanwhile is not forgotten
        assert bench.composer.noted
    bench.store.faults = NoFaults()
    bench.composer.turn()
    now = [stored.nodes[0]["ip"] for stored in map(bench.upstreams.read, services) if stored is not None]
    assert (sorted(bench.ips("shop") or []), notes(bench.store)) == (sorted(set(now)), {})
