"""Removal of clusters whose record sets are not as kubesync knows them, or are just on their way (I1, I3)."""

from typing import Any

import pytest

from harness.fakes.memory_store import MemoryStore
from harness.fakes.route53 import wire_change
from harness.hurried import a_hurried_stack
from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.dynamodb.store import CONTROL, STATE, Key, Store
from kubesync.aws.tables.control.clusters import ClusterConfig, OnDelete
from kubesync.aws.tables.control.lease import LeaseTable
from kubesync.aws.tables.state import StateTable
from kubesync_local.standins.route53.http_api.faults import Call
from kubesync_local.workplace.registry import ClusterRegistry

NAMES = [f"s{number}" for number in range(4)]
WEB = "web.default.svc.prod.example.com A"


def expose(stack: Stack, *names: str) -> None:
    for name in names:
        stack.api.cluster.expose("default", name, {"ports": [{"port": 80}]})


def settled(stack: Stack, **settings: float) -> RunningSession:
    """A session that has written what the API server's own Service leads to, and is quiet."""
    stack.add_cluster()
    running = stack.start(**settings)
    running.wait_for(lambda: bool(stack.records()) and is_closed(stack.store))
    return running


def is_closed(store: Store) -> bool:
    """No key is open."""
    return not any(StateTable(store).open_keys("prod"))


def change(stack: Stack, name: str = "prod", **fields: Any) -> ClusterConfig:
    """Change a configuration and tell the master."""
    table = ClusterRegistry(stack.application().store())
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


def tries_of(stack: Stack, name: str) -> list[Call]:
    """Batches that change this name."""
    wanted = name.split(" ")[0] + "."
    return [call for call in stack.r53.batches() if any(c.record_set.key.name == wanted for c in call.changes)]


def dns(name: str) -> str:
    return f"{name}.default.svc.prod.example.com"


def a_master_of_four(stack: Stack) -> RunningSession:
    running = settled(stack, lease_renew_seconds=0.5)
    expose(stack, *NAMES)
    running.wait_for(lambda: {f"{dns(name)} A" for name in NAMES} <= stack.records().keys())
    running.wait_for(lambda: is_closed(stack.store))
    return running


@pytest.mark.parametrize("when", ["running", "between"])
def test_i3_removal_ends_though_sets_were_changed_by_hand_and_leaves_what_is_not_ours(when: str) -> None:
    with a_hurried_stack() as stack:
        running = a_master_of_four(stack)
        changed, gone, replaced, _ = NAMES
        stack.by_hand("UPSERT", dns(changed), "A", "192.0.2.9", ttl=5)
        stack.change_by_hand(_deletion(stack, gone))
        stack.change_by_hand(_deletion(stack, replaced))
        weighted: dict[str, Any] = dict(wire_change("CREATE", dns(replaced), "A", ["192.0.2.7"]))
        weighted["ResourceRecordSet"] = {**weighted["ResourceRecordSet"], "SetIdentifier": "theirs", "Weight": 1}
        stack.change_by_hand(weighted)
        stack.by_hand("CREATE", "foreign.prod.example.com", "A", "192.0.2.8")
        if when == "between":
            assert running.end().clean
        change(stack, deleting=True)
        if when == "between":
            running = stack.start(lease_renew_seconds=0.5)
        running.wait_for(lambda: nothing_is_remembered(stack))
        left = {name.split(" ")[0] for name in stack.records()}
        assert left == {dns(replaced), "foreign.prod.example.com"}
        assert running.end().clean


def _deletion(stack: Stack, name: str) -> dict[str, object]:
    stands = stack.records()[f"{dns(name)} A"]
    return dict(wire_change("DELETE", dns(name), "A", stands["values"], ttl=stands["ttl"]))


@pytest.mark.parametrize("lands", [True, False])
@pytest.mark.parametrize("on_delete", list(OnDelete))
def test_i1_removal_waits_for_a_batch_of_the_cluster_that_is_under_way(on_delete: OnDelete, *, lands: bool) -> None:
    with a_hurried_stack() as stack:
        running = settled(stack, lease_renew_seconds=0.5)
        stack.r53.faults.delay(None)
        expose(stack, "web")
        running.wait_for(lambda: len(tries_of(stack, WEB)) >= 1)
        change(stack, deleting=True, on_delete=on_delete)
        running.wait_for(lambda: running.saw("configuration", cluster="prod", key="ERR_CONFIG_DELETE"))
        # With `retain` its keys are forgotten only once nothing of it is under way.
        emptied = on_delete is OnDelete.REMOVE
        running.wait_for(lambda: any(s.parts for s in StateTable(stack.store).load_all("prod")) is not emptied)
        assert ClusterRegistry(stack.store).get("prod") is not None, "forgotten with a batch in the air"
        if lands:
            assert stack.r53.release()[0].accepted
        stack.r53.faults.clear()
        running.wait_for(lambda: nothing_is_remembered(stack))
        assert not any(call.accepted for call in stack.r53.release())
        if on_delete is OnDelete.REMOVE:
            assert stack.records() == {}
        else:
            assert WEB in stack.records()
        assert running.end().clean


def test_i3_outcome_of_a_batch_whose_cluster_was_deleted_by_hand_is_not_dropped() -> None:
    with a_stack() as stack:
        running = settled(stack, lease_renew_seconds=0.05)
        config = ClusterRegistry(stack.store).get("prod")
        assert config is not None
        stack.r53.faults.delay(None)
        expose(stack, "web")
        running.wait_for(lambda: len(tries_of(stack, WEB)) >= 1)
        stack.store.transact([ClusterRegistry.forget(config)], "by-hand")
        LeaseTable(stack.store, "0").signal()
        running.wait_for(lambda: running.saw("configuration", cluster="prod", key="ERR_CONFIG_DELETE"))
        stack.r53.faults.clear()
        running.wait_for(lambda: WEB in stack.records())
        assert running.end().clean
        # Registered again, it is not a stranger's set: nothing is reported, and it follows its Service.
        stack.add_cluster()
        running = stack.start()
        stack.api.cluster.delete_service("default", "web")
        running.wait_for(lambda: WEB not in stack.records())
        assert stack.problems() == {}
        assert running.end().clean


def test_i3_outcome_of_a_batch_whose_cluster_cannot_be_read_any_more_is_not_dropped() -> None:
    with a_stack() as stack:
        running = settled(stack, drain_margin_seconds=0.5)
        stack.r53.faults.delay(None)
        expose(stack, "web")
        running.wait_for(lambda: len(tries_of(stack, WEB)) >= 1)
        assert not running.end().clean
        stack.r53.release()
        stack.r53.faults.clear()
        config = ClusterRegistry(stack.store).get("prod")
        assert config is not None
        stack.store.transact([ClusterRegistry.forget(config)], "by-hand")

        def applied() -> set[str]:
            return {key.name for state in StateTable(stack.store).load_all("prod") for key in state.applied}

        assert stack.run(lambda _: WEB.split(" ")[0] in applied()).clean
