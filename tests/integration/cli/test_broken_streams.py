"""Sessions whose standard error or standard output breaks, and signals: the session ends in order, and its status is right."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness.cli_stack import CliStack, a_cli_stack
from harness.waiting import PATIENCE_SECONDS, wait_until
from kubesync.aws.tables.control.lease import LeaseTable

MODULE = (sys.executable, "-u", "-m", "kubesync_local")
FULL = "kubesync: the answer cannot be written: No space left on device\n"


@pytest.fixture(autouse=True)
def sighup_is_heard() -> Iterator[None]:
    """Processes inherit what is ignored: under ``nohup`` they would not hear it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def stack() -> Iterator[CliStack]:
    with a_cli_stack() as made:
        assert made.call("setup").status == 0
        assert made.add_cluster("prod").status == 0
        yield made


def handed_over(stack: CliStack) -> bool:
    """Whether the last master has released its lease in good order."""
    return LeaseTable(stack.store, "0").read().clean


def publish(stack: CliStack, name: str) -> None:
    stack.api.cluster.expose("shop", name, {"ports": [{"port": 80}], "selector": {"app": name}})
    wait_until(lambda: f"{name}.shop.svc.prod.example.com A" in stack.zone_records())


def test_session_goes_on_when_nobody_reads_its_progress_any_more(stack: CliStack) -> None:
    session = stack.start("session", "--max-runtime", "3600")
    assert session.stderr is not None
    assert "is the master" in session.stderr.readline()
    session.stderr.close()
    for name in ("one", "two"):
        publish(stack, name)
    session.send_signal(signal.SIGTERM)
    assert session.stdout is not None
    report = json.loads(session.stdout.read())
    assert session.wait(PATIENCE_SECONDS) == 1
    assert (report["ended"], report["clean"]) == ("ERR_WORKER_EXITING", True)
    assert handed_over(stack)


@pytest.mark.parametrize("redirected", [pytest.param("2>/dev/full", marks=pytest.mark.thorough), "2>&-"])
def test_session_without_a_standard_error_reports_and_hands_over(stack: CliStack, redirected: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$@" {redirected}', "sh", *MODULE, "session", "--max-runtime", "3"],
        env=stack.environment, stdout=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0
    assert json.loads(done.stdout)["clean"]
    assert handed_over(stack)


def test_session_whose_report_cannot_be_written_hands_over_and_fails(stack: CliStack) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" >/dev/full', "sh", *MODULE, "session", "--max-runtime", "3"],
        env=stack.environment, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr.splitlines()[-1] + "\n") == (1, FULL)
    assert handed_over(stack)


def test_sighup_ends_a_session_in_order(stack: CliStack) -> None:
    session = stack.start("session", "--max-runtime", "3600")
    publish(stack, "one")
    session.send_signal(signal.SIGHUP)
    out, err = session.communicate(timeout=PATIENCE_SECONDS)

    report = json.loads(out)
    assert (session.returncode, report["ended"], report["clean"]) == (1, "ERR_WORKER_EXITING", True), err
    assert report["message"].startswith("SIGHUP")
    assert handed_over(stack)


def test_session_under_nohup_ignores_sighup(stack: CliStack) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # inherited, as nohup does it
    try:
        session = stack.start("session", "--max-runtime", "3600")
    finally:
        signal.signal(signal.SIGHUP, before)
    publish(stack, "one")
    session.send_signal(signal.SIGHUP)
    publish(stack, "two")
    assert session.poll() is None
    session.send_signal(signal.SIGTERM)
    out, _ = session.communicate(timeout=PATIENCE_SECONDS)
    assert json.loads(out)["clean"]


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.thorough),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.thorough),
    ],
)
def test_terminal_gets_its_cursor_back_when_the_demo_is_ended(number: signal.Signals, status: int) -> None:
    reading, writing = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    demo = subprocess.Popen(
        [*MODULE, "demo"], stdin=subprocess.DEVNULL, stdout=writing, stderr=writing, env=environment
    )
    os.close(writing)
    shown = b""
    until = time.monotonic() + PATIENCE_SECONDS
    while b"\x1b[?25l" not in shown and time.monotonic() < until:
        shown += os.read(reading, 65_536)
    demo.send_signal(number)
    with suppress(OSError):  # the other end is closed
        while data := os.read(reading, 65_536):
            shown += data
    os.close(reading)

    assert demo.wait(PATIENCE_SECONDS) == status
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")


@pytest.fixture
def full_pipe() -> Iterator[int]:
    """The end to write to of a pipe that is full, and that nobody reads."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while os.write(writing, b"x" * 4_096):
            pass
    os.set_blocking(writing, True)
    yield writing
    os.close(writing)
    os.close(reading)


def start_unread(stack: CliStack, full_pipe: int, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*MODULE, *arguments], env=stack.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=full_pipe
    )


@pytest.mark.parametrize("log_level", [pytest.param("WARNING", marks=pytest.mark.thorough), "DEBUG"])
def test_session_ends_in_order_though_nobody_reads_its_full_standard_error(
    stack: CliStack, full_pipe: int, log_level: str
) -> None:
    stack.environment["KUBESYNC_LOG_LEVEL"] = log_level
    with start_unread(stack, full_pipe, "session", "--max-runtime", "3600") as session:
        publish(stack, "one")
        session.send_signal(signal.SIGTERM)
        out, _ = session.communicate(timeout=PATIENCE_SECONDS)

    assert (session.returncode, json.loads(out)["clean"]) == (1, True)
    assert handed_over(stack)


def test_session_whose_time_is_up_ends_though_nobody_reads_it(stack: CliStack, full_pipe: int) -> None:
    with start_unread(stack, full_pipe, "session", "--max-runtime", "3") as session:
        out, _ = session.communicate(timeout=PATIENCE_SECONDS)

    assert (session.returncode, json.loads(out)["ended"]) == (0, "ERR_MAX_RUNTIME")


def test_proxies_are_fed_though_nobody_reads_what_render_says(stack: CliStack, full_pipe: int, tmp_path: Path) -> None:
    stack.api.cluster.expose("shop", "web", {"ports": [{"port": 80}], "selector": {"app": "web"}})
    assert stack.session().status == 0
    file = tmp_path / "all.json"
    with start_unread(stack, full_pipe, "render", "json", "--output-file", str(file), "--watch") as render:
        wait_until(file.exists)
        render.send_signal(signal.SIGTERM)
        render.communicate(timeout=PATIENCE_SECONDS)

    assert render.returncode == 0
    assert "prod/shop/web/80/TCP" in file.read_text()
