"""A name that several clusters share changes its policy in one batch, once all of them want it (ADR 0072)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.tables.state import StateTable, state_key
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.state import KeyState
from kubesync_local.standins.route53.zone.model import Limits
from simulation.writes import RECORD, SENT

WWW: Final = "www.example.com"
EU: Final = {"aws-region": "eu-west-1"}
US: Final = {"aws-region": "us-east-1"}
ASIA: Final = {"aws-region": "ap-east-1"}
PRIMARY: Final = {"aws-failover": "PRIMARY", "aws-health-check-id": "known"}
SECONDARY: Final = {"aws-failover": "SECONDARY"}
MANY: Final = {"aws-multi-value-answer": "true"}
NUMBERS: Final = {"a": 1, "b": 2, "c": 3}


class Turning(Deployment):
    """Service ``web`` in clusters ``a``, ``b`` and ``c``, which are 10.9.0.1, 10.9.0.2 and 10.9.0.3 at ``WWW``."""

    def __init__(self) -> None:
        super().__init__(limits=Limits(health_checks=frozenset({"known"})), domain_filter=("example.com",))
        self.clusters = {name: self.add_cluster(name) for name in NUMBERS}
        self.start()

    def ask(
        self, cluster: str, policy: dict[str, str] | None, seconds: float = 4.0, *, cname: bool = False, **asked: str
    ) -> None:
        """The Service of a cluster asks for the name; without a policy: a simple set. ``cname``: in place of its address."""
        asked = {"hostname": WWW, **({} if policy is None else {"set-identifier": cluster, **policy}), **asked}
        service = a_service(cluster_ips=(f"10.9.0.{NUMBERS[cluster]}",), ports=(), annotations=asked)
        if cname:
            host = f"lb-{NUMBERS[cluster]}.example.net"
            service = a_service("LoadBalancer", ports=(), ingress_hostnames=(host,), annotations=asked)
        self.clusters[cluster].apply("web", service)
        self.pass_time(seconds)

    def www(self) -> dict[str, str]:
        """What stands at the name: by set identifier, the policy and the last digit of the address or CNAME."""
        return {
            key.identifier: f"{found.routing.words} at {re.findall('[0-9]', found.values[0])[-1]}"
            for key, found in self.route53.records(ZONE_ID).items()
            if key.name == WWW
        }

    def of(self, cluster: str) -> KeyState:
        key = ObjectKey(cluster, "shop", "web")
        return StateTable(self.store).load([key])[key]

    def told(self, cluster: str) -> list[str]:
        return [problem.message for problem in self.of(cluster).problems]

    def batches(self, since: int) -> int:
        return len([batch for batch in self.sent[since:] if any(change.key.name == WWW for change in batch)])

    def at_rest(self) -> None:
        assert (self.refusals, self.open(), self.heirs(), self.waiters()) == ([], {}, [], [])
        assert [self.told(name) for name in NUMBERS] == [[], [], []]
        assert [self.of(name).opened for name in NUMBERS] == [None, None, None]

    def version(self, cluster: str) -> object:
        item = self.store.get(state_key(ObjectKey(cluster, "shop", "web")))
        return item and item["v"]


@pytest.fixture
def deployment() -> Iterator[Turning]:
    made = Turning()
    yield made
    made.close()


@pytest.mark.parametrize("seconds", [0.0, 5.0])
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (({}, {}), (EU, US)),
        ((EU, US), ({}, {"aws-weight": "5"})),
        ((EU, US), (PRIMARY, SECONDARY)),
        ((PRIMARY, SECONDARY), (MANY, MANY)),
        (({}, {}), (MANY, MANY)),
    ],
)
def test_name_of_two_clusters_changes_its_policy_in_one_batch_once_both_want_it(
    deployment: Turning, first: Sequence[dict[str, str]], then: Sequence[dict[str, str]], seconds: float
) -> None:
    for name, policy in zip("ab", first, strict=True):
        deployment.ask(name, policy)
    stood, sent = deployment.www(), len(deployment.sent)
    deployment.ask("a", then[0], seconds)
    if seconds:
        deployment.pass_time(400.0)
        assert deployment.www() == stood, "it waits, with what it has"
        (told,) = deployment.told("a")
        assert told.startswith("it waits until b/shop/web wants ")
        assert deployment.version("a") == 6
    deployment.ask("b", then[1], 8.0)
    assert deployment.batches(sent) == 1
    kinds = {text.split(" ")[0] for text in deployment.www().values()}
    assert (len(deployment.www()), len(kinds)) == (2, 1)
    assert kinds.isdisjoint({text.split(" ")[0] for text in stood.values()})
    deployment.at_rest()


def test_three_clusters_turn_once_the_last_one_wants_it(deployment: Turning) -> None:
    for name in NUMBERS:
        deployment.ask(name, {})
    stood, sent = deployment.www(), len(deployment.sent)
    deployment.ask("a", EU)
    deployment.ask("c", US)
    assert deployment.www() == stood
    assert deployment.told("a") == [
        "it waits until b/shop/web, c/shop/web want latency too: all sets of a name have one policy"
    ]
    assert deployment.told("c") == ["it waits until b/shop/web wants latency too: all sets of a name have one policy"]
    deployment.ask("b", ASIA, 8.0)
    assert deployment.www() == {
        "a": "latency eu-west-1 at 1", "b": "latency ap-east-1 at 2", "c": "latency us-east-1 at 3"
    }  # fmt: skip
    assert deployment.batches(sent) == 1
    deployment.at_rest()
    assert [deployment.version(name) for name in NUMBERS] == [4, 4, 4]


def test_who_wants_its_old_policy_back_has_it_and_nobody_turns(deployment: Turning) -> None:
    for name in "ab":
        deployment.ask(name, {})
    stood, sent = deployment.www(), len(deployment.sent)
    deployment.ask("a", MANY)
    deployment.ask("a", {}, 8.0)
    assert (deployment.www(), deployment.batches(sent)) == (stood, 0)
    deployment.at_rest()
    deployment.ask("b", MANY, 8.0)
    assert deployment.www() == stood
    deployment.ask("a", MANY, 8.0)
    assert deployment.www() == {"a": "multivalue at 1", "b": "multivalue at 2"}
    assert deployment.batches(sent) == 1
    deployment.at_rest()


@pytest.mark.parametrize("how", ["deleted", "simple", "other name"])
def test_who_waits_turns_alone_once_the_other_has_left_the_name(deployment: Turning, how: str) -> None:
    for name in "ab":
        deployment.ask(name, {})
    deployment.ask("a", EU)
    if how == "deleted":
        deployment.clusters["b"].delete(Resource.SERVICES, "web", "shop")
        deployment.pass_time(10.0)
    elif how == "simple":
        deployment.ask("b", None, 10.0, hostname="other.example.com")
    else:
        deployment.ask("b", {}, 10.0, hostname="other.example.com")
    assert deployment.www() == {"a": "latency eu-west-1 at 1"}
    deployment.at_rest()


def test_holders_that_want_different_policies_keep_what_they_have_until_they_agree(deployment: Turning) -> None:
    for name in "ab":
        deployment.ask(name, {})
    stood = deployment.www()
    deployment.ask("a", MANY)
    deployment.ask("b", EU)
    deployment.pass_time(60.0)
    assert (deployment.www(), deployment.refusals) == (stood, [])
    marks = [deployment.of(name).opened for name in "ab"]
    assert [mark and mark.attempts for mark in marks] == [0, 0], "nothing is tried"
    deployment.ask("a", US, 8.0)
    assert deployment.www() == {"a": "latency us-east-1 at 1", "b": "latency eu-west-1 at 2"}
    deployment.at_rest()


def test_two_that_want_one_region_keep_what_they_have_until_one_takes_another(deployment: Turning) -> None:
    for name in "ab":
        deployment.ask(name, {})
    stood = deployment.www()
    deployment.ask("a", EU)
    deployment.ask("b", EU)
    deployment.pass_time(60.0)
    assert (deployment.www(), deployment.refusals) == (stood, [])
    assert deployment.told("b") == ["a/shop/web has it: only one set of a name has latency eu-west-1"]
    deployment.ask("b", US, 8.0)
    assert deployment.www() == {"a": "latency eu-west-1 at 1", "b": "latency us-east-1 at 2"}
    deployment.at_rest()


@pytest.mark.parametrize("first", [{}, EU, MANY])
@pytest.mark.parametrize("then", [{}, US, MANY])
@pytest.mark.parametrize("new", ["old policy", "new policy"])
def test_who_is_new_at_a_name_that_turns_does_not_keep_it_from_turning(
    deployment: Turning, first: dict[str, str], then: dict[str, str], new: str
) -> None:
    if first.keys() == then.keys():
        return
    deployment.ask("a", first)
    deployment.ask("b", {} if first == {} else ASIA if first == EU else MANY)
    deployment.ask("a", then)
    third = then if new == "new policy" else first
    deployment.ask("c", {**third, **({"aws-region": "sa-east-1"} if "aws-region" in third else {})})
    deployment.ask("b", {} if then == {} else ASIA if then == US else MANY, 30.0)
    stands = deployment.www()
    kinds = {text.split(" ")[0] for text in stands.values()}
    assert len(kinds) == 1, stands
    assert {"a", "b"} <= stands.keys()
    if new == "new policy":
        assert stands.keys() == {"a", "b", "c"}
        deployment.at_rest()


def test_who_turns_and_then_wants_a_region_of_another_one_keeps_what_stands(deployment: Turning) -> None:
    deployment.ask("a", EU)
    deployment.ask("b", US)
    deployment.ask("a", MANY)
    deployment.ask("a", US, 8.0)
    assert deployment.www() == {"a": "latency eu-west-1 at 1", "b": "latency us-east-1 at 2"}
    assert deployment.told("a") == ["b/shop/web has it: only one set of a name has latency us-east-1"]
    assert (deployment.of("a").opened, deployment.refusals) == (None, [])


def test_i3_set_of_another_cluster_is_no_conflict_where_a_name_turns(deployment: Turning) -> None:
    """``c`` comes with the old policy, in the moment in which the last one turns."""
    deployment.ask("a", EU)
    deployment.ask("b", ASIA)
    deployment.ask("a", {})
    deployment.ask("c", US, 0.0)
    deployment.ask("b", {}, 4.0)
    assert "Conflict" not in {problem.code for name in "abc" for problem in deployment.of(name).problems}
    deployment.pass_time(26.0)
    assert deployment.www() == {
        "a": "latency eu-west-1 at 1", "b": "latency ap-east-1 at 2", "c": "latency us-east-1 at 3"
    }  # fmt: skip
    assert deployment.refusals == []
    assert [[problem.code for problem in deployment.of(name).problems] for name in "abc"] == [
        ["NameTaken"], ["NameTaken"], []
    ]  # fmt: skip
    deployment.pass_time(300.0)
    deployment.ask("c", {}, 60.0)
    assert deployment.www() == {"a": "weighted 1 at 1", "b": "weighted 1 at 2", "c": "weighted 1 at 3"}
    deployment.at_rest()


@pytest.mark.parametrize(
    ("before", "one", "other"),
    [
        pytest.param([("a", EU), ("b", ASIA), ("a", {})], ("b", {}), ("c", US), id="the name has turned"),
        pytest.param([("a", {}), ("b", {}), ("a", EU)], ("b", US), ("c", {}), id="the name has turned from weights"),
        pytest.param([("a", EU)], ("a", {}), ("c", US), id="its only holder has turned"),
        pytest.param([], ("a", EU), ("b", MANY), id="both are new"),
        pytest.param([], ("a", EU), ("b", {}), id="both are new, one by weight"),
        pytest.param([], ("a", None), ("b", MANY), id="both are new, one without a policy"),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_i3_who_meets_another_policy_is_not_sent_and_waits_for_it(
    deployment: Turning,
    before: Sequence[tuple[str, dict[str, str] | None]],
    one: tuple[str, dict[str, str] | None],
    other: tuple[str, dict[str, str] | None],
    *,
    swapped: bool,
) -> None:
    """Two clusters plan at one moment: neither knows of the other. Route 53 would refuse the second set."""
    for cluster, policy in before:
        deployment.ask(cluster, policy)
    stood = deployment.www()
    for cluster, policy in (other, one) if swapped else (one, other):
        deployment.ask(cluster, policy, 0.0)
    deployment.pass_time(30.0)
    assert deployment.refusals == []
    stands = deployment.www()
    assert stands.keys() >= stood.keys()
    assert len({text.split(" ")[0] for text in stands.values()}) == 1
    codes = {name: [problem.code for problem in deployment.of(name).problems] for name in NUMBERS}
    assert [code for of_key in codes.values() for code in of_key].count("Conflict") == 0
    waiting = [name for name, of_key in codes.items() if of_key]
    assert waiting
    assert all("NameTaken" in codes[name] for name in waiting)
    deployment.pass_time(1000.0)
    assert (deployment.refusals, deployment.www(), deployment.open()) == ([], stands, {})
    for name in {cluster for cluster, _ in (*before, one, other)}:
        deployment.ask(name, MANY)
    deployment.pass_time(30.0)
    assert {text.split(" ")[0] for text in deployment.www().values()} == {"multivalue"}
    deployment.at_rest()


def test_i4_who_is_given_a_name_that_turns_has_nothing_to_turn(deployment: Turning) -> None:
    """``c`` waits for ``a``, which leaves: nobody waits for a set of ``c`` with the old policy."""
    deployment.ask("a", {})
    deployment.ask("b", {})
    deployment.ask("a", MANY)
    deployment.ask("b", EU, 0.6)
    deployment.ask("c", US, 12.0)
    assert deployment.www() == {"a": "weighted 1 at 1", "b": "weighted 1 at 2"}
    deployment.clusters["a"].delete(Resource.SERVICES, "web", "shop")
    deployment.pass_time(8.0)
    assert deployment.www() == {"b": "latency eu-west-1 at 2", "c": "latency us-east-1 at 3"}
    assert deployment.of("b").version == 6, "it is planned no further time for a set that is not there"
    deployment.at_rest()


def test_i3_name_of_the_template_that_another_cluster_has_is_waited_for(deployment: Turning) -> None:
    """Nobody looks at the claims of such a name when it is planned, but for its own: no other namespace can ask for it. Another cluster can."""
    name = "web.shop.svc.a.example.com"

    def own(address: str) -> None:
        asked = {"set-identifier": "a"}
        deployment.clusters["a"].apply("web", a_service(cluster_ips=(address,), ports=(), annotations=asked))
        deployment.pass_time(8.0)

    def stands() -> dict[str, tuple[str, ...]]:
        sets = deployment.route53.records(ZONE_ID).items()
        return {key.identifier: found.values for key, found in sets if key.name == name}

    deployment.ask("b", EU, hostname=name)
    own("10.9.0.1")
    assert deployment.running is not None
    asked = len(deployment.running.gate.calls_of("route53"))
    own("10.9.0.7")
    assert len(deployment.running.gate.calls_of("route53")) == asked, "it waits as before"
    assert (stands(), deployment.refusals, deployment.open()) == ({"b": ("10.9.0.2",)}, [], {})
    assert deployment.told("a") == [
        "the name is claimed by b/shop/web, with policy latency: to share it, both need the same policy"
    ]
    (waits,) = deployment.of("a").waits
    assert (waits.name, waits.seat) == (name, "latency eu-west-1")
    deployment.clusters["b"].delete(Resource.SERVICES, "web", "shop")
    deployment.pass_time(8.0)
    assert stands() == {"a": ("10.9.0.7",)}
    deployment.at_rest()


def test_who_exchanges_its_region_waits_for_the_other_one_though_a_third_comes(deployment: Turning) -> None:
    deployment.ask("a", EU)
    deployment.ask("b", US)
    deployment.ask("a", US)
    assert deployment.end().clean  # the next session has met none of these sets
    deployment.start()
    deployment.at(RECORD, lambda: deployment.hold(2.0), skip=2)  # that of ``a``, which hears of it last
    deployment.ask("c", ASIA, 0.0)
    deployment.ask("b", EU, 12.0)
    deployment.spare()
    assert deployment.www() == {
        "a": "latency us-east-1 at 1", "b": "latency eu-west-1 at 2", "c": "latency ap-east-1 at 3"
    }  # fmt: skip
    deployment.at_rest()


def test_i1_turn_goes_on_where_the_session_dies_and_its_own_cluster_comes_last(deployment: Turning) -> None:
    for name in "ab":
        deployment.ask(name, {})
    deployment.ask("a", EU)
    deployment.at(RECORD, deployment.kill, after=True)
    sent = len(deployment.sent)
    deployment.ask("b", US, 20.0)
    deployment.spare()
    assert deployment.www() == {"a": "weighted 1 at 1", "b": "weighted 1 at 2"}
    configured = {**deployment._fields, "disabled": True, "server": "https://a.test:6443", "domain": "a.example.com"}
    deployment.world.configure("a", **configured)
    deployment.start()
    deployment.pass_time(60.0)
    assert deployment.www() == {"a": "weighted 1 at 1", "b": "weighted 1 at 2"}, "one half does not go alone"
    deployment.world.configure("a", **{**configured, "disabled": False})
    deployment.pass_time(20.0)
    assert deployment.www() == {"a": "latency eu-west-1 at 1", "b": "latency us-east-1 at 2"}
    assert deployment.batches(sent) == 1
    deployment.at_rest()


POLICIES: Final[tuple[dict[str, str] | None, ...]] = (
    {},
    {"aws-weight": "5"},
    EU,
    US,
    ASIA,
    PRIMARY,
    SECONDARY,
    MANY,
    {"aws-geoproximity-region": "eu-west-1"},
    None,
)


@dataclass(frozen=True)
class Step:
    """``policy``: an index of ``POLICIES``; -1: the Service is deleted. ``dies``: the session, at its next write of this kind.

    ``seconds``: before the next step; None: until nothing happens any more. ``cname``: of a set that is not multivalue.
    """

    cluster: str
    policy: int
    dies: str = ""
    seconds: float | None = None
    cname: bool = False


steps = st.builds(
    Step,
    st.sampled_from("abc"),
    st.integers(-1, len(POLICIES) - 1),
    st.sampled_from(["", "", "", "", RECORD, SENT]),
    st.sampled_from([None, None, 0.0, 0.6]),
    st.sampled_from([False, False, True]),
)


@example([Step("a", 4), Step("c", 2), Step("c", 0)])
@example([Step("a", 6), Step("b", 5), Step("b", 0), Step("c", 0), Step("b", 6)])
@example([Step("a", 6), Step("b", 5), Step("a", 5), Step("b", 0), Step("b", 6)])
@example([Step(each[0], int(each[1])) for each in ("a3", "b3", "c2", "a4", "a8", "a0", "a3", "c8", "b0", "b4")])
@example(
    [
        *(Step("b", 1, seconds=0.6), Step("c", 7, seconds=0.0), Step("b", 0, seconds=0.0), Step("b", 4)),
        *(Step("a", 8, seconds=0.6), Step("b", 7), Step("b", 0), Step("b", 3, seconds=0.6), Step("b", 1, seconds=0.6)),
    ]
)
@example([Step("a", 3), Step("c", 2), Step("a", 5), Step("c", 4, dies=RECORD), Step("a", 2)])
@given(st.lists(steps, min_size=2, max_size=14))
@settings(max_examples=8, deadline=None)
def test_i9_clusters_that_change_policies_at_random_never_lose_the_name_nor_are_refused(drawn: list[Step]) -> None:
    deployment = Turning()
    asked: dict[str, Step] = {}
    before, moved = deployment.www(), set[str]()  # when nothing happened any more, and whose Services changed since
    for step in drawn:
        if step.policy < 0 and asked.pop(step.cluster, None) is None:
            continue
        if step.dies:
            deployment.at(step.dies, deployment.kill)
        if step.policy < 0:
            deployment.clusters[step.cluster].delete(Resource.SERVICES, "web", "shop")
        else:
            asked[step.cluster] = step
            policy = POLICIES[step.policy]
            deployment.ask(step.cluster, policy, seconds=0.0, cname=step.cname and policy is not MANY)
        moved.add(step.cluster)
        if step.seconds is not None and not step.dies:
            deployment.pass_time(step.seconds)
            continue
        deployment.pass_time(5.0)
        deployment.spare()
        if step.dies:
            deployment.kill()
            deployment.pass_time(30.0)
            deployment.start()
        deployment.pass_time(12.0)
        stands = deployment.www()
        assert len({text.split(" ")[0] for text in stands.values()}) <= 1
        assert deployment.refusals == []
        held = {text[-1] for text in before.values()} - {str(NUMBERS[each]) for each in moved}
        assert held <= {text[-1] for text in stands.values()}, "who had it and did not change has it"
        assert stands or not asked
        assert deployment.heirs() == []
        before, moved = stands, set()
    deployment.pass_time(12.0)
    assert deployment.refusals == []
    # In the end all want the same policy: whatever was asked before, they have it.
    for cluster in NUMBERS:
        deployment.ask(cluster, MANY, 12.0)
    deployment.pass_time(30.0)
    assert deployment.www() == {"a": "multivalue at 1", "b": "multivalue at 2", "c": "multivalue at 3"}
    deployment.at_rest()
    deployment.close()
