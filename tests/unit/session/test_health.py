"""What does not get through: which figures a session knows, and which it leaves out (I10)."""

from typing import Any

import pytest

from harness.cluster_tables import cluster_tables
from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from harness.seen.builders import a_config
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.control.listeners import Basis, Checkpoint
from kubesync.cluster.keys.key_states import KeyStates, ListenerView
from kubesync.cluster.serving import ClusterFigures
from kubesync.domain.merge import Believed
from kubesync.domain.objects import Resource
from kubesync.session.health import ClusterHealth, cluster_health, health_figures
from kubesync.zone.progress import Progress, ZoneFigures, ZoneReport, ZoneState


def figures(*clusters: ClusterHealth, unserved: int = 0, pending: int = 0, **more: Any) -> dict[str, float]:
    return health_figures(clusters, unserved, pending, more.pop("zones", {}), more.pop("steps", {}), 1000.0)


def a_zone(progress: Progress, *, blocked: bool = False) -> ZoneFigures:
    return ZoneFigures(ZoneReport("Z", blocked=blocked), progress, clean=True)


@pytest.mark.parametrize(
    ("failing", "told"),
    [
        ((0.0, 0.0), 0),
        ((0.0, 10.0), None),  # it began a moment ago: perhaps it failed in sessions before, too
        ((0.0, 179.0), None),
        ((0.0, 180.0), 1),
        ((500.0, 10.0), 1),
    ],
)
def test_i10_listeners_count_once_they_have_failed_for_three_minutes(
    failing: tuple[float, ...], told: int | None
) -> None:
    assert figures(ClusterHealth(failing)).get("ListenersFailing") == told


def test_i10_cluster_that_is_not_served_counts_with_both_listeners() -> None:
    assert figures(ClusterHealth((0.0, 0.0)), unserved=1)["ListenersFailing"] == 2
    assert "ListenersFailing" not in figures(ClusterHealth((0.0, 0.0)), pending=1)


@pytest.mark.parametrize(
    ("oldest", "unrecorded", "told"),
    [
        (0.0, 0.0, 0.0),
        (12.0, 1.0, 12.0),
        (181.0, 0.0, 181.0),
        (5.0, 31.0, None),
        (0.0, 400.0, 400.0),
        (400.0, 31.0, 400.0),
    ],
)
def test_i10_oldest_change_is_told_unless_a_window_may_have_waited_for_longer(
    oldest: float, unrecorded: float, told: float | None
) -> None:
    assert figures(ClusterHealth(oldest_open=oldest, unrecorded=unrecorded)).get("OldestOpenSeconds") == told


def test_i10_zone_is_stuck_once_nothing_has_landed_for_three_minutes() -> None:
    progress = Progress()
    assert progress.state(0.0) is ZoneState.FINE
    progress = progress.busy(0.0)
    assert progress.state(179.0) is ZoneState.UNKNOWN
    progress = progress.busy(100.0)
    assert progress.state(180.0) is ZoneState.STUCK
    progress = progress.landed(180.0)
    assert progress.state(359.0) is ZoneState.FINE
    assert progress.state(360.0) is ZoneState.STUCK
    assert progress.quiet().state(9000.0) is ZoneState.FINE


def test_i10_full_zone_is_stuck_although_deletions_land() -> None:
    progress = Progress().full(0.0, is_full=True).landed(179.0)
    assert progress.state(179.0) is ZoneState.UNKNOWN
    progress = progress.full(180.0, is_full=True)
    assert progress.state(180.0) is ZoneState.STUCK
    assert progress.full(181.0, is_full=False).state(181.0) is ZoneState.FINE


def test_i10_zones_are_told_unless_one_is_not_known_yet() -> None:
    fine, unsure, stuck = Progress(), Progress().busy(900.0), Progress().busy(0.0)
    assert figures(zones={"Z1": a_zone(fine)})["ZonesStuck"] == 0
    assert "ZonesStuck" not in figures(zones={"Z1": a_zone(fine), "Z2": a_zone(unsure)})
    assert figures(zones={"Z2": a_zone(unsure), "Z3": a_zone(stuck)})["ZonesStuck"] == 1
    assert figures(zones={"Z3": a_zone(stuck, blocked=True)})["ZonesStuck"] == 0
    assert figures(zones={"Z1": a_zone(fine)}, steps={"zone Z1": 180.0})["ZonesStuck"] == 1


def test_i10_cluster_that_was_added_a_moment_ago_raises_nothing() -> None:
    config = ClusterConfig(
        name="new", server="https://x.example", domain="x.example", zones=(ZoneReference(id="Z1", name="x.example"),)
    )
    clock = ManualClock()
    store = MemoryStore(clock=clock)
    states = KeyStates(config, cluster_tables(store), epoch_seconds=clock.epoch_seconds)
    figures = ClusterFigures(views=tuple(states.listeners.values()))
    seen = cluster_health("new", figures, {}, clock.epoch_seconds(), clock.monotonic())
    assert seen.failing == (1.0, 1.0)
    assert "ListenersFailing" not in health_figures([seen], 0, 0, {}, {}, clock.monotonic())


def test_i10_cluster_whose_actor_hangs_works_and_records_nothing() -> None:
    working = ListenerView(works_since=100.0)
    figures = ClusterFigures(views=(working, working))
    seen = cluster_health("prod", figures, {"prod/cluster": 200.0, "zone Z1": 900.0}, 1000.0, 500.0)
    assert (seen.failing, seen.unrecorded) == ((200.0, 200.0), 200.0)
    told = health_figures([seen], 0, 0, {}, {}, 500.0)
    assert (told["ListenersFailing"], told["OldestOpenSeconds"]) == (2, 200.0)
    seen = cluster_health("prod", figures, {"zone Z1": 900.0}, 1000.0, 500.0)
    assert (seen.failing, seen.unrecorded) == ((0.0, 0.0), 0.0)


def test_i5_deletions_by_lists_of_the_last_hour_are_told_where_there_are_any() -> None:
    now = 60.0 * 1_000_000
    known = Checkpoint(7, 1, Basis(1, "https://h", 1), believed=Believed({999_900: 5, 999_990: 3, 1_000_000: 4}))
    view = ListenerView(known, works_since=1.0)
    (seen,) = (cluster_health("prod", ClusterFigures(views=(view, ListenerView())), {}, now, 5_000.0),)
    assert seen.inferred == 7
    assert figures(seen, ClusterHealth(inferred=2))["InferredDeletions"] == 9
    assert "InferredDeletions" not in figures(ClusterHealth())


def test_i10_refusals_that_are_reported_are_no_standstill() -> None:
    progress = Progress()
    for second in range(0, 400, 10):
        progress = progress.busy(float(second)).landed(float(second))
    assert progress.state(400.0) is ZoneState.FINE


@pytest.mark.parametrize(("absent", "since"), [(True, 9_000.0), (False, 1_000.0)])
def test_i10_api_that_was_absent_does_not_fail_since_then_under_another_configuration(
    *, absent: bool, since: float
) -> None:
    store = MemoryStore(clock=ManualClock())
    states = KeyStates(a_config(), cluster_tables(store))
    states.configure(a_config(), {}, 1_000.0)
    states.listeners[Resource.SERVICES].absent = absent
    states.configure(a_config(revision=2), {}, 9_000.0)
    assert states.listeners[Resource.SERVICES].failing_since == since
