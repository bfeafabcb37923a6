"""Which keys zones have been told of: a key is open in the table a moment before its zone knows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from kubesync.actors.actor import Host
from kubesync.domain.objects import ObjectKey
from kubesync.messages import Publish


@contextmanager
def queued_keys() -> Iterator[set[ObjectKey]]:
    """Keys that sessions of this process publish in their zones meanwhile; a key is there once its zone has the message."""
    queued: set[ObjectKey] = set()
    really = Host.send

    def send(self: Host[Any], message: object) -> None:
        really(self, message)
        if isinstance(message, Publish):
            queued.update(intent.key for intent in message.intents if intent.changes)

    with patch.object(Host, "send", send):
        yield queued
