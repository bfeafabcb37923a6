"""Lines for people on standard error. Imports nothing that takes long: an error must not wait for the code that draws tables."""

from __future__ import annotations

import os
import sys
import textwrap
from contextlib import suppress
from typing import Final, TextIO

from kubesync_local.terminal.escaping import escaped

_INDENT: Final = "  "
_NARROWEST: Final = 40


def remark(text: str) -> None:
    """A line for people that is not part of the answer. Where it cannot be written, the work goes on without it."""
    try:
        sys.stderr.write(_folded(one_line(text)))
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads it, the disk is full, or it was closed
        silence(sys.stderr)


def _folded(line: str) -> str:
    """On a terminal that is too narrow: the line, folded at spaces. No word is cut, so that a copy of a command is right."""
    if not sys.stderr.isatty():
        return line
    columns = _columns()
    if len(line) <= columns:
        return line
    lines = textwrap.wrap(
        line,
        columns,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return "".join(f"{each}\n" for each in lines)


def _columns() -> int:
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given):
        return int(given)
    with suppress(OSError, ValueError):
        return max(_NARROWEST, os.get_terminal_size(sys.stderr.fileno()).columns)
    return 80


def silence(stream: TextIO) -> None:
    """Send to nowhere what is written to a broken stream from now on, also what Python writes when the process ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def one_line(text: str) -> str:
    """The text and a line feed. An error from outside within the text makes no line of its own."""
    return f"{escaped(text.replace('\n', ' '))}\n"
