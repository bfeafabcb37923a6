"""Which keys zones have been told of: a key is open in the table a moment before its zone knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from kubesync.domain.objects import ServiceKey
from kubesync.messages import Publish
from kubesync.zone.pool import Zones


@contextmanager
def queued_keys() -> Iterator[set[ServiceKey]]:
    """Keys that sessions of this process publish in their zones meanwhile; a key is there once its zone has the message."""
    queued: set[ServiceKey] = set()
    really = Zones.send

    def send(self: Zones, zone_id: str, message: object) -> None:
        really(self, zone_id, message)
        if isinstance(message, Publish):
            queued.update(message.names)
            queued.update(wish.key for wish in message.wishes if wish.changes)

    with patch.object(Zones, "send", send):
        yield queued
