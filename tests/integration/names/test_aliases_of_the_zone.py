"""Aliases to names of the same zone: they exist for the types that stand at their target, and follow it (ADR 0063)."""

import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from harness.dns_cases.passing import PassingDeployment
from harness.seen.builders import a_service
from kubesync.domain.dns.records import RecordKey, RecordSet
from kubesync.domain.objects import Service
from simulation.writes import RECORD, SENT

TARGET: Final = "web.example.com"
ALIAS_A: Final = "A alias Z1 web.example.com"
ALIAS_AAAA: Final = "AAAA alias Z1 web.example.com"
CNAME: Final = "CNAME web.example.com."


def service(*addresses: str, host: str = "", **asked: str) -> Service:
    return a_service(
        type="LoadBalancer",
        ports=(),
        ingress_ips=addresses,
        ingress_hostnames=(host,) if host else (),
        annotations={name.replace("_", "-"): text for name, text in asked.items()},
    )


def an_alias(**asked: str) -> Service:
    return service(**{"hostname": "www.example.com", "target": TARGET, "alias": "true", **asked})


class Aliases(PassingDeployment):
    def do(self, key: str, value: Service | None, seconds: float = 4.0) -> None:
        self.put(key, value)
        self.pass_time(seconds)

    def begin_again(self) -> None:
        assert self.end().clean
        self.start()

    def dangling(self) -> list[str]:
        """Aliases whose target does not stand, which Route 53 would have refused."""
        stands = self.route53.records("Z1")
        types = {(key.name, key.type) for key in stands}
        aliases = [(key, each.alias) for key, each in stands.items() if each.alias is not None]
        return [key.label for key, alias in aliases if (alias.name, key.type) not in types]


@pytest.fixture
def deployment() -> Iterator[Aliases]:
    made = Aliases(ttl=30)
    made.start()
    yield made
    assert made.refusals == []
    assert made.open() == {}
    made.close()


@pytest.mark.parametrize(
    ("addresses", "answers"),
    [
        (("192.0.2.1",), [CNAME, ALIAS_A]),
        (("2001:db8::1",), [CNAME, ALIAS_AAAA]),
        (("192.0.2.1", "2001:db8::1"), [CNAME, f"{ALIAS_A} / {ALIAS_AAAA}"]),
    ],
)
def test_alias_has_the_types_of_its_target(deployment: Aliases, addresses: tuple[str, ...], answers: list[str]) -> None:
    deployment.do("b", an_alias())
    assert deployment.answer == CNAME
    deployment.do("a", service(*addresses, hostname=TARGET))
    assert deployment.answers[1:] == answers
    assert deployment.reported(["b"]) == []


def test_target_first_then_the_alias_stands_at_once(deployment: Aliases) -> None:
    deployment.do("a", service("192.0.2.1", hostname=TARGET))
    deployment.do("b", an_alias())
    assert deployment.answers[1:] == [ALIAS_A]


def test_alias_follows_the_types_of_its_target_in_one_batch(deployment: Aliases) -> None:
    deployment.do("a", service("192.0.2.1", hostname=TARGET))
    deployment.do("b", an_alias())
    deployment.do("a", service("192.0.2.2", hostname=TARGET))
    deployment.do("a", service("192.0.2.2", "2001:db8::1", hostname=TARGET))
    deployment.do("a", service("2001:db8::1", hostname=TARGET))
    both = f"{ALIAS_A} / {ALIAS_AAAA}"
    assert deployment.answers[1:] == [ALIAS_A, both, ALIAS_AAAA]


@pytest.mark.parametrize("then", [service(host="lb.example.net", hostname=TARGET), None])
def test_i9_alias_becomes_a_cname_in_the_batch_that_takes_its_target_away(
    deployment: Aliases, then: Service | None
) -> None:
    deployment.do("a", service("192.0.2.1", hostname=TARGET))
    deployment.do("b", an_alias())
    seen: list[tuple[str, str]] = []
    deployment.after_batch = lambda: seen.append(
        (deployment.answer, " ".join(key.type for key in deployment.route53.records("Z1") if key.name == TARGET))
    )
    deployment.do("a", then)
    assert next(each for each in seen if each[1] != "A") == (CNAME, "CNAME" if then else "")
    deployment.do("a", service("192.0.2.1", hostname=TARGET))
    assert deployment.answers[1:] == [ALIAS_A, CNAME, ALIAS_A]


def test_alias_without_a_target_is_a_cname_and_reported(deployment: Aliases) -> None:
    deployment.do("b", an_alias())
    assert deployment.reported(["b"]) == ["prod/shop/b: NoAliasTarget web.example.com"]
    deployment.do("a", service(host="lb.example.net", hostname=TARGET))
    assert deployment.answers[1:] == [CNAME]


def test_alias_follows_over_sessions(deployment: Aliases) -> None:
    deployment.do("a", service("192.0.2.1", hostname=TARGET))
    deployment.do("b", an_alias())
    for _ in range(2):
        deployment.begin_again()
        deployment.begin_again()  # the first of them had nothing to write
        deployment.do("a", service("2001:db8::1", hostname=TARGET))
        assert deployment.answer == ALIAS_AAAA
        deployment.do("a", service("192.0.2.1", hostname=TARGET))
        assert deployment.answer == ALIAS_A


