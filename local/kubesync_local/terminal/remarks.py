"""Lines for people on standard error. Imports nothing that takes long: an error must not wait for the code that draws tables."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

from kubesync_local.terminal.escaping import escaped


def remark(text: str) -> None:
    """A line for people that is not part of the answer. Where it cannot be written, the work goes on without it."""
    try:
        sys.stderr.write(one_line(text))
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads it, the disk is full, or it was closed
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Send to nowhere what is written to a broken stream from now on, also what Python writes when the process ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def one_line(text: str) -> str:
    """The text and a line feed. An error from outside within the text makes no line of its own."""
    return f"{escaped(text.replace('\n', ' '))}\n"
