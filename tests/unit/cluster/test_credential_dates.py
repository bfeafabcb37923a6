"""Ends of credentials over whole sessions: stored when they change and never otherwise, metered, and warned of once."""

import json
import logging
from typing import Any

import pytest

from harness.fakes.store_faults import StoreFaults, writes_to
from harness.fed import FedDeployment, FedSession
from harness.seen.builders import a_config, a_service, saw
from kubesync.aws.dynamodb.store import Item, Key, Put
from kubesync.domain.errors import StoreBusyError
from kubesync.telemetry.metrics import MetricsPublisher

PLACE = Key("control", "cluster#prod", "credentials")
DAY = 86_400.0
NOW = 1_800_000_000.0  # where the simulation's clock begins, to a few hundred seconds


@pytest.fixture
def deployment() -> FedDeployment:
    made = FedDeployment(a_config())
    assert abs(made.clock.epoch_seconds() - NOW) < 3600
    return made


def stored(deployment: FedDeployment) -> dict[str, Any] | None:
    item: Item | None = deployment.store.get(PLACE)
    return None if item is None else {name: item[name] for name in ("revision", "ends")}


def begun(deployment: FedDeployment, **ends: tuple[float, ...]) -> FedSession:
    session = deployment.session()
    session.ends(**ends)
    session.begin()
    session.land()
    return session


def put(deployment: FedDeployment, key: Key, item: dict[str, Any]) -> None:
    with deployment.world.unseen():
        deployment.store.write(Put(key, item))


def writes(deployment: FedDeployment) -> int:
    return sum(any(action.key == PLACE for action in call.actions) for call in deployment.writes())


def metered(session: FedSession, seconds: float, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, int]]:
    """The metric, by cluster (empty: all), as it is written meanwhile."""
    publisher = MetricsPublisher("main")
    capsys.readouterr()
    session.running.session.on_beat = publisher.beat
    session.wait(seconds)
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    return [(line.get("cluster", ""), line["CredentialDaysLeft"][0]) for line in lines if "CredentialDaysLeft" in line]


def test_dates_are_stored_once_under_the_fence_and_nothing_is_written_while_they_stay_i6(
    deployment: FedDeployment,
) -> None:
    session = begun(
        deployment, TOKEN=(NOW + 40 * DAY,), SERVER_CERTIFICATE=(NOW + 50 * DAY,), CA=(), CLIENT_CERTIFICATE=()
    )
    assert stored(deployment) == {"revision": 1, "ends": {"server certificate": 1804320000, "token": 1803456000}}
    (call,) = [each for each in deployment.writes() if any(action.key == PLACE for action in each.actions)]
    assert "fence" in [action.key.sort for action in call.actions]
    session.wait(600.0)
    assert writes(deployment) == 1
    session.end()
    # The next session finds them, also before its connections have seen anything.
    session = deployment.session()
    session.wait(600.0)
    assert writes(deployment) == 1
    assert stored(deployment) == {"revision": 1, "ends": {"server certificate": 1804320000, "token": 1803456000}}


def test_cluster_without_such_credentials_has_no_item(deployment: FedDeployment) -> None:
    session = begun(deployment, TOKEN=(), CA=(), CLIENT_CERTIFICATE=(), SERVER_CERTIFICATE=())
    session.wait(120.0)
    session.end()
    assert stored(deployment) is None


def test_secret_that_is_replaced_is_followed(deployment: FedDeployment, capsys: pytest.CaptureFixture[str]) -> None:
    session = begun(deployment, TOKEN=(NOW + 5 * DAY,))
    assert metered(session, 65.0, capsys) == [("prod", 4), ("", 4)]
    session.ends(TOKEN=(NOW + 95 * DAY,))
    session.wait(35.0)  # idle windows
    assert metered(session, 65.0, capsys) == [("prod", 94), ("", 94)]
    assert stored(deployment) == {"revision": 1, "ends": {"token": 1808208000}}
    session.ends(TOKEN=())
    session.wait(35.0)
    assert metered(session, 65.0, capsys) == []
    assert stored(deployment) == {"revision": 1, "ends": {}}


def test_days_go_below_zero_and_the_first_end_counts(
    deployment: FedDeployment, capsys: pytest.CaptureFixture[str]
) -> None:
    session = begun(deployment, TOKEN=(NOW + 5 * DAY,), CA=(NOW - 2.5 * DAY,), SERVER_CERTIFICATE=(NOW - DAY,))
    assert metered(session, 65.0, capsys) == [("prod", -3), ("", -3)]