def test_i6_next_session_writes_nothing_for_an_alias(deployment: Aliases) -> None:
    deployment.do("a", service("192.0.2.1", hostname=TARGET))
    deployment.do("b", an_alias())
    deployment.begin_again()
    before = deployment.state("b").version
    sent = len(deployment.route53.sent)
    deployment.begin_again()
    assert deployment.state("b").version == before
    assert len(deployment.route53.sent) == sent


@pytest.mark.parametrize("again", [False, True])
def test_alias_follows_a_target_of_another_cluster(deployment: Aliases, again: bool) -> None:
    deployment.do("dev/shop/a", service("192.0.2.1", hostname=TARGET))
    deployment.do("b", an_alias())
    assert deployment.answer == ALIAS_A
    if again:
        deployment.begin_again()
    deployment.do("dev/shop/a", service("2001:db8::1", hostname=TARGET))
    assert deployment.answer == ALIAS_AAAA
    deployment.do("dev/shop/a", None)
    assert deployment.answer == CNAME


def test_alias_follows_a_target_that_another_cluster_brings_later(deployment: Aliases) -> None:
    deployment.do("b", an_alias())
    deployment.do("dev/shop/a", service("192.0.2.1", hostname=TARGET))
    assert deployment.answers[1:] == [CNAME, ALIAS_A]


def test_alias_comes_after_its_target_in_a_batch(deployment: Aliases) -> None:
    deployment.do("a", service("192.0.2.1", hostname=TARGET, **{"set-identifier": "a"}), 8.0)
    deployment.put("a", service("192.0.2.1", hostname=TARGET))
    sent = len(deployment.route53.sent)
    deployment.do("b", an_alias(hostname="a.example.com,www.example.com"))
    names = [change.key.name for change in deployment.route53.sent[sent] if change.action == "CREATE"]
    assert names.index(TARGET) < names.index("a.example.com"), "Route 53 takes changes in their order"


def test_chain_of_aliases(deployment: Aliases) -> None:
    middle = an_alias(hostname="mid.example.com")
    deployment.do("b", an_alias(target="mid.example.com"))
    deployment.do("m", middle)
    deployment.do("a", service("192.0.2.1", hostname=TARGET), 8.0)
    assert deployment.answer == "A alias Z1 mid.example.com"
    deployment.do("a", None, 8.0)
    assert deployment.answer == "CNAME mid.example.com."
    assert [key.type for key in deployment.route53.records("Z1") if key.name == "mid.example.com"] == ["CNAME"]


def test_aliases_that_lead_to_each_other_are_no_targets(deployment: Aliases) -> None:
    deployment.do("a", service("192.0.2.1", hostname=TARGET))
    deployment.do("b", an_alias())
    deployment.do("a", an_alias(hostname=TARGET, target="www.example.com"), 8.0)
    assert deployment.answer == CNAME
    assert deployment.reported(["a", "b"]) == [
        "prod/shop/a: NoAliasTarget www.example.com", "prod/shop/b: NoAliasTarget web.example.com"
    ]  # fmt: skip


def test_alias_leaves_a_target_that_becomes_a_cname_while_others_wait_for_it(deployment: Aliases) -> None:
    deployment.do("a", service("192.0.2.1", hostname=TARGET))
    deployment.do("c", service("192.0.2.3", hostname=TARGET))
    deployment.do("b", an_alias())
    deployment.do("a", service(host="lb.example.net", hostname=TARGET), 9.0)  # it waits for an heir
    assert deployment.answers[1:] == [ALIAS_A, CNAME]


def test_alias_to_itself_is_a_loop(deployment: Aliases) -> None:
    deployment.do("b", an_alias(target="www.example.com"))
    assert deployment.answer == "nothing"
    own = "prod/shop/b: NoAliasTarget www.example.com"  # of its own name
    assert deployment.reported(["b"]) == ["prod/shop/b: CnameLoop www.example.com", own]


def test_alias_leads_to_weighted_sets(deployment: Aliases) -> None:
    for name in "xy":
        deployment.do(name, service(f"192.0.2.{ord(name)}", hostname=TARGET, set_identifier=name))
    deployment.do("b", an_alias())
    deployment.do("x", None)
    assert deployment.answer == ALIAS_A
    deployment.do("y", None)
    assert deployment.answers[1:] == [ALIAS_A, CNAME]


