"""Commands where a deployment has several shards: which shard a new cluster gets, what is shown, and whom a change is told."""

from collections.abc import Iterator

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.page_visitor import a_visited_page
from kubesync.actors.threads import ThreadScheduler
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync_local.commands.show.watch import gathered
from kubesync_local.commands.show.watch_screen import screen
from kubesync_local.workplace.registry import ClusterRegistry


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.make_tables()
        yield made


def hold(stack: CliStack, shard: str, *, ago: float = 0.0) -> None:
    """A session of this shard took the lease so long ago, and held it for a minute."""
    table, now_ms = LeaseTable(stack.store, shard), int((ThreadScheduler().epoch_seconds() - ago) * 1000)
    taken = table.take(table.read(), f"session-{shard}", table.draw_epoch(), now_ms + 60_000)
    table.renew(taken, now_ms + 60_000, now_ms + 60_000)


def add(stack: CliStack, name: str, *options: str) -> str:
    ran = stack.call(
        "cluster", "add", name, "--template", "default", "--server", "https://10.9.9.9:6443", "--domain", f"{name}.example.com", "--zone",
        stack.zone_id, "--token", "ssm:x", "--endpoints-source", "endpointslices", *options,
    )  # fmt: skip
    assert ran.status == 0, ran.err
    config = ClusterRegistry(stack.store).get(name)
    assert config is not None
    assert (f", in shard {config.shard}" in ran.err) is (config.shard != "0")
    return config.shard


def signal_of(stack: CliStack, shard: str) -> int:
    return LeaseTable(stack.store, shard).read().signal


def test_new_cluster_goes_to_the_running_shard_with_the_fewest_clusters(stack: CliStack) -> None:
    assert add(stack, "first") == "0"  # nothing has ever run
    for shard in ("0", "1", "2"):
        hold(stack, shard)
    hold(stack, "3", ago=3600)  # the stack has it no more
    assert [add(stack, name) for name in ("a", "b", "c", "d")] == ["1", "2", "0", "1"]
    assert add(stack, "e", "--shard", "7") == "7"


def test_shard_of_the_environment_wins_over_room_and_a_registered_cluster_stays(
    stack: CliStack,
) -> None:
    for shard in ("0", "1"):
        hold(stack, shard)
    stack.environment["KUBESYNC_SHARD"] = "0"
    assert [add(stack, name) for name in ("a", "b")] == ["0", "0"]
    del stack.environment["KUBESYNC_SHARD"]
    assert add(stack, "a", "--replace", "--ttl", "60", "--yes") == "0"
    moved = stack.call(
        "cluster", "add", "a", "--replace", "--yes", "--shard", "1", "--server", "https://10.9.9.9:6443", "--domain", "a.example.com",
        "--zone", stack.zone_id, "--token", "ssm:x", "--endpoints-source", "endpointslices",
    )  # fmt: skip
    assert moved.status == 2
    assert "cluster a belongs to shard 0" in moved.err


def test_cluster_of_a_shard_that_never_ran_is_said_to_be_watched_by_nobody(stack: CliStack) -> None:
    nobody = "no session of shard 99 has run yet: until one runs, nobody watches its clusters"
    for shard, said in (("0", False), ("1", False), ("99", True)):
        if not said:
            hold(stack, shard)
        added = stack.call(
            "cluster", "add", f"of-{shard}", "--shard", shard, "--server", "https://10.9.9.9:6443", "--domain", f"of-{shard}.example.com",
            "--zone", stack.zone_id, "--token", "ssm:x", "--endpoints-source", "endpointslices",
        )  # fmt: skip
        assert (added.status, nobody in added.err) == (0, said)
        removed = stack.call("cluster", "remove", f"of-{shard}", "--yes")
        assert (removed.status, nobody in removed.err) == (0, said)


def test_changes_of_a_cluster_are_told_to_the_master_of_its_shard(stack: CliStack) -> None:
    for shard in ("0", "1"):
        hold(stack, shard)
    assert add(stack, "a", "--shard", "1") == "1"
    assert (signal_of(stack, "0"), signal_of(stack, "1")) == (0, 1)
    for number, words in enumerate(
        (("set", "a", "--ttl", "77"), ("disable", "a"), ("enable", "a"), ("remove", "a")), 2
    ):
        ran = stack.call("cluster", *words)
        assert ran.status == 0, ran.err
        assert (signal_of(stack, "0"), signal_of(stack, "1")) == (0, number)
    stack.environment["KUBESYNC_SHARD"] = "0"
    refused = stack.call("cluster", "set", "a", "--ttl", "5")
    assert refused.status == 2


def test_status_shows_the_lease_of_every_shard_and_names_one_without_a_master(stack: CliStack) -> None:
    for shard, ago in (("0", 0), ("1", 0), ("2", 3600)):
        hold(stack, shard, ago=ago)
        add(stack, f"of-{shard}", "--shard", shard)
    status = stack.call("status", "-o", "json").json
    assert [(each["shard"], each["lease"]["state"]) for each in status["other_shards"]] == [
        ("1", "held"),
        ("2", "expired"),
    ]
    shown = stack.call("status").out
    assert "shard 0: the lease is held by session session-0" in shown
    assert "shard 1: the lease is held by session session-1" in shown
    assert "shard 2: the lease of session session-2 has expired" in shown
    checked = stack.call("status", "--check")
    assert checked.status == 1
    assert [line.split(":")[1] for line in checked.out.splitlines() if line.startswith("NoMaster")] == [" shard 2"]


def test_watch_and_the_page_show_the_lease_of_every_shard(stack: CliStack) -> None:
    for shard, ago in (("0", 0), ("1", 0), ("2", 3600)):
        hold(stack, shard, ago=ago)
        add(stack, f"of-{shard}", "--shard", shard)
    with a_visited_page(stack.environment) as (visitor, gatherer):
        page = visitor.get("/").text
        drawn = [line.plain for line in screen(gathered(gatherer._work, ""), 100, 24)]
    assert "shard 1  the lease is held by session session-1" in drawn
    assert "shard 2  the lease of session session-2 has expired" in drawn
    assert "Shard 1: the lease is held by session session-1." in page
    assert "Shard 2: the lease of session session-2 has expired." in page
    assert "No session of shard 2 is running" in page
    assert "No session of shard 1 is running" not in page


def test_resync_of_all_asks_every_shard(stack: CliStack) -> None:
    for shard in ("0", "1"):
        add(stack, f"of-{shard}", "--shard", shard)
    ran = stack.call("resync", "--dry-run", "-o", "json", "--timeout", "30")
    assert [each["cluster"] for each in ran.json["clusters"]] == ["of-0", "of-1"]
    stack.environment["KUBESYNC_SHARD"] = "1"
    ran = stack.call("resync", "--dry-run", "-o", "json", "--timeout", "30")
    assert [each["cluster"] for each in ran.json["clusters"]] == ["of-1"]
