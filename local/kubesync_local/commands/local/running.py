"""What ``kubesync local up`` notes while it runs, so that ``local env`` and ``local down`` find it.

A directory holds the state of one run:

    local-up.lock   locked (flock) by the process that runs, and by nobody after its end, however it ended
    local-up.json   written by that process when it is ready, removed when it ends: process id, start, exports
    local-up.log    what it prints, if it runs in the background

Whether something runs is decided by the lock alone: a process id may long belong to somebody else.
"""

import fcntl
import json
import os
import re
import shlex
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from kubesync.domain.errors import KubesyncError, UsageError

_ASKED_SECONDS: Final = 1.0  # somebody who asks whether it runs holds the lock for an instant
_POLL_SECONDS: Final = 0.05
_EXPORTED: Final = re.compile(r"(?:AWS|KUBESYNC)_[A-Z0-9_]{1,64}")


class RunningError(KubesyncError):
    """Something runs already, runs no more, or does not end. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Running:
    """A run that is ready.

    Args:
        pid: its process.
        since: when it was ready, in seconds since 1970.
        exports: variables that lead to its stand-ins.
    """

    pid: int
    since: float
    exports: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """Where the state of a run is. ``chosen``: with --dir."""

    path: Path
    chosen: bool = False

    @property
    def option(self) -> str:
        """What a command needs to find it, with a blank before it."""
        return f" --dir {shlex.quote(str(self.path))}" if self.chosen else ""

    @property
    def log(self) -> Path:
        return self.path / "local-up.log"

    @property
    def _note(self) -> Path:
        return self.path / "local-up.json"

    def make(self) -> None:
        """Make the directory. Raises UsageError: it cannot be made or written."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(self._open_lock())
        except OSError as error:
            raise UsageError(
                f"{self.path}: {error.strerror}: give a directory that can be written with --dir"
            ) from None

    @contextmanager
    def taken(self) -> Iterator[Callable[[Mapping[str, str]], None]]:
        """Be the one that runs here. Yields what notes the exports, once everything is ready.

        Raises:
            RunningError: another process runs here.
            UsageError: the directory cannot be made or written.
        """
        self.make()
        descriptor = self._open_lock()
        try:
            if not self._lock(descriptor):
                found = self._read()
                named = f" (process {found.pid})" if found else ""
                raise RunningError(
                    f"kubesync local up runs already{named}: `kubesync local env{self.option}` prints its exports, "
                    f"`kubesync local down{self.option}` ends it, "
                    "and --dir DIR runs another one beside it"
                )
            self._note.unlink(missing_ok=True)  # of a run that was killed
            try:
                yield lambda exports: self._write(Running(os.getpid(), time.time(), exports))
            finally:
                self._note.unlink(missing_ok=True)
        finally:
            os.close(descriptor)

    def running(self) -> Running | None:
        """The run that is ready here; None: nothing runs, or it is not ready.

        Raises:
            UsageError: the state belongs to another user.
        """
        return self._read() if self._is_locked() else None

    def end(self, seconds: float) -> Running | None:
        """End the run and wait for its end. None: nothing runs.

        Raises:
            RunningError: it is still starting, or does not end.
        """
        found = self.running()
        if found is None:
            if self._is_locked():
                raise RunningError("kubesync local up is still starting: try again in a moment")
            return None
        with _process(found.pid) as send:
            # The process that wrote the note still holds the lock, so the process that was opened is this one and no later one.
            if self.running() == found:
                send(signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while self._is_locked():
            if time.monotonic() >= deadline:
                raise RunningError(f"process {found.pid} did not end within {seconds:g} s: look at {self.log}")
            time.sleep(_POLL_SECONDS)
        return found

    def _open_lock(self) -> int:
        return os.open(self.path / "local-up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _lock(self, descriptor: int) -> bool:
        deadline = time.monotonic() + _ASKED_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_POLL_SECONDS)
            else:
                return True

    def _is_locked(self) -> bool:
        try:
            descriptor = os.open(self.path / "local-up.lock", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _write(self, run: Running) -> None:
        written = self._note.with_suffix(".new")
        written.unlink(missing_ok=True)
        with open(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(asdict(run), file)
        written.replace(self._note)

    def _read(self) -> Running | None:
        try:
            with self._note.open(encoding="utf-8") as file:
                if os.fstat(file.fileno()).st_uid != os.geteuid():
                    raise UsageError(f"{self._note} belongs to another user: give a directory of your own with --dir")
                noted = json.load(file)
        except (FileNotFoundError, ValueError):
            return None
        match noted:
            case {"pid": int(pid), "since": float(since), "exports": dict(exports)} if _are_exports(exports):
                return Running(pid, since, exports)
        return None


def _are_exports(exports: Mapping[Any, Any]) -> bool:
    """Whether a shell may take them: no other variable than ours, such as PATH."""
    return all(_EXPORTED.fullmatch(str(name)) and isinstance(value, str) for name, value in exports.items())


@contextmanager
def _process(pid: int) -> Iterator[Callable[[signal.Signals], None]]:
    """Hold on to a process, where the system can: a signal then never reaches a later one with the same id."""
    if not hasattr(os, "pidfd_open"):
        yield lambda number: os.kill(pid, number)
        return
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        yield lambda _number: None
        return
    try:

        def send(number: signal.Signals) -> None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)

        yield send
    finally:
        os.close(descriptor)


def state_directory(given: Path | None, environment: Mapping[str, str]) -> StateDirectory:
    """The directory that is asked for, or ``kubesync`` in the user's own directory for state (XDG)."""
    if given is not None:
        return StateDirectory(Path(os.path.abspath(given.expanduser())), chosen=True)  # noqa: PTH100 - links stay as they are
    base = environment.get("XDG_STATE_HOME", "")
    # The specification: a relative path is invalid and ignored.
    root = Path(base) if base.startswith("/") else Path(environment.get("HOME", "~")).expanduser() / ".local/state"
    return StateDirectory(root / "kubesync")
