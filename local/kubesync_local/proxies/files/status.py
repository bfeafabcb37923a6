"""The status file of ``render --watch``, for a supervisor: docs/proxies.md describes it.

    state       when
    -----       ----
    starting    nothing was read yet
    ok          the table was read, and files and proxy are up to date with it
    failing     they are not, or perhaps not; ``error`` says why
    ended       the process has ended in order; ``error`` says why, if it was an error

A process that hangs or was killed says nothing: then ``updated`` and the file's time become old.
"""

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kubesync.actors.scheduler import Clock
from kubesync_local.proxies.left_out import LeftOut

VERSION: Final = 1
WRITTEN_EVERY_SECONDS: Final = 10.0
_TEMPORARY: Final = ".kubesync-status"


@dataclass(frozen=True, slots=True)
class Look:
    """One pass of the loop.

    Args:
        read: whether the table was read.
        upstreams: how many are known.
        problem: what does not work with the table, or with some of its upstreams; empty: nothing.
    """

    read: bool
    upstreams: int
    problem: str


class StatusFile:
    """Writes the file when the state or the error changes, and every 10 seconds.

    Args:
        said: called with a line when it cannot be written, and when it can again.
        failed: what does not work with files and proxy; empty: nothing.
        writes: how often files were written.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        said: Callable[[str], None],
        left_out: LeftOut,
        failed: Callable[[], str],
        writes: Callable[[], int],
    ) -> None:
        self.path = path
        self._clock = clock
        self._said = said
        self._left_out = left_out
        self._failed = failed
        self._writes = writes
        self._seen_writes = writes()
        self._state = "starting"
        self._since = clock.epoch_seconds()
        self._error = ""
        self._last_error: dict[str, str] | None = None
        self._last_read: str | None = None
        self._last_write: str | None = None
        self._upstreams = 0
        self._due_at = 0.0
        self._is_writable = True

    def open(self) -> None:
        """Write it for the first time.

        Raises:
            OSError: it cannot be written.
        """
        self._write()

    def note(self, look: Look) -> None:
        """Called after each pass of the loop. Raises nothing: that the file cannot be written stops no proxy."""
        now = _text(self._clock.epoch_seconds())
        if look.read:
            self._last_read = now
        if (writes := self._writes()) != self._seen_writes:
            self._seen_writes, self._last_write = writes, now
        self._upstreams = look.upstreams
        before, self._error = self._error, look.problem or self._failed()
        if self._error:
            self._last_error = {"at": now, "text": self._error}
        changed = self._become("failing" if self._error else "ok" if self._last_read else "starting")
        if changed or self._error != before or self._clock.monotonic() >= self._due_at:
            self._try_to_write()

    def close(self, error: str = "") -> None:
        """The process ends.

        Args:
            error: why, if it was not told to.
        """
        self._error = error
        if error:
            self._last_error = {"at": _text(self._clock.epoch_seconds()), "text": error}
        self._become("ended")
        self._try_to_write()

    def _become(self, state: str) -> bool:
        if state == self._state:
            return False
        self._state, self._since = state, self._clock.epoch_seconds()
        return True

    def _try_to_write(self) -> None:
        try:
            self._write()
        except OSError as error:
            if self._is_writable:
                self._said(f"--status {self.path}: {error.strerror}")
            self._is_writable = False
            return
        if not self._is_writable:
            self._said("the status file can be written again")
        self._is_writable = True

    def _write(self) -> None:
        self._due_at = self._clock.monotonic() + WRITTEN_EVERY_SECONDS
        _replace(self.path, json.dumps(self._document(), separators=(",", ":")) + "\n")

    def _document(self) -> dict[str, Any]:
        by_reason = self._left_out.by_reason()
        return {
            "v": VERSION,
            "state": self._state,
            "since": _text(self._since),
            "updated": _text(self._clock.epoch_seconds()),
            "pid": os.getpid(),
            "last_read": self._last_read,
            "last_write": self._last_write,
            "error": self._error,
            "last_error": self._last_error,
            "upstreams": self._upstreams,
            "left_out": {"nodes": sum(by_reason.values()), "upstreams": self._left_out.upstreams, **by_reason},
            "standing": self._left_out.standing,
        }


def _text(epoch: float) -> str:
    """RFC 3339, UTC, whole seconds."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _replace(path: Path, text: str) -> None:
    """Readers see the old text or the new one. A symbolic link is replaced, never followed. Nothing is synced: after a power cut nobody asks."""
    temporary = path.with_name(f".{path.name}{_TEMPORARY}")
    temporary.unlink(missing_ok=True)  # of a killed process
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(text)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
