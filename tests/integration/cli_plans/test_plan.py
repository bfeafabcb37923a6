"""``kubesync plan``: what a resync would change, as a person reads it, while the cluster, the tables and the zone differ."""

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.terminal import on_a_terminal, shown_on
from kubesync.aws.dynamodb.store import STATE

FOREIGN: Final = (
    "blocked.shop.svc.prod.example.com CNAME already exists (x.example.net.) and was not created by kubesync: delete it, choose "
    "another name, or make both equal and adopt it (`kubesync recover`)"
)
PLAN: Final = [
    "example.com ({zone})",
    "  + added.shop.svc.prod.example.com A 10.68.0.21 ttl 30  (prod/shop/added appeared)",
    "  ~ api.shop.svc.prod.example.com A 10.68.0.11 ttl 30 -> 10.68.0.11 ttl 600  (prod/shop/api changed)",
    f"  ! blocked.shop.svc.prod.example.com A 10.68.0.22 ttl 30  ({FOREIGN})",
    "  - gone.shop.svc.prod.example.com A 10.68.0.12 ttl 30  (prod/shop/gone is gone)",
    "  ~ hand.shop.svc.prod.example.com A 192.0.2.9 ttl 60 -> 10.68.0.13 ttl 30  (prod/shop/hand: changed by hand)",
    ("  ~ pods.shop.svc.prod.example.com A 10.42.0.2, 10.42.0.3 ttl 30 -> 10.42.0.2, 10.42.0.3, 10.42.0.4 ttl 30"
     "  (endpoints of prod/shop/pods changed)"),
    "  + removed.shop.svc.prod.example.com A 10.68.0.14 ttl 30  (prod/shop/removed: deleted by hand)",
    "",
    "upstreams",
    "  + prod/shop/added/80/TCP version 1, 0 nodes  (prod/shop/added appeared)",
    "  + prod/shop/blocked/80/TCP version 1, 0 nodes  (prod/shop/blocked appeared)",
    "  - prod/shop/gone/80/TCP version 1  (prod/shop/gone is gone)",
    "  ~ prod/shop/pods/80/TCP version 1 -> version 2, 3 nodes  (endpoints of prod/shop/pods changed)",
    "",
    ("3 record sets have private addresses in the public zone example.com ({zone}), such as added.shop.svc.prod.example.com 10.68.0.21: "
     "nobody outside can reach them"),
    "4 to add, 4 to change, 2 to delete, 0 held back, 1 conflict",
]  # fmt: skip
PORTS: Final = {"ports": [{"port": 80}]}


def change_by_hand(stack: CliStack, action: str, name: str, type_: str, ttl: int, value: str) -> None:
    route53: Any = stack.boto().client("route53", endpoint_url=stack.route53.url)
    record_set = {
        "Name": f"{name}.shop.svc.prod.example.com.",
        "Type": type_,
        "TTL": ttl,
        "ResourceRecords": [{"Value": value}],
    }
    batch = {"Changes": [{"Action": action, "ResourceRecordSet": record_set}]}
    route53.change_resource_record_sets(HostedZoneId=stack.zone_id, ChangeBatch=batch)


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """Services that were published; then they, the zone and the tables changed without a session."""
    with a_cli_stack(in_memory=True) as made:
        cluster = made.api.cluster
        for name, address in (("api", 11), ("gone", 12), ("hand", 13), ("removed", 14)):
            cluster.expose("shop", name, {**PORTS, "clusterIP": f"10.68.0.{address}"})
        cluster.deploy("shop", "pods", 2)
        cluster.expose("shop", "pods", {**PORTS, "clusterIP": "None", "selector": {"app": "pods"}})
        assert made.add_cluster().status == 0
        quiet = made.call("plan", "--exit-code")
        assert (quiet.status, quiet.out.splitlines()[-1]) == (3, "13 to add, 0 to change, 0 to delete, 0 held back"), (
            quiet.out
        )
        assert made.session().json["clean"]
        quiet = made.call("plan", "--exit-code")
        assert (quiet.status, quiet.out) == (0, "nothing to do\n")
        cluster.change_service("shop", "api", {"metadata": {"annotations": {"external-dns.kubernetes.io/ttl": "600"}}})
        cluster.delete_service("shop", "gone")
        cluster.scale("shop", "pods", 3)
        cluster.expose("shop", "added", {**PORTS, "clusterIP": "10.68.0.21"})
        cluster.expose("shop", "blocked", {**PORTS, "clusterIP": "10.68.0.22"})
        change_by_hand(made, "UPSERT", "hand", "A", 60, "192.0.2.9")
        change_by_hand(made, "DELETE", "removed", "A", 30, "10.68.0.14")
        change_by_hand(made, "CREATE", "blocked", "CNAME", 30, "x.example.net.")
        yield made


def test_plan_says_each_change_with_its_reason_and_changes_nothing(stack: CliStack) -> None:
    before = stack.zone_records(), list(stack.store.scan(STATE))

    ran = stack.call("plan", COLUMNS="")

    assert ran.status == 0
    assert ran.out.splitlines() == [line.replace("{zone}", stack.zone_id) for line in PLAN]
    assert (stack.zone_records(), list(stack.store.scan(STATE))) == before


def test_dry_run_of_a_resync_is_the_same_table(stack: CliStack) -> None:
    assert stack.call("resync", "--dry-run", "--output", "table").out == stack.call("plan").out


