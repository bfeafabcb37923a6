"""Who has a name: claims, queues, heirs, also where several keys change one claim in a single commit."""

from dataclasses import replace

import pytest

from harness.deployment import ZONE_ID
from harness.fakes.memory_store import Call
from harness.fakes.store_faults import CrashError
from harness.fed import FedDeployment, runs_that_die
from harness.seen.builders import SLICES, a_config, a_list, a_service, an_endpoints, identity, saw
from kubesync.aws.dynamodb.store import Put
from kubesync.aws.tables.control.fences import fence_key
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Weighted
from kubesync.domain.objects import Observation, Service, Snapshot

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
        saw(wants(NAME, created=at(2), ip="10.0.0.1"), version, "a"),
        saw(wants(NAME, created=at(1), ip="10.0.0.2"), version + 1, "b"),
        saw(wants(NAME, created=at(3), ip="10.0.0.3"), version + 2, "c"),
    ]


def test_name_wanted_by_three_of_one_list_goes_to_the_oldest() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*three())
    assert deployment.claims()[NAME] == "prod/shop/b"
    assert deployment.waiters() == [f"{NAME}#wait#{at(2)}#prod/shop/a", f"{NAME}#wait#{at(3)}#prod/shop/c"]
    assert f"{NAME} A" in session.intended("b")
    assert f"{NAME} A" not in session.intended("a")
    assert [(p.code, p.subject, p.message) for p in session.state("a").problems] == [
        ("NameTaken", "x.example.com in Z1", "the name is claimed by prod/shop/b")
    ]


def test_name_wanted_at_the_same_time_goes_to_the_lower_key() -> None:
    deployment = FedDeployment()
    deployment.session().begin(*(saw(wants(NAME), 5, name) for name in ("d", "c", "e")))
    assert deployment.claims()[NAME] == "prod/shop/c"


def test_age_counts_where_only_endpoints_of_the_younger_were_seen() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    headless = a_service(headless=True, ports=(), annotations={"hostname": NAME}, created_at=at(9))
    session.begin(saw(headless, 5, "a"))
    # The headless one is seen by its endpoints, the older one by its Service, in one window.
    session.record(
        saw(wants(NAME, created=at(1)), 21, "old"),
        saw(an_endpoints("10.1.0.1", service="a"), 22, "a-1"),
    )
    assert deployment.claims()[NAME] == "prod/shop/old"


def test_first_durable_claim_keeps_the_name_from_an_older_service() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(wants(NAME, created=at(9)), 5, "young"))
    session.record(saw(wants(NAME, created=at(1)), 20, "old"))
    assert deployment.claims()[NAME] == "prod/shop/young"
    assert deployment.waiters() == [f"{NAME}#wait#{at(1)}#prod/shop/old"]


def test_many_that_want_one_name_queue_in_one_go() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    many = [saw(wants(NAME, created=at(1 + n // 10)), 5, f"s{n:02d}") for n in range(60)]
    session.begin(*many)
    assert deployment.heirs() == []
    assert len(deployment.waiters()) == 59
    (claim,) = [item for key, item in deployment.items("state").items() if key.sort == NAME]
    assert (claim["owner"], claim["waiting"], claim["version"]) == ("prod/shop/s00", 59, 60)


def test_i9_keys_that_wait_for_one_name_share_transactions_and_so_do_those_that_leave() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(wants(NAME, created=at(1)), 5, "owner"))
    deployment.calls.clear()
    session.record(*(saw(wants(NAME, created=at(2)), 10 + n, f"s{n:02d}") for n in range(90)))
    (claim,) = [item for key, item in deployment.items("state").items() if key.sort == NAME]
    assert (claim["owner"], claim["waiting"], claim["version"]) == ("prod/shop/owner", 90, 91)
    assert len(deployment.writes()) < 10
    deployment.calls.clear()
    session.record(*(saw(None, 200 + n, f"s{n:02d}", deleted=True) for n in range(90)))
    assert deployment.waiters() == []
    (claim,) = [item for key, item in deployment.items("state").items() if key.sort == NAME]
    assert (claim["owner"], claim["waiting"], claim["version"]) == ("prod/shop/owner", 0, 181)
    assert len(deployment.writes()) < 10
    assert len([call for call in deployment.calls if call.operation == "query"]) < 10


def test_heir_is_the_oldest_waiter_and_is_given_the_name_while_the_record_stands() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*three())
    session.land()
    session.record(saw(None, 30, "b", deleted=True))
    assert [k.name for k in session.state("b").applied if k.name == NAME] == [NAME]
    assert deployment.claims()[NAME] == "prod/shop/a", "what it wants goes in the batch that takes the record away"
    session.land()
    assert deployment.claims()[NAME] == "prod/shop/a"
    assert deployment.waiters() == [f"{NAME}#wait#{at(3)}#prod/shop/c"]
    assert deployment.heirs() == []
    assert session.state("a").opened is None
    assert [k.name for k in session.state("a").applied] == ["a.shop.svc.prod.example.com", NAME]
    assert session.state("a").waits == frozenset()
    assert session.state("c").problems[0].message == "the name is claimed by prod/shop/a"


def test_waiter_that_is_deleted_gives_up() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*three())
    session.record(saw(None, 30, "a", deleted=True))
    assert deployment.waiters() == [f"{NAME}#wait#{at(3)}#prod/shop/c"]
    session.record(saw(None, 31, "b", deleted=True))
    session.land()
    assert deployment.claims()[NAME] == "prod/shop/c"
    (claim,) = [item for key, item in deployment.items("state").items() if key.sort == NAME]
    assert claim["waiting"] == 0


def test_all_of_them_deleted_in_one_window_leave_no_claim() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*three())
    session.record(*(saw(None, 30 + n, name, deleted=True) for n, name in enumerate("abc")))
    session.land()
    assert deployment.claims() == {}
    assert deployment.waiters() == []
    assert deployment.heirs() == []
    assert {s.key.name for s in session.state_table.load_all("prod") if not s.bare} == {"kubernetes"}


