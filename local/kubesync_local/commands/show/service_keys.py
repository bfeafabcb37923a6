"""Service keys as people type them: ``cluster/namespace/name``."""

from __future__ import annotations

import re
from typing import Final

from kubesync.domain.errors import UsageError
from kubesync.domain.objects import ServiceKey

_PART: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def parse_service_key(text: str) -> ServiceKey:
    """A key out of what was typed.

    Raises:
        UsageError: it has another form; one line that says which is right.
    """
    parts = text.strip().strip("/").split("/")
    if len(parts) == 5 and parts[3].isdigit():
        raise UsageError(f"{text!r} is an upstream: the service key is {'/'.join(parts[:3])}")
    if len(parts) != 3:
        raise UsageError(f"{text!r} is no service key: write cluster/namespace/name, such as prod/shop/web")
    for part, what in zip(parts, ("cluster", "namespace", "name"), strict=True):
        if _PART.fullmatch(part) is None:
            raise UsageError(
                f"{text!r} is no service key: {part!r} is no {what} (lower-case letters, digits and hyphens, at most 63)"
            )
    return ServiceKey(*parts)
