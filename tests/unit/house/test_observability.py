"""Dashboard and alarms name metrics that the code writes, with the dimensions that it writes them under; people find help."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from harness.wire.template import ROOT, read_template, resources
from kubesync.domain.errors import ErrorCode
from kubesync.domain.report import ClusterReport, ListenerReport, ResyncEnded, SessionReport
from kubesync.telemetry.metrics import MetricsPublisher
from kubesync.zone.progress import ZoneReport

# Written by AWS: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html and SQS's counterpart
OF_AWS = {
    ("AWS/Lambda", "Errors", ("FunctionName",)),
    ("AWS/Lambda", "Throttles", ("FunctionName",)),
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible", ("QueueName",)),
}

HEALTH = (
    "OldestOpenSeconds",
    "OpenKeys",
    "ListenersFailing",
    "ZonesStuck",
    "WaitingForPerson",
    "KeysSetAside",
    "RegistrationsLost",
    "HoursSinceResync",
    "InferredDeletions",
    "TurnWaitSeconds",
)

type Metric = tuple[str, str, tuple[str, ...]]


@pytest.fixture
def emitted(capsys: pytest.CaptureFixture[str]) -> set[Metric]:
    """Namespace, name and dimensions of every metric that a session can write."""
    publisher = MetricsPublisher("main")
    listeners = [ListenerReport("prod", "services", errors={code.key: 1 for code in ErrorCode if code > 5})]
    publisher.beat(
        SessionReport(
            "s1",
            clusters=[
                ClusterReport("prod", recording_seconds=0.1, holding={"services": True}, credential_days={"token": 9})
            ],
            listeners=listeners,
            lag={"p50": 1.0, "p99": 1.0},
            hand_over_seconds=0.1,
            named_upstreams={"registered": 1, "written": 1, "problem": ""},
            zones=[asdict(ZoneReport("Z1", deleted=1))],
            health=dict.fromkeys(HEALTH, 0.0),
            steady=True,
        )
    )
    listeners[0].ended = "ERR_MAX_RUNTIME"
    publisher.resync_ended(ResyncEnded(0, 0, scheduled=True))
    publisher.ended(SessionReport("s1", ended="ERR_MAX_RUNTIME", listeners=listeners))
    publisher.ended(SessionReport("s2", epoch=2, code=4, ended="ERR_NOT_MASTER"))
    MetricsPublisher("main", shard="1").beat(SessionReport("s3", steady=True))
    return {
        (directive["Namespace"], metric["Name"], tuple(dimensions))
        for line in capsys.readouterr().out.splitlines()
        for directive in json.loads(line)["_aws"]["CloudWatchMetrics"]
        for metric in directive["Metrics"]
        for dimensions in directive["Dimensions"]
    }


def _alarms() -> dict[str, dict[str, Any]]:
    return {name: entry["Properties"] for name, entry in resources(read_template(), "AWS::CloudWatch::Alarm").items()}


def _on_the_dashboard() -> Iterator[Metric]:
    body = json.loads(read_template()["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"])
    for widget in body["widgets"]:
        for row in widget["properties"]["metrics"]:
            if isinstance(row[0], dict):
                search = re.fullmatch(
                    r"SEARCH\('\{(?P<schema>[\w,]+)\} service=\"kubesync-\$\{DeploymentId\}\" "
                    r"MetricName=\"(?P<name>\w+)\"', 'Sum', 60\)",
                    row[0]["expression"],
                )
                assert search, row
                namespace, *dimensions = search["schema"].split(",")
                yield namespace, search["name"], tuple(dimensions)
            else:
                named = [part for part in row if isinstance(part, str)]
                yield named[0], named[1], tuple(named[2::2])


@pytest.mark.parametrize("clusters", [1, 5])
def test_cost_page_counts_the_metrics_of_a_good_day(clusters: int, capsys: pytest.CaptureFixture[str]) -> None:
    publisher = MetricsPublisher("main")
    names = [f"c{number}" for number in range(clusters)]
    listeners = [ListenerReport(name, "services") for name in names]
    reports = [
        ClusterReport(
            name, recording_seconds=0.1, holding={"services": False}, credential_days={"server certificate": 300}
        )
        for name in names
    ]
    so_far = SessionReport(
        "s1", clusters=reports, listeners=listeners, lag={"p50": 1.0, "p99": 1.0}, hand_over_seconds=0.1, steady=True
    )
    so_far.health = {name: 0.0 for name in HEALTH if name not in ("InferredDeletions", "TurnWaitSeconds")}
    publisher.beat(so_far)
    for listener in listeners:
        listener.ended = "ERR_MAX_RUNTIME"
    publisher.resync_ended(ResyncEnded(0, 0, scheduled=True))
    publisher.ended(SessionReport("s1", ended="ERR_MAX_RUNTIME", listeners=listeners))
    publisher.ended(SessionReport("s2", ended="ERR_NOT_MASTER"))
    billed = {
        (metric["Name"], tuple(line[dimension] for dimension in dimensions))
        for line in map(json.loads, capsys.readouterr().out.splitlines())
        for directive in line["_aws"]["CloudWatchMetrics"]
        for metric in directive["Metrics"]
        for dimensions in directive["Dimensions"]
    }

    assert "METRICS, METRICS_OF_A_CLUSTER, ALARMS = (12, 32), (0, 2), " in (ROOT / "docs/cost.md").read_text()
    assert len(billed) == 32 + 2 * clusters


def test_every_alarm_watches_a_metric_that_is_written(emitted: set[Metric]) -> None:
    for name, alarm in _alarms().items():
        dimensions = tuple(dimension["Name"] for dimension in alarm["Dimensions"])
        assert (alarm["Namespace"], alarm["MetricName"], dimensions) in emitted | OF_AWS, name


def test_alarms_look_at_this_deployment_and_at_codes_that_exist() -> None:
    for name, alarm in _alarms().items():
        values = {dimension["Name"]: dimension["Value"] for dimension in alarm["Dimensions"]}
        if alarm["Namespace"] == "kubesync":
            assert values["service"] == {"Fn::Sub": "kubesync-${DeploymentId}"}, name
        if "code" in values:
            assert ErrorCode(int(values["code"])).key == values["key"], name


def test_alarms_are_those_that_were_promised() -> None:
    alarms = _alarms()

    assert {name: alarm["MetricName"] for name, alarm in alarms.items()} == {
        "NoMasterAlarm": "MasterHeartbeat",
        "SessionsCutShortAlarm": "SessionsCutShort",
        "LagAlarm": "LagP99",
        "DeniedAlarm": "ListenerErrors",
        "TlsAlarm": "ListenerErrors",
        "ZoneBlockedAlarm": "ZonesBlocked",
        "ChangesLateAlarm": "OldestOpenSeconds",
        "BacklogAlarm": "OpenKeys",
        "ListenersFailingAlarm": "ListenersFailing",
        "ZonesStuckAlarm": "ZonesStuck",
        "TurnsLateAlarm": "TurnWaitSeconds",
        "DeletionsAlarm": "RecordSetsDeleted",
        "HeldDeletionsAlarm": "HeldDeletions",
        "InferredDeletionsAlarm": "InferredDeletions",
        "KeysSetAsideAlarm": "KeysSetAside",
        "ResyncFailedAlarm": "ResyncErrors",
        "ResyncOverdueAlarm": "HoursSinceResync",
        "ResyncDifferencesAlarm": "ResyncDifferences",
        "RegistrationsLostAlarm": "RegistrationsLost",
        "NamedUpstreamsAlarm": "NamedUpstreamsStuck",
        "CredentialsEndAlarm": "CredentialDaysLeft",
        "DeadLettersAlarm": "ApproximateNumberOfMessagesVisible",
        "SessionFailedAlarm": "Errors",
    }
    no_master = alarms["NoMasterAlarm"]
    minutes = {"Ref": "NoMasterMinutes"}
    assert (no_master["Period"], no_master["EvaluationPeriods"], no_master["DatapointsToAlarm"]) == (
        60,
        minutes,
        minutes,
    )
    assert no_master["TreatMissingData"] == "breaching"
    limits = read_template()["Parameters"]["NoMasterMinutes"]
    assert (limits["Default"], limits["MinValue"], limits["MaxValue"] * no_master["Period"]) == (3, 3, 86_400)
    # A session says nothing about what it cannot know yet: what was known stays known.
    for name in ("ChangesLateAlarm", "BacklogAlarm", "ListenersFailingAlarm", "ZonesStuckAlarm", "KeysSetAsideAlarm"):
        assert alarms[name]["TreatMissingData"] == "ignore", name
    # A session that only resumed says nothing about held deletions: what was known stays known.
    assert alarms["HeldDeletionsAlarm"]["TreatMissingData"] == "ignore"
    # A resync runs once a day: one that failed stays until the next one ends.
    assert alarms["ResyncFailedAlarm"]["TreatMissingData"] == "ignore"
    ends = alarms["CredentialsEndAlarm"]
    assert (ends["Statistic"], ends["ComparisonOperator"], ends["Threshold"]) == ("Minimum", "LessThanThreshold", 14)
    assert ends["TreatMissingData"] == "notBreaching"
    for name, alarm in alarms.items():
        wanted = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], []]}
        assert (alarm["AlarmActions"], alarm["OKActions"]) == (wanted, wanted), name


def test_dashboard_shows_every_metric_and_only_such_as_are_written(emitted: set[Metric]) -> None:
    shown = set(_on_the_dashboard())

    assert shown <= emitted | OF_AWS
    names = {name for namespace, name, _ in shown if namespace == "kubesync"}
    assert {name for _, name, _ in emitted} - names == {"ListenersEnded"}  # the sessions' ends say the same


def test_runbook_has_a_section_for_each_alarm_and_each_code() -> None:
    sections = re.split(r"^#{2,3} ", (ROOT / "docs/runbook.md").read_text(), flags=re.MULTILINE)[1:]
    titles = {section.partition("\n")[0]: section for section in sections}

    for alarm in _alarms():
        assert alarm.removesuffix("Alarm") in titles, alarm
    for code in ErrorCode:
        assert f"{code.value} {code.key}" in titles
    wanted = ["**Means**", "**See more**", "**Do**"]
    failures = [code for code in ErrorCode if code.value > ErrorCode.MAX_RUNTIME.value]  # the others are ends in order
    helping = [name.removesuffix("Alarm") for name in _alarms()] + [f"{code.value} {code.key}" for code in failures]
    for title in helping:
        assert [word for word in wanted if word not in titles[title]] == [], title
