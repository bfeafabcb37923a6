"""Silence is noticed in time. See ``scenarios_silence``."""

import pytest

from integration.weather import scenarios_silence as scenarios


@pytest.mark.parametrize("how", ["old", "all"])
def test_connection_that_dies_without_a_word_is_noticed_and_resumed(how: str) -> None:
    scenarios.play_silence(how)


def test_silence_again_and_again_loses_nothing() -> None:
    scenarios.play_silence("old", rounds=3)


def test_quiet_watch_with_bookmarks_is_left_alone() -> None:
    scenarios.play_quiet_is_not_silence()
