"""Two people at the same moment: the second one is told, with the status of a failure. The command was typed rightly."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from kubesync_local.registration.named_upstreams import NamedRegistry
from kubesync_local.workplace.registry import ClusterRegistry

CHANGED: Final = "kubesync: cluster prod was changed by somebody else: try again"
REFERRED: Final = "kubesync: cluster prod, or something that refers to it, was changed meanwhile: try again"
NAMED: Final = "kubesync: named upstreams were changed by somebody else meanwhile: try again"


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        assert made.add_cluster("prod").status == 0
        assert made.call("upstream", "add", "shop", "--static", "192.0.2.1:80").status == 0
        assert made.call("upstream", "hold", "shop", "--by", "edge").status == 0
        yield made


def just_before(monkeypatch: pytest.MonkeyPatch, owner: type, method: str, meanwhile: Callable[[], object]) -> None:
    """Whatever calls the method next is too late: another person acts first."""
    late = getattr(owner, method)

    def raced(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, method, late)
        meanwhile()
        return late(*arguments, **options)

    monkeypatch.setattr(owner, method, raced)


def set_by_another(stack: CliStack) -> None:
    table = ClusterRegistry(stack.store)
    config = table.get("prod")
    assert config is not None
    table.put(config.model_copy(update={"ttl": 77}))


@pytest.mark.parametrize(
    "command",
    [
        "set prod --write-events",
        "disable prod",
        "remove prod",
        "remove prod --retain",
        "add prod --replace --ttl 90",
        "apply -f FILE",
    ],
)
def test_lost_race_for_a_cluster_is_a_failure(
    stack: CliStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    file = tmp_path / "clusters.yaml"
    file.write_text(stack.call("cluster", "export").out + "  ttl: 90\n")
    words = command.replace("FILE", str(file)).split()
    if "--replace" in words:
        words += ["--server", stack.api.url, "--domain", "prod.example.com", "--zone", stack.zone_id]
        words += ["--token", "env:KUBESYNC_TEST_TOKEN"]
    just_before(monkeypatch, ClusterRegistry, "put", lambda: set_by_another(stack))

    ran = stack.call("cluster", *words)

    # A removal is written together with the condition that no named upstream refers to the cluster.
    assert (ran.status, ran.lines[0]) == (1, REFERRED if "remove" in command else CHANGED)
    left = ClusterRegistry(stack.store).get("prod")
    assert left is not None
    assert (left.ttl, left.write_events, left.disabled, left.deleting) == (77, False, False, False)


def test_lost_race_to_enable_is_a_failure(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stack.call("cluster", "disable", "prod").status == 0
    just_before(monkeypatch, ClusterRegistry, "put", lambda: set_by_another(stack))

    ran = stack.call("cluster", "enable", "prod")

    assert (ran.status, ran.lines) == (1, [CHANGED])


def test_lost_race_to_register_is_a_failure(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    just_before(monkeypatch, ClusterRegistry, "put", lambda: stack.add_cluster("dev"))

    ran = stack.add_cluster("dev")

    assert (ran.status, ran.lines[0]) == (
        1,
        "kubesync: cluster dev was registered by somebody else meanwhile: try again",
    )
    again = stack.add_cluster("dev")
    assert (again.status, "--replace takes them all again" in again.err) == (2, True), "now it is wrong use"


@pytest.mark.parametrize(
    ("command", "method"),
    [
        ("add shop --static 192.0.2.9:80 --replace", "put"),
        ("hold shop --by edge-2", "hold"),
        ("release shop --by edge", "release"),
    ],
)
def test_lost_race_for_a_named_upstream_is_a_failure(
    stack: CliStack, monkeypatch: pytest.MonkeyPatch, command: str, method: str
) -> None:
    other = ("upstream", "add", "other", "--static", "192.0.2.2:80")
    just_before(monkeypatch, NamedRegistry, method, lambda: stack.call(*other))

    ran = stack.call("upstream", *command.split())

    assert (ran.status, ran.lines) == (1, [NAMED])


def test_lost_race_to_remove_a_named_upstream_is_a_failure(stack: CliStack, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stack.call("upstream", "release", "shop", "--by", "edge").status == 0
    other = ("upstream", "add", "other", "--static", "192.0.2.2:80")
    just_before(monkeypatch, NamedRegistry, "remove", lambda: stack.call(*other))

    ran = stack.call("upstream", "remove", "shop")

    assert (ran.status, ran.lines) == (1, [NAMED])
