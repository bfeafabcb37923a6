"""Passes promoted keys (new owners of a name) to the runners that plan them. Keys wait until their runner starts."""

from __future__ import annotations

from collections.abc import Iterable

from kubesync.actors.scheduler import Scheduler
from kubesync.cluster.runner import ClusterRunner
from kubesync.domain.objects import ServiceKey


class PromotedKeys:
    """Passes promoted keys to their clusters' runners. Any thread may call it.

    Args:
        runners: by cluster, shared with the master. ``start`` adds to it.
    """

    def __init__(self, runners: dict[str, ClusterRunner], scheduler: Scheduler) -> None:
        self._runners = runners
        self._waiting: dict[str, set[ServiceKey]] = {}
        self._lock = scheduler.lock()

    def add(self, keys: Iterable[ServiceKey]) -> None:
        """Pass promoted keys to their runners."""
        for key in keys:
            with self._lock:
                runner = self._runners.get(key.cluster)
                if runner is None:  # not started yet: `start` returns them
                    self._waiting.setdefault(key.cluster, set()).add(key)
                    continue
            runner.replan([key])

    def start(self, cluster: str, runner: ClusterRunner) -> set[ServiceKey]:
        """Register the cluster's runner. Returns the keys that waited for it."""
        with self._lock:
            self._runners[cluster] = runner
            return self._waiting.pop(cluster, set())
