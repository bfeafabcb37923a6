"""Configurations that change or go while a master runs, and between sessions."""

from __future__ import annotations

from typing import Any

import pytest

from harness.fakes.memory_store import MemoryStore
from harness.hurried import a_hurried_stack
from harness.stack import TOKEN, RunningSession, Stack, a_stack
from kubesync.aws.dynamodb.store import CONTROL, STATE, UPSTREAMS, Key
from kubesync.aws.tables.control.clusters import ClusterConfig, OnDelete
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.upstreams import UpstreamTable
from kubesync.domain.errors import ErrorCode
from kubesync_local.standins.apiserver import ApiServer

WEB = "web.default.svc.prod.example.com A"
DB = "db.default.svc.prod.example.com A"
HOSTNAME = "external-dns.kubernetes.io/hostname"


def fill(api: ApiServer) -> None:
    api.cluster.deploy("default", "web", 2)
    spec = {"ports": [{"name": "http", "port": 80}], "selector": {"app": "web"}}
    api.cluster.expose("default", "web", spec, annotations={HOSTNAME: "www.example.com"})
    api.cluster.expose("default", "db", {**spec, "clusterIP": "None"})


def a_master(stack: Stack, **settings: Any) -> RunningSession:
    running = stack.start(**{"lease_renew_seconds": 0.05, **settings})
    running.wait_for(lambda: {WEB, DB} <= stack.records().keys())
    running.wait_for(lambda: len(stack.upstreams().get("prod/default/web/80/TCP", [])) == 2)
    return running


def change(stack: Stack, name: str = "prod", **fields: Any) -> ClusterConfig:
    """Change a configuration and tell the master."""
    table = stack.application().clusters()
    config = table.get(name)
    assert config is not None
    changed = table.put(ClusterConfig.model_validate({**config.model_dump(), **fields}))
    LeaseTable(stack.store, "0").signal()
    return changed


def nothing_is_remembered(stack: Stack, cluster: str = "prod") -> bool:
    """No configuration, state, claim, queue or listener item of this cluster is left; its fence stays."""
    assert isinstance(stack.store, MemoryStore)
    dump = stack.store.dump()
    left = [
        key
        for key in dump
        if key.table in (STATE, CONTROL) and key.partition.startswith((f"{cluster}#", f"cluster#{cluster}"))
    ]
    claims = [
        key for key, item in dump.items() if str(item.get("owner", item.get("key", ""))).startswith(f"{cluster}/")
    ]
    registered = Key(CONTROL, "clusters", cluster) in dump
    return [key.sort for key in left] == ["fence"] and not claims and not registered


def remains(stack: Stack, cluster: str = "prod") -> tuple[dict[str, Any], dict[str, Any]]:
    records = {k: v for k, v in stack.records().items() if f".{cluster}.example.com" in k or k.startswith("www.")}
    return records, {k: v for k, v in stack.upstreams().items() if k.startswith(f"{cluster}/")}


KILLED: dict[str, ErrorCode | None] = {
    "one session": None,
    "ended cleanly": ErrorCode.WORKER_EXITING,
    "killed": ErrorCode.NOT_MASTER,
}


@pytest.mark.parametrize("interrupted", sorted(KILLED))
@pytest.mark.parametrize("on_delete", list(OnDelete))
def test_removed_cluster_leaves_what_it_was_told_to_leave_over_as_many_sessions_as_it_takes(
    on_delete: OnDelete, interrupted: str
) -> None:
    with a_hurried_stack() as stack, ApiServer(tokens={TOKEN: "admin"}) as other:
        fill(stack.api)
        other.cluster.expose("default", "web", {"ports": [{"port": 80}]}, annotations={HOSTNAME: "www.example.com"})
        stack.add_cluster()
        code = KILLED[interrupted]
        # What the zone does not take is given up soon.
        drain = {} if code is None else {"drain_margin_seconds": 5.0}
        running = a_master(stack, lease_renew_seconds=0.5, **drain)
        running.wait_for(lambda: "www.example.com A" in stack.records())
        stack.add_cluster("stage", server=other.url)
        LeaseTable(stack.store, "0").signal()
        running.wait_for(lambda: stack.problems("stage") == {"default/web": {"NameTaken"}})
        before = remains(stack)
        if code is not None:
            # The zone does not answer: the removal is under way, and cannot be finished.
            stack.r53.faults.throttle(None)
        change(stack, deleting=True, on_delete=on_delete)
        running.wait_for(lambda: running.saw("configuration", cluster="prod", key="ERR_CONFIG_DELETE"))
        if code is not None:
            if on_delete is OnDelete.REMOVE:
                running.wait_for(lambda: remains(stack)[1] == {})
                assert remains(stack)[0] == before[0]
            running.end(code)
            stack.r53.faults.clear()
            running = stack.start(lease_renew_seconds=0.5)
        running.wait_for(lambda: nothing_is_remembered(stack))
        www = "10." if on_delete is OnDelete.REMOVE else before[0]["www.example.com A"]["values"][0]
        if on_delete is OnDelete.REMOVE:
            running.wait_for(lambda: "www.example.com A" in stack.records())
            left = {key for key in remains(stack)[0] if not key.startswith("www.")}
            assert (left, remains(stack)[1]) == (set(), {})
            stored = {u.upstream: u for u in UpstreamTable(stack.store).read_all(["prod"])}
            assert {u.deleted for u in stored.values()} == {True}
            assert {u.items for u in stored.values()} == {1}
            assert stored["prod/default/web/80/TCP"].version > 1
            # The name that the other cluster waited for is its own now.
            running.wait_for(lambda: stack.problems("stage") == {})
        else:
            assert remains(stack) == before
            # kubesync forgot that the set was its own: to the other cluster that waited it is foreign (I3).
            running.wait_for(lambda: stack.problems("stage") == {"default/web": {"Conflict"}})
        assert stack.records()["www.example.com A"]["values"][0].startswith(www)
        assert "web.default.svc.stage.example.com A" in stack.records()
        assert "stage/default/web/80/TCP" in stack.upstreams()
        assert [config.name for config in stack.application().clusters().all()] == ["stage"]
        assert not [
            item
            for item in stack.store.scan(UPSTREAMS)
            if str(item["upstream"]).startswith("stage/") and item.get("deleted")
        ]
        assert running.end().clean


def test_policy_that_forbids_deletions_forbids_them_for_a_removal_too() -> None:
    with a_stack() as stack:
        fill(stack.api)
        stack.add_cluster(policy="upsert-only")
        running = a_master(stack)
        before = remains(stack)
        change(stack, deleting=True, on_delete=OnDelete.REMOVE)
        running.wait_for(lambda: nothing_is_remembered(stack))
        assert remains(stack)[0] == before[0]
        assert running.end().clean
