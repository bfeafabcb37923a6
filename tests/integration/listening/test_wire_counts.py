"""What crosses the wire: writes in proportion to change (I6, I7), batches in proportion to changed record sets."""

import pytest

from harness.fakes.memory_store import Call, MemoryStore
from harness.stack import Stack, a_stack
from harness.waiting import PATIENCE_SECONDS
from kubesync.aws.dynamodb.store import STATE, UPSTREAMS, Check, Put
from kubesync.domain.objects import Resource
from kubesync_local.standins.apiserver import ServerOptions
from kubesync_local.standins.apiserver.objects.resources import SERVICES, Target

WEB = {"ports": [{"name": "http", "port": 80}, {"name": "admin", "port": 8080}], "selector": {"app": "web"}}
# Nothing but the lease is written for an hour, whatever the clock does.
PATIENT = {"lease_seconds": 7200.0, "lease_write_seconds": 7200.0}


def store_of(stack: Stack) -> MemoryStore:
    assert isinstance(stack.store, MemoryStore)
    return stack.store


def besides_the_lease(stack: Stack) -> list[Call]:
    """Requests to DynamoDB, those to the lease item and the epoch left out."""
    return [
        call
        for call in list(store_of(stack).calls)
        if not any(key.partition.startswith("lease") for key in (*call.keys, *(a.key for a in call.actions)))
    ]


def forget_calls(stack: Stack) -> int:
    """Count from now on; returns the number of requests that Route 53 has seen."""
    store_of(stack).calls.clear()
    return len(stack.r53.calls)


def writes(calls: list[Call]) -> list[Call]:
    return [call for call in calls if call.actions]


def keys_written(calls: list[Call]) -> list[str]:
    """Sort keys of everything that was put, updated or deleted, in order."""
    return [str(action.key.sort) for call in calls for action in call.actions if not isinstance(action, Check)]


def test_four_scalings_in_one_window_make_one_write_per_upstream() -> None:
    with a_stack() as stack:
        cluster = stack.api.cluster
        cluster.deploy("default", "web", 2)
        cluster.expose("default", "web", WEB)
        stack.add_cluster()
        first = stack.start()
        first.wait_for(stack.at_rest)
        assert first.end().clean
        assert {len(nodes) for nodes in stack.upstreams().values()} == {1, 2}
        assert "web.default.svc.prod.example.com A" in stack.records()
        for replicas in (3, 5, 1, 4):
            cluster.scale("default", "web", replicas)
        # A window that does not close by itself before the session ends: all four are in it.
        running = stack.start(window_seconds=60)
        running.wait_for(lambda: running.delivered(Resource.ENDPOINTSLICES) >= 4)
        batches = forget_calls(stack)
        running.end()
        assert running.received() >= 4
        put = [a for call in besides_the_lease(stack) for a in call.actions if a.key.table == UPSTREAMS]
        assert sorted(action.key.partition for action in put) == [
            "prod/default/web/80/TCP",
            "prod/default/web/8080/TCP",
        ]
        assert all(isinstance(action, Put) and action.item["version"] == 2 for action in put)
        written = [c for c in writes(besides_the_lease(stack)) if any(a.key.table == UPSTREAMS for a in c.actions)]
        assert len(written) == 1
        assert not any(
            a.key.table == STATE for c in writes(besides_the_lease(stack)) if c not in written for a in c.actions
        )
        assert len(stack.upstreams()["prod/default/web/80/TCP"]) == 4
        assert len(stack.r53.calls) == batches


