"""Storms are weathered. See ``scenarios_storms``."""

from __future__ import annotations

import pytest

from integration.weather import scenarios_storms as scenarios


@pytest.mark.parametrize("code", ["Throttling", "PriorRequestNotComplete"])
def test_route53_that_throttles_is_asked_seldom_and_caught_up_with(code: str) -> None:
    scenarios.play_route53(code)


@pytest.mark.parametrize(("probability", "seed"), [(1.0, 1), (0.6, 2)], ids=["all but the lease", "most of all"])
def test_dynamodb_that_throttles_does_not_end_the_session(probability: float, seed: int) -> None:
    scenarios.play_dynamodb(probability, seed)


def test_dynamodb_that_throttles_from_the_first_second_does_not_end_the_session() -> None:
    scenarios.play_dynamodb(1.0, 3, at_start=True)


def test_dynamodb_that_leaves_keys_unprocessed_loses_nothing() -> None:
    scenarios.play_unprocessed(4)


@pytest.mark.parametrize("retry_after", [None, 2])
@pytest.mark.parametrize("verb", ["list", "watch"])
def test_api_server_that_answers_429_is_asked_seldom_and_caught_up_with(verb: str, retry_after: int | None) -> None:
    scenarios.play_api_server(verb, retry_after)
