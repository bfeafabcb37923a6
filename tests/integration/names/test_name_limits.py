"""How many names a Service and a namespace may ask for: over whole sessions, kills and restarts, the counts are right (I9)."""

from collections import Counter
from typing import Any, Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.fakes.store_faults import DiesAt
from harness.fed import CrashError, FedDeployment
from harness.seen.builders import a_config, a_service, saw
from kubesync.aws.dynamodb.store import STATE, Key, Put
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey
from kubesync.domain.objects import Resource
from kubesync.domain.plan import Policy

FILTER: Final = ("example.com",)


def names(prefix: str, number: int) -> list[str]:
    return [f"{prefix}{n:03d}.example.com" for n in range(number)]


def asking(*hostnames: str, address: str = "10.0.0.1", created_at: str = "2026-01-01T00:00:00Z") -> Any:
    annotations = {"hostname": ",".join(hostnames)} if hostnames else {}
    return a_service(cluster_ips=(address,), ports=(), annotations=annotations, created_at=created_at)


def held(deployment: Deployment, namespace: str = "shop") -> set[str]:
    """Names that Services of a namespace own and asked for, by the claims."""
    found = {name: owner for name, owner in deployment.claims().items() if owner.split("/")[1] == namespace}
    return {name.removesuffix(".example.com") for name in found if ".svc." not in name}


def count(deployment: Any, namespace: str = "shop") -> int | None:
    """As stored; None: there is no item."""
    item = deployment.store.get(Key(STATE, "prod#asked", namespace))
    return None if item is None else int(str(item["count"]))


def stands(deployment: Deployment, name: str) -> bool:
    return RecordKey(ZONE_ID, f"{name}.example.com", "A") in deployment.route53.records(ZONE_ID)


def too_many(deployment: Deployment) -> dict[str, int]:
    """By Service: how many names of it are reported as too many, those of the line that counts the rest included."""
    found: Counter[str] = Counter()
    for state in StateTable(deployment.store).load_all("prod"):
        for problem in state.problems:
            if problem.code == "TooManyNames":
                found[state.key.name] += 1 if problem.subject else int(problem.message.split()[1])
    return dict(found)


def test_i9_names_of_one_service_beyond_its_limit_have_no_record_claim_or_place_in_line() -> None:
    deployment = Deployment(domain_filter=FILTER)
    deployment.apply("many", asking(*names("n", 70)))
    assert deployment.run_session().clean
    assert held(deployment) == {f"n{n:03d}" for n in range(50)}
    assert (too_many(deployment), count(deployment), deployment.waiters()) == ({"many": 20}, 50, [])
    # In another order, what it holds it keeps; what it gives up makes room at once.
    deployment.apply("many", asking(*reversed(names("n", 70)[:69])))
    assert deployment.run_session().clean
    assert held(deployment) == {f"n{n:03d}" for n in range(50)}
    deployment.apply("many", asking(*names("m", 60)))
    assert deployment.run_session(4.0).clean
    assert held(deployment) == {f"m{n:03d}" for n in range(50)}
    assert (too_many(deployment), count(deployment)) == ({"many": 10}, 50)
    deployment.close()


def test_i9_names_of_a_namespace_beyond_its_limit_are_refused_and_others_are_not_touched() -> None:
    deployment = Deployment(domain_filter=FILTER, max_names_per_namespace=5)
    deployment.apply("a", asking(*names("a", 3), created_at="2026-01-01T00:00:00Z"))
    deployment.apply("b", asking(*names("b", 3), created_at="2026-01-02T00:00:00Z"))
    deployment.apply("friend", asking(*names("f", 3)), namespace="other")
    deployment.start()
    deployment.pass_time()
    assert held(deployment) == {"a000", "a001", "a002", "b000", "b001"}
    assert held(deployment, "other") == {"f000", "f001", "f002"}
    assert (count(deployment), count(deployment, "other"), too_many(deployment)) == (5, 3, {"b": 1})
    assert stands(deployment, "b001")
    assert not stands(deployment, "b002")
    # A window: the oldest does not push out what another one holds.
    deployment.apply("a", asking(*names("a", 5)))
    deployment.pass_time()
    assert (count(deployment), too_many(deployment)) == (5, {"a": 2, "b": 1})
    # One name for another, in a full namespace.
    deployment.apply("b", asking("b000.example.com", "new.example.com"))
    deployment.pass_time(3.0)
    assert held(deployment) == {"a000", "a001", "a002", "b000", "new"}
    assert (count(deployment), stands(deployment, "new"), stands(deployment, "b001")) == (5, True, False)
    # Room that others make is used at once.
    deployment.delete("b")
    deployment.pass_time(6.0)
    assert held(deployment) == {"a000", "a001", "a002", "a003", "a004"}
    assert (count(deployment), too_many(deployment), stands(deployment, "a004")) == (5, {}, True)
    assert deployment.end().clean
    deployment.close()


