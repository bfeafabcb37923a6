"""Beats and the report of a session: made of what actors have published, up to date, and never the end of a session."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.deployment import Deployment
from kubesync.domain.report import ResyncEnded, SessionReport
from simulation.writes import SENT


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    made = Deployment()
    yield made
    made.close()


def started(deployment: Deployment) -> list[SessionReport]:
    """Begin a session. Returns its beats: one comes as it begins, then one a minute, and one at the end."""
    running = deployment.start()
    beats: list[SessionReport] = []
    running.session.on_beat = beats.append
    return beats


def of_zone(report: SessionReport) -> dict[str, Any]:
    (zone,) = report.zones
    return zone


def test_beat_tells_what_happened_until_a_second_before(deployment: Deployment) -> None:
    beats = started(deployment)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(55.0)
    deployment.want("api", "10.0.0.2")
    deployment.pass_time(5.0)
    (beat,) = beats
    (cluster,) = beat.clusters
    services, _ = beat.listeners

    assert (cluster.windows, cluster.events, cluster.changed_keys) == (3, 2, 2)
    assert (services.lists, services.events) == (1, 2)
    assert (of_zone(beat)["batches"], of_zone(beat)["changes"]) == (2, 2)
    assert (beat.lag["count"], beat.lag["max"]) == (2, 1.0)
    assert beat.health["OpenKeys"] == 0


def test_lag_is_told_in_one_beat_only(deployment: Deployment) -> None:
    beats = started(deployment)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(60.0)
    for address in ("10.0.0.2", "10.0.0.3"):
        deployment.want("web", address)
        deployment.pass_time(10.0)
    deployment.pass_time(40.0)
    deployment.want("web", "10.0.0.4")
    deployment.pass_time(2.0)
    report = deployment.end()

    assert [beat.lag.get("count", 0) for beat in beats] == [1, 2, 1]
    assert report.lag["count"] == 4


def test_beat_does_not_change_afterwards(deployment: Deployment) -> None:
    beats = started(deployment)
    deployment.pass_time(60.0)
    (beat,) = beats
    told = beat.document()
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(10.0)
    deployment.end()

    assert beat.document() == told
    assert [listener["events"] for listener in told["listeners"]] == [0, 0]


def test_report_of_the_end_counts_what_the_end_has_done(deployment: Deployment) -> None:
    beats = started(deployment)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(0.5)  # the window is open: it is recorded and sent at the end
    report = deployment.end()

    assert deployment.sets() == {"web A": ("10.0.0.1",)}
    for told in (report, beats[-1]):
        (cluster,) = told.clusters
        assert (cluster.windows, cluster.changed_keys, of_zone(told)["changes"], told.lag["count"]) == (2, 1, 1, 1)
        assert [listener.ended for listener in told.listeners] == ["ERR_MAX_RUNTIME", "ERR_MAX_RUNTIME"]
    assert report.clean


def test_zone_without_an_answer_at_the_end_is_left_unsettled(deployment: Deployment) -> None:
    started(deployment)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time(30.0)
    deployment.at(SENT, lambda: deployment.hold(600.0), times=None)
    deployment.want("web", "10.0.0.2")
    deployment.pass_time(1.2)
    report = deployment.end()

    assert not report.clean
    assert of_zone(report)["changes"] == 1


def test_i10_error_of_a_beat_is_logged_and_ends_no_session(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    running = deployment.start()
    beats: list[SessionReport] = []

    def on_beat(beat: SessionReport) -> None:
        beats.append(beat)
        raise RuntimeError("dictionary changed size during iteration")

    running.session.on_beat = on_beat
    deployment.pass_time(120.0)
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    assert deployment.sets() == {"web A": ("10.0.0.1",)}
    report = deployment.end()

    assert (report.ended, report.clean, len(beats)) == ("ERR_MAX_RUNTIME", True, 3)
    assert caplog.messages.count("the figures of this minute could not be reported") == 3


def test_error_of_whoever_is_told_of_a_resync_ends_no_session(deployment: Deployment) -> None:
    running = deployment.start()

    def on_resync(_ended: ResyncEnded) -> None:
        raise RuntimeError("no metrics")

    running.session.on_resync = on_resync
    assert [each["cluster"] for each in deployment.resync()["clusters"]] == ["prod"]
    deployment.want("web", "10.0.0.1")
    deployment.pass_time()
    assert deployment.sets() == {"web A": ("10.0.0.1",)}
    assert deployment.end().clean