def test_i6_window_without_effect_writes_nothing_but_a_checkpoint_every_30_s() -> None:
    """I6: a label change leads to the same outputs."""
    with a_stack() as stack:
        cluster = stack.api.cluster
        cluster.expose("default", "web", WEB)
        stack.add_cluster()
        running = stack.start(**PATIENT)
        running.wait_for(stack.at_rest)
        # A bookmark is for watches that have begun, not for those that were asked for.
        stack.api.requests.wait_for(lambda seen: [r.status for r in seen if r.verb == "watch"] == [200, 200])
        assert "web.default.svc.prod.example.com A" in stack.records()
        assert "prod/default/web/80/TCP" in stack.upstreams()
        calls_before = forget_calls(stack)

        def change_label(value: str) -> None:
            wanted = running.received() + 1
            stack.api.writer.patch(
                Target(SERVICES, "default", "web"), {"metadata": {"labels": {"colour": value, "size": value}}}
            )
            running.wait_for(lambda: running.received() >= wanted)

        stack.api.bookmark()
        change_label("green")
        change_label("red")
        assert writes(besides_the_lease(stack)) == []
        stack.clock.advance(31)
        change_label("blue")
        (checkpoint,) = writes(besides_the_lease(stack))
        assert keys_written([checkpoint]) == ["checkpoint#services"]
        change_label("white")
        assert writes(besides_the_lease(stack)) == [checkpoint]
        assert len(stack.r53.calls) == calls_before
        report = running.end()
        assert report.listeners[0].bookmarks == 1


@pytest.mark.parametrize("services", [3, 300])
def test_i7_resumed_session_without_events_asks_little_whatever_the_size_of_the_cluster(services: int) -> None:
    """I7: no list, no call to Route 53, at most 20 requests to DynamoDB, hand-over and end included."""
    with a_stack() as stack:
        create_services(stack, services)
        stack.add_cluster()
        first = stack.start()
        first.wait_for(lambda: len(stack.upstreams()) == services + 1)
        assert first.end().clean
        stack.api.requests.clear()
        calls_before = forget_calls(stack)
        second = stack.start()
        stack.api.requests.wait_for_count(2, verb="watch")
        report = second.end()
        assert report.took_over == "clean hand-over"
        assert stack.api.requests.all(verb="list") == []
        assert len(stack.r53.calls) == calls_before
        assert len(besides_the_lease(stack)) <= 20
        assert not [call for call in store_of(stack).calls if call.operation == "scan"]


@pytest.mark.thorough
def test_changed_single_valued_sets_of_one_window_go_in_the_fewest_batches() -> None:
    """1,200 changes of two elements each, 998 elements a batch beside the journal: ceil(2 * 1200 / 998) = 3 batches."""
    with a_stack(ServerOptions(ipv6_cidr=None)) as stack:
        create_services(stack, 1200)
        stack.add_cluster()
        first = stack.start()
        first.wait_for(stack.at_rest)
        assert first.end().clean
        assert (len(stack.r53.batches()), len(stack.records())) == (2, 1200 + 2)
        patch = {"metadata": {"annotations": {"external-dns.kubernetes.io/ttl": "90"}}}
        for number in range(1200):
            stack.api.writer.patch(Target(SERVICES, "default", f"web-{number}"), patch)
        # A window that does not close by itself before the session ends: all of them are in it.
        forget_calls(stack)
        before = len(stack.r53.batches())
        running = stack.start(window_seconds=60, drain_margin_seconds=PATIENCE_SECONDS)
        running.wait_for(lambda: running.delivered(Resource.SERVICES) == 1200)
        assert running.end().clean
        assert running.received() == 1200
        assert sum(record["ttl"] == 90 for record in stack.records().values()) == 1200
        batches = stack.r53.batches()[before:]
        assert [batch.accepted for batch in batches] == [True, True, True]
        assert [len(batch.changes) for batch in batches] == [1000, 1000, 2400 - 2 * 998 + 2]
        # 4,800 actions: each key and its open mark when it is recorded, and again when it is closed; 80 or more a transaction.
        moved = [c for c in writes(besides_the_lease(stack)) if any("#open#" in a.key.partition for a in c.actions)]
        assert len(moved) <= 60


def create_services(stack: Stack, count: int) -> None:
    """So many ClusterIP services of one port without a name: one record set each on a cluster with IPv4 only."""
    for number in range(count):
        body = {"metadata": {"name": f"web-{number}"}, "spec": {"ports": [{"port": 80}]}}
        stack.api.writer.create(Target(SERVICES, "default"), body)
