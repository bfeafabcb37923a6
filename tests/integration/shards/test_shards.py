"""Several shards side by side: whose clusters a session serves, who gets a name, and which alarm says that a shard has no master."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.cloudwatch import CloudWatch
from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.dynamodb.store import CONTROL
from kubesync.domain.report import SessionReport
from kubesync.telemetry.metrics import MetricsPublisher

HOSTNAME = "external-dns.kubernetes.io/hostname"
TWO_SHARDS: dict[str, Any] = {"shards": 2, "control_seconds": 0.2}


@pytest.fixture
def stack() -> Iterator[Stack]:
    with a_stack() as made:
        made.add_cluster("a", shard="0", namespaces=("a",))
        made.add_cluster("b", shard="1", namespaces=("b",))
        yield made


def ask_for(stack: Stack, namespace: str, name: str) -> None:
    spec = {"ports": [{"port": 80}], "clusterIP": "10.68.1.7" if namespace == "a" else "10.68.1.8"}
    stack.api.cluster.expose(namespace, "web", spec, annotations={HOSTNAME: name})


def heirs(stack: Stack) -> list[Any]:
    return list(stack.store.query(CONTROL, "heirs"))


def shared(stack: Stack) -> list[str] | None:
    found = stack.records().get("www.example.com A")
    return None if found is None else found["values"]


def begin(stack: Stack) -> tuple[RunningSession, RunningSession]:
    first, second = stack.start(**TWO_SHARDS), stack.start(shard="1", **TWO_SHARDS)
    ask_for(stack, "a", "www.example.com")
    first.wait_for(lambda: shared(stack) == ["10.68.1.7"])
    ask_for(stack, "b", "www.example.com")
    second.wait_for(lambda: "NameTaken" in stack.problems("b").get("b/web", set()))
    return first, second


def test_each_session_serves_the_clusters_of_its_shard_in_the_same_zone(stack: Stack) -> None:
    ask_for(stack, "a", "a.example.com")
    ask_for(stack, "b", "b.example.com")
    first = stack.start(**TWO_SHARDS)
    first.wait_for(lambda: "a.example.com A" in stack.records() and stack.at_rest("a"))
    assert "b.example.com A" not in stack.records()
    second = stack.start(shard="1", **TWO_SHARDS)
    second.wait_for(lambda: "b.example.com A" in stack.records() and stack.at_rest("b"))
    assert [each.end().clean for each in (first, second)] == [True, True]
    journals = [key.name for key, _ in stack.zones.walk(stack.zone_id) if key.name.startswith("_kubesync-")]
    assert journals == ["_kubesync-test-0.example.com", "_kubesync-test-1.example.com"]


def test_i1_heir_in_another_shard_is_found_by_that_shards_master(stack: Stack) -> None:
    first, second = begin(stack)
    stack.api.cluster.delete_service("a", "web")
    second.wait_for(lambda: shared(stack) == ["10.68.1.8"])
    second.wait_for(lambda: heirs(stack) == [] and stack.at_rest("b"))
    assert stack.problems("b") == {}
    assert first.end().clean
    assert second.end().clean


def test_i1_heir_whose_master_is_not_there_keeps_its_note_until_one_comes(stack: Stack) -> None:
    first, second = begin(stack)
    assert second.end().clean
    stack.api.cluster.delete_service("a", "web")
    first.wait_for(lambda: shared(stack) is None and len(heirs(stack)) == 1 and stack.at_rest("a"))
    (note,) = heirs(stack)
    assert (note["key"], note["zone_id"], note["name"]) == ("b/b/web", stack.zone_id, "www.example.com")
    # The name has an owner: nobody gets in between.
    ask_for(stack, "a", "www.example.com")
    first.wait_for(lambda: "NameTaken" in stack.problems("a").get("a/web", set()))
    third = stack.start(shard="1", **TWO_SHARDS)
    third.wait_for(lambda: shared(stack) == ["10.68.1.8"])
    third.wait_for(lambda: heirs(stack) == [])
    assert first.end().clean
    assert third.end().clean


def test_only_one_shard_asks_for_no_notes(stack: Stack) -> None:
    running = stack.start(control_seconds=0.2)
    running.wait_for(lambda: stack.at_rest("a"))
    assert running.end().clean
    assert not [call for call in stack.store.calls if call.partition == "heirs"]  # type: ignore[attr-defined]


def test_i10_one_shard_without_a_master_raises_its_alarm_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    """Four masters beat; then one is killed. In the sum of all, nobody would see it."""
    epoch = 1_800_000_000.0
    cloud = CloudWatch({"Shards": 4}, epoch)
    beats = [{"service": "kubesync-test", **({"shard": str(n)} if n else {})} for n in range(4)]
    for of_shard in beats:
        cloud.put("kubesync", "MasterHeartbeat", of_shard, 1, epoch - 60)
    alive = {"", "1", "2", "3"}
    for minute in range(14):
        if minute == 6:
            alive.remove("3")
        for shard in sorted(alive):
            MetricsPublisher("test", shard=shard).beat(SessionReport("s", steady=True))
        said = capsys.readouterr().out
        assert all(json.loads(line) for line in said.splitlines())
        cloud.lines(said, epoch + 60 * minute)
        cloud.evaluate(epoch + 60 * minute + 59)
        assert cloud.on == ({"NoMasterShard3"} if minute >= 11 else set()), minute