def test_first_end_of_all_clusters_is_metered_and_each_cluster_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    deployment = FedDeployment(a_config(), a_config(name="stage", domain="stage.example.com"))
    session = begun(deployment, TOKEN=(NOW + 20.5 * DAY,))
    # A session that has seen nothing goes by what is stored.
    session.end()
    item = deployment.store.get(PLACE)
    assert item is not None
    stage = Key("control", "cluster#stage", "credentials")
    fields = {name: value for name, value in item.items() if name not in ("pk", "sk")}
    put(deployment, stage, {**fields, "ends": {"token": int(NOW + 3.5 * DAY), "of a newer release": 1}})
    session = deployment.session()
    assert metered(session, 65.0, capsys) == [("prod", 20), ("stage", 3), ("", 3)]


def test_end_of_a_server_that_fails_the_handshake_stays_known(
    deployment: FedDeployment, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(deployment, SERVER_CERTIFICATE=(NOW + 0.5 * DAY,), TOKEN=()).end()
    deployment.clock.advance(DAY)
    session = deployment.session()
    session.ends(TOKEN=(), CA=(), CLIENT_CERTIFICATE=())  # no handshake succeeds any more
    assert metered(session, 65.0, capsys) == [("prod", -1), ("", -1)]
    assert stored(deployment) == {"revision": 1, "ends": {"server certificate": 1800043200}}


def test_ca_that_a_handshake_has_shown_stays_known_while_the_bundle_holds_it(deployment: FedDeployment) -> None:
    old, new = NOW + 5 * DAY, NOW + 500 * DAY
    begun(deployment, CA=(old,)).end()
    begun(deployment, CA=(old, new)).end()
    assert stored(deployment) == {"revision": 1, "ends": {"CA": 1800432000}}
    begun(deployment, CA=(new, new + DAY)).end()
    assert stored(deployment) == {"revision": 1, "ends": {"CA": 1843286400}}, "nothing better is known"


def test_dates_of_another_configuration_count_no_more(
    deployment: FedDeployment, capsys: pytest.CaptureFixture[str]
) -> None:
    session = begun(deployment, TOKEN=(NOW + 5 * DAY,))
    session.ends()
    session.configure(ttl=120)
    assert metered(session, 65.0, capsys) == []
    session.ends(CLIENT_CERTIFICATE=(NOW + 40 * DAY,))
    session.wait(35.0)
    assert stored(deployment) == {"revision": 2, "ends": {"client certificate": 1803456000}}


def test_near_end_is_warned_of_once_a_session(deployment: FedDeployment, caplog: pytest.LogCaptureFixture) -> None:
    def warnings() -> list[str]:
        return [record.__dict__["credential"] for record in caplog.records if "credential" in record.__dict__]

    with caplog.at_level(logging.WARNING):
        session = begun(deployment, TOKEN=(NOW + 13.5 * DAY,), CA=(NOW + 15.5 * DAY,))
        session.wait(300.0)
        assert warnings() == ["token ends in 13 days (2027-01-28)"]
        session.ends(TOKEN=(NOW + 12.5 * DAY,))
        session.wait(40.0)
        assert warnings()[1:] == ["token ends in 12 days (2027-01-27)"]
        session.end()
        deployment.session().wait(40.0)
        assert warnings()[2:] == ["token ends in 12 days (2027-01-27)"]


def test_master_that_is_fenced_out_stores_no_date_i2(deployment: FedDeployment) -> None:
    session = begun(deployment, TOKEN=(NOW + 40 * DAY,))
    fence = Key("control", "cluster#prod", "fence")
    item = deployment.store.get(fence)
    assert item is not None
    fields = {name: value for name, value in item.items() if name not in ("pk", "sk")}
    put(deployment, fence, {**fields, "epoch": 99})
    session.ends(TOKEN=(NOW + 80 * DAY,))
    session.wait(60.0)
    assert stored(deployment) == {"revision": 1, "ends": {"token": 1803456000}}
    assert not session.running.alive


def test_removed_cluster_leaves_no_dates(deployment: FedDeployment) -> None:
    session = begun(deployment, TOKEN=(NOW + 40 * DAY,))
    session.deployment.route53.let_through(None)
    session.configure(deleting=True)
    session.wait(60.0)
    assert stored(deployment) is None


def test_date_is_stored_later_if_the_tables_do_not_answer(
    deployment: FedDeployment, capsys: pytest.CaptureFixture[str]
) -> None:
    session = begun(deployment, TOKEN=())
    deployment.faults = faults = StoreFaults()
    faults.fail(writes_to(PLACE), StoreBusyError("throttled"), times=None)
    session.ends(TOKEN=(NOW + 5 * DAY,))
    session.wait(40.0)
    assert stored(deployment) is None
    assert metered(session, 65.0, capsys) == [("prod", 4), ("", 4)], "it is known all the same"
    session.record(saw(a_service(), 20, "web"))
    assert session.intended() != {}, "nothing else waits for it"
    deployment.spare()
    session.wait(40.0)
    assert stored(deployment) == {"revision": 1, "ends": {"token": 1800432000}}