def test_name_never_applied_moves_between_keys_within_one_window() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(wants(NAME, created=at(2)), 5, "from"), saw(wants(created=at(1)), 6, "to"))
    # Nothing has been sent to Route 53 yet: the claim goes at once. The older one is planned first, and queues.
    session.record(saw(wants(created=at(2)), 20, "from"), saw(wants(NAME, created=at(1)), 21, "to"))
    session.land()
    assert deployment.claims()[NAME] == "prod/shop/to"
    assert deployment.waiters() == []
    assert f"{NAME} A" in session.intended("to")


@pytest.mark.parametrize(("giver", "taker"), [("one", "two"), ("two", "one")])
def test_names_never_applied_are_swapped_within_one_window(giver: str, taker: str) -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(wants("p.example.com"), 5, giver), saw(wants("q.example.com"), 6, taker))
    session.record(saw(wants("q.example.com"), 20, giver), saw(wants("p.example.com"), 21, taker))
    session.land()
    session.land()
    assert {name: owner for name, owner in deployment.claims().items() if name[1] == "."} == {
        "p.example.com": f"prod/shop/{taker}",
        "q.example.com": f"prod/shop/{giver}",
    }
    assert deployment.waiters() == []


def test_applied_names_are_swapped_within_one_window() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(wants("p.example.com"), 5, "a"), saw(wants("q.example.com"), 6, "b"))
    session.land()
    session.record(saw(wants("q.example.com"), 20, "a"), saw(wants("p.example.com"), 21, "b"))
    session.land()
    assert deployment.claims()["p.example.com"] == "prod/shop/b"
    assert deployment.claims()["q.example.com"] == "prod/shop/a"
    assert "q.example.com A" in {f"{k.name} {k.type}" for k in session.state("a").applied}
    assert session.state("a").opened is None


def test_waiter_that_was_made_again_takes_its_new_place_in_the_queue() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*three())
    session.record(saw(wants(NAME, created=at(5)), 30, "a", uid="another"))
    assert deployment.waiters() == [f"{NAME}#wait#{at(3)}#prod/shop/c", f"{NAME}#wait#{at(5)}#prod/shop/a"]
    (claim,) = [item for key, item in deployment.items("state").items() if key.sort == NAME]
    assert claim["waiting"] == 2
    session.record(saw(None, 31, "b", deleted=True))
    session.land()
    assert deployment.claims()[NAME] == "prod/shop/c"


def test_waiter_that_no_longer_wants_the_name_when_it_is_given_passes_it_on() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*three())
    session.record(saw(wants(created=at(1)), 30, "b"))  # never applied: let go at once, to a
    session.record(saw(None, 31, "a", deleted=True))
    session.land()
    assert deployment.claims()[NAME] == "prod/shop/c"
    assert f"{NAME} A" in session.intended("c")
    assert deployment.heirs() == []


class DiesWithAnHeir:
    """The process dies once a name has been given to the next in line."""

    def before(self, call: Call) -> None: ...

    def after(self, call: Call) -> None:
        if any("#heir#" in str(action.key.sort) for action in call.actions):
            raise CrashError


def test_heir_is_found_by_the_next_session() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*three())
    session.land()
    deployment.faults = DiesWithAnHeir()
    with pytest.raises(CrashError):
        session.record(saw(wants(created=at(1)), 30, "b"))
    assert deployment.heirs() == [f"shop/a#heir#Z1/{NAME}"]
    assert f"{NAME} A" not in session.intended("a")
    deployment.spare()
    following = deployment.session()
    following.land()
    assert f"{NAME} A" in following.intended("a")
    assert deployment.heirs() == []


