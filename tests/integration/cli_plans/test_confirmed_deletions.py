"""I5: mistakes of people, with the commands that they would give. Nothing is deleted until a person says how much."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli_stack import CliStack, a_cli_stack

COUNT = 10


@pytest.fixture
def stack() -> Iterator[CliStack]:
    """Ten Services, each with a name of its own by an annotation; published."""
    with a_cli_stack(in_memory=True) as made:
        for number in range(COUNT):
            cluster = made.api.cluster
            name = f"web-{number}"
            cluster.expose("shop", name, {"ports": [{"port": 80}], "clusterIP": f"10.68.0.{10 + number}"})
            names = {"external-dns.kubernetes.io/hostname": f"{name}.prod.example.com"}
            cluster.change_service("shop", name, {"metadata": {"annotations": names}})
        assert made.add_cluster("prod").status == 0
        assert made.session().json["clean"]
        yield made


def names(stack: CliStack) -> int:
    """How many names stand in the zone that an annotation asks for."""
    rows = stack.call("records", "--output", "json").json
    return sum(
        row["name"].startswith("web-") and row["name"].endswith(".prod.example.com") and "svc" not in row["name"]
        for row in rows
    )


def test_prefix_that_nothing_matches_deletes_nothing_until_a_person_forces_it_i5(stack: CliStack) -> None:
    """An update of external-dns no longer knew the prefix, and planned to delete 8,764 record sets."""
    assert names(stack) == COUNT
    changed = stack.call("cluster", "set", "prod", "--annotation-prefix", "dns.example.net/", "--yes")
    assert changed.status == 0, changed.err
    assert stack.session().json["clean"]
    assert names(stack) == COUNT
    status = stack.call("status")
    assert "10 deletions of configuration held back" in status.out
    planned = stack.call("plan", "--exit-code")
    assert planned.status == 3
    assert "10 held back" in planned.out
    # The prefix that people use comes back: nothing is held any more.
    assert stack.call("cluster", "set", "prod", "--unset", "annotation-prefix", "--yes").status == 0
    assert stack.session().json["clean"]
    assert names(stack) == COUNT
    assert "held back" not in stack.call("status").out
    # Somebody means it, and says how many.
    option = ("--annotation-prefix", "dns.example.net/", "--yes", "--allow-deletions")
    assert stack.call("cluster", "set", "prod", *option, "10").status == 0
    assert stack.session().json["clean"]
    assert names(stack) == 0


def test_configuration_that_leaves_out_a_domain_is_not_accepted_without_the_number_i5(stack: CliStack) -> None:
    change = ("cluster", "set", "prod", "--domain-filter", "other.example.com")
    refused = stack.call(*change, "--yes")
    assert refused.status == 2
    assert refused.lines[-1] == (
        "kubesync: this would delete 10 record sets, more than 30% of a cluster: if you mean it, give --allow-deletions 10; "
        "nothing was changed"
    )
    assert "needs --allow-deletions 10" in refused.err
    fewer = stack.call(*change, "--yes", "--allow-deletions", "9")
    assert (fewer.status, fewer.lines[-1]) == (
        2, "kubesync: this would delete 10 record sets, --allow-deletions allows 9; nothing was changed"
    )  # fmt: skip
    assert stack.session().json["clean"]
    assert names(stack) == COUNT
    accepted = stack.call(*change, "--allow-deletions", "10")
    assert accepted.status == 0, accepted.err
    assert stack.session().json["clean"]
    assert names(stack) == 0


def test_item_that_was_edited_by_hand_is_held_and_forced_by_a_person_i5(stack: CliStack) -> None:
    from kubesync_local.workplace.registry import ClusterRegistry

    table = ClusterRegistry(stack.store)
    config = table.get("prod")
    assert config is not None
    table.put(config.model_copy(update={"domain_filter": ("other.example.com",)}))
    assert stack.session().json["clean"]
    assert names(stack) == COUNT
    forced = stack.call("resync", "--cluster", "prod", "--force")
    assert forced.status == 0, forced.err
    assert names(stack) == 0


def test_file_that_leaves_out_a_domain_needs_the_number_too_i5(stack: CliStack, tmp_path: Path) -> None:
    exported = stack.call("cluster", "export", "prod").out
    assert "domain_filter" not in exported
    path = tmp_path / "clusters.yaml"
    path.write_text(exported.rstrip() + "\n  domain_filter: [other.example.com]\n", encoding="utf-8")
    file = str(path)
    refused = stack.call("cluster", "apply", "-f", file, "--yes")
    assert refused.status == 2, refused.err
    assert "give --allow-deletions 10; nothing was changed" in refused.lines[-1]
    applied = stack.call("cluster", "apply", "-f", file, "--yes", "--allow-deletions", "10")
    assert applied.status == 0, applied.err
    assert stack.session().json["clean"]
    assert names(stack) == 0
