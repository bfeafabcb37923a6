"""From external-dns to kubesync, where the page's way has branches: the way back, forgotten options, one name alone, two clusters."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.memory_tables import WHERE
from harness.stack import a_boto_session
from kubesync.aws.dynamodb.store import AUDIT, CONTROL, STATE, Update
from kubesync.aws.route53.client import build_route53_client
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import state_key
from kubesync.domain.objects import ObjectKey
from kubesync_local.workplace.looking import OnlyRead

ELB = "a1b2c3-123456789.eu-west-1.elb.amazonaws.com"
ELB_ZONE = "Z32O12XQLNTSW2"
FILTER = ("--domain-filter", "example.com")
SAME_AS_EXTERNAL_DNS = (*FILTER, "--template", "none", "--ttl", "300", "--load-balancer-alias")
FIRST = {"hostname": "first.example.com"}


@pytest.fixture(params=WHERE)
def stack(request: pytest.FixtureRequest) -> Iterator[CliStack]:
    """A cluster whose Services external-dns has published, and a record set that is of an Ingress."""
    with a_cli_stack(in_memory=request.param) as made:
        made.make_tables()
        balancer = {"type": "LoadBalancer"}
        service(made, "web", {"hostname": "www.example.com"}, balancer, {"hostname": ELB})
        service(made, "ip", {"hostname": "ip.example.com"}, balancer, {"ip": "203.0.113.10"})
        service(made, "cn", {"hostname": "cn.example.com", "target": "other.example.org"}, {}, None)
        service(made, "short", {"hostname": "short.example.com", "ttl": "60"}, balancer, {"ip": "203.0.113.11"})
        weighted = {"hostname": "shared.example.com", "set-identifier": "prod", "aws-weight": "90"}
        service(made, "shared", weighted, balancer, {"ip": "203.0.113.12"})
        service(made, "first", FIRST, {}, None)
        by_external_dns(made)
        yield made


def service(
    stack: CliStack, name: str, asks: dict[str, str], spec: dict[str, Any], ingress: dict[str, str] | None
) -> None:
    cluster = stack.api.cluster
    cluster.expose("shop", name, {"ports": [{"port": 80}], **spec})
    annotations = {f"external-dns.alpha.kubernetes.io/{key}": value for key, value in asks.items()}
    cluster.change_service("shop", name, {"metadata": {"annotations": annotations}})
    if ingress is not None:
        cluster.set_load_balancer("shop", name, [ingress])


def a_set(name: str, kind: str, value: str, ttl: int = 300, **more: Any) -> dict[str, Any]:
    return {"Name": name, "Type": kind, "TTL": ttl, "ResourceRecords": [{"Value": value}], **more}


def registered(name: str, resource: str, **more: Any) -> dict[str, Any]:
    return a_set(
        name,
        "TXT",
        f'"heritage=external-dns,external-dns/owner=default,external-dns/resource={resource}"',
        **more,
    )


def an_alias(kind: str) -> dict[str, Any]:
    target = {"HostedZoneId": ELB_ZONE, "DNSName": ELB, "EvaluateTargetHealth": True}
    return {"Name": "www.example.com", "Type": kind, "AliasTarget": target}


def by_external_dns(stack: CliStack) -> None:
    prod: dict[str, Any] = {"SetIdentifier": "prod", "Weight": 90}
    sets = [
        an_alias("A"), an_alias("AAAA"),
        registered("www.example.com", "service/shop/web"), registered("cname-www.example.com", "service/shop/web"),
        registered("aaaa-www.example.com", "service/shop/web"),
        a_set("ip.example.com", "A", "203.0.113.10"), registered("a-ip.example.com", "service/shop/ip"),
        a_set("cn.example.com", "CNAME", "other.example.org"), registered("cname-cn.example.com", "service/shop/cn"),
        a_set("short.example.com", "A", "203.0.113.11", 60), registered("a-short.example.com", "service/shop/short"),
        a_set("shared.example.com", "A", "203.0.113.12", **prod),
        registered("a-shared.example.com", "service/shop/shared", **prod),
        a_set("shared.example.com", "A", "198.51.100.1", SetIdentifier="elsewhere", Weight=10),
        a_set("front.example.com", "A", "203.0.113.20"), registered("a-front.example.com", "ingress/shop/front"),
    ]  # fmt: skip
    change(stack, [{"Action": "CREATE", "ResourceRecordSet": each} for each in sets])


def change(stack: CliStack, changes: list[dict[str, Any]]) -> None:
    client: Any = build_route53_client(a_boto_session(), stack.route53.url)
    client.change_resource_record_sets(HostedZoneId=stack.zone_id, ChangeBatch={"Changes": changes})


def zone(stack: CliStack) -> list[dict[str, Any]]:
    """As the AWS CLI lists it, without kubesync's first name and what it publishes below its own domain."""
    client: Any = build_route53_client(a_boto_session(), stack.route53.url)
    sets: list[dict[str, Any]] = client.list_resource_record_sets(HostedZoneId=stack.zone_id, MaxItems="300")[
        "ResourceRecordSets"
    ]
    ours = ("first.example.com.", "prod.example.com.", "_kubesync-test-0.example.com.")
    return [each for each in sets if not each["Name"].endswith(ours)]


