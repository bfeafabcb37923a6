"""How often DynamoDB was asked, and how often it refused for now: what a session says about a storm of throttling."""

from __future__ import annotations

import threading
from typing import Final, Literal

type Kind = Literal["reads", "writes", "transactions"]

KINDS: Final[tuple[Kind, ...]] = ("reads", "writes", "transactions")


class StoreCalls:
    """Counts of one session, of all its clients together. Any thread.

    ``counts`` holds ``requests`` (every attempt is one, and every page) and ``refused_reads``, ``refused_writes``,
    ``refused_transactions``: throttled, collided with another transaction, or answered with unprocessed keys.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {"requests": 0, **{f"refused_{kind}": 0 for kind in KINDS}}
        self._lock = threading.Lock()

    def asked(self) -> None:
        """A request is sent."""
        self._add("requests")

    def refused(self, kind: Kind) -> None:
        """It was refused, in whole or in part: the same again, later."""
        self._add(f"refused_{kind}")

    def _add(self, name: str) -> None:
        with self._lock:
            self.counts[name] += 1
