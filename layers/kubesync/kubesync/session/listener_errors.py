"""Persists listener errors and how listeners ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from aws_lambda_powertools import Logger

from kubesync.aws.fencing.writer import FencedWriter, StaleStateError
from kubesync.aws.tables.upstreams import timestamp
from kubesync.clock import Clock
from kubesync.cluster.keys.key_states import Ledger
from kubesync.cluster.keys.planner import Tables
from kubesync.cluster.ports import Progress
from kubesync.cluster.runner import ClusterRunner
from kubesync.domain.errors import ErrorCode, ListenerError, NotMasterError, StoreError
from kubesync.domain.objects import Resource

logger = Logger(service="kubesync", child=True)

_WRITE_SECONDS: Final = 2.0
_ENDED: Final = {
    ErrorCode.WORKER_EXITING: "the process was told to end",
    ErrorCode.CONFIG_DELETE: "the cluster's configuration was deleted",
    ErrorCode.CONFIG_UPDATE: "the cluster's configuration was changed",
    ErrorCode.NOT_MASTER: "the lease was lost",
    ErrorCode.MAX_RUNTIME: "the session's time was up",
}


class ListenerErrors:
    """Writes the errors of all clusters' listeners. Any thread may call it.

    Args:
        not_master: called when another master has taken over.
    """

    def __init__(
        self,
        session: str,
        ledgers: Mapping[str, Ledger],
        tables: Tables,
        fenced_writer: FencedWriter,
        clock: Clock,
        progress: Progress,
        not_master: Callable[[NotMasterError], None],
    ) -> None:
        self._session = session
        self._ledgers = ledgers
        self._tables = tables
        self._fenced_writer = fenced_writer
        self._clock = clock
        self._progress = progress
        self._not_master = not_master

    def failed(self, cluster: str, resource: Resource, error: ListenerError) -> None:
        """Persist an error of a listener, whether or not it continues."""
        details: dict[str, object] = {"cluster": cluster, "resource": resource.value, "message": error.message}
        if error.status is not None:
            details["status"] = error.status
        self._progress("error", {"key": error.code.key, **details})
        self._persist(cluster, resource, error.code, error.message, error.status)

    def _persist(
        self,
        cluster: str,
        resource: Resource,
        code: ErrorCode,
        message: str,
        status: int | None = None,
        *,
        until_monotonic: float = math.inf,
    ) -> None:
        now = self._clock.epoch()
        fields: dict[str, object] = {"code": int(code), "key": code.key, "message": message}
        if status is not None:
            fields["status"] = status
        ledger = self._ledgers.get(cluster)
        view = ledger.listeners.get(resource) if ledger is not None else None
        if view is not None and view.works_since:
            fields["works_since"] = timestamp(view.works_since)
        token, session = self._fenced_writer.token(), self._session
        count = self._tables.listeners.count_error(cluster, resource, code, fields, timestamp(now), session)
        history = self._tables.audit.error(cluster, {"resource": resource.value, **fields}, now)
        ledger = self._ledgers.get(cluster)
        if ledger is None:
            return
        patience = min(_WRITE_SECONDS, until_monotonic - self._clock.monotonic())
        if patience < 0 or not ledger.lock.acquire(timeout=patience):
            logger.warning("an error could not be persisted in time", cluster=cluster, code=code.key)
            return
        try:
            if code is ErrorCode.NOT_MASTER:
                self._fenced_writer.last_word(cluster, [count, history], token)
            else:
                self._fenced_writer.run([cluster], [count, history], token, until_monotonic=until_monotonic)
        except NotMasterError as lost:
            self._not_master(lost)
        except (StoreError, StaleStateError) as failed:
            logger.warning("an error could not be persisted", cluster=cluster, code=code.key, error=str(failed))
        finally:
            ledger.lock.release()

    def ended(self, runner: ClusterRunner, code: ErrorCode, until_monotonic: float) -> None:
        """Persist that a cluster's listeners ended. An entry that cannot be written by the deadline is only logged."""
        for listener in runner.listeners:
            name, text = runner.ledger.config.name, _ENDED[code]
            self._persist(name, listener.resource, code, text, until_monotonic=until_monotonic)
