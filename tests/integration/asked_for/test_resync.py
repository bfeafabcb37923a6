"""A full resync mends what was changed by hand in zone and table, says so beforehand, and obeys I3 and I5."""

from typing import Any

import pytest

from harness.fakes.memory_store import MemoryStore
from harness.seen.resync_requests import a_request, leave, wait_for_answer
from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.dynamodb.store import STATE, UPSTREAMS, Delete, Key, Update
from kubesync.aws.tables.state import StateTable

WEB = "web.default.svc.prod.example.com"
UPSTREAM = "prod/default/web/80/TCP"


def prepare(stack: Stack) -> RunningSession:
    """Two services in a zone and table that are in step."""
    for name, address in (("web", "10.68.0.10"), ("api", "10.68.0.11")):
        stack.api.cluster.deploy("default", name, 2)
        spec = {"ports": [{"port": 80}], "selector": {"app": name}, "clusterIP": address, "ipFamilies": ["IPv4"]}
        stack.api.cluster.expose("default", name, spec)
    stack.add_cluster()
    running = stack.start(lease_renew_seconds=0.05)
    running.wait_for(lambda: {f"{WEB} A", "api.default.svc.prod.example.com A"} <= stack.records().keys())
    running.wait_for(lambda: sorted(map(len, stack.upstreams().values())) == [1, 2, 2])
    return running


def spoil(stack: Stack) -> None:
    """What a person might do: change a record, delete another, edit nodes, lose an upstream; and add records of their own."""
    stack.by_hand("DELETE", WEB, "A", "10.68.0.10")
    stack.by_hand("CREATE", WEB, "A", "192.0.2.66", ttl=5)
    stack.by_hand("DELETE", "api.default.svc.prod.example.com", "A", "10.68.0.11")
    stack.by_hand("CREATE", "mail.example.com", "A", "192.0.2.25")
    stack.store.write(
        Update(Key(UPSTREAMS, UPSTREAM, 0), set={"nodes": [{"ip": "192.0.2.9", "port": 9, "ready": True}]})
    )
    stack.store.write(Delete(Key(UPSTREAMS, "prod/default/api/80/TCP", 0)))


def contents(stack: Stack) -> tuple[object, object]:
    """Everything in the zone, and in the tables of state and upstreams."""
    assert isinstance(stack.store, MemoryStore)
    kept = {key: item for key, item in stack.store.dump().items() if key.table in (STATE, UPSTREAMS)}
    return stack.r53.records(stack.zone_id), kept


@pytest.mark.parametrize("master", ["running", "none"])
def test_drift_in_zone_and_table_is_reported_by_a_dry_run_and_mended_by_a_resync(master: str) -> None:
    with a_stack() as stack:
        running = prepare(stack)
        records, upstreams = stack.records(), stack.upstreams()
        if master == "none":
            assert running.end().clean
        spoil(stack)

        def resync(*, dry_run: bool = False) -> dict[str, Any]:
            if master == "none":
                return stack.resync(a_request(dry_run=dry_run))
            return wait_for_answer(stack, running, leave(stack, dry_run=dry_run))

        before = contents(stack)
        said = resync(dry_run=True)
        assert contents(stack) == before
        (cluster,) = said["clusters"]
        assert said["dry_run"] is True
        drifts = {(d["drift"], d["name"], d["type"], d["service"]) for d in cluster["drift"]}
        assert drifts == {
            ("changed", WEB, "A", "prod/default/web"),
            ("missing", "api.default.svc.prod.example.com", "A", "prod/default/api"),
        }
        assert {change["what"] for change in cluster["changes"]} == {
            f"upstream {UPSTREAM}",
            "upstream prod/default/api/80/TCP",
        }
        batches = len(stack.r53.batches())
        resync()
        running.wait_for(
            lambda: stack.records() == {**records, "mail.example.com A": {"ttl": 60, "values": ["192.0.2.25"]}}
        )
        running.wait_for(lambda: stack.upstreams() == upstreams)
        changes = [
            (c.action, c.record_set.key.name, c.record_set.values)
            for batch in stack.r53.batches()[batches:]
            for c in batch.changes
            if not c.record_set.key.name.startswith("_kubesync")
        ]
        # The standing value is deleted, never overwritten (I3).
        assert ("DELETE", f"{WEB}.", ("192.0.2.66",)) in changes
        assert ("CREATE", f"{WEB}.", ("10.68.0.10",)) in changes
        assert len(changes) == 3
        again = resync(dry_run=True)["clusters"][0]
        assert (again["drift"], again["changes"], again["conflicts"], again["held"]) == ([], [], [], {})
        if master == "running":
            assert running.end().clean


def test_dry_run_foresees_the_conflict_that_the_resync_meets() -> None:
    with a_stack() as stack:
        stack.api.cluster.expose("default", "web", {"ports": [{"port": 80}], "clusterIP": "10.68.0.10"})
        stack.by_hand("CREATE", WEB, "A", "192.0.2.66")
        stack.add_cluster()
        (dry,) = stack.resync(a_request(dry_run=True))["clusters"]
        assert dry["conflicts"] == [
            {
                "service": "prod/default/web",
                "name": WEB,
                "zone": stack.zone_id,
                "code": "Conflict",
                "reason": f"{WEB} A stands there and is not ours (192.0.2.66): "
                "take it over (`kubesync recover`), remove it, or choose another name",
            }
        ]
        stack.run(lambda _: "Conflict" in [mark.code for _, mark in StateTable(stack.store).open_keys("prod")])
        (again,) = stack.resync(a_request(dry_run=True))["clusters"]
        assert again["conflicts"] == dry["conflicts"]
        assert stack.records()[f"{WEB} A"] == {"ttl": 60, "values": ["192.0.2.66"]}
