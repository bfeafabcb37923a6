"""``kubesync lint``: what a manifest leads to is what a session makes of the same objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from harness.cli_stack import Ran, a_bare_environment, a_cli_stack, call
from kubesync_local.standins.apiserver.objects.resources import BY_PLURAL

WEB: Final = """
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  annotations: {external-dns.kubernetes.io/hostname: "shop.prod.example.com", external-dns.kubernetes.io/ttl: "60"}
spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{name: http, port: 80}]}
"""
SLICE: Final = """
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.1.0.1]}, {addresses: [10.1.0.2], conditions: {ready: false}}]
"""


def a_service(name: str = "web", annotations: dict[str, str] | None = None, **spec: Any) -> str:
    metadata = {"name": name, "namespace": "shop", "annotations": annotations or {}}
    document = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}], **spec}}
    return yaml.safe_dump(document)


def lint(tmp_path: Path, *documents: str, options: tuple[str, ...] = ("--domain", "prod.example.com")) -> Ran:
    file = tmp_path / "service.yaml"
    file.write_text("\n---\n".join(documents))
    return call("lint", "-f", str(file), "-o", "json", *options, environment=a_bare_environment())


def records(ran: Ran) -> dict[str, list[str]]:
    return {f"{r['name']} {r['type']}": r["values"] for row in ran.json["services"] for r in row["records"]}


def problems(ran: Ran) -> list[tuple[str, str]]:
    return [(p["code"], p["subject"]) for row in ran.json["services"] for p in row["problems"]]


def test_manifest_leads_to_records_and_upstreams(tmp_path: Path) -> None:
    ran = lint(tmp_path, WEB, SLICE)

    assert ran.status == 0
    assert records(ran) == {
        "shop.prod.example.com A": ["10.0.0.1"],
        "web.shop.svc.prod.example.com A": ["10.0.0.1"],
        "_http._tcp.web.shop.svc.prod.example.com SRV": ["0 100 80 web.shop.svc.prod.example.com."],
    }
    (row,) = ran.json["services"]
    assert {record["ttl"] for record in row["records"]} == {60}
    assert row["upstreams"] == [
        {"upstream": "cluster/shop/web/80/TCP", "nodes": ["10.1.0.1:8080", "10.1.0.2:8080 (not ready)"]}
    ]
    assert (row["problems"], row["place"]) == ([], f"{tmp_path}/service.yaml document 1")


def test_session_publishes_what_lint_shows_of_a_registered_cluster(tmp_path: Path) -> None:
    with a_cli_stack(in_memory=True) as stack:
        assert stack.add_cluster("prod", "--namespaces", "shop").status == 0
        cluster = stack.api.cluster
        cluster.deploy("shop", "web", 2)
        asked = {"external-dns.kubernetes.io/hostname": "shop.prod.example.com"}
        cluster.expose(
            "shop", "web", {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}}, annotations=asked
        )
        file = tmp_path / "web.yaml"
        kinds = {"services": ("v1", "Service"), "endpointslices": ("discovery.k8s.io/v1", "EndpointSlice")}
        objects = [
            {"apiVersion": version, "kind": kind, **each.item}
            for plural, (version, kind) in kinds.items()
            for each in stack.api.store.objects(BY_PLURAL[plural])
        ]
        file.write_text(yaml.safe_dump_all([each for each in objects if each["metadata"]["namespace"] == "shop"]))
        shown = stack.call("lint", "-f", str(file), "--cluster", "prod", "-o", "json")
        stack.session()

        assert shown.status == 0
        assert records(shown) == stack.zone_records()
        taken = stack.call("lint", "-f", str(file), "--cluster", "prod", "-o", "json")
        assert (taken.status, problems(taken)) == (0, [])
        file.write_text(a_service("other", {"external-dns.kubernetes.io/hostname": "shop.prod.example.com"}))
        other = stack.call("lint", "-f", str(file), "--cluster", "prod", "-o", "json")
        assert (other.status, problems(other)) == (1, [("NameTaken", f"shop.prod.example.com in {stack.zone_id}")])
        file.write_text(a_service().replace("namespace: shop", "namespace: other"))
        outside = stack.call("lint", "-f", str(file), "--cluster", "prod", "-o", "json")
        assert (outside.status, records(outside)) == (0, {})
        assert outside.lines == [
            "note: prod/other/web: cluster prod does not watch namespace other: nothing is published"
        ]


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ({}, {"web.shop.svc.prod.example.com A": ["(its cluster IP)"]}),
        (
            {"ipFamilyPolicy": "RequireDualStack"},
            {f"web.shop.svc.prod.example.com {t}": ["(its cluster IP)"] for t in ("A", "AAAA")},
        ),
        ({"ipFamilies": 5}, {"web.shop.svc.prod.example.com A": ["(its cluster IP)"]}),
        ({"type": "LoadBalancer"}, {"web.shop.svc.prod.example.com A": ["(the load balancer's address)"]}),
        ({"clusterIP": "None"}, {"web.shop.svc.prod.example.com A": ["(its ready pods)"]}),
        (
            {"type": "ExternalName", "externalName": "db.example.org"},
            {"web.shop.svc.prod.example.com CNAME": ["db.example.org."]},
        ),
    ],
    ids=["assigned later", "dual stack", "nonsense", "load balancer", "headless", "external"],
)
def test_what_the_cluster_adds_is_shown_in_words(
    tmp_path: Path, spec: dict[str, Any], shown: dict[str, list[str]]
) -> None:
    ran = lint(tmp_path, a_service(**spec))

    assert (ran.status, records(ran)) == (0, shown)


@pytest.mark.parametrize(
    ("documents", "found"),
    [
        ([a_service(annotations={"external-dns.kubernetes.io/ttl": "soon"})], ["InvalidTtl"]),
        ([a_service(annotations={"external-dns.kubernetes.io/hostname": "a.example.org"})], ["OutsideDomains"]),
        (
            [a_service(annotations={"external-dns.kubernetes.io/hostname": "*.prod.example.com"})],
            ["WildcardNotAllowed"],
        ),
        ([a_service(ports=[{"port": 70_000}])], ["Unreadable"]),
        (
            [
                a_service(name, {"external-dns.kubernetes.io/hostname": "pay.prod.example.com"})
                for name in ("first", "second")
            ],
            ["NameTaken"],
        ),
    ],
    ids=["ttl", "outside", "wildcard", "port", "two want one name"],
)
def test_problems_are_shown_with_advice_and_fail(tmp_path: Path, documents: list[str], found: list[str]) -> None:
    ran = lint(tmp_path, *documents)

    assert (ran.status, [code for code, _ in problems(ran)]) == (1, found)
    assert all(each["advice"] for row in ran.json["services"] for each in row["problems"])


def test_folder_list_and_standard_input_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(a_service("a"))
    listed = {"apiVersion": "v1", "kind": "ServiceList", "items": [yaml.safe_load(a_service("b"))]}
    (tmp_path / "b.json").write_text(yaml.safe_dump(listed, default_flow_style=True))
    (tmp_path / "note.txt").write_text("no manifest")

    ran = call("lint", "-f", str(tmp_path), "--domain", "x.example.com", "-o", "json", environment=a_bare_environment())

    assert [row["service"] for row in ran.json["services"]] == ["cluster/shop/a", "cluster/shop/b"]
    assert ran.json["services"][1]["place"] == f"{tmp_path}/b.json document 1 item 1"


def test_other_kinds_are_counted_and_a_service_of_another_group_is_one(tmp_path: Path) -> None:
    knative = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: x}\nspec: {}\n"

    ran = lint(tmp_path, knative, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", WEB)

    assert (ran.status, len(ran.json["services"])) == (0, 1)
    assert ran.lines == ["2 objects of other kinds: kubesync reads Services, EndpointSlices and Endpoints"]


def test_date_is_text_and_a_name_twice_is_said(tmp_path: Path) -> None:
    dated = WEB.replace("namespace: shop", "namespace: shop\n  creationTimestamp: 2024-01-01T00:00:00Z")

    ran = lint(tmp_path, dated, dated)

    assert (ran.status, len(ran.json["services"])) == (0, 1)
    assert ran.lines == [
        f"note: cluster/shop/web: {tmp_path}/service.yaml document 1 holds it too: the last one counts"
    ]