def recovered(stack: CliStack, *options: str) -> dict[str, list[tuple[str, str]]]:
    ran = stack.call("recover", "--output", "json", *options)
    assert ran.status == 0, ran.err
    (cluster,) = ran.json["clusters"]
    kinds = ("claimed", "unproven", "differing", "unwanted")
    return {kind: sorted((row["name"], row["type"]) for row in cluster[kind]) for kind in kinds}


ALL_MOVED = [
    ("cn.example.com", "CNAME"),
    ("ip.example.com", "A"),
    ("shared.example.com", "A"),
    ("short.example.com", "A"),
    ("www.example.com", "A"),
    ("www.example.com", "AAAA"),
]


def problems(stack: CliStack) -> list[dict[str, str]]:
    (cluster,) = stack.call("status", "--output", "json").json["clusters"]
    found: list[dict[str, str]] = [*cluster["open"], *cluster["problems"]]
    return found


def taken_over(stack: CliStack) -> None:
    """Steps 1 to 3."""
    assert stack.add_cluster("prod", *SAME_AS_EXTERNAL_DNS, "--policy", "create-only").status == 0
    assert stack.session().json["clean"]
    assert {each["code"] for each in problems(stack)} == {"Conflict"}
    assert recovered(stack) == {"claimed": ALL_MOVED, "unproven": [], "differing": [], "unwanted": []}
    assert recovered(stack, "--apply")["claimed"] == ALL_MOVED
    assert problems(stack) == []


def test_names_move_without_being_away(stack: CliStack, tmp_path: Path) -> None:
    before = zone(stack)
    taken_over(stack)
    assert zone(stack) == before
    # 4
    assert stack.add_cluster("prod", *SAME_AS_EXTERNAL_DNS, "--policy", "upsert-only", "--replace").status == 0
    (dry,) = stack.call("resync", "--dry-run").json["clusters"]
    assert (dry["changes"], dry["drift"], dry["conflicts"]) == ([], [], [])
    assert stack.session().json["clean"]
    assert (zone(stack), problems(stack)) == (before, [])
    # 5
    assert stack.call("recover", "--registry-changes", str(tmp_path)).status == 0
    (file,) = tmp_path.iterdir()
    changes = json.loads(file.read_text())["Changes"]
    assert len(changes) == 7
    change(stack, changes)
    left = [each["Name"] for each in zone(stack) if each["Type"] == "TXT"]
    assert left == ["a-front.example.com."], "what is left to external-dns stays its own"
    # From now on they follow their Services.
    assert stack.add_cluster("prod", *SAME_AS_EXTERNAL_DNS, "--replace").status == 0
    stack.api.cluster.set_load_balancer("shop", "ip", [{"ip": "203.0.113.99"}])
    stack.api.cluster.delete_service("shop", "short")
    assert stack.session().json["clean"]
    records = stack.zone_records()
    assert records["ip.example.com A"] == ["203.0.113.99"]
    assert "short.example.com A" not in records
    assert records["front.example.com A"] == ["203.0.113.20"]
    identifiers = {each.get("SetIdentifier") for each in zone(stack) if each["Name"] == "shared.example.com."}
    assert identifiers == {"prod", "elsewhere"}


