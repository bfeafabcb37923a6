"""A Service of a cluster with rules for names keeps a name as long as it asks for it, also while it has no address to publish (I9)."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from harness.deployment import ZONE_ID, Deployment
from harness.seen.builders import a_service, an_endpoint, an_endpoints
from kubesync.aws.tables.control.clusters import ZoneReference
from kubesync.aws.tables.name_counts import NAMES, NameCountTable
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import ObjectKey, Resource, Service
from kubesync.domain.sources.ingresses import INGRESSES, Ingress
from kubesync.domain.state import KeyState
from simulation.writes import RECORD, SENT

WWW: Final = "www.example.com"
FILTER: Final = ("example.com",)
FRIEND: Final = "203.0.113.1"
EVIL: Final = "10.66.0.1"


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment(domain_filter=FILTER)
    yield made
    made.close()


def asking(identifier: str, *names: str) -> dict[str, str]:
    weighted = {"set-identifier": identifier, "aws-weight": "255"} if identifier else {}
    return {"hostname": ",".join(names or (WWW,)), **weighted}


def balancer(*ips: str, identifier: str = "", **other: str) -> Service:
    asked = {**asking(identifier), **other}
    return a_service("LoadBalancer", cluster_ips=("10.1.0.1",), ports=(), annotations=asked, ingress_ips=ips)


def an_ingress(*hosts: str, annotations: Mapping[str, str]) -> Ingress:
    prefix = "external-dns.alpha.kubernetes.io/"
    asked = tuple(sorted((prefix + name, value) for name, value in annotations.items()))
    return Ingress(hosts=hosts, ingress_ips=(FRIEND,), annotations=asked, created_at="2026-01-01T00:00:00Z")


def rival(identifier: str = "", *, address: str = EVIL, created: int = 2) -> Service:
    return a_service(
        cluster_ips=(address,), ports=(), annotations=asking(identifier), created_at=f"2026-01-{created:02d}T00:00:00Z"
    )


def at(deployment: Deployment, name: str = WWW, zone_id: str = ZONE_ID) -> dict[str, tuple[str, ...]]:
    """Values of the A records that stand at a name, by set identifier."""
    found = deployment.route53.records(zone_id).items()
    return {key.identifier: record_set.values for key, record_set in found if (key.name, key.type) == (name, "A")}


def owners(deployment: Deployment) -> dict[str, str]:
    return {name: owner for name, owner in deployment.claims().items() if name.startswith(WWW)}


def line(deployment: Deployment) -> list[str]:
    """Who waits, and for which claim: as the sort keys of the items, without the time."""
    waiting = [name.split("#wait#") for name in deployment.waiters()]
    return [f"{claim} {rest.partition('#')[2]}" for claim, rest in waiting]


def problems(deployment: Deployment, key: str) -> list[str]:
    return [f"{p.code} {p.subject}: {p.message}" for p in stored(deployment, key).problems]


def stored(deployment: Deployment, key: str) -> KeyState:
    (found,) = StateTable(deployment.store).load([ObjectKey(*key.split("/"))]).values()
    return found


def remove(deployment: Deployment, name: str, namespace: str) -> None:
    deployment.cluster.delete(Resource.SERVICES, name, namespace)


KINDS: Final = pytest.mark.parametrize(
    ("mine", "theirs", "claim"),
    [
        pytest.param("", "", WWW, id="simple and simple"),
        pytest.param("", "evil", WWW, id="simple and weighted"),
        pytest.param("mine", "", f"{WWW}#set#mine", id="weighted and simple"),
        pytest.param("mine", "mine", f"{WWW}#set#mine", id="weighted and weighted of one identifier"),
    ],
)


@pytest.mark.parametrize("how", ["annotation-only", "defined-hosts-only"])
def test_i9_name_of_an_ingress_goes_to_who_waits_when_the_ingress_asks_for_none(how: str) -> None:
    deployment = Deployment(domain_filter=FILTER, sources=("service", "ingress"))
    asked = {"hostname": WWW} if how == "defined-hosts-only" else {}
    hosts = () if asked else (WWW,)
    deployment.apply("web", an_ingress(*hosts, annotations=asked), resource=INGRESSES, namespace="friendly")
    deployment.start()
    deployment.pass_time()
    deployment.apply("x", rival(), namespace="evil")
    deployment.pass_time()
    assert (at(deployment), owners(deployment)) == ({"": (FRIEND,)}, {WWW: "prod/friendly/Ingress:web"})
    asked |= {"ingress-hostname-source": how}
    deployment.apply("web", an_ingress(*hosts, annotations=asked), resource=INGRESSES, namespace="friendly")
    deployment.pass_time(10.0)
    assert (at(deployment), owners(deployment), line(deployment)) == ({"": (EVIL,)}, {WWW: "prod/evil/x"}, [])
    assert deployment.end().clean
    deployment.close()


def held(deployment: Deployment, mine: str, theirs: str) -> None:
    """A session runs: ``friendly/web`` holds the name, ``evil/x`` stands in line."""
    deployment.apply("web", balancer(FRIEND, identifier=mine), namespace="friendly")
    deployment.start()
    deployment.pass_time()
    deployment.apply("x", rival(theirs), namespace="evil")
    deployment.pass_time()
    assert at(deployment) == {mine: (FRIEND,)}


@KINDS
def test_i9_name_stays_with_its_service_in_a_moment_without_addresses(
    deployment: Deployment, mine: str, theirs: str, claim: str
) -> None:
    held(deployment, mine, theirs)
    assert (owners(deployment), line(deployment)) == ({claim: "prod/friendly/web"}, [f"{claim} prod/evil/x"])
    assert [p.split()[0] for p in problems(deployment, "prod/evil/x")] == ["NameTaken"]
    deployment.apply("web", balancer(identifier=mine), namespace="friendly")
    deployment.pass_time(3.0)
    assert at(deployment) == {}
    assert (owners(deployment), line(deployment)) == ({claim: "prod/friendly/web"}, [f"{claim} prod/evil/x"])
    # Whoever comes or changes meanwhile stands in line as well.
    deployment.apply("x", rival(theirs, address="10.66.0.2"), namespace="evil")
    deployment.apply("y", rival(theirs, created=1), namespace="evil")
    if not mine:
        deployment.apply("z", rival("other", created=1), namespace="evil")
    deployment.pass_time(3.0)
    assert (at(deployment), owners(deployment)) == ({}, {claim: "prod/friendly/web"})
    deployment.apply("web", balancer(FRIEND, identifier=mine), namespace="friendly")
    deployment.pass_time(3.0)
    assert (at(deployment), owners(deployment)) == ({mine: (FRIEND,)}, {claim: "prod/friendly/web"})
    assert deployment.end().clean


@KINDS
@pytest.mark.parametrize("pending", [False, True], ids=["with addresses", "pending"])
@pytest.mark.parametrize("how", ["deleted", "annotation removed", "excluded", "another name"])
def test_i9_who_stands_in_line_gets_the_name_when_its_service_asks_no_more(
    deployment: Deployment, mine: str, theirs: str, claim: str, how: str, *, pending: bool
) -> None:
    held(deployment, mine, theirs)
    ips = () if pending else (FRIEND,)
    if pending:
        deployment.apply("web", balancer(identifier=mine), namespace="friendly")
        deployment.pass_time(3.0)
        assert owners(deployment) == {claim: "prod/friendly/web"}
    if how == "deleted":
        remove(deployment, "web", "friendly")
    else:
        other = {
            "annotation removed": {"hostname": ""},
            "excluded": {"kubesync.io/exclude": "true"},
            "another name": {"hostname": "other.example.com"},
        }[how]
        deployment.apply("web", balancer(*ips, identifier=mine, **other), namespace="friendly")
    deployment.pass_time(5.0)
    theirs_claim = f"{WWW}#set#{theirs}" if theirs else WWW
    assert at(deployment) == {theirs: (EVIL,)}
    assert (owners(deployment), line(deployment)) == ({theirs_claim: "prod/evil/x"}, [])
    assert problems(deployment, "prod/evil/x") == []
    assert deployment.heirs() == []
    assert deployment.end().clean


@KINDS
@pytest.mark.parametrize(("kind", "after"), [(RECORD, False), (RECORD, True), (SENT, False), (SENT, True)])
def test_i9_name_stays_where_a_session_dies_while_its_service_has_no_address(
    deployment: Deployment, mine: str, theirs: str, claim: str, kind: str, *, after: bool
) -> None:
    held(deployment, mine, theirs)
    deployment.at(kind, deployment.kill, after=after)
    deployment.apply("web", balancer(identifier=mine), namespace="friendly")
    deployment.pass_time(30.0)
    assert deployment.running is not None
    assert not deployment.running.alive
    deployment.spare()
    deployment.start()
    deployment.pass_time(5.0)
    assert (at(deployment), owners(deployment)) == ({}, {claim: "prod/friendly/web"})
    deployment.kill()
    deployment.pass_time(30.0)
    deployment.start()
    deployment.apply("web", balancer(FRIEND, identifier=mine), namespace="friendly")
    deployment.pass_time(5.0)
    assert (at(deployment), owners(deployment)) == ({mine: (FRIEND,)}, {claim: "prod/friendly/web"})
    assert deployment.end().clean


@KINDS
@pytest.mark.parametrize("write", [0, 1, 2, 3])
def test_i1_name_is_handed_on_whenever_a_session_dies(
    deployment: Deployment, mine: str, theirs: str, claim: str, write: int
) -> None:
    held(deployment, mine, theirs)
    assert owners(deployment) == {claim: "prod/friendly/web"}
    deployment.at(RECORD, deployment.kill, after=bool(write % 2), skip=write // 2)
    remove(deployment, "web", "friendly")
    deployment.pass_time(30.0)
    deployment.spare()
    deployment.kill()
    deployment.start()
    deployment.pass_time(5.0)
    theirs_claim = f"{WWW}#set#{theirs}" if theirs else WWW
    assert (at(deployment), owners(deployment)) == ({theirs: (EVIL,)}, {theirs_claim: "prod/evil/x"})
    assert (line(deployment), deployment.heirs()) == ([], [])
    assert deployment.end().clean


def test_service_without_pods_keeps_its_name(deployment: Deployment) -> None:
    headless = a_service(headless=True, ports=(), annotations=asking(""))
    deployment.apply("web", headless, namespace="friendly")
    pods = an_endpoints("10.2.0.1", service="web")
    deployment.apply("web", pods, slice_name="web-1", namespace="friendly")
    deployment.start()
    deployment.apply("x", rival(), namespace="evil")
    deployment.pass_time()
    assert at(deployment) == {"": ("10.2.0.1",)}
    empty = an_endpoints(an_endpoint("10.2.0.1", ready=False), service="web")
    deployment.apply("web", empty, slice_name="web-1", namespace="friendly")
    deployment.pass_time(3.0)
    assert (at(deployment), owners(deployment)) == ({}, {WWW: "prod/friendly/web"})
    deployment.apply("web", an_endpoints("10.2.0.9", service="web"), slice_name="web-1", namespace="friendly")
    deployment.pass_time(3.0)
    assert at(deployment) == {"": ("10.2.0.9",)}
    assert deployment.end().clean


def test_line_of_simple_and_weighted_intents_goes_on_in_its_order(deployment: Deployment) -> None:
    """Weighted sets share the name; a simple set waits until the last of them is gone."""
    held(deployment, "", "one")
    deployment.apply("s", rival(address="10.66.0.3", created=3), namespace="evil")
    deployment.apply("y", rival("two", address="10.66.0.4", created=4), namespace="evil")
    deployment.pass_time(3.0)
    assert line(deployment) == [f"{WWW} prod/evil/x", f"{WWW} prod/evil/s", f"{WWW} prod/evil/y"]
    remove(deployment, "web", "friendly")
    deployment.pass_time(8.0)
    assert at(deployment) == {"one": (EVIL,), "two": ("10.66.0.4",)}
    assert owners(deployment) == {f"{WWW}#set#one": "prod/evil/x", f"{WWW}#set#two": "prod/evil/y"}
    assert line(deployment) == [f"{WWW}#set#one prod/evil/s"]
    helps = "with policy weighted: to share it, give this one a set identifier and that policy"
    assert problems(deployment, "prod/evil/s") == [
        f"NameTaken {WWW} in Z1: the name is claimed by prod/evil/x, {helps}"
    ]
    remove(deployment, "x", "evil")
    deployment.pass_time(8.0)
    assert (at(deployment), line(deployment)) == ({"two": ("10.66.0.4",)}, [f"{WWW}#set#two prod/evil/s"])
    remove(deployment, "y", "evil")
    deployment.pass_time(8.0)
    assert (at(deployment), owners(deployment)) == ({"": ("10.66.0.3",)}, {WWW: "prod/evil/s"})
    assert (line(deployment), deployment.heirs()) == ([], [])
    assert deployment.end().clean


def test_i9_weighted_service_that_wants_a_simple_set_waits_and_keeps_what_it_has(deployment: Deployment) -> None:
    deployment.apply("web", balancer(FRIEND, identifier="mine"), namespace="friendly")
    deployment.apply("x", rival("evil"), namespace="evil")
    deployment.start()
    deployment.pass_time(3.0)
    both = {"mine": (FRIEND,), "evil": (EVIL,)}
    assert at(deployment) == both
    deployment.apply("x", rival(), namespace="evil")
    deployment.pass_time(3.0)
    assert (at(deployment), line(deployment)) == (both, [f"{WWW}#set#mine prod/evil/x"])
    # In a moment without addresses of the other one, too.
    deployment.apply("web", balancer(identifier="mine"), namespace="friendly")
    deployment.pass_time(5.0)
    assert at(deployment) == {"evil": (EVIL,)}
    deployment.apply("web", balancer(FRIEND, identifier="mine"), namespace="friendly")
    deployment.pass_time(5.0)
    assert at(deployment) == both
    remove(deployment, "web", "friendly")
    deployment.pass_time(8.0)
    assert (at(deployment), owners(deployment)) == ({"": (EVIL,)}, {WWW: "prod/evil/x"})
    assert deployment.end().clean


def test_service_of_another_cluster_stands_in_the_same_line(deployment: Deployment) -> None:
    other = deployment.add_cluster("c1")
    held(deployment, "mine", "")
    other.apply("s", rival(address="10.66.0.7", created=1), namespace="evil")
    deployment.pass_time(3.0)
    claim = f"{WWW}#set#mine"
    assert line(deployment) == [f"{claim} c1/evil/s", f"{claim} prod/evil/x"]
    deployment.apply("web", balancer(identifier="mine"), namespace="friendly")
    deployment.pass_time(3.0)
    assert deployment.resync()["clusters"][0].get("error") is None
    deployment.pass_time(3.0)
    assert (at(deployment), owners(deployment)) == ({}, {claim: "prod/friendly/web"})
    remove(deployment, "web", "friendly")
    deployment.pass_time(8.0)
    assert (at(deployment), owners(deployment)) == ({"": ("10.66.0.7",)}, {WWW: "c1/evil/s"})
    assert line(deployment) == [f"{WWW} prod/evil/x"]
    other.delete(Resource.SERVICES, "s", "evil")
    deployment.pass_time(8.0)
    assert (at(deployment), owners(deployment), line(deployment)) == ({"": (EVIL,)}, {WWW: "prod/evil/x"}, [])
    assert deployment.end().clean


def test_intents_of_both_kinds_in_one_window_go_to_the_older_one(deployment: Deployment) -> None:
    for created, name, identifier in ((1, "a", "one"), (2, "b", ""), (3, "c", "three")):
        deployment.apply(name, rival(identifier, address=f"10.66.1.{created}", created=created), namespace=name)
    assert deployment.run_session(3.0).clean
    assert at(deployment) == {"one": ("10.66.1.1",), "three": ("10.66.1.3",)}
    assert line(deployment) == [f"{WWW}#set#one prod/b/b"]
    assert len(deployment.sent) == 1


def test_change_of_the_identifier_lets_the_old_claim_go(deployment: Deployment) -> None:
    deployment.apply("web", balancer(FRIEND, identifier="mine"), namespace="friendly")
    deployment.start()
    deployment.pass_time()
    for identifier in ("other", "", "mine"):
        deployment.apply("web", balancer(FRIEND, identifier=identifier), namespace="friendly")
        deployment.pass_time(3.0)
        claim = f"{WWW}#set#{identifier}" if identifier else WWW
        assert (at(deployment), owners(deployment)) == ({identifier: (FRIEND,)}, {claim: "prod/friendly/web"})
    # An identifier that cannot be used publishes nothing; it still asks for the name.
    deployment.apply("web", balancer(FRIEND, identifier="x" * 129), namespace="friendly")
    deployment.pass_time(3.0)
    assert (at(deployment), owners(deployment)) == ({}, {f"{WWW}#set#mine": "prod/friendly/web"})
    assert deployment.end().clean


def test_name_that_is_kept_counts_and_is_let_go_with_its_zone_or_its_rules(deployment: Deployment) -> None:
    deployment.apply("web", balancer(FRIEND), namespace="friendly")
    deployment.start()
    deployment.apply("x", rival(), namespace="evil")
    deployment.pass_time()
    deployment.apply("web", balancer(), namespace="friendly")
    deployment.pass_time(3.0)
    counts = NameCountTable(deployment.store)
    assert (counts.stored("prod", (NAMES, "friendly")), counts.stored("prod", (NAMES, "evil"))) == (1, 0)
    deployment.world.configure("prod", domain_filter=FILTER, namespace_domains=("evil=www.example.com",))
    deployment.pass_time(90.0)
    assert (at(deployment), owners(deployment)) == ({"": (EVIL,)}, {WWW: "prod/evil/x"})
    assert (counts.stored("prod", (NAMES, "friendly")), counts.stored("prod", (NAMES, "evil"))) == (0, 1)


def test_kept_claim_goes_when_the_cluster_loses_the_zone(deployment: Deployment) -> None:
    deployment.apply("web", balancer(FRIEND), namespace="friendly")
    deployment.start()
    deployment.pass_time()
    deployment.apply("web", balancer(), namespace="friendly")
    deployment.pass_time(3.0)
    assert owners(deployment) == {WWW: "prod/friendly/web"}
    deployment.route53.create("Z2", "prod.example.com")
    deployment.world.configure("prod", domain_filter=FILTER, zones=(ZoneReference(id="Z2", name="prod.example.com"),))
    deployment.pass_time(90.0)
    assert owners(deployment) == {}


def test_own_name_is_kept_where_other_namespaces_may_ask_for_it() -> None:
    deployment = Deployment(domain_filter=FILTER, template="{service}.{domain}")
    own = "web.prod.example.com"
    deployment.apply("web", a_service("LoadBalancer", ports=(), ingress_ips=(FRIEND,)), namespace="friendly")
    deployment.start()
    deployment.apply("x", a_service(cluster_ips=(EVIL,), ports=(), annotations=asking("evil", own)), namespace="evil")
    deployment.apply("y", a_service(cluster_ips=(EVIL,), ports=(), annotations=asking("", own)), namespace="evil")
    deployment.pass_time()
    deployment.apply("web", a_service("LoadBalancer", ports=()), namespace="friendly")
    deployment.pass_time(3.0)
    assert at(deployment, own) == {}
    deployment.apply("web", a_service("LoadBalancer", ports=(), ingress_ips=(FRIEND,)), namespace="friendly")
    deployment.pass_time(3.0)
    assert at(deployment, own) == {"": (FRIEND,)}
    assert deployment.end().clean
    deployment.close()


def test_cluster_without_rules_hands_an_empty_name_on_as_before() -> None:
    deployment = Deployment()
    held(deployment, "", "")
    deployment.apply("web", balancer(), namespace="friendly")
    deployment.pass_time(3.0)
    assert (at(deployment), owners(deployment)) == ({"": (EVIL,)}, {WWW: "prod/evil/x"})
    assert deployment.end().clean
    deployment.close()


def test_cluster_without_rules_leaves_simple_and_weighted_sets_to_the_zone() -> None:
    deployment = Deployment()
    held(deployment, "", "evil")
    assert [p.split()[0] for p in problems(deployment, "prod/evil/x")] == ["Conflict"]
    deployment.apply("web", balancer(), namespace="friendly")
    deployment.pass_time(30.0)
    assert at(deployment) == {"evil": (EVIL,)}
    assert deployment.end().clean
    deployment.close()
