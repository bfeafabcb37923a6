"""A name that several clusters share changes its policy in one batch, once all of them want it (ADR 0072)."""

from collections.abc import Iterator, Sequence

import pytest

from harness.deployment import ZONE_ID
from harness.seen.builders import a_service
from harness.turning import ASIA, EU, MANY, NUMBERS, PRIMARY, SECONDARY, US, WWW, Turning
from kubesync.domain.objects import Resource
from simulation.writes import RECORD


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


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize(
    ("of_a", "policy_of_a"),
    [
        pytest.param("10.9.0.1", EU, id="in one batch"),
        pytest.param("fd00::1", EU, id="in one batch, by IPv6"),
        pytest.param("10.9.0.1", None, id="in one batch, or one after the other"),
    ],
)
def test_i9_who_meets_another_policy_publishes_no_family_at_the_name(
    deployment: Turning, of_a: str, policy_of_a: dict[str, str] | None, order: str
) -> None:
    """Two clusters plan at one moment. ``a`` has addresses of one family, ``b`` of both."""

    def ask(policies: dict[str, dict[str, str] | None]) -> None:
        for cluster, policy in policies.items():
            asked = {"hostname": WWW, **({} if policy is None else {"set-identifier": cluster, **policy})}
            addresses = (of_a,) if cluster == "a" else ("10.9.0.2", "fd00::2")
            service = a_service(cluster_ips=addresses, ports=(), annotations=asked)
            deployment.clusters[cluster].apply("web", service)
        deployment.pass_time(30.0)

    def values() -> list[str]:
        sets = deployment.route53.records(ZONE_ID).items()
        return sorted(value for key, found in sets if key.name == WWW for value in found.values)

    policies = {"a": policy_of_a, "b": MANY}
    ask({cluster: policies[cluster] for cluster in order})
    assert (values(), deployment.refusals) == ([of_a], [])
    assert [problem.code for problem in deployment.of("b").problems] == ["NameTaken"]
    ask({"a": MANY})
    assert values() == sorted([of_a, "10.9.0.2", "fd00::2"])
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
