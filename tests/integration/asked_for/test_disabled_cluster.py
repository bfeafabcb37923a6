"""A disabled cluster: nobody watches it, nothing that it has led to changes, and once enabled it catches up."""

import json
from typing import Any

from harness.fakes.memory_store import MemoryStore
from harness.stack import TOKEN, RunningSession, Stack, a_stack
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.state import StateTable
from kubesync_local.standins.apiserver import ApiServer
from kubesync_local.workplace.readings import ListenerReadings
from kubesync_local.workplace.registry import ClusterRegistry

WEB = "web.default.svc.prod.example.com A"
SPEC = {"ports": [{"port": 80}], "selector": {"app": "web"}}


def change(stack: Stack, name: str = "prod", **fields: Any) -> None:
    table = ClusterRegistry(stack.application().store())
    config = table.get(name)
    assert config is not None
    table.put(ClusterConfig.model_validate({**config.model_dump(), **fields}))
    LeaseTable(stack.store, "0").signal()


def a_master(stack: Stack) -> RunningSession:
    stack.api.cluster.deploy("default", "web", 2)
    stack.api.cluster.expose("default", "web", SPEC)
    stack.add_cluster()
    running = stack.start(lease_renew_seconds=0.05)
    running.wait_for(lambda: WEB in stack.records() and len(stack.upstreams().get("prod/default/web/80/TCP", [])) == 2)
    running.wait_for(stack.at_rest)
    return running


def outputs(stack: Stack) -> str:
    """Everything that the cluster has led to, versions included."""
    assert isinstance(stack.store, MemoryStore)
    state = {str(k): v for k, v in stack.store.dump().items() if k.table in ("state", "upstreams")}
    return json.dumps([stack.records(), state], default=str, sort_keys=True)


def disabled(stack: Stack, running: RunningSession) -> None:
    change(stack, disabled=True)
    running.wait_for(lambda: running.saw("configuration", cluster="prod", key="ERR_CONFIG_UPDATE"))
    running.wait_for(lambda: all(r.ended for r in stack.api.requests.all(verb="watch")))


def test_disabled_cluster_stays_as_it_is_over_sessions_and_catches_up_when_it_is_enabled() -> None:
    with a_stack() as stack:
        running = a_master(stack)
        disabled(stack, running)
        ended = {"services": "ERR_CONFIG_UPDATE", "endpointslices": "ERR_CONFIG_UPDATE"}
        errors = ListenerReadings(stack.store).errors
        running.wait_for(lambda: {r.value: e.ended["key"] for r, e in errors("prod").items() if e.ended} == ended)
        before = outputs(stack)
        stack.api.requests.clear()
        stack.api.cluster.scale("default", "web", 5)
        stack.api.cluster.expose("default", "new", {"ports": [{"port": 80}]})
        # Neither the running master nor the next one does anything about it.
        assert running.end().clean
        report = stack.run(lambda running: running.saw("master"))
        assert report.clean
        assert report.listeners == []
        assert [r.path for r in stack.api.requests.all() if r.user == "admin"] == []
        assert outputs(stack) == before
        running = stack.start(lease_renew_seconds=0.05)
        change(stack, disabled=False)
        running.wait_for(lambda: "new.default.svc.prod.example.com A" in stack.records())
        running.wait_for(lambda: len(stack.upstreams()["prod/default/web/80/TCP"]) == 5)
        assert running.end().clean


def test_what_is_open_when_a_cluster_is_disabled_stays_open_and_goes_on_when_it_is_enabled() -> None:
    with a_stack() as stack:
        running = a_master(stack)
        stack.r53.faults.throttle(None)
        sent = len(stack.r53.calls)
        stack.api.cluster.expose("default", "early", {"ports": [{"port": 80}]})
        running.wait_for(lambda: len(stack.r53.calls) > sent)  # its batch is under way: that one lands
        stack.api.cluster.expose("default", "late", {"ports": [{"port": 80}]})
        running.wait_for(lambda: len(list(StateTable(stack.store).open_keys("prod"))) == 2)
        disabled(stack, running)
        stack.r53.faults.clear()
        running.end()
        report = stack.run(lambda running: running.saw("master"))
        assert report.clean
        assert "late.default.svc.prod.example.com A" not in stack.records()
        assert [key.name for key, _ in StateTable(stack.store).open_keys("prod")] == ["late"]
        running = stack.start(lease_renew_seconds=0.05)
        change(stack, disabled=False)
        running.wait_for(lambda: "late.default.svc.prod.example.com A" in stack.records())
        running.wait_for(lambda: not any(StateTable(stack.store).open_keys("prod")))
        assert running.end().clean


def test_disabled_cluster_holds_up_no_other_and_full_resyncs_leave_it_out() -> None:
    with a_stack() as stack, ApiServer(tokens={TOKEN: "admin"}) as other:
        running = a_master(stack)
        other.cluster.expose("default", "web", SPEC)
        stack.add_cluster("stage", server=other.url)
        disabled(stack, running)
        running.wait_for(lambda: "web.default.svc.stage.example.com A" in stack.records())
        assert running.end().clean
        stack.by_hand("DELETE", "web.default.svc.prod.example.com", "A", stack.records()[WEB]["values"][0])
        whole = stack.resync(ResyncRequest("2026-11-28T00:00:00.000Z#one", "", dry_run=False, force=False, at_ms=0))
        assert [cluster["cluster"] for cluster in whole["clusters"]] == ["stage"]
        named = stack.resync(ResyncRequest("2026-11-28T00:00:00.000Z#two", "prod", dry_run=False, force=True, at_ms=0))
        assert named["clusters"] == [
            {
                "cluster": "prod",
                "error": "cluster prod is disabled: `kubesync cluster enable prod`, then run it again",
            }
        ]
        assert WEB not in stack.records()
