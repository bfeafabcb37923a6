"""``kubesync lint``: what a manifest leads to is what a session makes of the same objects."""

import io
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
        ([a_service(annotations={"external-dns.kubernetes.io/ttl": "25h"})], ["InvalidTtl"]),
        ([a_service(annotations={"external-dns.kubernetes.io/hostname": "svc.prod.example.com"})], ["ApexNotAllowed"]),
        ([a_service(annotations={"external-dns.kubernetes.io/target": "169.254.169.254"})], ["AddressNotAllowed"]),
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
    ids=["ttl", "long ttl", "domain of Services", "address", "outside", "wildcard", "port", "two want one name"],
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
    assert ran.lines == ["2 objects of other kinds, which kubesync does not read: Deployment, Service"]


def test_date_is_text_and_a_name_twice_is_said(tmp_path: Path) -> None:
    dated = WEB.replace("namespace: shop", "namespace: shop\n  creationTimestamp: 2024-01-01T00:00:00Z")

    ran = lint(tmp_path, dated, dated)

    assert (ran.status, len(ran.json["services"])) == (0, 1)
    assert ran.lines == [
        f"note: cluster/shop/web: {tmp_path}/service.yaml document 1 holds it too: the last one counts"
    ]


@pytest.mark.parametrize(
    "text", ["", "---\n# Source: shop/templates/web.yaml\n---\n"], ids=["no byte", "comments only"]
)
def test_input_without_any_document_is_wrong_use(tmp_path: Path, text: str) -> None:
    ran = lint(tmp_path, text)

    assert (ran.status, ran.out) == (2, "")
    assert ran.lines == [f"kubesync: nothing to check: there is no document in {tmp_path}/service.yaml"]


def test_standard_input_of_a_failed_program_is_wrong_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))

    ran = call("lint", "-f", "-", "--domain", "x.example", environment=a_bare_environment())

    assert (ran.status, ran.out) == (2, "")
    assert ran.lines == ["kubesync: nothing to check: there is no document in standard input"]


def test_one_empty_file_beside_another_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing here\n")

    ran = lint(tmp_path, WEB, options=("--domain", "prod.example.com", "-f", str(tmp_path / "empty.yaml")))

    assert (ran.status, len(ran.json["services"])) == (0, 1)


def test_list_without_items_and_other_kinds_alone_are_no_problem(tmp_path: Path) -> None:
    for document in (
        "apiVersion: v1\nkind: List\nitems: []\n",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n",
    ):
        ran = lint(tmp_path, document)

        assert (ran.status, ran.json["ok"], ran.json["services"]) == (0, True, [])


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"name": "WEB_x"}, "metadata.name 'WEB_x' is not a name that Kubernetes takes: use "),
        ({"name": "a.b"}, "metadata.name 'a.b' is not a name that Kubernetes takes: use "),
        ({"name": "web-"}, "metadata.name 'web-' is not a name that Kubernetes takes: use "),
        ({"name": "w" * 64}, f"metadata.name '{'w' * 64}' is not a name that Kubernetes takes: use "),
        ({"name": "web", "namespace": "NS!"}, "metadata.namespace 'NS!' is not a name that Kubernetes takes: use "),
        ({"name": "web", "namespace": "a/b"}, "metadata.namespace 'a/b' is not a name that Kubernetes takes: use "),
        ({"name": 5}, "metadata.name must be text: put it in quotation marks"),
        ({"name": ""}, "metadata.name is missing"),
        ({}, "metadata.name is missing"),
    ],
    ids=lambda given: "" if isinstance(given, str) else None,
)
def test_service_that_kubernetes_refuses_by_its_name_fails(tmp_path: Path, metadata: dict[str, Any], said: str) -> None:
    document = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}

    ran = lint(tmp_path, yaml.safe_dump(document))

    assert (ran.status, ran.json["ok"], ran.json["services"]) == (1, False, [])
    (problem,) = ran.json["problems"]
    rule = "lower-case letters, digits and hyphens, at most 63 characters, and a letter or digit at both ends (an RFC 1123 label)"
    assert problem == {
        "code": "Unreadable", "subject": f"{tmp_path}/service.yaml document 1",
        "message": said + rule if said.endswith("use ") else said, "advice": "Correct the manifest.",
    }  # fmt: skip


