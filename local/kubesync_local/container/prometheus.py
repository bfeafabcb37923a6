"""The metrics of sessions for Prometheus: the same figures that CloudWatch gets, once a minute.

Names are those of docs/reference/metrics.md: ``LagP99`` is ``kubesync_lag_p99_seconds``, ``Changes`` is ``kubesync_changes_total``.
"""

import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kubesync.telemetry.metrics import IN_SECONDS
from kubesync_local.container.loop import SessionLoop

# How many since the line before. All others are what is so now.
COUNTS: Final = {
    *("MasterHeartbeat", "SessionsCutShort", "Sessions", "Windows", "Events", "EventsMerged", "KeysChanged"),
    *("RecordingTime", "Relists", "TablesThrottled", "Batches", "Changes", "BatchesRefused", "Throttles"),
    *("RecordSetsDeleted", "NamedUpstreamsWritten", "ListenerErrors", "ListenersEnded"),
}
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")

type _Labels = tuple[tuple[str, str], ...]


def name_of(metric: str) -> str:
    """``LagP99``: ``kubesync_lag_p99_seconds``."""
    name = "kubesync_" + _WORD.sub("_", metric).lower()
    return f"{name}_seconds" if metric in IN_SECONDS and not name.endswith("_seconds") else name


class PrometheusFigures(Collector):
    """Takes what a ``MetricsPublisher`` writes. Sessions write, requests read."""

    def __init__(self, deployment: str, shard: str, loop: SessionLoop) -> None:
        self._fixed = {"deployment": deployment, "shard": shard}
        self._loop = loop
        self._lock = threading.Lock()
        self._counts: dict[str, dict[_Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._states: dict[str, dict[_Labels, float]] = defaultdict(dict)
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def write(self, values: Mapping[str, float], dimension_sets: tuple[Mapping[str, str], ...]) -> None:
        """Keep figures under the last set of dimensions: it is the finest one, and Prometheus sums by itself."""
        labels = tuple(sorted(({**self._fixed, **(dimension_sets[-1] if dimension_sets else {})}).items()))
        with self._lock:
            for name, figure in values.items():
                if name in COUNTS:
                    self._counts[name][labels] += figure
                else:
                    self._states[name][labels] = figure

    def forget_states(self) -> None:
        """A session has ended: what it knew last is not so any more."""
        with self._lock:
            self._states.clear()

    def collect(self) -> Iterator[Metric]:
        """Called by the registry."""
        yield GaugeMetricFamily(
            "kubesync_seconds_without_a_step",
            "Since the loop or its session did anything",
            value=self._loop.seconds_without_a_step,
        )
        yield CounterMetricFamily(
            "kubesync_failed_sessions", "Sessions that ended with an error", value=self._loop.failed_sessions
        )
        with self._lock:
            families = (CounterMetricFamily, self._counts), (GaugeMetricFamily, self._states)
            copied = [(kind, name, dict(found)) for kind, names in families for name, found in names.items()]
        for kind, name, found in copied:
            keys = sorted({key for labels in found for key, _ in labels})
            family = kind(name_of(name), f"{name}: see docs/reference/metrics.md", labels=keys)
            for labels, figure in sorted(found.items()):
                known = dict(labels)
                family.add_metric([known.get(key, "") for key in keys], figure)
            yield family

    def page(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self._registry)
