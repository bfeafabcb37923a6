"""What stops a composer, and what it leaves to others: busy tables, broken items, strays, the end of a session."""

from __future__ import annotations

import secrets

import pytest

from harness.by_hand.composer_bench import API, WEB, ComposerBench
from harness.fakes.memory_store import Call, NoFaults
from harness.seen.named import member, named_item, notes, register, unregister
from kubesync.aws.dynamodb.store import CONTROL, UPSTREAMS, Delete, Key, Put
from kubesync.aws.tables.control.named_upstreams import is_mark
from kubesync.aws.tables.schema_guard import SchemaGuard
from kubesync.domain.dns.records import Node
from kubesync.domain.errors import StoreBusyError
from kubesync.domain.state import UpstreamState


@pytest.fixture
def bench() -> ComposerBench:
    return ComposerBench()


def test_busy_table_is_tried_again_later_and_later(bench: ComposerBench) -> None:
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
    assert bench.composer.report.registered == 1
    unregister(bench.store, "shop")
    bench.composer.turn()
    assert bench.composer.report.registered == 0


def test_i4_upstream_that_somebody_has_broken_stops_only_what_is_made_of_it(bench: ComposerBench) -> None:
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


def test_i4_named_upstream_of_a_newer_release_is_left_to_it(bench: ComposerBench) -> None:
    register(bench.store, "shop", member("192.0.2.1:80"))
    register(bench.store, "newer", member("192.0.2.2:80"))
    place = Key(CONTROL, "named-upstreams", "newer")
    bench.store.write(Put(place, {**dict(bench.store.get(place) or {}), "v": 2}))
    bench.composer.turn()
    assert (bench.ips("shop"), named_item(bench.store, "newer")) == (["192.0.2.1"], None)
    assert notes(bench.store) == {"named/newer": 2}


@pytest.mark.parametrize("upstream", [WEB, "named/of-web"])
def test_i4_item_of_a_newer_release_stops_only_what_is_made_of_it(bench: ComposerBench, upstream: str) -> None:
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


def test_named_upstream_of_another_shard_is_left_to_its_master(bench: ComposerBench) -> None:
    register(bench.store, "shop", member("192.0.2.1:80"))
    bench.composer.turn()
    unregister(bench.store, "shop")
    register(bench.store, "shop", member("192.0.2.9:80"), shard="b")
    bench.composer.turn()
    assert (bench.ips("shop"), notes(bench.store), notes(bench.store, "b")) == (["192.0.2.1"], {}, {"named/shop": 3})


# --- full resync ---


def test_comparison_reports_what_differs_and_mends_it(bench: ComposerBench) -> None:
    for name in ("right", "changed", "missing"):
        register(bench.store, name, member("192.0.2.1:80"))
    bench.composer.turn()
    other = [Node("192.0.2.66", 80, ready=True)]
    for name, stands in (("changed", UpstreamState(1, "", 1)), ("stray", None)):
        bench.store.transact(bench.upstreams.put(f"named/{name}", stands, other, 0)[1], secrets.token_hex(16))
    bench.store.transact(bench.upstreams.remove("named/missing", UpstreamState(1, "", 1), 0), secrets.token_hex(16))
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


def test_i5_stray_one_is_removed_by_force_only(bench: ComposerBench) -> None:
    """A registry that was lost does not prove that nobody wants it."""
    bench.store.transact(bench.upstreams.put("named/stray", None, [], 0)[1], secrets.token_hex(16))
    stray = [{"upstream": "named/stray", "drift": "stray"}]
    assert [bench.compare(), bench.ips("stray")] == [stray, []]
    assert [bench.compare(dry_run=True, force=True), bench.ips("stray")] == [stray, []]
    assert [bench.compare(force=True), bench.ips("stray")] == [stray, None]
    assert bench.compare(force=True) == []


def test_comparison_of_a_cluster_looks_at_what_is_made_of_its_services_only(bench: ComposerBench) -> None:
    register(bench.store, "shop", member(WEB), member("192.0.2.1:80"))
    register(bench.store, "other", member("192.0.2.1:80"))
    bench.composer.turn()
    for name in ("shop", "other"):
        bench.store.write(Put(Key(UPSTREAMS, f"named/{name}", 0), {"v": 1, "version": 5, "slices": 1, "nodes": [],
                              "digest": "", "updated_at": ""}))  # fmt: skip
    assert bench.compare("prod") == [{"upstream": "named/shop", "drift": "changed"}]
    assert bench.compare("edge") == []


def test_what_is_noted_is_no_drift(bench: ComposerBench) -> None:
    register(bench.store, "shop", member("192.0.2.1:80"))
    assert bench.compare(dry_run=True) == []
    assert bench.compare() == []
    assert bench.ips("shop") == ["192.0.2.1"]


# --- in its own thread ---


def test_what_is_noted_when_it_has_to_end_is_still_composed(bench: ComposerBench) -> None:
    register(bench.store, "shop", member(WEB))
    bench.composer.load()
    bench.composer.start()
    bench.write(WEB, "10.1.0.1")
    bench.composer.stop(bench.clock.monotonic() + 10.0)
    assert bench.composer.join()
    assert (bench.ips("shop"), notes(bench.store)) == (["10.1.0.1"], {})


def test_nothing_is_written_once_the_lease_is_lost(bench: ComposerBench) -> None:
    register(bench.store, "shop", member("192.0.2.1:80"))
    bench.composer.stop(bench.clock.monotonic() + 10.0, abandon=True)
    bench.composer.start()
    assert bench.composer.join()
    assert (named_item(bench.store, "shop"), notes(bench.store)) == (None, {"named/shop": 1})


def test_session_that_ends_while_the_table_is_busy_leaves_the_note_to_the_next(bench: ComposerBench) -> None:
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
    bench: ComposerBench,
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
        assert bench.composer.marked
    bench.store.faults = NoFaults()
    bench.composer.turn()
    now = [stored.nodes[0]["ip"] for stored in map(bench.upstreams.read, services) if stored is not None]
    assert (sorted(bench.ips("shop") or []), notes(bench.store)) == (sorted(set(now)), {})
