"""``kubesync pause`` and ``resume``: the schedules of a deployment, as moto's EventBridge Scheduler and CloudWatch have them."""

import getpass
from collections.abc import Iterator
from typing import Any, Final

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.dynamodb import dynamodb_url
from kubesync.aws.dynamodb.store import CONTROL, Key
from kubesync_local.commands.show.status_table import paused_in_words

ROLE: Final = "arn:aws:iam::123456789012:role/kubesync-SchedulerRole-1"
WATCH: Final[dict[str, Any]] = {
    "Name": "kubesync-paused-watch", "Description": "Starts a session of kubesync", "ScheduleExpression": "rate(1 minute)",
    "State": "ENABLED", "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {
        "Arn": "arn:aws:lambda:eu-west-1:123456789012:function:kubesync-paused-watch", "RoleArn": ROLE,
        "RetryPolicy": {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60},
        "DeadLetterConfig": {"Arn": "arn:aws:sqs:eu-west-1:123456789012:kubesync-paused-dead-letters"},
    },
}  # fmt: skip
RESYNC: Final[dict[str, Any]] = {
    **WATCH, "Name": "kubesync-paused-resync", "ScheduleExpression": "rate(1 day)", "Description": "Starts a full resync of kubesync",
    "Target": {**WATCH["Target"], "Input": '{"dry_run": false, "force": false, "scheduled": true}'},
}  # fmt: skip
ALARM: Final = "kubesync-paused-NoMaster"


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack(in_memory=True) as made:
        made.environment |= {"KUBESYNC_DEPLOYMENT": "paused"}
        made.environment |= {f"AWS_ENDPOINT_URL_{each}": dynamodb_url() for each in ("SCHEDULER", "CLOUDWATCH")}
        yield made


def client(stack: CliStack, service: str) -> Any:
    boto: Any = stack.boto()
    return boto.client(service, endpoint_url=dynamodb_url())


@pytest.fixture
def deployed(stack: CliStack) -> Iterator[CliStack]:
    scheduler, cloudwatch = client(stack, "scheduler"), client(stack, "cloudwatch")
    for schedule in (WATCH, RESYNC):
        scheduler.create_schedule(**schedule)
    cloudwatch.put_metric_alarm(
        AlarmName=ALARM, Namespace="kubesync", MetricName="MasterHeartbeat", Statistic="Sum", Period=60, EvaluationPeriods=3,
        Threshold=1, ComparisonOperator="LessThanThreshold", ActionsEnabled=True,
    )  # fmt: skip
    yield stack
    for schedule in (WATCH, RESYNC):
        scheduler.delete_schedule(Name=schedule["Name"])
    cloudwatch.delete_alarms(AlarmNames=[ALARM])


def schedules(stack: CliStack) -> list[dict[str, Any]]:
    """As EventBridge Scheduler has them, without what it adds itself."""
    scheduler = client(stack, "scheduler")
    found = [scheduler.get_schedule(Name=each["Name"]) for each in (WATCH, RESYNC)]
    return [{name: each[name] for name in WATCH} for each in found]


def alarm_notifies(stack: CliStack) -> bool:
    (alarm,) = client(stack, "cloudwatch").describe_alarms(AlarmNames=[ALARM])["MetricAlarms"]
    return bool(alarm["ActionsEnabled"])


def test_pause_disables_the_schedules_and_nothing_else_of_them(deployed: CliStack) -> None:
    ran = deployed.call("pause")

    assert (ran.status, ran.lines) == (0, [
        "deployment paused is paused: no session starts, record sets and upstreams stay as they are",
        "`kubesync resume` starts it again",
    ])  # fmt: skip
    assert schedules(deployed) == [{**WATCH, "State": "DISABLED"}, {**RESYNC, "State": "DISABLED"}]
    assert not alarm_notifies(deployed)
    item = deployed.store.get(Key(CONTROL, "lease", "paused"))
    assert item is not None
    assert item["by"] == getpass.getuser()

    assert deployed.call("resume").status == 0
    assert schedules(deployed) == [WATCH, RESYNC]
    assert alarm_notifies(deployed)
    assert deployed.store.get(Key(CONTROL, "lease", "paused")) is None


def test_status_says_since_when_and_by_whom(deployed: CliStack) -> None:
    assert deployed.call("status", "-o", "json").json["lease"]["paused"] is None
    assert deployed.call("pause").status == 0

    paused = deployed.call("status", "-o", "json").json["lease"]["paused"]
    assert paused["by"] == getpass.getuser()
    assert (
        f"paused since {paused['since']} by {paused['by']}; `kubesync resume` starts it again"
        in deployed.call("status").out
    )
    checked = deployed.call("status", "--check")
    assert checked.status == 1
    assert f"NoMaster: shard 0: paused since {paused['since']} by {paused['by']}; `kubesync resume`" in checked.out
    assert deployed.call("resume").status == 0
    assert "paused" not in deployed.call("status").out.replace("deployment paused", "")


