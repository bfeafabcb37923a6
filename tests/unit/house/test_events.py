"""The sample events are what the functions take."""

import json
from pathlib import Path
from typing import Final

import pytest

EVENTS: Final = sorted((Path(__file__).resolve().parents[3] / "events").glob("*.json"))
BY_HAND: Final = {"cluster": str, "dry_run": bool, "force": bool}


def test_there_is_an_event_for_each_way_to_invoke() -> None:
    assert [path.stem for path in EVENTS] == ["dry-run", "forced-resync", "full-resync", "resync-cluster", "schedule"]


def test_schedule_is_what_the_scheduler_sends() -> None:
    event = json.loads(next(path for path in EVENTS if path.stem == "schedule").read_text())

    assert event["source"] == "aws.scheduler"
    assert event["detail-type"] == "Scheduled Event"
    assert event["detail"] == "{}"  # a string: the scheduler does not parse it


@pytest.mark.parametrize("path", [path for path in EVENTS if path.stem != "schedule"], ids=lambda path: path.stem)
def test_event_by_hand_has_only_known_fields(path: Path) -> None:
    event = json.loads(path.read_text())

    assert event
    assert {name: type(value) for name, value in event.items()} == {name: BY_HAND[name] for name in event}
