"""A command in a process of its own whose terminal is the test's: the test reads what it shows, types, and presses Ctrl-C."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from harness.terminal import shown_on
from harness.waiting import PATIENCE_SECONDS

CTRL_C: Final = "\x03"
END_OF_INPUT: Final = "\x04"


class Dialogue:
    """What the terminal shows is ``text``."""

    def __init__(self, terminal: int, process: subprocess.Popen[bytes]) -> None:
        self._terminal = terminal
        self._process = process
        self._seen = b""

    @property
    def text(self) -> str:
        return shown_on(self._seen.decode(errors="replace"))

    def read_until(self, wanted: str) -> None:
        """Read until the terminal shows this."""
        until = time.monotonic() + PATIENCE_SECONDS
        while wanted not in self.text:
            assert time.monotonic() < until, f"{wanted!r} was never shown:\n{self.text}"
            assert self._read(1.0), f"the command ended without {wanted!r}:\n{self.text}"

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def end(self) -> int:
        """Read to the end. Returns the exit status."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self._read(1.0):
            assert time.monotonic() < until, f"the command does not end:\n{self.text}"
        return self._process.wait(PATIENCE_SECONDS)

    def _read(self, seconds: float) -> bool:
        """Read what is there. False: the command has closed its terminal."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return True
        with suppress(OSError):  # the other end is closed
            if data := os.read(self._terminal, 65_536):
                self._seen += data
                return True
        return False


@contextmanager
def a_dialogue(*arguments: str, environment: Mapping[str, str]) -> Iterator[Dialogue]:
    """Run a command whose standard input, output and error are one terminal, which is its controlling terminal."""
    ours, theirs = pty.openpty()

    def own_terminal() -> None:
        for number in (
            signal.SIGINT,
            signal.SIGHUP,
        ):  # a test that runs in the background ignores them, and so would its children
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-m", "kubesync_local", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm-256color"},
        preexec_fn=own_terminal,
    )
    os.close(theirs)
    try:
        yield Dialogue(ours, process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE_SECONDS)
        os.close(ours)
