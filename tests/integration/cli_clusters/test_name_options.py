"""Rules of names, by the command: what is registered, replaced, listed, checked and refused."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.cli_stack import CliStack, Ran, a_cli_stack
from kubesync.aws.dynamodb.store import CONTROL, Key
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync_local.workplace.registry import ClusterRegistry

FIELDS = (
    "domain_filter",
    "exclude_domains",
    "namespace_domains",
    "allow_wildcards",
    "allow_apex",
    "allow_underscores",
    "max_names_per_service",
    "max_names_per_namespace",
    "max_waits_per_namespace",
    "max_record_sets_per_namespace",
)


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        yield made


def stored(stack: CliStack, name: str) -> dict[str, Any]:
    """The rules in the stored document; what is not in it is missing here."""
    item = stack.store.get(Key(CONTROL, "clusters", name))
    assert item is not None
    document = json.loads(str(item["document"]))
    return {field: document[field] for field in FIELDS if field in document}


def registered_before(stack: CliStack, name: str) -> None:
    """A cluster as an older release has stored it."""
    zone = ZoneReference(id=stack.zone_id, name="example.com")
    fields = {"server": stack.api.url, "domain": f"{name}.example.com", "token": "env:KUBESYNC_TEST_TOKEN"}
    ClusterRegistry(stack.store).put(ClusterConfig(name=name, zones=(zone,), **fields))


def refused(ran: Ran, said: str) -> None:
    assert (ran.status, ran.err.count("\n")) == (2, 1), ran.err
    assert said in ran.err


def test_new_cluster_has_its_domain_as_filter_and_nothing_else(stack: CliStack) -> None:
    assert stack.add_cluster("plain").status == 0
    assert stored(stack, "plain") == {"domain_filter": ["plain.example.com"]}


def test_rules_are_stored_as_given_and_go_back_to_their_defaults_when_left_out(stack: CliStack) -> None:
    ran = stack.add_cluster(
        "ruled",
        "--domain-filter", "Apps.example.com., ruled.example.com", "--domain-filter", "more.example.com",
        "--exclude-domains", "admin.apps.example.com",
        "--namespace-domains", "shop=shop.example.com,s.example.com", "--namespace-domains", "bill=shop.example.com",
        "--allow-wildcards", "--allow-apex", "--allow-underscores",
        "--max-names-per-service", "5", "--max-names-per-namespace", "0",
        "--max-waits-per-namespace", "7", "--max-record-sets-per-namespace", "8",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert stored(stack, "ruled") == {
        "domain_filter": ["apps.example.com", "ruled.example.com", "more.example.com"],
        "exclude_domains": ["admin.apps.example.com"],
        "namespace_domains": ["shop=shop.example.com", "shop=s.example.com", "bill=shop.example.com"],
        "allow_wildcards": True,
        "allow_apex": True,
        "allow_underscores": True,
        "max_names_per_service": 5,
        "max_names_per_namespace": 0,
        "max_waits_per_namespace": 7,
        "max_record_sets_per_namespace": 8,
    }
    shown = stack.call("cluster", "show", "ruled").out
    assert "shop=shop.example.com, shop=s.example.com, bill=shop.example.com" in shown
    changed = stack.add_cluster("ruled", "--replace", "--allow-apex")
    assert changed.status == 0, changed.err
    assert stored(stack, "ruled") == {"domain_filter": ["ruled.example.com"], "allow_apex": True}
    assert 'exclude_domains ["admin.apps.example.com"] -> []' in changed.err


def test_cluster_of_an_older_release_keeps_any_name_until_a_filter_is_given(stack: CliStack) -> None:
    registered_before(stack, "elder")
    assert stored(stack, "elder") == {}
    kept = stack.add_cluster("elder", "--replace", "--ttl", "77")
    assert kept.status == 0, kept.err
    assert stored(stack, "elder") == {}
    assert "changed: ttl 30 -> 77\n" in kept.err
    assert "note: it accepts any name of its zones; --domain-filter elder.example.com ends that" in kept.err
    for option in (("--allow-apex",), ("--max-names-per-service", "9"), ("--exclude-domains", "x.example.com")):
        ran = stack.add_cluster("elder", "--replace", *option)
        refused(ran, f"{option[0]} needs --domain-filter: cluster elder accepts any name of its zones")
    assert stored(stack, "elder") == {}
    assert stack.add_cluster("elder", "--replace", "--domain-filter", "example.com", "--allow-apex").status == 0
    assert stored(stack, "elder") == {"domain_filter": ["example.com"], "allow_apex": True}
    assert stack.add_cluster("elder", "--replace").status == 0
    assert stored(stack, "elder") == {"domain_filter": ["elder.example.com"]}


def test_list_and_check_say_which_clusters_accept_any_name(stack: CliStack) -> None:
    registered_before(stack, "open")
    assert stack.add_cluster("closed", "--namespace-domains", "shop=shop.example.com").status == 0
    listed = stack.call("cluster", "list")
    (row,) = [line for line in listed.out.splitlines() if line.startswith("open ")]
    assert "any name of its zones" in row
    (row,) = [line for line in listed.out.splitlines() if line.startswith("closed ")]
    assert "closed.example.com; 1 more for single namespaces" in row
    how = "`kubesync cluster set open --domain-filter open.example.com` ends that"
    assert f"note: cluster open accepts any name of its zones; {how}" in listed.err
    assert "cluster closed accepts" not in listed.err
    checked = {name: stack.call("cluster", "check", name).out.splitlines()[-1] for name in ("open", "closed")}
    assert checked["open"].split(None, 4)[4] == f"Services may ask for: any name of its zones; {how}"
    assert checked["closed"].endswith("Services may ask for: closed.example.com; 1 more for single namespaces")


def test_list_and_check_show_each_rule_that_is_not_the_default(stack: CliStack) -> None:
    ran = stack.add_cluster(
        "strict", "--exclude-domains", "a.strict.example.com,b.strict.example.com", "--namespace-domains", "shop=shop.example.com",
        "--allow-wildcards", "--allow-underscores", "--max-names-per-service", "5", "--max-names-per-namespace", "0",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    said = (
        "strict.example.com; 1 more for single namespaces; not a.strict.example.com, b.strict.example.com; "
        "with wildcards, underscores; at most 5 for a service; at most 0 for a namespace"
    )
    listed = stack.call("cluster", "list").out.split()  # a long cell is folded
    assert [word for word in said.split() if word not in listed] == []
    assert stack.call("cluster", "check", "strict").out.splitlines()[-1].endswith(f"Services may ask for: {said}")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--domain-filter", "example.org"], "--domain-filter example.org: no zone of the cluster holds such names (example.com)"),
        (["--domain-filter", "notexample.com"], "--domain-filter notexample.com: no zone of the cluster holds such names"),
        (["--exclude-domains", "x.example.org"], "--exclude-domains x.example.org: no zone of the cluster holds such names"),
        (["--namespace-domains", "shop=x.org"], "--namespace-domains x.org: no zone of the cluster holds such names"),
        (["--domain-filter", "a..example.com"], "--domain-filter 'a..example.com' is not a domain"),
        (["--domain-filter", "*.example.com"], "--domain-filter '*.example.com' is not a domain"),
        (["--domain-filter", " , "], "--domain-filter is empty: give domains, such as example.com,example.org"),
        (["--domain-filter", "example.com,Example.com."], "--domain-filter example.com is given twice: give it once"),
        (["--exclude-domains", "-"], "--exclude-domains '-' is not a domain"),
        (["--namespace-domains", "shop.example.com"], "--namespace-domains 'shop.example.com': give NAMESPACE=DOMAIN[,...]"),
        (["--namespace-domains", "Shop=x.example.com"], "--namespace-domains 'Shop' is not a namespace"),
        (["--namespace-domains", "=x.example.com"], "--namespace-domains '' is not a namespace"),
        (["--namespace-domains", "shop="], "--namespace-domains shop= is empty: give domains"),
        (["--max-names-per-service", "-1"], "'-1' is not a whole number from 0"),
        (["--max-names-per-namespace", "many"], "'many' is not a whole number from 0"),
    ],
)  # fmt: skip
def test_impossible_rules_are_refused_in_one_line(stack: CliStack, options: list[str], said: str) -> None:
    refused(stack.add_cluster("wrong", *options), said)
    assert stack.store.get(Key(CONTROL, "clusters", "wrong")) is None


def test_filter_may_lie_above_or_below_a_zone(stack: CliStack) -> None:
    assert stack.add_cluster("wide", "--domain-filter", "com,deep.down.example.com").status == 0


def test_status_and_explain_show_each_refused_name_with_the_option_that_would_allow_it() -> None:
    hostname = "www.example.org,*.prod.example.com,a.prod.example.com,b.prod.example.com"
    with a_cli_stack(in_memory=True) as stack:
        assert stack.add_cluster("prod", "--max-names-per-namespace", "1").status == 0
        stack.api.cluster.expose(
            "shop", "web", {"ports": [{"port": 80}]}, annotations={"external-dns.kubernetes.io/hostname": hostname}
        )
        assert stack.session().json["clean"]
        assert {"a.prod.example.com A", "b.prod.example.com A"} & stack.zone_records().keys() == {
            "a.prod.example.com A"
        }
        (cluster,) = stack.call("status", "--output", "json").json["clusters"]
        expected = {
            "OutsideDomains": ("www.example.org", "--domain-filter"),
            "WildcardNotAllowed": ("*.prod.example.com", "--allow-wildcards"),
            "TooManyNames": ("b.prod.example.com", "--max-names-per-namespace"),
        }
        assert {each["code"]: each["subject"] for each in cluster["problems"]} == {c: e[0] for c, e in expected.items()}
        explained = stack.call("explain", "prod/shop/web", "--output", "json").json
        for problem in explained["problems"]:
            assert expected[problem["code"]][0] == problem["subject"]
            assert expected[problem["code"]][1] in problem["message"]
            assert expected[problem["code"]][1] in problem["advice"]
        assert {each["name"] for each in explained["records"]} == {
            "web.shop.svc.prod.example.com",
            "a.prod.example.com",
        }
        assert explained["state"] == "closed"
