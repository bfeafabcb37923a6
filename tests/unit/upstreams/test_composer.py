"""Named upstreams in whole sessions: notes, what is read and written for them, and what happens in between (I1, I2, I4, I6)."""

import pytest

from harness.fakes.fencing import raise_shard_fence
from harness.seen.named import member, named_item, named_nodes, notes, unregister
from harness.sessions.composed import API, COMPOSED_BY, REGISTERED, WEB, Composed
from kubesync.domain.errors import StoreOutcomeUnknownError
from simulation.writes import COMPOSED, RECORD


def published(deployment: Composed) -> None:
    """``web`` has one pod, and ``shop`` is made of it."""
    deployment.pods("web", "10.1.0.1")
    deployment.pass_time()
    deployment.register("shop", member(WEB))
    deployment.pass_time(REGISTERED)
    assert (deployment.ips("shop"), deployment.version("shop")) == (["10.1.0.1"], 1)


def test_what_was_registered_is_composed_and_the_note_is_gone(deployment: Composed) -> None:
    deployment.pods("web", "10.1.0.1")
    deployment.pass_time()
    deployment.register("shop", member(WEB, 3), member("192.0.2.1:80", backup=True))
    deployment.pass_time(REGISTERED)
    assert named_nodes(deployment.store, "shop") == [
        {"ip": "10.1.0.1", "port": 8080, "ready": True, "weight": 3},
        {"ip": "192.0.2.1", "port": 80, "ready": True, "backup": True},
    ]
    assert notes(deployment.store) == {}
    assert deployment.composed() == [
        {"upstream": "named/shop", "from": None, "to": "version 1, 2 nodes", "why": "configuration"}
    ]


def test_change_of_a_service_is_composed_into_all_that_are_made_of_it(deployment: Composed) -> None:
    deployment.register("inner", member(WEB))
    deployment.register("outer", member("inner"), member(API))
    deployment.pass_time(REGISTERED)
    deployment.pods("web", "10.1.0.1")
    deployment.pass_time(COMPOSED_BY)
    assert (deployment.ips("inner"), deployment.ips("outer")) == (["10.1.0.1"], ["10.1.0.1"])
    deployment.pods("api", "10.2.0.1")
    deployment.pass_time(COMPOSED_BY)
    assert (deployment.version("inner"), deployment.version("outer")) == (2, 3)
    assert deployment.ips("outer") == ["10.1.0.1", "10.2.0.1"]
    deployment.delete("web")
    deployment.pass_time(COMPOSED_BY)
    assert (deployment.ips("inner"), deployment.ips("outer")) == ([], ["10.2.0.1"])
    assert deployment.composed()[0]["why"] == f"upstream {WEB} version 2"
    assert notes(deployment.store) == {}


def test_i6_i7_nothing_is_noted_read_or_written_for_what_nobody_refers_to(deployment: Composed) -> None:
    published(deployment)
    deployment.reads.clear()
    deployment.pods("api", "10.2.0.1")
    deployment.pass_time(COMPOSED_BY)
    assert API in {str(key.partition) for key in deployment.stored()}
    assert [call.what for call in deployment.reads if "named" in call.what] == []
    assert notes(deployment.store) == {}
    deployment.pods("web", "10.1.0.2")
    deployment.pass_time(COMPOSED_BY)
    assert deployment.ips("shop") == ["10.1.0.2"]
    assert [call.what for call in deployment.reads if "named" in call.what or WEB in call.what] == [
        "query control named-marks#0",
        "get_item control named-upstreams/#registry",
        f"query upstreams {WEB}",
        "query upstreams named/shop",
    ]
    assert len(deployment.calls(COMPOSED)) == 2


def test_i6_what_comes_to_the_same_nodes_is_not_written(deployment: Composed) -> None:
    deployment.pods("web", "10.1.0.1")
    deployment.pass_time()
    deployment.register("shop", member(WEB), member("10.1.0.1:8080"))
    deployment.pass_time(REGISTERED)
    deployment.pods("web")
    deployment.pass_time(COMPOSED_BY)
    assert len(deployment.calls(COMPOSED)) == 2
    assert (deployment.version("shop"), notes(deployment.store)) == (1, {})


def test_removed_one_leaves_a_mark_with_its_version_and_returns_with_the_next(deployment: Composed) -> None:
    deployment.register("shop", member("192.0.2.1:80"))
    deployment.pass_time(REGISTERED)
    unregister(deployment.store, "shop")
    deployment.pass_time(REGISTERED)
    stored = named_item(deployment.store, "shop")
    assert stored is not None
    assert (stored.deleted, stored.version, stored.nodes) == (True, 2, ())
    assert notes(deployment.store) == {}
    deployment.register("shop", member("192.0.2.2:80"))
    deployment.pass_time(REGISTERED)
    assert (deployment.version("shop"), deployment.ips("shop")) == (3, ["192.0.2.2"])


