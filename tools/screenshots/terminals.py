"""Commands on a terminal: runs them on a pseudo terminal of a given size, and keeps every byte that reaches it.

A command that ends is shown whole, as if the terminal were as long as its answer. One that goes on is shown at a moment of its life,
on a screen of that size.
"""

import base64
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

SIZES: Final = ((80, 24), (160, 45))
_PATIENCE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class View:
    """A command to look at.

    Args:
        at_seconds: so long after its first output, for a command that goes on; 0: once it has ended.
        before: what has to happen first, for example a change in the cluster.
        during: is called when half of ``at_seconds`` is over.
        until: the moment comes as soon as this is on the screen, at ``at_seconds`` at the latest.
    """

    name: str
    arguments: tuple[str, ...]
    at_seconds: float = 0.0
    before: Callable[[], None] = lambda: None
    during: Callable[[], None] = lambda: None
    until: bytes = b""


def shot(view: View, columns: int, rows: int, environment: Mapping[str, str]) -> dict[str, object]:
    """Run it. Returns what the camera needs: a name, the size, and the bytes."""
    view.before()
    seen = _run(view, columns, rows, environment)
    return {
        "name": f"{view.name}-{columns}",
        "columns": columns,
        "rows": rows if view.at_seconds else 0,
        "title": f"kubesync {' '.join(view.arguments)}",
        "bytes": base64.b64encode(seen).decode(),
    }


def _run(view: View, columns: int, rows: int, environment: Mapping[str, str]) -> bytes:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "kubesync_local", *view.arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
        | {"TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    begun = time.monotonic()
    half = view.at_seconds / 2
    until = begun + _PATIENCE_SECONDS  # a busy machine takes long to start a command
    try:
        while (left := until - time.monotonic()) > 0:
            if half and seen and time.monotonic() - begun >= half:
                half = 0.0
                view.during()
            if not select.select([ours], [], [], min(left, 0.1))[0]:
                continue
            try:
                data = os.read(ours, 65_536)
            except OSError:  # the command has ended
                break
            if not seen and view.at_seconds:
                begun = time.monotonic()
                until = begun + view.at_seconds
            seen += data
            if view.until and view.until in seen:
                break
        process.send_signal(signal.SIGTERM)
        while True:
            try:
                if not os.read(ours, 65_536):
                    break
            except OSError:
                break
        process.wait(_PATIENCE_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)
    return seen
