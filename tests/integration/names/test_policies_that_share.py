"""Services that share a name by a routing policy: who has a region, a role or a place, and which policy the name has (I9)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import given, settings, strategies as st

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service, an_endpoints
from kubesync.aws.tables.state import state_key
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Weighted
from kubesync.domain.objects import ObjectKey
from kubesync_local.standins.route53.zone.model import Limits
from simulation.writes import RECORD, SENT

WWW: Final = "www.example.com"
EU: Final = {"aws-region": "eu-west-1"}
US: Final = {"aws-region": "us-east-1"}
PRIMARY: Final = {"aws-failover": "PRIMARY", "aws-health-check-id": "known"}
SECONDARY: Final = {"aws-failover": "SECONDARY"}
MANY: Final = {"aws-multi-value-answer": "true"}
GEOPROXIMITY: Final = {"aws-geoproximity-region": "eu-west-1"}


class Policies(Deployment):
    """A deployment in which ``a`` is 10.9.0.1, ``b`` 10.9.0.2 and so on."""

    def __init__(self) -> None:
        super().__init__(limits=Limits(health_checks=frozenset({"known"})), domain_filter=("example.com",))

    def ask(self, name: str, policy: dict[str, str] | None, identifier: str = "", seconds: float = 4.0) -> None:
        """A Service that asks for the name; without a policy: a simple set."""
        asked = {"hostname": WWW} | ({} if policy is None else {"set-identifier": identifier or name, **policy})
        self.apply(name, a_service(cluster_ips=(f"10.9.0.{ord(name) - 96}",), ports=(), annotations=asked))
        self.pass_time(seconds)

    def www(self) -> dict[str, str]:
        """What stands at the name: by set identifier, the policy and the last part of the address."""
        return {
            key.identifier: f"{found.routing.words} at {found.values[0][-1]}"
            for key, found in self.route53.records(ZONE_ID).items()
            if key.name == WWW
        }

    def told(self, name: str) -> list[str]:
        return [problem.message for problem in self.state(name).problems]


@pytest.fixture
def deployment() -> Iterator[Policies]:
    made = Policies()
    made.start()
    yield made
    made.close()


def test_i9_region_belongs_to_who_came_first_and_goes_to_the_next(deployment: Policies) -> None:
    deployment.ask("a", EU)
    deployment.ask("b", US)
    deployment.ask("c", EU)
    assert deployment.www() == {"a": "latency eu-west-1 at 1", "b": "latency us-east-1 at 2"}
    assert deployment.told("c") == ["prod/shop/a has it: only one set of a name has latency eu-west-1"]
    assert not [claim for claim in deployment.state("c").claims if claim.name == WWW], (
        "its identifier is free for others"
    )
    assert deployment.state("c").waits == {next(n for n in deployment.state("a").claims if n.seat and n.name == WWW)}
    deployment.delete("a")
    deployment.pass_time(4.0)
    assert deployment.www() == {"b": "latency us-east-1 at 2", "c": "latency eu-west-1 at 3"}
    assert (deployment.told("c"), deployment.waiters(), deployment.heirs()) == ([], [], [])
    assert deployment.refusals == []


@pytest.mark.parametrize("then", [None, {}, US])
def test_i9_identifier_and_region_go_to_the_next_together(deployment: Policies, then: dict[str, str] | None) -> None:
    deployment.ask("a", EU, "x")
    deployment.ask("b", EU, "x")
    deployment.ask("a", then, "y", seconds=8.0)
    assert deployment.state("a").opened is None
    assert ("x", "latency eu-west-1 at 2") in deployment.www().items() or not then  # else the name is of another policy
    deployment.delete("a")
    deployment.pass_time(8.0)
    assert deployment.www() == {"x": "latency eu-west-1 at 2"}
    assert (deployment.waiters(), deployment.heirs(), deployment.refusals) == ([], [], [])


def test_i9_who_wants_another_region_keeps_what_it_has_until_that_is_free(deployment: Policies) -> None:
    deployment.ask("a", EU)
    deployment.ask("b", US)
    deployment.ask("b", EU)
    assert deployment.www() == {"a": "latency eu-west-1 at 1", "b": "latency us-east-1 at 2"}
    deployment.ask("a", {"aws-region": "sa-east-1"})
    assert deployment.www() == {"a": "latency sa-east-1 at 1", "b": "latency eu-west-1 at 2"}
    claims = {claim for claim in deployment.claims() if claim.startswith(WWW)}
    assert claims == {
        f"{WWW}#set#a", f"{WWW}#set#b", f"{WWW}#is#latency%20sa-east-1", f"{WWW}#is#latency%20eu-west-1"
    }  # fmt: skip
    assert deployment.refusals == []


@pytest.mark.parametrize("other", [PRIMARY, SECONDARY, {"aws-multi-value-answer": "true"}, {}, None])
def test_i9_name_has_one_policy_and_who_wants_another_waits(deployment: Policies, other: dict[str, str] | None) -> None:
    deployment.ask("a", EU)
    deployment.ask("b", other)
    assert deployment.www() == {"a": "latency eu-west-1 at 1"}
    [told] = deployment.told("b")
    assert told.startswith("the name is claimed by prod/shop/a, ")
    deployment.delete("a")
    deployment.pass_time(4.0)
    assert next(iter(deployment.www().values())).endswith(" at 2")
    assert (deployment.told("b"), deployment.waiters(), deployment.refusals) == ([], [], [])


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ((MANY, "x"), (MANY, "x"), "the same set identifier: to share it, give this one another identifier"),
        ((EU, "x"), (US, "x"), "the same set identifier: to share it, give this one another identifier"),
        ((MANY, "x"), ({}, "y"), "policy multivalue: to share it, both need the same policy"),
        (({}, "x"), (MANY, "y"), "policy weighted: to share it, both need the same policy"),
        ((PRIMARY, "x"), (GEOPROXIMITY, "y"), "policy failover: to share it, both need the same policy"),
        (({}, "x"), (EU, "x"), "the same set identifier and policy weighted: to share it, give this one another identifier and that policy"),
        ((EU, "x"), (None, ""), "policy latency: to share it, give this one a set identifier and that policy"),
    ],
)  # fmt: skip
def test_reason_says_once_who_has_the_name_with_which_policy_and_what_helps(
    deployment: Policies, first: tuple[dict[str, str], str], second: tuple[dict[str, str] | None, str], told: str
) -> None:
    deployment.ask("a", *first)
    deployment.ask("b", *second)
    assert deployment.told("b") == [f"the name is claimed by prod/shop/a, with {told}"]


def test_reason_of_a_simple_set_that_is_in_the_way_says_what_helps(deployment: Policies) -> None:
    deployment.ask("a", None)
    deployment.ask("b", MANY)
    deployment.ask("c", None)
    helps = "without a policy: to share it, give that one a set identifier and policy multivalue"
    assert deployment.told("b") == [f"the name is claimed by prod/shop/a, {helps}"]
    assert deployment.told("c") == ["the name is claimed by prod/shop/a"]


@pytest.mark.parametrize("first", [PRIMARY, {}, None])
def test_i9_who_changes_to_a_policy_that_the_name_does_not_have_keeps_what_it_has(
    deployment: Policies, first: dict[str, str] | None
) -> None:
    deployment.ask("a", first)
    if first is not None:
        deployment.ask("b", SECONDARY if first else {})
    deployment.end()
    deployment.start()
    deployment.pass_time(4.0)
    deployment.ask("a", EU)
    stood = deployment.www()
    if first is None:
        assert stood == {"a": "latency eu-west-1 at 1"}, "alone, it changes"
        return
    assert list(stood) == ["a", "b"]
    assert "latency" not in str(stood)
    deployment.delete("b")
    deployment.pass_time(4.0)
    assert deployment.www() == {"a": "latency eu-west-1 at 1"}
    assert deployment.refusals == [], "claims say so, also to a session that has met none of these sets"


def test_i9_who_leaves_a_policy_that_others_have_keeps_what_it_has(deployment: Policies) -> None:
    deployment.ask("a", EU)
    deployment.ask("b", US)
    for other in ({}, None, SECONDARY):
        deployment.ask("b", other)
        assert deployment.www() == {"a": "latency eu-west-1 at 1", "b": "latency us-east-1 at 2"}
    assert deployment.refusals == []


def test_i9_who_thinks_better_of_a_policy_before_its_set_stands_has_that_until_others_want_another(
    deployment: Policies,
) -> None:
    deployment.ask("a", EU)
    deployment.route53.denied = frozenset({ZONE_ID})
    deployment.ask("b", US)
    deployment.ask("b", {})
    deployment.route53.denied = frozenset()
    deployment.pass_time(90.0)
    assert deployment.www() == {"a": "latency eu-west-1 at 1", "b": "latency us-east-1 at 2"}
    assert deployment.refusals == []


def test_policy_of_one_service_changes_in_one_batch_and_leaves_nothing_behind(deployment: Policies) -> None:
    for policy, stands in (
        (None, "simple at 1"), ({}, "weighted 1 at 1"), (EU, "latency eu-west-1 at 1"), (US, "latency us-east-1 at 1"),
        (PRIMARY, "failover PRIMARY, health check known at 1"), ({"aws-weight": "0"}, "weighted 0 at 1"), (None, "simple at 1"),
    ):  # fmt: skip
        sent = len(deployment.sent)
        deployment.ask("a", policy)
        assert list(deployment.www().values()) == [stands]
        assert len(deployment.sent) == sent + 1
    assert {claim for claim in deployment.claims() if claim.startswith(WWW)} == {WWW}
    item = deployment.store.get(state_key(ObjectKey("prod", "shop", "a")))
    assert item is not None
    assert item["v"] == 1, "an older release reads it again"
    assert deployment.refusals == []


def test_i5_key_with_another_policy_has_a_form_that_older_releases_leave_alone(deployment: Policies) -> None:
    deployment.ask("a", EU)
    deployment.ask("b", {})
    for name in ("a", "b"):  # b waits in the line of a seat
        item = deployment.store.get(state_key(ObjectKey("prod", "shop", name)))
        assert item is not None
        assert item["v"] == 4


def test_i9_service_without_endpoints_for_a_moment_keeps_its_region(deployment: Policies) -> None:
    headless = a_service(headless=True, ports=(), annotations={"hostname": WWW, "set-identifier": "a", **EU})
    deployment.apply("a", headless)
    deployment.apply("a", an_endpoints("10.9.0.1", service="a"), slice_name="a-1")
    deployment.pass_time(4.0)
    deployment.apply("a", an_endpoints(service="a"), slice_name="a-1")
    deployment.pass_time(4.0)
    deployment.ask("b", EU)
    assert deployment.www() == {}
    assert deployment.told("b") == ["prod/shop/a has it: only one set of a name has latency eu-west-1"]
    deployment.apply("a", an_endpoints("10.9.0.1", service="a"), slice_name="a-1")
    deployment.pass_time(4.0)
    assert deployment.www() == {"a": "latency eu-west-1 at 1"}


def test_i4_health_check_that_route_53_does_not_know_holds_up_no_other(deployment: Policies) -> None:
    deployment.ask("a", {**EU, "aws-health-check-id": "unknown"}, seconds=0.0)
    deployment.ask("b", US)
    assert deployment.www() == {"b": "latency us-east-1 at 2"}
    mark = deployment.state("a").opened
    assert mark is not None
    assert (mark.code, mark.reason) == (
        "RoutingNotPossible", "Route 53 rejects it: A health check with id unknown does not exist."
    )  # fmt: skip
    deployment.ask("a", {**EU, "aws-health-check-id": "known"})
    assert deployment.www()["a"] == "latency eu-west-1, health check known at 1"


@pytest.mark.parametrize("policy", [{**SECONDARY, "aws-failover": "PRIMARY"}, MANY, EU, {}])
@pytest.mark.parametrize("other", [{}, EU, MANY, PRIMARY, None])
def test_i4_who_waits_when_a_health_check_turns_out_unknown_gets_the_name_whatever_it_waits_for(
    deployment: Policies, policy: dict[str, str], other: dict[str, str] | None
) -> None:
    """The owner's set is refused once, and there is nothing of it at the name. It stands in line then."""
    deployment.ask("a", {**policy, "aws-health-check-id": "typo"}, seconds=0.0)
    deployment.ask("b", other, seconds=30.0)
    assert [text[-1] for text in deployment.www().values()] == ["2"]
    deployment.delete("b")
    deployment.ask("a", policy if "aws-failover" not in policy else PRIMARY, seconds=60.0)
    assert [text[-1] for text in deployment.www().values()] == ["1"]
    assert (deployment.told("a"), deployment.waiters(), deployment.heirs(), deployment.open()) == ([], [], [], {})


