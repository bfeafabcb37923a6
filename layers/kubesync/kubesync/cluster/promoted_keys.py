"""Keys that were given a name, on their way to the runners that plan them; those of a cluster whose runner is not started wait."""

from __future__ import annotations

from collections.abc import Iterable

from kubesync.actors.scheduler import Scheduler
from kubesync.cluster.runner import ClusterRunner
from kubesync.domain.objects import ServiceKey


class PromotedKeys:
    """Tells keys that were given a name to their clusters' runners. Any thread.

    Args:
        runners: by cluster, shared with the master; ``start`` adds to it.
    """

    def __init__(self, runners: dict[str, ClusterRunner], scheduler: Scheduler) -> None:
        self._runners = runners
        self._waiting: dict[str, set[ServiceKey]] = {}
        self._lock = scheduler.lock()

    def add(self, keys: Iterable[ServiceKey]) -> None:
        """These were given a name."""
        for key in keys:
            with self._lock:
                runner = self._runners.get(key.cluster)
                if runner is None:  # not started yet: its runner takes them along
                    self._waiting.setdefault(key.cluster, set()).add(key)
                    continue
            runner.replan([key])

    def start(self, cluster: str, runner: ClusterRunner) -> set[ServiceKey]:
        """From now on the cluster has this runner. Returns the keys that have waited for it."""
        with self._lock:
            self._runners[cluster] = runner
            return self._waiting.pop(cluster, set())
