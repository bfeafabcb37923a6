"""A terminal of a test's own: commands see one, and the test sees each byte that reaches it."""

from __future__ import annotations

import os
import pty
import threading
import tty
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress

from harness.cli_stack import environment_of, logging_restored
from kubesync_local.cli.main import main


def on_a_terminal(*arguments: str, environment: Mapping[str, str]) -> tuple[int, bytes]:
    """Run a command in this process whose standard output and standard error are one terminal; its status, and the bytes."""
    reading, writing = pty.openpty()
    tty.setraw(writing)  # it adds no carriage returns
    found: list[bytes] = []
    reader = threading.Thread(target=_drain, args=(reading, found))
    reader.start()
    try:
        with (
            os.fdopen(writing, "w", encoding="utf-8", errors="backslashreplace") as terminal,
            environment_of({**environment, "TERM": "xterm-256color"}),
            logging_restored(),
            redirect_stdout(terminal),
            redirect_stderr(terminal),
        ):
            assert terminal.isatty()
            status = main(arguments)
    finally:
        reader.join()
        os.close(reading)
    return status, b"".join(found)


def _drain(reading: int, found: list[bytes]) -> None:
    with suppress(OSError):  # the other end is closed
        while data := os.read(reading, 65_536):
            found.append(data)
