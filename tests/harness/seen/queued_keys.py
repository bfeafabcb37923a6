"""Which keys zones have been told of: a key is open in the table a moment before its zone knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from kubesync.domain.objects import ServiceKey
from kubesync.domain.state import KeyState
from kubesync.zone.pool import ZonePool


@contextmanager
def queued_keys() -> Iterator[set[ServiceKey]]:
    """Keys that sessions of this process queue in their zones meanwhile; a key is there once it is queued."""
    queued: set[ServiceKey] = set()
    really = ZonePool.add

    def add(self: ZonePool, states: Iterable[KeyState], since: float | None = None, *, inherited: bool = False) -> None:
        listed = list(states)
        really(self, listed, since, inherited=inherited)
        queued.update(state.key for state in listed)

    with patch.object(ZonePool, "add", add):
        yield queued