def test_heir_of_another_cluster_is_told_in_the_transaction_that_gives_it_the_name() -> None:
    deployment = FedDeployment(a_config(), a_config(name="test"))
    session = deployment.session()
    session.begin(saw(wants(NAME), 5, "web"))
    session.record(lists=_lists(saw(wants(NAME), 7, "web")), cluster="test")
    assert deployment.waiters() == [f"{NAME}#wait#2026-01-01T00:00:00Z#test/shop/web"]
    deployment.calls.clear()
    session.record(saw(None, 30, "web", deleted=True))
    session.land()
    assert deployment.claims()[NAME] == "test/shop/web"
    assert f"{NAME} A" in session.intended(cluster="test")
    (call,) = [
        c for c in deployment.writes() if any("#heir#" in str(a.key.sort) and isinstance(a, Put) for a in c.actions)
    ]
    fences = [a.key.partition for a in call.actions if a.key.sort == "fence"]
    assert {"cluster#prod", "cluster#test"} <= set(fences)


def test_heirs_of_many_clusters_never_check_more_fences_than_there_is_room_for() -> None:
    others = [a_config(name=f"c{n:02d}") for n in range(12)]
    deployment = FedDeployment(a_config(), *others)
    session = deployment.session()
    names = [f"n{n:02d}.example.com" for n in range(12)]
    session.begin(saw(wants(*names), 5, "web"))
    for config, name in zip(others, names, strict=True):
        session.record(lists=_lists(saw(wants(name), 7, "web")), cluster=config.name)
    deployment.calls.clear()
    session.record(saw(None, 30, "web", deleted=True))
    session.land()
    session.land()
    assert {name: deployment.claims()[name] for name in names} == {
        name: f"c{n:02d}/shop/web" for n, name in enumerate(names)
    }
    given = [call for call in deployment.writes() if any("#heir#" in str(a.key.sort) for a in call.actions)]
    recorded = [call for call in given if not any(a.key.partition.startswith("inflight#") for a in call.actions)]
    assert 3 <= max(sum(a.key.sort == "fence" for a in call.actions) for call in recorded) <= 5


@pytest.mark.parametrize(("names", "sizes"), [(75, [99]), (76, [100]), (77, [100, 2])])
def test_transaction_is_filled_to_the_last_of_its_100_actions(names: int, sizes: list[int]) -> None:
    """Names let go, four of them to other clusters: five fences, and an audit item; what is too much is the checkpoint."""
    first, *others = [a_config(name=f"c{n}") for n in range(5)]
    deployment = FedDeployment(first, *others)
    session = deployment.session()
    shared = [f"a{n}.example.com" for n in range(1, 5)]
    owner = wants(*shared, *(f"n{n:02d}.example.com" for n in range(names)))
    session.record(lists=_lists(saw(owner, 5)))
    for n in range(1, 5):
        session.record(lists=_lists(saw(wants(shared[n - 1]), 5)), cluster=f"c{n}")
    session.wait(30.0)
    deployment.calls.clear()
    session.record(saw(wants(), 20), saw(wants(created=at(2)), 21, "young"))
    of_c0 = [call for call in deployment.writes() if any(a.key == fence_key("c0") for a in call.actions)]
    assert [len(call.actions) for call in of_c0] == sizes


def test_claim_of_a_name_in_conflict_is_let_go_with_the_conflict() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    listed = a_list(10, identity(), saw(wants(NAME), 5, "web")), a_list(10, resource=SLICES)
    session.record(lists=listed)
    session.land()
    # Somebody replaces the record set by one of a form that is never ours, and a resync finds it.
    key = RecordKey(ZONE_ID, NAME, "A")
    deployment.route53.by_hand("DELETE", key, deployment.route53.records(ZONE_ID)[key])
    deployment.route53.by_hand(
        "CREATE", replace(key, identifier="theirs"), RecordSet(60, ("192.0.2.1",), routing=Weighted(1))
    )
    session.resync(*listed)
    assert NAME not in deployment.claims()
    session.record(saw(wants(NAME), 30, "other"))
    assert deployment.claims()[NAME] == "prod/shop/other"


def test_crash_between_waiters_loses_none_i1() -> None:
    undisturbed = FedDeployment()
    undisturbed.session().begin(*three())
    died = 0
    for when, deployment in runs_that_die(lambda w: w.session().begin(*three()), prepare=lambda w: None):
        died += 1
        assert deployment.settled() == undisturbed.settled(), when
    assert died >= 4


def _lists(*services: Observation) -> tuple[Snapshot, Snapshot]:
    return a_list(10, identity(), *services), a_list(10, resource=SLICES)
