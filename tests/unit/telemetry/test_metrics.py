"""The metrics of a session: lines in CloudWatch's embedded metric format, byte for byte but for the time."""

import json
from typing import Any

import pytest

from harness.wire.template import read_template, resources
from kubesync.domain.errors import ErrorCode
from kubesync.domain.report import ClusterReport, ListenerReport, ResyncEnded, SessionReport
from kubesync.settings import Settings
from kubesync.telemetry.metrics import ALARMED, MetricsPublisher, embedded


def a_zone(**changes: Any) -> dict[str, Any]:
    return {
        "zone": "Z1",
        "batches": 0,
        "changes": 0,
        "deleted": 0,
        "refused": 0,
        "throttled": 0,
        "blocked": False,
        **changes,
    }


def a_report(**changes: Any) -> SessionReport:
    return SessionReport("s1", epoch=3, **changes)


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in lines:
        assert line["_aws"].pop("Timestamp") > 1_700_000_000_000
    return lines


def the_line(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    (line,) = [line for line in written(capsys) if name in line]
    return line


def test_recording_counts_what_it_took_since_the_last_beat(capsys: pytest.CaptureFixture[str]) -> None:
    publisher = MetricsPublisher("main")
    clusters = [ClusterReport("prod", recording_seconds=0.25), ClusterReport("stage", recording_seconds=0.5)]
    publisher.beat(a_report(clusters=clusters))
    line = the_line("RecordingTime", capsys)
    assert line["RecordingTime"] == [0.75]
    assert line["_aws"]["CloudWatchMetrics"][0]["Metrics"] == [{"Name": "RecordingTime", "Unit": "Seconds"}]
    clusters[1].recording_seconds = 1.5
    publisher.beat(a_report(clusters=clusters))
    assert the_line("RecordingTime", capsys)["RecordingTime"] == [1.0]
    publisher.beat(a_report(clusters=clusters))
    assert not [line for line in written(capsys) if "RecordingTime" in line], "no window, no metric"


@pytest.mark.parametrize("steady", [False, True])
def test_beat_of_a_quiet_master_counts_once_it_has_held_its_fences_i10(
    *, steady: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    MetricsPublisher("main").beat(a_report(steady=steady))

    names = [
        *(["MasterHeartbeat"] if steady else []),
        "Windows",
        "Events",
        "EventsMerged",
        "KeysChanged",
        "Relists",
        "Batches",
        "Changes",
        "BatchesRefused",
        "Throttles",
        "TablesThrottled",
    ]
    assert written(capsys) == [
        {
            "_aws": {
                "CloudWatchMetrics": [
                    {
                        "Namespace": "kubesync",
                        "Dimensions": [["service"]],
                        "Metrics": [{"Name": name, "Unit": "Count"} for name in names],
                    }
                ]
            },
            "service": "kubesync-main",
            **{name: [0.0] for name in names},
            **({"MasterHeartbeat": [1.0]} if steady else {}),
        },
        {
            "_aws": {
                "CloudWatchMetrics": [
                    {
                        "Namespace": "kubesync",
                        "Dimensions": [["service"]],
                        "Metrics": [{"Name": "Conflicts", "Unit": "Count"}, {"Name": "ZonesBlocked", "Unit": "Count"}],
                    }
                ]
            },
            "service": "kubesync-main",
            "Conflicts": [0.0],
            "ZonesBlocked": [0.0],
        },
    ]


def test_beats_tell_what_came_since_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    publisher = MetricsPublisher("main")
    report = a_report(
        clusters=[ClusterReport("prod", windows=2, events=30, merged=25, changed_keys=4)],
        listeners=[ListenerReport("prod", "services", lists=1)],
        zones=[a_zone(batches=2, changes=7, refused=1, throttled=3)],
        dynamodb={"requests": 30, "refused_reads": 2, "refused_writes": 0, "refused_transactions": 0},
    )
    publisher.beat(report)
    written(capsys)
    report.clusters[0].events += 12
    report.clusters[0].windows += 1
    report.listeners[0].lists += 1
    report.zones[0] |= {"batches": 3, "throttled": 4}
    report.dynamodb |= {"requests": 40, "refused_reads": 5, "refused_writes": 1, "refused_transactions": 2}
    publisher.beat(report)

    line = the_line("Windows", capsys)
    assert {name: value for name, value in line.items() if name not in ("_aws", "service")} == {
        "Windows": [1.0],
        "Events": [12.0],
        "EventsMerged": [0.0],
        "KeysChanged": [0.0],
        "Relists": [1.0],
        "Batches": [1.0],
        "Changes": [0.0],
        "BatchesRefused": [0.0],
        "Throttles": [1.0],
        "TablesThrottled": [6.0],
    }


def test_errors_stand_under_their_code_and_under_code_and_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    publisher = MetricsPublisher("main")
    listener = ListenerReport("prod", "services", errors={"ERR_SSL_HANDSHAKE": 2})
    publisher.beat(a_report(listeners=[listener]))

    assert the_line("ListenerErrors", capsys) == {
        "_aws": {
            "CloudWatchMetrics": [
                {
                    "Namespace": "kubesync",
                    "Dimensions": [["service", "code", "key"], ["service", "code", "key", "cluster"]],
                    "Metrics": [{"Name": "ListenerErrors", "Unit": "Count"}],
                }
            ]
        },
        "service": "kubesync-main",
        "code": "8",
        "key": "ERR_SSL_HANDSHAKE",
        "cluster": "prod",
        "ListenerErrors": [2.0],
    }
    listener.errors["ERR_SSL_HANDSHAKE"] = 3
    publisher.beat(a_report(listeners=[listener]))
    assert the_line("ListenerErrors", capsys)["ListenerErrors"] == [1.0]
    publisher.beat(a_report(listeners=[listener]))
    assert not [line for line in written(capsys) if "ListenerErrors" in line]


def test_lag_is_told_in_seconds_where_batches_landed(capsys: pytest.CaptureFixture[str]) -> None:
    MetricsPublisher("main").beat(a_report(lag={"count": 4.0, "p50": 1.02, "p90": 1.3, "p99": 1.4, "max": 1.4}))

    line = the_line("LagP99", capsys)
    assert line["_aws"]["CloudWatchMetrics"][0]["Metrics"] == [
        {"Name": "LagMedian", "Unit": "Seconds"},
        {"Name": "LagP99", "Unit": "Seconds"},
    ]
    assert (line["LagMedian"], line["LagP99"]) == ([1.02], [1.4])


def test_hand_over_gap_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    publisher = MetricsPublisher("main")
    publisher.beat(a_report())
    assert not [line for line in written(capsys) if "HandOverGap" in line]
    publisher.beat(a_report(hand_over_seconds=0.31))
    line = the_line("HandOverGap", capsys)
    assert line["HandOverGap"] == [0.31]
    assert line["_aws"]["CloudWatchMetrics"][0]["Metrics"] == [{"Name": "HandOverGap", "Unit": "Seconds"}]
    publisher.beat(a_report(hand_over_seconds=0.31))
    assert not [line for line in written(capsys) if "HandOverGap" in line]


@pytest.mark.parametrize(
    ("holding", "told"),
    [
        ([{}, {}], None),  # both resumed: nothing is known
        ([{"services": True, "endpoints": False}, {}], [1.0]),
        ([{"services": False, "endpoints": False}, {}], None),  # of the other cluster nothing is known
        ([{"services": False, "endpoints": False}, {"services": False}], None),
        ([{"services": False, "endpoints": False}, {"services": False, "endpoints": False}], [0.0]),
        ([{"services": True, "endpoints": True}, {"services": True, "endpoints": False}], [3.0]),
    ],
)
def test_held_deletions_are_told_by_those_who_know(
    holding: list[dict[str, bool]], told: list[float] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("prod", "test")
    report = a_report(
        clusters=[ClusterReport(name, holding=held) for name, held in zip(names, holding, strict=True)],
        listeners=[ListenerReport(name, resource) for name in names for resource in ("services", "endpoints")],
    )
    MetricsPublisher("main").beat(report)

    assert the_line("Conflicts", capsys).get("HeldDeletions") == told


def test_conflicts_and_blocked_zones_are_what_is_so_now(capsys: pytest.CaptureFixture[str]) -> None:
    publisher = MetricsPublisher("main")
    report = a_report(
        clusters=[ClusterReport("prod", conflicts=2), ClusterReport("test", conflicts=1)],
        zones=[a_zone(blocked=True), a_zone(zone="Z2")],
    )
    for _ in range(2):
        publisher.beat(report)
        line = the_line("Conflicts", capsys)
        assert (line["Conflicts"], line["ZonesBlocked"]) == ([3.0], [1.0])


def test_named_upstreams_are_told_where_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    publisher = MetricsPublisher("main")
    publisher.beat(a_report(named_upstreams={"registered": 2, "written": 5, "problem": ""}))
    line = the_line("NamedUpstreamsWritten", capsys)
    assert line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"]]
    assert (line["NamedUpstreamsWritten"], line["NamedUpstreamsStuck"]) == ([5.0], [0.0])
    for problem, stuck in (("cannot be read whole: prod/shop/web/80/TCP", [1.0]), ("", [0.0])):
        publisher.beat(a_report(named_upstreams={"registered": 2, "written": 6, "problem": problem}))
        assert the_line("NamedUpstreamsWritten", capsys)["NamedUpstreamsStuck"] == stuck
    publisher.beat(a_report(named_upstreams={"registered": 2, "written": 7, "problem": ""}))
    assert the_line("NamedUpstreamsWritten", capsys)["NamedUpstreamsWritten"] == [1.0]


@pytest.mark.parametrize(
    ("told", "lines"),
    [
        ({}, 0),
        ({"registered": 0, "written": 0, "problem": ""}, 0),  # two metrics that nobody would pay for
        ({"registered": 0, "written": 1, "problem": ""}, 1),  # the last one was taken away
        ({"registered": 0, "written": 0, "problem": "throttled"}, 1),
    ],
)
def test_named_upstreams_that_nobody_has_cost_no_metric(
    told: dict[str, Any], lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    MetricsPublisher("main").beat(a_report(named_upstreams=told))

    assert len([line for line in written(capsys) if "NamedUpstreamsStuck" in line]) == lines


def test_end_tells_how_session_and_listeners_ended(capsys: pytest.CaptureFixture[str]) -> None:
    listeners = [ListenerReport("prod", name, ended="ERR_MAX_RUNTIME") for name in ("services", "endpoints")]
    MetricsPublisher("blue").ended(a_report(code=5, ended="ERR_MAX_RUNTIME", listeners=listeners))

    sessions, listeners_ended = written(capsys)
    assert sessions["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service", "ended"]]
    assert (sessions["service"], sessions["ended"], sessions["Sessions"]) == ("kubesync-blue", "ERR_MAX_RUNTIME", [1.0])
    assert listeners_ended["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [
        ["service", "code", "key"],
        ["service", "code", "key", "cluster"],
    ]
    assert (listeners_ended["code"], listeners_ended["cluster"], listeners_ended["ListenersEnded"]) == (
        "5", "prod", [2.0],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ({}, None),
        ({"OpenKeys": 0, "WaitingForPerson": 3}, {"OpenKeys": [0.0], "WaitingForPerson": [3.0]}),
        ({"OpenKeys": 7, "OldestOpenSeconds": 12.5}, {"OpenKeys": [7.0], "OldestOpenSeconds": [12.5]}),
    ],
)
def test_i10_what_does_not_get_through_is_told_as_far_as_it_is_known(
    known: dict[str, float], told: dict[str, list[float]] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    MetricsPublisher("main").beat(a_report(health=known))

    lines = [line for line in written(capsys) if "OpenKeys" in line]
    assert len(lines) == (told is not None)
    for line in lines:
        assert {name: value for name, value in line.items() if name not in ("_aws", "service")} == told
        units = {metric["Name"]: metric["Unit"] for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
        assert units.get("OldestOpenSeconds", "Seconds") == "Seconds"


def test_days_until_the_first_credential_ends_of_each_cluster_and_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    clusters = [
        ClusterReport("prod", credential_days={"token": 20, "server certificate": 12}),
        ClusterReport("stage", credential_days={"CA": -3}),
        ClusterReport("test"),
    ]
    MetricsPublisher("main").beat(a_report(clusters=clusters))
    lines = [line for line in written(capsys) if "CredentialDaysLeft" in line]
    assert [(line["service"], line.get("cluster"), line["CredentialDaysLeft"]) for line in lines] == [
        ("kubesync-main", "prod", [12.0]),
        ("kubesync-main", "stage", [-3.0]),
        ("kubesync-main", None, [-3.0]),
    ]
    assert [line["_aws"]["CloudWatchMetrics"] for line in lines][1:] == [
        [
            {
                "Namespace": "kubesync",
                "Dimensions": [["service", "cluster"]],
                "Metrics": [{"Name": "CredentialDaysLeft", "Unit": "Count"}],
            }
        ],
        [
            {
                "Namespace": "kubesync",
                "Dimensions": [["service"]],
                "Metrics": [{"Name": "CredentialDaysLeft", "Unit": "Count"}],
            }
        ],
    ]


@pytest.mark.parametrize(
    ("ended", "steady", "cut_short"),
    [
        (ErrorCode.NOT_MASTER, False, True),
        (ErrorCode.WORKER_EXITING, False, True),
        (ErrorCode.NOT_MASTER, True, False),
        (ErrorCode.MAX_RUNTIME, False, False),
        (None, False, False),
    ],
)
def test_i10_master_that_is_ended_within_its_first_minute_is_counted(
    ended: ErrorCode | None, *, steady: bool, cut_short: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    code, key = (0, "DONE") if ended is None else (int(ended), ended.key)
    MetricsPublisher("main").ended(a_report(code=code, ended=key, steady=steady))
    found = [line["SessionsCutShort"] for line in written(capsys) if "SessionsCutShort" in line]
    assert found == ([[1.0]] if cut_short else [])


def test_i10_session_that_never_was_the_master_is_not_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    MetricsPublisher("main").ended(SessionReport("s1", code=4, ended="ERR_NOT_MASTER"))
    assert not [line for line in written(capsys) if "SessionsCutShort" in line]


@pytest.mark.parametrize(
    ("shard", "dimensions"), [("", [["service"]]), ("0", [["service"]]), ("3", [["service", "shard"]])]
)
def test_i10_heartbeat_of_a_further_shard_is_a_metric_of_its_own(
    capsys: pytest.CaptureFixture[str], shard: str, dimensions: list[list[str]]
) -> None:
    MetricsPublisher("main", shard=shard).beat(a_report(steady=True))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (beat,) = [line for line in lines if "MasterHeartbeat" in line]
    assert [each["Dimensions"] for each in beat["_aws"]["CloudWatchMetrics"]] == [dimensions]
    assert beat.get("shard", "") == (shard if shard == "3" else "")
    # All other figures are those of the deployment.
    assert all(["service"] in each["_aws"]["CloudWatchMetrics"][0]["Dimensions"] for each in lines if each is not beat)


def names_of(text: str) -> set[tuple[str, tuple[str, ...]]]:
    """Name and dimensions of every metric: what CloudWatch takes money for."""
    return {
        (metric["Name"], tuple(dimensions))
        for line in text.splitlines()
        for directive in json.loads(line)["_aws"]["CloudWatchMetrics"]
        for metric in directive["Metrics"]
        for dimensions in directive["Dimensions"]
    }


def a_good_day(settings: Settings) -> None:
    """One cluster with a token that ends, a change in each minute, a scheduled resync."""
    publisher = MetricsPublisher(settings.deployment, embedded(settings))
    good = dict.fromkeys(
        ("OldestOpenSeconds", "OpenKeys", "ListenersFailing", "ZonesStuck", "WaitingForPerson", "KeysSetAside",
         "RegistrationsLost", "HoursSinceResync"), 0.0,
    )  # fmt: skip
    clusters = [
        ClusterReport("prod", recording_seconds=0.1, holding={"services": False}, credential_days={"token": 90})
    ]
    listeners = [ListenerReport("prod", "services")]
    snapshot = a_report(
        clusters=clusters,
        listeners=listeners,
        lag={"p50": 1.0, "p99": 1.0},
        hand_over_seconds=0.1,
        health=good,
        steady=True,
    )
    publisher.beat(snapshot)
    publisher.resync_ended(ResyncEnded(0, 0, scheduled=True))
    listeners[0].ended = "ERR_MAX_RUNTIME"
    publisher.ended(a_report(code=5, ended="ERR_MAX_RUNTIME", listeners=listeners))


def test_stack_that_asks_for_little_pays_for_what_alarms_need(capsys: pytest.CaptureFixture[str]) -> None:
    a_good_day(Settings(cluster_metrics=False, dashboard_metrics=False))
    assert names_of(capsys.readouterr().out) == {
        (name, ("service",))
        for name in (
            "MasterHeartbeat", "LagP99", "ZonesBlocked", "OldestOpenSeconds", "OpenKeys", "ListenersFailing", "ZonesStuck",
            "HeldDeletions", "KeysSetAside", "HoursSinceResync", "RegistrationsLost", "CredentialDaysLeft",
            "ResyncErrors", "ResyncDifferences",  # in one hour of the day
        )
    }  # fmt: skip


def test_stack_that_asks_for_nothing_pays_for_what_it_had(capsys: pytest.CaptureFixture[str]) -> None:
    a_good_day(Settings())
    everything = names_of(capsys.readouterr().out)
    assert len(everything) == 33
    assert {each for each in everything if "cluster" in each[1]} == {
        ("CredentialDaysLeft", ("service", "cluster")),
        ("ListenersEnded", ("service", "code", "key", "cluster")),
    }
    a_good_day(Settings(cluster_metrics=False))
    assert names_of(capsys.readouterr().out) == {each for each in everything if "cluster" not in each[1]}
    a_good_day(Settings(dashboard_metrics=False))
    assert names_of(capsys.readouterr().out) == {each for each in everything if each[0] in ALARMED}


def test_metrics_that_alarms_need_are_those_of_the_template() -> None:
    alarms = resources(read_template(), "AWS::CloudWatch::Alarm").values()
    of_ours = {each["Properties"]["MetricName"] for each in alarms if each["Properties"]["Namespace"] == "kubesync"}
    assert of_ours == ALARMED
