"""A DynamoDB in memory with the latency of a real one. It records the time of each call."""

import time

from harness.fakes.memory_store import Call, MemoryStore
from kubesync.actors.threads import ThreadScheduler


class Distance:
    """Hooks of a MemoryStore: half of the latency before a call takes effect, half after."""

    def __init__(self, latency_seconds: float) -> None:
        self._half = latency_seconds / 2
        self.calls: list[tuple[float, Call]] = []

    def before(self, call: Call) -> None:
        self.calls.append((time.monotonic(), call))
        if self._half:
            time.sleep(self._half)

    def after(self, call: Call) -> None:  # noqa: ARG002 - part of the hooks
        if self._half:
            time.sleep(self._half)


def distant_store(latency_seconds: float = 0.004) -> tuple[MemoryStore, Distance]:
    """The store and its record of calls. 4 ms: DynamoDB within a region, for reads and transactions alike."""
    distance = Distance(latency_seconds)
    return MemoryStore(clock=ThreadScheduler(), faults=distance), distance
