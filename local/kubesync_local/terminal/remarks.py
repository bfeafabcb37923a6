"""Lines for people on standard error. Imports nothing that takes long: an error must not wait for the code that draws tables."""

import os
import select
import sys
import textwrap
from contextlib import suppress
from typing import Final, TextIO

from kubesync_local.terminal.escaping import escaped

_INDENT: Final = "  "
# A pipe that can take anything takes so much without waiting: 4 bytes a character at most, in one page.
_PIECE: Final = 1_000
PATIENCE_SECONDS: Final = 2.0
_NARROWEST: Final = 40


class _Reader:
    """Whoever reads standard error. While he does not read, nobody waits for him a second time."""

    def __init__(self) -> None:
        self._stuck = False

    def takes_more(self, patience_seconds: float) -> bool:
        """Whether a piece can be written without waiting, now or soon."""
        seconds = 0.0 if self._stuck and patience_seconds <= PATIENCE_SECONDS else patience_seconds
        try:
            ready = select.select([], [sys.stderr.fileno()], [], seconds)[1]
        except (OSError, ValueError, AttributeError):  # no file, or a closed one: writing tells
            return True
        self._stuck = not ready
        return bool(ready)


_READER: Final = _Reader()


def remark(text: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """A line for people that is not part of the answer. Where it cannot be written, the work goes on without it."""
    write_patiently(_folded(one_line(text)), patience_seconds)


def write_patiently(text: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Write to standard error what its reader takes in time; the rest is dropped.

    A full pipe that nobody reads would hold up whoever writes, a signal's handler too.
    """
    try:
        for begin in range(0, len(text), _PIECE):
            if not _READER.takes_more(patience_seconds):
                return
            sys.stderr.write(text[begin : begin + _PIECE])
            sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads it, the disk is full, or it was closed
        silence(sys.stderr)


def _folded(line: str) -> str:
    """On a terminal that is too narrow: the line, folded at spaces. No word is cut, so that a copy of a command is right."""
    if not sys.stderr.isatty():
        return line
    width = columns(sys.stderr)
    if len(line) <= width:
        return line
    lines = textwrap.wrap(
        line,
        width,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return "".join(f"{each}\n" for each in lines)


def columns(stream: TextIO) -> int:
    """Cells of a line on the terminal that shows this stream; 80 where there is none. COLUMNS wins."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given):
        return int(given)
    with suppress(OSError, ValueError):
        return max(_NARROWEST, os.get_terminal_size(stream.fileno()).columns)
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
