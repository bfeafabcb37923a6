"""The status file of ``render --watch``: what it says when, and how seldom it is written."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kubesync_local.proxies.bounds import Tally, Why
from kubesync_local.proxies.files.status import Look, StatusFile
from kubesync_local.proxies.left_out import LeftOut

NOON = 1_795_521_600.0  # 2026-11-24T12:00:00Z


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def epoch_seconds(self) -> float:
        return NOON + self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class _Status:
    """A status file, what it says, and how often it was written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = _Clock()
        self.said: list[str] = []
        self.output_failed = ""
        self.writes = 0
        self.left_out = LeftOut(2, lambda _: None, self.clock.monotonic)
        self.file = StatusFile(
            path, self.clock, self.said.append, self.left_out, lambda: self.output_failed, lambda: self.writes
        )

    def look(self, seconds: float = 1.0, problem: str = "", *, read: bool = True) -> dict[str, Any]:
        """The document after a pass of the loop so much later."""
        self.clock.now += seconds
        self.file.note(Look(read=read, upstreams=3, problem=problem))
        return self.document

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path.read_text())
        return found


@pytest.fixture
def status(tmp_path: Path) -> _Status:
    made = _Status(tmp_path / "status.json")
    made.file.open()
    return made


def test_status_says_starting_until_the_table_was_read(status: _Status) -> None:
    assert status.document == {
        "v": 1, "state": "starting", "since": "2026-11-24T12:00:00Z", "updated": "2026-11-24T12:00:00Z", "pid": os.getpid(),
        "last_read": None, "last_write": None, "error": "", "last_error": None, "upstreams": 0,
        "left_out": {"nodes": 0, "upstreams": 0, "invalid": 0, "not_allowed": 0, "forbidden": 0, "over_limit": 0}, "standing": 0,
    }  # fmt: skip
    status.writes = 1
    tally = Tally(nodes=5, left_out={Why.OVER_LIMIT: 3, Why.FORBIDDEN: 1}, examples={Why.FORBIDDEN: "::1 (loopback)"})
    status.left_out.note("named/a", tally)

    assert status.look(2) == {
        "v": 1, "state": "ok", "since": "2026-11-24T12:00:02Z", "updated": "2026-11-24T12:00:02Z", "pid": os.getpid(),
        "last_read": "2026-11-24T12:00:02Z", "last_write": "2026-11-24T12:00:02Z", "error": "", "last_error": None, "upstreams": 3,
        "left_out": {"nodes": 4, "upstreams": 1, "invalid": 0, "not_allowed": 0, "forbidden": 1, "over_limit": 3}, "standing": 0,
    }  # fmt: skip


def test_status_fails_at_once_and_says_since_when_and_the_last_error_when_it_works_again(status: _Status) -> None:
    status.look()

    failing = status.look(1, "no such table", read=False)
    assert (failing["state"], failing["since"], failing["last_read"]) == (
        "failing", "2026-11-24T12:00:02Z", "2026-11-24T12:00:01Z",
    )  # fmt: skip
    assert failing["error"] == "no such table"
    longer = status.look(30, "no such table", read=False)
    assert (longer["since"], longer["updated"]) == ("2026-11-24T12:00:02Z", "2026-11-24T12:00:32Z")
    assert longer["last_error"] == {"at": "2026-11-24T12:00:32Z", "text": "no such table"}
    works = status.look(1)
    assert (works["state"], works["since"], works["error"]) == ("ok", "2026-11-24T12:00:33Z", "")
    assert works["last_error"] == {"at": "2026-11-24T12:00:32Z", "text": "no such table"}


def test_proxy_that_is_not_up_to_date_fails_too(status: _Status) -> None:
    status.output_failed = "--reload failed, the proxy may use the last configuration: status 1"

    assert (status.look()["state"], status.document["error"]) == ("failing", status.output_failed)
    status.output_failed = ""
    assert status.look()["state"] == "ok"


def test_status_is_written_every_ten_seconds_when_nothing_changes(status: _Status) -> None:
    status.look()
    ages = [status.look(1)["updated"][-4:-1] for _ in range(25)]

    assert ages == [*[":01"] * 9, *[":11"] * 10, *[":21"] * 6]


def test_status_says_that_it_ended_and_why(status: _Status) -> None:
    status.look()
    status.clock.now += 1
    status.file.close()
    assert (status.document["state"], status.document["since"], status.document["error"]) == (
        "ended", "2026-11-24T12:00:02Z", "",
    )  # fmt: skip

    status.file.close("the disk is full")
    assert status.document["error"] == "the disk is full"


def test_status_replaces_a_link_and_never_follows_it(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "status.json"
    victim.write_text("mine")
    path.symlink_to(victim)
    (tmp_path / ".status.json.kubesync-status").symlink_to(victim)

    made = _Status(path)
    made.file.open()

    assert (victim.read_text(), path.is_symlink(), made.document["state"]) == ("mine", False, "starting")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["status.json", "victim"]


def test_status_that_cannot_be_written_is_said_once_and_stops_nothing(status: _Status) -> None:
    away = status.path.parent.with_name("away")
    status.path.parent.rename(away)
    status.path = away / "status.json"

    for _ in range(3):
        status.look(20)
    assert [line.partition(":")[0] for line in status.said] == [
        f"--status {away.parent / status.file.path.parent.name / 'status.json'}"
    ]

    away.rename(status.file.path.parent)
    status.path = status.file.path
    status.look(20)
    assert status.said[1:] == ["the status file can be written again"]


def test_status_in_a_directory_that_is_missing_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        _Status(tmp_path / "missing" / "status.json").file.open()


def test_documented_form_has_the_fields_of_the_file(status: _Status) -> None:
    page = (Path(__file__).parents[3] / "docs/proxies.md").read_text()
    documented = json.loads(
        next(part for part in page.split("```json\n") if part.startswith('{"v": 1, "state"')).partition("```")[0]
    )
    status.look(problem="no such table", read=False)

    assert documented.keys() == status.document.keys()
    assert documented["left_out"].keys() == status.document["left_out"].keys()
    assert documented["last_error"].keys() == status.document["last_error"].keys()
    for name in documented:
        assert f"`{name}`" in page
