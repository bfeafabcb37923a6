"""I5: absence is proven. See ``scenarios_absence``."""

import pytest

from integration.weather import scenarios_absence as scenarios
from kubesync_local.standins.apiserver.transport.faults import Fault


@pytest.mark.parametrize("empty", [("services",), ("endpoints",), ("services", "endpoints")], ids="+".join)
@pytest.mark.parametrize("count", [4, 12])
def test_i5_empty_list_deletes_nothing_until_forced(count: int, empty: tuple[str, ...]) -> None:
    if count < 10 and "services" not in empty:
        pytest.skip("a few endpoints may go, where the cluster is the same one")
    scenarios.play_held_and_released(count, empty)


@pytest.mark.parametrize("count", [3, 12])
def test_i5_another_cluster_at_the_address_deletes_nothing(count: int) -> None:
    scenarios.play_another_cluster_at_the_address(count)


@pytest.mark.parametrize("answer", [scenarios.ANOTHER, scenarios.NO_ANSWER], ids=["another uid", "no answer"])
def test_i5_endpoints_of_another_cluster_delete_nothing(answer: Fault) -> None:
    scenarios.play_endpoints_of_another_cluster(answer)


@pytest.mark.parametrize("resource", ["services", "endpoints"])
@pytest.mark.parametrize("title", scenarios.BROKEN_LISTS)
def test_i5_list_that_is_not_complete_is_none(title: str, resource: str) -> None:
    scenarios.play_broken_list(title, resource)


def test_i5_endpoints_that_may_not_be_read_are_not_empty() -> None:
    scenarios.play_endpoints_denied()


@pytest.mark.parametrize("watching", [True, False], ids=["while watching", "between sessions"])
def test_i5_store_restored_from_a_backup_leaves_no_ghost(watching: bool) -> None:
    scenarios.play_restored(watching=watching)


@pytest.mark.parametrize("when", ["between sessions", "between list and watch"])
def test_i5_object_that_came_and_went_leaves_nothing(when: str) -> None:
    scenarios.play_came_and_went(when)


def test_i5_large_absence_in_the_same_cluster_is_held_and_events_are_not() -> None:
    scenarios.play_large_absence_is_held(12, 5)
