"""The audit says who changed a configuration, and from what to what."""

import getpass
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from harness.cli_stack import CliStack, a_cli_stack
from kubesync.aws.dynamodb.store import AUDIT
from kubesync.domain.errors import StoreUnavailableError
from kubesync_local.workplace import people


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        assert made.add_cluster().status == 0
        yield made


def rows(stack: CliStack, *options: str) -> list[tuple[str, Any, Any, str]]:
    found = stack.call("audit", "-o", "json", *options).json
    return [(row["what"], row["from"], row["to"], row["why"]) for row in found if row["kind"] == "settings"]


def test_change_of_a_cluster_says_before_after_and_who(stack: CliStack) -> None:
    user = getpass.getuser()
    assert ("settings domain", None, '"prod.example.com"', f"cluster add by {user}") in rows(stack)

    assert stack.call("cluster", "set", "prod", "--ttl", "600").status == 0
    assert stack.call("cluster", "disable", "prod").status == 0
    assert stack.call("cluster", "remove", "prod", "--retain").status == 0

    assert rows(stack)[:3] == [
        ("settings deleting", None, "retain", f"cluster remove by {user}"),
        ("settings disabled", "false", "true", f"cluster disable by {user}"),
        ("settings ttl", "30", "600", f"cluster set by {user}"),
    ]
    shown = stack.call("audit", COLUMNS="").out
    assert f"(cluster set by {user})" in shown
    assert "30 → 600" in shown


def test_named_upstream_and_forced_resync_are_noted(stack: CliStack) -> None:
    user = getpass.getuser()
    assert stack.call("upstream", "add", "web", "--static", "10.0.0.1:80").status == 0
    assert stack.call("upstream", "hold", "web", "--by", "edge").status == 0
    assert stack.call("resync", "--force", "--yes").status == 0

    found = rows(stack)
    assert [(what, why) for what, _, _, why in found[:3]] == [
        ("settings held deletions", f"resync --force by {user}"),
        ("settings named/web held by", f"upstream hold by {user}"),
        ("settings named/web", f"upstream add by {user}"),
    ]
    assert "10.0.0.1" in found[2][2]


def test_no_credential_is_in_the_audit(stack: CliStack) -> None:
    """I8: references only."""
    text = repr(list(stack.store.scan(AUDIT))) + stack.call("audit", "-o", "json").out

    assert "token-of-a-test" not in text
    assert "env:KUBESYNC_TEST_TOKEN" in text


def test_command_is_done_although_the_audit_cannot_be_written(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    write = type(stack.store).write

    def refused(store: Any, action: Any) -> Any:
        if action.key.table == AUDIT:
            raise StoreUnavailableError("access to the audit table is denied")
        return write(store, action)

    monkeypatch.setattr(type(stack.store), "write", refused)
    ran = stack.call("cluster", "set", "prod", "--ttl", "600")

    assert ran.status == 0
    assert "done, but not written to the audit: access to the audit table is denied" in ran.lines
    assert stack.call("cluster", "show", "prod", "-o", "json").json["ttl"] == 600


def test_caller_on_aws_is_whom_sts_names(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        def get_caller_identity(self) -> dict[str, str]:
            return {"Arn": "arn:aws:sts::111111111111:assumed-role/ops/ann"}

    monkeypatch.setattr(boto3.Session, "client", lambda *_args, **_settings: Client())
    assert people.caller(boto3.Session(region_name="eu-west-1"), {}) == "arn:aws:sts::111111111111:assumed-role/ops/ann"


def test_caller_is_unknown_where_sts_does_not_answer() -> None:
    session = boto3.Session("test", "test", region_name="eu-west-1")
    client = session.client

    def nowhere(name: str, **settings: Any) -> Any:
        return client(name, endpoint_url="http://127.0.0.1:1", **settings)  # type: ignore[call-overload]

    session.client = nowhere  # type: ignore[method-assign, assignment]
    assert people.caller(session, {}) == "unknown"
