"""A dry run in a session of its own writes to no zone, also if earlier sessions left work open."""

from typing import Any

import pytest

from harness.deployment import Deployment
from harness.stack import RunningSession, Stack, a_stack
from kubesync.aws.tables.control.resync_requests import ResyncRequest
from kubesync.aws.tables.state import StateTable
from kubesync.domain.errors import BodyError
from kubesync.domain.objects import Snapshot
from kubesync.domain.report import SessionReport
from kubesync_local.standins.route53.http_api.faults import CHANGE
from simulation.cluster import ScriptedLister

WEB = "web.default.svc.prod.example.com"
NEW = "new.default.svc.prod.example.com"
AFTER = {f"{NEW} A", "kubernetes.default.svc.prod.example.com A"}


def watched(stack: Stack) -> RunningSession:
    """One Service in a zone that is in step."""
    stack.api.cluster.expose("default", "web", {"ports": [{"port": 80}], "clusterIP": "10.68.0.10"})
    stack.add_cluster()
    running = stack.start()
    running.wait_for(lambda: stack.at_rest() and f"{WEB} A" in stack.records())
    return running


def change_services(stack: Stack) -> None:
    """One Service comes, the other goes: in the zone, or still to be done."""
    stack.api.cluster.expose("default", "new", {"ports": [{"port": 80}], "clusterIP": "10.68.0.50"})
    stack.api.cluster.delete_service("default", "web")


def dry_run_that_changes_nothing(stack: Stack) -> tuple[SessionReport, dict[str, Any]]:
    """By a session of its own. Zone and key states are the same before and after, and no change was sent."""
    request = ResyncRequest("2026-11-28T00:00:00.000Z#test", "", dry_run=True, force=False, at_ms=0)
    before, states = stack.r53.records(stack.zone_id), list(StateTable(stack.store).load_all("prod"))
    sent = len(stack.r53.batches())
    report = stack.application().new_session().run(resync=request)
    assert (stack.r53.records(stack.zone_id), len(stack.r53.batches())) == (before, sent)
    assert list(StateTable(stack.store).load_all("prod")) == states
    (cluster,) = report.resyncs[0]["clusters"]
    return report, cluster


def test_dry_run_leaves_open_work_open() -> None:
    with a_stack() as stack:
        running = watched(stack)
        stack.r53.faults.deny(operation=CHANGE)
        change_services(stack)
        running.wait_for(lambda: len(list(StateTable(stack.store).open_keys("prod"))) == 2)
        left = running.end()
        stack.r53.faults.clear()
        report, cluster = dry_run_that_changes_nothing(stack)
        assert (report.ended, report.clean) == ("DONE", left.clean)
        assert (cluster["drift"], cluster["changes"], cluster["conflicts"]) == ([], [], [])
        assert f"{WEB} A" in stack.records()
        stack.run(lambda _: stack.at_rest())
        assert {name for name in stack.records() if name.endswith(" A")} == AFTER


def test_dry_run_after_an_unclean_end_settles_nothing_and_reports_no_drift() -> None:
    """The last batch landed, but its session did not learn this. The dry run leaves the zone to the next session."""
    with a_stack() as stack:
        running = watched(stack)
        stack.r53.faults.drop_after(times=1)
        stack.r53.faults.deny(operation=CHANGE)
        stack.api.cluster.expose("default", "new", {"ports": [{"port": 80}], "clusterIP": "10.68.0.50"})
        running.wait_for(lambda: f"{NEW} A" in stack.records())
        assert not running.end().clean
        stack.r53.faults.clear()
        report, cluster = dry_run_that_changes_nothing(stack)
        assert (report.ended, report.clean) == ("DONE", False)
        assert (cluster["drift"], cluster["conflicts"]) == ([], [])
        settled = stack.run(lambda _: stack.at_rest())
        assert settled.took_over == f"hand-over, zones to settle: {stack.zone_id}"
        assert f"{NEW} A" in stack.records()


def test_dry_run_of_a_list_that_memory_has_no_room_for_says_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(_lister: object, _deadline: float) -> Snapshot:
        raise BodyError("the list of services is longer than 9 bytes in memory")

    monkeypatch.setattr(ScriptedLister, "run", too_long)
    deployment = Deployment()
    deployment.start()
    (cluster,) = deployment.resync(dry_run=True)["clusters"]
    assert cluster["error"] == (
        "cluster prod could not be listed: ERR_READ_BODY: the list of services is longer than 9 bytes in memory; "
        "raise the function's memory (MemorySize), or find out why the server sends so much"
    )
    deployment.close()
