"""The reports of sessions and recoveries are kept in the audit table."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.deployment import Deployment
from kubesync.aws.dynamodb.store import AUDIT
from kubesync.domain.errors import ErrorCode, StoreUnavailableError
from kubesync_local.documents.audit_log import AuditLog
from kubesync_local.recovery.recovery import RecoveryRequest
from kubesync_local.recovery.rows import recovery_in_short
from simulation.gate import Outward


class Watched(Deployment):
    """``strike``: called before each outward call of a session."""

    def __init__(self) -> None:
        super().__init__()
        self.calls_seen: list[str] = []
        self.broken = False

    def _before(self, call: Outward) -> None:
        super()._before(call)
        self.calls_seen.append(call.what)
        if self.broken and "reports#" in call.what:
            raise StoreUnavailableError("the audit table is gone")


@pytest.fixture
def scene() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.close()


def reports(scene: Watched, kind: str = "session") -> list[dict[str, Any]]:
    return list(AuditLog(scene.store).read_reports(kind, scene.world.clock.epoch_seconds(), 10))


def test_session_keeps_its_report_with_the_lag_of_each_minute(scene: Watched) -> None:
    scene.start()
    for number in range(3):
        scene.want(f"s{number}", "10.0.0.1")
        scene.pass_time(60.0)
    session = scene.end()
    (kept,) = reports(scene)
    assert kept["session"] == session.session
    report = kept["report"]
    assert (report["epoch"], report["ended"], report["code"], report["clean"]) == (1, "ERR_MAX_RUNTIME", 5, True)
    assert [(each["cluster"], each["resource"], each["ended"]) for each in report["listeners"]] == [
        ("prod", "services", "ERR_MAX_RUNTIME"),
        ("prod", "endpointslices", "ERR_MAX_RUNTIME"),
    ]
    assert [minute[0] for minute in report["minutes"]] == [60, 120, 180]
    assert all(len(minute) == 4 and minute[1] == 1 and 1.0 <= minute[2] <= 1.5 for minute in report["minutes"])
    (zone,) = report["zones"]
    assert (zone["zone"], zone["batches"]) == ("Z1", 3)


def test_report_of_a_quiet_session_is_one_write_unit(scene: Watched) -> None:
    scene.run_session()
    scene.run_session(30.0)
    quiet, _ = reports(scene)
    (item, _) = scene.store.query(AUDIT, "reports#session", newest_first=True)
    assert len(json.dumps(item)) < 1024
    assert "minutes" not in quiet["report"]


def test_report_is_written_after_the_lease_is_released(scene: Watched) -> None:
    scene.start()
    scene.calls_seen.clear()
    scene.end()
    last = [what for what in scene.calls_seen if "lease#0/lease" in what or "reports#" in what][-2:]
    assert ["lease#0/lease" in what for what in last] == [True, False]


def test_session_ends_well_although_its_report_cannot_be_kept(scene: Watched) -> None:
    scene.broken = True
    assert scene.run_session().clean
    assert reports(scene) == []


def test_session_ends_well_although_its_report_cannot_be_made(scene: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> dict[str, Any]:
        raise KeyError("a bug")

    monkeypatch.setattr("kubesync.session.session.session_in_short", broken)
    assert scene.run_session().clean
    assert reports(scene) == []


def test_i2_session_that_lost_its_lease_keeps_no_report(scene: Watched) -> None:
    running = scene.start()
    scene.lose_lease()
    scene.pass_time(30.0)
    assert not running.alive
    assert scene.over().code == ErrorCode.NOT_MASTER
    assert reports(scene) == []


def test_recovery_keeps_its_report(scene: Watched) -> None:
    scene.run_session()
    running = scene.world.start(recovery=RecoveryRequest(dry_run=False))
    report = running.wait()
    assert report is not None
    (kept,) = reports(scene, "recovery")
    assert kept["report"]["dry_run"] is False
    assert [each["cluster"] for each in kept["report"]["clusters"]] == ["prod"]


def test_long_lists_of_a_recovery_are_cut_and_counted() -> None:
    rows = [{"name": f"n{number}"} for number in range(500)]
    kept = recovery_in_short(
        {"dry_run": True, "clusters": [{"cluster": "prod", "claimed": rows, "unwanted": rows[:3]}]}
    )
    (cluster,) = kept["clusters"]
    assert (cluster["claimed"], cluster["counts"], len(cluster["unwanted"])) == (rows[:100], {"claimed": 500}, 3)
