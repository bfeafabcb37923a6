"""I5: what a complete list implies, what is held back, and what is not known yet."""

import pytest

from harness.fed import FedDeployment, FedSession
from harness.seen.builders import SERVICES, SLICES, a_key, a_list, a_service, an_endpoints, identity, saw
from kubesync.aws.tables.state import state_key
from kubesync.domain.merge import judge_absences
from kubesync.domain.objects import Observation, Resource


def services(count: int, version: int = 5) -> list[Observation]:
    return [saw(a_service(cluster_ips=(f"10.0.1.{n}",), ports=()), version, f"s{n:02d}") for n in range(count)]


def begun(count: int) -> tuple[FedDeployment, FedSession]:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*services(count))
    session.land()
    return deployment, session


def held(session: FedSession, resource: Resource = SERVICES) -> str:
    """Why deletions are held back, as the session reports when it ends."""
    return session.end().clusters[-1].held.get(resource.value, "")


def live(session: FedSession) -> list[str]:
    """Services that are still published."""
    return sorted(s.key.name for s in session.state_table.load_all("prod") if s.intended)


@pytest.mark.parametrize(
    ("there", "listed", "believed"),
    [
        (9, 0, True),  # 10 live objects with default/kubernetes, but that one is listed: 9 of 10
        (8, 0, True),
        (9, 7, True),
        (9, 6, True),  # exactly 30 % of exactly 10
        (9, 5, False),
        (19, 13, True),  # exactly 30 % of 20
        (19, 12, False),
    ],
)
def test_guard_holds_deletions_beyond_30_percent_of_10_or_more_i5(there: int, listed: int, *, believed: bool) -> None:
    if there == 9 and listed == 0:
        believed = False  # 9 of 10
    _deployment, session = begun(there)
    session.record(lists=(a_list(20, identity(), *services(there)[:listed]),))
    assert live(session) == [f"s{n:02d}" for n in range(listed if believed else there)]
    assert (held(session) == "") is believed


@pytest.mark.parametrize(
    ("live_objects", "absent", "believed"),
    [(9, 9, True), (10, 3, True), (10, 4, False), (30, 9, True), (30, 10, False), (110, 33, True), (110, 34, False)],
)
def test_verdict_at_the_guards_limits_i5(live_objects: int, absent: int, *, believed: bool) -> None:
    assert (judge_absences(live_objects, absent, same_cluster=True, forced=False) == "") is believed
    assert judge_absences(live_objects, absent, same_cluster=True, forced=True) == ""
    assert "another cluster?" in judge_absences(live_objects, absent, same_cluster=False, forced=False)


def test_held_deletions_are_stored_on_their_keys_and_hold_up_nothing_else_i5() -> None:
    _deployment, session = begun(20)
    changed = saw(a_service(cluster_ips=("10.0.9.9",), ports=()), 19, "s00")
    session.record(lists=(a_list(20, identity(), changed),))
    assert [p.code for p in session.state("s05").problems] == ["DeletionHeld"]
    assert session.intended("s00") == {"s00.shop.svc.prod.example.com A": ["10.0.9.9"]}
    assert session.listeners.checkpoints("prod")[SERVICES].resource_version == 20
    # A DELETED event is proof; an event shows that the object is there; the others stay held.
    session.record(saw(None, 30, "s05", deleted=True), saw(services(20)[6].value, 31, "s06"))
    assert "s05" not in live(session)
    assert session.state("s06").problems == ()
    assert [p.code for p in session.state("s07").problems] == ["DeletionHeld"]
    assert "the list lacks 19 of 21 objects, more than 30%" in held(session)


def test_held_objects_that_reappear_at_their_old_version_are_live_again() -> None:
    _deployment, session = begun(20)
    session.record(lists=(a_list(20, identity()),))
    session.record(lists=(a_list(21, identity(), *services(20)),))
    assert session.open() == set()
    assert all(not part.held for state in session.state_table.load_all("prod") for part in state.parts.values())


def test_held_deletion_stays_held_beside_many_new_objects_i5() -> None:
    _deployment, session = begun(20)
    session.record(lists=(a_list(20, identity(), *services(13)),))
    assert live(session) == [f"s{n:02d}" for n in range(20)]
    more = [saw(a_service(ports=()), 21, f"t{n:02d}") for n in range(30)]
    for version in (30, 40):  # 7 of 21, then 7 of 51, which would be few
        session.record(lists=(a_list(version, identity(), *services(13), *more),))
    assert len(live(session)) == 50
    assert "earlier lists lacked 7 objects" in held(session)


def test_forced_list_lets_held_deletions_through() -> None:
    _deployment, session = begun(20)
    session.record(lists=(a_list(20, identity()),))
    assert len(live(session)) == 20
    session.resync(a_list(21, identity()), a_list(21, resource=SLICES), force=True)
    assert live(session) == []
    session.land()
    assert held(session) == ""
    assert session.open() == set()


