"""The commands of ``--check`` and ``--reload``."""

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from kubesync_local.terminal.signals import held_back

_KEPT_BYTES: Final = 16_384
_SHOWN_CHARACTERS: Final = 400
_READ_BYTES: Final = 65_536
# How long a signal may wait.
_STEP_SECONDS: Final = 0.1
# Only a daemon that was left behind keeps the pipe open longer than the command lives.
_LAST_WORDS_SECONDS: Final = 1.0


class CutOffError(Exception):
    """kubesync ends, so the command did not run, or not to its end."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line for the shell, from the person who started kubesync. ``{}`` and ``$KUBESYNC_FILE`` are the file's path."""

    line: str
    timeout_seconds: float = 60.0

    def run(self, file: Path, stopped: Callable[[], bool] = lambda: False, called: str = "") -> str:
        """Run it to its end. Returns what went wrong, on one line; empty: nothing.

        It has a process group of its own: Ctrl-C does not reach it. Nothing of it is left after the timeout, when ``stopped``, or after
        an exception of a signal.

        Args:
            called: stands for the file's path in what the command wrote. A temporary file has another name each time.

        Raises:
            CutOffError: ``stopped`` became true.
        """
        if stopped():
            raise CutOffError
        process, output = None, None
        try:
            with held_back():  # else a signal may come when it runs, and nobody has its number yet
                process = subprocess.Popen(  # noqa: S602 - the person's own command line, as in a Makefile
                    self.line.replace("{}", shlex.quote(str(file))),
                    shell=True,
                    env={**os.environ, "KUBESYNC_FILE": str(file)},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            output = _Tail(process)
            status = self._wait(process, stopped)
        except BaseException as error:
            if process is not None:
                _kill(process)
                if output is None and process.stdout is not None:
                    process.stdout.close()
            if isinstance(error, subprocess.TimeoutExpired):
                return f"it did not end within {self.timeout_seconds:.0f} s"
            raise
        if status == 0:
            return ""
        text = output.text()
        if called:
            text = text.replace(str(file), called).replace(file.name, called)
        text = text[-_SHOWN_CHARACTERS:]
        return f"status {status}: {text}" if text else f"status {status}"

    def _wait(self, process: subprocess.Popen[bytes], stopped: Callable[[], bool]) -> int:
        until = time.monotonic() + self.timeout_seconds
        while True:
            try:
                return process.wait(max(0.0, min(_STEP_SECONDS, until - time.monotonic())))
            except subprocess.TimeoutExpired:
                if stopped():
                    raise CutOffError from None
                if time.monotonic() >= until:
                    raise


class _Tail:
    """The end of what a process writes.

    A thread of its own reads until nobody holds the pipe any more. So the process never waits for a reader, nothing fills a disk, and a
    daemon that it leaves behind can go on writing.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._kept = b""
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), name="command-output", daemon=True)
        self._reader.start()

    def text(self) -> str:
        """What was kept, on one line. Call it when the process has ended."""
        self._reader.join(_LAST_WORDS_SECONDS)
        return " ".join(self._kept.decode(errors="replace").split())

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while read := os.read(pipe.fileno(), _READ_BYTES):
                self._kept = (self._kept + read)[-_KEPT_BYTES:]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End it and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
