"""What ``kubesync status`` says of a whole deployment where no alarm can go off."""

import re
from typing import Any

import pytest

from harness.seen.builders import a_service
from harness.watched_deployment import WatchedDeployment
from kubesync.aws.dynamodb.store import CONTROL, Key
from kubesync.domain.errors import ConnectError
from simulation.writes import RECORD

_UNGUARDED = "Service default/kubernetes cannot be read: if another cluster answers at this address, nobody notices"


def seen(*, identity: bool, **config: Any) -> str:
    watched = WatchedDeployment(**config)
    if identity:
        watched.cluster.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")
    watched.want("web", "10.0.0.2")
    before = watched.status()
    assert _UNGUARDED not in before, "nobody has asked yet"
    watched.schedule(1)
    said = watched.status()
    watched.close()
    return said


@pytest.mark.parametrize("scope", [{"namespaces": ("shop",)}, {"selector": "dns=yes"}])
def test_i5_guard_that_is_off_is_said(scope: dict[str, Any]) -> None:
    assert _UNGUARDED in seen(identity=False, **scope)


@pytest.mark.parametrize(("identity", "scope"), [(True, {"namespaces": ("shop",)}), (False, {}), (True, {})])
def test_i5_guard_that_is_on_is_not_mentioned(*, identity: bool, scope: dict[str, Any]) -> None:
    assert _UNGUARDED not in seen(identity=identity, **scope)


def test_i5_deletions_by_inference_stand_beside_their_limit() -> None:
    watched = WatchedDeployment()
    watched.cluster.apply("kubernetes", a_service(cluster_ips=("10.0.0.1",)), namespace="default")
    for number in range(19):
        watched.want(f"s{number}", f"10.0.1.{number}")
    watched.schedule(2)
    for gone in (["s0", "s1"], ["s2"]):
        watched.break_api(ConnectError("refused"))
        for name in gone:
            watched.delete(name)
        watched.cluster.compact()
        watched.mend_api()
        watched.schedule(2)
    said = "3 of at most 6 services went by lists within the last hour; further ones would be held back"
    assert said in watched.status()
    watched.end()
    assert said in watched.status(), "no session runs"
    watched.schedule(61)
    assert "went by lists" not in watched.status()
    assert "InferredDeletions" not in watched.raised()
    watched.close()


@pytest.mark.parametrize("listed", [False, True], ids=["events", "a list"])
def test_i10_how_long_the_oldest_event_waits_for_its_turn_is_told(*, listed: bool) -> None:
    watched = WatchedDeployment(domain_filter=("example.com",))
    watched.want("web", "10.0.0.2")
    watched.schedule(2)
    assert watched.cloud.seen("TurnWaitSeconds") == {}
    watched.at(RECORD, lambda: watched.hold(8.0), times=None)
    if listed:
        watched.break_api(ConnectError("refused"))
    for number in range(1000):
        watched.apply(f"h{number}", a_service(cluster_ips=("10.9.0.1",)), namespace="evil")
    if listed:
        watched.cluster.compact()
        watched.mend_api()
    watched.schedule(6)
    assert "TurnsLate" in watched.alarms
    (seconds,) = re.findall(
        r"event of namespace evil of cluster prod has waited (\d+) s for its turn", watched.status()
    )
    assert 180 < int(seconds) <= 360
    watched.spare()
    watched.schedule(7)
    assert watched.alarms == set()
    assert "has waited" not in watched.status()
    item = watched.items(CONTROL)[Key(CONTROL, "lease#0", "lease")]
    assert item["turn"] == []
    watched.end()
    watched.close()


def test_i5_many_deletions_raise_an_alarm_whatever_their_reason() -> None:
    watched = WatchedDeployment(parameters={"DeletionsAlarmRecordSets": 8})
    for number in range(12):
        watched.want(f"s{number}", f"10.0.1.{number}")
    watched.want("cname", cname="other.example.org.")
    watched.schedule(16)
    for number in range(7):  # told by events, one a minute
        watched.want("s11", f"10.0.2.{number}")  # changes are no deletions, nor is another type
        watched.want("cname", *(() if number % 2 else ("10.0.0.9",)), cname="other.example.org." if number % 2 else "")
        watched.delete(f"s{number}")
        watched.schedule(1)
    assert watched.alarms == set()
    watched.delete("s8")
    watched.schedule(8)
    assert watched.alarms == {"Deletions"}
    assert sum(value for values in watched.cloud.seen("RecordSetsDeleted").values() for value in values) == 8.0
    watched.schedule(60)
    assert watched.alarms == set()
    watched.close()
