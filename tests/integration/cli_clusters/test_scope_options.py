"""What of a cluster is registered, shown, disabled and enabled, by the command."""

from collections.abc import Iterator

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.memory_tables import WHERE


@pytest.fixture(scope="module", params=WHERE)
def stack(request: pytest.FixtureRequest) -> Iterator[CliStack]:
    with a_cli_stack(in_memory=request.param) as made:
        made.make_tables()
        yield made


def shown(stack: CliStack, name: str) -> dict[str, object]:
    document: dict[str, object] = stack.call("cluster", "show", name, "--output", "json").json
    return document


def test_scope_is_registered_as_given(stack: CliStack) -> None:
    ran = stack.add_cluster(
        "scoped", "--namespace", "shop, bill", "--namespaces", "ops", "--selector", " app in (web, api),!old ",
        "--select-endpoints", "--opt-in",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    found = shown(stack, "scoped")
    assert {name: found[name] for name in ("namespaces", "selector", "select_endpoints", "opt_in", "state")} == {
        "namespaces": ["shop", "bill", "ops"],
        "selector": "app in (web, api),!old",
        "select_endpoints": True,
        "opt_in": True,
        "state": "registered",
    }
    table = stack.call("cluster", "show", "scoped")
    assert "shop, bill, ops" in table.out
    assert stack.add_cluster("rest", "--exclude-namespaces", "kube-system,test").status == 0
    assert shown(stack, "rest")["exclude_namespaces"] == ["kube-system", "test"]


def test_cluster_is_disabled_and_enabled_and_stays_disabled_when_it_is_changed(stack: CliStack) -> None:
    assert stack.add_cluster("paused").status == 0
    ran = stack.call("cluster", "disable", "paused")
    assert (ran.status, ran.lines) == (
        0,
        ["cluster paused is disabled: its record sets and upstreams stay as they are"],
    )
    assert shown(stack, "paused")["state"] == "disabled"
    assert "disabled" in stack.call("cluster", "list").out
    [status] = stack.call("status", "--cluster", "paused", "--output", "json").json["clusters"]
    assert status["state"] == "disabled"
    again = stack.call("cluster", "disable", "paused")
    assert (again.status, again.lines) == (0, ["cluster paused is already disabled"])
    revision = shown(stack, "paused")["revision"]
    changed = stack.add_cluster("paused", "--replace", "--ttl", "90")
    assert changed.status == 0
    assert changed.lines[1:] == [
        "changed: ttl 30 -> 90",
        "note: it stays disabled; `kubesync plan --cluster paused` shows what it would write, `kubesync cluster enable paused` enables it",
    ]
    assert (shown(stack, "paused")["state"], shown(stack, "paused")["ttl"]) == ("disabled", 90)
    ran = stack.call("cluster", "enable", "paused")
    assert (ran.status, ran.lines) == (0, ["cluster paused is enabled; the next session lists it"])
    assert (shown(stack, "paused")["state"], shown(stack, "paused")["revision"]) == (
        "registered",
        int(str(revision)) + 2,
    )


def test_cluster_that_is_being_removed_or_unknown_cannot_be_disabled(stack: CliStack) -> None:
    assert stack.add_cluster("going").status == 0
    assert stack.call("cluster", "remove", "going").status == 0
    ran = stack.call("cluster", "disable", "going")
    assert (ran.status, len(ran.lines)) == (2, 1)
    assert "cluster going is being removed: it cannot be disabled or enabled" in ran.err
    assert stack.call("cluster", "enable", "nobody").status == 2
