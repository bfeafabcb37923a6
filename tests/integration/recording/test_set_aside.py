"""A key that ends sessions while it is planned: after two deaths its endpoints are not taken in, and everybody else is served (I4, I9)."""

from typing import Any, Final

import pytest

from harness.fakes.memory_store import Call
from harness.fakes.store_faults import CrashError
from harness.fed import FedDeployment, FedSession, runs_that_die
from harness.seen.builders import SERVICES, SLICES, a_list, a_service, an_endpoints, identity, saw
from kubesync.aws.dynamodb.store import CONTROL, STATE, Item, Key, Put
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import Observation
from kubesync.domain.state import KeyState

PLANNING: Final = Key(CONTROL, "cluster#prod", "planning")
UPSTREAM: Final = "prod/shop/web/80/TCP"
SERVICE: Final = saw(a_service(), 5)
OTHER: Final = saw(a_service(cluster_ips=["10.0.0.7"]), 6, "other")
SMALL: Final = saw(an_endpoints("10.1.0.1"), 7, "web-0")


def slices(count: int, version: int = 20, first: int = 0) -> list[Observation]:
    """Slices of web with 1,000 endpoints and a port each: 20 of them are large. All endpoints are the same one."""
    return [saw(an_endpoints(*["10.1.0.2"] * 1000), version + n, f"web-{first + n}") for n in range(count)]


class DiesPlanning:
    """The session dies as soon as it plans what it has noted."""

    def before(self, call: Call) -> None: ...

    def after(self, call: Call) -> None:
        for action in call.actions:
            if action.key == PLANNING and isinstance(action, Put) and action.item["under_way"]:
                raise CrashError


class Dies:
    """The session dies as soon as it writes a key."""

    def before(self, call: Call) -> None:
        if any(action.key.table == STATE for action in call.actions):
            raise CrashError

    def after(self, call: Call) -> None: ...


def begun() -> tuple[FedDeployment, FedSession]:
    """Services web and other, recorded and closed."""
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(SERVICE, OTHER, slices=[SMALL])
    session.land()
    assert deployment.store.get(PLANNING) is None
    deployment.faults = DiesPlanning()
    return deployment, session


def dies(session: FedSession, *seen: Observation) -> None:
    with pytest.raises(CrashError):
        session.record(*seen)


def set_aside() -> tuple[FedDeployment, FedSession]:
    """Two sessions died of web. The third goes on."""
    deployment, session = begun()
    dies(session, *slices(20))
    dies(deployment.session(), *slices(20))
    session = deployment.session()
    session.record(*slices(20), saw(a_service(cluster_ips=["10.0.0.8"]), 60, "other"))
    return deployment, session


def code(state: KeyState) -> str:
    return "" if state.opened is None else state.opened.code


def noted(deployment: FedDeployment) -> dict[str, Any]:
    item = deployment.store.get(PLANNING)
    assert item is not None
    return {name: item[name] for name in ("well_of", "under_way", "deaths")}


def test_i4_after_two_deaths_the_third_session_serves_everybody_else() -> None:
    deployment, session = set_aside()

    assert session.intended("other") == {
        "other.shop.svc.prod.example.com A": ["10.0.0.8"],
        "_http._tcp.other.shop.svc.prod.example.com SRV": ["0 100 80 other.shop.svc.prod.example.com."],
    }
    web = session.state()
    assert code(web) == "SetAside"
    assert [problem.code for problem in web.problems] == ["SetAside"]
    assert deployment.upstreams()[UPSTREAM] == ["10.1.0.1:8080"]
    assert session.open() == {"web", "other"}
    session.land()
    assert session.open() == {"web"}
    assert deployment.running is not None
    assert deployment.running.alive


def test_i1_what_was_not_taken_in_is_listed_again_and_service_changes_are_published() -> None:
    deployment, session = set_aside()
    session.record(saw(a_service(cluster_ips=["10.0.0.9"]), 70))
    assert session.intended()["web.shop.svc.prod.example.com A"] == ["10.0.0.9"]
    session.land()
    assert code(session.state()) == "SetAside"
    session.end()

    session = deployment.session()
    assert session.resumes_from(SLICES) is None
    assert session.resumes_from(SERVICES) is not None
    session.record(lists=[a_list(80, saw(an_endpoints("10.1.0.3"), 75, "web-0"), resource=SLICES)])

    assert deployment.upstreams()[UPSTREAM] == ["10.1.0.3:8080"]
    assert code(session.state()) == ""
    assert session.state().problems == ()
    session.end()
    assert deployment.session().resumes_from(SLICES) == 80