def test_way_back_leaves_external_dns_everything(stack: CliStack) -> None:
    before = zone(stack)
    taken_over(stack)
    assert stack.call("cluster", "remove", "prod", "--retain").status == 0
    assert stack.session().json["clean"]
    assert stack.call("cluster", "list", "--output", "json").json == []
    assert zone(stack) == before


def test_what_stands_in_another_form_is_told_and_left_until_it_is_the_same(stack: CliStack) -> None:
    before = zone(stack)
    assert stack.add_cluster("prod", *FILTER, "--policy", "create-only").status == 0  # the options of step 1 forgotten
    assert stack.session().json["clean"]
    found = recovered(stack)
    assert found["claimed"] == [("short.example.com", "A")]
    # kubesync would publish a CNAME for the load balancer, where an alias stands.
    assert {("www.example.com", "A"), ("www.example.com", "AAAA"), ("ip.example.com", "A")} <= set(found["differing"])
    (row,) = [line for line in stack.call("recover", COLUMNS="").out.splitlines() if re.match(r"www\S+ +AAAA", line)]
    assert f" alias {ELB} " in row
    assert f" CNAME {ELB}. ttl 30 " in row
    assert stack.add_cluster("prod", *SAME_AS_EXTERNAL_DNS, "--policy", "create-only", "--replace").status == 0
    assert recovered(stack, "--apply")["claimed"] == ALL_MOVED
    assert zone(stack) == before


def test_zone_without_a_name_of_ours_wants_one_first(stack: CliStack) -> None:
    stack.api.cluster.delete_service("shop", "first")
    before = zone(stack)
    assert stack.add_cluster("prod", *SAME_AS_EXTERNAL_DNS, "--policy", "create-only").status == 0
    assert stack.session().json["clean"]
    assert recovered(stack, "--apply") == {"claimed": [], "unproven": ALL_MOVED, "differing": [], "unwanted": []}
    service(stack, "first", FIRST, {}, None)
    first = f"{FIRST['hostname']} A"
    assert stack.session(lambda: first in stack.zone_records() and stack.settled()).json["clean"]
    assert recovered(stack, "--apply")["claimed"] == ALL_MOVED
    assert zone(stack) == before


def test_of_two_clusters_one_gets_a_name_that_both_want(stack: CliStack) -> None:
    """I3, across clusters."""
    for name in ("prod", "dr"):
        assert stack.add_cluster(name, *SAME_AS_EXTERNAL_DNS, "--policy", "create-only").status == 0
    assert stack.session().json["clean"]
    ran = stack.call("recover", "--apply", "--output", "json")
    taken = [(row["name"], row["type"]) for cluster in ran.json["clusters"] for row in cluster["claimed"]]
    assert sorted(taken) == ALL_MOVED


def test_cluster_that_was_not_listed_is_named(stack: CliStack) -> None:
    for name in ("prod", "dr"):
        assert stack.add_cluster(name, *SAME_AS_EXTERNAL_DNS, "--policy", "create-only").status == 0
    assert stack.session().json["clean"]
    ran = stack.call("recover", "--cluster", "prod")
    assert (
        f"zone example.com ({stack.zone_id}): also a zone of dr, not listed in this run: what they want is as last seen"
        in ran.lines
    )
    assert not [line for line in stack.call("recover").lines if line.startswith("zone ")]


@pytest.mark.parametrize(
    ("stands", "kind"), [(("192.0.2.1", "192.0.2.2"), "differing"), (("192.0.2.1",), "claimed")], ids=["merged", "one"]
)
def test_i3_targets_that_external_dns_has_merged_are_shown_before_anything_is_taken_over(
    stack: CliStack, stands: tuple[str, ...], kind: str
) -> None:
    """Since 0.21 it publishes the targets of all Ingresses with one host; kubesync those of the oldest."""
    for name, address in (("old", "192.0.2.1"), ("young", "192.0.2.2")):
        stack.api.cluster.expose_ingress("shop", name, {"rules": [{"host": "both.example.com"}]})
        stack.api.cluster.set_ingress("shop", name, [{"ip": address}])
    merged = a_set("both.example.com", "A", "192.0.2.1")
    merged["ResourceRecords"] = [{"Value": value} for value in stands]
    sets = [merged, registered("a-both.example.com", "ingress/shop/old")]
    change(stack, [{"Action": "CREATE", "ResourceRecordSet": each} for each in sets])
    before = zone(stack)
    options = (*SAME_AS_EXTERNAL_DNS, "--policy", "create-only", "--sources", "service,ingress")
    assert stack.add_cluster("prod", *options).status == 0
    stack.session()
    wants = {found: ("both.example.com", "A") in names for found, names in recovered(stack).items()}
    assert wants == {each: each == kind for each in wants}
    if kind == "differing":
        ran = stack.call("recover")
        assert "both.example.com" in ran.out
    wants = {found: ("both.example.com", "A") in names for found, names in recovered(stack, "--apply").items()}
    assert wants == {each: each == kind for each in wants}
    assert stack.session().json["clean"]
    assert zone(stack) == before


