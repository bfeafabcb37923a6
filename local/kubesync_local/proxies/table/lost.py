"""Upstreams that were in the table and are missing now, although nothing said that they were deleted.

the item of an upstream                          what becomes of it
-----------------------                          ------------------
is marked ``deleted``                            it is deleted
is missing, and was marked ``deleted`` before    it stays deleted: the mark expires after a week
is missing, and was never seen                   it is not in the table
is missing, and was there unmarked               it is *lost*: its last servers stay until an item is there again

kubesync itself never removes an unmarked item. So somebody removed it by hand, or made the table again, or restored an older one.
"""

from collections.abc import Callable
from typing import Final

_MOST_NAMED: Final = 3


class LostUpstreams:
    """The keys of those that are lost.

    Args:
        said: called by ``report`` with lines for a person.
    """

    def __init__(self, said: Callable[[str], None]) -> None:
        self._said = said
        self._keys: set[str] = set()
        self._reported: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    @property
    def problem(self) -> str:
        """That some are lost, in words; empty: none is."""
        if not self._keys:
            return ""
        if len(self._keys) == 1:
            return f"{min(self._keys)} is lost: its last servers stay"
        return f"{len(self._keys)} upstreams are lost, such as {min(self._keys)}: their last servers stay"

    def add(self, key: str) -> None:
        """It is missing, and no deletion was seen."""
        self._keys.add(key)

    def discard(self, key: str) -> None:
        """An item is there again, or its deletion was seen after all."""
        self._keys.discard(key)

    def report(self) -> None:
        """Say what changed since the last report: one line for all that were lost, one for all that are no longer."""
        lost, found = sorted(self._keys - self._reported), sorted(self._reported - self._keys)
        self._reported = set(self._keys)
        if found:
            self._said(f"no longer lost: {_named(found)}")
        if len(lost) == 1:
            self._said(
                f"{lost[0]} is lost: it was in the table, is missing now, and was not deleted; its last servers stay, and "
                "it is looked for again"
            )
        elif lost:
            self._said(
                f"{len(lost)} upstreams are lost: they were in the table, are missing now, and were not deleted; their last "
                f"servers stay, and they are looked for again: {_named(lost)}"
            )


def _named(keys: list[str]) -> str:
    more = len(keys) - _MOST_NAMED
    return f"{', '.join(keys[:_MOST_NAMED])}{f' and {more} more' if more > 0 else ''}"
