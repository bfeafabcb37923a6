"""What commands say of names with routing policies: which policy each set has, who has the name, who waits, and for whom."""

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from harness.cli_stack import TOKEN, CliStack, a_cli_stack
from harness.page_visitor import a_visited_page
from kubesync.aws.tables.state import StateTable
from kubesync.domain.objects import ObjectKey
from kubesync_local.standins.apiserver import ApiServer

PREFIX: Final = "external-dns.kubernetes.io/"
WWW: Final = "www.example.com"
WEB: Final = "web.shop.svc.k8s.example.com"


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.make_tables()
        yield made


def expose(api: ApiServer, name: str, address: str, **asks: str) -> None:
    body = {"ports": [{"port": 80}], "clusterIP": address, "ipFamilies": ["IPv4"]}
    annotations = {PREFIX + each.replace("_", "-"): text for each, text in asks.items()}
    api.cluster.expose("shop", name, body, annotations=annotations)


def words(stack: CliStack, *arguments: str) -> str:
    ran = stack.call(*arguments)
    assert ran.status == 0, ran.err
    return " ".join(ran.out.split())


def test_names_of_several_objects_say_each_policy_once(stack: CliStack) -> None:
    assert stack.add_cluster("prod", "--domain-filter", "example.com", "--no-srv").status == 0
    expose(stack.api, "many", "10.68.7.1", hostname=WWW, set_identifier="one", aws_multi_value_answer="true")
    stack.session()
    expose(stack.api, "same", "10.68.7.2", hostname=WWW, set_identifier="one", aws_weight="5")
    expose(stack.api, "other", "10.68.7.3", hostname=WWW, set_identifier="two", aws_weight="5")
    stack.session()
    name = words(stack, "explain", WWW)
    assert (
        f"{WWW} in example.com ({stack.zone_id}) exists A [one] 10.68.7.1 ttl 30, multivalue owner prod/shop/many"
        in name
    )
    assert name.count("ttl 30") == 1
    assert "waiting prod/shop/same, prod/shop/other" in name or "waiting prod/shop/other, prod/shop/same" in name
    assert f"{WWW} A one multivalue 30 10.68.7.1 prod/shop/many in sync" in name
    assert (name.count(f"{WWW} prod/shop/same waiting"), name.count(f"{WWW} prod/shop/other waiting")) == (1, 1)
    told = words(stack, "status")
    assert (
        f"{WWW} [two] in {stack.zone_id} the name is claimed by prod/shop/many, with policy multivalue: to share it, both need the same policy"
        in told
    )
    helps = "to share it, give this one another identifier and that policy"
    assert f"the name is claimed by prod/shop/many, with the same set identifier and policy multivalue: {helps}" in told
    other = words(stack, "explain", "prod/shop/other")
    assert "wanted 10.68.7.3 ttl 30, weight 5 current nothing shared by prod/shop/many [one] reason NameTaken" in other
    assert f"{WWW} A one multivalue 30 10.68.7.1" in words(stack, "records", "--name", WWW)