def test_files_for_the_registry_are_written_only_where_nothing_is_and_nothing_changes(
    stack: CliStack, tmp_path: Path
) -> None:
    taken_over(stack)
    with_apply = stack.call("recover", "--apply", "--registry-changes", str(tmp_path))
    assert (with_apply.status, with_apply.lines) == (
        2,
        ["kubesync: --registry-changes shows what is held already: run it after --apply, in a command of its own"],
    )
    batches = len(stack.route53.batches())
    assert stack.call("recover", "--registry-changes", str(tmp_path)).status == 0
    again = stack.call("recover", "--registry-changes", str(tmp_path))
    assert (again.status, again.lines) == (
        2,
        [f"kubesync: --registry-changes: {tmp_path} must be a folder that is empty or does not exist"],
    )
    assert len(stack.route53.batches()) == batches


def test_one_name_moves_alone(stack: CliStack) -> None:
    assert stack.add_cluster("prod", *SAME_AS_EXTERNAL_DNS, "--policy", "create-only").status == 0
    assert stack.session().json["clean"]
    assert recovered(stack, "--name", "IP.example.com.", "--apply")["claimed"] == [("ip.example.com", "A")]
    assert {each["service"] for each in problems(stack)} == {
        "prod/shop/web", "prod/shop/cn", "prod/shop/short", "prod/shop/shared",
    }  # fmt: skip
    rest = [each for each in ALL_MOVED if each[0] != "ip.example.com"]
    assert recovered(stack)["claimed"] == rest


def test_look_works_beside_a_running_session_and_writes_nothing(stack: CliStack) -> None:
    assert stack.add_cluster("prod", *SAME_AS_EXTERNAL_DNS, "--policy", "create-only").status == 0
    assert stack.session().json["clean"]
    lease = LeaseTable(stack.store, "0")
    lease.take(lease.read(), "another", lease.draw_epoch(), 4_000_000_000_000)
    before = [stack.zone_records(), *(sorted(stack.store.scan(table), key=repr) for table in (CONTROL, STATE, AUDIT))]

    ran = stack.call("recover", "--output", "json")

    assert ran.status == 0, ran.err
    (cluster,) = ran.json["clusters"]
    assert sorted((row["name"], row["type"]) for row in cluster["claimed"]) == ALL_MOVED
    assert ran.json["under_way"] == []
    after = [stack.zone_records(), *(sorted(stack.store.scan(table), key=repr) for table in (CONTROL, STATE, AUDIT))]
    assert after == before


def test_key_that_a_session_is_writing_is_left_out_of_a_look_and_named(
    stack: CliStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stack.add_cluster("prod", *SAME_AS_EXTERNAL_DNS, "--policy", "create-only").status == 0
    assert stack.session().json["clean"]
    key = state_key(ObjectKey("prod", "shop", "short"))
    walk = OnlyRead.walk

    def walk_while_another_session_writes(zones: OnlyRead, zone_id: str) -> Any:
        stack.store.write(Update(key, add={"version": 1}))
        return walk(zones, zone_id)

    monkeypatch.setattr(OnlyRead, "walk", walk_while_another_session_writes)
    ran = stack.call("recover", "--output", "json")

    (cluster,) = ran.json["clusters"]
    assert ran.json["under_way"] == ["prod/shop/short"]
    assert sorted((row["name"], row["type"]) for row in cluster["claimed"]) == [
        each for each in ALL_MOVED if each[0] != "short.example.com"
    ]
    assert "left out, because a session is writing them: prod/shop/short; run it again" in ran.lines
