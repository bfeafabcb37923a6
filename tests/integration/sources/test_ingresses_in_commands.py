"""Ingresses by command, over real sockets: registered with ``--sources``, published by sessions, changed and taken out again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli_stack import CliStack, a_cli_stack
from harness.page_visitor import a_visited_page, parsed
from kubesync.aws.dynamodb.store import CONTROL, Key
from kubesync_local.standins.apiserver.objects.resources import INGRESSES
from kubesync_local.standins.apiserver.transport.faults import Answer, garbage
from kubesync_local.workplace.readings import ListenerReadings

ALB = "k8s-shop-web-1.eu-west-1.elb.amazonaws.com"
WWW = {"rules": [{"host": "www.prod.example.com"}], "tls": [{"hosts": ["www.prod.example.com"], "secretName": "tls"}]}
ONLY = "annotation external-dns.kubernetes.io/ingress-hostname-source: annotation-only"


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        yield made


def expose(stack: CliStack, name: str, spec: Any, *status: Any, annotations: dict[str, str] | None = None) -> None:
    stack.api.cluster.expose_ingress("shop", name, spec, annotations=annotations)
    if status:
        stack.api.cluster.set_ingress("shop", name, status)


def answer(stack: CliStack, *arguments: str) -> Any:
    ran = stack.call(*arguments, "-o", "json")
    assert ran.status == 0, ran.err
    return ran.json


def of_ingresses(stack: CliStack) -> dict[str, list[str]]:
    """What stands in the zone, but for the API server's own Service."""
    return {name: values for name, values in stack.zone_records().items() if "kubernetes.default" not in name}


