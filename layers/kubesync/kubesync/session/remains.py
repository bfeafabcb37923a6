"""What the last master left in the tables, as a take-over reads it: many items at once, again while DynamoDB throttles.

An item that a newer release wrote stops work on its own zone or cluster only, never the session (I4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from aws_lambda_powertools import Logger

from kubesync.actors.parallel import ParallelMap
from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.aws.tables.control.inflight import Inflight, InflightTable
from kubesync.aws.tables.control.listeners import ListenerTable, Remembered
from kubesync.aws.tables.state import Queued, StateTable
from kubesync.domain.errors import NewerSchemaError

logger = Logger(service="kubesync", child=True)


class Retry(Protocol):
    """Calls until there is an answer; see ``retry_while_throttled``."""

    def __call__[T](self, call: Callable[[], T], /) -> T: ...


class Remains:
    """Reads for one take-over. Each method answers in the order of what was asked for."""

    def __init__(
        self, inflight: InflightTable, states: StateTable, listeners: ListenerTable, reads: ParallelMap, retry: Retry
    ) -> None:
        self._inflight = inflight
        self._states = states
        self._listeners = listeners
        self._reads = reads
        self._retry = retry

    def inflight(self, zone_ids: Sequence[str]) -> list[Inflight | None]:
        """The inflight items of zones. None: there is none, or a newer release wrote it."""
        return self._each(self._inflight_of, zone_ids)

    def queued(self, clusters: Sequence[str]) -> list[Queued | None]:
        """Open and promoted keys of clusters. None: a newer release wrote some of it; the cluster finds out by itself."""
        return self._each(self._queued_of, clusters)

    def remembered(self, clusters: Mapping[str, ClusterConfig]) -> Mapping[str, Remembered | None]:
        """What is remembered of clusters. None, if a newer release wrote some of it: each cluster reads its own."""
        read = {name: config.remembered for name, config in clusters.items()}
        try:
            return self._retry(lambda: self._listeners.remembered(read))
        except NewerSchemaError:
            return dict.fromkeys(clusters)

    def _inflight_of(self, zone_id: str) -> Inflight | None:
        try:
            return self._inflight.read(zone_id)
        except NewerSchemaError as newer:
            logger.error("ignored: written by a newer release", reason=str(newer))
            return None

    def _queued_of(self, cluster: str) -> Queued | None:
        try:
            return self._states.queued(cluster)
        except NewerSchemaError:
            return None

    def _each[T, R](self, call: Callable[[T], R], things: Sequence[T]) -> list[R]:
        return self._reads(lambda thing: self._retry(lambda: call(thing)), things)
