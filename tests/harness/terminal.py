"""A terminal of a test's own: commands see one, and the test sees each byte that reaches it."""

import os
import pty
import re
import sys
import threading
import tty
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Final

from harness.cli_stack import environment_of, logging_restored
from kubesync_local.cli.main import main

_MOVEMENTS: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_a_terminal(*arguments: str, environment: Mapping[str, str], typed: str | None = None) -> tuple[int, bytes]:
    """Run a command in this process whose standard output and standard error are one terminal; its status, and the bytes.

    Args:
        typed: what a person types, lines with their ends; standard input is the terminal then. None: it is not.
    """
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
            _typing(reading, writing, typed),
        ):
            assert terminal.isatty()
            status = main(arguments)
    finally:
        reader.join()
        os.close(reading)
    return status, b"".join(found)


def shown_on(terminal: str) -> str:
    """What a person reads in the end: without colours and movements, and of a line that was written again the last form."""
    lines = _MOVEMENTS.sub("", terminal).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


@contextmanager
def _typing(reading: int, writing: int, typed: str | None) -> Iterator[None]:
    if typed is None:
        yield
        return
    os.write(reading, typed.encode())
    before = sys.stdin
    with os.fdopen(os.dup(writing), encoding="utf-8") as sys.stdin:
        try:
            yield
        finally:
            sys.stdin = before


def _drain(reading: int, found: list[bytes]) -> None:
    with suppress(OSError):  # the other end is closed
        while data := os.read(reading, 65_536):
            found.append(data)
