"""Who has a name: claims, queues, heirs, also where several keys change one claim in a single commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kubesync.domain.objects import Observation, Service, Snapshot
from kubesync.domain.state import Name
from support.builders import a_key, a_service, an_endpoints
from support.recording import SLICES, World, a_config, a_list, identity, runs_that_die, saw

NAME = "x.example.com"


def wants(*names: str, created: str = "2026-01-01T00:00:00Z", ip: str = "10.0.0.1") -> Service:
    """A service without ports (no SRV) that asks for these names besides its own."""
    return a_service(
        cluster_ips=(ip,), ports=(), annotations={"hostname": ",".join(names)} if names else {}, created_at=created
    )


def at(number: int) -> str:
    return f"2026-01-{number:02d}T00:00:00Z"


def three(version: int = 5) -> list[Observation]:
    """Listed in no order: ``b`` is the oldest, then ``a``, then ``c``."""
    return [
        saw(wants(NAME, created=at(2)), version, "a"),
        saw(wants(NAME, created=at(1)), version + 1, "b"),
        saw(wants(NAME, created=at(3)), version + 2, "c"),
    ]


def test_name_wanted_by_three_of_one_list_goes_to_the_oldest() -> None:
    world = World()
    desk = world.session()
    desk.begin(*three())
    assert world.claims()[NAME] == "prod/shop/b"
    assert world.waiters() == [f"{NAME}#wait#{at(2)}#prod/shop/a", f"{NAME}#wait#{at(3)}#prod/shop/c"]
    assert f"{NAME} A" in desk.intended("b")
    assert f"{NAME} A" not in desk.intended("a")
    assert [(p.code, p.subject, p.message) for p in desk.state("a").problems] == [
        ("NameTaken", "x.example.com in Z1", "the name is claimed by prod/shop/b")
    ]


def test_name_wanted_at_the_same_time_goes_to_the_lower_key() -> None:
    world = World()
    world.session().begin(*(saw(wants(NAME), 5, name) for name in ("d", "c", "e")))
    assert world.claims()[NAME] == "prod/shop/c"


def test_age_counts_where_only_endpoints_of_the_younger_were_seen() -> None:
    world = World()
    desk = world.session()
    headless = a_service(headless=True, ports=(), annotations={"hostname": NAME}, created_at=at(9))
    desk.begin(saw(headless, 5, "a"))
    # The headless one is seen by its endpoints, the older one by its Service, in one window.
    desk.record(
        saw(wants(NAME, created=at(1)), 21, "old"),
        saw(an_endpoints("10.1.0.1", service="a"), 22, "a-1"),
    )
    assert world.claims()[NAME] == "prod/shop/old"


def test_first_durable_claim_keeps_the_name_from_an_older_service() -> None:
    world = World()
    desk = world.session()
    desk.begin(saw(wants(NAME, created=at(9)), 5, "young"))
    desk.record(saw(wants(NAME, created=at(1)), 20, "old"))
    assert world.claims()[NAME] == "prod/shop/young"
    assert world.waiters() == [f"{NAME}#wait#{at(1)}#prod/shop/old"]


def test_many_that_want_one_name_queue_in_one_go() -> None:
    world = World()
    desk = world.session()
    many = [saw(wants(NAME, created=at(1 + n // 10)), 5, f"s{n:02d}") for n in range(60)]
    recorded = desk.begin(*many)
    assert recorded.changed == 61
    assert recorded.heirs == ()
    assert len(world.waiters()) == 59
    (claim,) = [item for key, item in world.items("state").items() if key.sort == NAME]
    assert (claim["owner"], claim["waiting"], claim["version"]) == ("prod/shop/s00", 59, 60)


def test_heir_is_the_oldest_waiter_and_takes_over_once_the_record_is_gone() -> None:
    world = World()
    desk = world.session()
    desk.begin(*three())
    desk.land()
    desk.record(saw(None, 30, "b", deleted=True))
    assert world.claims()[NAME] == "prod/shop/b", "until its record set is gone from the zone"
    desk.land()
    assert world.claims()[NAME] == "prod/shop/a"
    assert world.waiters() == [f"{NAME}#wait#{at(3)}#prod/shop/c"]
    assert world.heirs() == []
    assert desk.state("a").opened is None
    assert [k.name for k in desk.state("a").applied] == ["a.shop.svc.prod.example.com", NAME]
    assert desk.state("a").waits == frozenset()
    assert desk.state("c").problems[0].message == "the name is claimed by prod/shop/b"


def test_waiter_that_is_deleted_gives_up() -> None:
    world = World()
    desk = world.session()
    desk.begin(*three())
    desk.record(saw(None, 30, "a", deleted=True))
    assert world.waiters() == [f"{NAME}#wait#{at(3)}#prod/shop/c"]
    desk.record(saw(None, 31, "b", deleted=True))
    desk.land()
    assert world.claims()[NAME] == "prod/shop/c"
    (claim,) = [item for key, item in world.items("state").items() if key.sort == NAME]
    assert claim["waiting"] == 0


def test_all_of_them_deleted_in_one_window_leave_no_claim() -> None:
    world = World()
    desk = world.session()
    desk.begin(*three())
    desk.record(*(saw(None, 30 + n, name, deleted=True) for n, name in enumerate("abc")))
    desk.land()
    assert world.claims() == {}
    assert world.waiters() == []
    assert world.heirs() == []
    assert {s.key.name for s in desk.tables.state.load_all("prod") if not s.bare} == {"kubernetes"}


def test_name_never_applied_moves_between_keys_within_one_window() -> None:
    world = World()
    desk = world.session()
    desk.begin(saw(wants(NAME, created=at(2)), 5, "from"), saw(wants(created=at(1)), 6, "to"))
    # Nothing has been sent to Route 53 yet: the claim goes at once. The older one is planned first, and queues.
    desk.record(saw(wants(created=at(2)), 20, "from"), saw(wants(NAME, created=at(1)), 21, "to"))
    desk.land()
    assert world.claims()[NAME] == "prod/shop/to"
    assert world.waiters() == []
    assert f"{NAME} A" in desk.intended("to")


@pytest.mark.parametrize(("giver", "taker"), [("one", "two"), ("two", "one")])
def test_names_never_applied_are_swapped_within_one_window(giver: str, taker: str) -> None:
    world = World()
    desk = world.session()
    desk.begin(saw(wants("p.example.com"), 5, giver), saw(wants("q.example.com"), 6, taker))
    desk.record(saw(wants("q.example.com"), 20, giver), saw(wants("p.example.com"), 21, taker))
    desk.land()
    assert {name: owner for name, owner in world.claims().items() if name[1] == "."} == {
        "p.example.com": f"prod/shop/{taker}",
        "q.example.com": f"prod/shop/{giver}",
    }
    assert world.waiters() == []


def test_applied_names_are_swapped_within_one_window() -> None:
    world = World()
    desk = world.session()
    desk.begin(saw(wants("p.example.com"), 5, "a"), saw(wants("q.example.com"), 6, "b"))
    desk.land()
    desk.record(saw(wants("q.example.com"), 20, "a"), saw(wants("p.example.com"), 21, "b"))
    desk.land()
    assert world.claims()["p.example.com"] == "prod/shop/b"
    assert world.claims()["q.example.com"] == "prod/shop/a"
    assert "q.example.com A" in {f"{k.name} {k.type}" for k in desk.state("a").applied}
    assert desk.state("a").opened is None


def test_waiter_that_was_made_anew_takes_its_new_place_in_the_queue() -> None:
    world = World()
    desk = world.session()
    desk.begin(*three())
    desk.record(saw(wants(NAME, created=at(5)), 30, "a", uid="another"))
    assert world.waiters() == [f"{NAME}#wait#{at(3)}#prod/shop/c", f"{NAME}#wait#{at(5)}#prod/shop/a"]
    (claim,) = [item for key, item in world.items("state").items() if key.sort == NAME]
    assert claim["waiting"] == 2
    desk.record(saw(None, 31, "b", deleted=True))
    desk.land()
    assert world.claims()[NAME] == "prod/shop/c"


def test_waiter_that_no_longer_wants_the_name_when_it_is_given_passes_it_on() -> None:
    world = World()
    desk = world.session()
    desk.begin(*three())
    desk.record(saw(wants(created=at(1)), 30, "b"))  # never applied: let go at once, to a
    assert world.claims()[NAME] == "prod/shop/a"
    assert world.heirs() == [f"shop/a#heir#Z1/{NAME}"]
    desk.record(saw(None, 31, "a", deleted=True))  # before it was planned as the heir
    assert world.claims()[NAME] == "prod/shop/c"
    desk.land()
    assert f"{NAME} A" in desk.intended("c")
    assert world.heirs() == []


def test_heir_is_found_by_the_next_session() -> None:
    world = World()
    desk = world.session()
    desk.begin(*three())
    recorded = desk.record(saw(wants(created=at(1)), 30, "b"))
    assert recorded.heirs == (a_key("a"),)
    following = world.session()
    assert following.tables.state.queued("prod").promoted == {a_key("a")}
    following.replan_heirs()
    assert f"{NAME} A" in following.intended("a")
    assert world.heirs() == []


def test_heir_of_another_cluster_is_told_in_the_transaction_that_gives_it_the_name() -> None:
    world = World(a_config(), a_config(name="test"))
    desk = world.session()
    desk.begin(saw(wants(NAME), 5, "web"))
    desk.recorders["test"].record(desk.window(lists=_lists(saw(wants(NAME), 7, "web"))))
    assert world.waiters() == [f"{NAME}#wait#2026-01-01T00:00:00Z#test/shop/web"]
    world.store.calls.clear()
    recorded = desk.record(saw(None, 30, "web", deleted=True))
    assert recorded.heirs == (a_key("web", cluster="test"),)
    assert world.claims()[NAME] == "test/shop/web"
    (call,) = world.writes()
    assert [a.key.partition for a in call.actions[:2]] == ["cluster#prod", "cluster#test"]
    assert {a.key.sort for a in call.actions[:2]} == {"fence"}


def test_heirs_of_many_clusters_never_check_more_fences_than_there_is_room_for() -> None:
    others = [a_config(name=f"c{n:02d}") for n in range(12)]
    world = World(a_config(), *others)
    desk = world.session()
    names = [f"n{n:02d}.example.com" for n in range(12)]
    desk.begin(saw(wants(*names), 5, "web"))
    for config, name in zip(others, names, strict=True):
        desk.recorders[config.name].record(desk.window(lists=_lists(saw(wants(name), 7, "web"))))
    world.store.calls.clear()
    desk.record(saw(None, 30, "web", deleted=True))
    assert {name: world.claims()[name] for name in names} == {
        name: f"c{n:02d}/shop/web" for n, name in enumerate(names)
    }
    assert max(sum(a.key.sort == "fence" for a in call.actions) for call in world.writes()) == 5


def test_claim_of_a_name_in_conflict_is_let_go_with_the_conflict() -> None:
    world = World()
    desk = world.session()
    desk.begin(saw(wants(NAME), 5, "web"))
    desk.land()
    # A resync found that somebody replaced the record set by one of a form that is never ours.
    state = desk.ledger.states([a_key()])[a_key()]
    applied = {key: found for key, found in state.applied.items() if key.name != NAME}
    conflicted = replace(state, applied=applied, conflicts={Name("Z1", NAME): "was replaced"})
    desk.recorder.transform(lambda: [(state, conflicted)], "resync")
    assert NAME not in world.claims()
    desk.record(saw(wants(NAME), 30, "other"))
    assert world.claims()[NAME] == "prod/shop/other"


def test_crash_between_waiters_loses_none_i1() -> None:
    undisturbed = World()
    undisturbed.session().begin(*three())
    died = 0
    for when, world in runs_that_die(lambda w: w.session().begin(*three()), prepare=lambda w: None):
        died += 1
        assert world.settled() == undisturbed.settled(), when
    assert died >= 4


def _lists(*services: Observation) -> tuple[Snapshot, Snapshot]:
    return a_list(10, identity(), *services), a_list(10, resource=SLICES)
