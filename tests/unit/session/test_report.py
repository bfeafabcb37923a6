"""The report of a session: plain JSON, percentiles of what was measured."""

import json
from random import Random

from kubesync.domain.report import ClusterReport, ListenerReport, SessionReport, percentiles


def test_no_lag_has_no_percentiles() -> None:
    assert percentiles([]) == {}


def test_percentiles_of_one_and_of_many() -> None:
    assert percentiles([0.25]) == {"count": 1.0, "p50": 0.25, "p90": 0.25, "p99": 0.25, "max": 0.25}
    lags = [n / 1000 for n in range(1000)]
    Random(1).shuffle(lags)
    assert percentiles(lags) == {"count": 1000.0, "p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 0.999}


def test_report_is_plain_json() -> None:
    report = SessionReport("s1", epoch=4, code=5, ended="ERR_MAX_RUNTIME")
    report.listeners.append(ListenerReport("prod", "services", errors={"ERR_READ_BODY": 2}))
    report.clusters.append(ClusterReport("prod", windows=3, held={"services": "why"}))
    document = json.loads(json.dumps(report.document()))
    assert document["session"] == "s1"
    assert (document["code"], document["ended"], document["clean"]) == (5, "ERR_MAX_RUNTIME", False)
    assert document["listeners"][0]["errors"] == {"ERR_READ_BODY": 2}
    assert document["clusters"][0]["held"] == {"services": "why"}


def test_reports_share_nothing() -> None:
    first, second = SessionReport("a"), SessionReport("b")
    first.lag["p50"] = 1.0
    first.listeners.append(ListenerReport("prod", "services"))
    assert (second.lag, second.listeners) == ({}, [])