def test_i4_health_check_of_a_whole_cluster_that_route_53_does_not_know_holds_up_no_other_cluster() -> None:
    limits = Limits(health_checks=frozenset({"known"}))
    deployment = Deployment(limits=limits, routing="weighted", health_check="unknown")
    other = deployment.add_cluster("dev", routing="", health_check="")
    for number in range(60):
        deployment.apply(f"s{number}", a_service(cluster_ips=("10.9.0.1",), ports=()))
    deployment.start()
    deployment.pass_time(3.0)
    assert len(deployment.sent) <= 6, "all are found at once, and none is sent alone"
    sent = len(deployment.sent)
    other.apply("web", a_service(cluster_ips=("10.9.0.9",), ports=()))
    deployment.pass_time(2.0)
    names = [{change.key.name for change in batch} for batch in deployment.sent[sent:]]
    assert [number for number, of_batch in enumerate(names) if "web.shop.svc.dev.example.com" in of_batch][-1] <= 2
    assert "web.shop.svc.dev.example.com" in {key.name for key in deployment.route53.records(ZONE_ID)}
    mark = deployment.state("s7").opened
    assert mark is not None
    assert mark.code == "RoutingNotPossible"
    sent = len(deployment.sent)
    deployment.pass_time(60.0)
    assert 2 <= len(deployment.sent) - sent <= 12, "they are tried together, later and later"
    limits = Limits(health_checks=frozenset({"unknown"}))
    deployment.route53.limit(limits)
    deployment.pass_time(90.0)
    assert (len(deployment.sets()), deployment.open()) == (61, {})
    deployment.close()