def test_services_and_ingresses_are_published_and_followed(stack: CliStack) -> None:
    stack.api.cluster.expose("shop", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
    expose(stack, "web", WWW, {"ip": "192.0.2.1"}, {"ip": "2001:db8::1"})
    expose(stack, "alb", {"rules": [{"host": "alb.prod.example.com"}]}, {"hostname": ALB})
    ran = stack.add_cluster("prod", "--sources", "ingress,service", "--no-srv")
    assert ran.status == 0, ran.err
    stack.session()
    (web,) = of_ingresses(stack).pop("web.shop.svc.prod.example.com A")
    assert web.startswith("10.68.")
    assert {name: values for name, values in of_ingresses(stack).items() if ".svc." not in name} == {
        "www.prod.example.com A": ["192.0.2.1"],
        "www.prod.example.com AAAA": ["2001:db8::1"],
        "alb.prod.example.com CNAME": [f"{ALB}."],
    }
    rows = {
        (row["name"], row["service"], row["kind"]) for row in answer(stack, "records", "--name", "www.prod.example.com")
    }
    assert rows == {("www.prod.example.com", "prod/shop/Ingress:web", "Ingress")}
    stack.api.cluster.set_ingress("shop", "web", [{"ip": "192.0.2.2"}])
    stack.api.cluster.delete_ingress("shop", "alb")
    stack.session()
    assert {name: values for name, values in of_ingresses(stack).items() if ".svc." not in name} == {
        "www.prod.example.com A": ["192.0.2.2"]
    }


def test_ingresses_alone(stack: CliStack) -> None:
    stack.api.cluster.expose("shop", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
    expose(stack, "web", WWW, {"ip": "192.0.2.1"})
    assert stack.add_cluster("prod", "--sources", "ingress").status == 0
    stack.session()
    assert stack.zone_records() == {"www.prod.example.com A": ["192.0.2.1"]}
    assert {each.resource for each in stack.api.requests.all() if each.verb in ("list", "watch")} == {"ingresses"}
    found = answer(stack, "explain", "prod/shop/Ingress:web")
    assert [(each["name"], each["origins"]) for each in found["records"]] == [
        (
            "www.prod.example.com",
            [
                {"rule": "spec.rules", "source": "status.loadBalancer"},
                {"rule": "spec.tls", "source": "status.loadBalancer"},
            ],
        )
    ]


def test_options_of_ingresses(stack: CliStack) -> None:
    rules, tls = [{"host": "rule.prod.example.com"}], [{"hosts": ["tls.prod.example.com"]}]
    for name in ("alb", "nginx"):
        spec = {"ingressClassName": name, "rules": [{"host": f"{name}.prod.example.com"}]}
        expose(stack, name, spec, {"ip": "192.0.2.1"}, {"ip": "10.0.0.1"})
    expose(
        stack,
        "old",
        {"rules": rules, "tls": tls},
        {"ip": "192.0.2.2"},
        annotations={"kubernetes.io/ingress.class": "alb"},
    )
    ran = stack.add_cluster(
        "prod", "--sources", "ingress", "--ingress-class", "alb,other", "--ignore-ingress-rules-spec",
        "--exclude-target-net", "10.0.0.0/8",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    stack.session()
    assert stack.zone_records() == {"tls.prod.example.com A": ["192.0.2.2"]}
    ran = stack.call(
        "cluster", "set", "prod", "--unset", "ignore-ingress-rules-spec", "--ignore-ingress-tls-spec", "--yes"
    )
    assert ran.status == 0, ran.err
    stack.session()
    assert stack.zone_records() == {"alb.prod.example.com A": ["192.0.2.1"], "rule.prod.example.com A": ["192.0.2.2"]}
    foreseen = stack.call("cluster", "set", "prod", "--unset", "ingress-class", "--dry-run").out
    assert "  + nginx.prod.example.com A 192.0.2.1 ttl 30  (prod/shop/Ingress:nginx)\n" in foreseen
    assert stack.call("cluster", "set", "prod", "--unset", "ingress-class", "--yes").status == 0
    stack.session()
    assert stack.zone_records()["nginx.prod.example.com A"] == ["192.0.2.1"]
    stored = json.loads(str((stack.store.get(Key(CONTROL, "clusters", "prod")) or {})["document"]))
    assert {name: stored[name] for name in stored if "ingress" in name or "net" in name or name == "sources"} == {
        "sources": ["ingress"], "ignore_ingress_tls_spec": True, "exclude_target_net": ["10.0.0.0/8"],
    }  # fmt: skip
    (document,) = yaml.safe_load(stack.call("cluster", "export").out)["clusters"]
    assert (document["sources"], document["exclude_target_net"]) == (["ingress"], ["10.0.0.0/8"])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--sources", ","], "kubesync: --sources is empty: give kinds of objects, such as service,ingress"),
        (["--sources", "ingress,ingress"], "kubesync: --sources ingress is given twice: give it once"),
        (["--ingress-class", "alb"], "kubesync: --ingress-class is for Ingresses: add --sources service,ingress, or leave it out"),
        (
            ["--exclude-target-net", "ten"],
            "kubesync: --exclude-target-net 'ten' is not a network: give networks such as 10.0.0.0/8,2001:db8::/32",
        ),
    ],
)  # fmt: skip
def test_wrong_option_is_one_clear_line(stack: CliStack, options: list[str], line: str) -> None:
    ran = stack.add_cluster("prod", *options)
    assert (ran.status, ran.lines) == (2, [line])


def test_kind_that_kubesync_does_not_know_is_one_clear_line(stack: CliStack) -> None:
    ran = stack.add_cluster("prod", "--sources", "service,pod")
    (line,) = ran.lines  # other tests of this process may have registered further kinds
    assert (ran.status, line.startswith("kubesync: --sources is a list of ingress, service")) == (2, True)


def test_cluster_without_the_new_options_is_stored_as_before(stack: CliStack) -> None:
    assert stack.add_cluster("prod").status == 0
    item = stack.store.get(Key(CONTROL, "clusters", "prod")) or {}
    stored = json.loads(str(item["document"]))
    assert (item["v"], set(stored) & {"sources", "ingress_class", "exclude_target_net"}) == (1, set())


def test_source_that_is_taken_out_shows_what_goes_and_asks_and_comes_back(stack: CliStack) -> None:
    stack.api.cluster.expose("shop", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
    expose(stack, "web", WWW, {"ip": "192.0.2.1"})
    assert stack.add_cluster("prod", "--sources", "service,ingress").status == 0
    stack.session()
    both = stack.zone_records()
    ran = stack.call("cluster", "set", "prod", "--unset", "sources", "--dry-run")
    assert ran.status == 0, ran.err
    assert [line.split()[:3] for line in ran.out.splitlines() if "www.prod" in line] == [
        ["-", "www.prod.example.com", "A"]
    ]
    assert "prod/shop/Ingress:web" in ran.out
    assert "web.shop.svc" not in ran.out
    ran = stack.call("cluster", "set", "prod", "--unset", "sources")
    assert (ran.status, "--yes" in ran.err) == (2, True)
    assert stack.zone_records() == both
    assert stack.call("cluster", "set", "prod", "--unset", "sources", "--yes").status == 0
    item = stack.store.get(Key(CONTROL, "clusters", "prod")) or {}
    assert (item["v"], "sources" in json.loads(str(item["document"]))) == (1, False)
    stack.session()
    assert stack.zone_records() == {name: values for name, values in both.items() if "www" not in name}
    assert stack.call("explain", "prod/shop/Ingress:web").status != 0
    assert stack.call("cluster", "set", "prod", "--sources", "service,ingress").status == 0
    stack.session()
    assert stack.zone_records() == both


GROUP = b'{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"networking.k8s.io/v1","resources":[]}'
REFUSALS = {
    "forbidden": (Answer(403, "Forbidden", "ingresses.networking.k8s.io is forbidden"), 403),
    "not served": (Answer(404, "NotFound", "the server could not find the requested resource"), 404),
    "an empty group": (garbage(GROUP, "application/json"), None),
}


def ingress_errors(stack: CliStack) -> list[Any]:
    errors = ListenerReadings(stack.store).errors("prod")
    return [each.last.get("status") for resource, each in errors.items() if resource == "ingresses" and each.last]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_i5_refused_list_of_ingresses_is_no_empty_list_and_services_go_on(stack: CliStack, refusal: str) -> None:
    fault, status = REFUSALS[refusal]
    for name in ("web", "gone"):
        expose(stack, name, {"rules": [{"host": f"{name}.prod.example.com"}]}, {"ip": "192.0.2.1"})
    assert stack.add_cluster("prod", "--sources", "service,ingress", "--no-srv").status == 0
    stack.session()
    stands = {f"{name}.prod.example.com A": ["192.0.2.1"] for name in ("web", "gone")}
    stack.api.faults.add(fault, resource="ingresses", times=None)
    stack.api.cluster.delete_ingress("shop", "gone")
    stack.api.compact(stack.api.store.revision, INGRESSES)
    stack.api.cluster.expose("shop", "new", {"ports": [{"port": 80}]})

    def published() -> bool:
        return "new.shop.svc.prod.example.com A" in stack.zone_records() and bool(ingress_errors(stack))

    stack.session(published)
    assert {name: values for name, values in stack.zone_records().items() if ".svc." not in name} == stands
    assert status in (None, ingress_errors(stack)[0])
    stack.api.faults.clear()
    stack.session()
    assert {name: values for name, values in stack.zone_records().items() if ".svc." not in name} == {
        "web.prod.example.com A": ["192.0.2.1"]
    }


def test_api_that_was_never_served_holds_up_no_service_and_is_found_later(stack: CliStack) -> None:
    expose(stack, "web", {"rules": [{"host": "www.prod.example.com"}]}, {"ip": "192.0.2.1"})
    stack.api.cluster.expose("shop", "web", {"ports": [{"port": 80}]})
    stack.api.faults.add(REFUSALS["not served"][0], resource="ingresses", times=None)
    assert stack.add_cluster("prod", "--sources", "service,ingress").status == 0
    stack.session(lambda: "web.shop.svc.prod.example.com A" in stack.zone_records() and ingress_errors(stack))
    assert "www.prod.example.com A" not in stack.zone_records()
    assert of_check(stack) == {"list": "warning", "watch": "skipped", "status": 0}
    (cluster,) = answer(stack, "status")["clusters"]
    states = {row["listener"]: row["state"] for row in cluster["listeners"]}
    assert states == {"services": "works", "endpointslices": "works", "ingresses": "absent"}
    assert answer(stack, "status", "--check") == {"ok": True, "causes": []}
    stack.api.cluster.expose("shop", "late", {"ports": [{"port": 80}]})
    plan = stack.call("plan", "--cluster", "prod")
    assert plan.status == 0, plan.err
    assert "late.shop.svc.prod.example.com" in plan.out
    stack.api.faults.clear()
    stack.session()
    assert stack.zone_records()["www.prod.example.com A"] == ["192.0.2.1"]
    assert of_check(stack) == {"list": "ok", "watch": "ok", "status": 0}


def test_i5_api_that_is_gone_is_a_failed_step_and_a_failed_plan(stack: CliStack) -> None:
    expose(stack, "web", {"rules": [{"host": "www.prod.example.com"}]}, {"ip": "192.0.2.1"})
    assert stack.add_cluster("prod", "--sources", "service,ingress").status == 0
    stack.session()
    stack.api.faults.add(REFUSALS["not served"][0], resource="ingresses", times=None)
    assert of_check(stack) == {"list": "failed", "watch": "failed", "status": 1}
    plan = stack.call("plan", "--cluster", "prod")
    assert (plan.status, "could not be listed" in plan.err) == (1, True)


def of_check(stack: CliStack) -> dict[str, Any]:
    """What a check says of the listener of Ingresses."""
    ran = stack.call("cluster", "check", "prod", "-o", "json")
    found = {step["step"]: step["result"] for step in ran.json["steps"]}
    return {"list": found["list ingresses"], "watch": found["watch ingresses"], "status": ran.status}


def test_lint_reads_manifests_with_ingresses(stack: CliStack, tmp_path: Path) -> None:
    assert stack.add_cluster("prod", "--sources", "service,ingress", "--ingress-class", "alb").status == 0
    head = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    web = {
        **head,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {**WWW, "ingressClassName": "alb"},
        "status": status,
    }
    wrong = {"external-dns.kubernetes.io/ingress-hostname-source": "both"}
    bad = {**web, "metadata": {"name": "bad", "namespace": "shop", "annotations": wrong}}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([web, bad]))
    ran = stack.call("lint", "-f", str(tmp_path), "--cluster", "prod", "-o", "json")
    rows = {row["service"]: row for row in ran.json["services"]}
    assert [(each["name"], each["values"]) for each in rows["prod/shop/Ingress:web"]["records"]] == [
        ("www.prod.example.com", ["192.0.2.1"])
    ]
    assert [each["code"] for each in rows["prod/shop/Ingress:bad"]["problems"]] == ["InvalidHostnameSource"]
    assert ran.status == 1


def test_plan_of_a_manifest_with_an_ingress(stack: CliStack, tmp_path: Path) -> None:
    expose(stack, "web", WWW, {"ip": "192.0.2.1"})
    assert stack.add_cluster("prod", "--sources", "service,ingress").status == 0
    stack.session()
    (tmp_path / "all.yaml").write_text(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web, namespace: shop}\n"
        "spec: {rules: [{host: www.prod.example.com}, {host: new.prod.example.com}]}\n---\n"
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: fresh}\nspec: {rules: [{host: f.prod.example.com}]}\n"
        "status: {loadBalancer: {ingress: [{hostname: lb.example.net}]}}\n"
    )
    ran = stack.call("plan", "-f", str(tmp_path / "all.yaml"), "-n", "shop", "--exit-code", COLUMNS="")

    assert ran.status == 3, ran.err
    shown = [line.strip() for line in ran.out.splitlines() if line.startswith("  ")]
    assert "+ f.prod.example.com CNAME lb.example.net. ttl 30  (prod/shop/Ingress:fresh)" in shown
    assert (
        "+ new.prod.example.com A 192.0.2.1 ttl 30  (prod/shop/Ingress:web)" in shown
    )  # the address that the cluster gave it


