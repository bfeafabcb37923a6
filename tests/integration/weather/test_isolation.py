"""I4 and I3 beyond single objects: changes among many, zones and clusters in trouble."""

import pytest

from integration.weather import scenarios_isolation as scenarios


@pytest.mark.parametrize("bad", [2, *(pytest.param(bad, marks=pytest.mark.thorough) for bad in (1, 5))])
def test_i4_bad_changes_among_499_are_found_in_few_batches(bad: int) -> None:
    scenarios.play_bad_among_many(bad)


@pytest.mark.parametrize("title", scenarios.TROUBLES)
def test_i4_zone_in_trouble_holds_up_no_other(title: str) -> None:
    scenarios.play_zone_in_trouble(title)


@pytest.mark.parametrize("title", ["unreachable", *scenarios.SLOW])
def test_i4_cluster_in_trouble_holds_up_no_other(title: str) -> None:
    scenarios.play_cluster_in_trouble(title)


def test_i4_cluster_that_does_not_say_who_it_is_holds_up_no_other() -> None:
    scenarios.play_identity_that_is_not_answered()