@pytest.mark.parametrize("handed_over", [False, True], ids=["same session", "next session"])
def test_i9_all_that_wait_for_room_in_their_namespace_hear_of_it(*, handed_over: bool) -> None:
    """60 Services: more than are planned again at a time."""
    deployment = Deployment(domain_filter=FILTER, max_names_per_service=100, max_names_per_namespace=60)
    deployment.apply("a", asking(*names("a", 60)))
    deployment.start()
    deployment.pass_time()
    for number in range(60):
        deployment.apply(f"b{number:02d}", asking(f"b{number:02d}.example.com", created_at="2026-02-01T00:00:00Z"))
    deployment.pass_time(6.0)
    assert too_many(deployment) == {f"b{number:02d}": 1 for number in range(60)}
    if handed_over:
        assert deployment.end().clean
        deployment.start()
        deployment.pass_time(3.0)
    deployment.delete("a")
    deployment.pass_time(10.0)
    assert held(deployment) == {f"b{number:02d}" for number in range(60)}
    assert (count(deployment), too_many(deployment)) == (60, {})
    deployment.close()


def test_i9_template_names_do_not_count() -> None:
    deployment = Deployment(domain_filter=FILTER, max_names_per_service=3, max_names_per_namespace=1)
    own = "web.shop.svc.prod.example.com"
    deployment.apply("web", asking(own, f"x.{own}", f"y.{own}", "www.example.com"))
    assert deployment.run_session().clean
    assert held(deployment) == {"www"}
    assert count(deployment) == 1
    assert all(stands(deployment, name.removesuffix(".example.com")) for name in (own, f"x.{own}", f"y.{own}"))
    deployment.close()


def test_i9_names_below_its_own_name_do_not_fill_the_zone() -> None:
    """One long annotation is enough for that, and such names do not count for the namespace."""
    deployment = Deployment(domain_filter=FILTER)
    below = [f"n{number:04d}.web.shop.svc.prod.example.com" for number in range(3000)]
    deployment.apply("web", asking(*below))
    assert deployment.run_session().clean
    assert sorted(deployment.claims()) == [*below[:50], "web.shop.svc.prod.example.com"]
    # Of the first 1,000, less the 50 that it gets, and one for the rest: nobody looks at these.
    assert (too_many(deployment), count(deployment)) == ({"web": 951}, None)
    # In another order it keeps what it holds.
    deployment.apply("web", asking(*reversed(below)))
    assert deployment.run_session().clean
    assert sorted(deployment.claims()) == [*below[:50], "web.shop.svc.prod.example.com"]
    deployment.close()


def test_i9_without_deletions_names_that_are_given_up_keep_their_place() -> None:
    """Else an annotation that changes again and again fills the zone: nothing is ever deleted from it."""
    deployment = Deployment(domain_filter=FILTER, max_names_per_namespace=5, policy=Policy.UPSERT_ONLY)
    deployment.start()
    for number in range(4):
        deployment.apply("web", asking(*names(f"r{number}-", 2)))
        deployment.pass_time(3.0)
    asked = [key.name for key in deployment.route53.records(ZONE_ID) if key.name.startswith("r")]
    assert sorted(asked) == [
        "r0-000.example.com",
        "r0-001.example.com",
        "r1-000.example.com",
        "r1-001.example.com",
        "r2-000.example.com",
    ]
    assert count(deployment) == 5
    assert deployment.end().clean
    deployment.close()


def test_i9_service_without_room_does_not_stand_in_line_and_passes_on_what_it_is_given() -> None:
    deployment = Deployment(domain_filter=FILTER, max_names_per_namespace=1)
    deployment.apply("first", asking("www.example.com"), namespace="one")
    deployment.apply("full", asking("full.example.com", "www.example.com", created_at="2026-01-02T00:00:00Z"))
    deployment.apply("roomy", asking("www.example.com", created_at="2026-01-03T00:00:00Z"), namespace="two")
    deployment.apply("last", asking("www.example.com", created_at="2026-01-04T00:00:00Z"), namespace="three")
    deployment.start()
    deployment.pass_time()
    assert [place.rpartition("#")[2] for place in deployment.waiters()] == ["prod/two/roomy", "prod/three/last"]
    # While it waits, its namespace fills up.
    deployment.apply("other", asking("other.example.com"), namespace="two")
    deployment.pass_time()
    deployment.cluster.delete(Resource.SERVICES, "first", namespace="one")
    deployment.pass_time(4.0)
    assert deployment.claims()["www.example.com"] == "prod/three/last"
    assert (deployment.waiters(), count(deployment, "two")) == ([], 1)
    assert too_many(deployment) == {"full": 1, "roomy": 1}
    assert deployment.end().clean
    deployment.close()


def test_cluster_without_rules_counts_nothing() -> None:
    deployment = Deployment()
    deployment.apply("many", asking(*names("n", 600)))
    assert deployment.run_session(6.0).clean
    assert len(held(deployment)) == 600
    assert [key for key in deployment.items(STATE) if key.partition.endswith("#asked")] == []
    deployment.close()


