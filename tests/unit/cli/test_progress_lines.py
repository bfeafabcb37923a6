"""Progress of a session: an error that repeats itself does not bury the rest."""

import io
import logging
import os
import re
import sys
import threading

import pytest
from rich.console import Console

from harness.cli_stack import logging_restored
from harness.fakes.manual_clock import ManualClock
from kubesync.aws.tables.audit import Entry
from kubesync_local.sessions.live import LiveProgress
from kubesync_local.sessions.progress import ProgressLines
from kubesync_local.terminal.logs import set_up_logs

DOWN = {"cluster": "prod", "resource": "services", "key": "ERR_CONNECT_FAILED", "message": "h:6443: connection refused"}
WORKS = {"cluster": "prod", "resource": "services"}


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line[9:] for line in capsys.readouterr().err.splitlines()]


def test_same_error_is_told_once_a_minute_with_a_count(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    lines = ProgressLines(clock.monotonic)
    for _ in range(31):
        lines("error", dict(DOWN))
        clock.advance(2)

    assert told(capsys) == [
        "prod/services: ERR_CONNECT_FAILED h:6443: connection refused",
        "prod/services: ERR_CONNECT_FAILED h:6443: connection refused (30 times in the last 60 s)",
    ]


def test_another_error_and_another_listener_are_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProgressLines(ManualClock().monotonic)
    for message, resource in (
        ("refused", "services"),
        ("no route", "services"),
        ("refused", "services"),
        ("refused", "e"),
    ):
        lines("error", {**DOWN, "message": message, "resource": resource})

    assert told(capsys) == [
        "prod/services: ERR_CONNECT_FAILED refused",
        "prod/services: ERR_CONNECT_FAILED no route",
        "prod/e: ERR_CONNECT_FAILED refused",
    ]


def test_listener_that_works_again_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProgressLines(ManualClock().monotonic)
    lines("listening", dict(WORKS))
    lines("error", dict(DOWN))
    for _ in range(2):
        lines("listening", dict(WORKS))

    assert told(capsys) == [
        "prod/services: ERR_CONNECT_FAILED h:6443: connection refused",
        "prod/services: works again",
    ]


def test_listener_that_flaps_is_told_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    lines = ProgressLines(clock.monotonic)
    for _ in range(10):
        lines("error", dict(DOWN))
        lines("listening", dict(WORKS))
        clock.advance(1)

    assert len(told(capsys)) == 2


def test_reader_that_does_not_read_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesync_local.sessions.progress._KEPT", 100)
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stderr, os.fdopen(reading) as reader:
        monkeypatch.setattr("sys.stderr", stderr)
        lines = ProgressLines(ManualClock().monotonic)
        lines.begin()
        for number in range(5_000):
            lines("resync", {"text": f"{number} {'x' * 100}"})
        found: list[str] = []
        reads = threading.Thread(target=lambda: found.extend(reader))
        reads.start()
        lines.end()
        stderr.close()
        reads.join()
    assert found[0].startswith("   0.00  0 xxx")
    assert "lines were left out: nobody read them in time" in "".join(found)


@pytest.mark.parametrize(
    ("verbose", "said"),
    [
        (False, "session own is the master (first session)"),
        (True, "session own is the master (first session), epoch 4"),
    ],
)
def test_epoch_of_the_session_is_only_for_those_who_ask(verbose: bool, said: str) -> None:
    lines = ProgressLines(verbose=verbose).lines(
        "master", {"session": "own", "epoch": 4, "after": "first session"}, 0.0
    )

    assert [text for text, _ in lines] == [said]


def test_footer_says_for_whom_it_waits() -> None:
    live = LiveProgress(Console(file=io.StringIO(), force_terminal=True))
    shown = [live._status()]
    for what, details in (
        ("waiting", {"session": "7c1e"}),
        ("waiting", {"session": ""}),
        ("master", {"session": "own", "epoch": 4, "after": "free"}),
    ):
        tuple(live.lines(what, details, 0.0))
        shown.append(live._status())

    assert [text.partition(" \u00b7 ")[0] for text in shown[:3]] == [
        "waiting for the lease",
        "waiting for session 7c1e",
        "waiting for the lease",
    ]
    assert shown[3].startswith("master for ")


def test_log_stands_above_the_footer_on_lines_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "INFO")  # put back what is set here
    with logging_restored():
        set_up_logs()
        live = LiveProgress(Console(file=screen, force_terminal=True, width=80))
        live.begin()
        live("master", {"session": "own", "epoch": 4, "after": "free"})
        logging.getLogger("kubesync").warning("tables cannot be reached", extra={"cluster": "prod"})
        live.end()

    assert sys.stderr is screen
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", screen.getvalue()).splitlines()
    assert "warning: tables cannot be reached (cluster=prod)" in lines


@pytest.mark.parametrize(
    ("compares", "said"),
    [(False, "reading has ended; applying what was read"), (True, "reading has ended; comparing")],
)
def test_end_of_reading_says_what_follows(compares: bool, said: str) -> None:
    assert list(ProgressLines(compares=compares).lines("ending", {}, 0.0)) == [(said, "bold")]


def test_footer_counts_what_was_read_and_every_change() -> None:
    live = LiveProgress(Console(file=io.StringIO(), force_terminal=True))
    upstream = Entry("upstream prod/shop/web/80/TCP", None, "version 1, 0 nodes", "list", "prod/shop/web")
    record = Entry("record web.example.com A in Z1", None, "10.0.0.1 ttl 30", "list", "prod/shop/web")
    refused = Entry(
        "refused api.example.com A in Z1",
        None,
        None,
        "list",
        "prod/shop/api",
        code="Conflict",
        message="it stands there",
    )
    for what, details in (
        ("window", {"cluster": "prod", "events": 2, "listed": 40, "merged": 0, "changed": 2}),
        ("changes", {"entries": [upstream]}),
        ("batch", {"zone": "Z1", "changes": 1}),
        ("changes", {"entries": [record, refused]}),
    ):
        tuple(live.lines(what, details, 0.0))

    assert live._status().partition(" · ")[2] == "2 events · 40 objects listed · 2 changes"


def test_whom_it_waits_for_is_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    ProgressLines()("waiting", {"session": "7c1e"})

    assert capsys.readouterr().err == ""
