"""A name with several set identifiers becomes a CNAME, or stops being one, in one batch: nothing else stands beside a CNAME (ADR 0075)."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service
from kubesync.aws.tables.state import StateTable
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.dns.routing.policies import Weighted
from kubesync.domain.objects import ObjectKey, Resource
from kubesync.domain.state import KeyState
from kubesync_local.standins.route53.zone.model import Limits
from simulation.cluster import ScriptedCluster

WWW: Final = "www.example.com"
WEIGHT: Final[Mapping[str, str]] = {}
EU: Final = {"aws-region": "eu-west-1"}
US: Final = {"aws-region": "us-east-1"}
PRIMARY: Final = {"aws-failover": "PRIMARY", "aws-health-check-id": "known"}
SECONDARY: Final = {"aws-failover": "SECONDARY"}
GEOPROXIMITY: Final = {"aws-geoproximity-region": "eu-west-1"}
UNKNOWN_CHECK: Final = {"aws-health-check-id": "gone"}
PLACES: Final = {"a": ("prod", "web"), "b": ("east", "web"), "c": ("prod", "api")}


class Types(Deployment):
    """Objects ``a`` (cluster ``prod``), ``b`` (cluster ``east``) and ``c`` (beside ``a``) ask for ``WWW``, each with its own name as identifier.

    Of ``a`` the address is 10.9.0.1 and the load balancer ``lb-1``, and so on.
    """

    def __init__(self) -> None:
        super().__init__(limits=Limits(health_checks=frozenset({"known"})), domain_filter=("example.com",))
        self.clusters: dict[str, ScriptedCluster] = {"prod": self.cluster, "east": self.add_cluster("east")}
        self.start()

    def ask(
        self, name: str, form: str, policy: Mapping[str, str] = WEIGHT, seconds: float = 5.0, identifier: str = ""
    ) -> None:
        """``form``: ``A``, ``AAAA``, ``CNAME``, or ``alias``, which has both families."""
        number = "abc".index(name) + 1
        asked = {"hostname": WWW, "set-identifier": identifier or name, **policy}
        lb, ips = f"lb-{number}.elb.eu-west-1.amazonaws.com", {"A": f"10.9.0.{number}", "AAAA": f"fd00::{number}"}
        if form in ips:
            service = a_service(cluster_ips=(ips[form],), ports=(), annotations=asked)
        else:
            asked |= {"alias": "true"} if form == "alias" else {}
            service = a_service("LoadBalancer", ports=(), ingress_hostnames=(lb,), annotations=asked)
        cluster, key = PLACES[name]
        self.clusters[cluster].apply(key, service)
        self.pass_time(seconds)

    def delete(self, name: str) -> None:
        self.clusters[PLACES[name][0]].delete(Resource.SERVICES, PLACES[name][1])
        self.pass_time(5.0)

    def www(self) -> dict[str, str]:
        """What stands at the name: by type and set identifier, the policy and the last part of the address or load balancer."""
        return {
            f"{key.type} {key.identifier}": f"{found.routing.words} {found.alias.name[3] if found.alias else found.values[0].split('.elb')[0][-1]}"
            for key, found in self.route53.records(ZONE_ID).items()
            if key.name == WWW
        }

    def of(self, name: str) -> KeyState:
        key = ObjectKey(PLACES[name][0], "shop", PLACES[name][1])
        return StateTable(self.store).load([key])[key]

    def told(self, name: str) -> list[str]:
        return [f"{problem.code}: {problem.message}" for problem in self.of(name).problems]

    def batches(self, since: int) -> int:
        return len([batch for batch in self.sent[since:] if any(change.key.name == WWW for change in batch)])

    def begin_again(self) -> None:
        """The next session: it has sent nothing yet, so it knows of no set in the zone."""
        self.end()
        self.start()
        self.pass_time(3.0)

    def at_rest(self) -> None:
        assert (self.refusals, self.open(), self.heirs(), self.waiters()) == ([], {}, [], [])
        assert [self.told(name) for name in PLACES] == [[], [], []]


@pytest.fixture
def deployment() -> Iterator[Types]:
    made = Types()
    yield made
    made.close()


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("other", ["b", "c"])
@pytest.mark.parametrize(("first", "second"), [(WEIGHT, WEIGHT), (PRIMARY, SECONDARY), (EU, US)])
@pytest.mark.parametrize(("before", "after"), [("CNAME", "alias"), ("alias", "CNAME"), ("A", "CNAME"), ("CNAME", "A")])
def test_who_shares_a_name_changes_to_a_cname_or_from_it_in_one_batch_once_all_want_it(
    deployment: Types, first: Mapping[str, str], second: Mapping[str, str], before: str, after: str, other: str, again: bool
) -> None:  # fmt: skip
    deployment.ask("a", before, first)
    deployment.ask(other, before, second)
    stood, sent = deployment.www(), len(deployment.sent)
    assert {key.split(" ")[1] for key in stood} == {"a", other}
    if again:
        deployment.begin_again()
    deployment.ask("a", after, first, 20.0)
    assert deployment.www() == stood, "it waits, with what it has"
    wants = "a CNAME" if after == "CNAME" else "no CNAME"
    assert [
        f"it waits until {'/shop/'.join(PLACES[other])} wants {wants} too" in each for each in deployment.told("a")
    ] == [True]
    deployment.ask(other, after, second, 10.0)
    types = {"CNAME": ["CNAME"], "alias": ["A", "AAAA"], "A": ["A"]}[after]
    assert sorted(deployment.www()) == sorted(f"{each} {name}" for each in types for name in ("a", other))
    assert deployment.batches(sent) == 1
    deployment.at_rest()


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("policy", [WEIGHT, GEOPROXIMITY])
@pytest.mark.parametrize(("stands", "comes"), [("CNAME", "A"), ("A", "CNAME"), ("alias", "CNAME")])
def test_i9_who_comes_with_a_type_that_cannot_stand_there_is_not_sent_and_told_who_has_it(
    deployment: Types, stands: str, comes: str, policy: Mapping[str, str], again: bool
) -> None:
    deployment.ask("a", stands, policy)
    stood = deployment.www()
    if again:
        deployment.begin_again()
    deployment.ask("b", comes, policy, 60.0)
    said = "NameTaken: prod/shop/web has the name, with a set of another type: a CNAME shares a name with CNAMEs only"
    assert (deployment.www(), deployment.refusals) == (stood, [])
    assert [each.startswith(said) for each in deployment.told("b")] == [True]
    deployment.ask("a", comes, policy, 10.0)
    assert sorted(deployment.www()) == [f"{comes} a", f"{comes} b"]
    deployment.at_rest()


def test_who_waits_for_a_type_has_the_name_when_the_other_leaves_it(deployment: Types) -> None:
    deployment.ask("a", "CNAME")
    deployment.ask("b", "A")
    deployment.delete("a")
    assert deployment.www() == {"A b": "weighted 1 2"}
    deployment.at_rest()


def test_who_thinks_better_of_a_cname_keeps_what_it_has(deployment: Types) -> None:
    deployment.ask("a", "A")
    deployment.ask("b", "A")
    deployment.ask("a", "CNAME")
    deployment.ask("a", "A")
    assert deployment.www() == {"A a": "weighted 1 1", "A b": "weighted 1 2"}
    deployment.at_rest()


@pytest.mark.parametrize("other", ["b", "c"])
def test_policy_and_type_change_together(deployment: Types, other: str) -> None:
    deployment.ask("a", "CNAME")
    deployment.ask(other, "CNAME")
    deployment.ask("a", "alias", EU)
    deployment.ask(other, "alias", US, 10.0)
    assert deployment.www() == {
        "A a": "latency eu-west-1 1", "AAAA a": "latency eu-west-1 1",
        f"A {other}": f"latency us-east-1 {'abc'.index(other) + 1}", f"AAAA {other}": f"latency us-east-1 {'abc'.index(other) + 1}",
    }  # fmt: skip
    deployment.at_rest()


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("identifiers", ["xb", "xy"])
def test_policy_and_set_identifiers_change_together(deployment: Types, order: str, identifiers: str) -> None:
    deployment.ask("a", "A")
    deployment.ask("b", "A")
    sent = len(deployment.sent)
    for name in order:
        deployment.ask(name, "A", EU if name == "a" else US, identifier=identifiers["ab".index(name)])
    deployment.pass_time(10.0)
    assert deployment.www() == {"A x": "latency eu-west-1 1", f"A {identifiers[1]}": "latency us-east-1 2"}
    assert deployment.batches(sent) == 1
    deployment.at_rest()


def test_address_family_and_policy_change_together(deployment: Types) -> None:
    deployment.ask("a", "AAAA")
    deployment.ask("b", "A")
    stood = deployment.www()
    deployment.ask("a", "A", EU, 20.0)
    assert (deployment.www(), deployment.refusals) == (stood, [])
    deployment.ask("b", "A", US, 10.0)
    assert deployment.www() == {"A a": "latency eu-west-1 1", "A b": "latency us-east-1 2"}
    deployment.at_rest()


def test_i10_who_waits_for_a_policy_of_a_set_that_never_stood_has_the_name_once_it_stands(deployment: Types) -> None:
    deployment.ask("a", "A", UNKNOWN_CHECK)
    deployment.ask("b", "A", EU, 20.0)
    assert deployment.www() == {}
    deployment.ask("a", "A", US, 20.0)
    assert deployment.www() == {"A a": "latency us-east-1 1", "A b": "latency eu-west-1 2"}
    assert deployment.told("b") == []


@pytest.mark.parametrize("policy", [WEIGHT, GEOPROXIMITY])
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_i3_two_that_come_at_one_moment_with_types_that_exclude_each_other(
    deployment: Types, order: str, policy: Mapping[str, str]
) -> None:
    """Two clusters plan at one moment: neither knows of the other."""
    for name, form in zip(order, ("CNAME", "A"), strict=True):
        deployment.ask(name, form, policy, 0.0)
    deployment.pass_time(4.0)
    assert [each for name in "ab" for each in deployment.told(name) if "stands there" in each] == []
    deployment.pass_time(26.0)
    stands = deployment.www()
    assert (len(stands), deployment.refusals) == (1, [])
    waits = "b" if next(iter(stands)).endswith("a") else "a"
    assert ["has the name, with a set of another type" in each for each in deployment.told(waits)] == [True]
    deployment.pass_time(1000.0)
    assert (deployment.www(), deployment.refusals, deployment.open()) == (stands, [], {})


@pytest.mark.parametrize("other", ["b", "c"])
def test_i3_who_met_a_foreign_set_turns_once_a_person_has_deleted_it(deployment: Types, other: str) -> None:
    """Until then, nobody turns. Then the sets of the others are no foreign ones."""
    theirs, foreign = RecordKey(ZONE_ID, WWW, "A", "theirs"), RecordSet(60, ("203.0.113.9",), routing=Weighted(1))
    for name in ("a", other):
        deployment.ask(name, "A")
    deployment.route53.by_hand("CREATE", theirs, foreign)
    for name in ("a", other):
        deployment.ask(name, "CNAME", seconds=10.0)
    assert sorted(deployment.www()) == sorted(["A a", f"A {other}", "A theirs"])
    assert ["[theirs] stands there" in each for name in ("a", other) for each in deployment.told(name)] == [True, True]
    deployment.route53.by_hand("DELETE", theirs, foreign)
    deployment.pass_time(300.0)
    assert sorted(deployment.www()) == ["CNAME a", f"CNAME {other}"]
    assert [deployment.told(name) for name in ("a", other)] == [[], []]


@pytest.mark.parametrize("other", ["b", "c"])
@pytest.mark.parametrize(("form", "policy"), [("CNAME", (WEIGHT, WEIGHT)), ("A", (EU, US)), ("CNAME", (EU, US))])
def test_i10_who_has_no_set_yet_comes_with_the_form_for_which_the_other_waits(
    deployment: Types, form: str, policy: tuple[Mapping[str, str], Mapping[str, str]], other: str
) -> None:
    """Its health check does not exist: it has its claim, and no set."""
    deployment.ask("a", "A")
    deployment.ask(other, "A", UNKNOWN_CHECK, 20.0)
    deployment.ask("a", form, policy[0], 20.0)
    assert deployment.www() == {"A a": "weighted 1 1"}
    deployment.ask(other, form, policy[1], 60.0)
    assert sorted(deployment.www()) == [f"{form} a", f"{form} {other}"]
    assert [deployment.told(name) for name in ("a", other)] == [[], []]