def test_i5_nothing_of_a_key_that_is_set_aside_counts_as_deleted() -> None:
    deployment, session = set_aside()
    session.end()
    session = deployment.session()

    session.record(lists=[a_list(80, *slices(20, first=1), resource=SLICES)])  # without web-0

    assert code(session.state()) == "SetAside"
    assert deployment.upstreams()[UPSTREAM] == ["10.1.0.1:8080"]
    assert {part.name: stored.deleted for part, stored in session.state().parts.items()} == {
        "web": False,
        "web-0": False,
    }


def test_i6_key_that_stays_set_aside_causes_no_write() -> None:
    deployment, session = set_aside()
    session.land()
    session.end()
    session = deployment.session()
    session.record(lists=[a_list(80, *slices(20), resource=SLICES)])
    deployment.calls.clear()

    session.record(*slices(20, 90))

    assert deployment.writes() == []


def test_service_that_is_gone_is_not_set_aside_any_more() -> None:
    deployment, session = set_aside()
    session.land()
    session.record(saw(None, 70, resource=SERVICES, deleted=True))
    session.end()
    session = deployment.session()
    session.record(lists=[a_list(80, resource=SLICES)])
    session.land()

    assert session.open() == set()
    assert UPSTREAM not in deployment.upstreams()


def test_person_has_it_tried_again_at_once() -> None:
    deployment, session = set_aside()
    deployment.spare()
    session.land()

    session.resync(a_list(80, identity(), SERVICE, OTHER), a_list(80, *slices(20), resource=SLICES))

    assert deployment.upstreams()[UPSTREAM] == ["10.1.0.2:8080"]
    assert code(session.state()) == ""
    assert noted(deployment) == {"well_of": {"shop": 20_020}, "under_way": [], "deaths": {}}


def test_i4_dry_run_says_what_is_set_aside_and_plans_none_of_its_endpoints() -> None:
    deployment, session = set_aside()
    deployment.spare()
    session.land()
    deployment.calls.clear()
    other = saw(a_service(cluster_ips=["10.0.0.9"]), 79, "other")

    (found,) = session.dry_run(a_list(80, identity(), SERVICE, other), a_list(80, *slices(20), resource=SLICES))[
        "clusters"
    ]

    assert found["set_aside"] == ["prod/shop/web"]
    assert [(row["service"], row["to"]["values"]) for row in found["records"]] == [("prod/shop/other", ["10.0.0.9"])]
    assert [row["what"] for row in found["changes"] if row["what"].startswith("upstream")] == []
    assert deployment.writes() == []


def test_i6_dry_run_plans_what_nobody_died_of_and_notes_nothing() -> None:
    deployment, session = begun()
    deployment.calls.clear()

    (found,) = session.dry_run(a_list(80, identity(), SERVICE, OTHER), a_list(80, SMALL, *slices(20), resource=SLICES))[
        "clusters"
    ]

    assert "set_aside" not in found
    assert [row["what"] for row in found["changes"]] == [f"upstream {UPSTREAM}"]
    assert deployment.writes() == []


def test_it_is_tried_again_later_and_later() -> None:
    deployment, session = set_aside()
    session.end()
    deployment.clock.advance(3600)
    session = deployment.session()
    with pytest.raises(CrashError):
        session.record(lists=[a_list(80, *slices(20), resource=SLICES)])
    session = deployment.session()
    session.record(lists=[a_list(80, *slices(20), resource=SLICES)])

    assert code(session.state()) == "SetAside"
    died = noted(deployment)["deaths"]["shop"]
    assert died[:2] == [20_020, 3]
    assert 7100 < died[2] / 1000 - deployment.clock.epoch_seconds() <= 7200


def test_size_that_was_planned_well_is_not_noted_again_i6() -> None:
    deployment, session = begun()
    deployment.spare()
    session.record(*slices(20))
    assert noted(deployment) == {"well_of": {"shop": 20_020}, "under_way": [], "deaths": {}}
    deployment.calls.clear()

    session.record(saw(an_endpoints(*["10.1.0.4"] * 990), 70, "web-3"))

    assert deployment.upstreams()[UPSTREAM] == ["10.1.0.2:8080", "10.1.0.4:8080"]
    assert all(action.key != PLANNING for call in deployment.writes() for action in call.actions)


