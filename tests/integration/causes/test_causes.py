"""Each cause is driven on a whole deployment: which alarms go off, how soon, what ``status`` says, and that all end with the cause (I10)."""

import pytest

from harness.causes.table import CAUSES
from harness.seen.builders import a_service
from harness.watched_deployment import WatchedDeployment
from kubesync.aws.dynamodb.store import CONTROL, Delete, Key, Put

# Longer than a session: what goes on is on at every hand-over.
_GOES_ON: int = 20


@pytest.mark.parametrize("name", CAUSES)
def test_i10_cause_shows(name: str) -> None:
    cause = CAUSES[name]
    watched = cause.new()
    try:
        watched.want("web", "10.0.0.1")
        watched.schedule(3 if watched.every == 1 else 15)
        assert watched.alarms == set(), "it works before"
        cause.play(watched)
        minutes = 0
        while minutes < cause.minutes and not cause.alarms <= watched.alarms:
            watched.schedule(1)
            minutes += 1
        assert watched.alarms >= cause.alarms, f"within {cause.minutes} minutes"
        watched.schedule(_GOES_ON * watched.every if cause.alarms else cause.minutes)
        assert watched.alarms == cause.alarms, "all the time"
        assert watched.raised() == cause.alarms
        for alarm in cause.alarms:
            assert [state for _, state in watched.cloud.alarms[alarm].changes].count("ALARM") == 1, (
                f"{alarm} goes off once"
            )
        assert cause.status in watched.status()
        cause.mend(watched)
        watched.schedule(cause.recovers)
        assert watched.alarms == set(), "it is mended"
    finally:
        watched.close()


def _busy(watched: WatchedDeployment, minutes: int) -> None:
    for minute in range(minutes):
        watched.want(f"s{minute % 7}", f"10.0.2.{minute}")
        watched.schedule(1)


@pytest.mark.parametrize("busy", [False, True])
def test_i10_healthy_deployment_raises_no_alarm_for_an_hour(*, busy: bool) -> None:
    watched = WatchedDeployment()
    watched.want("web", "10.0.0.1")
    if busy:
        _busy(watched, 60)
    else:
        watched.schedule(60)
    assert watched.world.sessions == 4
    assert watched.raised() == set()
    told = watched.cloud.seen("ListenersFailing")
    assert len(told) > 50
    assert {value for values in told.values() for value in values} == {0.0}
    watched.close()


def test_i10_twenty_standing_conflicts_raise_no_alarm() -> None:
    watched = WatchedDeployment()
    for number in range(20):
        watched.by_hand("CREATE", f"s{number}", "A", "192.0.2.1")
        watched.want(f"s{number}", f"10.0.1.{number}")
    watched.schedule(60)
    assert watched.raised() == set()
    assert watched.cloud.seen("WaitingForPerson")[50] == [20.0]
    assert watched.cloud.seen("OpenKeys")[50] == [0.0]
    assert "20 wait for a person" in watched.status()
    watched.close()


def test_i10_first_list_of_many_clusters_raises_no_alarm() -> None:
    watched = WatchedDeployment()
    for number in range(12):
        made = watched.add_cluster(f"c{number}")
        for service in range(20):
            made.apply(f"s{service}", a_service(cluster_ips=(f"10.{number}.0.{service + 1}",), ports=()))
    watched.schedule(20)
    assert watched.raised() == set()
    watched.close()


@pytest.mark.parametrize("counter", [None, 1])
def test_i10_lost_counter_of_epochs_is_raised_and_nobody_is_woken(counter: int | None) -> None:
    place = Key(CONTROL, "lease", "epoch")
    watched = WatchedDeployment()
    watched.store.write(Put(place, {"value": 500}))
    watched.want("web", "10.0.0.1")
    watched.schedule(30)
    watched.end()
    watched.store.write(Delete(place) if counter is None else Put(place, {"value": counter}))
    watched.schedule(5)
    watched.want("web", "10.0.0.2")
    watched.schedule(15)
    assert watched.sets()["web A"] == ("10.0.0.2",)
    assert watched.raised() == set()
    watched.close()


LENGTHS = [
    (60, 1),
    (840, 1),
    (840, 10),
    *(pytest.param(*each, marks=pytest.mark.thorough) for each in ((90, 1), (300, 1), (60, 10), (840, 60))),
]


@pytest.mark.parametrize(("seconds", "every"), LENGTHS)
def test_i10_sessions_of_any_length_beat_often_enough(seconds: int, every: int) -> None:
    slow = {"NoMasterMinutes": max(3, 2 * every)}
    watched = WatchedDeployment(every=every, parameters=slow, settings={"max_runtime_seconds": seconds})
    watched.want("web", "10.0.0.1")
    watched.schedule(120)
    assert watched.raised() == set()
    beats = watched.cloud.seen("MasterHeartbeat")
    assert max(len(values) for values in beats.values()) == 1, "none is counted twice"
    watched.close()


def test_i10_session_that_is_ended_within_a_minute_has_no_heartbeat_and_is_counted() -> None:
    watched = WatchedDeployment()
    watched.start()
    watched.pass_time(50.0)
    watched.lose_lease()
    watched.schedule(0.5)
    assert list(watched.cloud.seen("MasterHeartbeat")) == [-1]
    assert watched.cloud.seen("SessionsCutShort") == {1: [1.0]}
    watched.close()


def test_i10_session_that_is_ended_after_a_minute_is_not_cut_short() -> None:
    watched = WatchedDeployment()
    watched.start()
    watched.pass_time(61.5)
    watched.lose_lease()
    watched.schedule(0.5)
    assert watched.cloud.seen("MasterHeartbeat")[1] == [1.0, 1.0]
    assert watched.cloud.seen("SessionsCutShort") == {}
    watched.close()
