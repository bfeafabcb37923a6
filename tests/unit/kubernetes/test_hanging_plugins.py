"""Exec plugins that hang, flood, or leave something behind: one line, and nothing of them is left."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from harness.fakes.manual_clock import ManualClock
from harness.waiting import wait_until
from kubesync.domain.errors import DeniedError
from kubesync_local.workplace.exec_plugin import ExecCredentials, ExecPlugin

HANGS: Final = "sleep 300 & echo $! > child; wait"
FLOODS: Final = "sleep 300 & echo $! > child; head -c 3000000 /dev/zero; wait"
HELD_OPEN: Final = "sleep 300 & echo $! > child; exit 0"
TOKEN: Final = """echo '{"status": {"token": "t"}}'"""


def plugin(folder: Path, script: str) -> ExecPlugin:
    return ExecPlugin("/bin/sh", ("-c", script), (), "client.authentication.k8s.io/v1", str(folder))


def lives(folder: Path) -> bool:
    """Whether what the plugin started still runs. A process that nobody waits for is none."""
    status = Path(f"/proc/{(folder / 'child').read_text().strip()}/status")
    try:
        return "State:\tZ" not in status.read_text()
    except OSError:
        return False


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param(HANGS, "did not end in time", id="hangs"),
        pytest.param(FLOODS, "printed more than 1 MB", id="floods"),
        pytest.param(HELD_OPEN, "did not end in time", id="its child keeps its output open"),
    ],
)
def test_plugin_that_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path, script: str, said: str) -> None:
    credentials = ExecCredentials(plugin(tmp_path, script), ManualClock(), timeout_seconds=1.0)

    with pytest.raises(DeniedError, match=f"no credentials: exec plugin '/bin/sh' {said}"):
        credentials.token()
    wait_until(lambda: not lives(tmp_path))


def test_what_a_plugin_that_succeeds_leaves_running_goes_on(tmp_path: Path) -> None:
    script = f"sleep 300 > /dev/null & echo $! > child; {TOKEN}"
    try:
        assert ExecCredentials(plugin(tmp_path, script), ManualClock()).token() == "t"
        assert lives(tmp_path)
    finally:
        os.kill(int((tmp_path / "child").read_text()), 9)


PROGRAM: Final = """
import atexit, sys, threading, time
from pathlib import Path
from kubesync.actors.threads import ThreadScheduler
from kubesync_local.workplace.exec_plugin import ExecCredentials, ExecPlugin
plugin = ExecPlugin("/bin/sh", ("-c", sys.argv[1]), (), "client.authentication.k8s.io/v1", sys.argv[2])
known = atexit._ncallbacks()
threading.Thread(target=ExecCredentials(plugin, ThreadScheduler()).token, daemon=True).start()
while atexit._ncallbacks() == known:  # the plugin may have written its file before its thread goes on
    time.sleep(0.01)
while not (Path(sys.argv[2]) / "child").exists() or not (Path(sys.argv[2]) / "child").read_text().endswith("\\n"):
    time.sleep(0.01)
"""


def test_command_that_ends_leaves_no_hanging_plugin(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", PROGRAM, HANGS, str(tmp_path)], env=environment, timeout=60, check=True)

    wait_until(lambda: not lives(tmp_path))