def test_commands_say_for_whom_a_cluster_waits_with_another_policy(stack: CliStack) -> None:
    def add(name: str, api: ApiServer) -> None:
        ran = stack.call(
            "cluster", "add", name, "--template", "default", "--server", api.url, "--domain", "k8s.example.com", "--zone", stack.zone_id,
            "--token", "env:KUBESYNC_TEST_TOKEN", "--no-srv", "--routing", "weighted=100",
        )  # fmt: skip
        assert ran.status == 0, ran.err

    def waits() -> Callable[[], bool]:
        keys = [ObjectKey("west", "shop", "web"), ObjectKey("west", "default", "kubernetes")]
        return lambda: all(state.waits for state in StateTable(stack.store).load(keys).values())

    with ApiServer(tokens={TOKEN: "admin"}) as east:
        for name, api, address in (("west", stack.api, "10.68.7.1"), ("east", east, "10.68.7.2")):
            add(name, api)
            expose(api, "web", address)
        stack.session()
        primary = ("--routing", "failover=primary", "--health-check", "0a11fe5c")
        assert stack.call("cluster", "set", "west", *primary, "--yes").status == 0
        stack.session(waits())
        until = "it waits until east/shop/web wants failover too: all sets of a name have one policy"
        (record,) = stack.call("explain", "west/shop/web", "-o", "json").json["records"]
        assert (record["state"], record["reason"], record["next"]) == ("waiting", "NameTaken", until)
        name = words(stack, "explain", WEB)
        assert f"{WEB} A west weighted 100 30 10.68.7.1 west/shop/web pending {until}" in name
        assert "another Service has the name" not in name
        rows = [row for row in stack.call("records", "-o", "json").json if row["service"] == "west/shop/web"]
        assert [(row["type"], row["state"], row["reason"]) for row in rows] == [("A", "open", until)]
        assert stack.call("cluster", "set", "east", "--routing", "failover=secondary", "--yes").status == 0
        batches = len(stack.route53.batches(stack.zone_id))
        stack.session()
        assert [call.accepted for call in stack.route53.batches(stack.zone_id)[batches:]] == [True]
        name = words(stack, "explain", WEB)
        assert "exists A [east] 10.68.7.2 ttl 30, failover SECONDARY" in name
        assert "exists A [west] 10.68.7.1 ttl 30, failover PRIMARY, health check 0a11fe5c" in name


def test_commands_say_for_whom_aliases_wait_that_replace_cnames(stack: CliStack) -> None:
    """Clusters with load balancers share names, and get ``--load-balancer-alias`` one after the other, as docs/multi-cluster.md says."""

    def cluster(*words: str) -> None:
        ran = stack.call("cluster", *words)
        assert ran.status == 0, ran.err

    def at_web() -> list[tuple[str, str]]:
        sets = stack.route53.records(stack.zone_id)
        return sorted((key.type, key.identifier) for key in sets if key.name == f"{WEB}.")

    def waits() -> bool:
        key = ObjectKey("west", "shop", "web")
        return bool(StateTable(stack.store).load([key])[key].waits)

    with ApiServer(tokens={TOKEN: "admin"}) as east:
        for name, api in (("west", stack.api), ("east", east)):
            of_zone = ("--domain", "k8s.example.com", "--zone", stack.zone_id, "--template", "default", "--no-srv")
            cluster(
                "add",
                name,
                "--server",
                api.url,
                "--token",
                "env:KUBESYNC_TEST_TOKEN",
                *of_zone,
                "--routing",
                "weighted",
            )
            api.cluster.expose("shop", "web", {"type": "LoadBalancer", "ports": [{"port": 80}]})
            api.cluster.set_load_balancer("shop", "web", [{"hostname": f"{name}-1.elb.eu-west-1.amazonaws.com"}])
        cnames = [("CNAME", "east"), ("CNAME", "west")]
        stack.session(lambda: at_web() == cnames and stack.settled())
        cluster("set", "west", "--load-balancer-alias", "--yes")
        stack.session(waits)
        assert at_web() == cnames
        until = "it waits until east/shop/web wants no CNAME too: a CNAME shares a name with CNAMEs only"
        shown = stack.call("explain", "west/shop/web", "-o", "json").json["records"]
        assert [(row["type"], row["state"]) for row in shown] == [
            ("A", "waiting"),
            ("AAAA", "waiting"),
            ("CNAME", "waiting"),
        ]
        assert all(row["next"].startswith(until) for row in shown)
        assert "1 waits for a person" in words(stack, "status")
        with a_visited_page(stack.environment) as (visitor, _):
            shown_there = visitor.get("/service/west/shop/web").text
        assert "weighted 1 [west]: the cluster's --routing weighted" in shown_there
        assert until in shown_there
        cluster("set", "east", "--load-balancer-alias", "--yes")
        stack.session(lambda: len(at_web()) == 4 and stack.settled() and not waits())
        assert at_web() == [("A", "east"), ("A", "west"), ("AAAA", "east"), ("AAAA", "west")]
        assert all(call.accepted for call in stack.route53.batches(stack.zone_id))
        assert "NameTaken" not in words(stack, "status")