@pytest.mark.parametrize("asked", ["prod/shop/web", "prod/shop/ingress:web"])
def test_explain_finds_the_ingress_of_that_name(stack: CliStack, asked: str) -> None:
    expose(stack, "web", WWW, {"ip": "192.0.2.1"})
    assert stack.add_cluster("prod", "--sources", "service,ingress").status == 0
    stack.session()

    ran = stack.call("explain", asked)
    if ":" in asked:
        assert ran.out.startswith("prod/shop/Ingress:web  in sync  "), ran.err
    else:
        assert (ran.status, "did you mean prod/shop/Ingress:web?" in ran.err) == (1, True)


def test_explain_says_why_an_ingress_has_no_record_set(stack: CliStack) -> None:
    for name, status in (("other", {"ip": "192.0.2.1"}), ("late", None), ("bare", {"ip": "192.0.2.2"})):
        spec = {"ingressClassName": "other" if name == "other" else "alb"}
        expose(
            stack,
            name,
            spec if name == "bare" else {**spec, "rules": [{"host": f"{name}.prod.example.com"}]},
            *[status][: status is not None],
        )
    rules, tls = {"rules": [{"host": "unused.prod.example.com"}]}, {"tls": [{"hosts": ["unused.prod.example.com"]}]}
    only = {"external-dns.kubernetes.io/ingress-hostname-source": "Annotation-only"}
    expose(stack, "unused", {"ingressClassName": "alb", **rules, **tls}, {"ip": "192.0.2.3"}, annotations=only)
    tls = {"tls": [{"hosts": [f"{name}.tls.prod.example.com" for name in "abcd"]}]}
    expose(stack, "tls", {"ingressClassName": "alb", **tls}, {"ip": "192.0.2.4"})
    options = ("--ingress-class", "alb", "--ignore-ingress-tls-spec")
    assert stack.add_cluster("prod", "--sources", "service,ingress", *options).status == 0
    stack.session()

    said = {
        name: answer(stack, "explain", f"prod/shop/Ingress:{name}")["remarks"]
        for name in ("other", "late", "bare", "unused", "tls")
    }
    idle = "no session is running: all changes wait for the next one"
    assert said == {
        "other": ["--ingress-class alb leaves the Ingress out: its class is other", idle],
        "late": ["its load balancer has no address: no controller has written status.loadBalancer yet", idle],
        "bare": ["it has neither a host nor an annotation hostname", idle],
        "unused": [f"{ONLY} leaves out unused.prod.example.com", idle],
        "tls": [
            "--ignore-ingress-tls-spec leaves out a.tls.prod.example.com, b.tls.prod.example.com, c.tls.prod.example.com and 1 more",
            idle,
        ],
    }
    ran = stack.call("explain", "late.prod.example.com")
    assert ran.status == 1
    assert "prod/shop/Ingress:late wants the name: its load balancer has no address" in ran.out
    ran = stack.call("explain", "unused.prod.example.com", COLUMNS="200")
    assert f"prod/shop/Ingress:unused wants the name: {ONLY} leaves out unused.prod.example.com" in ran.out


