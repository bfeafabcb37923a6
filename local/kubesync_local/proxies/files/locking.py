"""One writer for each output.

A lock file is locked (flock) while a render writes: ``.NAME.kubesync-lock`` beside a file, ``.kubesync-lock`` in a directory. The lock
ends with the process, however it ends. The holder removes the file at its end; a file that a killed process left is taken over.
"""

import contextlib
import fcntl
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kubesync.domain.errors import KubesyncError

_SUFFIX: Final = ".kubesync-lock"
_WAIT_SECONDS: Final = 3.0
_POLL_SECONDS: Final = 0.05
_NOTE_BYTES: Final = 200


class HeldError(KubesyncError):
    """Another process writes this output. The message says which."""


def lock_of(place: Path, *, directory: bool) -> Path:
    """The lock file of a file, behind symbolic links too, or of a directory."""
    target = Path(os.path.realpath(place))
    return target / _SUFFIX if directory else target.parent / f".{target.name}{_SUFFIX}"


@contextmanager
def only_writer(
    place: Path, said: Callable[[str], None], *, directory: bool = False, wait_seconds: float = _WAIT_SECONDS
) -> Iterator[None]:
    """Within the block no other process that asks writes this output.

    Where nothing can be locked, such as on NFS without locks, a line says so and the block runs all the same.

    Args:
        wait_seconds: how long to wait for the other to end.

    Raises:
        HeldError: another process has the lock.
    """
    path = lock_of(place, directory=directory)
    descriptor: int | None = None
    try:
        descriptor = _taken(path, place, wait_seconds)
    except FileNotFoundError:
        pass  # no such directory: whoever writes there says so
    except OSError as error:
        said(f"{path} cannot be locked ({error.strerror}): make sure that no other kubesync writes {place}")
    try:
        yield
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(descriptor)


def _taken(path: Path, place: Path, wait_seconds: float) -> int:
    """The descriptor that holds the lock."""
    until = time.monotonic() + wait_seconds
    while True:
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                _write_note(descriptor)
                return descriptor
        except BlockingIOError:
            if time.monotonic() >= until:
                holder = _note(descriptor)
                os.close(descriptor)
                raise HeldError(f"{place}: another kubesync writes it{holder}; give each one its own place") from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        time.sleep(_POLL_SECONDS)


def _opened(path: Path) -> int:
    # Whoever may create files here chooses what the name means: no link is followed, and no FIFO holds us up.
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o644)
    except PermissionError as error:
        try:
            return os.open(path, os.O_RDONLY | flags)  # of another user
        except FileNotFoundError:
            raise error from None


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the file still has this name: the process that held the lock before may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _write_note(descriptor: int) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        return
    with contextlib.suppress(OSError):  # the note is for people; without it the lock holds as well
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)


def _note(descriptor: int) -> str:
    try:
        text = os.pread(descriptor, _NOTE_BYTES, 0).decode(errors="replace").strip()
    except OSError:
        return ""
    return f" ({text})" if text else ""
