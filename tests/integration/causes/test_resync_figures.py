"""What full resyncs say to alarms: how long ago the last one was, and what the scheduled one found."""

import pytest

from harness.watched_deployment import WatchedDeployment
from kubesync.aws.dynamodb.store import CONTROL, Key
from kubesync.aws.tables.control.resync_requests import new_request
from kubesync.domain.errors import ConnectError
from simulation.writes import RECORD

LEASE = Key(CONTROL, "lease#0", "lease")


@pytest.fixture
def watched() -> WatchedDeployment:
    made = WatchedDeployment()
    made.want("web", "10.0.0.1")
    made.schedule(2)
    return made


def differences(watched: WatchedDeployment) -> list[float]:
    return [value for values in watched.cloud.seen("ResyncDifferences").values() for value in values]


def hours(watched: WatchedDeployment) -> float:
    return list(watched.cloud.seen("HoursSinceResync").values())[-1][-1]


def noted(watched: WatchedDeployment) -> object:
    item = watched.world.store.peek(LEASE)
    assert item is not None
    return item["resynced_at_ms"]


def lose_an_event(watched: WatchedDeployment, name: str) -> None:
    """The watch passes a change by, and tells a later one of another object."""
    watched.want(name, "10.0.0.9")
    watched.cluster.history.pop()
    watched.want("later", "10.0.0.3")
    watched.pass_time(5.0)


@pytest.mark.parametrize("name", ["web", "new"])
def test_i10_change_that_no_watch_has_told_is_counted(watched: WatchedDeployment, name: str) -> None:
    lose_an_event(watched, name)
    (cluster,) = watched.resync(scheduled=True)["clusters"]
    assert (cluster["changed_keys"], cluster["missed_keys"]) == (1, 1)
    watched.schedule(2)
    assert (differences(watched), watched.alarms) == ([1.0], {"ResyncDifferences"})
    assert watched.sets()[f"{name} A"] == ("10.0.0.9",)
    watched.resync(scheduled=True)
    watched.schedule(2)
    assert (differences(watched), watched.alarms) == ([1.0, 0.0], set())
    watched.close()


def test_i10_record_set_that_was_changed_by_hand_is_counted(watched: WatchedDeployment) -> None:
    watched.by_hand("UPSERT", "web", "A", "192.0.2.1")
    (cluster,) = watched.resync(scheduled=True)["clusters"]
    assert (cluster["missed_keys"], cluster["counts"]["drift"]) == (0, 1)
    watched.schedule(2)
    assert watched.alarms == {"ResyncDifferences"}
    watched.close()


def test_i10_changes_under_way_are_no_differences(watched: WatchedDeployment) -> None:
    watched.at(RECORD, lambda: watched.hold(2.0), times=None)
    for number in range(8):
        watched.want(f"s{number}", f"10.0.1.{number}")
    changed = 0
    for round_ in range(3):
        watched.want("web", f"10.0.2.{round_}")  # read, or not even that, when the list comes
        (cluster,) = watched.resync(scheduled=True)["clusters"]
        changed += cluster["changed_keys"]
        assert cluster["missed_keys"] == 0
    assert changed > 0
    watched.spare()
    watched.schedule(2)
    assert (differences(watched), watched.raised()) == ([0.0, 0.0, 0.0], set())
    watched.close()


def test_deletions_that_are_held_and_come_back_are_not_counted() -> None:
    watched = WatchedDeployment()
    for number in range(20):
        watched.want(f"s{number}", f"10.0.1.{number}")
    watched.schedule(2)
    live = dict(watched.cluster.live)
    watched.cluster.live.clear()
    assert watched.resync(scheduled=True)["clusters"][0]["held_counts"] == {"services": 20}
    watched.cluster.live.update(live)
    watched.schedule(2)
    (cluster,) = watched.resync(scheduled=True)["clusters"]
    assert (cluster["changed_keys"], cluster["missed_keys"]) == (20, 0)
    watched.close()


def test_i10_persons_resync_ends_the_alarm_and_raises_none(watched: WatchedDeployment) -> None:
    watched.by_hand("UPSERT", "web", "A", "192.0.2.1")
    watched.resync()
    watched.schedule(2)
    assert (differences(watched), watched.alarms) == ([], set())
    watched.by_hand("UPSERT", "web", "A", "192.0.2.1")
    watched.resync(scheduled=True)
    watched.schedule(2)
    assert watched.alarms == {"ResyncDifferences"}
    watched.resync()
    watched.schedule(2)
    assert (differences(watched), watched.alarms) == ([1.0, 0.0], set())
    watched.close()


def test_i10_hours_count_from_the_last_resync_without_an_error_whichever_session_did_it(
    watched: WatchedDeployment,
) -> None:
    first = noted(watched)
    watched.schedule(150)
    assert (hours(watched), noted(watched)) == (2.0, first)
    watched.break_api(ConnectError("connection refused"))
    watched.resync()
    watched.mend_api()
    watched.schedule(20)
    assert (hours(watched), noted(watched)) == (2.0, first), "it failed"
    watched.end()
    request = new_request("own", "", watched.epoch, dry_run=False, force=False)
    running = watched.world.new_session(watched.world.new_gate(), resync=request)
    running.start()
    assert running.wait() is not None
    watched.schedule(20)
    assert noted(watched) != first
    assert hours(watched) == 0.0
    watched.schedule(50)
    assert hours(watched) == 1.0
    watched.close()


def test_i10_resync_of_one_cluster_is_none_of_all(watched: WatchedDeployment) -> None:
    first = noted(watched)
    watched.resync("prod")
    watched.schedule(20)
    assert noted(watched) == first
    watched.close()
