"""Shards of a table's stream that end, split, fail, or are throttled."""

from typing import Any

import pytest

from harness.fake_stream import FakeStream
from harness.followed_table import KEY, FollowedTable, an_item


def _shard() -> Any:
    return type(FakeStream().shards["shard-0"])()


@pytest.fixture
def deployment() -> FollowedTable:
    return FollowedTable()


def test_child_of_an_ended_shard_that_is_listed_later_is_found_with_the_next_read(deployment: FollowedTable) -> None:
    deployment.stream.shards["shard-1"] = _shard()
    deployment.seen()
    deployment.stream.split("shard-0")
    for second in range(1, 41):
        deployment.time = float(second)
        deployment.seen()
    deployment.stream.split("shard-0", "shard-2")
    deployment.put(an_item(1, "10.0.0.1"), "shard-2")
    deployment.time = 41.0
    assert deployment.seen() == {KEY: ["10.0.0.1"]}

    deployment.stream.calls.clear()
    for second in range(42, 100):
        deployment.time = float(second)
        deployment.seen()
    assert deployment.stream.calls.count("describe_stream") == 0


def test_ended_shard_without_a_child_is_looked_for_a_minute_only(deployment: FollowedTable) -> None:
    deployment.stream.shards["shard-1"] = _shard()
    deployment.stream.split("shard-0")
    lists = []
    for second in range(180):
        deployment.time = float(second)
        deployment.stream.calls.clear()
        deployment.seen()
        lists += [second] * deployment.stream.calls.count("describe_stream")

    # The first is that of the start. Then every second for a minute, then every minute.
    assert lists == [0, *range(60), 119, 179]


def test_children_are_not_read_before_the_rest_of_their_parent(deployment: FollowedTable) -> None:
    deployment.stream.shards["shard-1"] = _shard()
    deployment.seen()
    deployment.put(an_item(1, "10.0.0.1"), "shard-0")
    deployment.stream.split("shard-0", "shard-2")
    deployment.stream.add("shard-2", an_item(9, "10.0.0.9"))
    deployment.stream.fail, deployment.stream.fail_shard = "ThrottlingException", "shard-0"
    deployment.time = 60.0
    assert deployment.seen() == {}

    assert deployment.seen() == {KEY: ["10.0.0.9"]}


def test_shard_that_is_throttled_again_and_again_holds_up_no_other(deployment: FollowedTable) -> None:
    deployment.stream.shards["shard-1"] = _shard()
    deployment.seen()
    deployment.stream.fail_shard, tried = "shard-0", []
    deployment.put(an_item(1, "10.0.0.1", key="named/a"), "shard-0")
    for second in range(1, 50):
        deployment.time, deployment.stream.fail = float(second), "ProvisionedThroughputExceededException"
        deployment.put(an_item(second, f"10.0.1.{second}"), "shard-1")
        assert deployment.seen() == {KEY: [f"10.0.1.{second}"]}
        assert "let one `render json --watch` feed the other proxies" in deployment.followed.problem
        tried += [second] if not deployment.stream.fail else []
    assert tried == [1, 2, 4, 8, 16, 32]

    deployment.stream.shards["shard-5"] = _shard()
    deployment.stream.fail, deployment.time = "", 62.0
    deployment.put(an_item(1, "10.0.0.5", key="named/b"), "shard-5")
    assert deployment.seen() == {KEY: ["10.0.1.49"], "named/a": ["10.0.0.1"], "named/b": ["10.0.0.5"]}
    assert (deployment.followed.problem, deployment.scans) == ("", 1)


def test_stream_that_cannot_be_started_is_tried_less_often(deployment: FollowedTable) -> None:
    tried = []
    for second in range(40):
        deployment.time, deployment.stream.fail = float(second), "AccessDeniedException"
        deployment.seen()
        assert "denied" in deployment.followed.problem
        tried += [second] if not deployment.stream.fail else []

    assert tried == [0, 1, 3, 7, 15, 31]


def test_records_of_a_shard_are_kept_while_another_cannot_be_read(deployment: FollowedTable) -> None:
    deployment.stream.shards["shard-1"] = type(deployment.stream.shards["shard-0"])()
    deployment.seen()
    deployment.put(an_item(1, "10.0.0.1"), "shard-0")
    deployment.put(an_item(1, "10.0.0.2", key="named/shop"), "shard-1")
    deployment.stream.fail, deployment.stream.fail_shard = "ThrottlingException", "shard-1"
    deployment.seen()
    assert "ThrottlingException" in deployment.followed.problem

    assert deployment.seen() == {KEY: ["10.0.0.1"], "named/shop": ["10.0.0.2"]}
    assert (deployment.followed.problem, deployment.scans) == ("", 1)


def test_children_of_an_ended_shard_are_found_after_a_list_of_shards_failed(deployment: FollowedTable) -> None:
    deployment.stream.shards["shard-1"] = type(deployment.stream.shards["shard-0"])()
    deployment.seen()
    deployment.stream.split("shard-0", "shard-2")
    deployment.put(an_item(1, "10.0.0.1"), "shard-2")
    deployment.stream.fail, deployment.stream.fail_operation = "ThrottlingException", "describe_stream"
    deployment.seen()

    assert deployment.seen() == {KEY: ["10.0.0.1"]}
