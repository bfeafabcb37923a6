"""A Service that asks for what kubesync does not do keeps the names that it holds, gets no others, and waits for none."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from harness.deployment import JOURNAL, ZONE_ID, Deployment
from harness.seen.builders import a_service, an_endpoint, an_endpoints
from kubesync.aws.tables.control.listeners import ListenerTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.cluster.keys.key_states import RULES_VERSION
from kubesync.domain.dns.routing.policies import Weighted
from kubesync.domain.objects import ObjectKey, Resource, Service
from kubesync_local.recovery.recovery import RecoveryRequest

LB: Final = "web-0123.elb.eu-west-1.amazonaws.com"
WWW: Final = "www.example.com"
REFUSED: Final = {
    "aws-region": "eu-west-1",
    "aws-geolocation-continent-code": "EU",
    "aws-geolocation-country-code": "SE",
    "aws-geolocation-subdivision-code": "NY",
    "aws-geoproximity-region": "eu-west-1",
    "aws-geoproximity-bias": "10",
    "aws-geoproximity-coordinates": "59.3,18.0",
    "aws-geoproximity-local-zone-group": "usw2-lax1-az1",
    "aws-multi-value-answer": "",
    "aws-health-check-id": "0123",
    "aws-target-hosted-zone": "z-3",
    "record-type": "TXT",
    "controller": "other",
}
NEEDS_IDENTIFIER: Final = {
    name for name in REFUSED if name.startswith("aws-") and not name.endswith(("hosted-zone-id", "hosted-zone"))
}


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment(srv=True)
    yield made
    made.close()


def asking(**wanted: str) -> dict[str, str]:
    return {name.replace("_", "-"): text for name, text in wanted.items()}


def codes(deployment: Deployment, name: str = "web") -> list[str]:
    return [problem.code for problem in deployment.state(name).problems]


def quiet(deployment: Deployment) -> Callable[[], int]:
    """How many batches were sent since now."""
    before = len(deployment.sent)
    return lambda: len(deployment.sent) - before


def upstream_of(deployment: Deployment, name: str) -> list[str]:
    found = UpstreamTable(deployment.store).read(name)
    return [] if found is None or found.deleted else [str(node["ip"]) for node in found.nodes]


CASES: Final = [
    *(pytest.param("ClusterIP", {name: text}, id=name) for name, text in REFUSED.items()),
    pytest.param("NodePort", {"access": "public"}, id="access"),
]


@pytest.mark.parametrize(("kind", "given"), CASES)
def test_new_service_gets_no_name_and_one_that_holds_names_keeps_them_i9(
    deployment: Deployment, kind: str, given: dict[str, str]
) -> None:
    code = "OtherController" if "controller" in given else "UnsupportedAnnotation"
    if given.keys() & NEEDS_IDENTIFIER:
        code = "RoutingNotPossible"
    deployment.start()
    # New with it: nothing but its upstream is published.
    web = a_service(kind, annotations={"hostname": WWW, **given})
    deployment.apply("web", web)
    deployment.apply("web", an_endpoints("10.1.0.1"), slice_name="web-1")
    deployment.pass_time()
    assert (deployment.sets(), codes(deployment)) == ({}, [code])
    assert upstream_of(deployment, "prod/shop/web/80/TCP") == ["10.1.0.1"]
    assert not deployment.state("web").claims
    # Taken away: it is published.
    deployment.apply("web", a_service(kind, annotations={"hostname": WWW}))
    deployment.pass_time()
    published = {"web A": ("10.0.0.1",), f"{WWW} A": ("10.0.0.1",),
                 "_http._tcp.web SRV": ("0 100 80 web.shop.svc.prod.example.com.",)}  # fmt: skip
    assert (deployment.sets(), codes(deployment)) == (published, [])
    # It comes again, with one more name: what is held stays, the new name is not published.
    sent = quiet(deployment)
    deployment.apply("web", a_service(kind, annotations={"hostname": f"{WWW},new.example.com", **given}))
    deployment.pass_time()
    assert (deployment.sets(), codes(deployment), sent()) == (published, [code], 0)
    # What is held follows the Service.
    moved = a_service(kind, cluster_ips=("10.0.0.9",), annotations={"hostname": f"{WWW},new.example.com", **given})
    deployment.apply("web", moved)
    deployment.pass_time()
    assert deployment.sets() == published | {"web A": ("10.0.0.9",), f"{WWW} A": ("10.0.0.9",)}
    assert upstream_of(deployment, "prod/shop/web/80/TCP") == ["10.1.0.1"]
    # Taken away again: the further name is published.
    deployment.apply("web", a_service(kind, annotations={"hostname": f"{WWW},new.example.com"}))
    deployment.pass_time()
    assert deployment.sets() == published | {"new.example.com A": ("10.0.0.1",)}
    assert deployment.end().clean


@pytest.mark.parametrize(
    "given",
    [
        {"access": "public"},
        {"endpoints-type": "NodeExternalIP"},
        {"cloudflare-proxied": "true", "azure-tags": "a=b", "scw-x": "y", "webhook-x": "y", "coredns-group": "g"},
        {"ingress-hostname-source": "annotation-only"},
        {"controller": "dns-controller"},
        {"controller": "kubesync"},
        {"aws-evaluate-target-health": "false"},
    ],
)
def test_annotation_that_does_not_concern_the_service_is_silent(deployment: Deployment, given: dict[str, str]) -> None:
    deployment.start()
    deployment.apply("web", a_service(annotations=given))
    deployment.pass_time()
    assert (deployment.sets()["web A"], codes(deployment)) == (("10.0.0.1",), [])


def test_unknown_annotation_is_reported_with_the_nearest_and_changes_nothing(deployment: Deployment) -> None:
    deployment.start()
    deployment.apply("web", a_service(annotations={"hostnames": WWW}))
    deployment.pass_time()
    (problem,) = deployment.state("web").problems
    assert (problem.code, problem.subject, problem.message) == (
        "UnknownAnnotation",
        "external-dns.alpha.kubernetes.io/hostnames",
        "has no effect; did you mean hostname?",
    )
    assert deployment.sets()["web A"] == ("10.0.0.1",)


def headless(*pods: str, **given: str) -> tuple[Service, Any]:
    endpoints = [an_endpoint(f"10.1.0.{pod[-1]}", hostname=pod) for pod in pods]
    return a_service(headless=True, annotations=asking(**given)), an_endpoints(*endpoints)


def test_pods_that_are_made_again_keep_their_names_i9(deployment: Deployment) -> None:
    """Also where no pod was ready for a while: nothing stood at the name then, but the Service still held it."""
    deployment.start()

    def have(*pods: str) -> dict[str, tuple[str, ...]]:
        service, endpoints = headless(*pods, endpoints_type="NodeExternalIP", hostname=WWW)
        deployment.apply("web", service)
        deployment.apply("web", endpoints, slice_name="web-1")
        deployment.pass_time()
        return deployment.sets()

    service, endpoints = headless("web-1", "web-2", hostname=WWW)
    deployment.apply("web", service)
    deployment.apply("web", endpoints, slice_name="web-1")
    deployment.pass_time()
    whole = deployment.sets()
    assert whole.keys() == {"web A", f"{WWW} A", "web-1.web A", "web-2.web A", "_http._tcp.web SRV"}
    assert have("web-1", "web-2") == whole
    assert have("web-1").keys() == {"web A", f"{WWW} A", "web-1.web A", "_http._tcp.web SRV"}
    assert have("web-1", "web-2") == whole
    assert have() == {}
    deployment.resync()
    assert have("web-1", "web-2") == whole
    assert codes(deployment) == ["UnsupportedAnnotation"]
    # A name that it does not ask for any more goes, and its claim with it.
    service, endpoints = headless("web-1", "web-2", endpoints_type="NodeExternalIP")
    deployment.apply("web", service)
    deployment.pass_time()
    assert deployment.sets().keys() == whole.keys() - {f"{WWW} A"}
    assert WWW not in {claim.name for claim in deployment.state("web").claims}
    deployment.delete("web")
    deployment.pass_time()
    assert (deployment.sets(), deployment.state("web").claims) == ({}, frozenset())


def test_new_headless_service_that_wants_addresses_of_nodes_gets_no_name_i9(deployment: Deployment) -> None:
    deployment.start()
    service, endpoints = headless("web-1", endpoints_type="HostIP", hostname=WWW)
    deployment.apply("web", service)
    deployment.apply("web", endpoints, slice_name="web-1")
    deployment.pass_time()
    assert (deployment.sets(), codes(deployment)) == ({}, ["UnsupportedAnnotation"])
    assert upstream_of(deployment, "prod/shop/web/80/TCP") == ["10.1.0.1"]
    deployment.apply("web", headless("web-1", hostname=WWW)[0])
    deployment.pass_time()
    assert deployment.sets().keys() == {"web A", f"{WWW} A", "web-1.web A", "_http._tcp.web SRV"}


def test_it_does_not_wait_for_a_name_and_hands_on_one_that_it_is_given(deployment: Deployment) -> None:
    deployment.start()
    for number, name in enumerate(("first", "second", "third"), start=1):
        deployment.apply(name, a_service(cluster_ips=(f"10.0.0.{number}",), annotations={"hostname": WWW}))
        deployment.pass_time()
    assert codes(deployment, "second") == codes(deployment, "third") == ["NameTaken"]
    # Both in one window: the name is handed to a Service that does not wait any more.
    deployment.apply("first", a_service(cluster_ips=("10.0.0.1",)))
    deployment.apply(
        "second", a_service(cluster_ips=("10.0.0.2",), annotations={"hostname": WWW, "record-type": "TXT"})
    )
    deployment.pass_time(4)
    assert deployment.sets()[f"{WWW} A"] == ("10.0.0.3",)
    assert deployment.state("second").waits == frozenset()
    assert codes(deployment, "second") == ["UnsupportedAnnotation"]
    # Free again: it does not take it.
    deployment.apply("third", a_service(cluster_ips=("10.0.0.3",)))
    deployment.pass_time(4)
    assert f"{WWW} A" not in deployment.sets()
    assert deployment.sets()["second A"] == ("10.0.0.2",), "its own name was held"


def test_name_in_conflict_is_not_held_and_not_asked_about_any_more(deployment: Deployment) -> None:
    deployment.by_hand("CREATE", WWW, "A", "192.0.2.1")
    deployment.start()
    deployment.apply("web", a_service(annotations={"hostname": WWW}, ports=()))
    deployment.pass_time(3)
    assert (codes(deployment), len(deployment.state("web").conflicts)) == (["Conflict"], 1)
    deployment.apply("web", a_service(annotations={"hostname": WWW, "record-type": "TXT"}, ports=()))
    deployment.pass_time(3)
    state = deployment.state("web")
    assert (codes(deployment), state.conflicts, state.opened) == (["UnsupportedAnnotation"], {}, None)
    deployment.apply("web", a_service(annotations={"hostname": WWW}, ports=()))
    deployment.pass_time(3)
    assert codes(deployment) == ["Conflict"]
    assert deployment.sets() == {"web A": ("10.0.0.1",), f"{WWW} A": ("192.0.2.1",)}


def test_other_identifier_in_the_same_change_does_not_lose_a_name_that_is_held_i9(deployment: Deployment) -> None:
    deployment.start()
    deployment.apply("web", a_service(annotations={"hostname": WWW}, ports=()))
    deployment.pass_time()
    sent = quiet(deployment)
    given = {"hostname": WWW, "set-identifier": "eu", "record-type": "TXT"}
    deployment.apply("web", a_service(annotations=given, ports=()))
    deployment.pass_time()
    assert (sent(), deployment.sets()) == (0, {"web A": ("10.0.0.1",), f"{WWW} A": ("10.0.0.1",)})
    deployment.apply("web", a_service(cluster_ips=("10.0.0.2",), annotations=given, ports=()))
    deployment.pass_time()
    assert deployment.sets() == {"web A": ("10.0.0.2",), f"{WWW} A": ("10.0.0.2",)}
    del given["record-type"]
    deployment.apply("web", a_service(annotations=given, ports=()))
    deployment.pass_time()
    found = {
        (key.name, key.identifier, record_set.routing)
        for key, record_set in deployment.route53.records(ZONE_ID).items()
        if key.type == "A"
    }
    assert found == {("web.shop.svc.prod.example.com", "eu", Weighted(1)), (WWW, "eu", Weighted(1))}


def test_health_of_aliases_is_evaluated_unless_the_service_says_otherwise(deployment: Deployment) -> None:
    def becomes(**given: str) -> tuple[bool, int]:
        sent = quiet(deployment)
        given = {"alias": "true", **asking(**given)}
        deployment.apply("web", a_service("LoadBalancer", ingress_hostnames=(LB,), annotations=given, ports=()))
        deployment.pass_time()
        zone = deployment.route53.records(ZONE_ID)
        aliases = [found.alias for key, found in zone.items() if key.type in ("A", "AAAA")]
        assert len(aliases) == 2
        (health,) = {alias.evaluate_health for alias in aliases if alias is not None}
        return health, sent()

    deployment.start()
    assert becomes() == (True, 1)
    assert becomes(aws_evaluate_target_health="true") == (True, 0)
    assert becomes(aws_evaluate_target_health="no") == (True, 0)
    assert codes(deployment) == ["InvalidEvaluateTargetHealth"]
    assert becomes(aws_evaluate_target_health="false") == (False, 1)
    assert becomes() == (True, 1)


def test_dry_run_says_the_same_and_writes_nothing(deployment: Deployment) -> None:
    deployment.apply("held", a_service())
    deployment.run_session()
    deployment.apply("held", a_service(annotations={"record-type": "TXT", "hostname": "more.example.com"}))
    deployment.apply("new", a_service(annotations={"record-type": "TXT"}))
    deployment.apply("usual", a_service(cluster_ips=("10.0.0.7",)))
    deployment.start()
    answer = deployment.resync(dry_run=True)
    assert deployment.end().clean
    assert "new." not in str(answer)
    assert "more.example.com" not in str(answer)
    assert deployment.sets().keys() == {"held A", "_http._tcp.held SRV", "usual A", "_http._tcp.usual SRV"}


@pytest.mark.parametrize("lost", ["all", "what was applied"])
def test_recovery_takes_nothing_for_it_i3(deployment: Deployment, lost: str) -> None:
    """Tables that were lost know no name that it holds; where only outputs were lost, its claims are known."""
    given = {"hostname": WWW}
    deployment.apply("web", a_service(annotations=given, ports=()))
    deployment.apply("other", a_service(cluster_ips=("10.0.0.2",), ports=()))
    deployment.run_session()
    stood = deployment.sets()
    deployment.apply("web", a_service(annotations={**given, "record-type": "TXT"}, ports=()))
    fields: dict[str, Any] = {"intended": {}, "applied": {}}
    if lost == "all":
        fields |= {"claims": frozenset(), "problems": ()}
    for name in ("web", "other"):
        deployment.rewrite(name, **fields)
    running = deployment.world.start(recovery=RecoveryRequest(dry_run=False))
    report = running.wait()
    assert report is not None
    (cluster,) = report.recoveries[0]["clusters"]
    assert {row["service"] for row in cluster["claimed"]} == {"prod/shop/other"}
    assert {row["service"] for row in cluster["differing"]} <= {"prod/shop/other"}
    assert deployment.state("web").applied == {}
    assert deployment.sets() == stood


def test_update_reports_once_and_sends_nothing_i6(deployment: Deployment) -> None:
    """As the release before left it: it did not keep these annotations, and had other rules."""
    strange = {"aws-health-check-id": "0123", "hostnames": "x", "hostname": WWW}
    deployment.apply("web", a_service(annotations={"hostname": WWW}))
    deployment.apply("usual", a_service(cluster_ips=("10.0.0.2",)))
    deployment.run_session()
    stood, versions = deployment.sets(), {name: deployment.state(name).version for name in ("web", "usual")}
    place = (Resource.SERVICES, "shop", "web")
    known = deployment.cluster.live[place]
    deployment.cluster.live[place] = replace(known, value=a_service(annotations=strange))
    table = ListenerTable(deployment.store)
    for resource, checkpoint in table.checkpoints("prod").items():
        older = replace(
            checkpoint, basis=replace(checkpoint.basis, rules=RULES_VERSION - 1), version=checkpoint.version + 1
        )
        deployment.store.transact([table.put_checkpoint("prod", resource, older, "tx")], f"older {resource}")
    sent = quiet(deployment)
    report = deployment.run_session()
    assert (sent(), deployment.sets()) == (0, stood)
    assert sum(listener.lists for listener in report.listeners) == 2
    assert codes(deployment) == ["RoutingNotPossible", "UnknownAnnotation"]
    assert {claim.name for claim in deployment.state("web").claims} == {
        WWW, "web.shop.svc.prod.example.com", "_http._tcp.web.shop.svc.prod.example.com"
    }  # fmt: skip
    # Only the Service that has such annotations was written, and once.
    assert deployment.state("usual").version == versions["usual"]
    after = deployment.state("web")
    assert after.version == versions["web"] + 1
    deployment.run_session()
    deployment.start()
    deployment.resync()
    deployment.end()
    assert deployment.state("web").version == after.version
    assert (sent(), deployment.sets()) == (0, stood)
    assert JOURNAL in deployment.route53.records(ZONE_ID)


def test_removed_cluster_lets_go_of_names_at_which_nothing_stands(deployment: Deployment) -> None:
    deployment.start()
    service, endpoints = headless("web-1", endpoints_type="HostIP")
    deployment.apply("web", a_service(headless=True))
    deployment.apply("web", endpoints, slice_name="web-1")
    deployment.pass_time()
    deployment.apply("web", service)
    deployment.apply("web", an_endpoints(), slice_name="web-1")
    deployment.pass_time()
    assert (deployment.sets(), len(deployment.state("web").claims)) == ({}, 1)
    deployment.world.configure("prod", deleting=True)
    deployment.pass_time(120)
    assert deployment.state("web").claims == frozenset()
    assert deployment.state("web").key == ObjectKey("prod", "shop", "web")