def test_list_of_another_cluster_deletes_nothing_until_forced_i5() -> None:
    deployment, session = begun(3)
    session.record(lists=(a_list(20, identity(uid="other"), *services(2)),))
    assert live(session) == ["s00", "s01", "s02"]
    assert "the uid of Service default/kubernetes is not the remembered one: another cluster?" in held(session)
    assert session.identity() == "uid-of-default-kubernetes"
    following = deployment.session()
    following.record(lists=(a_list(30, identity(uid="other"), *services(2)),))
    assert live(session) == ["s00", "s01", "s02"]
    following.resync(a_list(31, identity(uid="other"), *services(2)), a_list(31, resource=SLICES), force=True)
    assert live(session) == ["s00", "s01"]
    assert following.identity() == "other"


def test_list_of_slices_asks_the_cluster_whose_it_is() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(saw(a_service(), 5), slices=[saw(an_endpoints("10.1.0.1"), 6, "web-1")])
    session.probe_says("other")
    session.record(lists=(a_list(20, resource=SLICES),))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.1:8080"]}
    session.probe_says(None)  # cannot be known: the guard alone decides
    session.record(lists=(a_list(21, resource=SLICES),))
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": []}


def test_object_that_comes_back_after_the_list_in_one_window_is_live() -> None:
    _deployment, session = begun(3)
    session.record(
        saw(services(3)[2].value, 31, "s02", uid="made again"), lists=(a_list(30, identity(), *services(2)),)
    )
    assert live(session) == ["s00", "s01", "s02"]
    assert session.state("s02").opened is None


def test_unknown_is_not_empty_while_endpoints_were_never_listed_i5() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    headless = a_service(headless=True)
    session.record(lists=(a_list(10, identity(), saw(a_service(), 5), saw(headless, 6, "db")),))
    assert list(session.intended()) == [
        "_http._tcp.web.shop.svc.prod.example.com SRV",
        "web.shop.svc.prod.example.com A",
    ]
    assert session.intended("db") == {}
    assert deployment.upstream_items() == {}, "not even an empty upstream"
    session.record(lists=(a_list(11, saw(an_endpoints("10.1.0.1", service="db"), 7, "db-1"), resource=SLICES),))
    assert deployment.upstreams() == {"prod/shop/db/80/TCP": ["10.1.0.1:8080"], "prod/shop/web/80/TCP": []}
    assert session.intended("db") == {"db.shop.svc.prod.example.com A": ["10.1.0.1"]}


@pytest.mark.parametrize("first", [SERVICES, SLICES])
def test_problems_stay_reported_while_the_next_plan_is_not_known_i5_i6(first: Resource) -> None:
    deployment = FedDeployment()
    service = saw(a_service(headless=True, annotations={"ttl": "soon"}), 5, "db")
    pods = saw(an_endpoints("10.1.0.1", service="db"), 7, "db-1")
    session = deployment.session()
    session.begin(service, slices=(pods,))
    session.land()
    before = deployment.store.get(state_key(a_key("db")))
    following = deployment.session()
    following.configure(selector="")
    lists = {SERVICES: a_list(20, identity(), service), SLICES: a_list(20, pods, resource=SLICES)}
    following.record(lists=(lists.pop(first),))
    assert [problem.code for problem in following.state("db").problems] == ["InvalidTtl"]
    following.record(lists=tuple(lists.values()))
    assert deployment.store.get(state_key(a_key("db"))) == before, "nothing was written"


def test_events_alone_plan_nothing_while_services_were_never_listed_i5() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    session.record(saw(a_service(), 5))
    assert session.intended() == {}
    assert session.listeners.checkpoints("prod") == {}


def test_restored_store_begins_a_new_generation_in_which_old_versions_mean_nothing() -> None:
    _deployment, session = begun(3)
    session.record(saw(a_service(cluster_ips=("10.0.5.5",), ports=()), 900, "s00"))
    older = [saw(services(1)[0].value, 5, "s00"), saw(services(2)[1].value, 6, "s01")]
    session.record(lists=(a_list(50, identity(), *older, went_back=True),))
    assert live(session) == ["s00", "s01"], "s02's part is of the old generation, and it is not listed"
    assert session.intended("s00") == {"s00.shop.svc.prod.example.com A": ["10.0.1.0"]}
    checkpoint = session.listeners.checkpoints("prod")[SERVICES]
    assert (checkpoint.resource_version, checkpoint.generation) == (50, 2)
    session.record(saw(a_service(cluster_ips=("10.0.5.6",), ports=()), 60, "s00"))
    assert session.intended("s00") == {"s00.shop.svc.prod.example.com A": ["10.0.5.6"]}


def test_generation_goes_on_in_the_next_session() -> None:
    deployment, session = begun(1)
    session.record(saw(a_service(cluster_ips=("10.0.5.5",), ports=()), 900, "s00"))
    session.record(lists=(a_list(50, identity(), *services(1), went_back=True),))
    session.land()
    following = deployment.session()
    assert following.resumes_from(SERVICES) == 50
    following.record(saw(a_service(cluster_ips=("10.0.5.6",), ports=()), 60, "s00"))
    assert following.intended("s00") == {"s00.shop.svc.prod.example.com A": ["10.0.5.6"]}
    checkpoint = following.listeners.checkpoints("prod")[SERVICES]
    assert (checkpoint.resource_version, checkpoint.generation) == (60, 2)


