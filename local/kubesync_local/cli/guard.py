"""Turns every error into one line on standard error and an exit status. KUBESYNC_DEBUG=1 shows the traceback instead.

UsageError                      2    wrong use
any other KubesyncError         1    the message says what to do
AWS SDK                         1, or 2 if the environment names a profile or region that does not exist
interrupted                     130  as shells expect after SIGINT; 143 after SIGTERM, 129 after SIGHUP
anything else                   1    a bug in kubesync: the line says how to see more
"""

import errno
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn, TextIO, cast

from kubesync.domain.errors import KubesyncError, UsageError
from kubesync_local.terminal.escaping import escaped_streams, visible
from kubesync_local.terminal.remarks import remark, silence
from kubesync_local.terminal.signals import handled

_WORD_HEAD: Final = 160
_WORD_TAIL: Final = 40
# An ARN of a role has up to 300 characters; names of tables and zones fewer.
_LONG_WORD: Final = re.compile(r"\S{401,}")
_MESSAGE_HEAD: Final = 1600
_MESSAGE_TAIL: Final = 300
# Of botocore, which names the endpoint itself.
_UNREACHED: Final = ("Could not connect to the endpoint URL", "Connect timeout on endpoint URL")


def guarded(command: Callable[[], int]) -> int:
    """Run a command. Raises nothing but ``SystemExit`` (``--help``)."""
    _mend_streams()
    with escaped_streams(), _ended_by_signals() as signals:
        return _guarded(command, signals)


@contextmanager
def _ended_by_signals() -> Iterator[list[int]]:
    """SIGTERM and SIGHUP end a command as an error does: files are closed, and the terminal gets its cursor back.

    A command that does more, such as a session, has handlers of its own meanwhile. Yields the signals that came.
    """
    came: list[int] = []

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        came.append(number)
        raise SystemExit(128 + number)

    with handled(end, signal.SIGTERM, signal.SIGHUP):
        yield came


def _guarded(command: Callable[[], int], signals: Sequence[int]) -> int:
    try:
        status = command()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) closed the pipe. Python would report that again when it closes standard output.
        silence(sys.stdout)
        return 1
    except KeyboardInterrupt as interrupt:
        return _say(f"interrupted: {interrupt}" if str(interrupt) else "interrupted", 130)
    except Exception as error:  # noqa: BLE001 - every error becomes one line and a status; none is hidden
        if signals:  # something failed because it was interrupted
            return 128 + signals[0]
        if os.environ.get("KUBESYNC_DEBUG") == "1":
            import traceback  # only now: `kubesync --help` does without

            traceback.print_exc()
            return 1
        return _say(*_explained(error))
    return status


class _ClosedError(KubesyncError):
    """Standard output is closed."""


class _Closed(io.StringIO):
    """Replaces a standard output that was closed before the command began (``>&-``)."""

    def write(self, _text: str) -> NoReturn:
        raise _ClosedError("standard output is closed: the answer cannot be written")


def _mend_streams() -> None:
    # Python has None for a stream that is closed; mypy does not know.
    out, err = cast("TextIO | None", sys.stdout), cast("TextIO | None", sys.stderr)
    if err is None:
        # Open until the process ends. Without pathlib, which every command would load only for this.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if out is None:
        sys.stdout = _Closed()
    elif isinstance(out, io.TextIOWrapper):
        out.reconfigure(
            errors="backslashreplace"
        )  # like standard error: a character that cannot be encoded must not cut the answer off


def _explained(error: Exception) -> tuple[str, int]:
    if isinstance(error, UsageError):
        return str(error), 2
    if isinstance(error, KubesyncError):
        unreached = any(text in str(error) for text in _UNREACHED)
        return f"{error}{'; check the network, the region and AWS_ENDPOINT_URL_*' if unreached else ''}", 1
    if type(error).__module__.startswith(("botocore.", "boto3.")):
        wrong = type(error).__name__ in ("ProfileNotFound", "NoRegionError", "ConfigParseError", "ConfigNotFound")
        return f"AWS SDK: {error}", 2 if wrong else 1
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}", 1
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT):
        return f"the answer cannot be written: {error.strerror}", 1
    return f"{type(error).__name__}: {error} (KUBESYNC_DEBUG=1 shows where)", 1


def _say(message: str, status: int) -> int:
    remark(f"kubesync: {_short(visible(message))}")
    return status


def _short(message: str) -> str:
    """The message without the middle of what is too long: a word that somebody typed, or the whole."""
    words = _LONG_WORD.sub(lambda word: f"{word[0][:_WORD_HEAD]}...{word[0][-_WORD_TAIL:]}", message)
    left_out = len(words) - _MESSAGE_HEAD - _MESSAGE_TAIL
    return words if left_out <= 0 else f"{words[:_MESSAGE_HEAD]} ... {words[-_MESSAGE_TAIL:]}"
