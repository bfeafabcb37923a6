"""The commands of ``--check`` and ``--reload``."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SHOWN_BYTES: Final = 400


@dataclass(frozen=True, slots=True)
class Command:
    """A command line for the shell, from the person who started kubesync. ``{}`` and ``$KUBESYNC_FILE`` are the file's path."""

    line: str
    timeout_seconds: float = 60.0

    def run(self, file: Path) -> str:
        """Run it to its end. Returns what went wrong, on one line; empty: nothing.

        It has a process group of its own: Ctrl-C does not reach it, and after the timeout nothing of it is left.
        """
        with tempfile.TemporaryFile() as output:  # not a pipe: a daemon that it starts may keep it open
            process = subprocess.Popen(  # noqa: S602 - the person's own command line, as in a Makefile
                self.line.replace("{}", shlex.quote(str(file))),
                shell=True,
                env={**os.environ, "KUBESYNC_FILE": str(file)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = process.wait(self.timeout_seconds)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return f"it did not end within {self.timeout_seconds:.0f} s"
            if status == 0:
                return ""
            output.seek(max(0, output.seek(0, os.SEEK_END) - _SHOWN_BYTES))
            text = " ".join(output.read().decode(errors="replace").split())
        return f"status {status}: {text}" if text else f"status {status}"
