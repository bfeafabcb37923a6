"""A figure knows whether it is on the right side of its goal."""

import math

import pytest

from bench.figures import Figure, Sense, percentile, table


@pytest.mark.parametrize(
    ("sense", "value", "missed"),
    [
        (Sense.AT_LEAST, 0.6, False),
        (Sense.AT_LEAST, 0.599, True),
        (Sense.AT_MOST, 0.6, False),
        (Sense.AT_MOST, 0.601, True),
        (Sense.EXACTLY, 0.6, False),
        (Sense.EXACTLY, 1.0, True),
        (Sense.NOTE, 9.0, False),
        (Sense.AT_LEAST, math.nan, False),
    ],
)
def test_figure_is_missed_on_the_wrong_side_of_its_goal(sense: Sense, value: float, missed: bool) -> None:
    assert Figure("a ratio", value, sense=sense, goal=0.6).missed is missed


def test_table_shows_measured_beside_goal_and_verdict() -> None:
    figures = [
        Figure("lag", 1.25, "s", Sense.AT_MOST, 1.1, "30 events"),
        Figure("peer", math.nan, "times", Sense.AT_LEAST, 10),
        Figure("requests", 12_000),
    ]

    assert table(figures).splitlines()[2:] == [
        "lag       1.250 s   ≤ 1.100  MISSED        30 events",
        "peer      - times   ≥ 10     not measured",
        "requests  12,000",
    ]


@pytest.mark.parametrize(("share", "expected"), [(0.5, 2.0), (0.51, 3.0), (0.99, 4.0), (1.0, 4.0), (0.0, 1.0)])
def test_percentile_is_the_smallest_value_that_the_share_does_not_exceed(share: float, expected: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], share) == expected


def test_percentile_of_nothing_is_not_a_number() -> None:
    assert math.isnan(percentile([], 0.5))
