"""Questions before something is changed.

standard input and standard error are a terminal   the question is asked; only ``y`` or ``yes`` goes on
one of them is not                                 nobody could read it or answer: nothing is asked
"""

import os
import select
import sys
from typing import Final

from kubesync.domain.errors import KubesyncError
from kubesync_local.terminal.escaping import visible
from kubesync_local.terminal.output import remark

NOTHING_CHANGED: Final = "nothing was changed"
_LOOK_SECONDS: Final = 0.2


class DeclinedError(KubesyncError):
    """A person said no. Nothing was changed."""

    def __init__(self) -> None:
        super().__init__(NOTHING_CHANGED)


def can_ask() -> bool:
    """Whether somebody is there who reads a question and can answer it."""
    try:
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    except ValueError:  # a stream that was closed
        return False


def confirm(question: str) -> None:
    """Ask a question on standard error. Everything but ``y`` and ``yes`` is a no: also the end of the input.

    Raises:
        DeclinedError: the answer is no.
        KeyboardInterrupt: Ctrl-C; it says that nothing was changed.
    """
    try:
        sys.stderr.write(f"{visible(question)} [y/N] ")
        sys.stderr.flush()
        answer = _typed()
    except KeyboardInterrupt:
        remark("")
        raise KeyboardInterrupt(NOTHING_CHANGED) from None
    except (OSError, ValueError):  # the terminal is gone
        answer = ""
    if not answer.endswith("\n"):
        remark("")  # the cursor stands behind the question
    if answer.strip().lower() not in ("y", "yes"):
        raise DeclinedError


def _typed() -> str:
    """A line of standard input; without its end if the input ends.

    Python does not see a signal that comes between its last look and a read that waits: Ctrl-C would be lost until something is
    typed. So no read waits. And each takes one byte: what is typed ahead stays where ``select`` sees it.
    """
    line = b""
    while not line.endswith(b"\n"):
        while not select.select([sys.stdin], [], [], _LOOK_SECONDS)[0]:
            pass
        if not (byte := os.read(sys.stdin.fileno(), 1)):
            break
        line += byte
    return line.decode(errors="replace")
