"""Service keys as people type them: ``cluster/namespace/name``."""

from __future__ import annotations

import re
from typing import Final

from kubesync.domain.errors import UsageError
from kubesync.domain.objects import ObjectKey

_PART: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def parse_service_key(text: str) -> ObjectKey:
    """Parse a key.

    Raises:
        UsageError: the text has another form. The message shows the right one.
    """
    parts = text.strip().strip("/").split("/")
    if len(parts) == 5 and parts[3].isdigit():
        raise UsageError(f"{text!r} is an upstream; its service key is {'/'.join(parts[:3])}")
    if len(parts) != 3:
        raise UsageError(f"{text!r} is not a service key: write cluster/namespace/name, such as prod/shop/web")
    for part, what in zip(parts, ("cluster", "namespace", "name"), strict=True):
        if _PART.fullmatch(part) is None:
            raise UsageError(
                f"{text!r} is not a service key: {part!r} is not a {what} (lower-case letters, digits and hyphens, at most 63)"
            )
    return ObjectKey(*parts)
