"""Files that are replaced whole: a reader sees the old text or the new one, also after a power cut."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

TEMPORARY: Final = ".kubesync"
"""How the names of temporary files end. They begin with a dot: ``include *.conf`` never finds them."""


def replace_file(path: Path, text: str, check: Callable[[Path], bool] = lambda _: True) -> bool:
    """Write a file beside it, check it, sync it, rename it, sync the directory. Mode and owner of an existing file stay.

    A symbolic link stays, and the file that it names is replaced.

    Args:
        check: gets the new file's path before it replaces the old one.

    Returns:
        False: the check said no; the old file stays.

    Raises:
        OSError: it cannot be written; the old file stays.
    """
    target = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=TEMPORARY)
    made = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as opened:
            _keep_rights(opened.fileno(), target)
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        if not check(made):
            made.unlink()
            return False
        made.replace(target)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)
    return True


def sync_directory(directory: Path) -> None:
    """Make names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of this file that a killed process left."""
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(f".{glob.escape(target.name)}.*{TEMPORARY}"):
        left.unlink(missing_ok=True)


def _keep_rights(descriptor: int, target: Path) -> None:
    try:
        before = target.stat()
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        os.fchmod(descriptor, 0o666 & ~umask)
        return
    with contextlib.suppress(PermissionError):  # only root may give files away
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, before.st_mode & 0o7777)