def test_audit_names_who_paused(deployed: CliStack) -> None:
    assert deployed.call("pause").status == 0
    assert deployed.call("pause").status == 0  # nothing changes any more: no entry
    assert deployed.call("resume").status == 0

    user = getpass.getuser()
    rows = [
        (row["cluster"], row["what"], row["from"], row["to"], row["why"])
        for row in deployed.call("audit", "-o", "json").json
    ]
    assert sorted(rows) == sorted([
        ("@deployment", "settings schedule kubesync-paused-watch", "DISABLED", "ENABLED", f"resume by {user}"),
        ("@deployment", "settings schedule kubesync-paused-resync", "DISABLED", "ENABLED", f"resume by {user}"),
        ("@deployment", "settings schedule kubesync-paused-watch", "ENABLED", "DISABLED", f"pause by {user}"),
        ("@deployment", "settings schedule kubesync-paused-resync", "ENABLED", "DISABLED", f"pause by {user}"),
    ])  # fmt: skip


def test_resume_of_what_is_not_paused_changes_nothing(deployed: CliStack) -> None:
    ran = deployed.call("resume")

    assert (ran.status, schedules(deployed)) == (0, [WATCH, RESYNC])
    assert ran.lines[0].startswith("deployment paused is not paused: ")
    assert deployed.call("audit", "-o", "json").json == []


def test_deployment_without_a_resync_schedule_is_paused(deployed: CliStack) -> None:
    scheduler = client(deployed, "scheduler")
    scheduler.delete_schedule(Name=RESYNC["Name"])
    assert deployed.call("pause").status == 0

    assert scheduler.get_schedule(Name=WATCH["Name"])["State"] == "DISABLED"
    scheduler.create_schedule(**RESYNC)


def test_schedules_of_all_shards_are_paused(deployed: CliStack) -> None:
    scheduler = client(deployed, "scheduler")
    names = [f"kubesync-paused-{what}-shard{shard}" for what in ("watch", "resync") for shard in (1, 2)]
    for name in names:
        scheduler.create_schedule(**{**WATCH, "Name": name})
    assert deployed.call("pause").status == 0

    assert {scheduler.get_schedule(Name=name)["State"] for name in names} == {"DISABLED"}
    assert deployed.call("resume").status == 0
    assert {scheduler.get_schedule(Name=name)["State"] for name in names} == {"ENABLED"}
    for name in names:
        scheduler.delete_schedule(Name=name)


def test_deployment_without_schedules_is_said(stack: CliStack) -> None:
    ran = stack.call("pause")

    assert (ran.status, ran.lines) == (2, [
        "kubesync: there is no schedule kubesync-paused-watch or kubesync-paused-resync in eu-west-1: check --deployment, --region and --profile"
    ])  # fmt: skip
    assert stack.store.get(Key(CONTROL, "lease", "paused")) is None


def test_stand_in_has_no_schedules(stack: CliStack) -> None:
    ran = stack.call("pause", AWS_ENDPOINT_URL_SCHEDULER="")

    assert (ran.status, ran.lines) == (2, ["kubesync: no schedule starts sessions here: the tables are on a stand-in"])


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (1, "; session s goes on until 2026-11-26T12:14:00Z"),
        (20, "; yet session s runs: something else starts sessions"),
    ],
)
def test_session_that_runs_is_said(minutes: int, said: str) -> None:
    lease = {"state": "held", "holder": "s", "session_ends_at": "2026-11-26T12:14:00Z",
             "paused": {"since": "2026-11-26T12:00:00Z", "by": "ann"}}  # fmt: skip
    now = 1795694400.0 + 60 * minutes  # 12:00

    assert (
        paused_in_words(lease, now)
        == f"paused since 2026-11-26T12:00:00Z by ann; `kubesync resume` starts it again{said}"
    )


def test_pause_finds_the_schedules_and_alarms_of_every_shard(deployed: CliStack) -> None:
    scheduler, cloudwatch = client(deployed, "scheduler"), client(deployed, "cloudwatch")
    more = [{**each, "Name": f"{each['Name']}-shard{shard}"} for shard in (1, 2) for each in (WATCH, RESYNC)]
    alarms = [f"{ALARM}-shard{shard}" for shard in (1, 2)]
    for schedule in more:
        scheduler.create_schedule(**schedule)
    for name in alarms:
        cloudwatch.put_metric_alarm(
            AlarmName=name, Namespace="kubesync", MetricName="MasterHeartbeat", Statistic="Sum", Period=60, EvaluationPeriods=3,
            Threshold=1, ComparisonOperator="LessThanThreshold", ActionsEnabled=True,
        )  # fmt: skip
    try:
        for command, state in (("pause", "DISABLED"), ("resume", "ENABLED")):
            assert deployed.call(command).status == 0
            assert {scheduler.get_schedule(Name=each["Name"])["State"] for each in (WATCH, RESYNC, *more)} == {state}
            found = cloudwatch.describe_alarms(AlarmNames=[ALARM, *alarms])["MetricAlarms"]
            assert [each["ActionsEnabled"] for each in found] == [state == "ENABLED"] * 3
    finally:
        for schedule in more:
            scheduler.delete_schedule(Name=schedule["Name"])
        cloudwatch.delete_alarms(AlarmNames=alarms)
