"""One cluster that is registered twice, for public and private names; and what the command says about annotations."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from kubesync.aws.dynamodb.store import CONTROL, Key

PUBLIC: Final = "external-dns.kubernetes.io/"
PRIVATE: Final = "internal.example.com/"
BODY: Final = {"type": "LoadBalancer", "ports": [{"port": 80}], "clusterIP": "10.68.0.10", "selector": {"app": "web"}}


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.make_tables()
        yield made


def register(stack: CliStack, name: str, zone: str, *options: str) -> None:
    ran = stack.call(
        "cluster", "add", name, "--template", "default", "--server", stack.api.url, "--domain", "prod.example.com", "--zone", zone,
        "--domain-filter", "example.com",
        "--token", "env:KUBESYNC_TEST_TOKEN", "--no-srv", *options,
    )  # fmt: skip
    assert ran.status == 0, ran.err


def standing(stack: CliStack, zone: str) -> dict[str, list[str]]:
    return {
        f"{key.name.rstrip('.')} {key.type}": list(stored.values)
        for key, stored in stack.route53.records(zone).items()
        if key.type not in ("SOA", "NS", "TXT") and "kubernetes" not in key.name
    }


def documents(stack: CliStack) -> dict[str, dict[str, Any]]:
    """The stored configurations, as they stand in the table."""
    return {str(item["sk"]): json.loads(str(item["document"])) for item in stack.store.query(CONTROL, "clusters")}


def test_two_registrations_keep_public_and_private_names_apart(stack: CliStack) -> None:
    private = str(stack.route53.create_zone("example.com", private=True))
    register(stack, "prod", stack.zone_id, "--template", "none")
    register(stack, "prod-internal", private, "--annotation-prefix", PRIVATE)
    asked = {
        PUBLIC + "hostname": "www.example.com",
        PRIVATE + "hostname": "lb.example.com",
        PRIVATE + "internal-hostname": "www.example.com",
        PRIVATE + "hostnme": "x",
    }
    stack.api.cluster.expose("shop", "web", BODY, annotations=asked)
    stack.api.cluster.set_load_balancer("shop", "web", [{"ip": "192.0.2.7"}])
    assert stack.session().status == 0
    assert standing(stack, stack.zone_id) == {"www.example.com A": ["192.0.2.7"]}
    assert standing(stack, private) == {
        "www.example.com A": ["10.68.0.10"],
        "lb.example.com A": ["192.0.2.7"],
        "web.shop.svc.prod.example.com A": ["192.0.2.7"],
    }
    found = stack.call("explain", "prod-internal/shop/web", "--output", "json").json
    assert [(p["code"], p["subject"]) for p in found["problems"]] == [("UnknownAnnotation", PRIVATE + "hostnme")]
    rules = {record["name"]: [origin["rule"] for origin in record["origins"]] for record in found["records"]}
    assert rules["lb.example.com"] == [f"annotation {PRIVATE}hostname"]
    assert stack.call("explain", "prod/shop/web", "--output", "json").json["problems"] == []


def test_prefix_is_stored_only_where_it_is_given(stack: CliStack) -> None:
    """An older release reads a configuration without it."""
    register(stack, "prod", stack.zone_id)
    register(stack, "other", stack.zone_id, "--template", "none", "--annotation-prefix", PRIVATE)
    assert "annotation_prefix" not in documents(stack)["prod"]
    assert documents(stack)["other"]["annotation_prefix"] == PRIVATE
    assert stack.call("cluster", "show", "other", "--output", "json").json["annotation_prefix"] == PRIVATE


@pytest.mark.parametrize(
    "prefix", ["internal.example.com", "a/b/", "/", "A.example.com/", "kubesync.io/", "x" * 300 + "/"]
)
def test_prefix_that_is_none_is_refused(stack: CliStack, prefix: str) -> None:
    ran = stack.add_cluster("prod", "--annotation-prefix", prefix, "--domain-filter", "example.com")
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1
    assert "prefix" in ran.err
    assert documents(stack) == {}


def test_another_prefix_changes_what_is_published_at_once(stack: CliStack) -> None:
    """The objects have not changed since they were read: the new configuration keeps other annotations of them."""
    register(stack, "prod", stack.zone_id, "--template", "none")
    asked = {PUBLIC + "hostname": "public.example.com", PRIVATE + "hostname": "private.example.com"}
    stack.api.cluster.expose("shop", "web", BODY, annotations=asked)
    stack.api.cluster.set_load_balancer("shop", "web", [{"ip": "192.0.2.7"}])
    assert stack.session().status == 0
    assert standing(stack, stack.zone_id).keys() == {"public.example.com A"}
    register(stack, "prod", stack.zone_id, "--template", "none", "--annotation-prefix", PRIVATE, "--replace")
    assert stack.session().status == 0
    assert standing(stack, stack.zone_id).keys() == {"private.example.com A"}


def test_explain_names_the_annotation_that_keeps_a_name_from_being_published(stack: CliStack) -> None:
    register(stack, "prod", stack.zone_id)
    stack.api.cluster.expose("shop", "web", {**BODY, "type": "ClusterIP"})
    assert stack.session().status == 0
    wanted: dict[str, str | None] = {PUBLIC + "hostname": "www.example.com", PUBLIC + "record-type": "TXT"}
    stack.api.cluster.change_service("shop", "web", {"metadata": {"annotations": wanted}})
    assert stack.session().status == 0
    found = stack.call("explain", "prod/shop/web", "--output", "json").json
    assert {record["name"]: (record["state"], record["reason"]) for record in found["records"]} == {
        "web.shop.svc.prod.example.com": ("closed", None),
        "www.example.com": ("withheld", "UnsupportedAnnotation"),
    }
    (www,) = (record for record in found["records"] if record["name"] == "www.example.com")
    assert www["next"] == f"is not published as long as the Service has {PUBLIC}record-type"
    assert (www["wanted"], www["stands"]) == ({"ttl": 30, "values": ["10.68.0.10"]}, None)
    (problem,) = found["problems"]
    assert (problem["code"], problem["subject"]) == ("UnsupportedAnnotation", PUBLIC + "record-type")
    text = stack.call("explain", "prod/shop/web").out
    assert text.splitlines()[0] == "prod/shop/web  ClusterIP  in sync, withheld  2 record sets, 1 upstream, 1 problem"
    assert f"next       is not published as long as the Service has {PUBLIC}record-type" in " ".join(text.split("\n"))
    (cluster,) = stack.call("status", "--output", "json").json["clusters"]
    assert "UnsupportedAnnotation" in json.dumps(cluster)
    assert stack.store.get(Key(CONTROL, "clusters", "prod")) is not None


def test_flood_of_annotations_is_stored_and_reported_in_part(stack: CliStack) -> None:
    register(stack, "prod", stack.zone_id)
    flood = {f"{PUBLIC}x{number:05}": "y" for number in range(3_000)}
    stack.api.cluster.expose("shop", "web", {**BODY, "type": "ClusterIP"}, annotations=flood)
    assert stack.session().status == 0
    found = stack.call("explain", "prod/shop/web", "--output", "json").json
    assert [p["code"] for p in found["problems"]] == ["UnknownAnnotation"] * 10
    assert standing(stack, stack.zone_id) == {"web.shop.svc.prod.example.com A": ["10.68.0.10"]}
