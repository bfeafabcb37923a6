"""All upstreams by scan and stream: nothing is missed, nothing goes back, and what breaks is begun again."""

from typing import Any

import pytest

from harness.fake_stream import FakeStream
from harness.followed_table import KEY, FollowedTable, an_item
from kubesync_local.proxies.table.items import UnreadUpstream


def _shard() -> Any:
    return type(FakeStream().shards["shard-0"])()


@pytest.fixture
def deployment() -> FollowedTable:
    return FollowedTable()


def test_changes_arrive_through_the_stream_without_another_scan(deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    assert deployment.seen() == {KEY: ["10.0.0.1"]}

    deployment.put(an_item(2, "10.0.0.2"))
    deployment.put(an_item(1, "10.0.0.9", key="named/new"))
    assert deployment.seen() == {KEY: ["10.0.0.2"], "named/new": ["10.0.0.9"]}
    deployment.put(an_item(3, deleted=True))
    assert deployment.seen() == {"named/new": ["10.0.0.9"]}
    assert deployment.scans == 1
    assert deployment.followed.read() is deployment.followed.read()


def test_change_during_the_scan_is_not_missed(deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    deployment.during_scan = [lambda: deployment.put(an_item(2, "10.0.0.2"))]
    deployment.seen()

    assert deployment.seen() == {KEY: ["10.0.0.2"]}


def test_records_older_than_the_scan_change_nothing(deployment: FollowedTable) -> None:
    deployment.seen()
    for version, ip in ((1, "10.0.0.1"), (2, "10.0.0.2")):
        deployment.put(an_item(version, ip))
    deployment.put(an_item(1, "10.0.0.3", key="named/gone"))
    deployment.put(an_item(2, key="named/gone", deleted=True))
    deployment.stream.late = 4
    deployment.time = 600.0  # this read scans, and sees what no record has said yet
    assert deployment.seen() == {KEY: ["10.0.0.2"]}

    for late in (3, 2, 1, 0):
        deployment.stream.late = late
        assert deployment.seen() == {KEY: ["10.0.0.2"]}


def test_split_shards_are_followed_also_if_children_appear_late(deployment: FollowedTable) -> None:
    deployment.seen()
    deployment.put(an_item(1, "10.0.0.1"))
    deployment.stream.split("shard-0")
    assert deployment.seen() == {KEY: ["10.0.0.1"]}

    deployment.stream.split("shard-0", "shard-1", "shard-2", "shard-3")
    deployment.put(an_item(2, "10.0.0.2"), "shard-3")
    assert deployment.seen() == {KEY: ["10.0.0.2"]}
    deployment.stream.split("shard-3", "shard-4")
    deployment.put(an_item(3, "10.0.0.3"), "shard-4")
    assert deployment.seen() == {KEY: ["10.0.0.3"]}
    assert deployment.scans == 1


def test_shard_that_splits_beside_others_is_found_within_a_minute(deployment: FollowedTable) -> None:
    deployment.seen()
    deployment.stream.shards["shard-9"] = type(deployment.stream.shards["shard-0"])()
    deployment.put(an_item(1, "10.0.0.1"), "shard-9")
    deployment.time = 60.0

    assert deployment.seen() == {KEY: ["10.0.0.1"]}


@pytest.mark.parametrize(
    "code", ["ExpiredIteratorException", "TrimmedDataAccessException", "ResourceNotFoundException"]
)
def test_what_was_missed_is_found_by_a_scan(code: str, deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    deployment.seen()
    deployment.items[KEY, 0] = an_item(2, "10.0.0.2")  # its record is lost
    deployment.stream.fail = code
    deployment.seen()
    assert code in deployment.followed.problem

    assert deployment.seen() == {KEY: ["10.0.0.2"]}
    assert (deployment.followed.problem, deployment.scans) == ("", 2)


def test_stream_that_cannot_be_read_is_a_problem_and_scans_go_on(deployment: FollowedTable) -> None:
    deployment.stream.fail = "AccessDeniedException"
    deployment.items[KEY, 0] = an_item(1, "10.0.0.1")

    assert deployment.seen() == {KEY: ["10.0.0.1"]}
    assert "denied" in deployment.followed.problem


def test_too_many_readers_of_a_shard_are_told_what_to_do(deployment: FollowedTable) -> None:
    deployment.seen()
    deployment.stream.fail = "LimitExceededException"
    deployment.seen()

    assert "let one `render json --watch` feed the other proxies" in deployment.followed.problem


def test_scan_every_ten_minutes_finds_what_others_changed(deployment: FollowedTable) -> None:
    deployment.put(an_item(7, "10.0.0.1"))
    deployment.seen()
    deployment.items[KEY, 0] = an_item(3, "10.0.0.2")  # a restored table: no record, a lower version
    deployment.time = 599.0
    assert deployment.seen() == {KEY: ["10.0.0.1"]}
    deployment.time = 600.0
    assert deployment.seen() == {KEY: ["10.0.0.2"]}


def test_several_slices_are_read_from_the_table(deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    deployment.seen()
    head = an_item(2, "10.0.0.1", slices=2)
    deployment.items[KEY, 1] = {**an_item(2, "10.0.0.2"), "slice": 1}
    deployment.put(head)
    assert deployment.seen() == {KEY: ["10.0.0.1", "10.0.0.2"]}


LOST = f"{KEY} is lost: it was in the table, is missing now, and was not deleted; its last servers stay, and it is looked for again"


def test_mark_that_expires_leaves_the_upstream_deleted(deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    deployment.seen()
    deployment.put(an_item(2, deleted=True))
    assert deployment.seen() == {}

    deployment.remove()
    assert deployment.seen() == {}
    deployment.time = 600.0
    assert deployment.seen() == {}
    assert deployment.said == []


@pytest.mark.parametrize("time", [1.0, 600.0])  # the later read scans too
def test_mark_and_its_end_that_come_together_delete_the_upstream(time: float, deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    deployment.seen()
    deployment.put(an_item(2, deleted=True))
    deployment.remove()
    deployment.time = time

    assert deployment.seen() == {}
    assert deployment.said == []


def test_item_removed_without_a_mark_keeps_its_servers_until_one_is_there_again(deployment: FollowedTable) -> None:
    deployment.put(an_item(7, "10.0.0.1"))
    before = deployment.followed.read()
    deployment.remove()
    assert deployment.followed.read() is before
    assert deployment.followed.read() is before
    assert deployment.said == [LOST]

    deployment.put(an_item(1, "10.0.0.2"))
    assert deployment.seen() == {KEY: ["10.0.0.2"]}
    assert deployment.said == [LOST, f"no longer lost: {KEY}"]
    assert deployment.scans == 1


def test_lost_upstream_may_come_back_as_deleted(deployment: FollowedTable) -> None:
    deployment.put(an_item(7, "10.0.0.1"))
    deployment.seen()
    deployment.remove()
    deployment.seen()

    deployment.put(an_item(1, deleted=True))
    assert deployment.seen() == {}


def test_record_of_the_time_before_does_not_end_the_loss(deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    deployment.seen()
    deployment.put(an_item(2, "10.0.0.2"))
    deployment.stream.late = 1
    del deployment.items[KEY, 0]
    deployment.time = 600.0
    assert deployment.seen() == {KEY: ["10.0.0.1"]}
    deployment.stream.late = 0

    assert deployment.seen() == {KEY: ["10.0.0.1"]}
    assert deployment.said == [LOST]


def test_other_stream_of_a_table_made_again_is_followed_within_a_minute(deployment: FollowedTable) -> None:
    deployment.put(an_item(3, "10.0.0.1"))
    deployment.seen()
    deployment.items.clear()
    deployment.arn = "another"
    deployment.time = 60.0
    assert deployment.seen() == {KEY: ["10.0.0.1"]}
    assert deployment.followed.problem == "the upstreams table has another stream than before: was it made again?"

    assert deployment.seen() == {KEY: ["10.0.0.1"]}
    assert (deployment.followed.problem, deployment.said) == ("", [LOST])


def test_table_made_again_loses_all_with_one_line(deployment: FollowedTable) -> None:
    keys = [f"named/a{number}" for number in range(5)]
    for key in keys:
        deployment.put(an_item(3, "10.0.0.1", key=key))
    before = deployment.seen()
    deployment.items.clear()
    deployment.time = 600.0

    for _ in range(3):
        assert deployment.seen() == before
    (said,) = deployment.said
    assert said == (
        "5 upstreams are lost: they were in the table, are missing now, and were not deleted; their last servers stay, and "
        "they are looked for again: named/a0, named/a1, named/a2 and 2 more"
    )

    deployment.put(an_item(1, "10.0.0.9", key="named/a4"))
    assert deployment.seen() == {**before, "named/a4": ["10.0.0.9"]}


def test_scan_that_finds_a_lost_upstream_unchanged_renders_nothing_again(deployment: FollowedTable) -> None:
    deployment.put(an_item(3, "10.0.0.1"))
    before = deployment.followed.read()
    item = deployment.items.pop((KEY, 0))
    deployment.time = 600.0
    deployment.followed.read()
    deployment.items[KEY, 0] = item
    deployment.time = 1200.0

    assert deployment.followed.read() is before
    assert deployment.said == [LOST, f"no longer lost: {KEY}"]


@pytest.mark.parametrize("deleted", [False, True])
def test_an_item_proves_the_table_also_a_deleted_one(deleted: bool, deployment: FollowedTable) -> None:
    deployment.seen()
    assert not deployment.followed.proven

    deployment.put(an_item(1, deleted=deleted))
    deployment.seen()
    assert deployment.followed.proven


def test_odd_items_change_nothing_and_stop_nothing(deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    deployment.put(an_item(1, "10.0.0.2", key="named/shop"))
    deployment.put(an_item(7, "10.0.0.3", key="named/odd", v=2))
    assert deployment.followed.read()["named/odd"] == UnreadUpstream("named/odd")

    deployment.put({"upstream": KEY, "slice": 0, "v": 2, "version": 7})
    deployment.put({"upstream": "named/later", "slice": 0, "version": 7, "nodes": "none"})
    deployment.put(an_item(2, "10.0.0.4", key="named/shop"))
    seen = {KEY: ["10.0.0.1"], "named/shop": ["10.0.0.4"], "named/odd": [], "named/later": []}
    assert deployment.seen() == seen
    deployment.time = 600.0
    assert deployment.seen() == seen
    assert deployment.followed.problem == ""

    deployment.put(an_item(8, "10.0.0.5"))
    deployment.put(an_item(8, "10.0.0.6", key="named/odd"))
    deployment.put(an_item(8, key="named/later", deleted=True))
    assert deployment.seen() == {KEY: ["10.0.0.5"], "named/shop": ["10.0.0.4"], "named/odd": ["10.0.0.6"]}


def test_key_with_a_fraction_is_no_slice_0(deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    odd: dict[str, Any] = {"Keys": {"upstream": {"S": KEY}, "slice": {"N": "0.5"}}}
    deployment.stream.shards["shard-0"].records.append({"dynamodb": odd})

    assert deployment.seen() == {KEY: ["10.0.0.1"]}


def test_records_of_other_slices_are_ignored(deployment: FollowedTable) -> None:
    deployment.seen()
    deployment.stream.add("shard-0", {**an_item(5, "10.0.0.9"), "slice": 1})

    assert deployment.seen() == {}


def test_record_whose_upstream_cannot_be_read_waits_and_the_others_go_on(deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    deployment.seen()
    deployment.put(an_item(1, "10.0.0.5", key="named/before"))
    deployment.items[KEY, 1] = {**an_item(2, "10.0.0.2"), "slice": 1}
    deployment.put(an_item(2, "10.0.0.1", slices=2))
    deployment.put(an_item(1, "10.0.0.6", key="named/after"))
    deployment.unreadable = KEY
    others = {"named/before": ["10.0.0.5"], "named/after": ["10.0.0.6"]}
    assert deployment.seen() == {KEY: ["10.0.0.1"], **others}
    assert deployment.followed.problem == "no answer"

    deployment.unreadable = ""
    assert deployment.seen() == {KEY: ["10.0.0.1", "10.0.0.2"], **others}
    assert (deployment.followed.problem, deployment.scans) == ("", 1)


def test_only_the_newest_record_of_an_upstream_waits(deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    deployment.seen()
    deployment.items[KEY, 1] = {**an_item(9, "10.0.0.2"), "slice": 1}
    deployment.unreadable = KEY
    for version in range(2, 10):
        deployment.put(an_item(version, "10.0.0.1", slices=2))
        assert deployment.seen() == {KEY: ["10.0.0.1"]}
        before = deployment.tries
        deployment.time += 30.0
        deployment.seen()
        assert deployment.tries - before == 1, "one read, however many records came"
    deployment.unreadable = ""
    deployment.time += 30.0
    assert deployment.seen() == {KEY: ["10.0.0.1", "10.0.0.2"]}


def test_upstream_that_cannot_be_read_is_tried_less_often_and_delays_no_other(deployment: FollowedTable) -> None:
    deployment.put(an_item(1, "10.0.0.1"))
    deployment.seen()
    deployment.put(an_item(2, "10.0.0.1", slices=2))
    deployment.unreadable = KEY
    tried = []
    for second in range(1, 40):
        deployment.time, before = float(second), deployment.tries
        deployment.put(an_item(second, f"10.0.1.{second}", key="named/shop"))
        assert deployment.seen() == {KEY: ["10.0.0.1"], "named/shop": [f"10.0.1.{second}"]}
        assert deployment.followed.problem == "no answer"
        tried += [second] * (deployment.tries - before)
    assert tried == [1, 2, 4, 8, 16, 32]

    deployment.put(an_item(3, "10.0.0.3"))  # it needs no other read
    assert deployment.seen() == {KEY: ["10.0.0.3"], "named/shop": ["10.0.1.39"]}
    assert deployment.followed.problem == ""


def test_upstream_that_is_removed_and_written_again_within_one_read_is_taken_from_the_table(
    deployment: FollowedTable,
) -> None:
    deployment.put(an_item(5, "10.0.0.1"))
    deployment.seen()
    deployment.remove()
    deployment.put(an_item(1, "10.0.0.2"))

    assert deployment.seen() == {KEY: ["10.0.0.2"]}
    deployment.put(an_item(2, "10.0.0.3"))
    assert deployment.seen() == {KEY: ["10.0.0.3"]}
    assert (deployment.scans, deployment.said) == (1, [])
