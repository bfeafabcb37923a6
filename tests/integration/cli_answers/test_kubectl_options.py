"""Options that people know from kubectl and the AWS CLI: ``-n``, ``-A``, ``-l``, ``--region``, ``--profile``; ``delete`` for ``remove``."""

from collections.abc import Iterator

import pytest

from harness.cli_stack import CliStack, a_cli_stack


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """web and api in shop, web in pay; the labels of a Service are those of its pods' selector."""
    with a_cli_stack(in_memory=True) as made:
        for namespace, name, labels in (("shop", "web", {"tier": "front"}), ("shop", "api", {}), ("pay", "web", {})):
            made.api.cluster.expose(namespace, name, {"ports": [{"port": 80}]}, labels=labels)
        assert made.add_cluster("prod", "--no-srv", "--exclude-namespaces", "default").status == 0
        made.session()
        yield made


def names(stack: CliStack, *options: str) -> list[str]:
    ran = stack.call("records", "-o", "json", *options)
    assert ran.status == 0, ran.err
    return sorted({row["service"] for row in ran.json})


def test_namespace_chooses_record_sets(stack: CliStack) -> None:
    assert names(stack, "-n", "shop") == ["prod/shop/api", "prod/shop/web"]
    assert names(stack, "--namespace", "pay") == ["prod/pay/web"]
    assert names(stack, "-A") == names(stack) == ["prod/pay/web", "prod/shop/api", "prod/shop/web"]


def test_labels_choose_record_sets_and_upstreams(stack: CliStack) -> None:
    assert names(stack, "-l", "tier=front") == ["prod/shop/web"]
    assert names(stack, "-n", "pay", "-l", "tier=front") == []
    assert names(stack, "-l", "tier!=front", "--cluster", "prod") == ["prod/pay/web", "prod/shop/api"]
    upstreams = stack.call("upstreams", "-l", "tier=front", "-o", "json").json
    assert [row["upstream"] for row in upstreams] == ["prod/shop/web/80/TCP"]


def test_namespace_chooses_upstreams_and_changes(stack: CliStack) -> None:
    upstreams = stack.call("upstreams", "-n", "pay", "-o", "json").json
    changes = stack.call("audit", "-n", "pay", "-o", "json").json

    assert [row["upstream"] for row in upstreams] == ["prod/pay/web/80/TCP"]
    assert {row["service"] for row in changes} == {"prod/pay/web"}


def test_server_that_cannot_be_asked_for_labels_is_named(stack: CliStack) -> None:
    ran = stack.call("records", "-l", "tier=front", KUBESYNC_TEST_TOKEN="another")

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("kubesync: cluster prod does not say which objects have labels tier=front: ")


def test_options_win_over_the_environment(stack: CliStack) -> None:
    ran = stack.call("cluster", "list", "-o", "json", "--deployment", "test", KUBESYNC_DEPLOYMENT="other")
    region = stack.call("records", "--region", "eu-central-1", AWS_ENDPOINT_URL_DYNAMODB="http://127.0.0.1:1")
    profile = stack.call("records", "--profile", "nobody")

    assert [row["name"] for row in ran.json] == ["prod"]
    assert "in eu-central-1" in region.err
    assert (profile.status, profile.err) == (
        2,
        "kubesync: AWS SDK: The config profile (nobody) could not be found: check AWS_PROFILE and the SDK's configuration files\n",
    )


@pytest.mark.parametrize("word", ["delete", "rm"])
def test_other_tools_word_removes(stack: CliStack, word: str) -> None:
    ran = stack.call("cluster", word, "none")
    named = stack.call("upstream", word, "none")
    page = stack.call("help", "cluster", word)

    assert (ran.status, ran.err) == (2, "kubesync: there is no cluster 'none'; registered: prod\n")
    assert (named.status, "'none'" in named.err or " none" in named.err) == (2, True)
    assert page.out == stack.call("help", "cluster", "remove").out


def test_record_is_one_line_on_a_screen_of_80_columns_and_its_zone_is_said_once(stack: CliStack) -> None:
    ran = stack.call("records", "-n", "shop", COLUMNS="80")

    lines = ran.out.splitlines()
    assert lines[0] == f"zone example.com ({stack.zone_id})"
    assert [line.split() for line in lines[3:]] == [
        ["api.shop.svc.prod.example.com", "A", "30", address_of(stack, "api"), "prod/shop/api", "in", "sync"],
        ["web.shop.svc.prod.example.com", "A", "30", address_of(stack, "web"), "prod/shop/web", "in", "sync"],
    ]
    assert max(map(len, lines)) <= 80
    in_a_pipe = stack.call("records", "-n", "shop", COLUMNS="").out.splitlines()
    assert [stack.zone_id in line for line in in_a_pipe] == [False, True, True]


def test_record_is_one_line_where_no_table_fits(stack: CliStack) -> None:
    lines = stack.call("records", "-n", "shop", COLUMNS="64").out.splitlines()

    assert lines == [
        f"zone example.com ({stack.zone_id}): all in sync",
        f"api.shop.svc.prod.example.com A 30 {address_of(stack, 'api')}  prod/shop/api",
        f"web.shop.svc.prod.example.com A 30 {address_of(stack, 'web')}  prod/shop/web",
    ]


def address_of(stack: CliStack, name: str) -> str:
    (address,) = stack.zone_records()[f"{name}.shop.svc.prod.example.com A"]
    return address
