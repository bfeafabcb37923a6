"""Every command refuses the tables of another deployment, also those that only look (``setup``: in ``tests/e2e``)."""

from collections.abc import Iterator

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from kubesync.aws.dynamodb.store import KEY_ATTRIBUTES


@pytest.fixture(scope="module")
def stack() -> Iterator[CliStack]:
    """Tables and one cluster."""
    with a_cli_stack(in_memory=True) as made:
        assert made.add_cluster("prod").status == 0
        yield made


@pytest.mark.parametrize(
    "command",
    [
        ["cluster", "disable", "prod"],
        ["cluster", "enable", "prod"],
        ["cluster", "remove", "prod"],
        ["upstream", "remove", "shop"],
        ["upstream", "hold", "shop", "--by", "edge"],
        ["upstream", "release", "shop", "--by", "edge"],
        ["upstream", "list"],
        ["session", "--max-runtime", "1"],
        ["resync", "--dry-run"],
        ["recover", "--apply"],
        [
            *("cluster", "add", "second", "--server", "http://127.0.0.1:1", "--domain", "second.example.com"),
            *("--zone", "Z1", "--token", "env:KUBESYNC_TEST_TOKEN"),
        ],
        ["status"],
        ["cluster", "list"],
        ["records"],
        ["upstreams"],
        ["errors"],
        ["audit"],
        ["explain", "prod/shop/web"],
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_tables_of_another_deployment_are_left_alone(stack: CliStack, command: list[str]) -> None:
    before = {table: list(stack.store.scan(table)) for table in KEY_ATTRIBUTES}
    ran = stack.call(*command, KUBESYNC_DEPLOYMENT="other", KUBESYNC_TABLE_PREFIX=stack.prefix)

    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("kubesync: these tables belong to deployment 'test', not to 'other': check ")
    assert {table: list(stack.store.scan(table)) for table in KEY_ATTRIBUTES} == before
