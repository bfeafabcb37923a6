"""Why kubesync does not want what external-dns made: each case, with a Service of the cluster."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.seen.builders import a_config
from kubesync.domain.dns.records import Problem, RecordKey, RecordSet
from kubesync.domain.objects import ObjectKey, Port, Resource, Service
from kubesync.domain.sources.ingresses import INGRESSES, Ingress
from kubesync.domain.state import KeyState, Part, PartId
from kubesync_local.recovery.not_wanted import ClusterView, view_of, why_not_wanted

DNS = "external-dns.alpha.kubernetes.io/"
PAGE = Path(__file__).resolve().parents[3] / "docs/migration.md"
WHY = {
    "source": "kubesync reads only Services and Ingresses",
    "not read": "the cluster's --sources leave Ingresses out",
    "excluded": "kubesync.io/exclude leaves the Service out",
    "not included": "the cluster is opt-in, and the Service has no kubesync.io/include",
    "pod name": "a pod name below `hostname` of a headless Service",
    "node port": "an SRV record of node ports",
    "external IPs": "its load balancer has no address; external-dns takes spec.externalIPs",
    "cluster IPs": "cluster IPs (--publish-internal-services) at a name that no annotation asks for",
    "template": "no annotation asks for this name",
    "other type": "kubesync wants another type at this name",
    "nothing": "kubesync has nothing to publish at this name",
    "no service": "no Service of this cluster asks for it",
    "no ingress": "no Ingress of this cluster asks for it",
    "class": "--ingress-class leaves the Ingress out",
    "pending": "the load balancer of the Ingress has no address",
    "ingress template": "neither a host of the Ingress nor an annotation asks for this name",
}


def a_view(
    service: Service | None, *, wanted: str = "", problems: tuple[Problem, ...] = (), **rules: Any
) -> ClusterView:
    state = KeyState(
        ObjectKey("prod", "shop", "web"),
        parts={PartId(Resource.SERVICES, "web"): Part("uid", 1, 0, service)},
        intended={a_key(wanted): RecordSet(300, ("192.0.2.1",))} if wanted else {},
        problems=problems,
    )
    return view_of(a_config(**rules), [state])


def a_key(label: str) -> RecordKey:
    name, _, kind = label.partition(" ")
    return RecordKey("Z1", name, kind)


def asking(kind: str = "ClusterIP", *, hostname: str = "www.example.com", **fields: Any) -> Service:
    annotations = dict(fields.pop("annotations", {}))
    if hostname:
        annotations[f"{DNS}hostname"] = hostname
    return Service(kind, annotations=tuple(sorted(annotations.items())), **fields)


def why(view: ClusterView, label: str = "www.example.com A", resource: str = "service/shop/web", *values: str) -> str:
    return why_not_wanted(a_key(label), RecordSet(300, values or ("203.0.113.1",)), resource, [view]).why


@pytest.mark.parametrize(
    ("case", "view", "label"),
    [
        ("excluded", a_view(asking(annotations={"kubesync.io/exclude": "true"})), "www.example.com A"),
        ("not included", a_view(asking(), opt_in=True), "www.example.com A"),
        ("pod name", a_view(asking(cluster_ips=("None",))), "web-0.www.example.com A"),
        ("node port", a_view(asking("NodePort", ports=(Port("", "TCP", 80),))), "_web._tcp.www.example.com SRV"),
        ("external IPs", a_view(asking("LoadBalancer")), "www.example.com A"),
        ("other type", a_view(asking(), wanted="www.example.com A"), "www.example.com AAAA"),
        ("nothing", a_view(asking()), "www.example.com A"),
        ("cluster IPs", a_view(asking(hostname="", cluster_ips=("203.0.113.1",))), "web.example.com A"),
        ("template", a_view(asking(hostname="", cluster_ips=("10.0.0.1",))), "web.example.com A"),
        ("no service", a_view(None), "www.example.com A"),
    ],
)
def test_case_is_told(case: str, view: ClusterView, label: str) -> None:
    assert why(view, label) == WHY[case]


def test_what_is_of_another_source_is_said_to_be_so() -> None:
    said = "made of pod shop/web: kubesync reads only Services and Ingresses"
    assert why(a_view(asking()), resource="pod/shop/web") == said
    said = "made of ingress shop/web: the cluster's --sources leave Ingresses out"
    assert why(a_view(asking()), resource="ingress/shop/web") == said
    said = "made of service shop/web: the cluster's --sources leave Services out"
    assert why(view_of(a_config(sources=("ingress",)), [])) == said


WWW = Ingress(hosts=("WWW.example.com",), ingress_ips=("192.0.2.1",))


def of_ingress(
    ingress: Ingress,
    label: str = "www.example.com A",
    wanted: str = "",
    problems: tuple[Problem, ...] = (),
    **rules: Any,
) -> tuple[str, str]:
    state = KeyState(
        ObjectKey("prod", "shop", "web", "Ingress"),
        parts={PartId(INGRESSES, "web"): Part("uid", 1, 0, ingress)},
        intended={a_key(wanted): RecordSet(300, ("192.0.2.1",))} if wanted else {},
        problems=problems,
    )
    view = view_of(a_config(sources=("service", "ingress"), **rules), [state])
    answer = why_not_wanted(a_key(label), RecordSet(300, ("203.0.113.1",)), "ingress/shop/web", [view])
    return answer.why, answer.service


@pytest.mark.parametrize(
    ("case", "given"),
    [
        ("class", {"ingress": replace(WWW, class_name="nginx"), "ingress_class": ("alb",)}),
        ("pending", {"ingress": replace(WWW, ingress_ips=())}),
        ("ingress template", {"ingress": WWW, "label": "other.example.com A"}),
        ("other type", {"ingress": WWW, "label": "www.example.com AAAA", "wanted": "www.example.com A"}),
        ("nothing", {"ingress": WWW}),
    ],
)
def test_case_of_an_ingress_is_told(case: str, given: dict[str, Any]) -> None:
    assert of_ingress(**given) == (WHY[case], "prod/shop/Ingress:web")


def test_ingress_that_is_left_out_or_refused_is_told() -> None:
    excluded = replace(WWW, annotations=(("kubesync.io/exclude", "true"),))
    assert of_ingress(excluded)[0] == "kubesync.io/exclude leaves the Ingress out"
    assert of_ingress(WWW, opt_in=True)[0] == "the cluster is opt-in, and the Ingress has no kubesync.io/include"
    refused = Problem("OutsideDomains", "www.example.com", "it is not at or below other.example.com")
    assert of_ingress(WWW, problems=(refused,))[0] == "OutsideDomains: it is not at or below other.example.com"


def test_ingress_that_no_cluster_has_is_told() -> None:
    view = view_of(a_config(sources=("ingress",)), [])
    assert why(view, resource="ingress/shop/web") == WHY["no ingress"]


def test_refused_name_is_told_with_its_code() -> None:
    refused = Problem("NoZone", "www.example.com", "the name fits none of the cluster's hosted zones")
    assert why(a_view(asking(), problems=(refused,))) == "NoZone: the name fits none of the cluster's hosted zones"


def test_service_that_is_refused_as_a_whole_is_told_with_its_code() -> None:
    refused = Problem("InvalidSetIdentifier", f"{DNS}set-identifier", "nothing is published")
    assert why(a_view(asking(), problems=(refused,))) == "InvalidSetIdentifier: nothing is published"


def test_second_cluster_with_the_service_answers() -> None:
    other = a_view(asking("LoadBalancer"))
    answer = why_not_wanted(
        a_key("www.example.com A"), RecordSet(300, ("203.0.113.1",)), "service/shop/web", [a_view(None), other]
    )
    assert (answer.cluster, answer.service, answer.why) == ("prod", "prod/shop/web", WHY["external IPs"])


@pytest.mark.parametrize("case", WHY)
def test_page_says_what_to_do_with_each_case(case: str) -> None:
    first_cells = [line.split(" | ")[0] for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert [cell for cell in first_cells if cell.endswith(WHY[case])], case
