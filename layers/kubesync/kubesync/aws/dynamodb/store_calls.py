"""How often a session called DynamoDB, and how often it was throttled. The session's report shows both."""

import threading
from typing import Final, Literal

type Kind = Literal["reads", "writes", "transactions"]

KINDS: Final[tuple[Kind, ...]] = ("reads", "writes", "transactions")


class StoreCalls:
    """Counts of one session, over all its clients. Thread-safe.

    ``counts`` holds ``requests`` (every attempt and every page counts as one), and ``refused_reads``, ``refused_writes`` and
    ``refused_transactions``: throttled, collided with another transaction, or answered with unprocessed keys.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {"requests": 0, **{f"refused_{kind}": 0 for kind in KINDS}}
        self._lock = threading.Lock()

    def count(self, name: str) -> None:
        """Count a request that is sent, or was refused for now. ``name``: of ``counts``."""
        with self._lock:
            self.counts[name] += 1