@pytest.mark.parametrize(("policy", "most"), [({}, 100), ({"aws-geoproximity-region": "eu-west-1"}, 30)])
def test_sets_of_a_name_are_not_more_than_route_53_allows(
    deployment: Policies, policy: dict[str, str], most: int
) -> None:
    for number in range(most + 1):
        asked = {"hostname": WWW, "set-identifier": f"s{number:03}", **policy}
        deployment.apply(f"s{number:03}", a_service(cluster_ips=("10.9.0.1",), ports=(), annotations=asked))
    deployment.pass_time(8.0)
    assert len(deployment.www()) == most
    (last,) = [n for n in range(most + 1) if f"s{n:03}" not in deployment.www()]
    [told] = deployment.told(f"s{last:03}")
    assert f"at most {most} " in told
    assert deployment.refusals == []


KINDS: Final[tuple[dict[str, str] | None, ...]] = (
    None, {}, {"aws-weight": "5"}, EU, US, PRIMARY, SECONDARY, {"aws-multi-value-answer": "true"},
    {"aws-geolocation-country-code": "SE"}, {"aws-geolocation-continent-code": "EU"}, {"aws-geoproximity-region": "eu-west-1"},
    {"aws-failover": "PRIMARY"}, {**EU, **PRIMARY},
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """``policy``: an index of ``KINDS``; None: the Service is deleted. ``dies``: the session, at its next write of this kind."""

    name: str
    policy: int | None
    identifier: str = ""
    dies: str = ""


steps = st.builds(
    Step,
    st.sampled_from("abc"),
    st.one_of(st.none(), st.integers(0, len(KINDS) - 1), st.integers(0, len(KINDS) - 1)),
    st.sampled_from(["", "", "", "x"]),
    st.sampled_from(["", "", "", "", RECORD, SENT]),
)


@given(st.lists(steps, min_size=2, max_size=12))
@settings(max_examples=25, deadline=None)
def test_i9_what_route_53_would_refuse_is_never_sent_and_no_name_is_away_while_somebody_may_have_it(
    drawn: list[Step],
) -> None:
    deployment = Policies()
    deployment.start()
    asked: dict[str, Step] = {}
    for step in drawn:
        held = set(deployment.www().values())
        waiting = {
            name for name in asked if deployment.state(name).waits
        }  # it wants another set than the one that it has
        if step.policy is None:
            if asked.pop(step.name, None) is None:
                continue
            deployment.delete(step.name)
        else:
            asked[step.name] = step
        if step.dies:
            deployment.at(step.dies, deployment.kill)
        if step.policy is not None:
            deployment.ask(step.name, KINDS[step.policy], step.identifier, seconds=0.0)
        deployment.play_out(8.0, dies=bool(step.dies))
        assert deployment.refusals == []
        stands = deployment.www()
        still = {e for e in held if e[-1] in {str(ord(n) - 96) for n in asked.keys() - waiting - {step.name}}}
        assert still <= set(stands.values()), "who had it and did not change has it"
        possible = [each for each in asked.values() if each.policy is not None and each.policy < len(KINDS) - 2]
        assert stands or not possible, "somebody has it, if anybody could"
        assert deployment.heirs() == []
        for name in "abc":
            state = deployment.state(name)
            assert state.opened is None
            assert state.applied == state.intended
    deployment.close()


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("seconds", [0.0, 5.0])
def test_two_services_exchange_their_roles_in_one_batch(deployment: Policies, order: str, seconds: float) -> None:
    primary, secondary = {**PRIMARY}, {"aws-failover": "SECONDARY", "aws-health-check-id": "known"}
    deployment.ask("a", primary)
    deployment.ask("b", secondary)
    sent = len(deployment.sent)
    for name in order:
        deployment.ask(name, secondary if name == "a" else primary, seconds=seconds)
    deployment.pass_time(5.0)
    assert deployment.www() == {
        "a": "failover SECONDARY, health check known at 1", "b": "failover PRIMARY, health check known at 2"
    }  # fmt: skip
    of_name = [batch for batch in deployment.sent[sent:] if any(change.key.name == WWW for change in batch)]
    assert (len(of_name), deployment.refusals, deployment.open()) == (1, [], {})
    assert (deployment.told("a"), deployment.told("b"), deployment.waiters(), deployment.heirs()) == ([], [], [], [])


@pytest.mark.parametrize("seconds", [0.0, 5.0])
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (({}, {}), (EU, US)),
        ((EU, US), ({}, {"aws-weight": "5"})),
        ((EU, US), (PRIMARY, SECONDARY)),
        ((PRIMARY, SECONDARY), ({"aws-multi-value-answer": "true"},) * 2),
    ],
)
def test_name_changes_its_policy_in_one_batch_once_all_holders_want_it(
    deployment: Policies, first: Sequence[dict[str, str]], then: Sequence[dict[str, str]], seconds: float
) -> None:
    for name, policy in zip("ab", first, strict=True):
        deployment.ask(name, policy)
    stood, sent = deployment.www(), len(deployment.sent)
    deployment.ask("a", then[0], seconds=seconds)
    if seconds:
        assert deployment.www() == stood, "it waits, with what it has"
    deployment.ask("b", then[1], seconds=5.0)
    of_name = [batch for batch in deployment.sent[sent:] if any(change.key.name == WWW for change in batch)]
    assert (len(of_name), deployment.refusals, deployment.open()) == (1, [], {})
    kinds = {text.split(" ")[0] for text in deployment.www().values()}
    assert (len(deployment.www()), len(kinds)) == (2, 1)
    assert kinds.isdisjoint({text.split(" ")[0] for text in stood.values()})
    assert (deployment.told("a"), deployment.told("b"), deployment.waiters(), deployment.heirs()) == ([], [], [], [])


