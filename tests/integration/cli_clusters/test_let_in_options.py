"""What a cluster lets in, by the command: what a new cluster stores, what a registered one keeps, and what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from kubesync.aws.dynamodb.store import CONTROL, Delete, Key
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync_local.workplace.registry import ClusterRegistry

FIELDS: Final = ("reserve_domain", "max_ttl", "endpoint_cidrs", "target_net_filter")
OF_NEW: Final = {"reserve_domain": True, "max_ttl": 86400}
NETWORKS: Final = (
    "--endpoint-cidrs",
    "10.42.0.0/16, 2001:db8::/32",
    "--endpoint-cidrs",
    "10.43.0.0/16",
    "--target-net-filter",
    "203.0.113.0/24",
)
STORED_NETWORKS: Final = {
    "endpoint_cidrs": ["10.42.0.0/16", "2001:db8::/32", "10.43.0.0/16"],
    "target_net_filter": ["203.0.113.0/24"],
}


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        yield made


def stored(stack: CliStack, name: str) -> dict[str, Any]:
    """The fields in the stored document; what is not in it is missing here."""
    item = stack.store.get(Key(CONTROL, "clusters", name))
    assert item is not None
    document = json.loads(str(item["document"]))
    return {field: document[field] for field in FIELDS if field in document}


def registered_before(stack: CliStack, name: str, **fields: Any) -> None:
    """A cluster as an older release has stored it, with a filter of domains."""
    zone = ZoneReference(id=stack.zone_id, name="example.com")
    domain = f"{name}.example.com"
    usual = {"server": stack.api.url, "domain": domain, "token": "env:KUBESYNC_TEST_TOKEN", "domain_filter": (domain,)}
    ClusterRegistry(stack.store).put(ClusterConfig(**{"name": name, "zones": (zone,), **usual, **fields}))


def applied(stack: CliStack, text: str, folder: Path) -> str:
    (folder / "clusters.yaml").write_text(text)
    ran = stack.call("cluster", "apply", "-f", str(folder / "clusters.yaml"))
    assert ran.status == 0, ran.err
    return ran.err


def test_new_cluster_stores_its_rules_and_keeps_what_it_is_given(stack: CliStack) -> None:
    assert stack.add_cluster("plain").status == 0
    assert stored(stack, "plain") == OF_NEW
    assert stack.add_cluster("given", "--max-ttl", "300", *NETWORKS).status == 0
    assert stored(stack, "given") == {"reserve_domain": True, "max_ttl": 300, **STORED_NETWORKS}
    shown = stack.call("cluster", "show", "given", "-o", "json").json
    assert {name: shown[name] for name in FIELDS} == stored(stack, "given")
    # As with every list, networks that are left out go; what a cluster lets in by its age stays.
    assert stack.add_cluster("given", "--replace", "--ttl", "70").status == 0
    assert stored(stack, "given") == {"reserve_domain": True, "max_ttl": 300}
    assert stack.add_cluster("without", "--max-ttl", "2147483647").status == 0
    assert stored(stack, "without") == {"reserve_domain": True}


def test_registered_cluster_keeps_its_own_whatever_changes_it(stack: CliStack, tmp_path: Path) -> None:
    registered_before(stack, "elder")
    assert stack.add_cluster("elder", "--replace", "--ttl", "70").status == 0
    assert stored(stack, "elder") == {}
    assert stack.call("cluster", "set", "elder", "--ttl", "71", "--yes").status == 0
    assert stored(stack, "elder") == {}
    exported = stack.call("cluster", "export", "elder").out
    assert "max_ttl: 2147483647\n" in exported
    assert "reserve_domain: false\n" in exported
    assert "nothing to change" in applied(stack, exported, tmp_path)
    lacking = "".join(
        line for line in exported.splitlines(keepends=True) if "max_ttl" not in line and "reserve" not in line
    )
    assert "nothing to change" in applied(stack, lacking, tmp_path)
    assert "cluster elder changed" in applied(stack, lacking.replace("ttl: 71", "ttl: 72"), tmp_path)
    assert stored(stack, "elder") == {}
    # A person may turn the rules on, and off again.
    changed = stack.call("cluster", "set", "elder", "--reserve-domain", "--max-ttl", "600", "--yes")
    assert "max_ttl 2147483647 -> 600" in changed.err
    assert "reserve_domain false -> true" in changed.err
    assert stored(stack, "elder") == {"reserve_domain": True, "max_ttl": 600}
    assert stack.call("cluster", "set", "elder", "--ttl", "73", "--yes").status == 0
    assert stored(stack, "elder") == {"reserve_domain": True, "max_ttl": 600}
    assert stack.call("cluster", "set", "elder", "--unset", "reserve-domain,max-ttl", "--yes").status == 0
    assert stored(stack, "elder") == {}


@pytest.mark.parametrize(
    "fields", [{}, {"reserve_domain": True, "max_ttl": 600, "endpoint_cidrs": ("10.0.0.0/8",)}], ids=["elder", "new"]
)
def test_exported_cluster_is_the_same_where_it_is_not_registered(
    stack: CliStack, tmp_path: Path, fields: dict[str, Any]
) -> None:
    registered_before(stack, "moves", **fields)
    before = ClusterRegistry(stack.store).get("moves")
    exported = stack.call("cluster", "export", "moves").out
    key = Key(CONTROL, "clusters", "moves")
    stack.store.write(Delete(key))
    assert "cluster moves added" in applied(stack, exported, tmp_path)
    assert ClusterRegistry(stack.store).get("moves") == before
    stack.store.write(Delete(key))


def test_cluster_of_a_file_that_says_nothing_of_it_is_a_new_one(stack: CliStack, tmp_path: Path) -> None:
    text = (
        f"clusters:\n  - name: filed\n    server: {stack.api.url}\n    domain: filed.example.com\n    zones: [{stack.zone_id}]\n"
        "    token: env:KUBESYNC_TEST_TOKEN\n    target_net_filter: [10.0.0.0/8]\n"
    )
    applied(stack, text, tmp_path)
    assert stored(stack, "filed") == {**OF_NEW, "target_net_filter": ["10.0.0.0/8"]}


def test_cluster_without_rules_of_names_has_a_longest_ttl_and_networks_but_no_reserved_domain(stack: CliStack) -> None:
    registered_before(stack, "open", domain_filter=())
    assert (
        stack.call("cluster", "set", "open", "--max-ttl", "600", "--endpoint-cidrs", "10.0.0.0/8", "--yes").status == 0
    )
    assert stored(stack, "open") == {"max_ttl": 600, "endpoint_cidrs": ["10.0.0.0/8"]}
    ran = stack.call("cluster", "set", "open", "--reserve-domain")
    assert (ran.status, ran.err.count("\n")) == (2, 1)
    assert "--reserve-domain needs --domain-filter: cluster open accepts any name of its zones" in ran.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--endpoint-cidrs", "10.0.0.1/8"], "--endpoint-cidrs '10.0.0.1/8' is not a network: give networks such as 10.0.0.0/8,2001:db8::/32"),
        (["--endpoint-cidrs", "10.0.0.0/33"], "--endpoint-cidrs '10.0.0.0/33' is not a network"),
        (["--endpoint-cidrs", "pods"], "--endpoint-cidrs 'pods' is not a network"),
        (["--endpoint-cidrs", "::ffff:10.0.0.0/104"], "--endpoint-cidrs '::ffff:10.0.0.0/104' is not a network"),
        (["--endpoint-cidrs", " , "], "--endpoint-cidrs is empty: give networks, such as 10.0.0.0/8,2001:db8::/32"),
        (["--target-net-filter", ""], "--target-net-filter is empty: give it a value, or leave it out"),
        (["--target-net-filter", "10.0.0.0/8,x"], "--target-net-filter 'x' is not a network"),
        (["--target-net-filter", "10.0.0.0/8,10.0.0.0/8"], "--target-net-filter 10.0.0.0/8 is given twice: give it once"),
        (["--max-ttl", "0"], "'0' is not a whole number from 1"),
        (["--max-ttl", "1d"], "'1d' is not a whole number from 1"),
        (["--max-ttl", "2147483648"], "'2147483648' is not a whole number from 1 to 2147483647"),
    ],
)  # fmt: skip
def test_impossible_rule_is_refused_in_one_line(stack: CliStack, options: list[str], said: str) -> None:
    ran = stack.add_cluster("wrong", *options)
    assert (ran.status, ran.err.count("\n")) == (2, 1), ran.err
    assert said in ran.err
    assert stack.store.get(Key(CONTROL, "clusters", "wrong")) is None


def test_status_explain_and_lint_say_what_is_left_out_and_which_option_decides(tmp_path: Path) -> None:
    prefix = "external-dns.kubernetes.io/"
    asks = {
        f"{prefix}target": "169.254.169.254,10.0.0.9,203.0.113.7",
        f"{prefix}ttl": "90000",
        f"{prefix}hostname": "prod.example.com",
    }
    with a_cli_stack(in_memory=True) as stack:
        assert (
            stack.add_cluster("prod", "--target-net-filter", "203.0.113.0/24,169.254.0.0/16,10.68.0.0/16").status == 0
        )
        stack.api.cluster.expose("shop", "web", {"ports": [{"port": 80}]}, annotations=asks)
        assert stack.session().json["clean"]
        assert stack.zone_records()["web.shop.svc.prod.example.com A"] == ["203.0.113.7"]
        expected = {
            ("AddressNotAllowed", "169.254.169.254", "link-local: left out"),
            ("AddressNotAllowed", "10.0.0.9", "outside --target-net-filter: left out"),
            ("ApexNotAllowed", "prod.example.com", "the domain of the cluster's Services itself needs --allow-apex"),
            ("InvalidTtl", f"{prefix}ttl", "must be seconds or a duration such as 1m30s, 1 to 86400 seconds (--max-ttl); the default is used"),
        }  # fmt: skip
        (cluster,) = stack.call("status", "--output", "json").json["clusters"]
        assert {(each["code"], each["subject"], each["message"]) for each in cluster["problems"]} == expected
        explained = stack.call("explain", "prod/shop/web", "--output", "json").json
        assert {(each["code"], each["subject"], each["message"]) for each in explained["problems"]} == expected
        assert explained["ttl"] == {"seconds": 30, "rule": "the cluster's default"}
        manifest = {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop", "annotations": asks},
            "spec": {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ports": [{"port": 80}]},
        }  # fmt: skip
        (tmp_path / "service.json").write_text(json.dumps(manifest))
        linted = stack.call("lint", "-f", str(tmp_path / "service.json"), "--cluster", "prod", "-o", "json").json
        (row,) = linted["services"]
        assert {(each["code"], each["subject"], each["message"]) for each in row["problems"]} == expected
        assert [record["values"] for record in row["records"]] == [["203.0.113.7"]]