def test_many_nodes_are_written_in_slices_and_surplus_ones_go(deployment: Composed) -> None:
    names = [f"s{number}" for number in range(4)]
    for number, name in enumerate(names):
        deployment.pods(name, *(f"10.{number}.{n // 250}.{n % 250}" for n in range(800)))
    deployment.register("all", *(member(f"prod/shop/{name}/80/TCP") for name in names))
    deployment.pass_time(REGISTERED)
    stored = named_item(deployment.store, "all")
    assert stored is not None
    assert (stored.slices, len(stored.nodes), stored.complete) == (2, 3200, True)
    for name in names[1:]:
        deployment.delete(name)
    deployment.pass_time(COMPOSED_BY)
    stored = named_item(deployment.store, "all")
    assert stored is not None
    assert (stored.slices, len(stored.nodes), stored.items, stored.complete) == (1, 800, 1, True)


# --- in between ---


def test_i1_change_that_comes_while_composing_is_not_lost(deployment: Composed) -> None:
    """The note that would be taken away is another one by now: the transaction is refused. What was read is written, and the note stays."""

    def change() -> None:
        deployment.pods("web", "10.1.0.3")
        deployment.hold(1.5)

    published(deployment)
    deployment.pods("web", "10.1.0.2")
    deployment.at(COMPOSED, change)
    deployment.pass_time(6.0)
    assert len(deployment.calls(COMPOSED)) == 3, "the first one, one that was refused, and the next"
    assert (deployment.ips("shop"), deployment.version("shop"), notes(deployment.store)) == (["10.1.0.3"], 3, {})


def test_i1_configuration_that_changes_while_composing_is_not_lost(deployment: Composed) -> None:
    deployment.pods("web", "10.1.0.1")
    deployment.at(COMPOSED, lambda: deployment.register("shop", member("192.0.2.1:80")))
    deployment.register("shop", member(WEB))
    deployment.pass_time(6.0)
    assert (deployment.ips("shop"), notes(deployment.store)) == (["192.0.2.1"], {})


def test_i1_what_a_dead_session_did_not_compose_is_noted_for_the_next(deployment: Composed) -> None:
    published(deployment)
    deployment.at(COMPOSED, deployment.kill)
    deployment.pods("web", "10.1.0.2")
    deployment.pass_time(20.0)
    assert (deployment.ips("shop"), list(notes(deployment.store))) == (["10.1.0.1"], [WEB])
    deployment.start()
    deployment.pass_time(20.0)
    assert (deployment.ips("shop"), notes(deployment.store)) == (["10.1.0.2"], {})


@pytest.mark.parametrize(("landed", "tries"), [(False, 2), (True, 1)])
def test_i1_answer_that_is_lost_changes_nothing_in_the_end(deployment: Composed, *, landed: bool, tries: int) -> None:
    def lose() -> None:
        raise StoreOutcomeUnknownError("no answer")

    deployment.at(COMPOSED, lose, after=landed)
    published(deployment)
    assert len(deployment.calls(COMPOSED)) == tries
    assert notes(deployment.store) == {}
    assert [row["to"] for row in deployment.composed()] == ["version 1, 1 nodes"]


def test_i1_service_that_is_just_being_recorded_when_it_is_first_referred_to_is_not_lost(deployment: Composed) -> None:
    """It was planned before anybody referred to it, so its upstream is written without a note."""

    def refer() -> None:
        deployment.register("shop", member(WEB))
        deployment.hold(4.0)

    deployment.pods("web", "10.1.0.1")
    deployment.pass_time()
    deployment.at(RECORD, refer)
    deployment.pods("web", "10.1.0.2")
    deployment.pass_time(10.0)
    assert deployment.ips("shop") == ["10.1.0.2"]
    deployment.pods("web", "10.1.0.3")
    deployment.pass_time(COMPOSED_BY)
    assert deployment.ips("shop") == ["10.1.0.3"]


def test_i2_session_that_was_fenced_out_composes_nothing_and_ends(deployment: Composed) -> None:
    deployment.pods("web", "10.1.0.1")
    deployment.pass_time()
    before = deployment.stored()
    deployment.register("shop", member(WEB))
    raise_shard_fence(deployment.store, 8)
    deployment.pass_time(REGISTERED)
    assert (deployment.stored(), notes(deployment.store)) == (before, {"named/shop": 1})
    assert deployment.over().ended == "ERR_NOT_MASTER"