def test_three_services_change_the_policy_of_a_name_once_the_last_one_wants_it(deployment: Policies) -> None:
    for name in "abc":
        deployment.ask(name, {})
    for name, policy in (("a", EU), ("b", US)):
        deployment.ask(name, policy)
    stood = {"a": "weighted 1 at 1", "b": "weighted 1 at 2", "c": "weighted 1 at 3"}
    assert deployment.www() == stood
    deployment.ask("c", EU)
    assert deployment.www() == stood, "two of them want one region: they do not agree"
    deployment.ask("c", {"aws-region": "sa-east-1"})
    assert deployment.www() == {
        "a": "latency eu-west-1 at 1", "b": "latency us-east-1 at 2", "c": "latency sa-east-1 at 3"
    }  # fmt: skip
    assert (deployment.refusals, deployment.open(), deployment.heirs(), deployment.waiters()) == ([], {}, [], [])


def test_i3_foreign_set_keeps_a_name_from_its_new_policy_and_is_reported(deployment: Policies) -> None:
    deployment.ask("a", {})
    theirs = RecordSet(60, ("203.0.113.9",), routing=Weighted(1))
    deployment.route53.by_hand("CREATE", RecordKey(ZONE_ID, WWW, "A", "theirs"), theirs)
    deployment.ask("a", EU, seconds=20.0)
    assert deployment.www() == {"a": "weighted 1 at 1", "theirs": "weighted 1 at 9"}
    assert ["stands there" in told for told in deployment.told("a")] == [True]
