"""How something that is too small for all is shared."""

from __future__ import annotations

from collections.abc import Iterable


def equal_share(needs: Iterable[int], room: int) -> int:
    """The most that anybody gets of the room: an equal share, and what others leave of theirs. The whole room if all needs fit."""
    left, rising = room, sorted(needs)
    for waiting, need in zip(range(len(rising), 0, -1), rising, strict=True):
        if need * waiting > left:
            return left // waiting
        left -= need
    return room
