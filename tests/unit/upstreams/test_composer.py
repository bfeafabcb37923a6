"""The composer, stepped by hand: notes, what is read and written for them, and what happens in between (I1, I2, I4, I6)."""

from __future__ import annotations

import pytest

from harness.by_hand.composer_bench import API, WEB, ComposerBench, Strikes
from harness.fakes.fencing import raise_shard_fence
from harness.seen.named import member, named_item, named_nodes, notes, register, unregister
from kubesync.domain.errors import StoreOutcomeUnknownError


@pytest.fixture
def bench() -> ComposerBench:
    return ComposerBench()


def test_what_was_registered_is_composed_and_the_note_is_gone(bench: ComposerBench) -> None:
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


def test_change_of_a_service_is_composed_into_all_that_are_made_of_it(bench: ComposerBench) -> None:
    register(bench.store, "inner", member(WEB))
    register(bench.store, "outer", member("inner"), member(API))
    bench.composer.turn()
    noted = []
    for act in (lambda: bench.write(WEB, "10.1.0.1"), bench.composer.turn):
        act()
        noted.append(bench.composer.marked)
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


def test_i6_i7_nothing_is_noted_read_or_written_for_what_nobody_refers_to(bench: ComposerBench) -> None:
    register(bench.store, "shop", member(WEB))
    bench.composer.turn()
    bench.write(API, "10.2.0.1")
    assert (notes(bench.store), bench.composer.marked) == ({}, False)
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


def test_i6_what_comes_to_the_same_nodes_is_not_written(bench: ComposerBench) -> None:
    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB), member("10.1.0.1:8080"))
    bench.composer.turn()
    bench.write(WEB)
    bench.composer.turn()
    assert (bench.version("shop"), notes(bench.store)) == (1, {})


def test_removed_one_leaves_a_mark_with_its_version_and_returns_with_the_next(bench: ComposerBench) -> None:
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


def test_many_nodes_are_written_in_slices_and_surplus_ones_go(bench: ComposerBench) -> None:
    names = [f"prod/shop/s{number}/80/TCP" for number in range(4)]
    for number, name in enumerate(names):
        bench.write(name, *(f"10.{number}.{n // 250}.{n % 250}" for n in range(800)))
    register(bench.store, "all", *(member(name) for name in names))
    bench.composer.turn()
    stored = named_item(bench.store, "all")
    assert stored is not None
    assert (stored.slices, len(stored.nodes), stored.complete) == (2, 3200, True)
    for name in names[1:]:
        bench.write(name, gone=True)
    bench.composer.turn()
    stored = named_item(bench.store, "all")
    assert stored is not None
    assert (stored.slices, len(stored.nodes), stored.items, stored.complete) == (1, 800, 1, True)


# --- in between ---


def test_i1_change_that_comes_while_composing_is_not_lost(bench: ComposerBench) -> None:
    """The note that would be taken away is another one by now: the transaction is refused, and all is read again."""
    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB))
    bench.composer.turn()
    bench.write(WEB, "10.1.0.2")
    bench.store.faults = strikes = Strikes(before=lambda: bench.write(WEB, "10.1.0.3"))
    bench.composer.turn()
    assert strikes.struck == 2
    assert (bench.ips("shop"), bench.version("shop"), notes(bench.store)) == (["10.1.0.3"], 2, {})


def test_i1_configuration_that_changes_while_composing_is_not_lost(bench: ComposerBench) -> None:
    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB))
    bench.store.faults = Strikes(before=lambda: register(bench.store, "shop", member("192.0.2.1:80")))
    bench.composer.turn()
    assert (bench.ips("shop"), notes(bench.store)) == (["192.0.2.1"], {})


def test_i1_what_a_dead_session_did_not_compose_is_noted_for_the_next(bench: ComposerBench) -> None:
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
def test_i1_answer_that_is_lost_changes_nothing_in_the_end(bench: ComposerBench, *, landed: bool) -> None:
    def lose() -> None:
        raise StoreOutcomeUnknownError("no answer")

    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB))
    bench.store.faults = Strikes(**{"after" if landed else "before": lose})
    assert bench.composer.turn() is None
    assert (bench.ips("shop"), bench.version("shop"), notes(bench.store)) == (["10.1.0.1"], 1, {})


def test_i1_service_that_is_just_being_recorded_when_it_is_first_referred_to_is_not_lost(bench: ComposerBench) -> None:
    """Its reconciler planned it before anybody referred to it, and writes it without a note: under the cluster's lock."""
    bench.write(WEB, "10.1.0.1")
    bench.composer.load()
    bench.ledger.lock.holder = lambda: bench.write(WEB, "10.1.0.2", noted=False)
    register(bench.store, "shop", member(WEB))
    bench.composer.turn()
    assert bench.ips("shop") == ["10.1.0.2"]
    bench.write(WEB, "10.1.0.3")
    bench.composer.turn()
    assert bench.ledger.lock.taken == 1


def test_i2_composer_of_a_master_that_was_fenced_out_writes_nothing_and_ends_its_session(bench: ComposerBench) -> None:
    bench.write(WEB, "10.1.0.1")
    register(bench.store, "shop", member(WEB))
    raise_shard_fence(bench.store, 8)
    before = bench.store.dump()
    assert bench.composer.turn() is None
    assert bench.store.dump() == before
    assert [str(error) for error in bench.lost] == ["another master has fenced this one out"]
