"""I5: a changed configuration, or new rules, that would delete more than 30 % of a cluster's record sets is held until a person confirms it."""

from typing import Any

import pytest

from harness.fed import FedDeployment, FedSession
from harness.seen.builders import SERVICES, SLICES, a_list, a_service, an_endpoints, identity, saw
from kubesync.domain.objects import Observation
from kubesync.domain.plan import Policy

COUNT = 12


def services(number: int = COUNT, **of_service: Any) -> list[Observation]:
    """Each has two record sets: A and AAAA."""
    return [
        saw(a_service(cluster_ips=(f"10.0.1.{n}", f"fd00::{n + 1}"), ports=(), **of_service), 5, f"s{n:02d}")
        for n in range(number)
    ]


def named(*, seen: bool = True) -> list[Observation]:
    """Each has a second name by an annotation, as long as its prefix is read."""
    return [
        saw(
            a_service(ports=(), annotations={"hostname": f"h{n}.svc.prod.example.com"} if seen else {}),
            5,
            f"s{n:02d}",
        )
        for n in range(COUNT)
    ]


def begun(*items: Observation, **config: Any) -> tuple[FedDeployment, FedSession]:
    deployment = FedDeployment()
    session = deployment.session()
    if config:
        session.configure(**config)
    session.begin(*items)
    session.land()
    return deployment, session


def published(session: FedSession) -> int:
    """How many record sets there are to be."""
    return sum(len(state.intended) for state in session.state_table.load_all("prod"))


def held(session: FedSession) -> int:
    """How many deletions the keys say are held back."""
    problems = (p for state in session.state_table.load_all("prod") for p in state.problems)
    return sum(problem.code == "DeletionHeld" for problem in problems)


def why(session: FedSession) -> str:
    return session.end().clusters[-1].held.get("services", "")


def test_prefix_that_nothing_matches_deletes_nothing_until_it_is_forced_i5() -> None:
    deployment, session = begun(*named())
    assert published(session) == 24
    session.configure(allowed_deletions=0, annotation_prefix="dns.example.net/")
    lists = a_list(20, identity(), *named(seen=False)), a_list(20, resource=SLICES)
    session.record(lists=lists)
    session.land()
    assert (published(session), held(session)) == (24, 12)
    assert session.open() == set()
    assert why(session).startswith(
        "the configuration, or a new release, would delete 12 of 24 record sets, more than 30%; "
        "`kubesync resync --cluster prod --force` lets the deletions through"
    )
    # Neither news of a Service nor a later list, in another session, lets them go.
    session = deployment.session()
    session.record(saw(a_service(cluster_ips=("10.0.9.9",), ports=()), 30, "s03"))
    session.record(lists=(a_list(40, identity(), *named(seen=False)),))
    session.land()
    assert (published(session), held(session)) == (24, 12)
    session.record(saw(None, 50, "s05", deleted=True))
    assert (published(session), held(session)) == (22, 11)
    session.land()
    left = [seen for seen in named(seen=False) if seen.name != "s05"]
    session.resync(a_list(60, identity(), *left), a_list(60, resource=SLICES), force=True)
    session.land()
    assert (published(session), held(session)) == (11, 0)
    assert why(session) == ""


def test_configuration_that_is_taken_back_releases_what_was_held_i5() -> None:
    _deployment, session = begun(*named())
    session.configure(allowed_deletions=0, annotation_prefix="dns.example.net/")
    session.record(lists=(a_list(20, identity(), *named(seen=False)), a_list(20, resource=SLICES)))
    assert held(session) == 12
    session.configure(allowed_deletions=0, annotation_prefix=None)
    session.record(lists=(a_list(20, identity(), *named()), a_list(20, resource=SLICES)))
    assert (published(session), held(session)) == (24, 0)


def test_namespace_that_is_left_out_is_held_with_its_upstreams_i5() -> None:
    _deployment, session = begun(*services())
    session.configure(allowed_deletions=0, exclude_namespaces=("shop",))
    session.record(lists=(a_list(20, identity()), a_list(20, resource=SLICES)))
    session.land()
    assert published(session) == 24
    assert held(session) == 12  # one for each Service that is not listed any more
    session.resync(a_list(30, identity()), a_list(30, resource=SLICES), force=True)
    assert (published(session), held(session)) == (0, 0)


def test_zone_that_is_left_out_is_held_i5() -> None:
    _deployment, session = begun(*services())
    session.configure(allowed_deletions=0, domain="other.example.com")
    session.record(lists=(a_list(20, identity(), *services()), a_list(20, resource=SLICES)))
    assert published(session) == 48, "the new names stand beside the old ones"
    assert held(session) == 24


@pytest.mark.parametrize(("allowed", "left"), [(12, 12), (11, 24)])
def test_so_many_deletions_as_a_person_confirmed_go_i5(allowed: int, left: int) -> None:
    _deployment, session = begun(*named())
    session.configure(allowed_deletions=allowed, annotation_prefix="dns.example.net/")
    session.record(lists=(a_list(20, identity(), *named(seen=False)), a_list(20, resource=SLICES)))
    assert published(session) == left