def test_name_that_begins_with_a_digit_is_noted_and_an_empty_namespace_is_the_default(tmp_path: Path) -> None:
    ran = lint(tmp_path, a_service("2web"), a_service("web").replace("namespace: shop", "namespace: null"))

    assert (ran.status, [row["service"] for row in ran.json["services"]]) == (
        0,
        ["cluster/default/web", "cluster/shop/2web"],
    )
    assert ran.lines == [
        "note: cluster/shop/2web: Kubernetes before 1.36 refuses a Service whose name begins with a digit"
    ]


def test_namespace_option_that_is_none_is_refused(tmp_path: Path) -> None:
    ran = lint(tmp_path, WEB, options=("--domain", "prod.example.com", "-n", "NS!"))

    assert ran.status == 2
    assert ran.err == (
        "kubesync: --namespace 'NS!' is not a namespace: use lower-case letters, digits and hyphens, at most 63 characters, and a letter "
        "or digit at both ends (an RFC 1123 label)\n"
    )


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"ports": [{"port": "80"}]}, ["spec.ports[0].port must be a whole number, without quotation marks"]),
        ({"ports": [{"port": "http"}]}, ["spec.ports[0].port must be a whole number"]),
        (
            {"ports": [{"port": 0}, {"port": 70_000}]},
            ["spec.ports[0].port must be at least 1", "spec.ports[1].port must be at most 65535"],
        ),
        ({"ports": [{"name": "http"}]}, ["spec.ports[0].port is missing"]),
        ({"ports": [80]}, ["spec.ports[0] must be a map: names with values"]),
        ({"clusterIPs": "10.0.0.1"}, ["spec.clusterIPs must be a list"]),
        ({"externalName": 5}, ["spec.externalName must be text: put it in quotation marks"]),
        ({"externalName": ["db"]}, ["spec.externalName must be text"]),
        (
            {"publishNotReadyAddresses": "true"},
            ["spec.publishNotReadyAddresses must be true or false, without quotation marks"],
        ),
        ({"type": "T" * 300}, ["spec.type must have at most 253 characters"]),
    ],
    ids=lambda given: "" if isinstance(given, list) else None,
)
def test_field_of_a_wrong_form_is_named_with_its_rule(tmp_path: Path, spec: dict[str, Any], said: list[str]) -> None:
    ran = lint(tmp_path, a_service(**spec))

    found = [each for row in ran.json["services"] for each in row["problems"]]
    assert (ran.status, [each["message"] for each in found]) == (1, said)
    assert {(each["code"], each["subject"], each["advice"]) for each in found} == {
        ("Unreadable", "services/web", "Correct the manifest.")
    }


def test_annotation_and_slice_of_a_wrong_form_are_named(tmp_path: Path) -> None:
    numbered = WEB.replace('"60"', "60")
    odd = SLICE.replace("port: 8080", 'port: "8080"')

    ran = lint(tmp_path, numbered, odd)

    (row,) = ran.json["services"]
    assert [each["message"] for each in (*row["problems"], *ran.json["problems"])] == [
        "metadata.annotations[external-dns.kubernetes.io/ttl] must be text: put it in quotation marks",
        "ports[0].port must be a whole number, without quotation marks",
    ]


