"""Turns whatever goes wrong into one line on standard error and an exit status; a traceback is for KUBESYNC_DEBUG=1 only.

UsageError                      2    wrong use
any other KubesyncError         1    the message says what to do
AWS SDK                         1, or 2 where the environment names a profile or region that is not there
interrupted                     130  as shells expect it after SIGINT
anything else                   1    a fault of ours: says how to see more
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TextIO, cast

from kubesync.domain.errors import KubesyncError, UsageError


def guarded(command: Callable[[], int]) -> int:
    """Run a command; never raises but for ``SystemExit`` of ``--help``, or with KUBESYNC_DEBUG=1."""
    _mend_streams()
    try:
        status = command()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Python would complain once more when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except Exception as error:
        if os.environ.get("KUBESYNC_DEBUG") == "1":
            raise
        return _say(*_explained(error))
    return status


class _ClosedError(KubesyncError):
    """There is nowhere to write the answer to."""


class _Closed(io.StringIO):
    """In place of a standard output that was closed before the command began (``>&-``)."""

    def write(self, _text: str) -> NoReturn:
        raise _ClosedError("standard output is closed: there is nowhere to write the answer to")


def _mend_streams() -> None:
    # Python has None for a stream that is closed; mypy does not know.
    out, err = cast("TextIO | None", sys.stdout), cast("TextIO | None", sys.stderr)
    if err is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    if out is None:
        sys.stdout = _Closed()
    elif isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")  # as standard error: no character ends an answer half-way


def _explained(error: Exception) -> tuple[str, int]:
    if isinstance(error, UsageError):
        return str(error), 2
    if isinstance(error, KubesyncError):
        return str(error), 1
    if type(error).__module__.startswith(("botocore.", "boto3.")):
        wrong = type(error).__name__ in ("ProfileNotFound", "NoRegionError", "ConfigParseError", "ConfigNotFound")
        return f"AWS SDK: {error}", 2 if wrong else 1
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}", 1
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT):
        return f"the answer cannot be written: {error.strerror}", 1
    return f"{type(error).__name__}: {error} (KUBESYNC_DEBUG=1 shows where)", 1


def _say(message: str, status: int) -> int:
    line = " ".join(message.split())
    sys.stderr.write(f"kubesync: {line}\n")
    sys.stderr.flush()
    return status
