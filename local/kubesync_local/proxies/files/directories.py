"""Who may change what a proxy reads: whoever may write the directory of its files."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path


def directory_of(place: Path, *, directory: bool = False) -> Path:
    """Where files are replaced, behind symbolic links too.

    Args:
        directory: whether the place is a directory itself.
    """
    real = Path(os.path.realpath(place))
    return real if directory else real.parent


def unsafe(directories: Iterable[Path]) -> Iterator[str]:
    """A line for each directory that others may write. In a sticky one, as ``/tmp``, nobody replaces the files of another."""
    for directory in directories:
        if who := _who_else_writes(directory):
            yield (
                f"{directory} can be written by {who}: who may write there can change what the proxy reads and, with "
                "--reload, has it loaded; use a directory of your own, or chmod go-w"
            )


def _who_else_writes(directory: Path) -> str:
    try:
        found = directory.stat()
    except OSError:
        return ""  # whoever writes there says so
    if found.st_uid not in (0, os.geteuid()):
        return f"its owner ({found.st_uid})"
    if found.st_mode & stat.S_ISVTX:
        return ""
    if found.st_mode & stat.S_IWOTH:
        return "everybody"
    return "its group" if found.st_mode & stat.S_IWGRP else ""
