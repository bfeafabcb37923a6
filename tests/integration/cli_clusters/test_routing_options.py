"""``--routing`` and ``--health-check`` of a cluster by the commands: what is stored, what is refused, and what is said of other clusters."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli_stack import TOKEN, CliStack, a_cli_stack
from kubesync.aws.dynamodb.store import CONTROL, Key
from kubesync_local.standins.apiserver import ApiServer

NONE = (
    "is none of weighted, weighted=0 to weighted=255, multivalue, failover=primary, failover=secondary, and latency=REGION with a region "
    "of AWS that Route 53 knows"
)


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.make_tables()
        yield made


def add(stack: CliStack, name: str, *options: str) -> str:
    """Register a cluster of one domain; returns what is said."""
    ran = stack.call(*_adding(stack, name, *options))
    assert ran.status == 0, ran.err
    return ran.err


def refused(stack: CliStack, name: str, *options: str) -> str:
    ran = stack.call(*_adding(stack, name, *options))
    assert ran.status == 2, ran.err
    return ran.err.strip().removeprefix("kubesync: ")


def _adding(stack: CliStack, name: str, *options: str) -> list[str]:
    return [
        "cluster", "add", name, "--server", stack.api.url, "--domain", "svc.example.com", "--token", "env:KUBESYNC_TEST_TOKEN",
        "--zone", stack.zone_id, "--template", "default", *options,
    ]  # fmt: skip


def stored(stack: CliStack, name: str) -> tuple[object, object, object]:
    """Schema version, policy and health check of a stored cluster."""
    item = stack.store.get(Key(CONTROL, "clusters", name))
    assert item is not None
    row = stack.call("cluster", "show", name, "-o", "json").json
    return item["v"], row["routing"], row["health_check"]


def test_policy_is_stored_with_a_schema_version_that_older_releases_leave_out(stack: CliStack) -> None:
    add(stack, "plain", "--domain", "plain.example.com")
    assert stored(stack, "plain") == (1, "", "")
    item = stack.store.get(Key(CONTROL, "clusters", "plain"))
    assert item is not None
    assert "routing" not in str(item["document"])
    add(stack, "west", "--routing", "weighted=90", "--health-check", "abcd")
    assert stored(stack, "west") == (3, "weighted=90", "abcd")
    ran = stack.call("cluster", "set", "west", "--unset", "routing,health-check", "--yes")
    assert ran.status == 0, ran.err
    assert stored(stack, "west") == (1, "", "")


def test_other_clusters_are_named_with_their_policies(stack: CliStack) -> None:
    assert "in the same zone" not in add(stack, "west", "--routing", "weighted=90")
    said = add(stack, "east", "--routing", "weighted=10")
    assert "note: cluster west has --routing weighted=90 in the same zone" in said
    said = add(stack, "north", "--routing", "failover=primary", "--domain", "north.example.com")
    assert "cluster west has --routing weighted=90" in said
    assert "cluster east has --routing weighted=10" in said
    assert "note: of a PRIMARY, only aliases need no health check: give --health-check" in said
    changed = stack.call("cluster", "set", "north", "--routing", "weighted=3", "--yes").err
    assert "note: cluster west has --routing weighted=90 in the same zone" in changed
    assert "PRIMARY" not in changed
    assert "note:" not in stack.call("cluster", "set", "north", "--ttl", "77", "--yes").err


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("", "", "give another --domain or --template, or give both clusters the same --routing"),
        ("", "weighted", "and it has no --routing: clusters that share names have the same policy"),
        ("weighted", "", "and it has --routing weighted: clusters that share names have the same policy"),
        ("weighted", "multivalue", "and it has --routing weighted: clusters that share names have the same policy"),
        ("failover=secondary", "failover=secondary", "and it has failover SECONDARY already"),
        ("latency=eu-west-1", "latency=eu-west-1", "and it has latency eu-west-1 already"),
    ],
)
def test_clusters_that_share_names_have_the_same_policy(stack: CliStack, first: str, second: str, why: str) -> None:
    add(stack, "west", *(("--routing", first) if first else ()))
    said = refused(stack, "east", *(("--routing", second) if second else ()))
    assert said.startswith("Services of cluster west can have the same names (a.a.svc.svc.example.com)")
    assert why in said


def test_clusters_that_share_names_have_the_same_shard(stack: CliStack) -> None:
    add(stack, "west", "--routing", "weighted")
    ran = stack.call(*_adding(stack, "east", "--routing", "weighted"), KUBESYNC_SHARD="1")
    assert ran.status == 2
    assert "and it belongs to shard 0: clusters that share names have the same shard" in ran.err


def test_clusters_that_share_names_change_their_policy_one_after_the_other(stack: CliStack) -> None:
    add(stack, "west", "--routing", "weighted=90")
    add(stack, "east", "--routing", "weighted=10")
    ran = stack.call("cluster", "set", "east", "--routing", "multivalue", "--yes")
    assert (ran.status, stored(stack, "east")[1]) == (0, "multivalue")
    assert (
        "note: names that both have stay as they are until cluster west has this policy too: then all change in one batch"
        in ran.err
    )
    assert stack.call("cluster", "set", "east", "--ttl", "77", "--yes").status == 0, (
        "another option may change meanwhile"
    )
    said = refused(stack, "north", "--routing", "multivalue")
    assert "and it has --routing weighted=90: clusters that share names have the same policy" in said
    ran = stack.call("cluster", "set", "west", "--routing", "multivalue", "--yes")
    assert (ran.status, stored(stack, "west")[1]) == (0, "multivalue")
    assert "names that both have" not in ran.err
    ran = stack.call("cluster", "set", "west", "--unset", "routing", "--yes")
    assert ran.status == 2
    assert "and it has --routing multivalue: clusters that share names have the same policy" in ran.err


def test_clusters_that_share_names_change_their_policy_with_a_file(stack: CliStack, tmp_path: Path) -> None:
    add(stack, "west", "--routing", "weighted=90")
    add(stack, "east", "--routing", "weighted=50")
    exported = stack.call("cluster", "export").out
    assert exported.count("routing: weighted=") == 2
    file = tmp_path / "clusters.yaml"
    file.write_text(exported)
    assert "nothing to change" in stack.call("cluster", "apply", "-f", str(file)).err
    file.write_text(re.sub(r"\n +routing: weighted=\d+", "", exported))
    ran = stack.call("cluster", "apply", "-f", str(file), "--yes")
    assert ran.status == 2
    assert "clusters that share names have the same policy" in ran.err or "give another --domain" in ran.err
    assert (stored(stack, "west")[1], stored(stack, "east")[1]) == ("weighted=90", "weighted=50")
    # Nor may one leave while the other still has its sets.
    left = re.sub(r"\n +routing: weighted=90", "", exported)
    file.write_text(left.replace("domain: svc.example.com", "domain: east.example.com", 1))
    ran = stack.call("cluster", "apply", "-f", str(file), "--yes")
    assert ran.status == 2, ran.out
    assert (stored(stack, "west")[1], stored(stack, "east")[1]) == ("weighted=90", "weighted=50")
    file.write_text(exported.replace("weighted=90", "multivalue").replace("weighted=50", "multivalue"))
    ran = stack.call("cluster", "apply", "-f", str(file), "--yes")
    assert ran.status == 0, ran.err
    assert (stored(stack, "west")[1], stored(stack, "east")[1]) == ("multivalue", "multivalue")


def test_two_clusters_swap_their_roles_with_a_file(stack: CliStack, tmp_path: Path) -> None:
    add(stack, "west", "--routing", "failover=primary", "--health-check", "abcd")
    add(stack, "east", "--routing", "failover=secondary", "--health-check", "abcd")
    assert stack.call("cluster", "set", "west", "--routing", "failover=secondary", "--yes").status == 2
    words = {"failover=primary": "failover=secondary", "failover=secondary": "failover=primary"}
    lines = stack.call("cluster", "export").out.split("routing: ")
    file = tmp_path / "clusters.yaml"
    swapped = [f"{words[word]}\n{rest}" for word, _, rest in (each.partition("\n") for each in lines[1:])]
    file.write_text("routing: ".join([lines[0], *swapped]))
    ran = stack.call("cluster", "apply", "-f", str(file), "--yes")
    assert ran.status == 0, ran.err
    assert (stored(stack, "west")[1], stored(stack, "east")[1]) == ("failover=secondary", "failover=primary")


@pytest.mark.parametrize(
    "text", ["random", "weighted=256", "weighted=", "weighted=x", "failover", "failover=first", "multivalue=x"]
)
def test_policy_that_is_none_is_refused(stack: CliStack, text: str) -> None:
    assert refused(stack, "west", "--routing", text) == f"--routing {text!r} {NONE}"


@pytest.mark.parametrize("text", ["multivalue=", "multivalue=true", "multivalue=TRUE"])
def test_policy_that_takes_no_value_is_refused_with_one(stack: CliStack, text: str) -> None:
    assert (
        refused(stack, "west", "--routing", text)
        == f"--routing {text!r}: multivalue takes no value: give --routing multivalue"
    )
    add(stack, "west", "--routing", "multivalue")
    ran = stack.call("cluster", "set", "west", "--routing", text, "--yes")
    assert (ran.status, stored(stack, "west")[1]) == (2, "multivalue")


def test_latency_knows_the_region_of_eks_and_asks_for_any_other(stack: CliStack) -> None:
    assert refused(stack, "west", "--routing", "latency") == (
        "--routing latency: it is not known in which region the cluster is: give it, such as latency=eu-west-1"
    )
    add(stack, "west", "--routing", "latency=eu-west-1")
    assert stored(stack, "west") == (3, "latency=eu-west-1", "")


def test_health_check_needs_a_policy(stack: CliStack) -> None:
    assert refused(stack, "west", "--health-check", "abcd").startswith("--health-check needs --routing")


def test_explain_says_why_a_set_has_its_policy_and_the_audit_who_changed_it(stack: CliStack) -> None:
    with ApiServer(tokens={TOKEN: "admin"}) as other:
        add(stack, "west", "--routing", "weighted=90", "--no-srv")
        add(stack, "east", "--routing", "weighted=10", "--no-srv", "--server", other.url)
        for api, address in ((stack.api, "10.68.0.10"), (other, "10.68.0.99")):
            body = {"ports": [{"port": 80}], "clusterIP": address, "ipFamilies": ["IPv4"]}
            weight = {"external-dns.kubernetes.io/aws-weight": "7"} if api is other else {}
            api.cluster.expose("shop", "web", body, annotations=weight)
        stack.session()
        found = stack.call("explain", "east/shop/web", "-o", "json").json
        assert found["routing"] == {
            "policy": "weighted 7",
            "identifier": "east",
            "rule": "the cluster's --routing weighted=10, annotation external-dns.kubernetes.io/aws-weight",
        }
        shown = stack.call("explain", "west/shop/web").out
        assert "weighted 90 [west]: the cluster's --routing weighted=90" in " ".join(shown.split())
        assert [record["claim"]["others"] for record in found["records"]] == [
            [{"identifier": "west", "owner": "west/shop/web"}]
        ]
        assert "shared by east/shop/web [east]" in " ".join(shown.split())
        by_name = " ".join(stack.call("explain", "web.shop.svc.svc.example.com").out.split())
        assert "exists A [east] 10.68.0.99" in by_name
        assert "exists A [west] 10.68.0.10" in by_name
        assert stack.call("cluster", "set", "west", "--routing", "weighted=0", "--yes").status == 0
        rows = [row for row in stack.call("audit", "-o", "json").json if row["what"] == "settings routing"]
        assert [(row["from"], row["to"]) for row in rows][:1] == [('"weighted=90"', '"weighted=0"')]