def test_list_below_the_checkpoint_begins_a_new_generation_although_nobody_saw_it_go_back() -> None:
    # The store was restored while the configuration was changed: the reflector lists without an older version to compare.
    deployment, session = begun(2)
    session.wait(30.0)
    session.record(saw(a_service(cluster_ips=("10.0.5.5",), ports=()), 900, "s00"))
    following = deployment.session()
    following.configure(ttl=90)
    following.record(lists=(a_list(50, identity(), *services(2)),))
    assert following.intended("s00") == {"s00.shop.svc.prod.example.com A": ["10.0.1.0"]}
    assert following.listeners.checkpoints("prod")[SERVICES].generation == 2


def test_other_server_begins_a_new_generation() -> None:
    deployment, _session = begun(2)
    following = deployment.session()
    following.configure(server="https://other.test")
    assert following.resumes_from(SERVICES) is None
    moved = saw(a_service(cluster_ips=("10.7.0.1",), ports=()), 3, "s00", uid="other")
    following.record(lists=(a_list(4, identity(), moved, services(2)[1]),))
    assert following.intended("s00") == {"s00.shop.svc.prod.example.com A": ["10.7.0.1"]}


def test_objects_out_of_a_changed_scope_go_and_those_in_it_are_guarded_on_their_own() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    elsewhere = [saw(a_service(ports=()), 5, f"e{n}", namespace="elsewhere") for n in range(40)]
    session.begin(*services(12), *elsewhere)
    session.configure(namespaces=("shop",))
    session.record(lists=(a_list(20),))
    assert live(session) == [f"s{n:02d}" for n in range(12)]
    assert "the list lacks 12 of 12 objects, more than 30%" in held(session)


def test_changed_configuration_plans_every_key_and_releases_what_only_the_old_one_wanted() -> None:
    deployment, session = begun(2)
    session.configure(domain="new.example.com")
    session.record(lists=(a_list(20, identity(), *services(2)),))
    assert session.open() == {"s00", "s01"}
    session.land()
    assert sorted(deployment.claims()) == ["s00.shop.svc.new.example.com", "s01.shop.svc.new.example.com"]


def test_same_list_again_writes_identity_and_checkpoint_only_i6() -> None:
    deployment, session = begun(30)
    deployment.calls.clear()
    session.record(lists=(a_list(20, identity(), *services(30)),))
    (call,) = deployment.writes()
    assert sorted(str(action.key.sort) for action in call.actions) == [
        "checkpoint#services",
        "fence",
        "identity",
    ]


def test_full_resync_mends_upstreams_that_were_changed_by_hand() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    listed = (
        a_list(10, identity(), saw(a_service(), 5)),
        a_list(10, saw(an_endpoints("10.1.0.1"), 6, "web-1"), resource=SLICES),
    )
    session.record(lists=listed)
    session.land()
    from kubesync.aws.dynamodb.store import Key, Update

    deployment.store.write(Update(Key("upstreams", "prod/shop/web/80/TCP", 0), set={"nodes": []}))
    session.record(lists=listed)
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": []}, "not looked at without being asked"
    session.resync(*listed)
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.1:8080"]}
    deployment.calls.clear()
    session.resync(*listed)
    assert not any(action.key.table == "upstreams" for call in deployment.writes() for action in call.actions)


def test_upstream_left_behind_in_slices_by_a_removed_cluster_is_taken_over_whole() -> None:
    deployment = FedDeployment()
    session = deployment.session()
    from kubesync.aws.tables.upstreams import UpstreamTable
    from kubesync.domain.dns.records import Node

    nodes = [Node(f"10.3.{n // 256}.{n % 256}", 8080, ready=True, pod="p" * 60) for n in range(2000)]
    _, left = UpstreamTable.put("prod/shop/web/80/TCP", None, nodes, 0.0)
    assert len(left) == 3
    deployment.store.transact(left, "retained")
    session.begin(saw(a_service(), 5), slices=[saw(an_endpoints("10.1.0.1"), 6, "web-1")])
    assert deployment.upstreams() == {"prod/shop/web/80/TCP": ["10.1.0.1:8080"]}
    assert [(key.sort, item["version"]) for key, item in deployment.upstream_items().items()] == [(0, 2)]


def test_dry_run_says_what_a_list_would_change_and_writes_nothing() -> None:
    deployment, session = begun(20)
    deployment.calls.clear()
    listed = a_list(20, identity(), *services(2)), a_list(20, resource=SLICES)
    (found,) = session.dry_run(*listed)["clusters"]
    assert found["held"]["services"].startswith("the list lacks 18 of 21 objects, more than 30%")
    (found,) = session.dry_run(*listed, force=True)["clusters"]
    assert found["held"] == {}
    assert len([change for change in found["changes"] if change["to"] is None]) == 18
    assert deployment.writes() == []
