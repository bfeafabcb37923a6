"""The commands of --check and --reload: how they end, what is left of them, and what is kept of what they say."""

import os
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from harness.waiting import PATIENCE_SECONDS
from kubesync_local.proxies.files.commands import Command, CutOffError


class _Life:
    """A FIFO that a command and its children hold open. It ends when all of them have ended."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "life"
        self.started = directory / "started"
        os.mkfifo(self.path)
        self._reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def line(self) -> str:
        """A command line that lasts, with a child."""
        return f"exec 9>{self.path}; touch {self.started}; sleep 1000 & wait"

    def is_over(self) -> bool:
        readable, _, _ = select.select([self._reader], [], [], PATIENCE_SECONDS)
        return bool(readable) and os.read(self._reader, 1) == b""

    def close(self) -> None:
        os.close(self._reader)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[_Life]:
    made = _Life(tmp_path)
    yield made
    made.close()


def test_command_is_cut_off_with_its_children_when_kubesync_is_stopped(life: _Life, tmp_path: Path) -> None:
    with pytest.raises(CutOffError):
        Command(life.line, timeout_seconds=PATIENCE_SECONDS).run(tmp_path, life.started.exists)

    assert life.is_over()


def test_signal_that_raises_leaves_nothing_of_the_command(life: _Life, tmp_path: Path) -> None:
    def stopped() -> bool:
        if life.started.exists():
            raise SystemExit(143)
        return False

    with pytest.raises(SystemExit):
        Command(life.line, timeout_seconds=PATIENCE_SECONDS).run(tmp_path, stopped)

    assert life.is_over()


def test_command_does_not_begin_when_kubesync_is_stopped_already(tmp_path: Path) -> None:
    with pytest.raises(CutOffError):
        Command(f"touch {tmp_path}/begun").run(tmp_path, lambda: True)

    assert not (tmp_path / "begun").exists()


def test_command_that_does_not_end_is_killed_with_its_children(life: _Life, tmp_path: Path) -> None:
    assert Command(life.line, timeout_seconds=0.2).run(tmp_path) == "it did not end within 0 s"
    assert life.is_over()


def test_command_may_leave_a_daemon_that_holds_its_output(tmp_path: Path) -> None:
    assert Command("sleep 5 & exit 0", timeout_seconds=2).run(tmp_path) == ""


def test_daemon_that_a_command_leaves_can_go_on_writing(life: _Life, tmp_path: Path) -> None:
    more = tmp_path / "more"
    daemon = f"(exec 9>{life.path}; until test -e {more}; do sleep 0.02; done; echo said && touch {tmp_path}/written) &"

    assert Command(daemon, timeout_seconds=PATIENCE_SECONDS).run(tmp_path) == ""
    more.touch()

    assert life.is_over()
    assert (tmp_path / "written").exists()


def test_output_goes_through_a_pipe_and_only_its_end_is_kept(tmp_path: Path) -> None:
    command = Command("test -p /dev/stdout && head -c 20000000 /dev/zero | tr '\\0' x; echo the end; exit 3")

    assert command.run(tmp_path) == f"status 3: {'x' * 393}the end"


@pytest.mark.parametrize("moment", ["call", "return"])
def test_signal_while_the_command_is_started_leaves_nothing_of_it(life: _Life, tmp_path: Path, moment: str) -> None:
    """Python raises in the middle of ``Popen``, when the process may be there, and nobody has its number yet."""

    def end(number: int, _frame: FrameType | None) -> None:
        sys.setprofile(None)
        raise SystemExit(128 + number)

    def watch(frame: FrameType, event: str, _value: object) -> None:
        if event == moment and frame.f_code.co_name == "_execute_child":
            signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    holding = os.open(life.path, os.O_WRONLY)  # it is over once nobody else holds it
    try:
        sys.setprofile(watch)
        with pytest.raises(SystemExit):
            Command(life.line, timeout_seconds=PATIENCE_SECONDS).run(tmp_path, life.started.exists)
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGTERM, before)
        os.close(holding)
    assert life.is_over()
