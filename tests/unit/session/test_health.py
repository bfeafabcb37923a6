"""What does not get through: which figures a session knows, and which it leaves out (I10)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.fakes.memory_store import MemoryStore
from kubesync.aws.tables.control.clusters import ClusterConfig, ZoneReference
from kubesync.aws.tables.name_counts import NameCountTable
from kubesync.aws.tables.state import StateTable
from kubesync.cluster.keys.key_states import KeyStates
from kubesync.session.clusters import Clusters
from kubesync.session.health import ClusterHealth, health
from kubesync.zone.actor import ZoneActor
from kubesync.zone.progress import Progress, Standing


def figures(*clusters: ClusterHealth, unserved: int = 0, pending: int = 0, **more: Any) -> dict[str, float]:
    zones = cast("dict[str, ZoneActor]", more.pop("zones", {}))
    return health(clusters, unserved, pending, zones, more.pop("steps", {}), 1000.0)


def a_zone(progress: Progress, *, blocked: bool = False) -> SimpleNamespace:
    return SimpleNamespace(progress=progress, blocked=blocked)


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
    assert progress.standing(0.0) is Standing.FINE
    progress.busy(0.0)
    assert progress.standing(179.0) is Standing.UNSURE
    progress.busy(100.0)
    assert progress.standing(180.0) is Standing.STUCK
    progress.landed(180.0)
    assert progress.standing(359.0) is Standing.FINE
    assert progress.standing(360.0) is Standing.STUCK
    progress.quiet()
    assert progress.standing(9000.0) is Standing.FINE


def test_i10_full_zone_is_stuck_although_deletions_land() -> None:
    progress = Progress()
    progress.full(0.0, is_full=True)
    progress.landed(179.0)
    assert progress.standing(179.0) is Standing.UNSURE
    progress.full(180.0, is_full=True)
    assert progress.standing(180.0) is Standing.STUCK
    progress.full(181.0, is_full=False)
    assert progress.standing(181.0) is Standing.FINE


def test_i10_zones_are_told_unless_one_is_not_known_yet() -> None:
    fine, unsure, stuck = Progress(), Progress(), Progress()
    unsure.busy(900.0)
    stuck.busy(0.0)
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
    states = KeyStates(config, StateTable(store), NameCountTable(store), epoch=clock.epoch)
    clusters = Clusters(lambda: None, None)  # type: ignore[arg-type,return-value]
    clusters._actors["new"] = SimpleNamespace(service=SimpleNamespace(states=states), running=None)  # type: ignore[assignment]
    seen = clusters.health(config, {}, clock.epoch(), clock.monotonic())
    assert "ListenersFailing" not in health([seen], 0, 0, {}, {}, clock.monotonic())


def test_i10_refusals_that_are_reported_are_no_standstill() -> None:
    progress = Progress()
    for second in range(0, 400, 10):
        progress.busy(float(second))
        progress.landed(float(second))
    assert progress.standing(400.0) is Standing.FINE
