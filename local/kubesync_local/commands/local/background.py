"""``kubesync local up --detach``: the same command, in the background."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kubesync_local.commands.local.running import Running, RunningError, StateDirectory
from kubesync_local.terminal.output import remark

_READY_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05


def start(options: Sequence[str], state: StateDirectory) -> tuple[Running | None, int]:
    """Start ``kubesync local up`` with these options and wait until it is ready. It outlives this process and its terminal.

    Returns the run, or None and the exit status with which it ended at once; what it said is then printed.

    Raises:
        RunningError: it is not ready in time. It is ended.
        UsageError: the directory cannot be written.
    """
    state.make()
    if (before := state.running()) is not None:
        raise RunningError(
            f"kubesync local up runs already (process {before.pid}): `kubesync local down{state.option}` ends it"
        )
    # -P: a folder named kubesync_local here must not be taken for the command.
    command = [sys.executable, "-P", "-m", "kubesync_local", "local", "up", "--dir", str(state.path), *options]
    # A log of its own until it is the one that runs: another `local up` may begin at the same time.
    begun = state.log.with_name(f"{state.log.name}.{os.getpid()}")
    with open(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:  # noqa: PTH123
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        return _ready(process, state, begun)
    except BaseException:
        process.terminate()  # our own child, whose id nobody else can have until it is waited for
        process.wait()
        begun.replace(state.log)  # the message names it
        raise


def _ready(process: subprocess.Popen[bytes], state: StateDirectory, begun: Path) -> tuple[Running | None, int]:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        ended = process.poll()
        if ended is not None:
            for line in begun.read_text(encoding="utf-8", errors="replace").splitlines():
                remark(line)
            begun.unlink()
            return None, ended or 1
        found = state.running()
        if found is not None and found.pid == process.pid:
            process.returncode = 0  # it goes on: nobody here waits for it
            begun.replace(state.log)
            return found, 0
        if time.monotonic() >= deadline:
            raise RunningError(f"the stand-ins were not ready within {_READY_SECONDS:g} s: look at {state.log}")
        time.sleep(_POLL_SECONDS)