def test_exit_code_says_whether_something_is_to_be_done(stack: CliStack) -> None:
    assert stack.call("plan", "--exit-code").status == 3
    assert stack.call("plan").status == 0
    assert stack.call("plan", "--cluster", "nobody", "--exit-code").status == 2


def test_json_is_that_of_the_dry_run_with_the_fields_that_it_always_had(stack: CliStack) -> None:
    ran, dry = stack.call("plan", "--output", "json"), stack.call("resync", "--dry-run")

    assert ran.status == 0
    assert {**ran.json, "by": ""} == {**dry.json, "by": ""}
    (cluster,) = ran.json["clusters"]
    known = ["cluster", "changes", "held", "drift", "held_deletions", "conflicts", "counts", "held_counts"]
    assert [name for name in known if name not in cluster] == []
    assert cluster["counts"] == {"changes": 9, "drift": 2, "conflicts": 1, "held_deletions": 0}
    assert cluster["plan"] == {
        "records": {"add": 2, "change": 3, "delete": 1}, "upstreams": {"add": 2, "change": 1, "delete": 1},
    }  # fmt: skip
    gone = next(row for row in cluster["changes"] if row["what"].startswith("intended gone."))
    assert gone == {
        "what": f"intended gone.shop.svc.prod.example.com A in {stack.zone_id}",
        "from": {"ttl": 30, "values": ["10.68.0.12"]},
        "to": None,
        "why": "disappeared",
    }


def test_terminal_has_colours_and_no_color_has_none(stack: CliStack) -> None:
    _, coloured = on_a_terminal("plan", environment=stack.environment)
    _, plain = on_a_terminal("plan", environment={**stack.environment, "NO_COLOR": "1"})

    assert {"32", "1;35", "1;31", "1;32"} <= set(re.findall(r"\x1b\[([0-9;]+)m", coloured.decode())) | {"32"}
    assert not set(re.findall(r"\x1b\[([0-9;]+)m", plain.decode())) & {"1;35", "1;31", "1;32", "31", "32", "35"}
    shown = [shown_on(text.decode()).split("\n")[-3:] for text in (coloured, plain)]
    assert shown[0] == shown[1] == [*(line.replace("{zone}", stack.zone_id) for line in PLAN[-2:]), ""]
    # Yellow and white, and the bright ones, cannot be read on every background.
    assert not re.search(r"\x1b\[(?:[0-9;]*;)?(?:33|37|9[0-7])m", coloured.decode())


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_plan_fits_the_screen(stack: CliStack, columns: int) -> None:
    out = stack.call("plan", COLUMNS=str(columns)).out

    assert max(map(len, out.splitlines())) <= columns
    assert out.splitlines()[-1] == PLAN[-1]


def test_cluster_that_cannot_be_compared_is_said_loudly(stack: CliStack) -> None:
    stack.environment["WRONG"] = "of somebody else"
    added = stack.call(
        "cluster", "add", "away", "--template", "default", "--server", stack.api.url, "--domain", "away.example.com", "--zone", stack.zone_id,
        "--token", "env:WRONG",
    )  # fmt: skip
    assert added.status == 0
    ran = stack.call("plan", "--exit-code", COLUMNS="")
    removed = stack.call("cluster", "remove", "away", "--retain")
    assert removed.status == 0
    stack.session(
        lambda: "away" not in {each["name"] for each in stack.call("cluster", "list", "--output", "json").json}
    )

    assert ran.status == 1
    failed, said, numbers = ran.out.splitlines()[-3:]
    assert failed.startswith("away: FAILED: cluster away could not be listed: ERR_REQUEST_DENIED")
    assert said == "1 comparison failed: the numbers do not hold what was not compared"
    assert numbers == PLAN[-1]
    assert any(line.startswith("away: FAILED: ") for line in ran.lines)


REMOVAL: Final = [
    "example.com ({zone})",
    "  - kubernetes.default.svc.second.example.com A 10.68.0.1 ttl 30  (second/default/kubernetes)",
    (
        "  - _https._tcp.kubernetes.default.svc.second.example.com SRV 0 100 443 kubernetes.default.svc.second.example.com. ttl 30"
        "  (second/default/kubernetes)"
    ),
    "",
    "upstreams",
    "  - second/default/kubernetes/443/TCP  (second/default/kubernetes)",
    "",
    "second is being removed: the next session deletes what is left of it",
    "0 to add, 0 to change, 3 to delete, 0 held back",
]


def test_plan_holds_what_a_removal_will_delete() -> None:
    with a_cli_stack(in_memory=True) as stack:
        assert stack.add_cluster("second").status == 0
        assert stack.session().json["clean"]
        assert stack.call("cluster", "remove", "second").status == 0
        removal = stack.call("plan", "--exit-code", COLUMNS="")
        assert sorted(removal.out.splitlines()) == sorted(line.format(zone=stack.zone_id) for line in REMOVAL)
        assert (removal.status, removal.out.splitlines()[-1]) == (3, REMOVAL[-1])


def test_plan_says_what_a_removal_will_leave() -> None:
    with a_cli_stack(in_memory=True) as stack:
        assert stack.add_cluster("second").status == 0
        assert stack.session().json["clean"]
        assert stack.call("cluster", "remove", "second", "--retain").status == 0
        kept = stack.call("plan", "--exit-code", COLUMNS="")
        assert kept.out.splitlines() == ["second is being removed: 2 record sets and 1 upstream stay", "nothing to do"]
        assert kept.status == 0