def test_table_begins_with_its_title(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    for document, title, empty in ((WEB, "record sets", 1), (a_service(ports=[{"port": "80"}]), "problems", 0)):
        file.write_text(document)

        ran = call("lint", "-f", str(file), "--domain", "prod.example.com", environment=a_bare_environment())

        assert ran.out.splitlines()[0] == title
        assert ran.out.splitlines().count("") == empty


def test_bad_target_is_shown_alike_and_its_consequence_is_said(tmp_path: Path) -> None:
    target = "external-dns.kubernetes.io/target"
    file = tmp_path / "web.yaml"
    file.write_text(a_service(annotations={target: "1.2.3.4;\nserver 6.6.6.6"}))

    ran = call("lint", "-f", str(file), "--domain", "prod.example.com", environment=a_bare_environment())

    assert ran.status == 1
    assert "InvalidTarget  1.2.3.4;\\nserver 6.6.6.6  " in ran.out
    assert "label '4;\\nserver 6' is not made of letters, digits, '_' and inner '-'" in ran.out
    note = (
        "note: cluster/shop/web: no valid target is left in the target annotation, which replaces the Service's addresses: it has no "
        "record sets"
    )
    assert ran.lines == [note, "1 Service: 0 record sets, 1 upstream, 1 problem"]
    one_left = lint(tmp_path, a_service(annotations={target: "1.2.3.4; server,192.0.2.7"}))
    assert (records(one_left), one_left.lines) == ({"web.shop.svc.prod.example.com A": ["192.0.2.7"]}, [])
    left_out = lint(tmp_path, a_service(annotations={target: "-", "kubesync.io/exclude": "true"}))
    assert [line for line in left_out.lines if "no valid target" in line] == []


def test_policy_is_shown_and_a_note_about_many_objects_is_said_once(tmp_path: Path) -> None:
    prefix = "external-dns.kubernetes.io/"
    annotations = {prefix + "set-identifier": "eu", prefix + "aws-region": "eu-west-1"}
    documents = [a_service(f"s{n}", annotations, type="LoadBalancer", clusterIP="10.0.0.1") for n in range(5)]
    file = tmp_path / "services.yaml"
    file.write_text("\n---\n".join(documents))

    ran = call("lint", "-f", str(file), "--domain", "prod.example.com", environment=a_bare_environment())

    assert "latency eu-west-1" in ran.out
    assert [line.partition(": a load balancer")[0] for line in ran.lines] == [
        "note: cluster/shop/s0, cluster/shop/s1, cluster/shop/s2 and 2 more",
        "5 Services: 5 record sets, 5 upstreams, 0 problems",
    ]


def test_line_that_counts_the_rest_comes_after_its_examples(tmp_path: Path) -> None:
    names = ",".join(f"n{number:02}.elsewhere.org" for number in range(12))

    ran = lint(tmp_path, a_service(annotations={"external-dns.kubernetes.io/hostname": names}, clusterIP="10.0.0.1"))

    assert [subject for _, subject in problems(ran)] == [*(f"n{number:02}.elsewhere.org" for number in range(10)), ""]
    assert ran.json["services"][0]["problems"][-1]["message"] == "and 2 more"


HOSTNAME: Final = "external-dns.kubernetes.io/hostname"
TARGET: Final = "external-dns.kubernetes.io/target"
WEIGHTED: Final = {"external-dns.kubernetes.io/set-identifier": "a", "external-dns.kubernetes.io/aws-weight": "3"}


@pytest.mark.parametrize(
    ("first", "second", "published", "found", "note"),
    [
        pytest.param(
            ({}, "10.0.0.1"), ({}, "fd00::1"), {"A": ["10.0.0.1"], "AAAA": ["fd00::1"]}, [], "",
            id="other types share a name",
        ),
        pytest.param(
            ({}, "10.0.0.1"), ({}, "10.0.0.2"), {"A": ["10.0.0.1"]}, ["NameTaken"], "",
            id="one type is taken",
        ),
        pytest.param(
            ({TARGET: "192.0.2.1"}, "10.0.0.1"), ({TARGET: "192.0.2.1"}, "10.0.0.2"), {"A": ["192.0.2.1"]}, [],
            "note: cluster/shop/b: waits for www.prod.example.com, where cluster/shop/a publishes the same",
            id="the same is no problem",
        ),
        pytest.param(
            ({}, "10.0.0.1"), (WEIGHTED, "10.0.0.2"), {"A": ["10.0.0.1"]}, ["NameTaken"], "",
            id="a weighted set cannot be beside a simple one",
        ),
        pytest.param(
            (WEIGHTED, "10.0.0.1"), (WEIGHTED, "fd00::1"), {"A": ["10.0.0.1"], "AAAA": ["fd00::1"]}, [], "",
            id="weighted sets of one identifier share it",
        ),
    ],
)  # fmt: skip
def test_two_objects_that_want_one_name_are_foreseen_as_a_session_decides(
    tmp_path: Path,
    first: tuple[dict[str, str], str],
    second: tuple[dict[str, str], str],
    published: dict[str, list[str]],
    found: list[str],
    note: str,
) -> None:
    services = [
        a_service(name, {HOSTNAME: "www.prod.example.com", **annotations}, clusterIP=address, clusterIPs=[address])
        for name, (annotations, address) in (("a", first), ("b", second))
    ]
    ran = lint(tmp_path, *services)

    name, found_at = "www.prod.example.com ", records(ran)
    assert {each.removeprefix(name): found_at[each] for each in found_at if each.startswith(name)} == published
    assert [code for code, _ in problems(ran)] == found
    assert (ran.status, [line for line in ran.lines if "waits for" in line]) == (bool(found), [note] if note else [])
