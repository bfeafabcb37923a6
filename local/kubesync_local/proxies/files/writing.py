"""Files that are replaced whole: a reader sees the old text or the new one, also after a power cut."""

import contextlib
import errno
import os
import re
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

TEMPORARY: Final = ".kubesync"
"""How the names of temporary files end. They begin with a dot: ``include *.conf`` never finds them."""
# The eight characters are those of ``tempfile``. They have no dot, so the name of the file itself is never in doubt.
_TEMPORARY_NAME: Final = re.compile(rf"\.(?P<name>.+)\.[a-z0-9_]{{8}}{re.escape(TEMPORARY)}", re.DOTALL)


def replace_file(
    path: Path,
    text: str,
    check: Callable[[Path], bool] = lambda _: True,
    said: Callable[[str], None] = lambda _: None,
) -> bool:
    """Write a file beside it, check it, sync it, rename it, sync the directory. Mode and group of an existing file stay.

    Its owner stays too if this process may give files away, as root may. A symbolic link stays, and the file that it names is replaced.

    Args:
        check: gets the new file's path before it replaces the old one.
        said: called with a line if the group could not be kept.

    Returns:
        False: the check said no; the old file stays.

    Raises:
        OSError: it cannot be written, or is no regular file; what is there stays. The error names the file, never a temporary one.
    """
    target = Path(os.path.realpath(path))
    if not is_replaceable(target):
        raise OSError(errno.EINVAL, "not a regular file", str(target))
    made: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=TEMPORARY)
        made = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as opened:
            _keep_rights(opened.fileno(), target, said)
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        if not check(made):
            made.unlink()
            return False
        made.replace(target)
    except BaseException as error:
        if made is not None:
            made.unlink(missing_ok=True)
        if isinstance(error, OSError) and _TEMPORARY_NAME.fullmatch(os.path.basename(str(error.filename))):  # noqa: PTH119
            error.filename = str(
                target
            )  # a temporary name is another each time: nobody could see that the error is the same
        raise
    sync_directory(target.parent)
    return True


def make_mark(path: Path) -> None:
    """Make an empty file, where nothing has this name. What is there, also a symbolic link, is a mark already: it is neither opened nor followed."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))


def is_replaceable(path: Path) -> bool:
    """Whether nothing is there or a regular file, behind symbolic links too. Never a device such as /dev/null."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def sync_directory(directory: Path) -> None:
    """Make names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(directory: Path, belongs: Callable[[str], bool]) -> None:
    """Remove temporary files that a killed process left in a directory.

    Args:
        belongs: whether the temporary files of the file with this name may go.
    """
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if entry.name.endswith(TEMPORARY)]
    for name in names:
        found = _TEMPORARY_NAME.fullmatch(name)
        if found is not None and belongs(found["name"]):
            (directory / name).unlink(missing_ok=True)


def _keep_rights(descriptor: int, target: Path, said: Callable[[str], None]) -> None:
    try:
        before = target.stat()
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        os.fchmod(descriptor, 0o666 & ~umask)
        return
    try:
        os.fchown(descriptor, before.st_uid, before.st_gid)
    except PermissionError:  # only root may give files away
        _keep_group(descriptor, before.st_gid, target, said)
    os.fchmod(descriptor, before.st_mode & 0o7777)


def _keep_group(descriptor: int, group: int, target: Path, said: Callable[[str], None]) -> None:
    try:
        os.fchown(descriptor, -1, group)
    except PermissionError:
        said(f"{target}: its group {group} could not be kept: run kubesync as root or as a member of that group")