def test_explain_says_which_hosts_of_a_published_ingress_are_not_used(stack: CliStack) -> None:
    rules = {"rules": [{"host": "a.prod.example.com"}, {"host": "b.prod.example.com"}]}
    prefix = "external-dns.kubernetes.io/"
    only = {f"{prefix}ingress-hostname-source": "annotation-only", f"{prefix}hostname": "a.prod.example.com"}
    expose(stack, "web", rules, {"ip": "192.0.2.1"}, annotations=only)
    expose(stack, "odd", rules, {"ip": "192.0.2.2"}, annotations={f"{prefix}ingress-hostname-source": "both"})
    assert stack.add_cluster("prod", "--sources", "service,ingress").status == 0
    stack.session()

    remarks = answer(stack, "explain", "prod/shop/Ingress:web")["remarks"]
    assert remarks[:-1] == [f"{ONLY} leaves out b.prod.example.com"]
    ran = stack.call("explain", "b.prod.example.com", "-o", "json")
    odd, web = sorted(text.rpartition(";")[0] for text in ran.json["why"])
    assert odd == (
        f"prod/shop/Ingress:odd wants the name: InvalidHostnameSource {prefix}ingress-hostname-source: "
        "must be annotation-only or defined-hosts-only; nothing is published"
    )
    assert web == f"prod/shop/Ingress:web wants the name: {ONLY} leaves out b.prod.example.com"


def test_page_shows_an_ingress_beside_the_service_of_its_name(stack: CliStack) -> None:
    stack.api.cluster.expose("shop", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
    expose(stack, "web", WWW, {"ip": "192.0.2.1"})
    assert stack.add_cluster("prod", "--sources", "service,ingress", "--no-srv").status == 0
    stack.session()
    with a_visited_page(stack.environment) as (visitor, _):
        cluster, found, ingress = (
            "".join(parsed(visitor.get(path).body).texts)
            for path in ("/cluster/prod", "/search?q=www.prod.example.com", "/service/prod/shop/Ingress:web")
        )
    assert "shop/Ingress:web" in cluster
    assert "shop/web" in cluster
    assert "prod/shop/Ingress:web" in found
    assert "www.prod.example.com" in ingress
    assert "192.0.2.1" in ingress
    assert "web.shop.svc.prod.example.com" not in ingress