def test_session_that_ends_well_does_not_count_and_smaller_keys_are_tried() -> None:
    deployment, session = begun()
    dies(session, *slices(30))
    session = deployment.session()
    assert noted(deployment)["deaths"]["shop"][:2] == [30_030, 1]
    session.end()
    dies(deployment.session(), *slices(22))  # more than a quarter smaller: not the same
    deployment.session()

    assert noted(deployment)["deaths"]["shop"][:2] == [22_022, 1]


def test_i9_deaths_of_one_namespace_set_nothing_of_another_aside() -> None:
    deployment, session = set_aside()
    deployment.spare()
    others = [saw(an_endpoints(*["10.2.0.1"] * 1000), 90 + n, f"web-{n}", namespace="own") for n in range(20)]

    session.record(saw(a_service(), 80, namespace="own"), *others)

    assert deployment.upstreams()["prod/own/web/80/TCP"] == ["10.2.0.1:8080"]
    assert code(session.state()) == "SetAside"


def test_i9_size_that_one_namespace_planned_well_says_nothing_of_another() -> None:
    deployment, session = begun()
    deployment.spare()
    session.record(*slices(30))
    deployment.faults = DiesPlanning()
    others = [saw(an_endpoints(*["10.2.0.1"] * 1000), 90 + n, f"web-{n}", namespace="own") for n in range(20)]

    dies(session, saw(a_service(), 80, namespace="own"), *others)


def test_i4_after_an_unclean_end_no_size_counts_as_planned_well() -> None:
    """The function may have less memory than when it was planned."""
    deployment, session = begun()
    deployment.spare()
    session.record(*slices(20))
    deployment.faults = Dies()
    dies(session, saw(a_service(cluster_ips=["10.0.0.8"]), 60))
    deployment.faults = DiesPlanning()

    dies(deployment.session(), *slices(20, 90))
    deployment.session()

    assert noted(deployment)["deaths"]["shop"][:2] == [20_020, 1]


def test_i5_new_service_that_is_as_large_gets_no_empty_upstream() -> None:
    deployment, session = set_aside()
    huge = [saw(an_endpoints(*["10.1.0.2"] * 1000, service="huge"), 90 + n, f"huge-{n}") for n in range(20)]

    session.record(saw(a_service(cluster_ips=["10.0.0.4"]), 80, "huge"), *huge)

    assert code(session.state("huge")) == "SetAside"
    assert session.intended("huge")["huge.shop.svc.prod.example.com A"] == ["10.0.0.4"]
    assert "prod/shop/huge/80/TCP" not in deployment.upstreams()


def test_note_that_a_session_left_that_ended_well_counts_nothing() -> None:
    deployment, session = begun()
    session.end()
    item: Item = {"v": 1, "tx": "t", "well": 0, "under_way": ["shop", 20_020], "deaths": {}}
    deployment.store.write(Put(PLANNING, item))

    deployment.session()

    assert noted(deployment) == {"well_of": {}, "under_way": [], "deaths": {}}


@pytest.mark.thorough
@pytest.mark.soak
def test_i1_session_that_dies_at_any_transaction_of_a_large_key_loses_nothing() -> None:
    changed = saw(a_service(cluster_ips=["10.0.0.8"]), 60, "other")

    def prepare(deployment: FedDeployment) -> None:
        deployment.session().begin(SERVICE, OTHER, slices=[SMALL])

    def play(deployment: FedDeployment) -> None:
        deployment.session().record(*slices(20), changed)

    died = []
    for when, deployment in runs_that_die(play, prepare=prepare):
        died.append(when)
        assert deployment.upstreams()[UPSTREAM] == ["10.1.0.2:8080"], when
        assert (noted(deployment)["well_of"], noted(deployment)["under_way"]) == ({"shop": 20_020}, []), when
        stored = {state.key.name: state for state in StateTable(deployment.store).load_all("prod")}
        assert (code(stored["web"]), len(stored["web"].parts)) == ("", 21), when
        assert [found.values for key, found in stored["other"].intended.items() if key.type == "A"] == [("10.0.0.8",)]
    assert len(died) >= 6  # the note, the key, its end, before and after each