@pytest.mark.parametrize(
    ("asked", "answer", "reported"),
    [
        ({"aws-target-hosted-zone": "same-zone"}, ALIAS_A, []),
        ({"aws-target-hosted-zone": " Same-Zone "}, ALIAS_A, []),
        ({"aws-target-hosted-zone": "Z1"}, ALIAS_A, []),
        ({"aws-target-hosted-zone": "/hostedzone/Z1"}, ALIAS_A, []),
        ({"alias": "a"}, ALIAS_A, []),
        ({"alias": "AAAA"}, CNAME, ["prod/shop/b: NoAliasTarget web.example.com"]),
        ({"alias": "false"}, CNAME, []),
        ({"target": "www.example.net"}, "CNAME www.example.net.", ["prod/shop/b: NoAliasTarget www.example.net"]),
        (
            {"aws-target-hosted-zone": "same-zone", "target": "www.example.net"},
            "CNAME www.example.net.",
            ["prod/shop/b: NoAliasTarget www.example.net"],
        ),
        ({"set-identifier": "x", "aws-weight": "5"}, "A [x 5] alias Z1 web.example.com", []),
        (
            {"set-identifier": "x", "aws-failover": "PRIMARY"},
            "A [x failover PRIMARY] alias Z1 web.example.com",
            [],
        ),
        ({"aws-evaluate-target-health": "false"}, "A alias Z1 web.example.com (health not evaluated)", []),
    ],
)  # fmt: skip
def test_what_annotations_make_of_it(
    deployment: Aliases, asked: Mapping[str, str], answer: str, reported: list[str]
) -> None:
    deployment.do("a", service("192.0.2.1", hostname=TARGET))
    deployment.do("b", an_alias(**dict(asked)))
    assert (deployment.answer, deployment.reported(["b"])) == (answer, reported)


def test_alias_at_the_apex_needs_its_target() -> None:
    deployment = Aliases(ttl=30, allow_apex=True)
    deployment.start()

    def apex() -> list[Any]:
        return [
            key.type
            for key in deployment.route53.records("Z1")
            if key.name == "example.com" and key.type in "A AAAA CNAME"
        ]

    deployment.do("b", an_alias(hostname="example.com"))
    assert (apex(), deployment.reported(["b"])) == (
        [],
        ["prod/shop/b: CnameAtApex example.com", "prod/shop/b: NoAliasTarget web.example.com"],
    )
    deployment.do("a", service("192.0.2.1", hostname=TARGET))
    assert (apex(), deployment.reported(["b"])) == (["A"], [])
    deployment.do("a", None)
    assert apex() == []
    assert deployment.refusals == []
    deployment.close()


_FORMS: Final = ("192.0.2.1", "2001:db8::1", "192.0.2.1 2001:db8::1", "lb.example.net", "", None)


def drawn(chance: random.Random, name: str) -> Service | None:
    form = chance.choice(_FORMS)
    if form is None:
        return None
    host = form if form.startswith("lb") else ""
    weighted = {"set-identifier": name} if not host and chance.random() < 0.3 else {}
    return service(*(() if host else form.split()), host=host, hostname=TARGET, **weighted)


def expected(stands: Mapping[RecordKey, RecordSet], name: str, asked: Service) -> list[str]:
    """Types of what should stand at an alias' name, given what stands at its target."""
    annotations = {key.rpartition("/")[2]: text for key, text in asked.annotations}
    families = ["A"] if annotations["alias"] == "A" else ["A", "AAAA"]
    at = {key.type: each for key, each in stands.items() if key.name == annotations["target"]}
    usable = [
        each for each in families if each in at and (alias := at[each].alias, alias is None or alias.name != name)[1]
    ]
    return usable or ["CNAME"]


@pytest.mark.parametrize("seed", range(12))
def test_i1_aliases_agree_with_what_stands_whoever_comes_goes_and_dies(seed: int) -> None:
    chance = random.Random(seed)
    deployment = Aliases(ttl=30)
    deployment.start()
    asked: dict[str, Service] = {}
    for _ in range(30):
        key = chance.choice(["m", "b", "dev/shop/d", "a", "a"])
        value: Service | None
        if key == "m":
            target = chance.choice([TARGET, "www.example.com"])
            value = chance.choice([None, an_alias(hostname="mid.example.com", target=target)])
        elif key == "b":
            value = chance.choice([an_alias(), an_alias(target="mid.example.com"), an_alias(alias="A"), None])
        else:
            value = drawn(chance, key[-1])
        if value is not None or key in asked:
            deployment.put(key, value)
        if value is None:
            asked.pop(key, None)
        else:
            asked[key] = value
        if chance.random() < 0.25:
            deployment.at(chance.choice([RECORD, SENT]), deployment.kill, after=chance.random() < 0.5)
            deployment.pass_time(5.0)
            deployment.spare()
            deployment.kill()
            deployment.pass_time(30.0)
            deployment.start()
        deployment.pass_time(chance.choice([0.5, 20.0]))
    deployment.pass_time(30.0)
    stands = deployment.route53.records("Z1")
    for key, name in (("m", "mid.example.com"), ("b", "www.example.com")):
        types = sorted(each.type for each in stands if each.name == name)
        assert types == (expected(stands, name, asked[key]) if key in asked else []), (name, sorted(stands))
    assert (deployment.dangling(), deployment.open()) == ([], {})
    # A session that dies between the two halves of a name that passes on may be refused once.
    assert not [said for said in deployment.refusals if "an alias" in said]
    deployment.close()