def test_rules_that_are_turned_on_count_what_is_held_and_take_nothing_away() -> None:
    deployment = Deployment()
    deployment.apply("many", asking(*names("n", 60)))
    deployment.apply("few", asking(*names("f", 2)))
    deployment.start()
    deployment.pass_time(4.0)
    deployment.world.configure("prod", domain_filter=FILTER, max_names_per_namespace=40)
    deployment.pass_time(8.0)
    assert (len(held(deployment)), count(deployment), too_many(deployment)) == (62, 62, {})
    deployment.apply("few", asking(*names("f", 3)))
    deployment.pass_time(3.0)
    assert (count(deployment), too_many(deployment)) == (62, {"few": 1})
    assert deployment.end().clean
    deployment.close()


@pytest.mark.parametrize("stored", [0, 3, 499, None])
def test_wrong_count_is_corrected_by_a_full_resync(stored: int | None) -> None:
    deployment = Deployment(domain_filter=FILTER)
    deployment.apply("web", asking(*names("n", 2)))
    deployment.start()
    deployment.pass_time()
    for namespace in ("shop", "gone"):
        place = Key(STATE, "prod#asked", namespace)
        if stored is not None:
            deployment.store.write(Put(place, {"v": 1, "count": stored}))
    deployment.resync()
    deployment.pass_time()
    assert (count(deployment), count(deployment, "gone")) == (2, None)
    assert deployment.end().clean
    deployment.close()


def test_counts_of_a_removed_cluster_go_with_it() -> None:
    deployment = Deployment(domain_filter=FILTER)
    deployment.apply("web", asking(*names("n", 2)))
    deployment.start()
    deployment.pass_time()
    assert count(deployment) == 2
    deployment.world.configure("prod", deleting=True)
    deployment.pass_time(20.0)
    assert [key for key in deployment.items(STATE) if key.partition.startswith("prod#")] == []
    deployment.end()
    deployment.close()


def play(deployment: FedDeployment) -> None:
    """Names come and go, and pass from one Service to another; in the end as many as the limit allows are held."""
    session = deployment.session()
    many = [
        saw(asking(*names(f"s{n}-", 3), created_at=f"2026-01-{n + 1:02d}T00:00:00Z"), 20 + n, f"s{n}") for n in range(6)
    ]
    session.begin(*many, version=30)
    session.land()
    session.record(saw(asking("s0-000.example.com", "x.example.com"), 40, "s0"))
    session.land()
    session.record(saw(asking(), 41, "s1"), saw(asking("x.example.com", "y.example.com"), 42, "s9"))
    session.land()
    session.record(saw(None, 43, "s0", deleted=True))
    session.land()


def by_keys(deployment: FedDeployment) -> int:
    """How many names the keys hold, as their own items say."""
    states = list(StateTable(deployment.store).load_all("prod"))
    return sum(len({name.name for name in state.claims if ".svc." not in name.name}) for state in states)


@pytest.mark.parametrize("after", [False, True], ids=["before a transaction", "after a transaction"])
def test_i9_count_is_right_whenever_a_session_dies(*, after: bool) -> None:
    """Right where it dies, and after the next session has done the same again."""
    died: Counter[int] = Counter()
    for transaction in range(1, 100):
        deployment = FedDeployment(a_config(srv=False, domain_filter=FILTER, max_names_per_namespace=12))
        deployment.faults = DiesAt(transaction, after=after)
        try:
            play(deployment)
            break
        except CrashError:
            deployment.spare()
        died[by_keys(deployment)] += 1
        assert (count(deployment) or 0) == by_keys(deployment), f"transaction {transaction}"
        play(deployment)
        # Where the list is read again once names have gone, a Service that was refused finds room.
        assert count(deployment) == by_keys(deployment), f"transaction {transaction}"
        assert 8 <= by_keys(deployment) <= 12, f"transaction {transaction}"
    assert died.keys() >= {0, 9, 11, 13}, "it dies in between too; names that go are held until they are gone"


def test_i7_resumed_session_reads_counts_only_where_names_change() -> None:
    deployment = Deployment(domain_filter=FILTER)
    deployment.apply("web", asking(*names("n", 2)))
    deployment.apply("taken", asking("n000.example.com", created_at="2026-02-01T00:00:00Z"))
    deployment.by_hand("UPSERT", "foreign.example.com", "A", "192.0.2.9")
    deployment.apply("foreign", asking("foreign.example.com"))
    assert deployment.run_session().clean
    assert deployment.waiters()
    deployment.start()

    def reads() -> list[str]:
        assert deployment.running is not None
        return [call.what for call in deployment.running.gate.calls if "#asked" in str(call.what)]

    deployment.apply("web", asking(*names("n", 2), address="10.0.0.9"))
    deployment.apply("taken", asking("n000.example.com", address="10.0.0.8", created_at="2026-02-01T00:00:00Z"))
    deployment.apply("plain", asking())
    deployment.pass_time(10.0)
    assert reads() == []
    deployment.apply("web", asking(*names("n", 3)))
    deployment.pass_time()
    deployment.apply("plain", asking("p.example.com"))
    deployment.pass_time()
    assert len(reads()) == 1
    assert count(deployment) == 4
    assert deployment.end().clean
    deployment.close()
