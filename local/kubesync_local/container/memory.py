"""How much memory a container may use. Sessions bound their caches by it.

https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.max), https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
"""

from pathlib import Path
from typing import Final

_LIMITS: Final = ("memory.max", "memory/memory.limit_in_bytes")
_MEBIBYTE: Final = 1024 * 1024
# Without a limit version 1 says a number near the highest there is.
_NO_LIMIT_MEGABYTES: Final = 1024 * 1024


def memory_megabytes(cgroup: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The limit of this process's cgroup. None: it has none, or none can be read."""
    for name in _LIMITS:
        try:
            text = (cgroup / name).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text.isdigit() and (found := int(text) // _MEBIBYTE) < _NO_LIMIT_MEGABYTES:
            return found
    return None