def test_confirmation_is_of_no_use_for_a_later_revision_i5() -> None:
    _deployment, session = begun(*named())
    session.configure(allowed_deletions=12, ttl=90)
    session.record(lists=(a_list(20, identity(), *named()), a_list(20, resource=SLICES)))
    session.configure(allowed_deletions=0, annotation_prefix="dns.example.net/")
    session.record(lists=(a_list(30, identity(), *named(seen=False)), a_list(30, resource=SLICES)))
    assert published(session) == 24


def test_few_deletions_go_without_confirmation_i5() -> None:
    fewer = [*named()[:9], *named(seen=False)[9:]]
    _deployment, session = begun(*named())
    session.configure(allowed_deletions=0, ttl=90)
    session.record(lists=(a_list(20, identity(), *fewer), a_list(20, resource=SLICES)))
    assert (published(session), held(session)) == (21, 0)


def test_change_of_type_is_no_deletion_i5() -> None:
    _deployment, session = begun(*services())
    session.configure(allowed_deletions=0, ttl=77)
    session.record(lists=(a_list(20, identity(), *services()), a_list(20, resource=SLICES)))
    assert (published(session), held(session)) == (24, 0)


def test_policy_that_deletes_again_is_held_i5() -> None:
    _deployment, session = begun(*services(), policy=Policy.UPSERT_ONLY)
    gone = [saw(None, 20 + n, f"s{n:02d}", deleted=True) for n in range(COUNT)]
    session.record(*gone)
    session.land()
    before = len(session.deployment.route53.records("Z1"))
    session.configure(allowed_deletions=0, policy=Policy.SYNC)
    session.record(lists=(a_list(60, identity()), a_list(60, resource=SLICES)))
    session.land()
    assert len(session.deployment.route53.records("Z1")) == before


def test_new_rules_are_held_like_a_changed_configuration_i5(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment, session = begun(*named())
    session.end()
    monkeypatch.setattr("kubesync.cluster.keys.key_states.RULES_VERSION", 1_000)
    session = deployment.session()
    assert session.resumes_from(SERVICES) is None
    session.record(lists=(a_list(20, identity(), *named(seen=False)), a_list(20, resource=SLICES)))
    assert (published(session), held(session)) == (24, 12)


def test_confirmation_is_of_no_use_for_later_rules_i5(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment, session = begun(*named())
    session.configure(allowed_deletions=12, ttl=90)
    session.record(lists=(a_list(20, identity(), *named()), a_list(20, resource=SLICES)))
    session.land()
    session.end()
    monkeypatch.setattr("kubesync.cluster.keys.key_states.RULES_VERSION", 1_000)
    session = deployment.session()
    session.record(lists=(a_list(30, identity(), *named(seen=False)), a_list(30, resource=SLICES)))
    assert published(session) == 24


def test_removal_of_a_cluster_takes_what_was_held_too_i5() -> None:
    _deployment, session = begun(*named())
    session.configure(allowed_deletions=0, annotation_prefix="dns.example.net/")
    session.record(lists=(a_list(20, identity(), *named(seen=False)), a_list(20, resource=SLICES)))
    assert held(session) == 12
    session.configure(deleting=True)
    session.land()
    assert published(session) == 0


@pytest.mark.parametrize("between", ["the same session", "a hand-over", "a death"])
def test_lists_of_one_configuration_count_together_also_over_sessions_i5(between: str) -> None:
    """Names of headless Services go with the list of endpoints: each list takes less than 30 %, both take more."""

    def all_of(*, seen: bool) -> list[Observation]:
        asks = {f"{kind}{n}": f"{kind}{n}.svc.prod.example.com" for kind in "ch" for n in range(9)}
        annotations = {name: {"hostname": asked} if seen else {} for name, asked in asks.items()}
        of_ips = [saw(a_service(ports=(), annotations=annotations[f"c{n}"]), 5, f"c{n}") for n in range(9)]
        headless = [
            saw(a_service(cluster_ips=("None",), ports=(), annotations=annotations[f"h{n}"]), 5, f"h{n}")
            for n in range(9)
        ]
        return [*of_ips, *headless, *services(6)]

    slices = [saw(an_endpoints(f"10.2.0.{n + 1}", service=f"h{n}"), 5, f"h{n}-x", resource=SLICES) for n in range(9)]
    deployment = FedDeployment()
    session = deployment.session()
    session.begin(*all_of(seen=True), slices=slices)
    session.land()
    assert published(session) == 4 * 9 + 12
    session.configure(allowed_deletions=0, annotation_prefix="dns.example.net/")
    session.record(lists=(a_list(20, identity(), *all_of(seen=False)),))
    session.land()
    assert (published(session), held(session)) == (3 * 9 + 12, 0)  # 9 of 48
    if between != "the same session":
        if between == "a hand-over":
            session.end()
        session = deployment.session()
        # Whatever else is written meanwhile keeps the count.
        session.record(saw(a_service(cluster_ips=("10.0.9.9",), ports=()), 30, "c0"))
        session.land()
    session.record(lists=(a_list(20, *slices, resource=SLICES),))
    session.land()
    assert (published(session), held(session)) == (3 * 9 + 12, 9)  # 9 of 39, with the others 18 of 48
